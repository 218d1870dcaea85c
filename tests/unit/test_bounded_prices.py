"""Prices of exchanges where coordinates have bounds, some of which hold members of the support."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

import sparsemodel as sm
from sparsemodel.interfaces import Box, Point
from sparsemodel.numerics import RegressionObjective, minimise_restricted
from sparsemodel.numerics.exchange.models import ExchangeModels

P = 9


def data(seed: int, n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, P))
    A[:, 1] = A[:, 0] + 0.3 * A[:, 1]
    return A, rng.standard_normal(n)


def test_steps_of_insertions_are_held_by_bounds() -> None:
    A, y = data(7)
    A -= A.mean(axis=0)
    A = np.linalg.qr(A)[0]  # orthonormal: bounds on one coordinate do not move the others
    w = sm.Variable(P)
    form = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 4).form
    lower, upper = np.full(P, -0.3), np.full(P, 0.2)
    lower[::2] = 0.0
    bounded = RegressionObjective(replace(form, box=Box(lower, upper)))
    free = RegressionObjective(form)
    support = np.array([1, 4])
    values = np.clip(A[:, support].T @ y, lower[support], upper[support])
    point = bounded.point(support, values)
    models = ExchangeModels(bounded)
    units, costs, gains = models.exchanges(point)
    insertions = models.insertions(point)
    for into in np.setdiff1d(np.arange(P), support):
        best = np.clip(A[:, into] @ y, lower[into], upper[into])
        for place, unit in enumerate(units):
            x = point.x.copy()
            x[unit], x[into] = 0.0, best
            gain = point.value - free.point_from(x).value
            assert gains[place, into] == pytest.approx(gain, abs=1e-10)
        x = point.x.copy()
        x[into] = best
        expected = point.value - free.point_from(x).value
        assert insertions[into] == pytest.approx(expected, abs=1e-10)
    assert costs.shape == (2,)


@pytest.mark.parametrize("least", [0.0, 0.4])
def test_members_held_by_a_bound_are_priced_as_held(least: float) -> None:
    A, y = data(3)
    y = y + (2.0 if least == 0.0 else -1.1) * A[:, 0]
    w = sm.Variable(P)
    form = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 3).form
    lower, upper = np.full(P, -np.inf), np.full(P, np.inf)
    lower[0], upper[0] = 0.0, 0.7  # the only coordinate that has bounds
    sizes = np.where(np.arange(P) == 0, least, 0.0)
    objective = RegressionObjective(replace(form, box=Box(lower, upper, sizes if least else None)))

    def minimum(*support: int) -> Point:
        places = np.array(sorted(support))
        return minimise_restricted(objective, places, objective.point_from(start(places)))

    def start(support: np.ndarray) -> np.ndarray:
        x = np.zeros(P)
        x[support[support == 0]] = 0.5
        return x

    point = minimum(0, 1, 4)
    assert point.x[0] == (least or 0.7), "it is held"
    models = ExchangeModels(objective)
    units, costs, gains = models.exchanges(point)
    insertions = models.insertions(point)
    for place, unit in enumerate(units):
        rest = [int(other) for other in units if other != unit]
        assert costs[place] == pytest.approx(minimum(*rest).value - point.value, abs=1e-8)
        for into in (2, 3, 5, 6, 7, 8):
            gain = point.value - minimum(*rest, into).value
            assert gains[place, into] == pytest.approx(gain, abs=1e-8)
    for into in (2, 3, 5, 6, 7, 8):
        gain = point.value - minimum(0, 1, 4, into).value
        assert insertions[into] == pytest.approx(gain, abs=1e-8)


def test_a_search_goes_on_from_a_support_that_perturbations_led_to() -> None:
    """It ended 28 % higher at the first one that was better than where exchanges had ended."""
    rng = np.random.default_rng(6)
    X = lfilter([1.0], [1.0, -0.9], rng.standard_normal((50, 12)), axis=0)
    A = np.hstack([X[10 - lag : 50 - lag] for lag in range(10)])
    x = np.zeros(120)
    x[rng.choice(120, 5, replace=False)] = np.abs(rng.standard_normal(5))
    y = A @ x + rng.standard_normal(40)
    w = sm.Variable(120)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), [sm.card(w) <= 5, w >= 0])
    assert problem.solve().value <= 0.28956921 + 1e-6


def test_perturbations_under_an_equation_are_as_many_as_without_where_data_are_few() -> None:
    rng = np.random.default_rng(19)
    t = np.arange(60)[:, None] / 60
    A = np.exp(-np.square((t - rng.random(60)) / 0.1) / 2.0)
    A *= np.cos(2.0 * np.pi * rng.uniform(0.0, 15.0, 60) * t)
    y = A[:, :3].mean(axis=1) + 0.05 * rng.standard_normal(60)
    w = sm.Variable(60)
    goal = sm.minimize(sm.squared_loss(A @ w, y))
    problem = sm.Problem(goal, [sm.card(w) <= 5, np.ones(60) @ w == 1, w >= 0])
    assert problem.solve().value <= 0.00080968 + 1e-7
