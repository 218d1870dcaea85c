"""Restricted smoothness by the truncated power method, against all small supports."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemodel.interfaces import Cardinality, Context
from sparsemodel.losses import LogisticLoss, SquaredLoss
from sparsemodel.numerics import minimise_on_support, restricted_smoothness
from sparsemodel.testing.instances import catalogue
from sparsemodel.testing.instances.problems import Data, Instance
from sparsemodel_backends.grahtp import GraHTP


def largest(objective, at, k):
    """Return the largest eigenvalue of the Hessian over all supports of ``k`` coordinates."""
    p = objective.shape[0]
    supports = combinations(range(p), k)
    return max(np.linalg.eigvalsh(objective.hessian(at, np.array(s)))[-1] for s in supports)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([SquaredLoss, LogisticLoss]))
def test_the_estimate_is_never_above_the_constant(seed, k, loss):
    rng = np.random.default_rng(seed)
    array = rng.standard_normal((9, 6)) * rng.uniform(0.2, 3.0, 6)
    target = np.sign(rng.standard_normal(9))
    data = Data(array, loss(), target, rng.uniform(0.1, 1.0, 9))
    objective = Instance("small", (data,), np.full(6, 0.1), Cardinality(6, 2)).objective()
    at = objective.point(np.arange(3), rng.standard_normal(3))
    estimate = restricted_smoothness(objective, at, k)
    assert estimate.kind == "estimate"
    exact = largest(objective, at, k)
    assert estimate.value <= exact * (1 + 1e-12)
    assert estimate.value >= 0.5 * exact


def test_all_coordinates_give_the_largest_eigenvalue():
    objective = catalogue.instance(catalogue.squared_ridge).objective()
    at, p = objective.origin(), objective.shape[0]
    exact = np.linalg.eigvalsh(objective.hessian(at, np.arange(p)))[-1]
    estimate = restricted_smoothness(objective, at, p, iterations=100)
    assert estimate.value == pytest.approx(exact, rel=1e-2)
    assert estimate.value <= exact * (1 + 1e-12)


def test_the_theoretical_step_tells_that_its_constant_is_an_estimate():
    objective = catalogue.instance(catalogue.squared_ridge).objective()
    result = GraHTP(step_size="theory").solve(objective, Context(minimise_on_support))
    assert "estimate" in result.notes[0]
    stated = float(result.notes[0].split(">=")[1].split()[0])
    assert stated <= largest(objective, objective.origin(), 4) * 1.01  # it is printed rounded
