"""The distribution: one version, entry points that exist, what the wheel is told to hold."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import pkgutil
import re
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import sparsemodel
import sparsemodel_backends
from sparsemodel.interfaces import Backend

ROOT = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OPTIONAL = ("distributed", "formulas", "parquet", "plot", "sklearn")
DECLARED: dict[str, str] = PYPROJECT["project"]["entry-points"]["sparsemodel.backends"]


def load(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def test_entry_points_are_sorted_one_a_line() -> None:
    assert list(DECLARED) == sorted(DECLARED)


def test_installed_entry_points_are_the_declared_ones() -> None:
    installed = {
        entry.name: entry.value
        for entry in importlib.metadata.entry_points(group="sparsemodel.backends")
        if entry.value.startswith("sparsemodel_backends.")
    }
    assert installed == DECLARED, "install the package again: its entry points have changed"


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_entry_point_is_a_backend(name: str) -> None:
    backend = load(DECLARED[name])
    assert issubclass(backend, Backend)
    assert not inspect.isabstract(backend)
    assert is_dataclass(backend)
    assert backend.__dataclass_params__.frozen
    made = backend()
    assert all(hasattr(made, option.name) for option in fields(made))
    assert backend.reference
    assert backend.guarantee


def test_every_backend_has_an_entry_point_under_its_own_name() -> None:
    written = set()
    prefix = sparsemodel_backends.__name__ + "."
    for found in pkgutil.walk_packages(sparsemodel_backends.__path__, prefix):
        module = importlib.import_module(found.name)
        written |= {
            value
            for value in vars(module).values()
            if inspect.isclass(value)
            and issubclass(value, Backend)
            and not inspect.isabstract(value)
            and value.__module__ == found.name
        }
    assert written == {load(target) for target in DECLARED.values()}
    assert {backend.name for backend in written} <= set(DECLARED)


def test_version_is_the_same_everywhere() -> None:
    version = sparsemodel.__version__
    assert importlib.metadata.version("sparsemodel") == version
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(version)}\b", changes, flags=re.MULTILINE)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(version)}$", citation, flags=re.MULTILINE)


def test_the_console_script_exists() -> None:
    assert callable(load(PYPROJECT["project"]["scripts"]["sparsemodel"]))


def test_the_test_extra_holds_what_the_optional_parts_need() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    wanted = {requirement for name in OPTIONAL for requirement in extras[name]}
    held = set(extras["test"])
    for requirement in extras["test"]:
        if nested := re.fullmatch(r"sparsemodel\[(.+)\]", requirement):
            held |= {inner for name in nested[1].split(",") for inner in extras[name]}
    assert wanted <= held
