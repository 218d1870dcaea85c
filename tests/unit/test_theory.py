"""Restricted constants against all supports, and the theorems' conditions against their papers."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import certify
from sparsemodel.certificates.theory import theory
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import (
    Cardinality,
    ModelError,
    SparseRegression,
    Term,
    UnsupportedProblemError,
)
from sparsemodel.losses import LogisticLoss, SquaredLoss
from sparsemodel.numerics import expansion


def squared(seed, *, p=9, n=20, k=2, free=(), rho=0.4, scale=1.0, ridge=None):
    rng = np.random.default_rng(seed)
    mixing = np.linalg.cholesky((1.0 - rho) * np.eye(p) + rho)
    a = scale * rng.standard_normal((n, p)) @ mixing.T
    if len(free):
        a[:, list(free)] = 1.0
    y = a[:, p - 1] * 2.0 + rng.standard_normal(n)
    lam = rng.uniform(0.0, 0.3, p) if ridge is None else np.full(p, ridge)
    sparsity = Cardinality(p, k, free=np.array(free, dtype=np.intp))
    term = Term(DenseDesign(a), SquaredLoss(), y, np.full(n, 1.0 / n))
    return SparseRegression((term,), lam, sparsity), a


def brute(h, s):
    """The extreme restricted eigenvalues over all supports of size ``s``."""
    values = [np.linalg.eigvalsh(h[np.ix_(c, c)]) for c in itertools.combinations(range(len(h)), s)]
    return max(v[-1] for v in values), min(v[0] for v in values)


@pytest.mark.parametrize("seed", range(12))
def test_constants_enclose_those_of_all_supports(seed):
    n = 20 if seed % 3 else 6
    form, a = squared(seed, n=n, scale=10.0 ** (seed % 5 - 2), rho=(seed % 4) / 4.0)
    h = a.T @ a / n + np.diag(form.ridge)
    found = theory(form, np.zeros(9))
    assert [c.level for c in found.constants] == [2, 4, 5, 6, 8]
    for c in found.constants:
        most, least = brute(h, c.level)
        assert c.smoothness[0] <= most <= c.smoothness[1] * (1.0 + 1e-12)
        assert c.convexity[0] * (1.0 - 1e-12) <= least + 1e-15 * most
        assert least <= c.convexity[1] + 1e-12 * most
        # What is attained is not far off on problems as small as these.
        assert c.smoothness[0] >= 0.95 * most
        assert c.convexity[1] <= 1.3 * least + 1e-3 * most
        assert c.condition[0] <= max(1.0, most / least) <= c.condition[1] * (1.0 + 1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_free_coordinates_are_minimised_out(ridge):
    form, a = squared(3, free=(0,), ridge=ridge)
    centred = a[:, 1:] - (a[:, 1:].mean(axis=0) if ridge == 0.0 else 0.0)
    h = centred.T @ centred / 20 + ridge * np.eye(8)
    if ridge:
        cross = a[:, 1:].mean(axis=0)
        h -= np.outer(cross, cross) / (1.0 + ridge)
    for c in theory(form, np.zeros(9)).constants:
        most, least = brute(h, c.level)
        assert c.smoothness[0] <= most * (1.0 + 1e-12) <= c.smoothness[1] * (1.0 + 1e-11)
        assert c.convexity[0] <= least * (1.0 + 1e-11)
        assert least <= c.convexity[1] * (1.0 + 1e-11)


def test_constants_of_a_logistic_loss_hold_at_every_point(rng):
    n, p = 30, 7
    a = rng.standard_normal((n, p))
    y = np.where(a[:, 0] > 0.0, 1.0, -1.0)
    term = Term(DenseDesign(a), LogisticLoss(), y, np.full(n, 1.0 / n))
    form = SparseRegression((term,), np.full(p, 0.1), Cardinality(p, 2))
    x = np.zeros(p)
    x[[0, 3]] = [2.0, -1.0]
    found = theory(form, x)
    for _ in range(20):
        point = rng.standard_normal(p) * 3.0
        s = 1.0 / (1.0 + np.exp(-a @ point))
        h = (a * (s * (1.0 - s))[:, None]).T @ a / n + 0.1 * np.eye(p)
        for c in found.constants:
            most, least = brute(h, c.level)
            assert most <= c.smoothness[1]
            assert least >= c.convexity[0]
    at_zero = 0.25 * a.T @ a / n + 0.1 * np.eye(p)
    assert found.level(2).smoothness[0] == pytest.approx(brute(at_zero, 2)[0], rel=1e-6)


def test_many_columns_are_searched_not_tabulated():
    rng = np.random.default_rng(0)
    n, p = 30, 4100
    a = rng.standard_normal((n, p))
    term = Term(DenseDesign(a), SquaredLoss(), a[:, 5].copy(), np.full(n, 1.0 / n))
    form = SparseRegression((term,), np.full(p, 0.2), Cardinality(p, 2))
    found = theory(form, np.zeros(p))
    squares = np.sort(np.square(a).sum(axis=0) / n)[::-1]
    c = found.level(2)
    assert squares[0] + 0.2 <= c.smoothness[0] * (1.0 + 1e-9)
    assert c.smoothness[1] <= squares[0] + squares[1] + 0.4 + 1e-9
    assert c.convexity[0] == pytest.approx(0.2)
    assert 0.2 <= c.convexity[1] <= squares[-1] + 0.2


def test_an_orthogonal_design_satisfies_everything():
    p = 30
    a = math.sqrt(p) * np.eye(p)
    y = np.zeros(p)
    y[3] = 1.0
    term = Term(DenseDesign(a), SquaredLoss(), y, np.full(p, 1.0 / p))
    form = SparseRegression((term,), np.full(p, 1.0), Cardinality(p, 1))
    x = np.zeros(p)
    x[3] = y[3] / math.sqrt(p) / 2.0
    found = theory(form, x)
    assert all(c.condition == pytest.approx((1.0, 1.0)) for c in found.constants)
    assert not found.applies("TIGHT, Theorem 6")  # the ridge is not part of its objective
    bare = theory(replace(form, ridge=np.zeros(p)), 2.0 * x)
    for name in ("GraHTP, Theorem 2(a)", "GraHTP, Theorem 2(b)", "TIGHT, Theorem 6"):
        assert bare.applies(name)
    assert found.applies("DIHT, Theorem 17")
    assert not found.applies("DIHT, Theorem 15")  # dual variables of squares are not bounded
    assert found.applies("NHTP, Theorem 9")
    # k = 1 is less than (2 + 16) kbar and than 18 s*, however well conditioned.
    assert not found.applies("GraHTP, Theorem 5(a)")
    assert not found.applies("ARHT, Theorem 3.1")
    wide = SparseRegression((term,), np.full(p, 1.0), Cardinality(p, 14))
    assert not theory(wide, x).applies("ARHT, Theorem 3.1")
    big = theory(squared(0, p=60, n=60, k=20, ridge=1e5)[0], np.zeros(60))
    assert big.applies("ARHT, Theorem 3.1")
    assert big.applies("GraHTP, Theorem 5(a)")


def test_the_numbers_are_those_of_the_papers():
    assert expansion(1000, 10, 10) == pytest.approx((3.0 + math.sqrt(5.0)) / 2.0)
    nu = expansion(1000, 10, 10)
    assert 1.0 / math.sqrt(8.0 * nu) == pytest.approx(0.2185, abs=1e-4)  # "0.22", after Theorem 6
    from sparsemodel_backends.theorems.tight import _cosamp

    assert _cosamp(nu) == pytest.approx(0.312, abs=1e-3)  # "0.31", after Theorem 7
    twenty = 1.0 / math.sqrt(8.0 * expansion(10**6, 20, 1))
    assert twenty == pytest.approx(0.32, abs=0.01)  # k = 20 K: delta_(41 K) <= 0.32


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_of_theorem_13_is_not_exceeded(seed):
    """The printed bound on the gap of the best dual point, against certificates of the optimum."""
    held = 0
    for lam in (1e-3, 1e-2, 0.1, 0.3):
        form, _ = squared(seed, p=8, n=60, k=2, rho=0.2, ridge=lam)
        best, at = math.inf, np.zeros(8)
        for pair in itertools.combinations(range(8), 2):
            x = np.zeros(8)
            a, y = form.terms[0].design.to_array()[:, pair], form.terms[0].target
            x[list(pair)] = np.linalg.solve(a.T @ a / 60 + lam * np.eye(2), a.T @ y / 60)
            value = 0.5 * np.mean((a @ x[list(pair)] - y) ** 2) + 0.5 * lam * x @ x
            if value < best:
                best, at = value, x
        told = next(g for g in theory(form, at).guarantees if g.source == "DIHT, Theorem 13")
        if told.status == "holds":
            held += 1
            assert certify(form, at).bound >= best - told.numbers["gap at most"] - 1e-12
    assert held or seed != 0


def test_a_problem_tells_its_theory(rng):
    a = rng.standard_normal((80, 10))
    w = sm.Variable(10, name="w")
    loss = sm.squared_loss(a @ w, a[:, 0] - a[:, 1]) + sm.ridge(w, 0.1)
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 2)
    told = problem.theory()
    text = str(told)
    for source in ("GraHTP", "NHTP", "ARHT", "TIGHT", "DIHT"):
        assert source in text
    assert "theorems apply" in told._repr_html_()
    plain = json.loads(json.dumps(told.to_dict(), allow_nan=False))
    assert plain["constants"][0]["level"] == 2
    with pytest.raises(KeyError, match="computed were 2, 4"):
        told.level(3)
    with pytest.raises(KeyError, match="no theorem"):
        told.applies("Fermat")


def test_losses_without_curvature_satisfy_no_theorem(rng):
    a = rng.standard_normal((40, 5))
    w = sm.Variable(5)
    loss = sm.hinge_loss(a @ w, np.sign(a[:, 0])) + sm.ridge(w, 0.1)
    told = sm.Problem(sm.minimize(loss), sm.card(w) <= 2).theory()
    assert not told.constants
    assert {g.status for g in told.guarantees} == {"fails"}
    assert "no second derivative" in str(told)


def test_what_is_not_treated_says_why(rng):
    a = rng.standard_normal((40, 6))
    w = sm.Variable(6)
    loss = sm.squared_loss(a @ w, a[:, 0])
    with pytest.raises(UnsupportedProblemError, match="groups"):
        sm.Problem(sm.minimize(loss), sm.card(w, groups=[0, 0, 1, 1, 2, 2]) <= 1).theory()
    with pytest.raises(UnsupportedProblemError, match="beside the cardinality"):
        sm.Problem(sm.minimize(loss), [sm.card(w) <= 1, w >= 0]).theory()
    omega = sm.Variable((3, 3), symmetric=True)
    goal = sm.minimize(sm.gaussian_nll(omega, np.eye(3)))
    with pytest.raises(ModelError, match="regressions"):
        sm.Problem(goal, sm.card(sm.offdiag(omega)) <= 2).theory()
