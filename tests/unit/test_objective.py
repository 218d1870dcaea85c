"""The objective by example: what it keeps, what it counts, what it claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import (
    Cardinality,
    DataFit,
    SparseRegression,
    Term,
    TwiceDifferentiable,
)
from sparsemodel.losses import CoxLoss, MultinomialLoss, SquaredLoss
from sparsemodel.numerics import RegressionObjective
from sparsemodel.testing.instances import catalogue, degenerate
from sparsemodel.testing.instances.problems import EXACT_STORAGES
from sparsemodel.testing.instances.reference import brute_force

ALL = (*catalogue.BASIC, *catalogue.STRUCTURED, *degenerate.DEGENERATE)


@pytest.mark.parametrize("maker", ALL, ids=lambda maker: maker.__name__)
def test_values_are_those_of_the_formulas(maker):
    instance = catalogue.instance(maker)
    objective = instance.objective()
    reference = brute_force(instance)
    for x in (np.zeros(instance.shape), reference.x):
        price = instance.sparsity.price * instance.sparsity.count(x)
        value = objective.point_from(x).value + price
        assert value == pytest.approx(instance.value(x), rel=1e-12, abs=1e-14)


def test_a_gradient_costs_half_a_pass_and_is_kept():
    objective = catalogue.instance(catalogue.squared).objective()
    point = objective.origin()
    assert objective.work.passes == 0.0
    first = objective.gradient(point)
    assert objective.work.passes == 0.5
    assert objective.gradient(point) is first
    assert objective.restricted_gradient(point, np.array([1, 3])).tolist() == first[[1, 3]].tolist()
    assert objective.work.passes == 0.5


def test_products_on_a_support_are_counted_where_columns_are_not_cheap():
    instance = catalogue.instance(catalogue.squared)
    dense, operator = instance.objective(), instance.objective(EXACT_STORAGES["operator"])
    for objective in (dense, operator):
        objective.point(np.array([0, 2]), np.ones(2))
    assert dense.work.passes == 0.0
    assert operator.work.passes == 0.5


def test_supports_may_change_in_any_order():
    """What is kept from the last support never leaks into the next one."""
    instance = catalogue.instance(catalogue.squared_ridge)
    kept = instance.objective()
    rng = np.random.default_rng(0)
    p = instance.sparsity.size
    for _ in range(40):
        support = np.flatnonzero(rng.uniform(size=p) < 0.5)
        values = rng.standard_normal(support.size)
        point = kept.point(support, values)
        fresh = instance.objective()
        other = fresh.point(support, values)
        assert point.value == pytest.approx(other.value, rel=1e-13)
        hessian = kept.hessian(point, support)
        assert np.allclose(hessian, fresh.hessian(other, support), rtol=1e-12, atol=1e-14)
        hessian[...] = np.nan  # the caller's own copy
        asked = np.flatnonzero(rng.uniform(size=p) < 0.5)
        gradient = kept.restricted_gradient(point, asked)
        assert np.allclose(gradient, fresh.gradient(other)[asked], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("maker", [catalogue.squared, catalogue.logistic_ridge])
def test_smoothness_bounds_every_hessian(maker):
    instance = catalogue.instance(maker)
    objective = instance.objective()
    bound = objective.smoothness()
    everything = np.arange(instance.sparsity.size)
    top = np.linalg.eigvalsh(objective.hessian(objective.origin(), everything))[-1]
    assert bound.kind in ("exact", "upper")
    assert bound.value >= top * (1 - 1e-12)


class Softplus(TwiceDifferentiable, DataFit):
    """The logarithm of a sum over all predictions: coupled, and of one column or several."""

    name = "softplus"

    def total(self, u, y, c):
        return float(np.log(np.exp(u).sum()))

    def gradient(self, u, y, c):
        return np.exp(u) / np.exp(u).sum()

    def hessian_product(self, u, y, c, v):
        p = self.gradient(u, y, c)
        p = p if u.ndim == v.ndim else p[:, None]
        return p * (v - (p * v).sum(axis=0 if u.ndim == 1 else None))


@pytest.mark.parametrize(
    ("loss", "columns"),
    [(SquaredLoss(), 3), (MultinomialLoss(3), 3), (CoxLoss(), 0), (Softplus(), 0), (Softplus(), 3)],
)
def test_hessians_in_full_are_their_products(loss, columns):
    rng, n, p = np.random.default_rng(2), 15, 6
    shape = (columns,) if columns else ()
    y = rng.normal(size=(n, *shape))
    y = np.arange(n) % 3.0 if loss.name == "multinomial_loss" else y
    y = np.column_stack([np.arange(n) % 7, np.arange(n) % 2]) if loss.name == "cox_loss" else y
    term = Term(DenseDesign(rng.normal(size=(n, p))), loss, 1.0 * y, rng.uniform(0.2, 2.0, n))
    form = SparseRegression(
        terms=(term,),
        ridge=rng.uniform(size=p),
        sparsity=Cardinality(size=p, k=3),
        outputs=max(columns, 1),
        matrix=columns > 0,
    )
    objective, support = RegressionObjective(form), np.array([0, 2, 5])
    at = objective.point(support, rng.normal(size=(3, *shape)))
    v = rng.normal(size=(3, *shape))
    matrix, product = objective.hessian(at, support), objective.hessian_product(at, support, v)
    np.testing.assert_allclose(matrix @ v.ravel(), product.ravel(), rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(matrix, matrix.T)


def test_strong_convexity_is_the_smallest_ridge():
    assert catalogue.instance(catalogue.ridge_vector).objective().strong_convexity() == 1e-3
    assert catalogue.instance(catalogue.squared).objective().strong_convexity() == 0.0
    assert catalogue.instance(catalogue.squared_intercept).objective().strong_convexity() == 0.0


def test_flags_follow_the_losses():
    def flags(maker):
        objective = catalogue.instance(maker).objective()
        return objective.quadratic, objective.smooth, objective.twice_differentiable

    assert flags(catalogue.two_terms) == (True, True, True)
    assert flags(catalogue.mixed_terms) == (False, True, True)
    assert flags(catalogue.hinge) == (False, False, False)


@pytest.mark.parametrize(
    "maker",
    [catalogue.squared_ridge, catalogue.logistic_ridge, catalogue.ridge_vector, catalogue.huber],
    ids=lambda maker: maker.__name__,
)
def test_bounds_that_come_with_gradients_hold(maker):
    instance = catalogue.instance(maker)
    objective = instance.objective()
    best = brute_force(instance).value
    rng = np.random.default_rng(1)
    objective.gradient(objective.origin())
    for _ in range(20):
        objective.gradient(objective.point_from(rng.standard_normal(instance.shape)))
    objective.gradient(objective.point_from(brute_force(instance).x))
    assert -np.inf < objective.bounds.value <= best + 1e-12 * abs(best)


def test_everything_allowed_makes_the_bound_tight():
    """With k = p the problem is convex and strongly so: the bound meets the minimum."""
    instance = catalogue.instance(catalogue.squared_ridge)
    p = instance.sparsity.size
    full = replace(instance, sparsity=Cardinality(p, p), planted=None)
    objective = full.objective()
    reference = brute_force(full)
    objective.gradient(objective.point_from(reference.x))
    assert objective.bounds.value == pytest.approx(reference.value, rel=1e-10)


def test_the_callers_support_and_values_are_copied_or_left_alone():
    objective = catalogue.instance(catalogue.squared).objective()
    support, values = np.array([1, 4]), np.array([2.0, -1.0])
    point = objective.point(support, values)
    values[:] = 0.0
    assert point.x[[1, 4]].tolist() == [2.0, -1.0]
