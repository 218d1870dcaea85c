"""Values agree with the formulas, derivatives with differences, free bounds with brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemodel.numerics import minimise_on_support
from sparsemodel.testing.instances.problems import EXACT_STORAGES
from sparsemodel.testing.instances.reference import brute_force, minimum_on
from tests.properties.strategies import instances, supports

storages = st.sampled_from(sorted(EXACT_STORAGES.items())).map(lambda item: item[1])


def _point(instance, objective, support, seed):
    values = np.random.default_rng(seed).standard_normal((support.size, *instance.shape[1:]))
    return objective.point(support, values)


@given(instances(), storages, st.data())
def test_values_and_gradients(instance, storage, data):
    objective = instance.objective(storage)
    p = instance.sparsity.size
    point = _point(instance, objective, data.draw(supports(p)), 0)
    assert point.value == pytest.approx(instance.value(point.x), rel=1e-9, abs=1e-9)
    part = data.draw(supports(p))
    # Asked first for a part of it, while nothing is kept; then for all.
    restricted = objective.restricted_gradient(point, part)
    gradient = objective.gradient(point)
    assert np.allclose(restricted, gradient[part], rtol=1e-9, atol=1e-9)
    direction = np.random.default_rng(1).standard_normal(instance.shape)
    step = 1e-6
    ahead, behind = (instance.value(point.x + t * direction) for t in (step, -step))
    slope = (ahead - behind) / (2 * step)
    assert slope == pytest.approx(np.vdot(gradient, direction), rel=1e-5, abs=1e-5)


@given(instances(), storages, st.data())
def test_hessians_agree_with_each_other_and_with_differences(instance, storage, data):
    objective = instance.objective(storage)
    p = instance.sparsity.size
    support = data.draw(supports(p, min_size=1))
    point = _point(instance, objective, support, 2)
    v = np.random.default_rng(3).standard_normal(point.x[support].shape)
    product = objective.hessian_product(point, support, v)
    matrix = objective.hessian(point, support)
    assert np.allclose(matrix @ v.ravel(), product.ravel(), rtol=1e-9, atol=1e-9)
    assert np.allclose(matrix, matrix.T, rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(matrix)[0] > 0.0  # a ridge everywhere
    diagonal = objective.hessian_diagonal(point, support)
    assert np.allclose(diagonal.ravel(), np.diag(matrix), rtol=1e-9, atol=1e-9)
    everywhere = objective.full_hessian_product(point, support, v)
    assert everywhere.shape == instance.shape
    assert np.allclose(everywhere[support], product, rtol=1e-9, atol=1e-9)


@given(instances(), st.data())
def test_a_minimiser_on_a_support_is_one(instance, data):
    objective = instance.objective()
    support = data.draw(supports(instance.sparsity.size))
    start = _point(instance, objective, data.draw(supports(instance.sparsity.size)), 4)
    point = minimise_on_support(objective, support, start)
    assert np.array_equal(point.support, support)
    expected = instance.value(minimum_on(instance, support))
    scale = abs(instance.value(np.zeros(instance.shape))) + abs(expected)
    assert instance.value(point.x) == pytest.approx(expected, abs=1e-9 * scale)
    kept = objective.point(support, start.x[support])
    assert point.value <= kept.value + 1e-12 * abs(kept.value)


@given(instances(max_size=4))
def test_free_bounds_are_below_the_minimum(instance):
    objective = instance.objective()
    best = brute_force(instance).value
    slack = 1e-9 * (abs(best) + abs(instance.value(np.zeros(instance.shape))))
    assert objective.infimum() <= best + slack
    if instance.sparsity.free.size == 0:  # the bound is only claimed where these are stationary
        objective.gradient(objective.origin())
        start = minimise_on_support(objective, np.arange(instance.shape[0]), objective.origin())
        objective.gradient(start)
        assert objective.bounds.value <= best + slack
