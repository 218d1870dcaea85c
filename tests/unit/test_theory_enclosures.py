"""Restricted constants: each number that holds for all supports, where it is the one that binds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sparsemodel.certificates.theory import theory
from sparsemodel.certificates.theory.constants import Curvatures, enclose
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.interfaces.self_description import Setting
from sparsemodel.losses import LogisticLoss, SquaredLoss

LEVELS = (1, 2, 3, 5, 7)


def matrix(seed, p=7):
    """Gram matrices of few rows, of many, and nearly diagonal ones, where discs are sharp."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(((5, 30, 30)[seed % 3], p))
    if seed % 3 == 2:
        a = np.vstack([np.diag(rng.uniform(3.0, 30.0, p)), 0.3 * a])
    return a.T @ a


def extremes(h, s):
    values = [np.linalg.eigvalsh(h[np.ix_(c, c)]) for c in itertools.combinations(range(len(h)), s)]
    return max(v[-1] for v in values), min(v[0] for v in values)


def curvatures(h, *, attained=False, lower=True, upper=True, supports=()):
    diagonal = np.diag(h).copy()
    return Curvatures(
        attained=(h,) if attained else (),
        lower=h if lower else None,
        upper=h if upper else None,
        upper_diagonal=diagonal,
        sizes=diagonal,
        floor=0.0,
        rows=30,
        supports=supports,
    )


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("known", [True, False])
def test_what_is_said_of_all_supports_holds_for_all(seed, known):
    """With no support at hand, so that nothing but the bounds for all supports counts."""
    h = matrix(seed)
    found = enclose(curvatures(h, lower=known, upper=known), LEVELS)
    for s in LEVELS:
        most, least = extremes(h, s)
        assert most <= found[s].smoothness[1] * (1.0 + 1e-12)
        assert found[s].convexity[0] <= max(least, 0.0)
    if known:
        assert found[7].smoothness[1] == pytest.approx(extremes(h, 7)[0], rel=1e-9)
        assert found[1].smoothness[1] == pytest.approx(extremes(h, 1)[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_attained_is_attained_by_a_support(seed):
    h = matrix(seed)
    found = enclose(curvatures(h, attained=True, supports=(np.array([1, 4]),)), LEVELS)
    for s in LEVELS:
        most, least = extremes(h, s)
        assert 0.9 * most <= found[s].smoothness[0] <= most
        assert least <= found[s].convexity[1] + 1e-12 * most
        assert found[s].convexity[1] <= 2.0 * least + 1e-2 * most


def test_a_singular_matrix_is_not_called_convex():
    """Equal columns: the smallest eigenvalue is zero, and comes out of either sign."""
    positive = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        a = rng.standard_normal((30, 3))
        a[:, 2] = a[:, 1]
        h = a.T @ a
        positive += float(np.linalg.eigvalsh(h)[0]) > 0.0
        assert enclose(curvatures(h), (3,))[3].convexity[0] == 0.0
    assert positive > 5


# ---- what the theorems are given -----------------------------------------------------------------


def setting_of(form, x, monkeypatch) -> Setting:
    found = []
    from sparsemodel.certificates.theory import build

    guarantees = build._guarantees
    monkeypatch.setattr(
        build, "_guarantees", lambda s, used: found.append(s) or guarantees(s, used)
    )
    theory(form, x)
    return found[0]


def test_the_setting_is_that_of_the_problem(monkeypatch):
    rng = np.random.default_rng(0)
    n, p, k = 12, 9, 2
    a, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    ridge = rng.uniform(0.5, 2.0, p)
    term = Term(DenseDesign(a), SquaredLoss(), y, np.full(n, 0.25))
    form = SparseRegression((term,), ridge, Cardinality(p, k))
    x = np.zeros(p)
    x[[1, 4]] = [2.0, -0.5]
    s = setting_of(form, x, monkeypatch)
    slopes = 0.25 * a.T @ (a @ x - y)
    off = np.abs(slopes)[[j for j in range(p) if j not in (1, 4)]].max()
    assert s.slopes == pytest.approx((np.abs(slopes).max(), off))
    assert s.coefficients == pytest.approx((0.5, np.sqrt(4.25)))
    assert (s.ridge, s.weight, s.observations) == (0.0, pytest.approx(n * 0.25), n)
    assert s.norm >= np.linalg.norm(a, 2) * (1.0 - 1e-12)
    assert s.norm <= np.linalg.norm(a) * (1.0 + 1e-12)
    largest = np.sort(a**2, axis=1)[:, p - 4 * k :].sum(axis=1).max()
    assert s.row_smoothness == pytest.approx(n * 0.25 * largest + ridge.max())
    data = 0.25 * a.T @ a
    for level, c in s.data.items():
        most, least = extremes(data, level)
        assert c.smoothness[0] <= most <= c.smoothness[1]
        assert c.convexity[0] <= least + 1e-12
        assert least <= c.convexity[1]
    same = SparseRegression((term,), np.full(p, 0.5), Cardinality(p, k))
    assert setting_of(same, x, monkeypatch).ridge == 0.5


def test_the_trace_bounds_a_smooth_loss_of_many_columns():
    """Up to 4000 coordinates there is a matrix; beyond it the diagonal, ridge included, is all."""
    rng = np.random.default_rng(0)
    n, p = 5, 4001
    a = rng.standard_normal((n, p))
    term = Term(DenseDesign(a), LogisticLoss(), np.ones(n), np.ones(n))
    ridge = rng.uniform(50.0, 60.0, p)
    form = SparseRegression((term,), ridge, Cardinality(p, 1))
    c = theory(form, np.zeros(p)).level(1)
    exact = 0.25 * np.square(a).sum(axis=0) + ridge
    assert exact.max() <= c.smoothness[1] <= exact.max() * (1.0 + 1e-9)
    assert c.convexity[0] <= exact.min()
