"""Yuan, Li and Zhang (JMLR 2018), figures 2 and 3: supports recovered against samples.

The paper does not print the mean of its coefficients; here they are N(3, 1).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from benchmarks.algorithms.instances import (
    classifier_of,
    noisy_classes,
    noisy_regression,
    objective_of,
    run,
)
from sparsemodel_backends.foba import FoBa
from sparsemodel_backends.grahtp import GraHTP
from sparsemodel_backends.grasp import GraSP
from sparsemodel_backends.iht import IHT
from sparsemodel_backends.omp import OMP

KBAR = 50


def linear_rates(backend, n, k, trials):
    """Return the shares of exact and of relaxed recoveries, as the paper defines them."""
    exact = relaxed = 0
    for seed in range(trials):
        A, b, x = noisy_regression(np.random.default_rng(seed), n)
        point = run(backend, objective_of(A, b, k, mean=True)).point
        largest = np.sort(np.argsort(-np.abs(point.x))[:KBAR])
        exact += np.array_equal(largest, np.flatnonzero(x))
        relaxed += np.isin(np.flatnonzero(x), point.support).all()
    return exact / trials, relaxed / trials


@pytest.mark.parametrize("k", [50, 70, 110])
def test_recovery_rises_with_the_samples(k):
    """Figure 2: nothing at n = 150, nearly all at n = 400, relaxed at least as often as exact."""
    few, some, many = (linear_rates(GraHTP(), n, k, 10) for n in (150, 250, 400))
    assert few[0] <= 0.1
    assert few[0] <= some[0] + 0.1
    assert some[0] <= many[0] + 0.2
    assert many[0] >= 0.8
    assert all(exact <= relaxed for exact, relaxed in (few, some, many))


def test_forward_selection_takes_more_samples():
    """Figure 2, left (k = 50): GraHTP and GraSP are ahead of FBS where samples are few."""
    ours, grasp, fbs = (
        sum(linear_rates(backend, n, 50, 10)[0] for n in (200, 250))
        for backend in (GraHTP(), GraSP(), OMP())
    )
    assert ours > fbs
    assert grasp > fbs


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("k", [50, 70, 110])
def test_recovery_in_full(k):
    """Figure 2 with 30 trials (the paper: 100).

    About one in six instances has a coefficient too near zero for any method, and the instances
    differ from n to n.
    """
    backends = {"grahtp": GraHTP(), "fgrahtp": IHT(), "fbs": OMP(), "foba": FoBa()}
    rates = {
        name: [linear_rates(backend, n, k, 30) for n in (150, 200, 250, 300, 400)]
        for name, backend in backends.items()
    }
    for curve in rates.values():
        exact = [pair[0] for pair in curve]
        assert exact[0] <= 0.1
        assert all(b >= a - 0.2 for a, b in pairwise(exact))
        assert exact[-1] >= 0.7
    if k == 50:
        ours, forward = (sum(pair[0] for pair in rates[name]) for name in ("grahtp", "fbs"))
        assert ours > forward


def overlap(backend, n, k, trials):
    found = 0.0
    for seed in range(trials):
        A, y, x = noisy_classes(np.random.default_rng(seed), n)
        point = run(backend, classifier_of(A, y, k, 1e-4)).point
        found += np.isin(np.flatnonzero(x), point.support).mean()
    return found / trials


def test_classes_take_more_samples():
    """Figure 3: the share of the support that is found rises with n and with k."""
    shares = [overlap(GraHTP(), n, 50, 2) for n in (200, 600, 1200)]
    assert shares == sorted(shares)
    assert shares[-1] >= 0.9
    assert overlap(GraHTP(), 600, 70, 2) >= shares[1]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("k", [50, 70, 110])
def test_classes_in_full(k):
    """Figure 3 with 20 trials a point."""
    for backend in (GraHTP(), OMP()):
        shares = [overlap(backend, n, k, 20) for n in (200, 400, 800, 1200)]
        assert all(b >= a for a, b in pairwise(shares))
        assert shares[-1] >= 0.95
