"""The compiler's choice: what it rests on, that it is lean, and that it says so."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.choice.ranking import CLOSE, Table, table
from sparsemodel.compiler.choice.recipes import backends_of, is_recipe
from sparsemodel.compiler.choice.side_by_side import together
from sparsemodel.compiler.facts.features import Features, SideBySide
from sparsemodel.registry import backend_class, entries

SETTINGS = {"neighbours": 10, "reach": 1.0, "failure": 6.0, "excess": 10.0, "unnoticed": 1e-3}
LOSSES = {"squared": sm.squared_loss, "logistic": sm.logistic_loss}


def posed(loss: str = "squared", n: int = 120, p: int = 200, k: int = 8) -> sm.Problem:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, p))
    z = A[:, :5] @ [2.0, -1.5, 1.0, -1.0, 0.5]
    y = z + rng.standard_normal(n) if loss == "squared" else np.sign(z + rng.standard_normal(n))
    w = sm.Variable(p, name="w")
    return sm.Problem(sm.minimize(LOSSES[loss](A @ w, y) + sm.ridge(w, 1e-3)), sm.card(w) <= k)


def toy(*rows: tuple[int, dict[str, list[float]]]) -> Table:
    """Return a table of squared problems that differ in ``k``."""
    recipes = sorted({recipe for _, runs in rows for recipe in runs})
    still = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], 1.0]
    return Table(
        {
            "brief": "iht",
            "settings": SETTINGS,
            "recipes": dict.fromkeys(recipes, still),
            "problems": [
                {
                    "name": f"toy-{i}",
                    "features": like(k).to_dict(),
                    "runs": [runs.get(recipe) for recipe in recipes],
                }
                for i, (k, runs) in enumerate(rows)
            ],
        }
    )


def like(k: int, n: int = 100) -> Features:
    return Features("quadratic", "plain", True, False, True, n, 200, k)


# ---- the table -------------------------------------------------------------------------------


def test_the_shipped_table_is_whole() -> None:
    content = json.loads(files("sparsemodel.compiler").joinpath("data/choices.json").read_text())
    known = table()
    assert len(content["problems"]) >= 120
    assert content["about"]["problems"] == len(content["problems"])
    for recipe in known.recipes:
        assert backends_of(recipe) <= set(entries()), recipe
    best = []
    for row in content["problems"]:
        assert len(row["runs"]) == len(known.recipes)
        runs = [run for run in row["runs"] if run is not None]
        assert all(0.0 <= run[0] <= 1.0 and run[1] >= 0.0 < run[2] for run in runs)
        best.append(min(run[0] for run in runs))
    # Recipes that win on a single problem are left out, so it is not every problem.
    assert np.mean(np.array(best) <= CLOSE) > 0.9


def test_quality_comes_before_time() -> None:
    good_and_slow, bad_and_fast = [0.0, 40.0, 0.02], [0.3, 2.0, 0.002]
    ranked = toy(*[(5, {"slow": good_and_slow, "fast": bad_and_fast})] * 4).rank(
        like(5), frozenset({"slow", "fast"})
    )
    assert [forecast.recipe for forecast in ranked] == ["slow", "fast"]
    assert ranked[0].close == 1.0
    assert ranked[1].excess == pytest.approx(0.3)


def test_among_equals_the_quicker_is_taken() -> None:
    rows = [(5, {"slow": [0.0, 40.0, 0.02], "fast": [0.0, 2.0, 0.002]})] * 4
    assert toy(*rows).rank(like(5), frozenset({"slow", "fast"}))[0].recipe == "fast"


def test_similar_problems_weigh_more() -> None:
    small = [(2, {"a": [0.0, 5.0, 0.01], "b": [0.2, 5.0, 0.01]})] * 3
    large = [(60, {"a": [0.2, 5.0, 0.01], "b": [0.0, 5.0, 0.01]})] * 3
    both = toy(*small, *large)
    assert both.rank(like(2), frozenset("ab"))[0].recipe == "a"
    assert both.rank(like(60), frozenset("ab"))[0].recipe == "b"


def test_what_was_not_measured_on_similar_problems_is_not_forecast() -> None:
    rows = [(5, {"a": [0.0, 5.0, 0.01]})] * 3 + [(5, {"b": [0.0, 5.0, 0.01]})]
    assert [f.recipe for f in toy(*rows).rank(like(5), frozenset("ab"))] == ["a"]


def test_a_problem_can_be_predicted_from_the_others() -> None:
    rows = [(5, {"a": [0.0, 5.0, 0.01]}), (5, {"a": [0.5, 5.0, 0.01]})]
    forecast = toy(*rows).rank(like(5), frozenset("a"), without="toy-0")[0]
    assert forecast.excess == pytest.approx(0.5)
    assert forecast.similar == ("toy-1",)


def test_distance_is_a_distance() -> None:
    three = [like(5), like(9), like(30, n=500)]
    D = np.array([SideBySide(three).distances(f) for f in three])
    np.testing.assert_array_equal(np.diag(D), 0.0)
    np.testing.assert_array_equal(D, D.T)
    assert D[0, 1] > 0.0
    assert D[0, 2] <= D[0, 1] + D[1, 2] + 1e-12


# ---- the choice ------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_the_choice_is_the_first_of_the_ranking_and_deterministic(loss: str) -> None:
    plan, again = posed(loss).plan(), posed(loss).plan()
    assert plan == again or str(plan) == str(again)
    assert plan.forecast is not None
    assert len(plan.forecast.similar) <= table().settings.neighbours
    labels = {stage.label for stage in plan.stages}
    assert labels == backends_of(plan.forecast.recipe)


def test_a_few_supports_are_enumerated() -> None:
    problem = posed(p=12, k=2)
    plan = problem.plan()
    assert problem._compiled().analysed <= 0.5, "nothing is looked at where all are tried"
    assert [stage.label for stage in plan.stages] == ["exhaustive"]
    assert plan.forecast is None


def test_facts_are_found_only_for_a_decision() -> None:
    """An explicit backend leaves nothing to decide; a choice reads a few columns, once."""
    asked = posed(p=600)
    asked.plan("nhtp")
    assert asked._compiled().analysed <= 0.5
    asked.plan()
    before = asked._compiled().analysed
    assert 0.5 < before <= 0.55
    asked.plan()
    assert asked._compiled().analysed == before, "planning again reads nothing"


def test_a_time_limit_changes_the_plan_only_where_it_must() -> None:
    problem = posed()
    assert problem.plan(time_limit=60.0).outline == problem.plan().outline
    hurried = problem.plan(time_limit=0.0)
    assert hurried.forecast is not None
    assert hurried.forecast.seconds <= problem.plan().forecast.seconds


def test_an_unknown_kind_of_problem_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Table({"brief": "iht", "settings": SETTINGS, "recipes": {}, "problems": []})
    monkeypatch.setattr("sparsemodel.compiler.choice.portfolios.table", lambda: empty)
    assert posed().plan().outline == "nhtp"


# ---- what it says ----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_the_explanation_has_numbers_and_reasons(loss: str) -> None:
    problem = posed(loss)
    text, plan = problem.explain(), problem.plan()
    assert "Not taken" in text
    assert "as good as the best known on" in text
    assert all(name in text for name in plan.forecast.similar[:3])
    # A long plan is left in one piece, to be copied.
    assert all(len(line) <= 100 for line in text.splitlines() if "solve('" not in line)
    for rejection in plan.rejected:
        assert rejection.reasons
        assert rejection.backend in text
    assert "correlation" in text


def test_the_explanation_says_what_would_change_it() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 200))
    w = sm.Variable(200, name="w")
    bare = sm.Problem(sm.minimize(sm.squared_loss(A @ w, rng.standard_normal(60))), sm.card(w) <= 9)
    changing = bare.explain().split("What would change this")[1]
    assert "sm.ridge(w, 1e-3)" in changing
    for note in bare.plan().notes:
        if "solve('" in note:
            recipe = note.split("solve('")[1].split("')")[0]
            assert bare.solve(recipe).value >= 0.0, "what it advises can be typed"
            assert is_recipe(recipe) or recipe in entries()


def test_it_says_what_is_proved_before_and_after() -> None:
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((80, 30)), sm.Variable(30)
    hinge = sm.hinge_loss(A @ w, np.sign(A[:, 0]))
    for goal, ridged in ((hinge, False), (hinge + sm.ridge(w, 0.1), True)):
        problem = sm.Problem(sm.minimize(goal), sm.card(w) <= 6)
        text = problem.explain()
        assert "beforehand" in text, "guarantees of the backends are not for what is smoothed"
        assert "problem.certify()" in text
        assert ("solve('sdiht')" in text) is ridged, "what is advised can be run"
    assert problem.solve("sdiht").backend == "sdiht"
    text = posed().explain()
    assert "beforehand" not in text
    assert "afterwards" in text


def test_the_dictionary_is_plain_data() -> None:
    content = posed().plan().to_dict()
    assert json.loads(json.dumps(content)) == content
    assert content["forecast"]["similar"]
    assert content["stages"][0]["start"] == "zero"


def test_a_plan_that_would_take_long_is_brief_instead() -> None:
    from scipy.sparse.linalg import LinearOperator

    n, p = 2**17, 2**19
    A = LinearOperator(
        (n, p),
        matvec=lambda x: x.ravel()[:n],
        rmatvec=lambda r: np.pad(r.ravel(), (0, p - n)),
        dtype=np.float64,
    )
    w = sm.Variable(p)
    b = np.ones(n)
    problem = sm.Problem(sm.minimize(sm.squared_loss(sm.as_design(A) @ w, b)), sm.card(w) <= 3)
    plan = problem.plan()
    assert plan.outline == "nhtp:patience=10 | gomp"
    assert plan.forecast is not None
    text = str(plan)
    assert "unasked, nothing is run that would take more than 5 s" in text
    limit = float(text.split("solve(time_limit=")[1].split(")")[0])
    patient = problem.plan(time_limit=limit)
    assert patient.forecast.seconds > 5.0
    assert f"takes {patient.forecast.recipe!r}" in next(n for n in plan.notes if "unasked" in n)


def test_plans_side_by_side_are_as_close_as_the_better_one() -> None:
    rows = [(5, {"a": [0.0, 5.0, 0.01], "b": [0.5, 7.0, 0.02]})] * 2
    ranked = toy(*rows).rank(like(5), frozenset("ab"))
    both = together("a:x=1 | b", ranked)
    assert both is not None
    assert (both.close, both.excess) == (1.0, 0.0)
    assert both.passes == pytest.approx(sum(f.passes for f in ranked))
    assert both.seconds == pytest.approx(sum(f.seconds for f in ranked))
    assert together("a | c", ranked) is None
    assert together("a > b", ranked) is None, "what swaps make of a point is not known"


@pytest.mark.parametrize("name", ["nhtp", "grahtp", "iht"])
def test_priors_are_the_means_of_the_shipped_table(name: str) -> None:
    prior = backend_class(name).prior
    assert prior is not None
    content = json.loads(files("sparsemodel.compiler").joinpath("data/choices.json").read_text())
    column = list(content["recipes"]).index("fgrahtp" if name == "iht" else name)
    runs = [row["runs"][column] for row in content["problems"] if row["runs"][column] is not None]
    excess = np.array([run[0] for run in runs])
    assert prior.close == pytest.approx(np.mean(excess <= 1e-3), abs=0.01)
    assert prior.excess == pytest.approx(np.mean(excess), abs=0.01)
    assert prior.passes == pytest.approx(np.median([run[1] for run in runs]), rel=0.05)
