"""A certificate as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsemodel.reporting.documents import words

if TYPE_CHECKING:
    from sparsemodel.certificates.statements.certificate import Certificate

_SHOWN = 30


def certificate_text(certificate: Certificate) -> str:
    """Return the report that ``print`` shows."""
    c = certificate
    lines = [f"{c.claim.value.upper()}. {words.headline(c)}", "", f"problem: {words.model(c)}", ""]
    lines += _table(words.facts(c))
    lines += ["", *_table(words.first_order(c))]
    lines += ["", "assumptions"]
    lines += [f"  - {assumption}" for assumption in c.assumptions]
    rows = words.coefficient_rows(c)
    lines += ["", f"coefficients ({len(rows)})"]
    width = max((len(name) for name, _, _ in rows[:_SHOWN]), default=0)
    lines += [f"  {name:<{width}}  {text:>12}" for name, _, text in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        lines.append(f"  ... and {len(rows) - _SHOWN} more")
    lines += ["", "data", *_table(words.fingerprints(c))]
    lines += ["", words.ORIGIN[0].lower() + words.ORIGIN[1:], *_table(words.origin(c))]
    return "\n".join(lines) + "\n"


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in rows]


__all__ = ["certificate_text"]
