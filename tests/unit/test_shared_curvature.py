"""One curvature for all columns of a matrix variable, and the Hessians it stands for."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.numerics import RegressionObjective, minimise_on_support
from sparsemodel.numerics.curvatures.shared import shared_curvature
from sparsemodel.numerics.exchange.models import ExchangeModels

P = 9


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("intercepts", [False, True])
def test_rows_for_observations_that_are_alike_gain_what_the_second_order_model_says(
    classes: int, intercepts: bool
) -> None:
    rng = np.random.default_rng(7)
    A = rng.standard_normal((30, P))
    y = np.append(np.arange(classes), np.minimum(rng.poisson(0.5, len(A) - classes), classes - 1))
    w, b = sm.Variable((P, classes)), sm.Variable((1, classes))
    u = A @ w + np.ones((len(A), 1)) @ b if intercepts else A @ w
    goal = sm.minimize(sm.multinomial_loss(u, y) + sm.ridge(w, 1e-9))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w, axis=1) <= 2).form)
    free = objective.cardinality.free
    start = minimise_on_support(objective, free, objective.origin())
    insertions = ExchangeModels(objective).insertions(start)
    for unit in range(P):
        together = np.union1d(free, unit)
        hessian = objective.hessian(start, together)
        g = objective.gradient(start)[together].ravel()
        exact = 0.5 * float(g @ np.linalg.pinv(hessian, rcond=1e-7) @ g)
        assert insertions[unit] == pytest.approx(exact, rel=1e-5)


def test_a_shared_curvature_has_the_sum_and_the_traces_of_all_blocks() -> None:
    rng = np.random.default_rng(8)
    A = rng.standard_normal((30, P))
    y, weights = rng.integers(0, 4, len(A)), rng.uniform(0.0, 2.0, len(A))
    w = sm.Variable((P, 4))
    goal = sm.minimize(sm.multinomial_loss(A @ w, y, weights=weights))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w, axis=1) <= 2).form)
    point = objective.point_from(rng.standard_normal((P, 4)))
    (term,), shared = objective.form.terms, shared_curvature(objective, point)
    blocks = term.loss.hessian_blocks(point.state[0], term.target, term.weights)
    (h,), C = shared.weights, shared.root @ shared.root.T
    np.testing.assert_allclose(np.sum(h) * C, blocks.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(h * np.trace(C), np.trace(blocks, axis1=1, axis2=2), atol=1e-12)
    np.testing.assert_allclose(shared.diagonals[0], np.einsum("iaa->ia", blocks), atol=1e-12)
    g = rng.standard_normal((P, 4))
    g -= g.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(shared.gradient(g) @ shared.root.T, g, atol=1e-12)
    assert shared.change(shared) == 0.0


def test_blocks_of_outputs_are_the_same_in_one_product_and_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(9)
    A = rng.standard_normal((30, P))
    w = sm.Variable((P, 3))
    goal = sm.minimize(sm.multinomial_loss(A @ w, rng.integers(0, 3, len(A))) + sm.ridge(w, 0.1))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w, axis=1) <= 2).form)
    point, support = objective.point_from(rng.standard_normal((P, 3))), np.array([1, 4, 5])
    at_once = objective.hessian(point, support)
    monkeypatch.setattr("sparsemodel.numerics.objectives.outputs._AT_ONCE", 0)
    np.testing.assert_allclose(objective.hessian(point, support), at_once, atol=1e-13)
    v = rng.standard_normal((3, 3))
    product = objective.hessian_product(point, support, v)
    np.testing.assert_allclose(at_once @ v.ravel(), product.ravel(), atol=1e-12)
