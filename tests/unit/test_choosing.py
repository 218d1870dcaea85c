"""The compiler's choice: what is run for which properties, that it is lean, and that it says so."""

from __future__ import annotations

import json
import pickle
from math import comb
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

import sparsemodel as sm
from sparsemodel.compiler.choice import openings
from sparsemodel.compiler.choice.all_supports import SMALL, _enumerated
from sparsemodel.compiler.choice.recipes import is_recipe
from sparsemodel.interfaces import Cardinality
from sparsemodel.registry import backend_class, entries

LOSSES = {"squared": sm.squared_loss, "logistic": sm.logistic_loss, "hinge": sm.hinge_loss}


def posed(loss: str = "squared", n: int = 120, p: int = 200, k: int = 8) -> sm.Problem:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, p))
    z = A[:, :5] @ [2.0, -1.5, 1.0, -1.0, 0.5]
    y = z + rng.standard_normal(n) if loss == "squared" else np.sign(z + rng.standard_normal(n))
    w = sm.Variable(p, name="w")
    return sm.Problem(sm.minimize(LOSSES[loss](A @ w, y) + sm.ridge(w, 1e-3)), sm.card(w) <= k)


def recovery(noise: float = 0.0, n: int = 250, p: int = 1000, k: int = 30) -> sm.Problem:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((n, p)) / np.sqrt(n)
    x = np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.choice([-1.0, 1.0], k) * rng.uniform(1.0, 2.0, k)
    w = sm.Variable(p, name="w")
    b = A @ x + noise * rng.standard_normal(n)
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= k)


def operator(n: int, p: int, k: int) -> sm.Problem:
    A = LinearOperator(
        (n, p),
        matvec=lambda x: x.ravel()[:n],
        rmatvec=lambda r: np.pad(r.ravel(), (0, p - n)),
        dtype=np.float64,
    )
    w = sm.Variable(p)
    return sm.Problem(
        sm.minimize(sm.squared_loss(sm.as_design(A) @ w, np.ones(n))), sm.card(w) <= k
    )


# ---- the choice ------------------------------------------------------------------------------


def test_a_plan_makes_no_backend_that_it_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    posed().plan()  # backends are made once when they are loaded
    made: list[Any] = []
    for name in entries():
        cls = backend_class(name)
        if "__post_init__" in vars(cls):
            monkeypatch.setattr(cls, "__post_init__", lambda self: made.append(type(self)))
    plan = posed().plan()
    assert made == [type(stage.backend) for stage in plan.stages]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_finish_runs_alone_where_no_opening_starts_better(loss: str) -> None:
    plan, again = posed(loss).plan(), posed(loss).plan()
    assert plan.outline == "exchange"
    assert plan == again or str(plan) == str(again)


def test_a_likely_recovery_is_opened_by_few_products_and_ends_with_them() -> None:
    problem = recovery()
    plan = problem.plan()
    assert plan.outline == "nhtp > exchange"
    assert "a recovery is likely" in plan.stages[0].why
    solution = problem.solve()
    assert solution.value < 1e-20
    assert solution.backend == "nhtp", "nothing is left to gain"
    assert recovery(noise=2.0).plan().outline == "exchange"


@pytest.mark.parametrize(("density", "outline"), [(0.05, "gomp > exchange"), (1.0, "exchange")])
def test_smoothed_hinges_of_rare_features_are_opened_greedily(density: float, outline: str) -> None:
    A = scipy.sparse.random(200, 300, density, format="csr", random_state=0)
    w, y = sm.Variable(300), np.sign(A @ np.ones(300) - 150 * density / 2)
    problem = sm.Problem(sm.minimize(sm.smoothed_hinge_loss(A @ w, y)), sm.card(w) <= 20)
    assert problem.plan().outline == outline


def test_a_recovery_of_few_features_is_short_where_a_search_follows() -> None:
    assert recovery(k=20).plan().outline == "nhtp:max_iter=16 > exchange"
    assert recovery(k=21).plan().outline == "nhtp > exchange"


def test_near_the_limit_of_recovery_the_search_alone_recovers() -> None:
    """Three of six instances with 30 of 256 features and 64 rows; no other backend adds one."""
    recovered = []
    for seed in (5, 0, 4):
        rng = np.random.default_rng((13, 64, 30, seed))
        A = rng.standard_normal((64, 256))
        A /= np.linalg.norm(A, axis=0)
        x, w = np.zeros(256), sm.Variable(256)
        x[rng.choice(256, 30, replace=False)] = rng.standard_normal(30)
        problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, A @ x)), sm.card(w) <= 30)
        assert problem.plan().outline == "exchange"
        problem.solve()
        recovered.append(bool(np.allclose(w.value, x, atol=1e-9)))
    assert all(recovered)


