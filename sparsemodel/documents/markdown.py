"""Documents as GitHub-flavoured Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from sparsemodel.documents.document import (
    MOST_BARS,
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


def as_markdown(document: Document) -> str:
    """Return a document as Markdown; what only pictures say is left out."""
    parts = [f"# {document.kind}: {_cell(document.title)}"]
    if document.headline:
        parts.append(_cell(document.headline))
    if document.subject:
        parts.append(f"*Problem:* {_cell(document.subject)}")
    for section in document.sections:
        blocks = [text for block in section.blocks if (text := _block(block))]
        if blocks:
            parts += [f"## {_cell(section.title)}", *blocks]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Paragraph(text=text, code=code):
            return _paragraph(text, code)
        case Items(texts=texts):
            return "\n".join(f"- {_cell(text)}" for text in texts)
        case Facts(rows=rows, header=header):
            return _table(header, rows)
        case Table(header=header, rows=rows):
            return _table(header, rows)
        case Checklist(checks=checks):
            return "\n".join(f"- {_cell(f'{check.text} [{check.word}]')}" for check in checks)
        case Bars(rows=bars, header=header):
            if not bars:
                return _cell(block.empty)
            table = _table(
                header, [(_noted(bar.name, bar.note), bar.text) for bar in bars[:MOST_BARS]]
            )
            more = len(bars) - MOST_BARS
            return table + (f"\n\nand {more} more." if more > 0 else "")
    return ""


def _noted(name: str, note: str) -> str:
    return f"{name} ({note})" if note else name


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    cells = [[_cell(cell) for cell in row] for row in (header, *rows)]
    lines = [cells[0], ["---"] * len(header), *cells[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _paragraph(text: str, code: tuple[str, ...]) -> str:
    text = _cell(text)
    for piece in code:
        text = text.replace(_cell(piece), f"`{piece}`")
    return text


def _cell(text: str) -> str:
    """Return a text without anything that Markdown would understand."""
    text = visible(" ".join(text.split()))
    for mark in "\\`*_[]<>|~$&#!":
        text = text.replace(mark, "\\" + mark)
    return text
