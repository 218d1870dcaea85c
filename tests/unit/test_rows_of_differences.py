"""Rows of a matrix that differ from the one before: change points of several sequences together."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm


def segments(Y: np.ndarray, k: int) -> float:
    """The least mean squares of a sequence with ``k`` changes, of all places."""
    n = len(Y)

    def cost(a: int, b: int) -> float:
        return float(np.square(Y[a:b] - Y[a:b].mean(axis=0)).sum())

    ends = ((0, *places, n) for places in combinations(range(1, n), k))
    return min(sum(map(cost, e[:-1], e[1:])) for e in ends) / (2.0 * n)


@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_joint_change_points_are_those_of_all_places(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((14, 2)) + 2.0 * rng.standard_normal((4, 2))[np.arange(14) // 4]
    W = sm.Variable((14, 2), name="W")
    problem = sm.Problem(sm.minimize(sm.squared_loss(W, Y)), sm.card(sm.diff(W), axis=1) <= k)
    assert problem.solve().value == pytest.approx(segments(Y, k), rel=1e-9)
    changed = np.any(np.diff(W.value, axis=0) != 0.0, axis=1)
    assert changed.sum() <= k
    np.testing.assert_allclose(sm.squared_loss(W, Y).value, segments(Y, k), rtol=1e-9)


def test_a_proof_and_a_path_with_a_matrix_of_data() -> None:
    """Coefficients that change along a sequence, and their ridge, which stays that of W."""
    rng = np.random.default_rng(1)
    A, truth = rng.standard_normal((60, 8)), np.repeat([[1.0, -1.0], [3.0, 0.0]], 4, axis=0)
    Y = A @ truth + 0.1 * rng.standard_normal((60, 2))
    W, k = sm.Variable((8, 2), name="W"), sm.Parameter(integer=True, value=1)
    goal = sm.minimize(sm.squared_loss(A @ W, Y) + sm.ridge(W, 0.1))
    problem = sm.Problem(goal, sm.card(sm.diff(W), axis=1) <= k)

    def best(places: Any) -> float:
        steps = (np.arange(8)[:, None] >= np.array([0, *places])).astype(float)
        B = A @ steps
        V = np.linalg.solve(B.T @ B / 60 + 0.1 * steps.T @ steps, B.T @ Y / 60)
        rest, own = Y - B @ V, steps @ V
        return float(np.square(rest).sum() / 120 + 0.05 * np.square(own).sum())

    want = [min(map(best, combinations(range(1, 8), r))) for r in range(4)]
    assert problem.solve().value == pytest.approx(want[1], rel=1e-8)
    assert problem.prove().bound <= want[1] * (1.0 + 1e-9)
    assert problem.certify().relative_gap < 1e-3
    np.testing.assert_array_equal(np.flatnonzero(np.diff(W.value[:, 0])), [3])
    again = problem.solve("grahtp", start="value")
    assert again.value == pytest.approx(want[1], rel=1e-6)
    np.testing.assert_allclose(problem.predict(A), A @ W.value, atol=1e-12)
    np.testing.assert_allclose(problem.path(k, range(4)).objective, want, rtol=1e-6)


def test_what_is_not_understood_beside_rows_of_differences_says_what_to_write() -> None:
    W, Y = sm.Variable((9, 2), name="W"), np.ones((9, 2))
    rows = sm.card(sm.diff(W), axis=1) <= 2
    goal = sm.minimize(sm.squared_loss(W, Y))
    with pytest.raises(sm.ModelError, match=r"sm\.card\(sm\.diff\(W\[:, j\]\)\) <= k for j"):
        sm.Problem(goal, rows, sm.card(W[:, 0]) <= 3)
    with pytest.raises(sm.ModelError, match="ridge into the objective in their place"):
        sm.Problem(goal, rows, W >= 0.0)
    with pytest.raises(sm.ModelError, match=r"its rows, sm\.card\(sm\.diff\(W\), axis=1\)"):
        sm.card(sm.diff(W))
    with pytest.raises(sm.ModelError, match=r"differences of its rows"):
        sm.card(np.eye(9) @ W, axis=1)
