"""The certificate of a precision matrix for people: text, Markdown, HTML, notebook."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from sparsemodel import markup
from sparsemodel.reporting.documents.html import assumption_list, fact_table, header, page, section
from sparsemodel.reporting.documents.markdown import cell, table
from sparsemodel.reporting.documents.words import ORIGIN, number, percent, side_by_side

if TYPE_CHECKING:
    from sparsemodel.certificates.precision_matrices.certificate_of_precision import (
        PrecisionCertificate,
    )

_SHOWN = 30
_MOST = 200

_SENTENCES = {
    "globally optimal": "No matrix with as many edges has a higher likelihood.",
    "within gap": "No matrix with as many edges has a likelihood that is higher by more than "
    "{nats} nats per sample.",
    "stationary": "The matrix is the best one with these edges. No matrix with as many edges is "
    "better by more than {nats} nats per sample.",
    "none": "Nothing is proved about this matrix but the bound below.",
}


def headline(c: PrecisionCertificate) -> str:
    """Return the claim in a sentence."""
    if c.claim.value == "stationary" and not math.isfinite(c.bound):
        return "The matrix is the best one with these edges; no bound on others is known."
    if c.claim.value == "none" and not math.isfinite(c.bound):
        return "Nothing is proved about this matrix."
    return _SENTENCES[c.claim.value].format(nats=number(c.nats_per_sample, 3))


def model(c: PrecisionCertificate) -> str:
    """Return the problem in a line."""
    p = c.problem
    parts = [
        f"Gaussian likelihood of a precision matrix of {p.order} variables",
        f"at most {p.k} of {p.units} edges",
    ]
    if p.required:
        parts.append(f"{p.required} more required")
    forbidden = p.order * (p.order - 1) // 2 - p.units - p.required
    if forbidden:
        parts.append(f"{forbidden} forbidden")
    parts.append(f"eigenvalues in [{number(p.alpha, 4)}, {number(p.beta, 4)}]")
    if p.samples is not None:
        parts.append(f"{p.samples} samples")
    return ", ".join(parts)


def facts(c: PrecisionCertificate) -> list[tuple[str, str]]:
    """Return the numbers as rows."""
    value, bound = side_by_side(c.value, c.bound)
    rows = [
        ("objective P", value),
        ("lower bound D", bound if math.isfinite(c.bound) else "none"),
    ]
    if math.isfinite(c.gap):
        rows += [
            ("gap P - D", f"{number(c.gap, 3)}, {number(c.nats_per_sample, 3)} nats per sample"),
            (
                "gap without sparsity",
                f"{number(0.5 * c.trivial_gap / c.weight, 3)} nats per sample, for any method",
            ),
            ("open", f"{percent(c.open_share)} of what edges can explain at most"),
        ]
    rows += [
        ("objective without edges", number(c.null_value, 8)),
        ("on this support", f"within {number(0.5 * c.restricted_gap / c.weight, 3)} nats"),
        ("bound from", c.method),
    ]
    rows += [("active", text) for text in c.active]
    return rows


def edge_rows(c: PrecisionCertificate) -> list[tuple[str, float]]:
    """Return the edges with their partial correlations, strongest first."""
    rows = [
        (f"{one} -- {other}", r)
        for (one, other), r in zip(c.edge_names(), c.correlations, strict=True)
    ]
    return sorted(rows, key=lambda row: (-abs(row[1]), row[0]))


def provenance(c: PrecisionCertificate) -> list[tuple[str, str]]:
    """Return what the writer of the certificate says of itself."""
    rows = [("found by", c.backend)] if c.backend else []
    rows.append(("gap asked for", f"{percent(c.target)} of what edges can explain at most"))
    rows.append(("certified", f"{c.created}, {number(c.seconds, 2)} s"))
    rows.append(("versions", ", ".join(f"{k} {v}" for k, v in c.versions.items())))
    return rows


def precision_text(c: PrecisionCertificate) -> str:
    """Return the report that ``print`` shows."""
    lines = [f"{c.claim.value.upper()}. {headline(c)}", "", f"problem: {model(c)}", ""]
    lines += _lines(facts(c))
    lines += ["", "assumptions"]
    lines += [f"  - {assumption}" for assumption in c.assumptions]
    rows = edge_rows(c)
    lines += ["", f"partial correlations ({len(rows)} edges)"]
    lines += _lines([(name, f"{r:+.3f}") for name, r in rows[:_SHOWN]])
    if len(rows) > _SHOWN:
        lines.append(f"  ... and {len(rows) - _SHOWN} weaker ones")
    return "\n".join([*lines, "", ORIGIN[0].lower() + ORIGIN[1:], *_lines(provenance(c))]) + "\n"


def precision_markdown(c: PrecisionCertificate) -> str:
    """Return the report as GitHub-flavoured Markdown."""
    rows = edge_rows(c)
    lines = [
        f"# Certificate: {c.claim.value}",
        "",
        cell(headline(c)),
        "",
        f"*Problem:* {cell(model(c))}",
        "",
        "## Numbers",
        "",
        *table(("quantity", "value"), facts(c)),
        "",
        "## What it rests on",
        "",
        *(f"- {cell(str(assumption))}" for assumption in c.assumptions),
        "",
        f"## Partial correlations ({len(rows)} edges)",
        "",
        *table(("edge", "value"), [(name, f"{r:+.4f}") for name, r in rows[:_MOST]]),
    ]
    if len(rows) > _MOST:
        lines += ["", f"and {len(rows) - _MOST} weaker ones."]
    lines += ["", f"## {ORIGIN}", "", *table(("what", "value"), provenance(c))]
    return "\n".join(lines) + "\n"


def precision_html(c: PrecisionCertificate) -> str:
    """Return the report as a self-contained page for screen, phone and paper."""
    kind = "Certificate of a sparse precision matrix"
    body = [
        header(kind, c.claim.value, headline(c), model(c)),
        section("Numbers", fact_table(facts(c))),
        section(f"Partial correlations ({c.edges} edges)", _edges(c)),
        section("What it rests on", assumption_list(c.assumptions)),
        section(ORIGIN, fact_table(provenance(c)) + _AGAIN),
    ]
    return page(f"{c.claim.value}: {model(c)}", body)


def precision_panel(c: PrecisionCertificate) -> str:
    """Return claim, numbers and edges as a small HTML element for notebooks."""
    rows = edge_rows(c)
    return markup.panel(
        "Certificate",
        c.claim.value.capitalize(),
        markup.sentence(headline(c)),
        markup.facts([("problem", model(c)), *facts(c)]),
        markup.folded(
            f"Partial correlations ({len(rows)})",
            markup.bars(rows[:_SHOWN], more=len(rows) - _SHOWN) if rows else "",
        ),
        markup.folded(
            f"Assumptions ({len(c.assumptions)})",
            "".join(markup.sentence(str(a)) for a in c.assumptions),
        ),
        markup.folded(ORIGIN, markup.facts(provenance(c))),
    )


_AGAIN = (
    '<p class="again">To check every number again from your own data, save the certificate as '
    "<code>certificate.json</code>, declare the problem again and call "
    '<code>verify("certificate.json", problem.form)</code>.</p>'
)


def _edges(c: PrecisionCertificate) -> str:
    rows = edge_rows(c)
    if not rows:
        return "<p>There are no edges.</p>"
    out = []
    for name, r in rows[:_MOST]:
        sign = "minus" if r < 0.0 else "plus"
        out.append(
            f'<tr><th scope="row">{escape(name)}</th><td class="num">{r:+.4f}</td>'
            f'<td class="size"><i class="{sign}" style="width:{100.0 * abs(r):.1f}%"></i></td></tr>'
        )
    more = f"<p>and {len(rows) - _MOST} weaker ones.</p>" if len(rows) > _MOST else ""
    return f'<table class="coefficients">{"".join(out)}</table>{more}'


def _lines(rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in rows]


__all__ = ["precision_html", "precision_markdown", "precision_panel", "precision_text"]
