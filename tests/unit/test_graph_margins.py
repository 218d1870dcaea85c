"""Margins of bounds on precision matrices, of both readers: cases that fail without them."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sparsemodel.certificates.precision_matrices.spectral_bounds import (
    Enclosure,
    added,
    dual_value,
    enclose,
    narrowed,
    node_minorant,
    unconstrained,
)
from sparsemodel.checker.graphs import graph as checker
from sparsemodel.checker.proof.arithmetic import Ball
from sparsemodel.checker.proof.supports import Supports
from sparsemodel.interfaces.precision import SparsePrecision


def covariance(seed: int, p: int = 4, digits: float = 1.0) -> np.ndarray:
    """Return a covariance whose eigenvalues span so many digits."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((p, p)))[0]
    S = (Q * np.logspace(0.0, -digits, p)) @ Q.T
    return 0.5 * (S + S.T)


def of_the_checker(form: SparsePrecision) -> Any:
    """Return the problem as the checker knows it, without a file."""
    g = SimpleNamespace(p=form.order, S=form.covariance, rows=form.rows, cols=form.cols)
    g.alpha, g.beta, g.counted = form.alpha, form.beta, form.sparsity.counted
    g.diagonal, g.matrix = form.rows == form.cols, form.matrix
    zero = Ball(np.zeros(int(g.counted.sum())))
    g.supports = lambda: Supports(form.sparsity.budget, zero)
    return g


def likelihood(form: SparsePrecision, omega: np.ndarray) -> float:
    return float(np.sum(form.covariance * omega) - np.linalg.slogdet(omega)[1])


