"""Tests with a ``module_name`` run once for every module of both packages."""

from __future__ import annotations

import pkgutil
from functools import cache

import pytest

import sparsemodel
import sparsemodel_backends


@cache
def every_module() -> list[str]:
    names = []
    for package in (sparsemodel, sparsemodel_backends):
        names.append(package.__name__)
        walk = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        names += [found.name for found in walk if not found.name.endswith("__main__")]
    return sorted(names)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "module_name" in metafunc.fixturenames:
        metafunc.parametrize("module_name", every_module())
