"""What an intercept absorbs costs the search for a bound nothing, and the bound stays valid."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sparsemodel.certificates import certify, verify
from sparsemodel.certificates.dual_bounds.witness import evaluate
from sparsemodel.certificates.relaxation import profile, relax
from sparsemodel.certificates.relaxation.smooth import LossSmooth
from sparsemodel.cvx.relaxations import relaxation_value
from sparsemodel.designs import DenseDesign, OnesDesign, SparseDesign, StackedDesign
from sparsemodel.interfaces import Box, Cardinality, SparseRegression, Term
from sparsemodel.losses import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    LogisticLoss,
    QuantileLoss,
)

KINKED = [AbsoluteLoss(), QuantileLoss(0.3), HingeLoss(), EpsilonInsensitiveLoss(0.1)]


def problem(loss, seed, *, n=30, p=10, k=3, shift=0.0, scale=1.0, lam=0.05, design=DenseDesign):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, p))
    y = a[:, 0] - a[:, 1] + 0.5 * a[:, 2] + 0.5 * rng.standard_normal(n)
    y = np.where(y > 0.0, 1.0, -1.0) if isinstance(loss, HingeLoss | LogisticLoss) else y
    x = np.zeros(p + 1)
    x[:3] = np.array([0.9, -0.9, 0.4]) / scale
    x[p] = -shift * x[:p].sum()
    blocks = ((np.arange(p), design(scale * a + shift)), (np.array([p]), OnesDesign(n)))
    term = Term(StackedDesign(n, p + 1, blocks), loss, y, rng.uniform(0.5, 1.5, n) / n)
    sparsity = Cardinality(p + 1, k, free=np.array([p]))
    return SparseRegression((term,), np.append(np.full(p, lam), 0.0), sparsity), x


@pytest.fixture
def evaluations(monkeypatch):
    """Count the gradients that profiles of the intercept ask for."""
    count = [0]
    plain = profile._gradients

    def counted(terms, z):
        count[0] += 1
        return plain(terms, z)

    monkeypatch.setattr(profile, "_gradients", counted)
    return count


@pytest.mark.parametrize("loss", KINKED, ids=lambda loss: loss.name)
def test_bounds_do_not_depend_on_the_columns_means(loss, evaluations):
    form, x = problem(loss, 0)
    one = certify(form, x)
    plainly, evaluations[0] = evaluations[0], 0
    moved, at = problem(loss, 0, shift=100.0)
    two = certify(moved, at)
    assert two.value == pytest.approx(one.value, rel=1e-10)
    assert two.bound == pytest.approx(one.bound, rel=3e-6)
    assert evaluations[0] <= 4 * plainly
    verify(two, moved)


@pytest.mark.parametrize("loss", KINKED, ids=lambda loss: loss.name)
@pytest.mark.parametrize(("shift", "scale"), [(30.0, 1.0), (0.0, 1000.0)], ids=["moved", "large"])
def test_the_bound_is_that_of_a_conic_solver(loss, shift, scale):
    # The conic solver gets the centred columns and the ridge that belongs to the small ones.
    lam = 0.05
    form, _ = problem(loss, 1, shift=shift, scale=scale, lam=lam * scale**2)
    found = relax(form, np.zeros(form.shape))
    expected = relaxation_value(problem(loss, 1, lam=lam)[0])
    bound = evaluate(form, found.witness).value
    assert bound <= expected + 1e-6
    assert bound >= expected - 3e-6
    assert found.value >= expected - 1e-6


@pytest.mark.parametrize("loss", KINKED, ids=lambda loss: loss.name)
def test_a_tiny_ridge_ends_soon(loss, evaluations):
    form, x = problem(loss, 1, scale=1000.0)
    found = certify(form, x)
    assert evaluations[0] < 30_000
    assert 0.0 <= found.bound <= found.upper
    verify(found, form)


def test_data_that_the_relaxation_fits_end_at_the_infimum(evaluations):
    """More columns than observations and a ridge of nothing: no bound beats zero."""
    form, x = problem(AbsoluteLoss(), 2, n=15, p=25, scale=1e100)
    found = certify(form, x)
    assert evaluations[0] < 10_000
    assert 0.0 <= found.bound <= 1e-6 * found.upper


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    shift=st.sampled_from([0.0, 1.0, 100.0, -1e4]),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_no_sparse_point_is_below_the_bound(seed, shift, scale):
    """Brute force: boxes in place of the ridge make every support a linear program."""
    n, p, k, most = 9, 4, 2, 1.0 / scale
    form, _ = problem(AbsoluteLoss(), seed, n=n, p=p, k=k, shift=shift, scale=scale, lam=0.0)
    ends = np.append(np.full(p, most), np.inf)
    form = SparseRegression(form.terms, form.ridge, form.sparsity, box=Box(-ends, ends))
    term = form.terms[0]
    a, c = term.design.to_array(), term.weights
    a = a - np.append(a[:, :p].mean(axis=0), 0.0)
    best, eye = np.inf, np.eye(n)
    for pair in itertools.combinations(range(p), k):
        columns = a[:, [*pair, p]]
        rows = np.block([[columns, -eye], [-columns, -eye]])
        limits = [(-most, most)] * k + [(None, None)] + [(0.0, None)] * n
        goal = np.concatenate([np.zeros(k + 1), c])
        solved = linprog(
            goal, A_ub=rows, b_ub=np.concatenate([term.target, -term.target]), bounds=limits
        )
        best = min(best, solved.fun)
    found = certify(form, np.zeros(p + 1))
    assert found.bound <= best * (1.0 + 1e-9)
    verify(found, form)


def test_sparse_columns_stay_sparse(monkeypatch):
    def thinned(a):
        return np.where(np.abs(a) > 1.0, a, 0.0)

    def sparse(a):
        return SparseDesign(sp.csc_array(thinned(a)))

    def stored(a):
        return DenseDesign(thinned(a))

    form, x = problem(AbsoluteLoss(), 4, n=60, p=20, design=sparse)
    dense, _ = problem(AbsoluteLoss(), 4, n=60, p=20, design=stored)
    expected = certify(dense, x).bound

    entries = SparseDesign.to_array

    def refuse(self):
        if self.shape[1] > 3:
            raise AssertionError("a sparse matrix was made dense")
        return entries(self)  # the columns of the point's support

    monkeypatch.setattr(SparseDesign, "to_array", refuse)
    assert certify(form, x).bound == pytest.approx(expected, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    mu=st.sampled_from([1e-6, 1e-2, 1.0]),
    far=st.sampled_from([0.0, 1e3, -1e8]),
    index=st.integers(0, 4),
)
def test_the_profile_is_a_minimum_over_the_intercept(seed, mu, far, index):
    loss = [*KINKED, LogisticLoss()][index]
    form, _ = problem(loss, seed, n=12)
    smooth = loss if isinstance(loss, LogisticLoss) else loss.smoothed(mu)
    term = form.terms[0]
    term = Term(OnesDesign(12), smooth, term.target, term.weights)
    z = np.random.default_rng(seed).standard_normal(12)
    value, gradients, b = profile.minimised((term,), (np.ones((12, 1)),), [z + far], np.zeros(1))

    def at(shift):
        return smooth.total(z + shift, term.target, term.weights)

    rounding = 1e-13 + 1e-14 * abs(far)
    steps = np.concatenate([np.linspace(-5.0, 5.0, 101), 10.0 ** np.arange(-8.0, 0.0)])
    centre = far + float(b[0])
    assert value == pytest.approx(at(centre), rel=1e-9, abs=rounding)
    assert all(value <= at(centre + s) + rounding for s in (*steps, *-steps))
    balance = abs(float(gradients[0].sum()))
    assert balance <= 1e-12 + 1e-15 * max(abs(far), 10.0) / mu


@pytest.mark.parametrize("free", [(0,), (0, 1)], ids=["intercept", "two free"])
def test_values_and_gradients_are_those_of_the_best_free_coordinates(free):
    rng = np.random.default_rng(5)
    a = rng.standard_normal((20, 6)) + 7.0
    a[:, 0] = 1.0
    y = np.where(rng.standard_normal(20) > 0.0, 1.0, -1.0)
    term = Term(DenseDesign(a), LogisticLoss(), y, np.full(20, 0.05))
    sparsity = Cardinality(6, 2, free=np.array(free))
    form = SparseRegression((term,), np.where(np.isin(np.arange(6), free), 0.0, 0.1), sparsity)
    rest = np.setdiff1d(np.arange(6), free)
    smooth = LossSmooth(form, rest, (a[:, list(free)],))
    u = 0.1 * rng.standard_normal(rest.size)
    value, gradient = smooth.gradient(u, smooth.image(u))
    x = np.zeros(6)
    x[rest], x[list(free)] = u, smooth.best_free(u)
    assert value == pytest.approx(term.loss.total(a @ x, y, term.weights), rel=1e-12)
    plain = a.T @ term.loss.gradient(a @ x, y, term.weights)
    assert gradient == pytest.approx(plain[rest], abs=1e-10)
    assert plain[list(free)] == pytest.approx(np.zeros(len(free)), abs=1e-10)
