"""Random problems of every kind: a sound solution with valid bounds, or a clear error."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings

from sparsemodel.testing.stress import Recipe, judge, make_trial, run_stress
from sparsemodel.testing.stress.strategies import recipes


def assert_no_faults(problems: int, **options: object) -> None:
    tally = run_stress(problems, **options)  # type: ignore[arg-type]
    told = io.StringIO()
    tally.report(told)
    assert not tally.faults, told.getvalue()
    assert tally.tried == problems
    assert tally.solved > 0.5 * problems  # refusing everything would be sound, too
    assert tally.compared > tally.bounded > 0.4 * problems


@pytest.mark.parametrize("first", range(0, 500, 25))
def test_five_hundred_small_problems(first: int):
    assert_no_faults(25, first=first, seed=7, small=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_hundred_problems_of_every_size():
    assert_no_faults(500, seed=8)


@given(recipe=recipes(small=True))
@settings(max_examples=10)
def test_whatever_is_drawn(recipe: Recipe):
    assert judge(recipe).faults == ()


def test_the_judge_catches_what_it_must(monkeypatch: pytest.MonkeyPatch):
    """A solver that lies is found out: about the value, the bound, the arrays."""
    from sparsemodel.modelling.compiled import Compiled
    from sparsemodel.modelling.problem import Problem
    from sparsemodel.modelling.solution import Solution

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
        "sparsemodel.testing.stress.judging.make_trial",
        lambda recipe: trials.append(make_trial(recipe)) or trials[-1],
    )
    assert "changed an array of the caller" in judge(recipe).faults


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
