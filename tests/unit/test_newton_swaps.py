"""Swaps priced by the second-order model: the model, the prices, and what the search reaches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import Context
from sparsemodel.numerics import (
    QuadraticSwaps,
    RegressionObjective,
    minimise_on_support,
    quadratic_model,
)
from sparsemodel_backends.newton_swaps import NewtonSwaps

LOSSES = {
    "squared": sm.squared_loss,
    "logistic": sm.logistic_loss,
    "poisson": sm.poisson_loss,
    "huber": sm.huber_loss,
    "squared hinge": sm.squared_hinge_loss,
}


def posed(loss: str, seed: int, n: int = 40, p: int = 9, k: int = 3) -> sm.Problem:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p))
    A[:, 1] = A[:, 0] + 0.5 * A[:, 1]
    z = A[:, :3] @ [1.0, -1.0, 0.7]
    signs = np.where(z + rng.standard_normal(n) > 0.0, 1.0, -1.0)
    y = {"logistic": signs, "squared hinge": signs, "poisson": rng.poisson(np.exp(0.5 * z))}
    w, c = sm.Variable(p), sm.Variable()
    objective = LOSSES[loss](A @ w + c, y.get(loss, z + rng.standard_normal(n)))
    return sm.Problem(sm.minimize(objective + sm.ridge(w, 1e-2)), sm.card(w) <= k)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_model_has_the_derivatives_of_the_objective(loss: str) -> None:
    objective = RegressionObjective(posed(loss, 0).form)
    support = np.array([0, 3, 5, 9])
    point = objective.point(support, np.array([0.3, -0.2, 0.5, 0.1]))
    found = quadratic_model(objective, point)
    assert found is not None
    model, at = found
    everything = np.arange(10)
    np.testing.assert_allclose(
        model.hessian(at, everything), objective.hessian(point, everything), atol=1e-7
    )
    at = at.with_gradient(None)  # computed from the working response this time
    np.testing.assert_allclose(model.gradient(at), objective.gradient(point), atol=1e-7)


def test_prices_are_exact_for_the_squared_loss() -> None:
    objective = RegressionObjective(posed("squared", 1).form)
    support = np.array([0, 4, 6, 9])
    point = minimise_on_support(objective, support, objective.origin())
    found = quadratic_model(objective, point)
    assert found is not None
    engine = QuadraticSwaps.start(*found)
    assert engine is not None
    positions, costs, inverse = engine.removals()
    into, gains = engine.best_insertions(positions, costs, inverse)
    for position, best, gain in zip(positions, into, gains, strict=True):
        kept = np.delete(support, position)
        values = {
            i: minimise_on_support(objective, np.sort(np.append(kept, i)), point).value
            for i in range(9)
            if i not in support
        }
        exact = point.value - min(values.values())
        if gain > 0.0 or exact > 0.0:
            assert best == min(values, key=values.__getitem__)
            assert gain == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_single_exchange_is_left_that_helps(loss: str) -> None:
    """Brute force over all exchanges from where the search ended."""
    for seed in range(3):
        problem = posed(loss, seed)
        objective = RegressionObjective(problem.form)
        end = NewtonSwaps().solve(objective, Context(minimise_on_support)).point
        counted = end.support[end.support < 9]
        for out, into in itertools.product(counted, np.setdiff1d(np.arange(9), counted)):
            trial = np.sort(np.append(end.support[end.support != out], into))
            value = minimise_on_support(objective, trial, end).value
            assert value >= end.value * (1.0 - 1e-9)


def test_never_worse_than_its_start_and_often_better() -> None:
    better = 0
    for seed in range(6):
        problem = posed("logistic", seed, n=60, p=80, k=6)
        start = problem.solve("sp")
        swapped = problem.solve("sp > newton_swaps")
        assert swapped.value <= start.value * (1.0 + 1e-12)
        better += swapped.value < start.value * (1.0 - 1e-6)
    assert better >= 2


def test_bad_options_are_refused() -> None:
    with pytest.raises(sm.ModelError, match="candidates"):
        NewtonSwaps(candidates=0)
