"""Every example runs as it stands, without a display, and stays short."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
QUICK = {"from_cvxpy.py", "robust_regression.py"}


def run(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", os.fspath(example)],
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("name", sorted(QUICK))
def test_quick_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = next(path for path in EXAMPLES if path.name == name)
    runpy.run_path(os.fspath(path), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", [p for p in EXAMPLES if p.name not in QUICK], ids=lambda p: p.name
)
def test_examples(example: Path) -> None:
    run(example)


def test_there_are_enough_and_they_are_short() -> None:
    assert len(EXAMPLES) >= 15
    assert all(len(path.read_text(encoding="utf-8").splitlines()) < 60 for path in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_gallery_can_show_it(example: Path) -> None:
    """Its docstring begins with a heading, and it does not ask where its file is."""
    text = example.read_text(encoding="utf-8")
    title, underline = text.removeprefix('"""').splitlines()[:2]
    assert underline == "=" * len(title)
    assert "__file__" not in text, "the gallery runs examples without it; take sys.argv[0]"
