"""Documents as notebooks show them: small tables, no scripts, light and dark themes alike.

Colours are those of the page around them; nothing is styled outside of the element itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from sparsemodel.documents.document import (
    Bars,
    Block,
    Checklist,
    Document,
    Facts,
    Items,
    Paragraph,
    Section,
    Table,
)

_MOST = 30

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


def as_notebook(document: Document) -> str:
    """Return a document as a box: what it is, the main thing, and sections that open and close."""
    d = document
    title = d.title or d.subject
    rows = [("problem", d.subject)] if d.title and d.subject else []
    return (
        f'<div style="{_PANEL}"><div style="{_SOFT}">{escape(d.kind)}</div>'
        f'<div style="font-weight:600;font-size:14px;overflow-wrap:anywhere">'
        f"{escape(title[:1].upper() + title[1:])}</div>"
        f"{_sentence(d.headline) if d.headline else ''}{_facts(rows)}"
        f"{''.join(map(_section, d.sections))}</div>"
    )


def _section(section: Section) -> str:
    content = "".join(map(_block, section.blocks))
    if not content or not section.title:
        return content
    if not section.folded:
        return f'<div style="{_SOFT};margin:.35rem 0 0">{escape(section.title)}</div>{content}'
    return (
        '<details style="margin:.35rem 0 0"><summary style="cursor:pointer">'
        f"{escape(section.title)}</summary>{content}</details>"
    )


def _block(block: Block) -> str:
    match block:
        case Paragraph(text=text):
            return _sentence(text)
        case Items(texts=texts):
            return "".join(map(_sentence, texts))
        case Facts(rows=rows):
            return _facts(rows)
        case Table(header=header, rows=rows):
            return _table(header, rows) if rows else ""
        case Checklist(checks=checks):
            return "".join(_sentence(f"{check.text} [{check.word}]") for check in checks)
        case Bars():
            return _bars(block)
    return ""


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    body = "".join(
        f'<tr style="background:transparent"><th scope="row" style="{_CELL};{_SOFT};'
        f'font-weight:400;white-space:nowrap">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table style="{_TABLE}">{body}</table>' if body else ""


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
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


def _bars(block: Bars) -> str:
    """Return named sizes with a bar each; of those that are drawn, the first ones alone."""
    drawn = [bar for bar in block.rows if bar.drawn]
    largest = block.scale or max((abs(bar.size) for bar in drawn), default=0.0) or 1.0
    body = []
    for bar in [*drawn[:_MOST], *(bar for bar in block.rows if not bar.drawn)]:
        style = f"{_BAR};width:{8.0 * min(1.0, abs(bar.size) / largest):.2f}rem"
        style += f";background:{BLUE if bar.size >= 0.0 else ORANGE}"
        body.append(
            f'<tr style="background:transparent"><th scope="row" style="{_CELL};font-weight:400">'
            f'{escape(bar.name)}</th><td style="{_CELL};text-align:right">{escape(bar.text)}</td>'
            f'<td style="{_CELL};vertical-align:middle">'
            f"{f'<i style={chr(34)}{style}{chr(34)}></i>' if bar.drawn else ''}</td></tr>"
        )
    more = len(drawn) - _MOST
    tail = f'<div style="{_SOFT}">and {more} more</div>' if more > 0 else ""
    return f'<table style="{_TABLE}">{"".join(body)}</table>{tail}' if body else ""


def _sentence(text: str) -> str:
    return f'<div style="margin:.2rem 0 0;overflow-wrap:anywhere">{escape(text)}</div>'
