"""Objectives without a loss: the least norm under constraints, and what is refused."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import sparsemodel as sm

N = 10


def data(seed: int) -> tuple[Any, Any]:
    A = np.random.default_rng(seed).standard_normal((3, N))
    return A, A[:, :2].sum(axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_the_least_norm_is_that_of_all_supports(seed: int) -> None:
    A, b = data(seed)
    supports = (list(s) for s in combinations(range(N), 4))
    norms = [float(np.sum((np.linalg.pinv(A[:, s]) @ b) ** 2)) for s in supports]
    w, x = sm.Variable(N, name="w"), cp.Variable(N)
    ours = sm.Problem(sm.minimize(sm.ridge(w, 2.0)), A @ w == b, sm.card(w) <= 4).solve()
    theirs = sm.Problem(cp.Minimize(cp.sum_squares(x)), [A @ x == b, sm.card(x) <= 4]).solve()
    assert ours.value == pytest.approx(min(norms), rel=1e-6)
    assert theirs.value == pytest.approx(min(norms), rel=1e-6)


def test_the_least_norm_of_rows_of_a_matrix() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2, 8))
    Y = rng.standard_normal((2, 3))
    supports = (list(s) for s in combinations(range(8), 3))
    norms = [0.5 * float(np.sum((np.linalg.pinv(A[:, s]) @ Y) ** 2)) for s in supports]
    B = sm.Variable((8, 3), name="B")
    limits = [A @ B == Y, sm.card(B, axis=1) <= 3]
    solution = sm.Problem(sm.minimize(sm.ridge(B, 1.0)), limits).solve()
    assert solution.value == pytest.approx(min(norms), rel=1e-6)


def fewest(G: np.ndarray, feasible: Any) -> int:
    """The least number of columns that a linear program is feasible with, of all supports."""
    n = G.shape[1]
    return next(k for k in range(n + 1) for s in combinations(range(n), k) if feasible(list(s)))


@pytest.mark.parametrize("kind", ["inequalities", "equations", "equations, w >= 0"])
@pytest.mark.parametrize("seed", range(4))
def test_the_fewest_nonzeros_under_linear_constraints_are_those_of_all_supports(
    seed: int, kind: str
) -> None:
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((3, 7))
    point = np.zeros(7)
    point[rng.choice(7, 2, replace=False)] = rng.uniform(1.0, 2.0, 2)
    h = G @ point
    w = sm.Variable(7, name="w")
    limits = [G @ w <= h] if kind == "inequalities" else [G @ w == h]
    limits += [w >= 0.0] if kind.endswith("0") else []

    def feasible(s: list[int]) -> bool:
        key = "ub" if kind == "inequalities" else "eq"
        if not s:
            return bool(np.all(h >= 0.0)) and key == "ub"
        ends = (0.0 if kind.endswith("0") else None, None)
        return linprog(
            np.zeros(len(s)), **{f"A_{key}": G[:, s], f"b_{key}": h}, bounds=ends
        ).success

    want = fewest(G, feasible)
    solution = sm.Problem(sm.minimize(sm.card(w)), limits).solve()
    assert solution.value == want == np.count_nonzero(w.value)
    assert solution.bound <= want
    miss = G @ w.value - h
    assert np.max(miss if kind == "inequalities" else np.abs(miss)) < 1e-7
    # Any point with so many entries, and none with fewer.
    for zero in (sm.minimize(0), cp.Minimize(0)):
        assert sm.Problem(zero, limits, sm.card(w) <= want).solve().value == 0.0
        assert np.count_nonzero(w.value) <= want
    if want:
        with pytest.raises(sm.InfeasibleError):
            sm.Problem(sm.minimize(0), limits, sm.card(w) <= want - 1).solve()


def test_the_fewest_rows_under_equations_of_a_matrix() -> None:
    rng = np.random.default_rng(0)
    X, B = rng.standard_normal((3, 6)), sm.Variable((6, 2), name="B")
    truth = np.zeros((6, 2))
    truth[[1, 4]] = rng.standard_normal((2, 2))
    problem = sm.Problem(sm.minimize(sm.card(B, axis=1)), X @ truth == X @ B)
    assert problem.solve().value == 2.0  # any three rows will do, but only these two do as two
    np.testing.assert_allclose(B.value, truth, atol=1e-7)


def test_feasible_sizes_of_a_path_are_zero() -> None:
    rng = np.random.default_rng(1)
    A, w = rng.standard_normal((3, 8)), sm.Variable(8, name="w")
    k = sm.Parameter(integer=True, value=3)
    problem = sm.Problem(sm.minimize(0), A @ w == A[:, :2].sum(axis=1), sm.card(w) <= k)
    np.testing.assert_array_equal(problem.path(k, range(4)).objective, [np.inf, np.inf, 0.0, 0.0])


def test_that_fewer_nonzeros_are_infeasible_is_a_proof() -> None:
    rng = np.random.default_rng(2)
    A, w = rng.standard_normal((3, 8)), sm.Variable(8, name="w")
    limits = [A @ w == A[:, :2].sum(axis=1), sm.norm(w) <= 10.0]
    problem = sm.Problem(sm.minimize(sm.card(w)), limits)
    assert problem.solve().value == 2.0
    problem.prove()
    assert problem.solution.bound == 2.0
    assert problem.solution.status == "optimal (proved)"


def test_what_nothing_decides_is_refused_by_what_to_write() -> None:
    w = sm.Variable(N, name="w")
    for goal in (sm.ridge(w, 2.0), sm.card(w), 0):
        with pytest.raises(sm.ModelError, match="The objective has no loss"):
            sm.Problem(sm.minimize(goal), sm.card(w) <= 4).solve()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("needed", [(1, 1), (2, 1)])
def test_at_least_so_many_of_each_of_two_sets(seed: int, needed: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, 10))
    b = A[:, [0, 1, 4]] @ [2.0, -1.5, 1.0] + 0.5 * rng.standard_normal(60)
    sets = [np.arange(5, 8), np.arange(8, 10)]
    w = sm.Variable(10, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, b))
    limits = [sm.card(w[q]) >= r for q, r in zip(sets, needed, strict=True)]
    solution = sm.Problem(goal, limits, sm.card(w) <= 4).solve()
    best = min(
        0.5 * np.mean((b - A[:, S] @ np.linalg.lstsq(A[:, S], b, rcond=None)[0]) ** 2)
        for S in map(list, combinations(range(10), 4))
        if all(len(set(S) & set(q)) >= r for q, r in zip(sets, needed, strict=True))
    )
    assert solution.value == pytest.approx(best, rel=1e-8)


def test_sets_that_overlap_are_refused() -> None:
    w = sm.Variable(6, name="w")
    goal = sm.minimize(sm.squared_loss(np.eye(6) @ w, np.ones(6)))
    limits = [sm.card(w[:3]) >= 1, sm.card(w[2:5]) >= 1, sm.card(w) <= 3]
    with pytest.raises(sm.ModelError, match="some of the same entries"):
        sm.Problem(goal, limits).solve()


def test_at_least_one_of_a_set_along_a_path() -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((60, 9))
    b = A[:, [0, 1, 4]] @ [2.0, -1.5, 1.0] + 0.5 * rng.standard_normal(60)
    w, k = sm.Variable(9, name="w"), sm.Parameter(integer=True)
    goal, some = sm.minimize(sm.squared_loss(A @ w, b)), {6, 7, 8}
    path = sm.Problem(goal, sm.card(w[6:]) >= 1, sm.card(w) <= k).path(k, range(1, 5))
    for size, value in zip(path.k.tolist(), path.objective.tolist(), strict=True):
        best = min(
            0.5 * np.mean((b - A[:, S] @ np.linalg.lstsq(A[:, S], b, rcond=None)[0]) ** 2)
            for S in map(list, combinations(range(9), size))
            if some & set(S)
        )
        assert value == pytest.approx(best, rel=1e-8)
