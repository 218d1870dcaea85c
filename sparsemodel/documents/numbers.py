"""Numbers for reading."""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(value: float, digits: int = 6) -> str:
    """Return a number for reading: ``digits`` significant ones, words where there is no number."""
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "infinite" if value > 0 else "none"
    return f"{value:.{digits}g}"


def side_by_side(one: float, two: float) -> tuple[str, str]:
    """Return two nearby numbers with as many digits as it takes to tell them apart."""
    if not (math.isfinite(one) and math.isfinite(two)) or one == two:
        return number(one, 8), number(two, 8)
    scale = max(abs(one), abs(two))
    digits = 2 + math.ceil(math.log10(scale / abs(one - two))) if scale > 0.0 else 6
    digits = min(17, max(6, digits))
    return number(one, digits), number(two, digits)


def aligned(values: Sequence[float]) -> list[str]:
    """Return numbers with the same number of decimals, four significant ones in the smallest.

    Numbers of very different sizes are written each on its own.

    >>> aligned([0.913562, -0.5506, 12.0])
    ['0.9136', '-0.5506', '12.0000']
    """
    sizes = [abs(v) for v in values if v != 0.0 and math.isfinite(v)]
    if not sizes or max(sizes) / min(sizes) > 1e4 or not 1e-4 <= min(sizes) <= 1e6:
        return [f"{v:.4g}" for v in values]
    decimals = max(0, 3 - math.floor(math.log10(min(sizes))))
    return [f"{v:.{decimals}f}" for v in values]


def percent(share: float) -> str:
    """Return a share as a percentage with two significant digits."""
    if not math.isfinite(share):
        return "unknown"
    if share == 0.0:
        return "0 %"
    return f"{100.0 * share:.{3 if share >= 0.01 else 2}g} %"


def not_counted(coordinates: int, rows: bool) -> str:
    """Return how many coefficients (rows, of a matrix) are in the model and not counted."""
    one = "row" if rows else "coefficient"
    return f"{coordinates} {one}{'s' * (coordinates > 1)} not counted"


def readings_in_words(readings: float | None, size: int | None) -> list[tuple[str, str]]:
    """Return a row that says how often data in files were read, and how many bytes that was.

    There is no row for data in memory, nor where it is not known (None).

    Examples
    --------
    >>> readings_in_words(3.002, 1_900_000_000)
    [('data', 'read 3 times, 1.9 GB')]
    >>> readings_in_words(None, None)
    []
    """
    if readings is None or size is None or readings == 0.0:
        return []
    text, unit = f"{readings:.2g}", "bytes"
    amount = float(size)
    for larger in ("kB", "MB", "GB"):
        if amount < 999.5:
            break
        amount, unit = amount / 1000.0, larger
    return [("data", f"read {'once' if text == '1' else f'{text} times'}, {amount:.3g} {unit}")]
