"""Limits that no choice can meet are refused by what adds up to how much."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm

RETURNS = np.random.default_rng(0).standard_normal((80, 30))


def test_names_of_a_portfolio_cannot_add_up_to_one() -> None:
    x = cp.Variable(30, nonneg=True)
    goal = cp.Minimize(cp.sum_squares(RETURNS @ x))
    rows = [cp.sum(x) == 1, x <= 0.05, sm.card(x) <= 10]
    words = r"must be at least 1, and 10 nonzero entries .* at most 0\.5\. Allow at least 20"
    with pytest.raises(sm.InfeasibleError, match=words):
        sm.Problem(goal, rows).solve()
    rows[1] = x <= 0.02
    with pytest.raises(sm.InfeasibleError, match="No number of them is enough"):
        sm.Problem(goal, rows).solve()
    rows[1:] = [x <= 0.1, sm.card(x) <= 10]  # just enough
    assert sm.Problem(goal, rows).solve().chosen == 10


def test_a_path_begins_where_it_is_feasible() -> None:
    w, k = sm.Variable(30, name="w", nonneg=True), sm.Parameter(integer=True)
    goal = sm.minimize(sm.squared_loss(RETURNS @ w, np.zeros(80)))
    problem = sm.Problem(goal, w.sum() == 1, w <= 0.2, sm.card(w) <= k)
    with pytest.warns(UserWarning, match=r"k = 2, 3, 4: no solution.*Allow at least 5"):
        path = problem.path(k, range(2, 9))
    assert path.k.tolist() == [5, 6, 7, 8]
    assert sorted(path.refused) == [2, 3, 4]


def test_the_other_side_and_what_is_always_in() -> None:
    w, c = sm.Variable(6, name="w"), sm.Variable(name="c")
    A = RETURNS[:, :6]
    goal = sm.minimize(sm.squared_loss(A @ w + c, A[:, 0]))
    problem = sm.Problem(goal, w.sum() <= -1.0, w >= -0.3, w <= 0.3, sm.card(w) <= 2)
    words = r"must be at most -1, and 2 nonzero entries .* at least -0\.6\. Allow at least 4"
    with pytest.raises(sm.InfeasibleError, match=words):
        problem.solve()
    free = sm.Problem(goal, w.sum() + c <= -1.0, w >= -0.3, w <= 0.3, sm.card(w) <= 2)
    assert np.isfinite(free.solve().value)  # the constant has no bounds
