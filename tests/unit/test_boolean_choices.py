"""Choices written with boolean variables of CVXPY's, against all values that these may have."""

from __future__ import annotations

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import lsq_linear

import sparsemodel as sm
from tests.referee import judge

RNG = np.random.default_rng(2)
N, P, K, M = 15, 5, 2, 0.6
A = RNG.standard_normal((N, P))
B = A @ np.array([1.0, -0.8, 0.0, 0.3, 0.0]) + 0.1 * RNG.standard_normal(N)
SIZES = np.array([0.2, 0.9, 0.5, 0.7, 1.0])
COSTS = np.array([1.0, 2.0, 0.5, 3.0, 1.0])


def least(limits, z, lower=-M, upper=M, prices=0.0) -> float:
    """Return the optimum over every value of ``z`` that the limits allow."""
    found = np.inf
    for values in product([0.0, 1.0], repeat=P):
        z.value = np.array(values)
        if all(np.all(limit.value()) for limit in limits):
            cost = float(np.sum(prices * z.value))
            if z.value.any():
                s = z.value > 0.0
                ends = np.broadcast_to(lower, P)[s], np.broadcast_to(upper, P)[s]
                cost += 2.0 * lsq_linear(A[:, s], B, ends, tol=1e-14).cost
            else:
                cost += B @ B
            found = min(found, cost)
    z.value = None
    return found


def agrees(goal, constraints, w, z, reference) -> None:
    problem = sm.Problem(goal, constraints)
    solution = problem.solve("exhaustive" if "chosen" not in repr(problem) else None)
    assert solution.value == pytest.approx(reference, rel=1e-6)
    assert np.array_equal(z.value, (w.value != 0.0).astype(float))
    assert not judge(problem, solution).faults


