"""What separates a proof from a computation: each margin has a case that is wrong without it."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from sparsemodel.certificates import certify
from sparsemodel.certificates.dual_bounds.bound import dual_bound
from sparsemodel.certificates.dual_bounds.diagonal_shift import Extraction, hessian, verified
from sparsemodel.certificates.statements.stationarity import stationarity
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import HuberLoss, PoissonLoss, SquaredLoss


def squared(A, y, k, ridge):
    A = np.asarray(A, dtype=float)
    term = Term(DenseDesign(A), SquaredLoss(), np.asarray(y, dtype=float), np.ones(len(A)))
    return SparseRegression((term,), np.full(A.shape[1], ridge), Cardinality(A.shape[1], k))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("ratio", [1.05, 1.3, 1.9])
def test_optimality_at_sight_asks_for_the_whole_threshold(ratio, scale):
    """``f = ||x - b||^2 / 2 + ridge ||x||^2 / 2`` with ``b = (1, ratio)``: one coefficient is
    kept. The wrong one has a step of ``1 / ratio`` of ``1 / (1 + ridge)``, above the half of it."""
    ridge = 0.5
    b = scale * np.array([1.0, ratio])
    form = squared(np.eye(2), b, 1, ridge)
    wrong = np.array([b[0] / (1.0 + ridge), 0.0])
    right = np.array([0.0, b[1] / (1.0 + ridge)])
    all_of_it = np.full(2, 1.0 - 1e-9)  # the curvature of the data
    found = stationarity(form, wrong, extraction=all_of_it)
    assert found.stationary
    assert 0.5 < found.step / found.threshold < 1.0
    assert not found.optimal_at_sight
    assert not certify(form, wrong).stationarity.optimal_at_sight
    assert stationarity(form, right, extraction=all_of_it).optimal_at_sight
    # With the ridge alone the threshold is 1 / ridge, three times as far.
    alone = stationarity(form, right)
    assert alone.threshold == pytest.approx(1.0 / ridge)
    assert alone.step == pytest.approx(ratio / (1.0 + ridge))
    assert alone.optimal_at_sight == (ratio * ridge >= 1.0 + ridge)


def test_a_point_that_is_optimal_at_sight_is_optimal():
    """Theorem 2 of Yuan et al. (2020), on all supports of random problems."""
    reached = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((12, 5))
        y = A[:, :2] @ [2.0, -2.0] + 0.3 * rng.standard_normal(12)
        ridge = 10.0 ** rng.uniform(-1.0, 2.0)
        form = squared(A, y, 2, ridge)
        values, claims = [], []
        for i in range(5):
            for j in range(i):
                x, S = np.zeros(5), [j, i]
                x[S] = np.linalg.solve(A[:, S].T @ A[:, S] + ridge * np.eye(2), A[:, S].T @ y)
                values.append(0.5 * np.sum((A @ x - y) ** 2) + 0.5 * ridge * x @ x)
                claims.append(stationarity(form, x).optimal_at_sight)
        reached += any(claims)
        for value, claimed in zip(values, claims, strict=True):
            assert not claimed or value <= min(values) * (1.0 + 1e-12)
    assert reached > 10


def test_the_bound_allows_for_the_rounding_of_its_slopes():
    """``A.T @ a`` is 1 in both coordinates and may come out as 0, for instance 2^53 + 1 - 2^53.

    All numbers are exact, and so is the minimum: the gradient vanishes at ``x = -1 / ridge``.
    """
    s, M, ridge = 2.0**26, 2.0**27, 2.0**-30
    A = np.array([[M, -M], [1.0, 1.0], [-M, M]])
    y = np.array([-s, -2.0 / ridge - 1.0, -s])
    x, a = np.full(2, -1.0 / ridge), np.array([s, 1.0, s])
    np.testing.assert_array_equal(A @ x - y, a)
    minimum = s**2 + 0.5 + 1.0 / ridge  # ||a||^2 / 2 + ridge ||x||^2 / 2
    lost = 0
    for order in permutations(range(3)):
        rows = list(order)
        form = squared(A[rows], y[rows], 2, ridge)
        slopes = form.terms[0].design.rmatvec(a[rows])
        lost += bool(np.any(slopes != 1.0))
        assert dual_bound(form, (a[rows],)).value <= minimum
    assert lost, "the products must be rounded for this to test anything"


def test_curvature_is_not_taken_from_a_singular_matrix():
    """One row: ``H - Delta`` has a negative eigenvalue for every Delta above zero.

    Cholesky's factorisation of the rounded matrix often succeeds all the same.
    """
    deceived = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        form = squared(rng.uniform(0.5, 2.0, (1, 2)), [1.0], 1, 0.0)
        delta = np.full(2, 1e-19)
        h = hessian(form) - np.diag(delta)
        try:
            np.linalg.cholesky(h)
            deceived += 1
        except np.linalg.LinAlgError:
            pass
        assert not verified(form, Extraction(delta))
    assert deceived > 20
    honest = squared(np.eye(2), [1.0, 1.0], 1, 0.0)
    assert verified(honest, Extraction(np.full(2, 0.99)))


@pytest.mark.parametrize("offset", [0.0, 1e4, -1e7, 1e9])
def test_offsets_of_columns_make_nothing_stationary(offset):
    rng = np.random.default_rng(1)
    X = np.round(rng.standard_normal((30, 3)) * 64) / 64
    y = X @ [2.0, -1.0, 0.0] + np.round(rng.standard_normal(30) * 64) / 64
    A = np.column_stack([X + offset, np.ones(30)])  # exact
    form = squared(A, y, 2, 0.0)
    form = replace(form, sparsity=Cardinality(4, 2, free=np.array([3])))
    centred = X - X.mean(axis=0)
    w = np.linalg.lstsq(centred[:, :2], y - y.mean(), rcond=None)[0]
    for factor, right in ((1.0, True), (1.001, False), (0.9, False)):
        x = np.array([*(factor * w), 0.0, 0.0])
        x[3] = np.mean(y - A[:, :3] @ x[:3])
        found = stationarity(form, x)
        assert found.stationary == right
        if not right:  # as if the data had been centred
            wanted = np.abs(centred.T @ (centred @ x[:3] - y + y.mean()))[:2].max()
            size = np.abs(centred.T @ (y - y.mean())).max()
            assert found.residual == pytest.approx(wanted / size, rel=0.1)
    x = np.array([*w, 0.0, 0.0])
    x[3] = np.mean(y - A[:, :3] @ x[:3]) + 0.1  # an intercept that is not the best one
    assert not stationarity(form, x).stationary


def test_slopes_that_nothing_can_be_compared_with_make_nothing_stationary():
    """Huber's slopes far from the target are all alike; those of counts leave the range."""
    column = np.array([1.0, -1.0, 2.0, -2.0, 0.0])
    A = np.column_stack([column + 1e6, np.ones(5)])
    sparsity = Cardinality(2, 1, free=np.array([1]))
    y, counts = np.array([3.0, -3.0, 6.0, -6.0, 0.25]), np.array([2.0, 0.0, 3.0, 0.0, 1.0])
    for loss, target, sign in ((HuberLoss(), y, 1.0), (PoissonLoss(), counts, -1.0)):
        term = Term(DenseDesign(A), loss, target, np.ones(5))
        form = SparseRegression((term,), np.zeros(2), sparsity)
        assert not stationarity(form, np.array([sign, -sign * 1e6])).stationary


