"""Random problems of every kind: a sound solution with valid bounds, or a clear error."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings

from tests.stress import PrecisionRecipe, Recipe, judge, make_trial, run_stress
from tests.stress.courts.court import Court
from tests.stress.posing.build import Trial
from tests.stress.posing.hypothesis_recipes import recipes
from tests.stress.posing.precision import PrecisionTrial

pytestmark = pytest.mark.unrefereed("the judge of the stress run asks the referee itself")


def assert_no_faults(problems: int, **options: object) -> None:
    tally = run_stress(problems, **options)  # type: ignore[arg-type]
    told = io.StringIO()
    tally.report(told)
    assert not tally.faults, told.getvalue()
    assert tally.tried == problems
    assert tally.solved > 0.5 * problems  # refusing everything would be sound, too
    assert tally.compared > tally.bounded > 0.4 * problems


def test_fifteen_small_problems():
    assert_no_faults(15, first=20, seed=7, small=True)


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
    with monkeypatch.context() as lie:
        lie.setattr(Compiled, "at_hand", False)
        lie.setattr(Compiled, "free_bound", lambda self, o: o.value * (1.0 + 1e-6))
        assert any(fault.startswith("invalid bound") for fault in judge(recipe).faults)
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
        "tests.stress.posing.build.make_trial",
        lambda recipe: trials.append(make_trial(recipe)) or trials[-1],
    )
    assert "changed an array of the caller" in judge(recipe).faults


def test_the_judge_catches_lies_about_precision_matrices(monkeypatch: pytest.MonkeyPatch):
    from dataclasses import replace

    from sparsemodel.modelling.problem import Problem

    recipe = PrecisionRecipe()
    assert judge(recipe).faults == ()
    certify, solve = Problem.certify, Problem.solve

    def boasting(self: Problem, **options: object) -> object:
        honest = certify(self, **options)  # type: ignore[arg-type]
        return replace(honest, bound=honest.upper + 1e-6)

    with monkeypatch.context() as lying:
        lying.setattr(Problem, "certify", boasting)
        assert any(fault.startswith("invalid bound") for fault in judge(recipe).faults)

    def full(values: np.ndarray) -> np.ndarray:
        return values + 1e-3 * (values == 0.0)

    def scaled(values: np.ndarray) -> np.ndarray:
        return 1.001 * values

    for change, named in ((full, "dropped constraint"), (scaled, "wrong value")):

        def told(self: Problem, *args: object, change=change, **options: object) -> object:
            honest = solve(self, *args, **options)  # type: ignore[arg-type]
            values = {name: change(value) for name, value in honest.values.items()}
            return replace(honest, values=values)

        monkeypatch.setattr(Problem, "solve", told)
        assert any(fault.startswith(named) for fault in judge(recipe).faults)


@pytest.mark.parametrize(
    ("recipe", "trial"), [(Recipe(), Trial), (PrecisionRecipe(), PrecisionTrial)]
)
def test_the_judge_catches_a_declaration_of_other_arrays(recipe, trial, monkeypatch):
    """The referee reads the declaration, which is compared with the arrays."""
    honest = trial.value
    monkeypatch.setattr(trial, "value", lambda *given: 1.0001 * honest(*given))
    assert any(fault.startswith("wrong value: declared") for fault in judge(recipe).faults)


def test_the_judge_catches_a_solution_worse_than_its_start():
    problem, w, _ = make_trial(Recipe(k="all")).problem()
    best = {id(w): problem.solve().values["w"]}
    court = Court(np.random.default_rng(0))
    court.no_worse_than(problem, best)
    assert court.faults == []
    w.value = 0.9 * w.value
    court.no_worse_than(problem, best)
    assert court.faults[0].startswith("worse than its start")


def test_a_hang_is_counted_and_the_run_goes_on():
    tally = run_stress(2, seed=9, small=True, limit=1e-3)
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