def at_the_level(form: SparsePrecision, upper: float) -> list[np.ndarray]:
    """Return the matrices with ``L = upper`` that have the largest entries of either sign.

    They are ``inv(S - nu E)``, where ``E`` picks the entry; also those with the largest and the
    least eigenvalue.
    """
    S, p, found = form.covariance, form.order, []
    V = np.linalg.eigh(S)[1]
    picks = [np.outer(v, v) for v in (V[:, 0], V[:, -1])]
    for i, j in zip(*np.triu_indices(p, 1), strict=True):
        E = np.zeros((p, p))
        E[i, j] = E[j, i] = 1.0
        picks.append(E)
    for E, sign in product(picks, (1.0, -1.0)):
        low, high = 0.0, 1.0
        while np.linalg.eigvalsh(S - sign * high * E)[0] > 0.0 and high < 1e6:
            high *= 2.0
        for _ in range(200):
            nu = 0.5 * (low + high)
            fits = np.linalg.eigvalsh(S - sign * nu * E)[0] > 0.0
            fits = fits and likelihood(form, np.linalg.inv(S - sign * nu * E)) <= upper
            low, high = (nu, high) if fits else (low, nu)
        found.append(np.linalg.inv(S - sign * low * E))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_weighted_sums_are_rounded_on_the_safe_side(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, values = rng.integers(1, 100, 3), rng.standard_normal(3)
    values[2] = -(weights[:2] @ values[:2]) / weights[2]  # what is left is rounding
    shares = (weights / weights.sum()).tolist()
    exact = sum(
        Fraction(int(w), int(weights.sum())) * Fraction(v)
        for w, v in zip(weights, values.tolist(), strict=True)
    )
    assert added(shares, values.tolist(), -1.0) <= exact <= added(shares, values.tolist(), 1.0)


def test_bounds_are_below_the_infimum_however_ill_conditioned_the_data() -> None:
    """Without edges to choose, the infimum is ``log det S + p``, here of exact numbers."""
    over = 0
    for seed in range(12):
        S = covariance(seed, digits=6.0)
        form = SparsePrecision.build(S, 6)
        exact = log_determinant(S) + len(S)
        free = Enclosure(0.0, math.inf, np.full(form.shape, math.inf))
        zero = np.zeros(form.shape)
        plain = float(np.sum(1.0 + np.log(np.linalg.eigvalsh(S))))
        over += plain > exact + 1e-12
        assert dual_value([form], zero[None], np.zeros(1), [free])[0] <= exact
        assert unconstrained(S, np.linalg.eigvalsh(S), 0.0, math.inf) <= exact
        g = of_the_checker(form)
        assert checker.minorant(g, zero, 0.0, (0.0, math.inf, free.entries))[0] <= exact
    assert over > 3  # of the numbers as computed that cannot be said


def test_bounds_are_below_the_infimum_where_logarithms_are_large() -> None:
    over, free = 0, Enclosure(0.0, math.inf, np.full(3, math.inf))
    for size in np.random.default_rng(0).uniform(1e-140, 1e-130, 20).tolist():
        form = SparsePrecision.build(size * np.eye(2), 1)
        exact = 2 * (1 + Decimal(size).ln())
        over += Decimal(2.0 * (1.0 + math.log(size))) > exact
        found = dual_value([form], np.zeros((1, 3)), np.zeros(1), [free])[0]
        assert Decimal(found) <= exact
        g = of_the_checker(form)
        box = (0.0, math.inf, free.entries)
        assert Decimal(checker.minorant(g, np.zeros(3), 0.0, box)[0]) <= exact
    assert over > 3


def log_determinant(S: np.ndarray) -> float:
    """Return the logarithm of the determinant of floats, exact but for the last step."""
    rows, out = [[Fraction(v) for v in row] for row in S.tolist()], Fraction(1)
    for i, pivot in enumerate(rows):
        out *= pivot[i]
        for row in rows[i + 1 :]:
            share = row[i] / pivot[i]
            for j in range(i, len(rows)):
                row[j] -= share * pivot[j]
    return math.log(out)


def test_what_an_edge_takes_is_rounded_up() -> None:
    rng = np.random.default_rng(0)
    form = SparsePrecision.build(covariance(1, p=8), 3)
    U, mu = 0.01 * rng.standard_normal(form.shape), 0.7
    box = Enclosure(0.0, 1.1, np.full(form.shape, 10.0))  # no entry is at its bound
    exact = [Fraction(u) ** 2 / Fraction(mu) for u in U[form.sparsity.counted].tolist()]
    ours = node_minorant(form, U, mu, box)
    theirs = checker.minorant(of_the_checker(form), U, mu, (0.0, 1.1, box.entries))[1]
    assert ours is not None
    for gains in (ours.minorant.gains, theirs):
        assert all(g >= e for g, e in zip(gains.tolist(), exact, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_both_readers_find_the_same_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    required = np.zeros((4, 4), dtype=bool)
    required[0, 1] = required[1, 0] = True
    form = SparsePrecision.build(covariance(seed), 2, required=required, alpha=0.2, beta=30.0)
    g = of_the_checker(form)
    for mu in (0.0, 0.3, 2.0):
        box = Enclosure(0.2, 30.0, rng.uniform(1.0, 5.0, form.shape))
        U = 0.05 * rng.standard_normal(form.shape)
        one = dual_value([form], U[None], np.array([mu]), [box])[0]
        two = g.supports().bound(*checker.minorant(g, U, mu, (0.2, 30.0, box.entries)))
        assert one == pytest.approx(two, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("required", [False, True])
def test_a_set_holds_every_matrix_that_is_as_good(seed: int, required: bool) -> None:
    """The extreme ones among them are known, and are in the sets of both readers."""
    rng = np.random.default_rng(seed)
    mask = np.full((3, 3), required) & ~np.eye(3, dtype=bool)
    form = SparsePrecision.build(covariance(seed, p=3), 0 if required else 3, required=mask)
    upper = likelihood(form, np.linalg.inv(form.covariance)) + 10.0 ** -rng.integers(0, 3)
    g, diagonal = of_the_checker(form), form.rows == form.cols
    ours = Enclosure(0.0, math.inf, np.full(form.shape, math.inf))
    theirs: Any = (0.0, math.inf, ours.entries)
    matrices = at_the_level(form, upper)
    off = np.where(diagonal, 0.0, form.entries(form.covariance))
    duals = [0.0 * off, -off, *(0.2 * rng.standard_normal(form.shape) * ~diagonal for _ in "abc")]
    for U in duals:
        ours, theirs = enclose(form, U, upper, ours), checker._smaller(g, U, upper, theirs)
        for box in (ours, Enclosure(*theirs)):
            for omega in matrices:
                t, x = np.linalg.eigvalsh(omega), form.entries(omega)
                assert box.alpha * (1.0 - 1e-9) <= t[0]
                assert t[-1] <= box.beta * (1.0 + 1e-9)
                assert np.all(np.abs(x) <= box.entries * (1.0 + 1e-9))


@pytest.mark.parametrize("seed", range(4))
def test_what_a_dual_point_leaves_open_holds_every_matrix_that_is_as_good(seed: int) -> None:
    rng = np.random.default_rng(seed)
    form = SparsePrecision.build(covariance(seed, p=3), 3)
    upper = likelihood(form, np.linalg.inv(form.covariance)) + 0.1
    zero = np.zeros(form.shape)
    box = enclose(form, zero, upper, Enclosure(0.0, math.inf, np.full(form.shape, math.inf)))
    box = Enclosure(box.alpha, 2.0 * box.beta, 2.0 * box.entries)

    def gap(low: Any) -> float:
        return upper - (low.base - float(np.sort(low.gains)[-3:].sum()))

    for U in (zero, 0.02 * rng.standard_normal(form.shape)):
        found = narrowed(form, U, 0.0, box, gap)
        assert found.beta <= box.beta
        for omega in at_the_level(form, upper):
            assert np.linalg.eigvalsh(omega)[-1] <= found.beta * (1.0 + 1e-9)
            assert np.all(np.abs(form.entries(omega)) <= found.entries * (1.0 + 1e-9))
