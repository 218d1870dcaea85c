"""Documents as plain text, at most a hundred columns wide."""

from __future__ import annotations

import re
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
"""Columns of the text."""

_LONGEST = 24
"""Characters of a name beside its value; longer ones have it on the next line."""

_SHOWN = 30
_CODE = re.compile(r"[\w.]+\([^()]*\)|\d+(\.\d+)? %")
_JOINED = "\0"


def as_text(document: Document) -> str:
    """Return a document as ``print`` shows it; what only pictures say is left out."""
    title = document.title
    title = f"{title.upper()}. {document.headline}" if document.headline else title
    parts = [_wrapped(title, "", "")] if title else []
    if document.subject:
        parts.append(_wrapped(f"Problem: {document.subject}", "", "  "))
    for section in document.sections:
        lines = [line for block in section.blocks for line in _lines(block)]
        if lines:
            parts.append([*([section.title] * bool(section.title)), *lines])
    return "\n\n".join("\n".join(part) for part in parts)


def _lines(block: Block) -> list[str]:
    match block:
        case Paragraph(text=text):
            return _wrapped(text, "  ", "  ")
        case Items(texts=texts):
            return [line for text in texts for line in _wrapped(text, "  ", "    ")]
        case Facts(rows=rows):
            return _rows(rows)
        case Table(header=header, rows=rows):
            return _columns([header, *rows]) if rows else []
        case Checklist(checks=checks):
            said = (f"{check.text} [{check.word}]" for check in checks)
            return [line for text in said for line in _wrapped(text, "  - ", "    ")]
        case Bars(rows=bars):
            if not bars:
                return _wrapped(block.empty, "  ", "  ")
            found = _rows([(bar.name, bar.text) for bar in bars[:_SHOWN]], longest=WIDTH // 2)
            more = len(bars) - _SHOWN
            return found + ([f"  ... and {more} more"] if more > 0 else [])
    return []


def _rows(rows: Sequence[tuple[str, str]], longest: int = _LONGEST) -> list[str]:
    """Return names and texts in two columns; long names have their text on the next line."""
    rows = [(visible(name), text) for name, text in rows]
    width = max((len(name) for name, _ in rows if len(name) <= longest), default=0)
    indent = " " * (width + 4)
    lines: list[str] = []
    for name, text in rows:
        if len(name) > longest:
            lines += [*_wrapped(name, "  ", "  "), *_wrapped(text, indent, indent)]
        else:
            lines += _wrapped(text or name, f"  {name:<{width}}  " if text else "  ", indent)
    return lines


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  " + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _wrapped(text: str, first: str, indent: str) -> list[str]:
    """Break a text into lines, but no code: what can be typed stays in one piece."""
    shown = visible(" ".join(text.split()))
    whole = _CODE.sub(lambda code: code[0].replace(" ", _JOINED), shown)
    lines = wrap(
        whole,
        WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_JOINED, " ") for line in lines]


__all__ = ["WIDTH", "as_text"]
