"""Losses with kinks, and next to having them: exact minima, proved ones, at any scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import sparsemodel as sm
from sparsemodel.interfaces import Point
from sparsemodel.losses import HuberLoss
from sparsemodel.numerics import RegressionObjective, minimise_restricted
from sparsemodel.numerics.minimisers.piecewise.scaled import minimise_pieces
from sparsemodel.testing.laws.loss_laws import check_pieces
from sparsemodel.testing.report import CheckFailure

N, P = 17, 4
KINDS = ("absolute", "quantile", "epsilon", "hinge")


def _loss(kind: str, u: Any, y: np.ndarray, weights: np.ndarray | None, size: float = 1.0) -> Any:
    if kind == "absolute":
        return sm.absolute_loss(u, y, weights=weights)
    if kind == "quantile":
        return sm.quantile_loss(u, y, tau=0.3, weights=weights)
    if kind == "epsilon":
        return sm.epsilon_insensitive_loss(u, y, epsilon=0.2 * size, weights=weights)
    if kind == "huber":
        return sm.huber_loss(u, y, delta=size, weights=weights)
    return sm.hinge_loss(u, np.sign(y), weights=weights)


def _minimised(goal: Any, limits: list[Any]) -> tuple[RegressionObjective, Point]:
    objective = RegressionObjective(sm.Problem(sm.minimize(goal), limits).form)
    every = np.arange(objective.shape[0])
    return objective, minimise_restricted(objective, every, objective.origin())


def _least(objective: RegressionObjective) -> float:
    """Return the minimum by a linear program: losses above every piece's two lines."""
    form = objective.form
    term, q = form.terms[0], objective.shape[0]
    A, n = term.design.to_array(), term.target.size
    rows, right = [], []
    for at, lower, upper in term.loss.pieces(term.target):
        for slope in (lower, upper):
            rows.append(np.hstack([slope[:, None] * A, -np.eye(n)]))
            right.append(slope * at)
    bounds = [(None, None)] * q
    if form.box is not None:
        bounds = list(zip(form.box.lower, form.box.upper, strict=True))
    found = linprog(
        np.concatenate([np.zeros(q), term.weights]),
        A_ub=np.concatenate(rows),
        b_ub=np.concatenate(right),
        bounds=[*bounds, *[(0.0, None)] * n],
    )
    return float(found.fun)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", range(6))
def test_the_minimum_is_that_of_a_linear_program_and_is_proved(kind: str, case: int) -> None:
    rng = np.random.default_rng(case)
    A = rng.standard_normal((N, P)) * 10.0 ** rng.uniform(-3.0, 3.0, P)
    if case == 1:
        A[:, 1] = 2.0 * A[:, 0]
    if case == 2:
        A = np.round(rng.standard_normal((N, P)))
    y = A @ (rng.standard_normal(P) / np.abs(A).max(axis=0)) + rng.standard_normal(N)
    weights = rng.uniform(0.1, 2.0, N) * (rng.random(N) < 0.8) if case in (2, 3) else None
    w, c = sm.Variable(P), sm.Variable()
    u = A @ w if case == 4 else A @ w + c
    limits = [w <= 0.3, w >= -0.1] if case in (3, 4) else []
    objective, point = _minimised(_loss(kind, u, y, weights), limits)
    assert point.value == pytest.approx(_least(objective), rel=1e-11, abs=1e-14)
    term = objective.form.terms[0]
    (slopes,) = point.duals
    counted = term.weights > 0.0
    a = np.divide(slopes, term.weights, out=np.zeros(N), where=counted)
    a = term.loss.project_dual(a, term.target)
    bound = -float(term.weights @ np.where(counted, term.loss.conjugate(a, term.target), 0.0))
    pull = term.design.to_array().T @ slopes
    if limits:
        box = objective.form.box
        movable = np.isfinite(box.lower)
        bound += float(np.minimum(pull * box.lower, pull * box.upper)[movable].sum())
        pull = pull[~movable]
    assert bound == pytest.approx(point.value, rel=1e-9, abs=1e-13)
    assert np.abs(pull).max(initial=0.0) <= 1e-9 * np.abs(term.design.to_array()).max()


@pytest.mark.parametrize("kind", [*KINDS, "huber"])
@pytest.mark.parametrize("size", [2.0**-498, 2.0**40, 2.0**498])
@pytest.mark.parametrize("height", [2.0**-498, 2.0**498])
def test_units_of_columns_and_targets_change_nothing(kind: str, size: float, height: float) -> None:
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((N, P)), rng.standard_normal(N)
    w, c = sm.Variable(P), sm.Variable()
    height = 1.0 if kind == "hinge" else height
    _, plain = _minimised(_loss(kind, A @ w + c, y, None), [])
    _, scaled = _minimised(_loss(kind, (A * size) @ w + c, y * height, None, height), [])
    grown = scaled.value / height if kind != "huber" else scaled.value / height / height
    assert grown == pytest.approx(plain.value, rel=1e-10)


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-8, 1e-150])
def test_narrow_huber_losses_come_near_the_absolute_loss(delta: float) -> None:
    rng = np.random.default_rng(5)
    A, y = rng.standard_normal((N, P)), rng.standard_t(2, N)
    w, c = sm.Variable(P), sm.Variable()
    _, absolute = _minimised(sm.absolute_loss(A @ w + c, y), [])
    _, huber = _minimised(sm.huber_loss(A @ w + c, y, delta=delta), [])
    # huber <= delta |r| <= huber + delta^2 / 2, and Newton's method ended 2e-4 above.
    rounding = 1e-13 * absolute.value
    assert huber.value / delta <= absolute.value + rounding
    assert absolute.value <= huber.value / delta + 0.5 * delta + rounding


