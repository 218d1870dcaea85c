"""House rules a text search can see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("sparsemodel", "backends", "benchmarks", "docs", "examples", "tests", ".ci")
GENERATED = {"__pycache__", "_build", "generated", "gallery"}
SUFFIXES = {"", ".cff", ".css", ".html", ".ini", ".js", ".json", ".md", ".py", ".rst", ".toml"}


def text_files() -> Iterator[Path]:
    for path in ROOT.iterdir():
        if path.is_file() and path.suffix in SUFFIXES and path.name != ".git":  # a worktree's
            yield path
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in SUFFIXES and not GENERATED & set(path.parts):
                yield path


# Written so that a pattern does not match itself.
LOCAL_PATHS = re.compile(
    r"(?<![\w.])/(?:work|root|tmp|home|Users|opt)/\w|[.][.]/shared|[A-Z]:\\Users\\"
)


def test_nothing_names_a_path_of_somebodys_machine() -> None:
    named = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if LOCAL_PATHS.search(line)
    ]
    assert not named


def test_the_pattern_of_local_paths_finds_them() -> None:
    assert LOCAL_PATHS.search("open('" + "/".join(["", "home", "ada", "data.csv"]) + "')")
    assert LOCAL_PATHS.search("/".join(["..", "shared", "data"]))
    assert not LOCAL_PATHS.search("sparsemodel/home/page")


def test_the_source_roots_are_no_packages() -> None:
    for folder in ("backends", "tests"):
        assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.parametrize("package", ["sparsemodel", "backends/sparsemodel_backends"])
def test_packages_declare_their_types(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
