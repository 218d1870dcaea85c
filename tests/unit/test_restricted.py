"""Minimisation on a support, against SciPy and against what makes it hard."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import SeparableDataError, UnboundedError
from sparsemodel.numerics import RegressionObjective, minimise_on_support
from sparsemodel.numerics.minimisers import few_columns
from sparsemodel.numerics.minimisers import newton as module
from sparsemodel.numerics.minimisers.newton import factored
from sparsemodel.testing.instances import catalogue, degenerate
from sparsemodel.testing.instances.problems import EXACT_STORAGES
from sparsemodel.testing.instances.reference import minimum_on

SMOOTH = [
    maker
    for maker in (*catalogue.BASIC, *catalogue.STRUCTURED, *degenerate.DEGENERATE)
    if catalogue.instance(maker).objective().twice_differentiable
    and catalogue.instance(maker).box is None
]


def _close(instance, x, expected):
    scale = abs(instance.value(np.zeros(instance.shape))) + abs(instance.value(expected))
    assert instance.value(x) == pytest.approx(instance.value(expected), abs=1e-10 * scale)


@pytest.mark.parametrize("maker", SMOOTH, ids=lambda maker: maker.__name__)
def test_agrees_with_scipy_on_all_and_on_some(maker):
    instance = catalogue.instance(maker)
    objective = instance.objective()
    p = instance.sparsity.size
    for support in (np.arange(p), np.arange(0, p, 2), np.arange(p - 1, p)):
        point = minimise_on_support(objective, support, objective.origin())
        _close(instance, point.x, minimum_on(instance, support))
        assert np.array_equal(point.support, support)


def test_an_empty_support():
    objective = catalogue.instance(catalogue.squared).objective()
    point = minimise_on_support(objective, np.arange(0), objective.origin())
    assert not np.any(point.x)
    assert point.value == pytest.approx(objective.origin().value)


@pytest.mark.parametrize("maker", [catalogue.squared_ridge, catalogue.logistic_ridge])
def test_the_gradient_vanishes_to_the_accuracy_of_the_arithmetic(maker):
    objective = catalogue.instance(maker).objective()
    support = np.arange(4)
    before = np.linalg.norm(objective.gradient(objective.origin())[support])
    point = minimise_on_support(objective, support, objective.origin())
    assert np.linalg.norm(objective.restricted_gradient(point, support)) <= 1e-12 * before


def test_a_minimiser_is_left_where_it_is():
    objective = catalogue.instance(catalogue.logistic_ridge).objective()
    first = minimise_on_support(objective, np.arange(4), objective.origin())
    again = minimise_on_support(objective, np.arange(4), first)
    assert np.allclose(again.x, first.x, rtol=1e-12)
    assert again.value <= first.value * (1 + 1e-15)


def test_a_tolerance_saves_work_and_is_kept():
    objective = catalogue.instance(catalogue.logistic_ridge).objective()
    support = np.arange(6)
    before = objective.work.factorizations
    rough = minimise_on_support(objective, support, objective.origin(), tol=1e-2)
    spent = objective.work.factorizations - before
    minimise_on_support(objective, support, objective.origin())
    assert spent < objective.work.factorizations - before - spent
    scale = np.linalg.norm(objective.gradient(objective.origin()))
    assert np.linalg.norm(objective.restricted_gradient(rough, support)) <= 1e-2 * scale


@pytest.mark.parametrize("storage", EXACT_STORAGES)
@pytest.mark.parametrize(
    "maker",
    [catalogue.squared_ridge, catalogue.logistic_ridge, catalogue.squared_rows],
    ids=lambda maker: maker.__name__,
)
def test_conjugate_gradients_agree_with_the_factorisation(maker, storage, monkeypatch):
    instance = catalogue.instance(maker)
    objective = instance.objective(EXACT_STORAGES[storage])
    support = np.arange(instance.sparsity.size)
    monkeypatch.setattr(module, "DIRECT_LIMIT", 0)
    point = minimise_on_support(objective, support, objective.origin())
    assert objective.work.factorizations == 0
    _close(instance, point.x, minimum_on(instance, support))


def test_columns_of_very_different_units():
    instance = catalogue.instance(catalogue.squared)
    p = instance.sparsity.size
    scaled = instance.rescaled(np.geomspace(1e-8, 1e8, p))
    objective = scaled.objective()
    point = minimise_on_support(objective, np.arange(p), objective.origin())
    expected = minimum_on(instance, np.arange(p))
    assert np.allclose(point.x * np.geomspace(1e-8, 1e8, p), expected, rtol=1e-8)


def test_separable_classes_without_ridge_end():
    """There is no minimiser: the loss goes to zero, or an error of the library says so."""
    instance = catalogue.instance(degenerate.separable)
    objective = RegressionObjective(replace(instance.form(), ridge=np.zeros(6)))
    point = None
    with contextlib.suppress(SeparableDataError, UnboundedError):
        point = minimise_on_support(objective, np.arange(6), objective.origin())
    if point is not None:
        assert np.all(np.isfinite(point.x))
        assert 0.0 <= point.value < 1e-3


@pytest.mark.parametrize("name", ["poisson", "negative_binomial"])
def test_bounds_that_throw_a_prediction_where_it_is_flat(name: str) -> None:
    """Between bounds the first step leaves u = -199, where the next one is exp(199) long."""
    w, c = sm.Variable(2), sm.Variable()
    counts = getattr(sm, f"{name}_loss")(np.array([[1.5, -1.48]]) @ w + c, [2.0])
    goal = sm.minimize(counts + sm.squared_loss(np.eye(2) @ w, [1e4, 1e4]))
    problem = sm.Problem(goal, sm.card(w) <= 2, w >= -1.32, w <= 1.24)
    solution = problem.solve()
    assert float(c.value) + 0.02 * 1.24 == pytest.approx(np.log(2.0), abs=1e-6)
    assert solution.status == "optimal (proved)"


def test_factored_solves_singular_systems_with_the_shortest_step():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((6, 3))
    hessian = half @ half.T
    d = np.sqrt(np.diag(hessian))
    right = hessian @ rng.standard_normal(6)
    step = factored(hessian)(right)
    assert np.allclose(hessian @ step, right, rtol=1e-9, atol=1e-9)
    shortest = np.linalg.pinv(hessian / np.outer(d, d), rcond=1e-10) @ (right / d) / d
    assert np.allclose(step, shortest, rtol=1e-7, atol=1e-9)


def test_factored_with_zero_rows_and_in_matrix_shape():
    hessian = np.diag([4.0, 0.0, 2.0, 1.0])
    right = np.array([[4.0, 0.0], [2.0, 3.0]])
    assert np.allclose(factored(hessian)(right), [[1.0, 0.0], [1.0, 3.0]])


@pytest.mark.parametrize("far", [0.0, 1e6], ids=["centred", "far from zero"])
@pytest.mark.parametrize("units", [1e-6, 1.0, 1e6])
def test_a_few_columns_have_the_minimiser_of_the_general_method(far, units, monkeypatch):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 6))
    y = (rng.random(40) < 1.0 / (1.0 + np.exp(-A[:, 0]))).astype(float)
    w, b = sm.Variable(6, name="w"), sm.Variable(name="b")
    goal = sm.logistic_loss((A + far) * units @ w + b, y) + sm.ridge(w, 1e-3 * units**2)
    problem = sm.Problem(sm.minimize(goal), sm.card(w) <= 3)
    support = np.arange(7)
    _, reduced = problem._compiled().analysis()
    found = []
    for entries in (2**16, 0):
        monkeypatch.setattr(few_columns, "_ENTRIES", entries)
        objective = RegressionObjective(reduced.form)
        quick = few_columns.minimise_few(objective, support, objective.origin(), 1e-13)
        assert (quick is None) == (entries == 0)
        found.append(minimise_on_support(objective, support, objective.origin()))
    quick, general = found
    assert quick.value == pytest.approx(general.value, rel=1e-13)
    np.testing.assert_allclose(quick.x * units, general.x * units, rtol=1e-6, atol=1e-8)
