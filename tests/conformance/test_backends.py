"""The shipped suite on every backend that is discovered, third parties' included.

One line for each backend is printed at the end of the run: what was executed, what the backend
refused, and what is expected to fail. Refusals are no successes: every backend has a floor of
checks that must have been executed.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from sparsemodel.interfaces import SparseRegression
from sparsemodel.registry import available_backends, usable_backends
from sparsemodel.testing.backends import backend_checks
from sparsemodel.testing.report import run_checks

BACKENDS = {cls.name: cls for _, cls in usable_backends()}

LITERAL = Path(__file__).parents[1] / "literal"
"""Tests that compare literal modes with the papers' pseudo-code."""

FLOOR = 190
"""Executed checks of a backend that takes every smooth regression."""

GRAPH_FLOOR = 90
"""Executed checks of a backend for precision matrices."""

FLOORS: dict[str, int] = {"diht": 130, "milp": 90, "sdiht": 130, "segments": 37}
"""Fewer for the backends that are made for fewer problems."""

OPTIONS: dict[str, dict[str, object]] = {
    "arht": {"repeats": 1, "patience": 1, "tol": 0.5},
    "diht": {"max_iter": 60},
    "pgd": {"max_iter": 30},
    "sdiht": {"max_iter": 40},
}
"""Options that make a thorough method quick; the defaults are run among the slow tests."""

STEPS = {"feasible_for_every_k": 2, "objects_for_free": 1}
"""Laws that a backend is held to on more instances than each fourth, degenerate ones among them."""

SETTINGS: dict[str, dict[str, float]] = {}
"""Accuracies of backends that promise less than the suite asks by default."""

EXPECTED: dict[str, dict[str, str]] = {}
"""Known shortcomings by check, with the reason; strict."""


def test_all_backends_are_usable():
    broken = [f"{info.name}: {info.problem}" for info in available_backends() if info.problem]
    assert not broken
    assert {"exhaustive", "grahtp", "iht", "nhtp"} <= set(BACKENDS)


def test_every_backend_has_a_literal_mode_or_says_why_not():
    literal = "".join(path.read_text() for path in LITERAL.glob("*.py"))
    for cls in BACKENDS.values():
        kind = "Literal mode" if cls.published is not None else "No literal mode:"
        assert kind in cls.__doc__, cls
        if cls.published is not None:
            cls.as_published()
            assert f"{cls.__name__}.as_published(" in literal, f"{cls} is compared with no paper"


def _quarter(checks, number):
    """Yield the checks of every day: each law on a quarter of its instances, or on half of them.

    A law is the same code for all instances and all backends, so that pairs are enough: each
    backend meets each law, each instance of a law a quarter of the backends, and a quarter that
    begins elsewhere for each law leads each backend to the instances that several laws have.
    """
    laws = groupby(checks, lambda check: check[0].partition("[")[0])
    for at, (law, on) in enumerate(laws):
        instances = list(on)
        step = min(STEPS.get(law, 4), len(instances))
        yield from instances[(at + number) % step :: step]


def _check(name, backend, counted, everything=False):
    checks, share = backend_checks(backend, **SETTINGS.get(name, {})), 1.0
    if not everything:
        checks, share = _quarter(checks, sorted(BACKENDS).index(name)), 0.4
    report = counted(run_checks(name, checks, expected_failures=EXPECTED.get(name)))
    regression = SparseRegression in backend.capabilities.forms
    floor = share * (FLOORS.get(name, FLOOR) if regression else GRAPH_FLOOR)
    assert report.ok, str(report)
    assert report.executed >= floor, f"{report.summary()}; the floor is {floor:g}"


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_backend(name, counted):
    _check(name, BACKENDS[name](**OPTIONS.get(name, {})), counted)


@pytest.mark.slow
@pytest.mark.timeout(600)  # some two hundred checks, on machines that may be busy
@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_every_law_on_every_instance_with_the_defaults(name, counted):
    _check(name, BACKENDS[name](), counted, everything=True)
