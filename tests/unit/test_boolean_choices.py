"""Choices written with boolean variables of CVXPY's, against all supports."""

from __future__ import annotations

from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.testing.referee import judge

RNG = np.random.default_rng(2)
N, P, K, M = 15, 5, 2, 0.6
A = RNG.standard_normal((N, P))
B = A @ np.array([1.0, -0.8, 0.0, 0.3, 0.0]) + 0.1 * RNG.standard_normal(N)
SIZES = np.array([0.2, 0.9, 0.5, 0.7, 1.0])


def least(lower, upper) -> float:
    from scipy.optimize import lsq_linear

    best = np.inf
    for support in combinations(range(P), K):
        s = list(support)
        ends = np.broadcast_to(lower, P)[s] - 1e-12, np.broadcast_to(upper, P)[s]
        best = min(best, 2.0 * lsq_linear(A[:, s], B, ends, tol=1e-14).cost)
    return best


SPELLINGS = {
    "abs": (lambda w, z: [cp.abs(w) <= M * z], -M, M),
    "both ends": (lambda w, z: [w <= M * z, w >= -M * z], -M, M),
    "other side": (lambda w, z: [M * z >= w, -z <= w], -1.0, M),
    "negated": (lambda w, z: [w <= z, -w <= M * z], -M, 1.0),
    "nonnegative": (lambda w, z: [w >= 0, w <= M * z], 0.0, M),
    "own sizes": (lambda w, z: [cp.abs(w) <= cp.multiply(SIZES, z)], -SIZES, SIZES),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("equal", [False, True])
def test_the_choice_is_that_of_all_supports(spelling, equal):
    link, lower, upper = SPELLINGS[spelling]
    w, z = cp.Variable(P), cp.Variable(P, boolean=True)
    limit = cp.sum(z) == K if equal else cp.sum(z) <= K
    problem = sm.Problem(cp.Minimize(cp.sum_squares(A @ w - B)), [*link(w, z), limit])
    solution = problem.solve("exhaustive")
    assert solution.value == pytest.approx(least(lower, upper), rel=1e-6)
    assert np.array_equal(z.value, (w.value != 0.0).astype(float))
    assert not judge(problem, solution).faults


@pytest.mark.parametrize(
    "link",
    [
        lambda w, z: [w <= M * z],  # nothing holds the lower end
        lambda w, z: [w <= M * z, w >= -1],
        lambda w, z: [w >= 0, w <= M * z, w >= 0.05 * z],
        lambda w, z: [cp.abs(w) <= M * z, z[0] == 1],
        lambda w, z: [cp.abs(w[:2]) <= M * z[:2], cp.abs(w[2:]) <= M],
        lambda w, z: [cp.abs(w) <= -M * z],
    ],
)
def test_other_uses_of_booleans_are_refused(link):
    w, z = cp.Variable(P), cp.Variable(P, boolean=True)
    goal = cp.Minimize(cp.sum_squares(A @ w - B))
    with pytest.raises(sm.ModelError, match="Understood are choices"):
        sm.Problem(goal, [*link(w, z), cp.sum(z) <= K])


def test_a_price_on_choices_is_refused():
    w, z = cp.Variable(P), cp.Variable(P, boolean=True)
    goal = cp.Minimize(cp.sum_squares(A @ w - B) + cp.sum(z))
    with pytest.raises(sm.ModelError, match="Understood are choices"):
        sm.Problem(goal, [cp.abs(w) <= M * z, cp.sum(z) <= K])
