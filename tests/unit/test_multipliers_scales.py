"""The method of multipliers is as exact, and as quick, in whatever units the columns are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import sparsemodel as sm
from sparsemodel.numerics.minimisers import multipliers
from tests.stress import Recipe, make_trial


def _least_absolute(A: np.ndarray, y: np.ndarray) -> float:
    """Return the minimum of ``mean |A w - y|`` with ``sum(w) == 1``, by linear programming."""
    n, p = A.shape
    rows = np.block([[A, -np.eye(n)], [-A, -np.eye(n)]])
    found = linprog(
        np.concatenate([np.zeros(p), np.full(n, 1.0 / n)]),
        A_ub=rows,
        b_ub=np.concatenate([y, -y]),
        A_eq=np.concatenate([np.ones(p), np.zeros(n)])[None],
        b_eq=[1.0],
        bounds=[(None, None)] * p + [(0.0, None)] * n,
    )
    return float(found.fun)


@pytest.mark.parametrize("seed", [3, 4, 5, 7])
def test_columns_of_mixed_scales_are_minimised_on_as_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = 9, 5
    A = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-4.0, 4.0, p)
    y = A @ rng.standard_normal(p) + rng.standard_normal(n)
    w = sm.Variable(p)
    problem = sm.Problem(sm.minimize(sm.absolute_loss(A @ w, y)), sm.card(w) <= p, w.sum() == 1)
    assert problem.solve("exhaustive").value == pytest.approx(_least_absolute(A, y), rel=2e-12)


@pytest.mark.parametrize("seed", range(6))
def test_losses_without_curvature_at_the_start_are_minimised_in_any_unit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, row = rng.standard_normal((12, 4)), rng.standard_normal(4)
    y = np.where(rng.random(12) < 0.5, 1.0, -1.0) * (1.0 + 2.0 * rng.random(12))
    w, c, values = sm.Variable(4), sm.Variable(), []
    for unit, of_target in ((1.0, 1.0), (1e5, 1e3), (1e-5, 1e-3), (1e5, 1e-3)):
        # All observations are outliers at zero.
        loss = sm.huber_loss(unit * A @ w + c, of_target * y, delta=0.3 * of_target)
        limit = row @ w <= 0.5 * of_target / unit
        problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 4, limit)
        values.append(problem.solve("exhaustive").value / of_target**2)
    assert values == pytest.approx([values[0]] * 4, rel=1e-8)


def test_a_large_ridge_leaves_the_intercept_its_unit() -> None:
    rng = np.random.default_rng(0)
    A, y = rng.random((40, 6)) < 0.4, np.where(np.arange(40) < 10, 1.0, -1.0)
    w, c = sm.Variable(6), sm.Variable()
    goal = sm.minimize(sm.hinge_loss(A @ w + c, y, reduction="sum") + sm.ridge(w, 1e15))
    problem = sm.Problem(goal, sm.card(w) <= 1, sm.norm(w, 1) <= 1e-9)
    # All that the ridge leaves is the constant -1: the ten of the other class cost 2 each.
    assert problem.solve("exhaustive").value == pytest.approx(20.0, rel=1e-9)


def test_a_search_over_columns_of_mixed_scales_is_short_and_finds_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recipe = Recipe(
        loss="absolute",
        shape=(5, 6),
        columns="mixed scales",
        ridge_shape="some zero",
        constraint="sum",
        cardinality="price",
        seed=5,
    )
    evaluations = 0
    evaluate = multipliers._Augmented.evaluate

    def counted(*arguments: Any) -> Any:
        nonlocal evaluations
        evaluations += 1
        return evaluate(*arguments)

    monkeypatch.setattr(multipliers._Augmented, "evaluate", counted)
    solution = make_trial(recipe).problem()[0].solve()
    assert solution.value < 0.1  # 0.122 where columns of other units hold the small ones back
    assert evaluations < 20_000  # 7300, and 88 000 there


@pytest.mark.parametrize(
    ("kind", "seed"),
    [(2, 25), (1, 0), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((2, 16), (1, 12)))],
)
@pytest.mark.parametrize("loss", [sm.squared_loss, sm.huber_loss, sm.absolute_loss])
def test_a_norm_is_kept_as_exactly_in_any_unit_beside_an_intercept(
    loss: Any, kind: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((18, 6))
    y = A[:, :3] @ rng.standard_normal(3) * 2.0 + rng.standard_normal(18) + 3.0
    values = []
    for unit in (1.0, 1e-8):
        w, c = sm.Variable(6), sm.Variable()
        goal = sm.minimize(loss((A * unit) @ w + c, y))
        problem = sm.Problem(goal, sm.card(w) <= 3, sm.norm(w, kind) <= 0.8 / unit)
        values.append(problem.solve().value)
    assert values == pytest.approx([values[0]] * 2, rel=1e-9)
