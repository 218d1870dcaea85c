"""Exchanges that a model prices and the objective judges: nearly separable classes."""

from __future__ import annotations

import numpy as np

import sparsemodel as sm
from sparsemodel.numerics import ExchangeTrials, RegressionObjective, Rounds, minimise_restricted


def separable(n: int = 80, p: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    A = rng.standard_normal((n, p))
    return A, np.sign(A[:, :8] @ np.tile([1.0, -1.0], 4))


def test_nearly_separable_classes_cost_less_with_more_columns() -> None:
    A, y = separable()
    w = sm.Variable(A.shape[1], name="w")
    goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-6))
    values = [sm.Problem(goal, sm.card(w) <= k).solve(effort="low").value for k in (8, 14, 20)]
    assert values == sorted(values, reverse=True)


def test_a_support_grown_from_nothing_replaces_a_worse_one_only() -> None:
    A, y = separable()
    w = sm.Variable(A.shape[1], name="w")
    goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-6))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w) <= 8).form)
    trials = ExchangeTrials(objective, minimise_restricted, 6, lambda: False)
    wrong = objective.point(np.arange(40, 48), np.zeros(8))
    found = trials.regrown(trials.debiased(wrong), Rounds(1.0, 100))
    assert found is not None
    assert found.support.tolist() == list(range(8))
    assert trials.regrown(found, Rounds(1.0, 100)) is None, "no better than itself"
