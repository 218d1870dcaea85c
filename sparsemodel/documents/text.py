"""Documents as plain text, as wide as the terminal and at most a hundred columns."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from textwrap import wrap

from sparsemodel.documents.document import (
    Bars,
    Block,
    Checklist,
    Document,
    Facts,
    Items,
    Paragraph,
    Table,
)
from sparsemodel.documents.escaping import visible

WIDTH = 100
"""Columns of the text at most, and of the text in files."""

_NARROWEST = 40

_LONGEST = 24
"""Characters of a name beside its value; longer ones have it on the next line."""

_SHOWN = 30
_NUMBER = 16
_CODE = re.compile(r"[\w.]+\([^()]*\)|\d+(\.\d+)? %")
_JOINED = "\0"


def as_text(document: Document, width: int | None = None) -> str:
    """Return a document as ``print`` shows it; what only pictures say is left out.

    ``width`` is the number of columns, None for those of the terminal.
    """
    columns = _terminal() if width is None else width
    title = ": ".join(part for part in (document.kind, document.title) if part)
    lines = _wrapped(title, "", "  ", columns)
    if document.headline:
        lines += _wrapped(document.headline, "  ", "  ", columns)
    parts = [lines] if document.title else []
    if document.subject:
        parts.append(_wrapped(f"Problem: {document.subject}", "", "  ", columns))
    for section in document.sections:
        lines = [line for block in section.blocks for line in _lines(block, columns)]
        if lines:
            parts.append([*([section.title] * bool(section.title)), *lines])
    return "\n\n".join("\n".join(part) for part in parts)


def _terminal() -> int:
    return max(_NARROWEST, min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns))


def _lines(block: Block, width: int) -> list[str]:
    match block:
        case Paragraph(text=text):
            return _wrapped(text, "  ", "  ", width)
        case Items(texts=texts):
            return [line for text in texts for line in _wrapped(text, "  ", "    ", width)]
        case Facts(rows=rows):
            return _rows(rows, width)
        case Table(header=header, rows=rows):
            return _columns([header, *rows]) if rows else []
        case Checklist(checks=checks):
            said = (f"{check.text} [{check.word}]" for check in checks)
            return [line for text in said for line in _wrapped(text, "  - ", "    ", width)]
        case Bars():
            return _bars(block, width)
    return []


def _bars(block: Bars, width: int) -> list[str]:
    """Return names and numbers, the numbers under each other by their last digits."""
    if not block.rows:
        return _wrapped(block.empty, "  ", "  ", width)
    shown = block.rows[:_SHOWN]
    widest = max(len(bar.text) for bar in shown)
    rows = [(bar.name, bar.text.rjust(min(widest, _NUMBER))) for bar in shown]
    more = len(block.rows) - _SHOWN
    tail = [f"  ... and {more} more"] if more > 0 else []
    return _rows(rows, width, longest=width // 2) + tail


def _rows(rows: Sequence[tuple[str, str]], columns: int, longest: int = _LONGEST) -> list[str]:
    """Return names and texts in two columns; long names have their text on the next line."""
    rows = [(visible(name), text) for name, text in rows]
    width = max((len(name) for name, _ in rows if len(name) <= longest), default=0)
    indent = " " * (width + 4)
    lines: list[str] = []
    for name, text in rows:
        if len(name) > longest:
            lines += [
                *_wrapped(name, "  ", "  ", columns),
                *_wrapped(text, indent, indent, columns),
            ]
        else:
            pad = " " * (len(text) - len(text.lstrip()))
            first = f"  {name:<{width}}  {pad}" if text else "  "
            lines += _wrapped(text or name, first, indent, columns)
    return lines


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  " + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _wrapped(text: str, first: str, indent: str, width: int) -> list[str]:
    """Break a text into lines, but no code: what can be typed stays in one piece."""
    shown = visible(" ".join(text.split()))
    whole = _CODE.sub(lambda code: code[0].replace(" ", _JOINED), shown)
    lines = wrap(
        whole,
        width,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_JOINED, " ") for line in lines]
