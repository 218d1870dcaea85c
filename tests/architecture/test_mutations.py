"""The list of mutations fits the code, so that running it means something."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("run", ROOT / "tests/mutations/run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["run"] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules["run"]


def test_every_mutation_changes_one_place_and_names_tests_that_are_there(runner) -> None:
    found = runner.mutations()
    assert sum(not mutation.equivalent for mutation in found) >= 60
    assert len({str(mutation) for mutation in found}) == len(found)
    for mutation in found:
        text = (ROOT / mutation.file).read_text(encoding="utf-8")
        compile(mutation.applied(text), mutation.file, "exec")
        assert mutation.old != mutation.new
        for test in mutation.tests:
            file, _, name = test.partition("::")
            assert (ROOT / file).is_file(), test
            assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8"), test


def test_a_line_that_is_gone_or_there_twice_is_an_error(runner) -> None:
    mutation = runner.Mutation("file.py", "a < b", "a <= b", ())
    assert mutation.applied("if a < b:") == "if a <= b:"
    for text in ("if a > b:", "a < b and a < b"):
        with pytest.raises(ValueError, match="not once"):
            mutation.applied(text)
