"""Words that must not return; docs/vocabulary.md has the field's terms in their places."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Written so that the pattern does not match itself.
GONE = re.compile(
    r"retel[l]|\bhear[ds]\b|heard_|\bsummi[t]\b|climb_for[m]|\bwor[n]\b|worthles[s]"
    r"|brought hom[e]|led astra[y]|Kinke[d]|\bat_sigh[t]\(|\bstandin[g]\b"
    r"|\bdea[r]\b|\b_?twin\(|\.partne[r]\b|\bunaske[d], nothing|\.settl[e]d?\b"
    r"|\b_?lea[p]s?(?!s?(::| and bounds))\b|stand[-_]in[s]?\b|likenes[s]|\bsurvey\("
    r"|\b_?worl[d]\.|in_passin[g]",
    re.IGNORECASE,
)


def test_old_words_do_not_return() -> None:
    found, read = [], 0
    for folder in ("sparsemodel", "backends", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix not in (".py", ".md") or "_build" in path.parts or "adr" in path.parts:
                continue
            if name == "docs/vocabulary.md":
                continue
            read += 1
            found += [
                f"{name}:{number}: {line.strip()}"
                for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
                if GONE.search(line)
            ]
    assert read > 400, "the search looks in the wrong place"
    assert not found


def test_the_pattern_finds_old_words() -> None:
    for line in (
        "class Retelling:",
        "what it heard",
        "where that is dear",
        "x.partner is None",
        "class KinkedTerm:",
        "now: Standing",
        "best = self.leap()",
        "variables that are stand-ins",
        "seen = survey(form, x)",
    ):
        assert GONE.search(line), line
    assert not GONE.search("idea, clear, sworn, leukaemia patients")