@pytest.mark.parametrize("noise", [4.0, 1e3])
def test_newton_minimises_huber_losses_where_few_observations_are_near_the_target(
    noise: float,
) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, P))
    y = A @ rng.standard_normal(P) + noise * rng.standard_normal(200)
    objective, point = _minimised(sm.huber_loss(A @ sm.Variable(P), y), [])
    every = np.arange(P)
    there = minimise_pieces(objective, every, objective.origin(), None)
    assert there is not None
    assert point.value == pytest.approx(there.value, rel=1e-13)
    assert (point.duals is None) == (noise == 4.0)  # only the interior point method has them


@pytest.mark.parametrize("bounds", [False, True])
def test_few_squares_in_large_units_beside_a_huber_loss(bounds: bool) -> None:
    """Newton's method ended anywhere in the plane of the squares, 8 times above the minimum."""
    rng = np.random.default_rng(0)
    w = sm.Variable(6)
    u, y = rng.standard_normal((9, 6)) @ w, rng.standard_normal(9)
    squares = sm.squared_loss(rng.standard_normal((3, 6)) @ w, 1e3 * rng.standard_normal(3))
    limits = [w >= -1e6] if bounds else []
    objective, point = _minimised(squares + _loss("huber", u, y, None, 0.2), limits)
    every = np.arange(6)
    squared, huber = (term.design.to_array() for term in objective.form.terms)
    slopes = objective.prediction_gradients(point)
    gradient = squared.T @ slopes[0] + huber.T @ slopes[1]
    assert np.abs(gradient[every]).max() <= 1e-9 * np.abs(huber).max()


def test_targets_far_from_zero_keep_their_digits() -> None:
    rng = np.random.default_rng(6)
    A, y = rng.standard_normal((N, P)), rng.standard_normal(N)
    w, c = sm.Variable(P), sm.Variable()
    _, near = _minimised(sm.absolute_loss(A @ w + c, y), [])
    _, far = _minimised(sm.absolute_loss(A @ w + c, y + 2.0**30), [])
    assert far.value == pytest.approx(near.value, rel=1e-5)


def test_a_ridge_of_any_size_is_minimised_with_the_kinks() -> None:
    A, y = np.ones((3, 1)), np.array([1.0, 2.0, 4.0])
    w = sm.Variable(1)
    for ridge, w0 in ((1e-3, 2.0), (0.4, 1.0), (10.0, 0.1), (1e200, 1e-200)):
        _, point = _minimised(sm.absolute_loss(A @ w, y) + sm.ridge(w, ridge), [])
        assert point.x[0] == pytest.approx(w0, rel=1e-9), ridge


def test_the_law_of_pieces_sees_those_of_another_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    y, rng = np.linspace(-2.0, 2.0, 9), np.random.default_rng(0)
    check_pieces(HuberLoss(), y, rng)
    monkeypatch.setattr(HuberLoss, "softness", 0.5)
    with pytest.raises(CheckFailure, match="pieces add up to something else"):
        check_pieces(HuberLoss(), y, rng)


@pytest.mark.parametrize("loss", [sm.absolute_loss, sm.huber_loss])
def test_entries_that_are_zero_or_away_from_it_keep_away(loss) -> None:
    rng = np.random.default_rng(20)
    A = rng.standard_normal((20, 4))
    y = A @ [0.6, 0.05, 0.0, 0.0] + 0.1 * rng.standard_normal(20)
    w = sm.Variable(4)
    goal = sm.minimize(loss(A @ w, y) + sm.ridge(w, 1e-3))
    problem = sm.Problem(goal, sm.semicontinuous(w, 0.1, 0.3), sm.card(w) <= 3)
    values = [problem.solve(name).value for name in (None, "exhaustive")]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert np.all((w.value == 0.0) | ((w.value >= 0.1) & (w.value <= 0.3)))


@pytest.mark.parametrize("units", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("kind", ["absolute", "quantile"])
def test_where_all_can_be_fitted_the_ridge_chooses_the_fit(kind: str, units: float) -> None:
    rng = np.random.default_rng(25)
    A, y = rng.standard_normal((2, 5)), units * rng.standard_normal(2)
    w, shortest = sm.Variable(5), np.linalg.pinv(A) @ y  # optimal: its multipliers are small
    ridge = 1e-3 / units
    assert np.all(np.abs(ridge * np.linalg.solve(A @ A.T, y)) < 0.3 / 2)
    _, point = _minimised(_loss(kind, A @ w, y, None) + sm.ridge(w, ridge), [])
    assert point.x == pytest.approx(shortest, rel=1e-6, abs=1e-9 * units)
    assert point.value == pytest.approx(0.5 * ridge * float(shortest @ shortest), rel=1e-9)
