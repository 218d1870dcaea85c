"""Random problems of every kind: a sound solution with valid bounds, or a clear error."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings

from sparsemodel.testing.stress import PrecisionRecipe, Recipe, judge, make_trial, run_stress
from sparsemodel.testing.stress.posing.hypothesis_recipes import recipes

pytestmark = pytest.mark.unrefereed("the judge of the stress run asks the referee itself")


def assert_no_faults(problems: int, **options: object) -> None:
    tally = run_stress(problems, **options)  # type: ignore[arg-type]
    told = io.StringIO()
    tally.report(told)
    assert not tally.faults, told.getvalue()
    assert tally.tried == problems
    assert tally.solved > 0.5 * problems  # refusing everything would be sound, too
    assert tally.compared > tally.bounded > 0.4 * problems


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_two_hundred_small_problems(first: int):
    assert_no_faults(25, first=first, seed=7, small=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_hundred_problems_of_every_size():
    assert_no_faults(500, seed=8)


def test_what_once_hung():
    """Narrow bounds around tiny numbers: projected Newton took every entry for blocked."""
    recipe = Recipe(
        loss="huber",
        shape=(2, 2),
        target_scale=1e-30,
        ridge=1e-200,
        constraint="tiny box",
        cardinality="groups",
        backend="any",
        seed=734472165,
    )
    verdict = judge(recipe)
    assert verdict.faults == ()
    assert verdict.outcome == "solved"
    assert verdict.seconds < 5.0


def test_what_once_crashed():
    """No row of a matrix can vanish: none is counted, and bounds limit none that is."""
    recipe = Recipe(
        loss="multinomial",
        shape=(1, 1),
        target="outlier",
        matrix_scale=1e30,
        constraint="box away from zero",
        cardinality="price",
        seed=577209689,
    )
    verdict = judge(recipe)
    assert verdict.faults == ()
    assert verdict.bounded


def test_what_once_divided_by_zero():
    """Curvature of 1e300: the step length of Newton greedy pursuit underflows to zero."""
    recipe = Recipe(
        loss="squared_hinge",
        shape=(9, 1),
        matrix_scale=1e150,
        target_scale=1e-310,
        storage="CSC",
        ridge_shape="each its own",
        constraint="box",
        reduction="sum",
        start="random",
        backend="any",
        seed=714892159,
    )
    assert judge(recipe).faults == ()


def test_what_was_once_called_wrong():
    """A value of 5e-317, right to the last digit that such a number has."""
    recipe = Recipe(
        loss="quantile",
        shape=(1, 6),
        target="noise",
        target_scale=1e-310,
        k="half",
        reduction="sum",
        seed=1486778841,
    )
    verdict = judge(recipe)
    assert verdict.faults == ()
    assert verdict.outcome == "solved"


@pytest.mark.slow
def test_what_once_broke_a_contract():
    """Entries of 4e8 with the sum one: rounding was taken for a violation."""
    recipe = Recipe(
        loss="quantile",
        shape=(30, 40),
        columns="nearly equal",
        target="zero",
        matrix_scale=1e4,
        storage="repeated entries",
        ridge=0.0,
        ridge_shape="each its own",
        constraint="sum",
        seed=2247218,
    )
    verdict = judge(recipe)
    assert verdict.faults == ()
    assert verdict.outcome == "solved"


@given(recipe=recipes(small=True))
@settings(max_examples=10)
def test_whatever_is_drawn(recipe: Recipe):
    assert judge(recipe).faults == ()


def test_the_judge_catches_what_it_must(monkeypatch: pytest.MonkeyPatch):
    """A solver that lies is found out: about the value, the bound, the arrays."""
    from sparsemodel.modelling.problem import Problem
    from sparsemodel.modelling.regression.compiled import Compiled
    from sparsemodel.modelling.results.solution import Solution

    recipe = Recipe(shape=(12, 5), k="1")
    assert judge(recipe).faults == ()
    honest = Compiled.free_bound
    monkeypatch.setattr(Compiled, "free_bound", lambda self, o: o.value * (1.0 + 1e-6))
    assert any(fault.startswith("invalid bound") for fault in judge(recipe).faults)
    monkeypatch.setattr(Compiled, "free_bound", honest)
    solve = Problem.solve

    def lying(self: Problem, *args: object, **options: object) -> Solution:
        solution = solve(self, *args, **options)  # type: ignore[arg-type]
        object.__setattr__(solution, "value", 0.5 * solution.value)
        return solution

    monkeypatch.setattr(Problem, "solve", lying)
    assert any(fault.startswith("wrong value") for fault in judge(recipe).faults)

    def careless(self: Problem, *args: object, **options: object) -> Solution:
        trials[-1].blocks[0].matrix[0, 0] += 1.0
        return solve(self, *args, **options)  # type: ignore[arg-type]

    trials = []
    monkeypatch.setattr(Problem, "solve", careless)
    monkeypatch.setattr(
        "sparsemodel.testing.stress.courts.judging.make_trial",
        lambda recipe: trials.append(make_trial(recipe)) or trials[-1],
    )
    assert "changed an array of the caller" in judge(recipe).faults


def test_the_judge_catches_lies_about_precision_matrices(monkeypatch: pytest.MonkeyPatch):
    from dataclasses import replace

    from sparsemodel.testing.stress.posing.precision import PrecisionTrial

    recipe = PrecisionRecipe()
    assert judge(recipe).faults == ()
    run, lies = PrecisionTrial.run, []

    def told(trial: PrecisionTrial, faults: list[str]) -> object:
        honest = run(trial, faults)
        values = {"bound": honest.certificate.upper + 1e-6, "upper": honest.certificate.upper}
        edge = np.argwhere(np.triu(honest.matrix == 0.0))[0]
        full = honest.matrix.copy()
        full[tuple(edge)] = full[tuple(edge[::-1])] = 1e-3
        return {
            "bound": replace(honest, certificate=SimpleNamespace(**values)),
            "edge": replace(honest, matrix=full),
            "value": replace(honest, matrix=1.001 * honest.matrix),
        }[lies[-1]]

    monkeypatch.setattr(PrecisionTrial, "run", told)
    named = {"bound": "invalid bound", "edge": "infeasible", "value": "wrong value"}
    for lie in named:
        lies.append(lie)
        assert any(fault.startswith(named[lie]) for fault in judge(recipe).faults)


def test_a_hang_is_counted_and_the_run_goes_on():
    tally = run_stress(2, seed=7, small=True, limit=1e-3)
    assert tally.faults == {"hang": 2}
    assert tally.tried == 2
    told = io.StringIO()
    tally.report(told)
    assert "hang                                 2" in told.getvalue()


def test_a_crash_and_a_warning_are_faults(monkeypatch: pytest.MonkeyPatch):
    import warnings

    from sparsemodel.modelling.problem import Problem

    def broken(self: Problem, *args: object, **options: object) -> None:
        warnings.warn("careful", RuntimeWarning, stacklevel=1)
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr(Problem, "solve", broken)
    verdict = judge(Recipe())
    assert verdict.outcome == "crashed"
    kinds = sorted(fault.partition(":")[0] for fault in verdict.faults)
    assert kinds == ["crash", "warning"]


def test_what_once_had_no_price():
    recipe = Recipe(
        loss="huber",
        shape=(5, 6),
        target="constant",
        matrix_scale=1e150,
        target_scale=1e-30,
        k="all",
        constraint="box",
        cardinality="price",
        reduction="sum",
        terms=2,
        seed=1620331441,
    )
    assert not judge(recipe).faults
