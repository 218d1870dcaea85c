"""Axiotis and Sviridenko (2020): where replacement stalls, and losses on real data."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.algorithms.instances import objective_of, replacement_trap, run
from benchmarks.data import load
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import LogisticLoss
from sparsemodel.numerics import RegressionObjective
from sparsemodel_backends.arht import ARHT
from sparsemodel_backends.local_search import LocalSearch
from sparsemodel_backends.omp import OMP
from sparsemodel_backends.ompr import OMPR


@pytest.mark.parametrize(
    ("s", "kappa", "stalled", "searched", "core"),
    [
        (2, 4, 37.58, 23.22, 30.28),
        (3, 6, 129.32, 78.98, 104.92),
        (2, 10, 239.6, 144.6, 195.6),
    ],
)
def test_replacement_stalls_and_regularisation_does_not(s, kappa, stalled, searched, core):
    """Section 5.2, with A diagonal, delta = 0.01, from the bad support, columns as they are.

    ``stalled`` is the paper's ``s kappa^2 (5/4 - 3 delta)`` less one swap; the target solution has
    ``f* = s kappa^2 (1 - delta)``, and ARHT must get below it.
    """
    delta = 0.01
    A, b, start, k = replacement_trap(s, kappa, delta)
    optimum = s * kappa**2 * (1 - delta)
    values = [
        run(backend, objective_of(A, b, k), start=start).point.value
        for backend in (
            OMPR(scaled=False),
            LocalSearch(scaled=False),
            ARHT(scaled=False, target=optimum),
        )
    ]
    paper = s * kappa**2 * (1.25 - 3 * delta) - 0.5 * (kappa * (1 - 2 * delta) - 1)
    assert values[0] == pytest.approx(paper, rel=1e-12)
    np.testing.assert_allclose(values, [stalled, searched, core], rtol=1e-10)
    assert values[2] < optimum < values[0]


def house_sales(k):
    """Return least squares on centred unit columns: an intercept is in every solution."""
    data = load("lucas_house")
    A = data.X - data.X.mean(axis=0)
    norms = np.linalg.norm(A, axis=0)
    A = A[:, norms > 0.0] / norms[norms > 0.0]
    return objective_of(A, data.y - data.y.mean(), k)


def letters(k):
    """Return logistic regression on A to M against N to Z, with an intercept."""
    data = load("letter")
    A = np.hstack([data.X, np.ones((len(data.X), 1))])
    A /= np.linalg.norm(A, axis=0) / np.sqrt(len(A))
    y = np.where(data.y < 13, 1.0, -1.0)
    n, p = A.shape
    sparsity = Cardinality(p, k, free=np.array([p - 1]))
    term = Term(DenseDesign(A), LogisticLoss(), y, np.full(n, 1.0 / n))
    return RegressionObjective(
        SparseRegression(terms=(term,), sparsity=sparsity, ridge=np.zeros(p))
    )


def losses(make, k, arht):
    """Return the losses of OMP, and of OMPR, ARHT and exhaustive local search from there."""
    first = run(OMP(), make(k)).point
    others = (OMPR(), arht, LocalSearch())
    return [first.value, *(run(b, make(k), start=first.x).point.value for b in others)]


@pytest.mark.parametrize(
    ("make", "k"), [(house_sales, 16), pytest.param(letters, 5, marks=pytest.mark.slow)]
)
def test_losses_are_ordered_as_in_the_figures(make, k):
    """Figures 1 to 4: exhaustive search <= OMPR <= OMP and ARHT <= OMPR at equal sparsity."""
    omp, ompr, arht, searched = losses(make, k, ARHT(repeats=3, patience=2, tol=0.1))
    slack = 1e-9 * omp
    assert ompr <= omp + slack
    assert arht <= ompr + slack
    assert searched <= ompr + slack
    assert min(arht, searched) < omp * (1 - 1e-5)  # these instances tell them apart


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("make", "sizes"), [(house_sales, range(2, 25, 3)), (letters, range(2, 16, 2))]
)
def test_curves(make, sizes):
    """Figures 1 to 4: the order in the median over k, ARHT with all 20 runs a guess.

    The paper finds exhaustive search best throughout, and ARHT inconsistent. On the house sales
    ARHT, which draws at random, is ahead of it by up to 2e-4 for some k.
    """
    curves = np.array([losses(make, k, ARHT(patience=20)) for k in sizes])
    omp, ompr, arht, searched = np.median(curves, axis=0)
    slack = 1e-9 * omp
    assert arht <= ompr + slack <= omp + 2 * slack
    assert searched <= ompr + slack
    assert searched <= arht * (1 + 1e-3)
    assert np.mean(curves[:, 2] <= curves[:, 1] + slack) >= 0.8
