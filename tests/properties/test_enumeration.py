"""Enumerated nodes against brute force in exact arithmetic: the bound, and the support."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates.proving.gram.enumeration import LIMIT, applies, enumerate_supports
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.proving.node import IN, OUT, UNDECIDED
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.certificates.verify import verify
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import SquaredLoss


def problem(seed, p=7, n=9, k=4, *, balanced=False, scale=1.0):
    rng = np.random.default_rng(seed)
    a = rng.integers(-4, 5, (n, p)).astype(float)
    if balanced:
        a[:, 0] = 1.0
    y = rng.integers(-6, 7, n).astype(float)
    ridge = rng.integers(1, 8, p) / 8.0
    if balanced:
        ridge[0] = 0.0
    free = np.array([0] if balanced else [], dtype=np.intp)
    term = Term(DenseDesign(a * scale), SquaredLoss(), y, np.full(n, 0.125))
    return SparseRegression((term,), ridge * scale**2, Cardinality(p, k, free=free))


def exact_value(form, support):
    """The minimum over a support, as a fraction."""
    (term,) = form.terms
    a = [[Fraction(v) for v in row] for row in term.design.to_array().tolist()]
    y = [Fraction(v) for v in term.target.tolist()]
    c = [Fraction(v) for v in term.weights.tolist()]
    size = len(support)
    m = [
        [sum(w * r[i] * r[j] for w, r in zip(c, a, strict=True)) for j in support] for i in support
    ]
    for d, j in enumerate(support):
        m[d][d] += Fraction(float(form.ridge[j]))
    g = [sum(w * r[j] * t for w, r, t in zip(c, a, y, strict=True)) for j in support]
    value = sum(w * t * t for w, t in zip(c, y, strict=True)) / 2
    for i in range(size):
        value -= g[i] * g[i] / m[i][i] / 2
        for j in range(i + 1, size):
            ratio = m[j][i] / m[i][i]
            g[j] -= ratio * g[i]
            for b in range(i, size):
                m[j][b] -= ratio * m[i][b]
    return value


def test_the_bound_holds_for_the_worst_rounding_of_the_gram_matrix():
    """``|E| <= u s^2`` and ``|e| <= u s Y``, for a column that explains most of the target."""
    a = np.array([[3.0], [4.0], [12.0]])
    term = Term(DenseDesign(a), SquaredLoss(), a[:, 0].copy(), np.ones(3))
    u = 1e-3
    q = replace(Quadratic.of(SparseRegression((term,), np.ones(1), Cardinality(1, 1))), unit=u)
    none, status = np.empty(0, dtype=np.intp), np.array([UNDECIDED], dtype=np.int8)
    found = enumerate_supports(q, np.array([0]), status, none, 1)
    h, g = q.hessian[0, 0] - u * q.norms[0] ** 2 + 1.0, q.linear[0] + u * q.norms[0] * q.aim
    assert found.bound <= q.lowest_constant - 0.5 * g**2 / h


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_bound_is_below_every_support_and_hardly(seed, k):
    balanced = seed % 3 == 0
    form = problem(seed, balanced=balanced, scale=10.0 ** (3 * (seed % 5) - 6))
    rng = np.random.default_rng(seed + 100)
    first = 1 if balanced else 0
    active = np.arange(first, 7)
    status = np.full(active.size, UNDECIDED, dtype=np.int8)
    status[rng.permutation(active.size)[:2]] = [IN, OUT]
    q = Quadratic.of(form)
    found = enumerate_supports(q, active, status, np.arange(first), k)
    inside = [*range(first), *active[status == IN].tolist()]
    rest = active[status == UNDECIDED].tolist()
    values = {}
    for count in range(k + 1):
        for chosen in itertools.combinations(rest, count):
            values[tuple(sorted([*inside, *chosen]))] = exact_value(
                form, sorted([*inside, *chosen])
            )
    best = min(values.values())
    assert found is not None
    assert Fraction(found.bound) <= best
    assert float(best) - found.bound <= 1e-10 * abs(float(best)) + 1e-12 * q.aim**2
    near = values[tuple(int(j) for j in found.support)] - best
    assert near <= Fraction(1, 10**9) * abs(best) + Fraction(1, 10**12)


def test_dependent_columns_without_ridge_claim_nothing():
    a = np.ones((5, 3))
    term = Term(DenseDesign(a), SquaredLoss(), np.arange(5.0), np.full(5, 0.2))
    form = SparseRegression((term,), np.zeros(3), Cardinality(3, 2))
    status = np.zeros(3, dtype=np.int8)
    none = np.empty(0, dtype=np.intp)
    assert enumerate_supports(Quadratic.of(form), np.arange(3), status, none, 2) is None


@pytest.mark.parametrize("k", range(4))
def test_columns_that_nearly_depend_on_each_other(k):
    # Integers, whose Gram matrix is exact: all that rounds is the elimination.
    for seed in range(30):
        rng = np.random.default_rng([k, seed])
        base = rng.integers(-1024, 1024, (6, 1))
        a = (base + rng.integers(-3, 4, (6, 4))).astype(float)
        y = (base[:, 0] + rng.integers(-6, 7, 6)).astype(float)
        term = Term(DenseDesign(a), SquaredLoss(), y, np.ones(6))
        form = SparseRegression((term,), np.full(4, 2.0**-12), Cardinality(4, 4))
        status = np.array([IN, UNDECIDED, UNDECIDED, UNDECIDED], dtype=np.int8)
        quadratic = replace(Quadratic.of(form), unit=0.0)
        none = np.empty(0, dtype=np.intp)
        found = enumerate_supports(quadratic, np.arange(4), status, none, k)
        best = min(exact_value(form, [0, *s]) for s in itertools.combinations([1, 2, 3], k))
        assert found is not None
        assert found.support.size == 1 + k
        assert Fraction(found.bound) <= best
        assert found.bound >= float(best) - 1e-9 * float(y @ y)


def test_what_is_few():
    assert applies(1000, 2)
    assert not applies(1000, 3)
    assert not applies(10, 4)
    assert applies(10, 0)
    assert applies(0, 3)
    assert not applies(0, 4)
    assert LIMIT >= 10**6


def test_a_proof_with_enumerated_parts_is_verified():
    rng = np.random.default_rng(3)
    n, p, k = 25, 40, 4
    a = rng.standard_normal((n, p))
    y = a[:, 0] + a[:, 1] + 2.0 * rng.standard_normal(n)
    term = Term(DenseDesign(a), SquaredLoss(), y, np.full(n, 1.0 / n))
    form = SparseRegression((term,), np.full(p, 1e-3), Cardinality(p, k))
    certificate = prove(form, np.zeros(p), gap=1e-6)
    assert certificate.relative_gap <= 1e-6
    records = certificate.proof["tree"]["nodes"]
    assert any(record.get("enumerated") for record in records)
    assert verify(certificate, form).claim is certificate.claim
    best = np.inf
    for s in itertools.combinations(range(12), k):  # a feasible point found otherwise is not below
        sub = a[:, s]
        x = np.linalg.solve(sub.T @ sub / n + 1e-3 * np.eye(k), sub.T @ y / n)
        value = 0.5 * np.mean((sub @ x - y) ** 2) + 0.5e-3 * x @ x
        best = min(best, value)
    assert certificate.bound <= best


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("intercept", [False, True])
def test_what_has_no_relaxation_is_enumerated_and_verified(k, intercept):
    """Fewer rows than columns, no ridge, columns too correlated for bounds on the coefficients."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((7, 9)) + 3.0 * rng.standard_normal((7, 1))
        y = np.sign(rng.standard_normal(7))
        w = sm.Variable(9, name="w")
        shift = sm.Variable(name="b") if intercept else 0.0
        one = sm.Problem(sm.minimize(sm.squared_loss(A @ w + shift, y)), sm.card(w) <= k)
        certificate = one.prove()
        ones = np.ones((7, int(intercept)))
        best = min(
            np.sum(np.square(y - B @ np.linalg.lstsq(B, y, rcond=None)[0]))
            for S in itertools.combinations(range(9), k)
            for B in [np.column_stack([A[:, S], ones])]
        )
        assert certificate.value == pytest.approx(best / 14.0, rel=1e-9)
        assert certificate.bound == pytest.approx(best / 14.0, rel=1e-6)
        verify(certificate, one.form)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_best_gain_is_found_in_steps(k):
    pytest.importorskip("numba")
    from sparsemodel.certificates.proving.gram.kernels.enumeration_compiled import best_gain

    for seed in range(20):
        rng = np.random.default_rng(seed)
        c = int(rng.integers(1, 8))
        B = rng.standard_normal((12, c)) + rng.uniform(0.0, 2.0) * rng.standard_normal((12, 1))
        m, g = B.T @ B, B.T @ rng.standard_normal(12)
        chosen, step, gain = np.full(3, -1), int(rng.integers(1, 4)), 0.0
        for first in range(0, c, step):
            last, offset = min(first + step, c), first if k < 3 else 0
            part = np.ascontiguousarray(m[first:last, first:]) if k < 3 else m
            gain = best_gain(part, offset, np.diag(m).copy(), g, k, first, last, chosen, gain)
        gains = {
            S: g[list(S)] @ np.linalg.solve(m[np.ix_(S, S)], g[list(S)])
            for q in range(1, min(k, c) + 1)
            for S in itertools.combinations(range(c), q)
        }
        assert gain == pytest.approx(max(gains.values()), rel=1e-8)
        found = tuple(sorted(int(i) for i in chosen if i >= 0))
        assert gains[found] == pytest.approx(gain, rel=1e-8)
        diagonal = np.append(-1.0, np.diag(m)[1:])
        assert best_gain(m, 0, diagonal, g, k, 0, c, chosen, 0.0) == np.inf
