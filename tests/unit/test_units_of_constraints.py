"""Constraints hold in whatever units coefficients are: small numbers are no rounding."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, verify
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Ball, Box, Linear, OneNormBall

N, P = 15, 4
CONSTRAINTS = {
    "equation": lambda w, u: [w.sum() == 0.5 * u],
    "inequality": lambda w, u: [w.sum() <= -0.9 * u],
    "order": lambda w, u: [w[0] <= w[1], w[1] <= w[2]],
    "pinched": lambda w, u: [w[0] + w[1] == 0.0, w[0] == w[1]],
    "ball": lambda w, u: [sm.norm(w, 2) <= 0.4 * u],
    "1-norm": lambda w, u: [sm.norm(w, 1) <= 0.4 * u],
    "bounds": lambda w, u: [w >= 0.1 * u],
}
UNITS = [(1.0, 1e-12), (1e8, 1e-60), (1.0, 1e60)]


def _solved(loss, kind, column, target):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, P))
    y = A @ [0.5, -1.0, 0.0, 0.3] + 0.3 * rng.standard_normal(N)
    w = sm.Variable(P)
    goal = sm.minimize(loss((column * A) @ w, target * y))
    limits = CONSTRAINTS[kind](w, target / column)
    problem = sm.Problem(goal, sm.card(w) <= (P if kind == "bounds" else P - 1), *limits)
    value = problem.solve().value
    if column > 1.0 and kind in ("equation", "bounds"):
        certificate = problem.certify()
        verify(certificate, problem.form)
        assert certificate.claim is not Claim.NONE
    return value / (target if loss is sm.absolute_loss else target**2)


@pytest.mark.parametrize(
    "loss", [sm.squared_loss, pytest.param(sm.absolute_loss, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_the_minimum_is_the_same_in_all_units(kind, loss):
    plain = _solved(loss, kind, 1.0, 1.0)
    for column, target in UNITS:
        assert _solved(loss, kind, column, target) == pytest.approx(plain, rel=1e-8), column


@pytest.mark.parametrize("kind", ["equation", "1-norm"])
def test_columns_of_different_sizes_are_proved_like_others(kind):
    rng = np.random.default_rng(0)
    A, u = rng.standard_normal((N, P)), np.exp2([-26.0, 0.0, 26.0, 13.0])
    y = A @ [0.5, -1.0, 0.0, 0.3] + 0.3 * rng.standard_normal(N)
    w = sm.Variable(P)
    goal = sm.minimize(sm.absolute_loss((A * u) @ w, y) + sm.ridge(w, 1e-3 * u * u))
    limit = u @ w == 0.5 if kind == "equation" else sm.norm(np.diag(u) @ w, 1) <= 0.4
    problem = sm.Problem(goal, sm.card(w) <= 2, limit)
    problem.solve()
    certificate = problem.certify()
    verify(certificate, problem.form)
    assert certificate.claim is Claim.OPTIMAL


def test_what_is_broken_is_seen_in_any_units():
    row, one = DenseDesign(np.array([[1.0, -1.0]])), np.ones(1)
    both = np.arange(2)
    for unit in (1e-100, 1e-10, 1.0, 1e10):
        nothing, off = np.zeros(2), np.array([unit, 0.9 * unit])
        assert Linear(row, 0.1 * unit * one, np.inf * one).violation(nothing) > 0.5
        assert Linear(row, 0.0 * one, 0.0 * one).violation(off) > 1e-2
        assert Linear(row, 0.1 * unit * one, 0.1 * unit * one).violation(off) < 1e-15
        assert Ball(both, unit).violation(2.0 * off) > 0.1
        assert Ball(both, 0.0, off).violation(off) == 0.0
        assert OneNormBall(both, unit).violation(off) > 0.1
        box = Box(np.array([unit, 0.0]), np.full(2, np.inf), np.array([0.0, unit]))
        assert [part.tolist() for part in box.broken(0.5 * np.array([unit, -unit]), 1e-9)] == [
            [True, True],
            [False, False],
            [False, True],
        ]
        assert not np.any(box.broken(np.array([unit, 1.0]) * (1.0 - 1e-12), 1e-9)[0])


@pytest.mark.parametrize("limit", ["equation", "norm"])
def test_constraints_in_single_precision_are_those_of_their_entries(limit):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((30, 8)), 10.0 * rng.standard_normal(30)
    c = rng.standard_normal((2, 8)).astype(np.float32)
    wide = c.astype(np.float64)
    d = wide @ np.eye(8)[:2].sum(axis=0)
    w = sm.Variable(8, name="w")
    given = c @ w == d if limit == "equation" else sm.norm(c @ w - d) <= 1e-3
    problem = sm.Problem(sm.minimize(sm.squared_loss(a @ w, b)), sm.card(w) <= 3, given)
    problem.solve()
    assert np.linalg.norm(wide @ w.value - d) <= (1e-14 if limit == "equation" else 1e-3 + 1e-14)