SPELLINGS = {
    "abs": (lambda w, z: [cp.abs(w) <= M * z], -M, M),
    "both ends": (lambda w, z: [w <= M * z, w >= -M * z], -M, M),
    "other side": (lambda w, z: [M * z >= w, -z <= w], -1.0, M),
    "negated": (lambda w, z: [w <= z, -w <= M * z], -M, 1.0),
    "nonnegative": (lambda w, z: [w >= 0, w <= M * z], 0.0, M),
    "own sizes": (lambda w, z: [cp.abs(w) <= cp.multiply(SIZES, z)], -SIZES, SIZES),
    "at least": (lambda w, z: [w <= M * z, w >= 0.4 * z], 0.4, M),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_choice_is_the_best_of_all(spelling):
    link, lower, upper = SPELLINGS[spelling]
    w, z = cp.Variable(P), cp.Variable(P, boolean=True)
    limits = [cp.sum(z) <= K]
    reference = least(limits, z, lower, upper)
    agrees(cp.Minimize(cp.sum_squares(A @ w - B)), [*link(w, z), *limits], w, z, reference)


LIMITS = {
    "exactly": lambda z: [cp.sum(z) == K],
    "costs": lambda z: [COSTS @ z <= 3.5],
    "costs beside a number": lambda z: [COSTS @ z <= 4.5, cp.sum(z) <= 2],
    "parts": lambda z: [cp.sum(z) <= 3, z[0] + z[1] <= 1, cp.sum(z[2:]) <= 1],
    "exactly, with parts": lambda z: [sum(z[j] for j in range(P)) == 2, cp.sum(z[:2]) <= 1],
    "at least one": lambda z: [cp.sum(z) <= 2, z[2] + z[4] >= 1],
    "two of a part": lambda z: [cp.sum(z[2:]) >= 2, 2 * cp.sum(z) <= 5],
    "one is in": lambda z: [z[4] == 1, cp.sum(z) <= 2],
    "one is out": lambda z: [z[0] == 0, cp.sum(z) <= 2],
    "one only beside another": lambda z: [cp.sum(z) <= 2, z[0] <= z[3], z[1:3] <= z[4]],
    "one beside one of two": lambda z: [
        cp.sum(z) <= 3,
        z[0] <= z[2] + z[4],
        z[1] + z[3] <= 2 * z[4],
    ],
    "two sets, each with one": lambda z: [z[0] >= 1, z[1] >= 1, cp.sum(z) <= 3],
    "nothing new": lambda z: [z <= 1, z >= 0, cp.sum(z) <= 1],
}


@pytest.mark.parametrize("kind", LIMITS)
def test_limits_say_the_same_of_nonzeros(kind):
    w, z = cp.Variable(P), cp.Variable(P, boolean=True)
    limits = LIMITS[kind](z)
    reference = least(limits, z)
    agrees(cp.Minimize(cp.sum_squares(A @ w - B)), [cp.abs(w) <= M * z, *limits], w, z, reference)


@pytest.mark.parametrize("prices", [np.full(P, 0.7), COSTS], ids=["one", "several"])
def test_prices_are_those_of_nonzeros(prices):
    w, z = cp.Variable(P), cp.Variable(P, boolean=True)
    limits = [cp.sum(z[:3]) <= 1]
    paid = cp.sum(z) * 0.7 if np.ptp(prices) == 0.0 else prices @ z
    goal = cp.Minimize(cp.sum_squares(A @ w - B) + paid + 3.0)
    reference = least(limits, z, prices=prices) + 3.0
    agrees(goal, [cp.abs(w) <= M * z, *limits], w, z, reference)


@pytest.mark.parametrize(
    "link",
    [
        lambda w, z: [w <= M * z],  # nothing holds the lower end
        lambda w, z: [w <= M * z, w >= -1],
        lambda w, z: [w >= 0.05 * z, w <= M],
        lambda w, z: [cp.abs(w) <= M * z, 3 * z[0] <= z[1] + z[2]],  # never, and so written
        lambda w, z: [cp.abs(w) <= M * z, cp.sum(z[:3]) <= 1, cp.sum(z[1:]) >= 2],
        lambda w, z: [cp.abs(w[:2]) <= M * z[:2], cp.abs(w[2:]) <= M],
        lambda w, z: [cp.abs(w) <= -M * z],
    ],
)
def test_other_uses_of_booleans_are_refused(link):
    w, z = cp.Variable(P), cp.Variable(P, boolean=True)
    goal = cp.Minimize(cp.sum_squares(A @ w - B))
    with pytest.raises(sm.ModelError, match=r"Bound both ends of w|is understood where"):
        sm.Problem(goal, [*link(w, z), cp.sum(z) <= K])


@pytest.mark.parametrize("paid", [lambda z: -cp.sum(z), lambda z: cp.sum_squares(A @ z)])
def test_other_terms_of_booleans_are_refused(paid):
    w, z = cp.Variable(P), cp.Variable(P, boolean=True)
    goal = cp.Minimize(cp.sum_squares(A @ w - B) + paid(z))
    with pytest.raises(sm.ModelError, match="Bound both ends of w"):
        sm.Problem(goal, [cp.abs(w) <= M * z, cp.sum(z) <= K])


def test_the_constraint_on_a_boolean_that_is_not_understood_is_named() -> None:
    x, z, other = cp.Variable(6), cp.Variable(6, boolean=True), cp.Variable(6, boolean=True)
    goal = cp.Minimize(cp.sum_squares(x - 1.0))
    sides = [x <= z, x >= -other, z + other <= 1]
    with pytest.raises(sm.ModelError, match=r"two booleans.* write w = u - v with u, v >= 0"):
        sm.Problem(goal, sides)
    with pytest.raises(sm.ModelError, match=r"constraint .*== .* not understood\. Bound both ends"):
        sm.Problem(goal, [x == z, cp.sum(z) <= 2])


def test_entries_of_a_least_size_are_held_by_their_booleans() -> None:
    """Where z is one, w is not zero."""
    w, z = cp.Variable(P), cp.Variable(P, boolean=True)
    limits = [w <= M * z, w >= 0.4 * z, z[0] >= 1, cp.sum(z) <= K]
    problem = sm.Problem(cp.Minimize(cp.sum_squares(A @ w - B)), limits)
    problem.solve()
    assert z.value[0] == 1.0
    assert w.value[0] >= 0.4 - 1e-9
    assert np.array_equal(z.value != 0.0, w.value != 0.0)
