"""Columns of very different sizes: the search runs in other coordinates, the bound does not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, certify, verify
from sparsemodel.certificates.arithmetic.scaling import scaling
from sparsemodel.certificates.dual_bounds.bound_search import Found
from sparsemodel.certificates.dual_bounds.coefficient_bounds import certifying
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import (
    AbsoluteLoss,
    HuberLoss,
    LogisticLoss,
    SquaredLoss,
)


def problem(loss, seed, *, n=80, p=20, k=3, lam=0.05, free=()):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, p)) @ np.linalg.cholesky(0.5 * np.eye(p) + 0.5).T
    if len(free):
        a[:, list(free)] = 1.0
    y = a[:, 1] - a[:, 2] + a[:, 3] + 0.7 * rng.standard_normal(n)
    y = np.where(y > 0.0, 1.0, -1.0) if isinstance(loss, LogisticLoss) else y
    sparsity = Cardinality(p, k, free=np.array(free, dtype=np.intp))
    ridge = np.full(p, lam)
    ridge[list(free)] = 0.0
    term = Term(DenseDesign(a), loss, y, np.full(n, 1.0 / n))
    return SparseRegression((term,), ridge, sparsity), a


def stretched(form, a, factors):
    """The same problem in the coordinates ``x_j / factors_j``."""
    term = form.terms[0]
    term = Term(DenseDesign(a * factors), term.loss, term.target, term.weights)
    return SparseRegression((term,), form.ridge * np.square(factors), form.sparsity)


@pytest.mark.parametrize(
    ("loss", "free"),
    [
        (SquaredLoss(), ()),
        (SquaredLoss(), (0,)),
        (LogisticLoss(), ()),
        (LogisticLoss(), (0,)),
        (HuberLoss(), (0,)),
        (AbsoluteLoss(), ()),
    ],
)
def test_the_bound_does_not_depend_on_the_units_of_the_columns(loss, free):
    form, a = problem(loss, 0, free=free)
    factors = 10.0 ** np.linspace(-3.0, 3.0, 20)[np.random.default_rng(1).permutation(20)]
    other = stretched(form, a, factors)
    x = np.zeros(20)
    x[[1, 2, 3]] = [0.7, -0.7, 0.7]
    one, two = certify(form, x), certify(other, x / factors)
    assert two.value == pytest.approx(one.value, rel=1e-12)
    smooth = not isinstance(loss, AbsoluteLoss)
    assert two.bound == pytest.approx(one.bound, rel=1e-6 if smooth else 2e-2)
    verify(two, other)


def test_a_uniform_ridge_on_stretched_columns_has_its_own_bound(rng, monkeypatch):
    """Agrees with a conic solver, where the unscaled search ended at zero."""
    # Without bounds on the coefficients, which make the relaxation stronger than that solver's.
    monkeypatch.setattr(certifying, "search_within", lambda *_, **__: Found((), ()))
    form, a = problem(SquaredLoss(), 3, n=40, p=60, lam=0.25)
    factors = 10.0 ** rng.uniform(-3.0, 3.0, 60)
    term = Term(DenseDesign(a * factors), SquaredLoss(), form.terms[0].target, np.full(40, 1 / 40))
    other = SparseRegression((term,), form.ridge, form.sparsity)
    w = np.zeros(60)
    w[:3] = 1e-3
    found = certify(other, w)
    from sparsemodel.cvx.relaxations import relaxation_value

    scaled = scaling(other)
    assert scaled is not None
    best = relaxation_value(scaled.form)
    assert found.bound == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_bounds_of_stretched_columns_are_valid(seed):
    loss = (SquaredLoss(), LogisticLoss())[seed % 2]
    form, a = problem(loss, seed, n=15, p=6, k=2, lam=0.1)
    other = stretched(form, a, 10.0 ** np.random.default_rng(seed).uniform(-3.0, 3.0, 6))
    other = SparseRegression(other.terms, np.full(6, 0.3), other.sparsity)
    best = np.inf
    for pair in itertools.combinations(range(6), 2):
        w = sm.Variable(2)
        data = other.terms[0].design.to_array()[:, pair]
        declared = sm.squared_loss if seed % 2 == 0 else sm.logistic_loss
        goal = sm.minimize(declared(data @ w, other.terms[0].target) + sm.ridge(w, 0.3))
        found = sm.Problem(goal, sm.card(w) <= 2).solve("nhtp")
        if found.value < best:
            best, x = found.value, np.zeros(6)
            x[list(pair)] = w.value
    c = certify(other, x)
    assert c.bound <= best * (1.0 + 1e-12)
    assert c.bound >= 0.0
    assert c.claim in set(Claim)


def test_columns_of_one_size_stay_as_they_are():
    form, _ = problem(SquaredLoss(), 0)
    assert scaling(form) is None


def test_factors_are_powers_of_two_and_shared_by_groups():
    form, a = problem(SquaredLoss(), 0)
    groups = np.arange(20) // 2
    other = stretched(form, a, 10.0 ** np.linspace(-3.0, 3.0, 20))
    grouped = SparseRegression(other.terms, np.full(20, 0.1), Cardinality(20, 3, groups=groups))
    found = scaling(grouped)
    assert found is not None
    factors = found.start(np.ones(20))
    assert np.array_equal(np.exp2(np.round(np.log2(factors))), factors)
    assert np.array_equal(factors[::2], factors[1::2])
