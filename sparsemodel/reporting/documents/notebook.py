"""A certificate as it is shown in a notebook; the whole report is in :mod:`.html`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsemodel import markup
from sparsemodel.reporting.documents import words

if TYPE_CHECKING:
    from sparsemodel.certificates.statements.certificate import Certificate

_MOST = 20


def certificate_panel(c: Certificate) -> str:
    """Return claim, numbers, coefficients and assumptions as a small HTML element."""
    rows = words.coefficient_rows(c)
    if c.x.ndim == 1:
        counted = sorted(c.support, key=lambda j: -abs(c.x[j]))
        shown = markup.bars(
            [(c.names[j], float(c.x[j])) for j in counted[:_MOST]],
            plain=[(c.names[j], float(c.x[j])) for j in c.names if j not in set(c.support)],
            more=len(counted) - _MOST,
        )
    else:
        shown = markup.table(("", "coefficients"), [(n, text) for n, _, text in rows[:_MOST]])
    return markup.panel(
        "Certificate",
        c.claim.value.capitalize(),
        markup.sentence(words.headline(c)),
        markup.facts([("problem", words.model(c)), *words.facts(c)]),
        markup.folded(f"Coefficients ({len(rows)})", shown if rows else ""),
        markup.folded(
            f"Assumptions ({len(c.assumptions)})",
            "".join(markup.sentence(str(a)) for a in c.assumptions),
        ),
        markup.folded("First-order facts", markup.facts(words.first_order(c))),
        markup.folded("Data", markup.facts(words.fingerprints(c))),
        markup.folded(words.ORIGIN, markup.facts(words.origin(c))),
    )


__all__ = ["certificate_panel"]