def test_the_opening_follows_from_access_and_from_the_price() -> None:
    assert operator(40, 60, 5).plan().outline == "nhtp:max_iter=16 > exchange"
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((50, 30)), sm.Variable(30)
    loss = sm.squared_loss(A @ w, A[:, 0] + rng.standard_normal(50))
    priced = sm.Problem(sm.minimize(loss + 0.1 * sm.card(w)))
    assert priced.plan().outline == "grahtp > exchange"


@pytest.mark.parametrize("seed", range(6))
def test_the_number_of_supports_is_exact_up_to_its_limit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(40):
        units = int(rng.integers(1, 40))
        k = int(rng.integers(0, units + 1))
        for price in (0.0, 1.0):
            sizes = range(k + 1) if price else (k,)
            exact = sum(comb(units, size) for size in sizes)
            found = _enumerated(Cardinality(units, k, price=price), SMALL)
            assert found == min(exact, SMALL + 1)


def test_a_few_supports_are_enumerated() -> None:
    problem = posed(p=12, k=2)
    plan = problem.plan()
    assert problem._compiled().analysed <= 0.5, "nothing is looked at where all are tried"
    assert [stage.label for stage in plan.stages] == ["exhaustive"]


def test_facts_are_found_only_for_a_decision() -> None:
    """An explicit backend leaves nothing to decide; a choice reads a few columns, once."""
    asked = recovery()
    asked.plan("nhtp")
    assert asked._compiled().analysed <= 0.5
    asked.plan()
    before = asked._compiled().analysed
    assert 0.5 < before <= 0.55
    asked.plan()
    assert asked._compiled().analysed == before, "planning again reads nothing"
    small = posed(p=50)
    small.plan()
    assert small._compiled().analysed <= 0.5, "where little can be saved nothing is looked at"


def test_what_would_take_long_is_brief_unless_somebody_waits() -> None:
    problem = operator(2**17, 2**19, 3)
    plan = problem.plan()
    assert plan.outline == "nhtp | gomp"
    note = next(n for n in plan.words.notes if "by default" in n)
    recipe = note.split("solve('")[1].split("')")[0]
    assert is_recipe(recipe)
    assert recipe == "nhtp | gomp | best exchange"
    assert problem.plan(time_limit=60.0).outline.startswith("nhtp:max_iter=16 > exchange")


def test_swaps_follow_quick_starts_where_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openings, "TOO_LONG", 5e-3)
    problem = posed("logistic", n=200, p=500, k=10)
    plan = problem.plan()
    assert plan.outline == "gomp | nhtp | best local_search"
    assert any("'gomp | nhtp | best local_search | best exchange'" in n for n in plan.words.notes)
    squared = posed("squared", n=200, p=500, k=10).plan().outline
    assert squared == "nhtp > local_search:removal=all"
    low, quick = problem.solve().value, problem.solve("nhtp | gomp").value
    assert low <= quick
    monkeypatch.setattr(openings, "TOO_LONG", 1e-3)
    crowded = posed("logistic", n=40, p=500, k=10).plan().outline
    assert crowded == "gomp | iiht:progress=0.001:max_iter=100 | best local_search"
    monkeypatch.setattr(openings, "TOO_LONG", 5e-3)
    monkeypatch.setattr(openings, "_swapping", lambda form: 1.0)
    outline = "gomp > nhtp:patience=5 | iiht:progress=0.001:max_iter=100 > nhtp:patience=5"
    assert problem.plan().outline == outline
    monkeypatch.setattr(openings, "TOO_LONG", 1e-3)
    crowded = posed("logistic", n=40, p=500, k=10)
    monkeypatch.setattr(openings, "_merging", lambda form: 1e-4)
    assert crowded.plan().outline == f"{outline} | best grasp:max_iter=7"
    monkeypatch.setattr(openings, "_merging", lambda form: 1.0)
    assert crowded.plan().outline == outline


