"""Every code example in docstrings, the README and the documentation runs as written."""

from __future__ import annotations

import doctest
import importlib
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "_scripts" / "page_outputs.py"))
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    if not {"_build", "generated"} & set(path.parts)
)


def test_docstring_examples(
    module_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(module_name)
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(module, optionflags=flags).failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_page_examples(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is one session, from top to bottom; files it writes land in an empty folder.

    Where a page shows what its code prints, that is what is printed.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", SCRIPT["COLUMNS"])
    monkeypatch.setitem(sys.modules, "session", None)  # put back at the end
    for shown in SCRIPT["outputs"](ROOT / page):
        assert not SCRIPT["differ"](shown.said, shown.printed), (
            f"line {(ROOT / page).read_text(encoding='utf-8')[: shown.start].count(chr(10)) + 1}: "
            + SCRIPT["differ"](shown.said, shown.printed)
        )


def test_every_loss_function_has_a_row_in_the_table() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "_scripts" / "list_losses.py"))
    of_several_terms = {"custom_loss", "ordinal_loss"}
    rows = {
        line.split("`")[1].removeprefix("~sparsemodel.")
        for line in script["table"]().splitlines()
        if line.startswith("| {py:func}")
    }
    assert rows == set(script["loss_functions"]()) - of_several_terms


def test_the_table_of_literal_modes_is_that_of_the_backends() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "_scripts" / "list_literal_modes.py"))
    assert script["PAGE"].read_text(encoding="utf-8") == script["table"]()


@pytest.mark.parametrize(
    ("said", "printed", "agree"),
    [
        ("gap 1.98 %\n", "gap 1.9801 %\n", True),
        ("gap 1.98 %\n", "gap 2.1 %\n", False),
        ("gap 1.98 %\n", "a gap of 1.98 %\n", False),
        ("one\n", "one\ntwo 2\n", False),
        ("in 0.2 s, 17 iterations\n", "in 31 s, 5 iterations\n", True),
        ("gap 1e-12\n", "gap 0\n", True),
        ("  lower bound  0 (gap 1); problem.certify() may\n", "", True),
        ("  lower bound  0.1 (dual bound)\n", "  lower bound  0.2 (dual bound)\n", False),
    ],
)
def test_outputs_on_pages_are_compared(said: str, printed: str, agree: bool) -> None:
    assert (SCRIPT["differ"](said, printed) == "") is agree
