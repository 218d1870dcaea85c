"""The HTML that objects show in notebooks: small tables, no scripts, light and dark themes alike.

Colours are those of the page around them; nothing is styled outside of the element itself.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that steer a terminal, turn the direction of text, or show nothing."""

_PANEL = (
    "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;max-width:52rem;"
    "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:.7rem .9rem;margin:.3rem 0"
)
_SOFT = "opacity:.72"
_TABLE = (
    "border-collapse:collapse;margin:.3rem 0 0;background:transparent;color:inherit;"
    "font-size:13px;line-height:1.45"  # said again: not every page hands them on to tables
)
_CELL = (
    "text-align:left;vertical-align:top;padding:.12rem .9rem .12rem 0;border:0;"
    "background:transparent;font-variant-numeric:tabular-nums;white-space:normal"
)
_BAR = "display:inline-block;height:.62em;border-radius:2px;min-width:1px"
BLUE, ORANGE = "#3b7fd0", "#d0702a"
"""Positive and negative; readable on white and on black."""


def panel(kind: str, title: str, *parts: str) -> str:
    """Return a box with what the object is, a line that says the main thing, and ``parts``."""
    return (
        f'<div style="{_PANEL}"><div style="{_SOFT}">{escape(kind)}</div>'
        f'<div style="font-weight:600;font-size:14px;overflow-wrap:anywhere">{escape(title)}</div>'
        f"{''.join(parts)}</div>"
    )


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return names and values as a table of two columns."""
    body = "".join(
        f'<tr style="background:transparent"><th scope="row" style="{_CELL};{_SOFT};'
        f'font-weight:400;white-space:nowrap">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table style="{_TABLE}">{body}</table>' if body else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows of cells under a header."""
    head = "".join(
        f'<th scope="col" style="{_CELL};{_SOFT};font-weight:400">{escape(name)}</th>'
        for name in header
    )
    body = "".join(
        '<tr style="background:transparent">'
        + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    return f'<table style="{_TABLE}"><tr style="background:transparent">{head}</tr>{body}</table>'


def bars(
    rows: Sequence[tuple[str, float]],
    *,
    plain: Sequence[tuple[str, float]] = (),
    more: int = 0,
) -> str:
    """Return named numbers with a bar each, as long as the number is large.

    ``plain`` ones come last and have no bar, because they are on another scale; ``more`` says how
    many others there are.
    """
    largest = max((abs(value) for _, value in rows), default=0.0) or 1.0
    body = []
    barred = [(name, value, True) for name, value in rows]
    for name, value, bar in [*barred, *((name, value, False) for name, value in plain)]:
        style = f"{_BAR};width:{8.0 * abs(value) / largest:.2f}rem"
        style += f";background:{BLUE if value >= 0.0 else ORANGE}"
        drawn = f'<i style="{style}"></i>' if bar else ""
        body.append(
            f'<tr style="background:transparent"><th scope="row" style="{_CELL};font-weight:400">'
            f'{escape(name)}</th><td style="{_CELL};text-align:right">{value:.5g}</td>'
            f'<td style="{_CELL};vertical-align:middle">{drawn}</td></tr>'
        )
    tail = f'<div style="{_SOFT}">and {more} more</div>' if more > 0 else ""
    return f'<table style="{_TABLE}">{"".join(body)}</table>{tail}' if body else ""


def folded(title: str, content: str) -> str:
    """Return ``content`` under a title that opens and closes it."""
    if not content:
        return ""
    return (
        f'<details style="margin:.35rem 0 0"><summary style="cursor:pointer">{escape(title)}'
        f"</summary>{content}</details>"
    )


def sentence(text: str) -> str:
    """Return a line of text."""
    return f'<div style="margin:.2rem 0 0;overflow-wrap:anywhere">{escape(text)}</div>'


def visible(text: str) -> str:
    r"""Return ``text`` with every character that is not seen written as an escape.

    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _escaped(character) if unicodedata.category(character) in _HIDDEN else character
        for character in text
    )


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


__all__ = ["BLUE", "ORANGE", "bars", "facts", "folded", "panel", "sentence", "table", "visible"]
