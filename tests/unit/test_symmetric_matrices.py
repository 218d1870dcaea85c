"""Symmetric matrices beside any loss: all supports of the upper triangle, and CVXPY on them."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim
from sparsemodel.checker.__main__ import main

P, N = 4, 15
RNG = np.random.default_rng(5)
A = RNG.standard_normal((N, P))
S = RNG.standard_normal((P, P))
S = S + S.T
B = A @ S + 0.5 * RNG.standard_normal((N, P))
UPPER = list(zip(*np.triu_indices(P), strict=True))


@cache
def every_support() -> dict:
    """Return half the squares and a ridge, least on each set of entries above."""
    columns, found = [], {}
    target = np.r_[B.ravel(), np.zeros(P * P)]
    for i, j in UPPER:
        e = np.zeros((P, P))
        e[i, j] = e[j, i] = 1.0
        columns.append(np.r_[(A @ e).ravel(), np.sqrt(0.3) * e.ravel()])
    x = np.transpose(columns)
    for size in range(len(UPPER) + 1):
        for on in combinations(range(len(UPPER)), size):
            kept = x[:, list(on)]
            rest = target - kept @ np.linalg.solve(kept.T @ kept, kept.T @ target)
            found[tuple(UPPER[i] for i in on)] = 0.5 * float(rest @ rest)
    return found


def least(allowed) -> float:
    return min(value for chosen, value in every_support().items() if allowed(chosen))


def matrix() -> sm.Variable:
    return sm.Variable((P, P), symmetric=True, name="W")


def terms(W):
    return sm.squared_loss(A @ W, B, reduction="sum") + sm.ridge(W, 0.3)


def fit(W):
    return sm.minimize(terms(W))


def pairs(chosen) -> int:
    return sum(i != j for i, j in chosen)


@pytest.mark.parametrize(
    ("limit", "allowed"),
    [
        (lambda W: sm.card(sm.offdiag(W)) <= 5, lambda c: pairs(c) <= 2),
        (lambda W: sm.card(W) <= 5, lambda c: len(c) + pairs(c) <= 5),
        (lambda W: sm.card(W[0, 1:]) <= 1, lambda c: sum(i == 0 < j for i, j in c) <= 1),
        (
            lambda W: [sm.card(sm.offdiag(W)) <= 4, sm.forbidden_edges(W, [(0, 3)])],
            lambda c: pairs(c) <= 2 and (0, 3) not in c,
        ),
        (
            lambda W: [sm.card(sm.offdiag(W)) <= 2, sm.required_edges(W, [(0, 1)]), W[2, 2] == 0],
            lambda c: pairs(set(c) - {(0, 1)}) <= 1 and (2, 2) not in c,
        ),
    ],
)
def test_limits_are_those_of_all_supports(limit, allowed, tmp_path: Path) -> None:
    W = matrix()
    problem = sm.Problem(fit(W), limit(W))
    solution, best = problem.solve(), least(allowed)
    assert solution.value == pytest.approx(best, rel=1e-9)
    np.testing.assert_array_equal(W.value, W.value.T)
    proof = problem.prove()
    assert proof.claim is Claim.OPTIMAL
    assert proof.bound <= best * (1.0 + 1e-12)
    E = np.zeros((P * P, len(UPPER)))
    for place, (i, j) in enumerate(UPPER):
        E[[i * P + j, j * P + i], place] = 1.0
    np.savez(tmp_path / "data.npz", A=np.kron(A, np.eye(P)) @ E, b=B.ravel(), c=np.ones(N * P))
    path = proof.save(tmp_path / "proof.json")
    assert main([str(path), str(tmp_path / "data.npz")]) == 0


def test_a_path_over_entries_counts_both_of_a_pair() -> None:
    W, k = matrix(), sm.Parameter(name="k")
    points = sm.Problem(fit(W), sm.card(W) <= k).path(k, [0, 2, 3, 6])
    for point in points:
        expected = least(lambda c, k=point.k: len(c) + pairs(c) <= k)
        assert point.value == pytest.approx(expected, rel=1e-6)
    edges = sm.Problem(fit(W), sm.card(sm.offdiag(W)) <= 2 * k).path(k, [0, 1, 2])
    for point in edges:
        assert point.value == pytest.approx(least(lambda c, k=point.k: pairs(c) <= k), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_nearest_matrix_has_the_largest_entries(scale: float) -> None:
    W = matrix()
    problem = sm.Problem(sm.minimize(sm.norm(W - scale * S) ** 2), sm.card(sm.offdiag(W)) <= 4)
    problem.solve()
    off = np.abs(np.triu(S, 1))
    kept = off >= np.sort(off.ravel())[-2]
    np.testing.assert_allclose(
        W.value, np.where(kept | kept.T | np.eye(P, dtype=bool), scale * S, 0)
    )
    assert problem.certify().relative_gap <= 1e-6


def test_prices_norms_bounds_and_linear_constraints_are_about_all_entries() -> None:
    W = matrix()
    priced = sm.Problem(sm.minimize(terms(W) + 2.0 * sm.card(W))).solve()
    free = least(lambda c: True)
    each = [least(lambda c, k=k: len(c) + pairs(c) <= k) + 2.0 * k for k in range(17)]
    assert priced.value == pytest.approx(min(each), rel=1e-9)
    low = np.where(np.tri(P, k=-1, dtype=bool), -0.5, -np.inf)
    for limits in (
        lambda V, sums: [V.sum() == 1.0, V @ np.ones(P) >= -1.0],
        lambda V, sums: [sums(V, 0) == np.ones(P), V[0, 1] + V[2, 3] == 0.0],
        lambda V, sums: [low <= V, V <= 0.7],
        lambda V, sums: [cp.norm(V, "fro") <= 1.0 if sums is cp.sum else sm.norm(V) <= 1.0],
    ):
        found = sm.Problem(fit(W), limits(W, lambda V, axis: V.sum(axis))).solve()
        V = cp.Variable((P, P), symmetric=True)
        goal = 0.5 * cp.sum_squares(A @ V - B) + 0.15 * cp.sum_squares(V)
        expected = cp.Problem(cp.Minimize(goal), limits(V, cp.sum)).solve(solver=cp.CLARABEL)
        assert found.value == pytest.approx(expected, rel=1e-6)
        assert found.value > free
    V = cp.Variable((P, P), symmetric=True)
    goal = cp.Minimize(0.5 * cp.sum_squares(A @ V - B) + 0.15 * cp.sum_squares(V))
    value = sm.Problem(goal, [sm.card(sm.offdiag(V)) <= 4, V[0, 1] == 0]).solve().value
    assert value == pytest.approx(least(lambda c: pairs(c) <= 2 and (0, 1) not in c), rel=1e-9)
    np.testing.assert_array_equal(V.value, V.value.T)


def test_each_row_has_few_entries():
    W = matrix()
    problem = sm.Problem(fit(W), [sm.card(W[i, :]) <= 2 for i in range(P)])
    best = least(lambda c: all(sum(i in pair for pair in c) <= 2 for i in range(P)))
    assert problem.solve().value == pytest.approx(best, rel=1e-9)
    assert np.count_nonzero(W.value, axis=1).max() <= 2
    assert problem.prove(gap=1e-6).bound == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (lambda W: sm.card(W, axis=1) <= 2, r"rows of W.*sm\.card\(sm\.offdiag\(W\)\)"),
        (lambda W: sm.card(W - S) <= 2, "A @ D"),
        (lambda W: sm.chosen(W[:2, :2]) <= sm.chosen(W[0, 0]), "name each once"),
    ],
)
def test_what_cannot_be_had_is_said(limit, words) -> None:
    W = matrix()
    with pytest.raises(sm.ModelError, match=words):
        sm.Problem(fit(W), limit(W))