def test_many_units_are_exchanged_where_single_ones_take_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Classes that many supports separate: what gradient steps find is far from the best."""
    monkeypatch.setattr(openings, "TOO_LONG", 0.05)
    monkeypatch.setattr(openings, "_swapping", lambda form: 1.0)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((150, 600)) + rng.standard_normal((150, 20)) @ rng.standard_normal(
        (20, 600)
    )
    y = np.where(A[:, :30].sum(1) + 5.0 * rng.standard_normal(150) > 0.0, 1.0, 0.0)
    w = sm.Variable(600)
    goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-4))
    problem = sm.Problem(goal, sm.card(w) <= 60)
    outline = problem.plan().outline
    assert outline.endswith(" | best grasp:max_iter=7")
    before = problem.solve(outline.removesuffix(" | best grasp:max_iter=7")).value
    merged, value = problem.solve("grasp").value, problem.solve().value
    assert value <= min(1.001 * merged, 0.98 * before)


# ---- what it says ----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_the_explanation_has_reasons(loss: str) -> None:
    problem = posed(loss)
    text, plan = problem.explain(full=True), problem.plan()
    assert "Not chosen: run by name only" in text
    assert all(len(line) <= 100 for line in text.splitlines() if "solve('" not in line)
    assert {r.backend for r in plan.rejected} | {s.label for s in plan.stages} == set(entries())
    for rejection in plan.rejected:
        assert rejection.reasons
        assert rejection.backend in text
    assert "correlation" in text


def test_a_plan_says_the_same_after_pickling() -> None:
    plan = posed().plan()
    again: Any = pickle.loads(pickle.dumps(plan))
    assert str(again) == str(plan)
    assert again.rejected == plan.rejected


def test_the_explanation_says_what_would_change_it() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 200))
    w = sm.Variable(200, name="w")
    bare = sm.Problem(sm.minimize(sm.squared_loss(A @ w, rng.standard_normal(60))), sm.card(w) <= 9)
    changing = bare.explain(full=True).split("What would change this")[1]
    assert "sm.ridge(w, 1e-3)" in changing


def test_it_says_what_is_proved_before_and_after() -> None:
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((80, 30)), sm.Variable(30)
    hinge = sm.hinge_loss(A @ w, np.sign(A[:, 0]))
    for goal, ridged in ((hinge, False), (hinge + sm.ridge(w, 0.1), True)):
        problem = sm.Problem(sm.minimize(goal), sm.card(w) <= 6)
        text = problem.explain(full=True)
        assert "What is proved" in text
        assert ("solve('sdiht')" in text) is ridged, "what is advised can be run"
    assert problem.solve("sdiht").backend == "sdiht"
    text = posed().explain(full=True)
    assert "beforehand" not in text
    assert "afterwards" in text


def test_the_dictionary_is_plain_data() -> None:
    content = posed().plan().to_dict()
    assert json.loads(json.dumps(content)) == content
    assert content["stages"][0]["start"] == "zero"


# ---- effort ----------------------------------------------------------------------------------


def test_effort_and_a_time_limit_change_the_patience_of_the_search() -> None:
    problem = posed()
    efforts = {
        name: problem.plan(effort=name).stages[-1].backend.options()["effort"]
        for name in ("low", "medium", "high")
    }
    assert efforts["low"] < efforts["medium"] == 1.0 < efforts["high"]
    limited = problem.plan(time_limit=3.0).stages[-1].backend.options()["effort"]
    assert limited > efforts["high"]
    hurried = problem.plan(time_limit=3.0, effort="low").stages[-1].backend.options()["effort"]
    assert hurried == efforts["low"]
    assert problem.plan("exchange:effort=2", effort="high").outline == "exchange:effort=8.0"
    with pytest.raises(sm.ModelError, match="effort is 'low', 'medium' or 'high', not 'max'"):
        problem.solve(effort="max")  # type: ignore[arg-type]


def test_little_effort_is_one_descent_where_the_loss_has_kinks() -> None:
    rng = np.random.default_rng(3)
    A, w = rng.standard_normal((60, 20)), sm.Variable(20)
    labels = np.sign(A[:, :3].sum(axis=1) + rng.standard_normal(60))
    problem = sm.Problem(
        sm.minimize(sm.hinge_loss(A @ w, labels) + sm.ridge(w, 0.1)), sm.card(w) <= 3
    )
    assert problem.plan(effort="low").outline == "exchange:effort=0.0"
    assert problem.plan().outline == "diht:max_iter=50 > exchange"
    quick, usual = problem.solve(effort="low"), problem.solve()
    assert usual.value <= quick.value * (1.0 + 1e-9) <= 1.1 * usual.value
    assert quick.passes < 0.5 * usual.passes


def test_more_effort_is_never_worse_on_a_path() -> None:
    rng = np.random.default_rng(5)
    grid = np.linspace(0.0, 1.0, 60)
    A = np.exp(-0.5 * ((grid[:, None] - np.linspace(0.0, 1.0, 30)) / 0.05) ** 2)
    b = A[:, [4, 6, 15, 17, 25]] @ np.ones(5) + 0.01 * rng.standard_normal(60)
    w = sm.Variable(30, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 5)
    climbed = problem.path(range(1, 8), effort="low").objective
    searched = problem.path(range(1, 8)).objective
    assert np.all(searched <= climbed * (1.0 + 1e-12))
    assert np.all(np.diff(searched) <= 0.0)
    for k in (3, 5, 7):
        w2 = sm.Variable(30)
        alone = sm.Problem(sm.minimize(sm.squared_loss(A @ w2, b)), sm.card(w2) <= k).solve()
        assert searched[k - 1] <= 1.001 * alone.value
