"""Plans for precision matrices: as many starts as there is time for, and reasons."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest

import sparsemodel as sm


def posed(p: int = 25, n: int | None = 50, seed: int = 0, k: int = 40) -> sm.Problem:
    rng = np.random.default_rng(seed)
    factor = np.eye(p) + 0.6 * np.diag(rng.random(p - 1), 1) + 0.3 * np.eye(p, k=4)
    X = rng.standard_normal((n or 200, p)) @ factor
    omega = sm.Variable((p, p), symmetric=True)
    nll = sm.gaussian_nll(omega, data=X) if n else sm.gaussian_nll(omega, np.cov(X.T))
    return sm.Problem(sm.minimize(nll), sm.card(sm.offdiag(omega)) <= 2 * k)


def test_several_starts_are_run_where_they_do_not_take_long() -> None:
    plan = posed().plan()
    starts = [stage.label for stage in plan.stages if stage.start == "zero"]
    assert starts == ["precision_swap", "precision_grasp", "precision_fbs", "precision_foba"]
    assert all(stage.label == "precision_exchange" for stage in plan.stages[1::2])
    assert plan.until_agreement


@pytest.mark.parametrize("seed", range(2))
def test_several_starts_are_no_worse_than_the_one_there_was(seed: int) -> None:
    chosen, alone = posed(seed=seed), posed(seed=seed)
    assert chosen.solve().value <= alone.solve("precision_swap").value + 1e-9


def test_what_would_take_long_is_named_and_runs_when_somebody_waits() -> None:
    for p, k, outline in (
        (400, 500, "precision_swap > precision_exchange | precision_grasp > precision_exchange"),
        (400, 900, "precision_swap > precision_exchange"),
        (400, 3000, "precision_swap > precision_exchange:tries=12"),
        (400, 4000, "precision_swap"),
        (400, 40000, "precision_grahtp"),
    ):
        problem = posed(p=p, n=300, k=k)
        plan = problem.plan()
        assert plan.outline == outline
        assert any("solve(effort='high')" in note for note in plan.words.notes)
        patient = problem.plan(time_limit=60.0)
        assert patient.outline.count("|") == 3
        assert not any("by default" in note for note in patient.words.notes)


def test_the_first_tries_gain_most_and_more_are_no_worse() -> None:
    values = []
    for tries in (0, 3, 2000):
        problem = posed(p=30, n=40, k=60)
        solution = problem.solve(f"precision_swap:tol=1.0 > precision_exchange:tries={tries}")
        assert sum(event.backend == "precision_exchange" for event in solution.history) <= tries + 2
        assert solution.status != "stopped early"
        values.append(solution.value)
    assert values[0] > values[1] >= values[2]
    with pytest.raises(sm.ModelError, match="tries must be at least 0, not -1"):
        problem.solve("precision_exchange:tries=-1")


def test_the_explanation_has_reasons() -> None:
    problem = posed()
    text, plan = problem.explain(full=True), problem.plan()
    assert "order 25" in text
    assert "memory of a solve" in text
    for rejection in plan.rejected:
        assert rejection.backend in text
    assert max(map(len, text.splitlines()[1:])) <= 100
    assert json.loads(json.dumps(plan.to_dict())) == plan.to_dict()


def test_the_memory_of_a_solve_is_about_right() -> None:
    problem = posed(p=60, n=120, k=80)
    problem.solve("precision_swap")  # imports are not of the solve
    told = {fact.name: fact.value for fact in problem.plan().facts}["memory of a solve"]
    size, unit = told.removeprefix("about ").split()
    tracemalloc.start()
    problem.solve("precision_swap > precision_exchange")
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used / 3.0 <= float(size) * {"kB": 1e3, "MB": 1e6}[unit] <= 3.0 * used


def test_an_unknown_number_of_samples_is_said() -> None:
    plan = posed(n=None).plan()
    assert any("samples=n" in note for note in plan.words.notes)
    assert not any("samples=n" in note for note in posed().plan().words.notes)
