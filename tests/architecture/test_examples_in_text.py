"""Every code example in docstrings, the README and the documentation runs as written."""

from __future__ import annotations

import doctest
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).parents[2]
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
    """A page is one session, from top to bottom; files it writes land in an empty folder."""
    monkeypatch.chdir(tmp_path)
    sybil = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()], path=os.fspath(ROOT))
    document = sybil.parse(ROOT / page)
    session = ModuleType("session")  # a module, so that classes defined on the page can be pickled
    monkeypatch.setitem(sys.modules, "session", session)
    document.namespace = vars(session)
    for example in document.examples():
        example.evaluate()
