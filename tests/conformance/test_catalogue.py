"""What the backend suite takes for granted about its own instances."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemodel.testing.instances import catalogue, degenerate
from sparsemodel.testing.instances.problems import EXACT_STORAGES, SINGLE_STORAGES
from sparsemodel.testing.instances.reference import brute_force, minimum_on

SMALL = (*catalogue.BASIC, *catalogue.STRUCTURED)


@pytest.mark.parametrize("maker", SMALL, ids=lambda maker: maker.__name__)
def test_small_instances_are_easy(maker):
    """One support is clearly the best: nobody is judged by a near tie.

    Measured against the best point on the free coordinates: what an intercept explains says
    nothing about supports.
    """
    instance = catalogue.instance(maker)
    reference = brute_force(instance)
    nothing = instance.value(minimum_on(instance, instance.sparsity.free))
    assert reference.runner_up - reference.value >= 0.05 * (nothing - reference.value)
    if instance.planted is not None:
        assert reference.support.tolist() == instance.planted.tolist()


@pytest.mark.parametrize("maker", SMALL, ids=lambda maker: maker.__name__)
def test_reference_minima_are_stationary(maker):
    instance = catalogue.instance(maker)
    if instance.box is not None or not instance.objective().smooth:
        pytest.skip("bounds or kinks: the gradient need not vanish")
    reference = brute_force(instance)
    objective = instance.objective()
    support = reference.support
    start = objective.point(support, np.zeros_like(reference.x[support]))
    before = np.linalg.norm(objective.restricted_gradient(start, support))
    at = objective.point(support, reference.x[support])
    assert np.linalg.norm(objective.restricted_gradient(at, support)) <= 1e-8 * before


def test_hinge_reference_beats_every_perturbation():
    instance = catalogue.instance(catalogue.hinge)
    reference = brute_force(instance)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-3, 1e-5):
        for _ in range(50):
            x = reference.x.copy()
            x[reference.support] += size * rng.standard_normal(reference.support.size)
            assert instance.value(x) >= reference.value - 1e-9


def test_transformations_keep_their_promises():
    instance = catalogue.instance(catalogue.squared_groups)
    x = brute_force(instance).x
    order = np.random.default_rng(1).permutation(x.size)
    permuted = instance.permuted(order)
    assert permuted.value(x[order]) == pytest.approx(instance.value(x), rel=1e-12)
    assert permuted.sparsity.count(x[order]) == instance.sparsity.count(x)
    assert instance.rescaled(1e6).value(x / 1e6) == pytest.approx(instance.value(x), rel=1e-12)
    assert instance.with_objective_times(3.0).value(x) == pytest.approx(3 * instance.value(x))
    target = instance.with_target_times(10.0)
    assert target.value(10 * x) == pytest.approx(100 * instance.value(x), rel=1e-12)


@pytest.mark.parametrize("name", [*EXACT_STORAGES, *SINGLE_STORAGES])
def test_storages_hold_the_entries(name):
    array = np.array([[1.5, -2.0, 0.0], [0.25, 4.0, 1.0]])
    storage = (EXACT_STORAGES | SINGLE_STORAGES)[name]
    assert np.allclose(storage(array).to_array(), array, rtol=1e-12)


def test_instances_cannot_be_written_to():
    for maker in (*SMALL, *catalogue.WIDE, *degenerate.DEGENERATE):
        for array in catalogue.instance(maker).arrays().values():
            assert not array.flags.writeable


def test_a_minimum_on_no_support_is_zero():
    instance = catalogue.instance(catalogue.squared)
    assert not np.any(minimum_on(instance, np.arange(0)))
