"""Paths along k: every loss and constraint, against brute force and single solves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.datasets import load_khan

N, P = 40, 7
RNG = np.random.default_rng(12)
A = RNG.standard_normal((N, P))
B = A @ np.array([2.0, 0.0, -1.0, 0.0, 0.5, 0.0, 0.3]) + 0.4 * RNG.standard_normal(N)
Y = np.sign(B)

Write = Callable[[sm.Variable], tuple[Any, list[Any]]]

PROBLEMS: dict[str, Write] = {
    "squared": lambda w: (sm.squared_loss(A @ w, B), []),
    "absolute": lambda w: (sm.absolute_loss(A @ w, B), []),
    "quantile": lambda w: (sm.quantile_loss(A @ w, B, tau=0.8), []),
    "insensitive": lambda w: (sm.epsilon_insensitive_loss(A @ w, B, epsilon=0.2), []),
    "hinge": lambda w: (sm.hinge_loss(A @ w, Y) + sm.ridge(w, 0.05), []),
    "bounds": lambda w: (sm.squared_loss(A @ w, B), [w <= 0.8, w >= -0.8]),
    "signs": lambda w: (sm.logistic_loss(A @ w, Y) + sm.ridge(w, 0.05), [w >= 0]),
    "a sum": lambda w: (sm.squared_loss(A @ w, B), [w.sum() == 1]),
    "a sum and kinks": lambda w: (sm.absolute_loss(A @ w, B), [w.sum() <= 1, w >= 0]),
    "a ball": lambda w: (sm.huber_loss(A @ w, B), [sm.norm(w) <= 1.5]),
    "a 1-norm": lambda w: (sm.squared_loss(A @ w, B), [sm.norm(w, 1) <= 2.0]),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_paths_are_as_good_as_the_best_supports(name: str) -> None:
    w = sm.Variable(P, name="w")
    goal, constraints = PROBLEMS[name](w)
    problem = sm.Problem(sm.minimize(goal), sm.card(w) <= 3, constraints)
    path = problem.path(range(1, 4) if name == "a 1-norm" else range(1, P + 1))
    assert np.all(np.diff(path.objective) <= 0.0)
    for k in (1, 3, P) if name != "a 1-norm" else (1,):
        best = sm.Problem(sm.minimize(goal), sm.card(w) <= k, constraints).solve("exhaustive")
        assert path.objective[k - 1] >= best.value - 1e-7 * abs(best.value)
        assert path.objective[k - 1] == pytest.approx(best.value, rel=0.02)
    assert all(len(support) <= k for k, support in zip(path.k, path.support, strict=True))


def test_values_are_those_of_the_supports() -> None:
    w = sm.Variable(P, name="w")
    goal, _ = PROBLEMS["absolute"](w)
    problem = sm.Problem(sm.minimize(goal), sm.card(w) <= 3)
    path = problem.path(range(1, 5))
    for value, support in zip(path.objective, path.support, strict=True):
        assert value == pytest.approx(problem.restricted(support).solve(), rel=1e-6)


def test_a_path_begins_where_it_can() -> None:
    w = sm.Variable(P, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, B))
    problem = sm.Problem(goal, sm.card(w) <= 3, w.sum() == 1, w >= 0, w <= 0.4)
    path = problem.path(range(3, P + 1))
    assert path.objective[0] == pytest.approx(problem.solve("exhaustive").value, rel=0.02)
    with pytest.raises(sm.InfeasibleError, match="begins at k = 2"):
        problem.path(range(2, P + 1))


def test_fifty_steps_cost_a_few_single_solves() -> None:
    X, classes = load_khan().X, load_khan().y
    y = (classes == classes[0]).astype(float)

    def problem(k: int) -> sm.Problem:
        w, c = sm.Variable(X.shape[1], name="w"), sm.Variable(name="c")
        goal = sm.minimize(sm.logistic_loss(X @ w + c, y) + sm.ridge(w, 1e-2))
        return sm.Problem(goal, sm.card(w) <= k)

    path = problem(5).path(range(1, 51), effort="low")
    one = problem(10).solve("gp > newton_swaps")
    assert path.passes < 4.0 * one.passes
    assert path.objective[9] <= 1.01 * one.value
