"""Documents as one HTML file: styles and pictures inside, no scripts, no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sparsemodel.documents.document import (
    MOST_BARS,
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


def as_html(document: Document) -> str:
    """Return a document as a self-contained page for screen, phone and paper."""
    d = document
    page = f"{d.title}: {d.subject}" if d.subject else d.title
    header = (
        f'<header><p class="kind">{escape(d.kind)}</p>'
        f'<h1><span class="claim {d.mark}">{escape(d.title)}</span></h1>'
        f'<p class="lead">{escape(d.headline)}</p><p class="model">{escape(d.subject)}</p></header>'
    )
    body = [header]
    for section in d.sections:
        content = _blocks(section.blocks)
        if content:
            title = escape(section.title)
            heading = f"<h2>{title}</h2>" if title else ""
            if title and section.folded:
                content = f"<details><summary>{heading}</summary>{content}</details>"
                heading = ""
            body.append(f"<section>{heading}{content}</section>")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(page)}</title><style>{STYLE}</style></head>"
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
    both = any(b.size < 0.0 for b in block.rows if b.drawn)  # to the left and to the right
    rows = []
    for bar in block.rows[:MOST_BARS]:
        width = (50.0 if both else 100.0) * min(1.0, abs(bar.size) / largest)
        sign = "minus" if bar.size < 0.0 else "plus"
        left = (50.0 - width if bar.size < 0.0 else 50.0) if both else 0.0
        style = f"margin-left:{left:.1f}%;width:{width:.1f}%"
        drawn = f'<i class="{sign}" style="{style}"></i>' if bar.drawn else ""
        note = f' <small class="free">{escape(bar.note)}</small>' if bar.note else ""
        rows.append(
            f'<tr><th scope="row">{escape(bar.name)}{note}</th><td class="num">{escape(bar.text)}'
            f'</td><td class="size">{drawn}</td></tr>'
        )
    more = len(block.rows) - MOST_BARS
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


STYLE = """
:root{--ink:#1b2430;--soft:#5b6675;--line:#dde2e8;--paper:#fff;--wash:#f5f7f9;
--blue:#1f5fa8;--orange:#b8540c;--green:#1d7a4a;--red:#a82a2a;--known:#d7e4f2;
color-scheme:light dark}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e3e8ee;--soft:#9aa6b4;--line:#333c47;
--paper:#181d24;--wash:#0f1318;--blue:#7fb2ea;--orange:#e8955a;--green:#5fc48f;--red:#ef8080;
--known:#2a3c52}}
*{box-sizing:border-box}
body{margin:0;background:var(--wash);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:60rem;margin:2rem auto;padding:2.2rem 2.6rem;background:var(--paper);
border:1px solid var(--line);border-radius:6px}
h1{margin:.1rem 0 .6rem;font-size:1.9rem;line-height:1.2}
h2{margin:2.2rem 0 .6rem;font-size:1.05rem;letter-spacing:.01em}
summary{cursor:pointer}summary h2{display:inline}
.kind{margin:0;color:var(--soft);font-size:.85rem}
.claim{display:inline-block;padding-left:.7rem;border-left:.4rem solid var(--soft)}
.claim::first-letter{text-transform:uppercase}
.good{border-color:var(--green)}.fair{border-color:var(--blue)}.bad{border-color:var(--red)}
.lead{margin:.2rem 0;font-size:1.15rem}
.model{margin:.3rem 0 0;color:var(--soft);overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;font-size:.94rem}
th{font-weight:400;text-align:left;color:var(--soft);vertical-align:top}
td,th{padding:.32rem .5rem .32rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
tr:last-child>*{border-bottom:0}
.facts th{width:38%}
td{font-variant-numeric:tabular-nums}
.coefficients th{color:var(--ink);width:34%}
.num{text-align:right;padding-right:1rem;white-space:nowrap;width:1%}
.size i{display:block;height:.7rem;border-radius:2px;background:var(--blue);min-width:1px}
.size .minus{background:var(--orange)}
.free{color:var(--soft);margin-left:.4rem}
figure{margin:1.4rem 0 0}
figcaption{color:var(--soft);font-size:.85rem;margin-top:.35rem}
.bar{height:1.1rem;background:var(--known);border-radius:3px;overflow:hidden;
-webkit-print-color-adjust:exact;print-color-adjust:exact}
.bar .unknown{display:block;height:100%;background:var(--ink)}
.ends{display:flex;gap:2.2rem;margin-top:.35rem;font-size:.85rem;
color:var(--soft);font-variant-numeric:tabular-nums}
.ends b{color:var(--ink);font-size:1rem;font-weight:600}
.mid{margin-right:auto}.last{text-align:right}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(19rem,1fr));gap:0 2rem}
.charts figure{margin:.2rem 0 0;max-width:33rem}
svg{display:block;width:100%;height:auto}
svg .grid{stroke:var(--line);fill:none}svg .axis{stroke:var(--soft);fill:none}
svg .tick{font-size:12px;fill:var(--soft)}svg .name{font-size:13px;fill:var(--ink)}
svg .value,svg .bound{fill:none;stroke-width:2;stroke:var(--blue);stroke-linejoin:round}
svg .bound{stroke:var(--green)}
.assumptions{list-style:none;margin:0;padding:0}
.assumptions li{padding:.32rem 0 .32rem 9.6rem;position:relative;
border-bottom:1px solid var(--line)}
.assumptions li:last-child{border-bottom:0}
.assumptions b{position:absolute;left:0;font-weight:600;color:var(--green)}
.assumptions .trust b{color:var(--soft)}.assumptions .no b{color:var(--red)}
.again{color:var(--soft);font-size:.9rem}
code{font:.92em ui-monospace,Menlo,Consolas,monospace;background:var(--wash);padding:.05rem .25rem;
border-radius:3px;overflow-wrap:anywhere}
@media(max-width:40rem){main{margin:0;padding:1.2rem 1.1rem;border:0;border-radius:0}
h1{font-size:1.55rem}.facts th{width:42%}
.ends{gap:.9rem}.ends b{font-size:.85rem}.ends span{font-size:.8rem}
.assumptions li{padding-left:0}.assumptions b{position:static;display:block}
.charts{grid-template-columns:1fr}}
@page{margin:16mm}
@media print{body{background:#fff;font-size:10.5pt}main{border:0;margin:0;padding:0;max-width:none}
details::details-content{content-visibility:visible;block-size:auto}
section,figure,tr{break-inside:avoid}i{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
