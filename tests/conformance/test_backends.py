"""The shipped suite on every backend that is discovered, third parties' included.

One line for each backend is printed at the end of the run: what was executed, what the backend
refused, and what is expected to fail. Refusals are no successes: every backend has a floor of
checks that must have been executed.
"""

from __future__ import annotations

import pytest

from sparsemodel.interfaces import SparseRegression
from sparsemodel.registry import available_backends, usable_backends
from sparsemodel.testing.backends import run_backend_suite

BACKENDS = {cls.name: cls for _, cls in usable_backends()}

FLOOR = 190
"""Executed checks of a backend that takes every smooth regression."""

GRAPH_FLOOR = 90
"""Executed checks of a backend for precision matrices."""

FLOORS: dict[str, int] = {"diht": 130, "newton_swaps": 175, "sdiht": 130, "segments": 37}
"""Fewer for the backends that are made for fewer problems."""

OPTIONS: dict[str, dict[str, object]] = {
    "arht": {"repeats": 1, "patience": 1, "tol": 0.5},
    "diht": {"max_iter": 60},
    "pgd": {"max_iter": 30},
    "sdiht": {"max_iter": 40},
}
"""Options that make a thorough method quick; the defaults are run among the slow tests."""

SETTINGS: dict[str, dict[str, float]] = {}
"""Accuracies of backends that promise less than the suite asks by default."""

EXPECTED: dict[str, dict[str, str]] = {}
"""Known shortcomings by check, with the reason; strict."""


def test_all_backends_are_usable():
    broken = [f"{info.name}: {info.problem}" for info in available_backends() if info.problem]
    assert not broken
    assert {"exhaustive", "grahtp", "iht", "nhtp"} <= set(BACKENDS)


def _check(name, backend, counted):
    report = counted(
        run_backend_suite(backend, expected_failures=EXPECTED.get(name), **SETTINGS.get(name, {}))
    )
    regression = SparseRegression in backend.capabilities.forms
    floor = FLOORS.get(name, FLOOR) if regression else GRAPH_FLOOR
    assert report.ok, str(report)
    assert report.executed >= floor, f"{report.summary()}; the floor is {floor}"


@pytest.mark.timeout(600)  # some two hundred checks, on machines that may be busy
@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_backend(name, counted):
    _check(name, BACKENDS[name](**OPTIONS.get(name, {})), counted)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_backend_with_its_defaults(name, counted):
    _check(name, BACKENDS[name](), counted)
