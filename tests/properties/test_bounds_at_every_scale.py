"""Bounds of squared losses against exact rational arithmetic, at scales from 1e-150 to 1e150."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import certify, verify
from sparsemodel.certificates.proving.gram.enumeration import enumerate_supports
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import SquaredLoss


def exact_minimum(a, y, c, ridge, support, free=()):
    """Return the least value on a support as a fraction, by Gaussian elimination."""
    index = sorted({*support, *free})
    h = [
        [sum(c[i] * a[i][s] * a[i][t] for i in range(len(y))) + (ridge[s] if s == t else 0)
         for t in index]
        for s in index
    ]  # fmt: skip
    g = [sum(c[i] * a[i][s] * y[i] for i in range(len(y))) for s in index]
    value = sum(c[i] * y[i] ** 2 for i in range(len(y))) / 2
    for s in range(len(index)):
        if h[s][s] == 0:
            continue  # the whole row is zero, and so is the slope
        value -= g[s] ** 2 / (2 * h[s][s])
        for t in range(s + 1, len(index)):
            ratio = h[t][s] / h[s][s]
            g[t] -= ratio * g[s]
            for u in range(s, len(index)):
                h[t][u] -= ratio * h[s][u]
    return value


def exact_optimum(form):
    term = form.terms[0]
    a = [[Fraction(float(v)) for v in row] for row in term.design.to_array()]
    y = [Fraction(float(v)) for v in term.target]
    c = [Fraction(float(v)) for v in term.weights]
    ridge = [Fraction(float(v)) for v in form.ridge]
    free = form.sparsity.free.tolist()
    counted = [j for j in range(form.sparsity.size) if j not in free]
    return min(
        exact_minimum(a, y, c, ridge, support, free)
        for support in itertools.combinations(counted, min(form.sparsity.k, len(counted)))
    )


def problem(seed):
    """Return a squared-loss problem whose columns, target and ridges have sizes of their own."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 7)), int(rng.integers(2, 5))
    size = 10.0 ** rng.uniform(-150.0, 150.0)
    own = 10.0 ** rng.uniform(-8.0, 8.0, p) if seed % 3 == 0 else np.ones(p)
    a = rng.standard_normal((n, p))
    if seed % 4 == 1:
        a = np.round(a)
    if seed % 5 == 2:
        a[:, 1] = a[:, 0] * (1.0 + 1e-9 * rng.standard_normal(n))
    a = a * size * own
    y = rng.standard_normal(n) * 10.0 ** rng.uniform(-150.0, 150.0)
    c = np.full(n, 1.0 / n)
    scale = max(float(np.max(np.abs(a))), 1e-150)
    ridge = np.full(p, min(max(scale * (scale * 10.0 ** rng.uniform(-8.0, 2.0)), 1e-306), 1e300))
    free = np.array([0]) if seed % 6 == 5 else np.empty(0, dtype=np.intp)
    sparsity = Cardinality(p, int(rng.integers(1, p - free.size + 1)), free)
    return SparseRegression((Term(DenseDesign(a), SquaredLoss(), y, c),), ridge, sparsity)


@pytest.mark.parametrize(  # each way to draw with each other, half of them in the slow suite
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed % 2)) for seed in range(60)]
)
def test_certified_bounds_hold_in_exact_arithmetic(seed):
    form = problem(seed)
    rng = np.random.default_rng(seed)
    optimum = exact_optimum(form)
    with np.errstate(all="ignore"):
        a, y = form.terms[0].design.to_array(), form.terms[0].target
        j = int(rng.integers(form.sparsity.size))
        x = np.zeros(form.shape)
        largest = float(np.abs(a[:, j]).max())
        x[j] = float(np.abs(y).max()) / largest if largest > 0.0 else 0.0
    if not np.all(np.isfinite(x)):
        x = np.zeros(form.shape)
    for found in (certify(form, x, time_limit=0.3), certify(form, x, relax=False)):
        if np.isfinite(found.bound):
            assert Fraction(found.bound) <= optimum
        if np.isfinite(found.upper) and not found.violations:
            assert Fraction(found.upper) >= optimum
        verify(found, form)


