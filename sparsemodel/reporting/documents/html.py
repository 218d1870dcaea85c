"""A certificate as one HTML file: styles and pictures inside, no scripts, no network."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from sparsemodel.reporting.documents import words
from sparsemodel.reporting.documents.picture import Series, line_chart
from sparsemodel.reporting.documents.style import STYLE

if TYPE_CHECKING:
    from sparsemodel.certificates.statements.certificate import Certificate
    from sparsemodel.certificates.statements.claims import Assumption

_MARKS = {
    "globally optimal": "good",
    "zero up to rounding": "good",
    "within gap": "fair",
    "stationary": "plain",
    "none": "bad",
}


def certificate_html(certificate: Certificate) -> str:
    """Return the report as a self-contained page for screen, phone and paper."""
    c = certificate
    body = [
        _header(c),
        _gap_bar(c),
        section("Numbers", fact_table(words.facts(c))),
        section("Coefficients", _coefficients(c)),
        section("What it rests on", assumption_list(c.assumptions)),
        section("First-order facts", fact_table(words.first_order(c))),
        section("Data", fact_table(words.fingerprints(c)) + _again()),
        section(words.ORIGIN, fact_table(words.origin(c)) + _pictures(c)),
    ]
    return page(f"{c.claim.value}: {words.model(c)}", body)


def page(title: str, body: list[str]) -> str:
    """Return a self-contained page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _header(c: Certificate) -> str:
    kind = "Certificate of a sparse optimisation problem"
    return header(kind, c.claim.value, words.headline(c), words.model(c))


def header(kind: str, claim: str, lead: str, model: str) -> str:
    """Return the head of a report: what it is, the claim, a sentence on it, the problem."""
    return (
        f'<header><p class="kind">{escape(kind)}</p>'
        f'<h1><span class="claim {_MARKS[claim]}">{escape(claim)}</span></h1>'
        f'<p class="lead">{escape(lead)}</p>'
        f'<p class="model">{escape(model)}</p></header>'
    )


def section(title: str, content: str) -> str:
    """Return a titled section, nothing without content."""
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def fact_table(rows: list[tuple[str, str]]) -> str:
    """Return rows of names and values as a table."""
    cells = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table class="facts">{cells}</table>'


def _gap_bar(c: Certificate) -> str:
    """A line from the bound to the objective at zero, with the objective on it."""
    if not (math.isfinite(c.bound) and c.null_value > c.bound):
        return ""
    share = min(1.0, max(0.0, c.gap / (c.null_value - c.bound)))
    value, bound = words.side_by_side(c.value, c.bound)
    null = words.number(c.null_value)
    unknown = max(share * 100.0, 0.4)
    return (
        '<figure class="gap"><div class="bar" role="img" '
        f'aria-label="the gap is {words.percent(share)} of the range from the bound to the '
        f'objective at zero"><i class="unknown" style="width:{unknown:.3f}%"></i></div>'
        f'<div class="ends"><span><b>{escape(bound)}</b><br>lower bound D</span>'
        f'<span class="mid"><b>{escape(value)}</b><br>objective P</span>'
        f'<span class="last"><b>{escape(null)}</b><br>objective at zero</span>'
        f"</div><figcaption>The filled part is what is not settled: {words.percent(share)} of what "
        "the coefficients could explain. Nothing feasible lies to the left of D.</figcaption>"
        "</figure>"
    )


def _pictures(c: Certificate) -> str:
    solver = [p for p in c.progress if p.phase not in ("bound", "proof")]
    later = [p for p in c.progress if p.phase in ("bound", "proof")]
    floor = c.bound if math.isfinite(c.bound) else min((p.value for p in solver), default=0.0)
    name = "objective - D" if math.isfinite(c.bound) else "objective - final objective"
    charts = []
    if solver:
        charts.append(
            (
                line_chart(
                    [
                        Series(
                            "objective",
                            [float(i + 1) for i in range(len(solver))],
                            [p.value - floor for p in solver],
                            "value",
                        )
                    ],
                    title="objective above the bound, by iteration",
                    x_label="iteration",
                    y_label=name,
                    log=True,
                ),
                f"Distance of the objective from the bound in each iteration of {c.backend}.",
            )
        )
    if later:
        scale = max(abs(c.upper), abs(c.bound), 1e-300)
        charts.append(
            (
                line_chart(
                    [
                        Series(
                            "relative gap",
                            [p.seconds for p in later],
                            [100.0 * max(p.value - p.bound, 0.0) / scale for p in later],
                            "bound",
                            steps=True,
                        )
                    ],
                    title="relative gap against time",
                    x_label="seconds",
                    y_label="relative gap in %",
                    log=True,
                ),
                "The relative gap while the bound was raised.",
            )
        )
    drawn = [
        f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"
        for svg, caption in charts
        if svg
    ]
    return f'<div class="charts">{"".join(drawn)}</div>' if drawn else ""


def _coefficients(c: Certificate) -> str:
    rows = words.coefficient_rows(c)
    if not rows:
        return "<p>All coefficients are zero.</p>"
    chosen = {c.names[j] for j in c.support}
    largest = max((size for name, size, _ in rows if name in chosen), default=0.0) or 1.0
    out = []
    for name, size, text in rows:
        sign = "minus" if text.startswith("-") and c.x.ndim == 1 else "plus"
        width = 100.0 * min(1.0, size / largest)
        bar = f'<i class="{sign}" style="width:{width:.1f}%"></i>' if name in chosen else ""
        note = "" if name in chosen else ' <small class="free">always in</small>'
        out.append(
            f'<tr><th scope="row">{escape(name)}{note}</th><td class="num">{escape(text)}</td>'
            f'<td class="size">{bar}</td></tr>'
        )
    return f'<table class="coefficients">{"".join(out)}</table>'


def assumption_list(assumptions: Iterable[Assumption]) -> str:
    """Return assumptions as a list, each with whether it was checked."""
    items = []
    for a in assumptions:
        kind, word = (
            ("trust", "taken on trust")
            if not a.checked
            else ("yes", "checked")
            if a.holds
            else ("no", "fails")
        )
        items.append(f'<li class="{kind}"><b>{word}</b> {escape(a.text)}</li>')
    return f'<ul class="assumptions">{"".join(items)}</ul>'


def _again() -> str:
    return (
        '<p class="again">To check every number again from your own data, save the certificate as '
        "<code>certificate.json</code> and run <code>sparsemodel verify certificate.json --data "
        "DATA</code>.</p>"
    )


__all__ = ["assumption_list", "certificate_html", "fact_table", "header", "page", "section"]
