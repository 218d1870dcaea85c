"""Random problems that exist in the language alone, judged by the referee."""

from __future__ import annotations

import io
import time

import cvxpy  # noqa: F401  (it draws from NumPy's generator while it is loaded, once)
import numpy as np
import pytest

from sparsemodel.modelling.problem import Problem
from tests.stress import DECLARED_KINDS, DeclaredRecipe, judge, run_stress
from tests.stress.courts.court import Court

pytestmark = pytest.mark.unrefereed("the court asks the referee itself")

EVERY_DAY = {"time limits": 1, "paths": 1}
"""Problems of a kind; two of the others."""


@pytest.mark.parametrize("kind", DECLARED_KINDS)
def test_a_few_problems_of_each_kind(kind: str):
    judged = 0
    for seed in range(EVERY_DAY.get(kind, 2)):
        verdict = judge(DeclaredRecipe(kind, seed))
        assert not verdict.faults, "\n".join((str(verdict.recipe), *verdict.faults))
        judged += verdict.judged
    assert judged or kind in ("symmetric matrices", "faulty operators")  # may all be refused


@pytest.mark.parametrize("seed", [187650558, 1754317278, 2014495555])
def test_proofs_that_once_had_a_fault(seed: int):
    """The bounds in a box, of another point; bounds raised by the rounding of their last digits."""
    verdict = judge(DeclaredRecipe("proofs", seed))
    assert verdict.faults == ()
    assert verdict.judged > 2


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_hundred_problems_of_the_language():
    tally = run_stress(500, seed=9, declared=None)
    told = io.StringIO()
    tally.report(told)
    assert not tally.faults, told.getvalue()
    assert all(one.judged for one in tally.kinds.values()), told.getvalue()


def test_the_court_counts_what_it_hears(monkeypatch: pytest.MonkeyPatch):
    recipe = DeclaredRecipe("offsets", 1)
    assert judge(recipe).judged >= 2
    solve = Problem.solve

    def lying(self: Problem, *args: object, **options: object) -> object:
        solution = solve(self, *args, **options)  # type: ignore[arg-type]
        object.__setattr__(solution, "value", 0.5 * solution.value)
        return solution

    monkeypatch.setattr(Problem, "solve", lying)
    assert any(fault.startswith("wrong value: solve") for fault in judge(recipe).faults)


def test_what_is_not_the_library_s_error_is_a_fault():
    court = Court(np.random.default_rng(0))

    def broken() -> None:
        raise ZeroDivisionError("float division by zero")

    assert court.ask("solve", broken) is None
    assert court.faults[0].startswith("crash: solve: ZeroDivisionError: float division by zero [")


def test_a_time_limit_is_held_against_the_time_of_the_processor():
    court = Court(np.random.default_rng(0))

    def busy() -> None:
        began = time.process_time()
        while time.process_time() - began < 0.35:
            pass

    court.ask("solve", busy, time_limit=1e-3)
    court.ask("certify", lambda: None, time_limit=1e-3)
    assert [fault.partition(" took")[0] for fault in court.faults] == ["late: solve"]