@pytest.mark.parametrize("seed", range(30))
def test_proofs_hold_in_exact_arithmetic(seed):
    form = problem(seed)
    found = prove(form, np.zeros(form.shape), gap=1e-7)
    if np.isfinite(found.bound):
        assert Fraction(found.bound) <= exact_optimum(form)
    verify(found, form)


@pytest.mark.parametrize("seed", range(40))
def test_enumerated_bounds_hold_in_exact_arithmetic(seed):
    form = problem(seed)
    free, p = form.sparsity.free, form.sparsity.size
    active, status = np.arange(p), np.zeros(p, dtype=np.int8)
    status[free] = 1
    found = enumerate_supports(
        Quadratic.of(form), active, status, np.empty(0, dtype=np.intp), form.sparsity.k
    ) if form.sparsity.k <= 3 else None  # fmt: skip
    if found is not None:
        assert Fraction(found.bound) <= exact_optimum(form)


def test_enumeration_asks_every_pivot_even_where_the_slope_is_zero():
    """Two columns that are nearly equal, and orthogonal to the target up to rounding."""
    rng = np.random.default_rng(0)
    judged = 0
    for _ in range(3000):
        a, y = rng.standard_normal(4), rng.standard_normal(4)
        a[2:], y[2:] = a[:2], -y[:2]
        b = a.copy()
        j = int(rng.integers(4))
        b[j] = np.nextafter(b[j], rng.choice([-np.inf, np.inf]))
        x = np.column_stack([a, b, 0.01 * rng.standard_normal(4)])
        if np.any((x.T @ y)[:2] != 0.0):
            continue
        sparsity = Cardinality(3, 2)
        term = Term(DenseDesign(x), SquaredLoss(), y, np.ones(4))
        form = SparseRegression((term,), np.full(3, 1e-45), sparsity)
        for k in (2, 3):
            found = enumerate_supports(
                Quadratic.of(form), np.arange(3), np.zeros(3, np.int8), np.empty(0, np.intp), k
            )
            judged += 1
            if found is not None:
                shape = SparseRegression((term,), form.ridge, Cardinality(3, k))
                assert Fraction(found.bound) <= exact_optimum(shape)
        if judged >= 40:
            break
    assert judged >= 10


@pytest.mark.parametrize("size", [1e-153, 1e-151, 1e-149, 1e-145, 1e-100])
def test_squares_that_underflow_cost_no_validity(size):
    a, y = np.array([[size, 0.5 * size]]), np.array([1e-10])
    w = sm.Variable(2)
    goal = sm.minimize(sm.squared_loss(a @ w, y) + sm.ridge(w, max(size**2, 1e-306)))
    declared = sm.Problem(goal, sm.card(w) <= 1)
    solution, certificate = declared.solve(), declared.certify()
    optimum = exact_optimum(declared.form)
    assert Fraction(max(solution.bound, certificate.bound)) <= optimum
    assert Fraction(certificate.upper) >= optimum


def holds(certificate, form):
    try:
        verify(certificate, form)
    except sm.CertificateError:
        return False
    return True


@pytest.mark.parametrize(
    ("k", "seeds"), [(2, 1), (5, 3), pytest.param(2, 3, marks=pytest.mark.slow)]
)
def test_the_largest_bound_that_is_verified_is_not_above_the_optimum(k, seeds):
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        a, y = rng.standard_normal((8, 5)) + 3.0, rng.standard_normal(8) + 10.0
        term = Term(DenseDesign(a), SquaredLoss(), y, np.full(8, 1.0 / 8))
        form = SparseRegression(
            (term,), np.full(5, 0.1), Cardinality(5, k, np.empty(0, dtype=np.intp))
        )
        found = prove(form, np.zeros(5), gap=1e-9)
        x = found.x
        for one in (found, certify(form, x)):
            assert holds(one, form)
            low, high = one.bound, one.upper
            for _ in range(15):
                middle = 0.5 * (low + high)
                if holds(replace(one, bound=middle), form):
                    low = middle
                else:
                    high = middle
            assert Fraction(low) <= exact_optimum(form)
