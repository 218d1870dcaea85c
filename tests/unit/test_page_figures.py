"""Pages about experiments: what was measured stands in tables that programs write, not in prose.

A figure typed by hand is right on the day it is typed. So that none comes back, every number of the
prose has to be a definition (a size, a number of trials), a reference, or one of the paper's; these
are listed below, each with words around it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"

REFERENCES = re.compile(
    r"""(?:Figures?|Tables?|Theorems?|Corollar(?:y|ies)|Propositions?|sections?|footnote|JMLR|ADR)\s
        \d+(?:\.\d+)*(?:\s(?:to|and|,)\s\d+(?:\.\d+)*)*
      | \b(?:19|20)\d\d\b
      | \b(?:News20|news20|rcv1|RCV1)\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""Of figures, tables, theorems and years."""
APART = re.compile(
    r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)|\$\$.*?\$\$|\$[^$]*\$", re.MULTILINE | re.DOTALL
)
"""Code, included tables, targets of links, formulae."""

ALLOWED: dict[str, tuple[str, ...]] = {
    "explanation/papers.md": (
        # the problems, as the programs have them
        "256 unknowns, no noise",
        "with 50 to 150 trials a point in place of 500",
        "with what 17 minutes of one process at low",
        "Gaussian signals with 22 nonzeros, beside the paper's 90 %",
        "where (27) has no length",
        "3 to 30 a point, as the table says. The paper has 100",
        "200 samples, 28 trials",
        "and 8 trials it is",
        "With six, 95 and 99 % are the same event",
        "our fits of 99 % are not",
        "go on to 5000 stages, and to 50,000",
        "Algorithm 4 of ARHT",
        "for the hinge loss is 1 in",
        "modified ADMM (Algorithm 2)",
        "500 features, 50 of them in the model",
        "the 50 largest entries",
        "we take N(5, 1) with random signs",
        "100 samples, a tenth of the possible edges",
        "the 113 most significant probes",
        "47 samples to train, 10 to test",
        "LGm4 or LGm5: 112 to train, 250 to test",
        "(2018): 256 unknowns",
        "keep 9 K entries",
        "after 400 stages here and after 10,000 there",
        "100 measurements, four nonzeros",
        "k = 36, m = 300 and a step of 0.3 but for one",
        "a step of 3 diverges",
        "400 images per digit",
        "n - 2",
        "226 549 term weights, 1000 of them",
        "the time to 1 % of the objective",
        "as with 5 % of the features",
        # the papers' own
        "1e-7 for NIHT and 1e-5 to 1e-4 for SP and CoSaMP",
        "miss the support with 5 %",
        "IIHT as best at s = 10",
        "near 1e-6",
        "between 0.65 and 1. With",
        "fewer than 95 % do",
        "about 6000",
        "0.08 and 0.24, and 0.074 and 0.23,",
    ),
    "explanation/duality.md": ("20 draws (30 features) and of 5 draws (500 features)",),
}
"""Definitions, and numbers of the papers, as they stand on the pages."""


def figures(text: str, allowed: tuple[str, ...]) -> list[str]:
    """Return the numbers of a page's prose that are none of the allowed, each with its line."""
    prose = APART.sub(" ", text)
    prose = " ".join(prose.split())
    for words in allowed:
        prose = prose.replace(words, " ")
    prose = REFERENCES.sub(" ", prose)
    found = re.finditer(r"\d[\d.,]*(?:e-?\d+)?", prose)
    return [prose[max(0, m.start() - 30) : m.end() + 30] for m in found]


@pytest.mark.parametrize("page", ALLOWED)
def test_no_figure_is_typed_by_hand(page: str) -> None:
    assert figures((DOCS / page).read_text(encoding="utf-8"), ALLOWED[page]) == []


@pytest.mark.parametrize("page", ALLOWED)
def test_what_is_allowed_is_there(page: str) -> None:
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    assert [words for words in ALLOWED[page] if words not in text] == []


def test_a_figure_is_found() -> None:
    text = "Table 3 of 256 unknowns: NHTP finds 92 % (2021).\n\n```\n17\n```\n[it](12.md) takes `5`"
    found = figures(text, ("256 unknowns",))
    assert len(found) == 1
    assert "92" in found[0]
