"""One curvature for all columns of a matrix variable, and the Hessians it stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import sparsemodel as sm
from sparsemodel.numerics import RegressionObjective, minimise_on_support
from sparsemodel.numerics.curvatures.shared import shared_curvature
from sparsemodel.numerics.search.local_model import LocalModels

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
    models = LocalModels(objective)
    gains = models.at(start).prices(np.empty(0, dtype=np.intp)).addition
    insertions = gains[models.layout.model_of_units]
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
    units = np.broadcast_to(np.eye(4)[:, None], (4, len(A), 4))
    pieces = (term.loss, point.state[0], term.target, term.weights)
    blocks = np.stack([_product(*pieces, unit) for unit in units], axis=2)
    (h,), C = shared.weights, shared.root @ shared.root.T
    np.testing.assert_allclose(np.sum(h) * C, blocks.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(h * np.trace(C), np.trace(blocks, axis1=1, axis2=2), atol=1e-12)
    np.testing.assert_allclose(shared.diagonals[0], np.einsum("iaa->ia", blocks), atol=1e-12)
    g = rng.standard_normal((P, 4))
    g -= g.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(shared.gradient(g) @ shared.root.T, g, atol=1e-12)
    assert shared.change(shared) == 0.0


def _product(loss: Any, u: Any, y: Any, c: Any, v: Any) -> Any:
    return loss.hessian_product(u, y, c, v)


@pytest.mark.parametrize("sparse", [False, True])
def test_hessians_of_outputs_are_those_of_their_products(
    monkeypatch: pytest.MonkeyPatch, sparse: bool
) -> None:
    rng = np.random.default_rng(9)
    A = rng.standard_normal((30, P)) * (rng.random((30, P)) < (0.2 if sparse else 1.0))
    w, weights = sm.Variable((P, 3)), rng.uniform(0.0, 2.0, 30) * (np.arange(30) % 5 > 0)
    u = (scipy.sparse.csr_array(A) if sparse else A) @ w
    y = rng.integers(0, 3, len(A))
    goal = sm.minimize(sm.multinomial_loss(u, y, weights=weights) + sm.ridge(w, 0.1))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w, axis=1) <= 2).form)
    point, support = objective.point_from(rng.standard_normal((P, 3))), np.array([1, 4, 5])
    v = rng.standard_normal((3, 3))
    product = objective.hessian_product(point, support, v)
    for at_once in (2**17, 50, 0):  # in one product, by blocks of rows, and sparse ones one by one
        monkeypatch.setattr("sparsemodel.numerics.objectives.hessians._AT_ONCE", at_once)
        hessian = objective.hessian(point, support)
        np.testing.assert_allclose(hessian @ v.ravel(), product.ravel(), atol=1e-13)


def test_hessians_of_many_classes_need_no_products_pair_by_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    A = rng.standard_normal((2000, 10))
    w = sm.Variable((10, 10))
    goal = sm.minimize(sm.multinomial_loss(A @ w, rng.integers(0, 10, len(A))) + sm.ridge(w, 0.1))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w, axis=1) <= 9).form)
    point = objective.point_from(rng.standard_normal((10, 10)))
    monkeypatch.setattr(type(objective.form.terms[0].design), "gram", None)
    objective.hessian(point, np.arange(10))  # a weighted Gram matrix for each of 55 pairs before
