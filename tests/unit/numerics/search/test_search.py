"""The search against enumeration, and laws that any search keeps."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm


def least_squares(A: Any, b: Any, columns: Any) -> float:
    x = np.linalg.lstsq(A[:, columns], b, rcond=None)[0]
    return float(np.mean((A[:, columns] @ x - b) ** 2) / 2.0)


@pytest.mark.parametrize("seed", range(6))
def test_squared_losses_reach_the_best_of_all_supports(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((25, 14)) + 2.0 * rng.standard_normal((25, 1))
    b = A[:, :3].sum(axis=1) + rng.standard_normal(25)
    w = sm.Variable(14)
    found = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 4).solve("exchange")
    best = min(least_squares(A, b, list(s)) for s in combinations(range(14), 4))
    assert found.value == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_groups_reach_the_best_of_all_supports(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(8), [1, 2, 3, 2, 1, 3, 2, 2])
    A = rng.standard_normal((40, labels.size)) + rng.standard_normal((40, 1))
    b = A[:, :4].sum(axis=1) + rng.standard_normal(40)
    w = sm.Variable(labels.size)
    loss = sm.squared_loss(A @ w, b)
    found = sm.Problem(sm.minimize(loss), sm.card(w, groups=labels) <= 3).solve("exchange")
    best = min(
        least_squares(A, b, np.flatnonzero(np.isin(labels, s))) for s in combinations(range(8), 3)
    )
    assert found.value == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(("loss", "seed"), [(sm.logistic_loss, 1), (sm.poisson_loss, 2)])
def test_smooth_losses_are_as_low_as_all_supports(loss: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, 10)) + rng.standard_normal((60, 1))
    y = (rng.random(60) < 1.0 / (1.0 + np.exp(-A[:, 0] - A[:, 1]))) * 1
    w, c = sm.Variable(10), sm.Variable()
    problem = sm.Problem(sm.minimize(loss(A @ w + c, y) + sm.ridge(w, 1e-2)), sm.card(w) <= 3)
    found, all_tried = problem.solve("exchange"), problem.solve("exhaustive")
    assert found.value == pytest.approx(all_tried.value, rel=1e-8)


def test_several_limits_prices_and_bounds_are_as_low_as_all_supports() -> None:
    rng = np.random.default_rng(4)
    A = rng.standard_normal((50, 10)) + rng.standard_normal((50, 1))
    b = A[:, :4] @ np.array([1.0, -1.0, 1.0, 0.5]) + 0.5 * rng.standard_normal(50)
    w = sm.Variable(10)
    loss = sm.squared_loss(A @ w, b)
    for goal, constraints in (
        (loss, [sm.card(w[:5]) <= 2, sm.card(w[5:]) <= 2]),
        (loss + 0.02 * sm.card(w), []),
        (loss, [sm.card(w) <= 3, w >= 0]),
        (loss, [sm.card(w) <= 3, w[0] + w[1] == 0]),
    ):
        problem = sm.Problem(sm.minimize(goal), constraints)
        found, all_tried = problem.solve("exchange"), problem.solve("exhaustive")
        assert found.value <= all_tried.value * (1.0 + 1e-7)


def test_the_same_seed_gives_the_same_answer_and_more_effort_no_worse_one() -> None:
    rng = np.random.default_rng(5)
    A, b = rng.standard_normal((40, 120)), rng.standard_normal(40)
    w = sm.Variable(120)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 6)
    once, again = problem.solve(), problem.solve()
    assert once.value == again.value
    low, high = problem.solve(effort="low"), problem.solve(effort="high")
    assert high.value <= once.value * (1.0 + 1e-9) <= low.value * (1.0 + 1e-8)


def test_order_and_units_of_columns_do_not_decide() -> None:
    rng = np.random.default_rng(6)
    A = rng.standard_normal((80, 60)) + rng.standard_normal((80, 1))
    b = A[:, :4].sum(axis=1) + rng.standard_normal(80)
    w = sm.Variable(60)
    plain = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 4).solve().value
    order, units = rng.permutation(60), 10.0 ** rng.uniform(-6, 6, 60)
    other = sm.squared_loss((A * units)[:, order] @ w, b)
    moved = sm.Problem(sm.minimize(other), sm.card(w) <= 4).solve().value
    assert moved == pytest.approx(plain, rel=1e-9)
