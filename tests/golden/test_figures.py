"""The figures of the benchmarks can be computed and printed."""

from __future__ import annotations

import pytest

from benchmarks.algorithms.__main__ import table
from benchmarks.algorithms.figures import FIGURES


def test_a_figure_is_printed_as_a_table():
    lines = FIGURES["swaps"](True)
    # Half a pass for prices (of few columns less) and half to carry it out (or one, after those).
    assert all(0.5 < line["counted passes a swap"] <= 1.025 for line in lines)
    text = table(lines).splitlines()
    assert len(text) == 2 + len(lines)
    assert text[0].startswith("| k | swaps |")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FIGURES))
def test_every_figure_has_lines(name):
    lines = FIGURES[name](True)
    assert lines
    assert all(list(line) == list(lines[0]) for line in lines)
