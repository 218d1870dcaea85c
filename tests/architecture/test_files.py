"""House rules a text search can see."""

from __future__ import annotations

import ast
import re
from collections import Counter
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


def python_files() -> list[Path]:
    return [path for path in text_files() if path.suffix == ".py"]


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in python_files()
    }
    assert len(lengths) > 20, "the search looks in the wrong place"
    assert not {path: n for path, n in lengths.items() if n > 400}


def lengths_of_bodies(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every function with the lines of its body, docstring left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if body:
                yield node.name, (body[-1].end_lineno or 0) - body[0].lineno + 1


def test_no_body_of_a_function_is_longer_than_60_lines() -> None:
    long, seen = set(), 0
    for path in python_files():
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(("sparsemodel/", "backends/")):
            continue
        for function, lines in lengths_of_bodies(ast.parse(path.read_text(encoding="utf-8"))):
            seen += 1
            if lines > 60:
                long.add(f"{name.removeprefix('sparsemodel/')}:{function}")
    assert seen > 3000, "the search looks in the wrong place"
    assert long == set()


def test_a_body_is_counted_without_its_docstring() -> None:
    text = 'def f():\n    """One.\n\n    Two.\n    """\n    a = 1\n\n    return a\n'
    assert list(lengths_of_bodies(ast.parse(text))) == [("f", 3)]


def test_no_folder_of_the_package_has_more_than_twelve_entries() -> None:
    many = {}
    folders = [p for p in (ROOT / "sparsemodel").rglob("*") if p.is_dir()]
    for folder in (p for p in folders if p.name != "__pycache__"):
        entries = [path for path in folder.iterdir() if path.name != "__pycache__"]
        if len(entries) > 12 and folder.name not in ("sparsemodel", "data", "licenses"):
            many[str(folder.relative_to(ROOT))] = len(entries)
    assert not many


TAKEN_TWICE = {"formulation.py", "part.py"}
"""Each form has its ``formulation.py``, each way of bounding nodes its ``part.py``."""


def test_a_package_has_no_two_files_of_one_name() -> None:
    """Editors and tracebacks show the last part of a name alone."""
    twice = set()
    packages = [path for path in (ROOT / "sparsemodel").iterdir() if path.is_dir()]
    assert len(packages) > 10, "the search looks in the wrong place"
    for package in packages:
        names = Counter(p.name for p in package.rglob("*.py") if not p.name.startswith("__"))
        twice |= {name for name, times in names.items() if times > 1}
    assert twice == TAKEN_TWICE


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
