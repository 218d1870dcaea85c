"""A certificate as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsemodel.markup import visible
from sparsemodel.reporting.documents import words

if TYPE_CHECKING:
    from sparsemodel.certificates.statements.certificate import Certificate


def certificate_markdown(certificate: Certificate) -> str:
    """Return the report as GitHub-flavoured Markdown."""
    c = certificate
    lines = [
        f"# Certificate: {c.claim.value}",
        "",
        cell(words.headline(c)),
        "",
        f"*Problem:* {cell(words.model(c))}",
        "",
        "## Numbers",
        "",
        *table(("quantity", "value"), words.facts(c)),
    ]
    lines += ["", "## First-order facts", "", *table(("quantity", "value"), words.first_order(c))]
    lines += ["", "## What it rests on", ""]
    lines += [f"- {cell(str(assumption))}" for assumption in c.assumptions]
    rows = [(name, text) for name, _, text in words.coefficient_rows(c)]
    lines += ["", "## Coefficients", "", *table(("name", "value"), rows)]
    lines += ["", "## Data", "", *table(("what", "value"), words.fingerprints(c))]
    lines += ["", f"## {words.ORIGIN}", "", *table(("what", "value"), words.origin(c))]
    return "\n".join(lines) + "\n"


def table(head: tuple[str, str], rows: list[tuple[str, str]]) -> list[str]:
    """Return the lines of a table of two columns."""
    lines = [f"| {head[0]} | {head[1]} |", "| --- | --- |"]
    return lines + [f"| {cell(name)} | {cell(value)} |" for name, value in rows]


def cell(text: str) -> str:
    """Return a text without anything that Markdown would understand."""
    text = visible(" ".join(text.split()))
    for mark in "\\`*_[]<>|~$&#!":
        text = text.replace(mark, "\\" + mark)
    return text


__all__ = ["cell", "certificate_markdown", "table"]
