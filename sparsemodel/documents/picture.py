"""Small line charts as inline SVG: no scripts, no fonts, readable in black and white."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

from sparsemodel.documents.document import Chart, Series

_WIDTH, _HEIGHT = 520, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 14, 16, 44


def line_chart(chart: Chart) -> str:
    """Return an SVG chart, or an empty string when there are not two points to join.

    With ``log`` the vertical axis is logarithmic and points that are not positive are left out.
    """
    log = chart.log
    kept = [_cleaned(s, log) for s in chart.series]
    kept = [s for s in kept if len(s.x) > 0]
    if max((len(s.x) for s in kept), default=0) < 2:
        return ""
    low_x, high_x = _range([v for s in kept for v in s.x])
    low_y, high_y = _range([_scaled(v, log) for s in kept for v in s.y])
    flat = 0.05 if log else 1e-12 * max(abs(high_y), abs(low_y), 1e-300)
    if high_y - low_y < flat:
        return ""  # a line without anything to see, whose labels would all be the same
    margin = 0.06 * (high_y - low_y)
    low_y, high_y = low_y - margin, high_y + margin

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - low_x) / (high_x - low_x) if high_x > low_x else 0.5
        along = (_scaled(y, log) - low_y) / (high_y - low_y)
        return (
            _LEFT + across * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - along * (_HEIGHT - _TOP - _BOTTOM),
        )

    body = _axes(place, (low_x, high_x), (low_y, high_y), log, chart.x_label, chart.y_label)
    for line in kept:
        points = [place(x, y) for x, y in zip(line.x, line.y, strict=True)]
        body.append(f'<path class="{line.style}" d="{_path(points, line.steps)}"/>')
    label = escape(chart.title)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">'
        f"<title>{label}</title>{''.join(body)}</svg>"
    )


def _axes(
    place: Callable[[float, float], tuple[float, float]],
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    log: bool,
    x_label: str,
    y_label: str,
) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    out = []
    for tick in _ticks(*x_range):
        x = place(tick, 1.0)[0]
        out.append(
            f'<text class="tick" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">'
            f"{_label(tick)}</text>"
        )
        out.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom}"/>')
    heights = _log_ticks(*y_range) if log else [(t, _label(t)) for t in _ticks(*y_range)]
    for value, text in heights:
        share = (value - y_range[0]) / (y_range[1] - y_range[0])
        y = bottom - share * (bottom - _TOP)
        out.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
        out.append(
            f'<text class="tick" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        )
    out.append(f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>')
    out.append(
        f'<text class="name" x="{(_LEFT + right) / 2:.1f}" y="{_HEIGHT - 6}" '
        f'text-anchor="middle">{escape(x_label)}</text>'
    )
    middle = (_TOP + bottom) / 2
    out.append(
        f'<text class="name" x="14" y="{middle:.1f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {middle:.1f})">{escape(y_label)}</text>'
    )
    return out


def _path(points: list[tuple[float, float]], steps: bool) -> str:
    first, *rest = points
    out = [f"M{first[0]:.1f} {first[1]:.1f}"]
    for x, y in rest:
        out.append(f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}")
    return "".join(out)


def _cleaned(series: Series, log: bool) -> Series:
    pairs = [
        (x, y)
        for x, y in zip(series.x, series.y, strict=True)
        if math.isfinite(x) and math.isfinite(y) and (y > 0.0 or not log)
    ]
    return Series(
        series.label, [x for x, _ in pairs], [y for _, y in pairs], series.style, series.steps
    )


def _scaled(value: float, log: bool) -> float:
    return math.log10(value) if log else value


def _range(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


def _ticks(low: float, high: float) -> list[float]:
    """Return three to six round numbers between ``low`` and ``high``."""
    span = high - low
    if span <= 0.0:
        return [low]
    step = 10.0 ** math.floor(math.log10(span / 4.0))
    for factor in (1.0, 2.0, 5.0, 10.0):
        if span / (factor * step) <= 5.0:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    first, last = math.ceil(low), math.floor(high)
    if last - first >= 1:
        stride = max(1, math.ceil((last - first) / 5))
        return [(float(e), f"1e{e}") for e in range(first, last + 1, stride)]
    powers = range(math.floor(low), math.ceil(high) + 1)
    marks = [factor * 10.0**e for e in powers for factor in (1.0, 2.0, 5.0)]
    inside = [m for m in marks if low <= math.log10(m) <= high]
    if len(inside) < 2:
        inside = _ticks(10.0**low, 10.0**high)
    return [(math.log10(m), _label(m)) for m in inside]


def _label(value: float) -> str:
    if value == 0.0:
        return "0"
    return f"{value:.4g}" if 1e-3 <= abs(value) < 1e5 else f"{value:.3g}"
