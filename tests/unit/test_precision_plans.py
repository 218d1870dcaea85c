"""Plans for precision matrices: chosen by measurement, explained with figures."""

from __future__ import annotations

import json
import tracemalloc
from importlib.resources import files

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.choice.precision_plans import PrecisionTable, precision_table
from sparsemodel.compiler.choice.recipes import backends_of

RECIPES = precision_table().recipes
ABLE = frozenset(name for recipe in RECIPES for name in backends_of(recipe))


def posed(p: int = 25, n: int | None = 50, seed: int = 0, k: int = 40) -> sm.Problem:
    rng = np.random.default_rng(seed)
    factor = np.eye(p) + 0.6 * np.diag(rng.random(p - 1), 1) + 0.3 * np.eye(p, k=4)
    X = rng.standard_normal((n or 200, p)) @ factor
    omega = sm.Variable((p, p), symmetric=True)
    nll = sm.gaussian_nll(omega, data=X) if n else sm.gaussian_nll(omega, np.cov(X.T))
    return sm.Problem(sm.minimize(nll), sm.card(sm.offdiag(omega)) <= 2 * k)


def test_the_shipped_table_is_whole() -> None:
    content = json.loads(files("sparsemodel.compiler").joinpath("data/precision.json").read_text())
    rows = content["problems"]
    assert len(rows) >= 60
    for row in rows:
        assert set(row["runs"]) == set(RECIPES)
        assert min(excess for excess, _ in row["runs"].values()) == pytest.approx(0.0, abs=1e-9)
        assert all(seconds > 0.0 for _, seconds in row["runs"].values())


def test_the_closest_plan_by_forecast_is_run() -> None:
    plan = posed().plan()
    assert plan.forecast is not None
    ranked = precision_table().rank(25, 50, 40, ABLE)
    assert plan.forecast == ranked[0]
    assert plan.outline == plan.forecast.recipe
    assert plan.until_agreement


@pytest.mark.parametrize("seed", range(4))
def test_several_starts_are_no_worse_than_the_one_there_was(seed: int) -> None:
    chosen, alone = posed(seed=seed), posed(seed=seed)
    assert chosen.solve().value <= alone.solve("precision_swap").value + 1e-9


def test_large_graphs_get_what_ends_in_time() -> None:
    table = precision_table()
    for p in (25, 100, 400, 1600, 6400):
        ranked = table.rank(p, 2 * p, 2 * p, ABLE)
        assert [f.excess for f in ranked] == sorted(f.excess for f in ranked)
        by_seconds = {f.recipe: f.seconds for f in ranked}
        assert by_seconds[RECIPES[-1]] > by_seconds["precision_swap"]
    seconds = [table.rank(p, 2 * p, 2 * p, {"precision_swap"})[0].seconds for p in (25, 100, 400)]
    assert seconds == sorted(seconds)


def test_what_would_take_long_is_named_and_runs_with_more_time() -> None:
    problem = posed(p=400, n=300, k=900)
    plan = problem.plan()
    assert plan.forecast is not None
    assert plan.forecast.seconds <= 5.0
    note = next(note for note in plan.notes if "unasked" in note)
    limit = float(note.split("solve(time_limit=")[1].split(")")[0])
    patient = problem.plan(time_limit=limit)
    assert patient.forecast.recipe in note
    assert patient.forecast.excess < plan.forecast.excess
    hurried = problem.plan(time_limit=1e-3)
    assert hurried.forecast.seconds <= plan.forecast.seconds


def test_the_explanation_has_figures_and_reasons() -> None:
    problem = posed()
    text, plan = problem.explain(), problem.plan()
    assert "as good as the best known on" in text
    assert "of what edges explain" in text
    assert "order 25" in text
    assert "memory of a solve" in text
    assert all(name in text for name in plan.forecast.similar[:3])
    for rejection in plan.rejected:
        assert rejection.backend in text
        if rejection.able:
            assert len(rejection.reasons) == 2, "a verdict, and the figures behind it"
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
    assert plan.forecast is not None
    assert any("samples=n" in note for note in plan.notes)
    assert not any("samples=n" in note for note in posed().plan().notes)


def test_forecasts_rest_on_what_is_similar() -> None:
    def row(p: int, excess: float, seconds: float) -> dict[str, object]:
        runs = {recipe: [0.0 if recipe == RECIPES[-1] else excess, seconds] for recipe in RECIPES}
        return {"name": f"toy-{p}-{excess}", "p": p, "n": 2 * p, "k": p, "runs": runs}

    small = [row(20, 0.1, 0.1 * (1 + i / 50)) for i in range(12)]
    large = [row(400, 0.5, 100.0 * (1 + i / 50)) for i in range(12)]
    table = PrecisionTable({"problems": small + large})
    assert {f.recipe: f.excess for f in table.rank(20, 40, 20, ABLE)}[RECIPES[0]] == (
        pytest.approx(0.1)
    )
    far = table.rank(400, 800, 400, {"precision_swap"})
    assert [f.recipe for f in far] == ["precision_swap"], "those that cannot run are left out"
    assert far[0].excess == pytest.approx(0.5)
    assert far[0].seconds == pytest.approx(100.0, rel=0.3)