def test_a_point_with_a_slope_is_not_stationary_where_zero_is():
    """At zero nothing has a slope to be compared with, and no free column could have one."""
    term = Term(DenseDesign(np.eye(3)), HuberLoss(), np.zeros(3), np.ones(3))
    form = SparseRegression((term,), np.zeros(3), Cardinality(3, 1))
    assert stationarity(form, np.zeros(3)).stationary
    assert stationarity(form, np.array([0.1, 0.0, 0.0])).residual == np.inf


def test_a_reference_without_end_makes_nothing_stationary():
    term = Term(DenseDesign(np.ones((3, 2))), PoissonLoss(), np.full(3, 5.0), np.ones(3))
    sparsity = Cardinality(2, 1, free=np.array([1]))
    form = SparseRegression((term,), np.array([0.0, 1e-3]), sparsity)
    found = stationarity(form, np.array([-1000.0, 1000.0]))  # e^1000 at the reference
    assert found.residual == pytest.approx(1.0)  # 4 of 4: slopes at zero are as large as here


def test_an_offset_of_the_target_makes_no_huber_loss_stationary():
    column = np.array([1.0, -1.0, 2.0, -2.0])
    A = np.column_stack([column, np.ones(4)])
    term = Term(DenseDesign(A), HuberLoss(), 3.0 * column + 1e8, np.ones(4))
    sparsity = Cardinality(2, 1, free=np.array([1]))
    form = SparseRegression((term,), np.zeros(2), sparsity)
    assert stationarity(form, np.array([3.0, 1e8])).stationary
    found = stationarity(form, np.array([2.9, 1e8]))
    assert 1e-3 < found.residual < 1.0
