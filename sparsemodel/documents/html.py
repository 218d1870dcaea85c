"""Documents as one HTML file: styles and pictures inside, no scripts, no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sparsemodel.documents.document import (
    Bars,
    Block,
    Chart,
    Checklist,
    Document,
    Facts,
    Gauge,
    Items,
    Paragraph,
    Table,
)
from sparsemodel.documents.picture import line_chart
from sparsemodel.documents.style import STYLE

_MOST = 1000


def as_html(document: Document) -> str:
    """Return a document as a self-contained page for screen, phone and paper."""
    d = document
    title = f"{d.title}: {d.subject}" if d.subject else d.title
    header = (
        f'<header><p class="kind">{escape(d.kind)}</p>'
        f'<h1><span class="claim {d.mark}">{escape(d.title)}</span></h1>'
        f'<p class="lead">{escape(d.headline)}</p><p class="model">{escape(d.subject)}</p></header>'
    )
    body = [header]
    for section in d.sections:
        content = _blocks(section.blocks)
        if content:
            heading = f"<h2>{escape(section.title)}</h2>" if section.title else ""
            body.append(f"<section>{heading}{content}</section>")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _blocks(blocks: Sequence[Block]) -> str:
    """Return the blocks of a section; charts stand beside each other at its end."""
    found = "".join(_block(block) for block in blocks)
    charts = "".join(_chart(block) for block in blocks if isinstance(block, Chart))
    return found + (f'<div class="charts">{charts}</div>' if charts else "")


def _block(block: Block) -> str:
    match block:
        case Paragraph(text=text, code=code):
            text = escape(text)
            for piece in map(escape, code):
                text = text.replace(piece, f"<code>{piece}</code>")
            return f"<p>{text}</p>"
        case Items(texts=texts):
            items = "".join(f"<li>{escape(text)}</li>" for text in texts)
            return f"<ul>{items}</ul>" if items else ""
        case Facts(rows=rows):
            return _table("facts", "".join(_row((name, value)) for name, value in rows))
        case Table(header=header, rows=rows):
            head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
            body = "".join(map(_row, rows))
            return _table("", body and f"<tr>{head}</tr>{body}")
        case Checklist(checks=checks):
            items = "".join(
                f'<li class="{check.mark}"><b>{escape(check.word)}</b> {escape(check.text)}</li>'
                for check in checks
            )
            return f'<ul class="assumptions">{items}</ul>'
        case Bars():
            return _bars(block)
        case Gauge():
            return _gauge(block)
    return ""


def _table(kind: str, rows: str) -> str:
    if not rows:
        return ""
    return f"<table{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{rows}</table>"


def _row(cells: Sequence[str]) -> str:
    first, *rest = cells
    values = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
    return f'<tr><th scope="row">{escape(first)}</th>{values}</tr>'


def _bars(block: Bars) -> str:
    if not block.rows:
        return f"<p>{escape(block.empty)}</p>" if block.empty else ""
    largest = block.scale or max((abs(b.size) for b in block.rows if b.drawn), default=0.0) or 1.0
    rows = []
    for bar in block.rows[:_MOST]:
        width = 100.0 * min(1.0, abs(bar.size) / largest)
        sign = "minus" if bar.size < 0.0 else "plus"
        drawn = f'<i class="{sign}" style="width:{width:.1f}%"></i>' if bar.drawn else ""
        note = f' <small class="free">{escape(bar.note)}</small>' if bar.note else ""
        rows.append(
            f'<tr><th scope="row">{escape(bar.name)}{note}</th><td class="num">{escape(bar.text)}'
            f'</td><td class="size">{drawn}</td></tr>'
        )
    more = len(block.rows) - _MOST
    tail = f"<p>and {more} more.</p>" if more > 0 else ""
    return _table("coefficients", "".join(rows)) + tail


def _gauge(block: Gauge) -> str:
    ends = "".join(
        f"<span{place}><b>{escape(value)}</b><br>{escape(name)}</span>"
        for (name, value), place in zip(
            block.marks, ("", ' class="mid"', ' class="last"'), strict=True
        )
    )
    return (
        f'<figure class="gap"><div class="bar" role="img" aria-label="{escape(block.label)}">'
        f'<i class="unknown" style="width:{max(100.0 * block.share, 0.4):.3f}%"></i></div>'
        f'<div class="ends">{ends}</div><figcaption>{escape(block.caption)}</figcaption></figure>'
    )


def _chart(chart: Chart) -> str:
    svg = line_chart(chart)
    return f"<figure>{svg}<figcaption>{escape(chart.caption)}</figcaption></figure>" if svg else ""


__all__ = ["as_html"]
