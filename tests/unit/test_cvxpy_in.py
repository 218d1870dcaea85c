"""CVXPY's expressions as declarations, and the restricted problem as one of its problems."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm

N, P = 25, 6
RNG = np.random.default_rng(8)
A = RNG.standard_normal((N, P))
B = A @ np.array([1.0, 0.0, -1.0, 0.0, 0.3, 0.0]) + 0.2 * RNG.standard_normal(N)
Y = np.where(B > 0.0, 1.0, -1.0)


def agrees(goal: cp.Minimize, w: cp.Variable, constraints: list[object] | None = None) -> None:
    """Our minimum is CVXPY's on our support, and no support is better."""
    given = constraints or []
    problem = sm.Problem(goal, [sm.card(w) <= 2, *given])
    solution = problem.solve()
    assert np.count_nonzero(w.value) <= 2
    values = []
    for i in range(P):
        for j in range(i):
            off = [m for m in range(P) if m not in (i, j)]
            reference = cp.Problem(goal, [w[off] == 0, *given])
            reference.solve(solver=cp.CLARABEL)
            values.append(reference.value if reference.value is not None else np.inf)
    assert solution.value == pytest.approx(min(values), rel=1e-6, abs=1e-7)


def test_recognised_atoms() -> None:
    w, c = cp.Variable(P, name="w"), cp.Variable(name="c")
    ridge = 0.05 * cp.sum_squares(w)
    for loss in (
        cp.sum_squares(A @ w - B) / 2,
        cp.sum_squares(A @ w + c - B) / N + 1.0,
        cp.sum(cp.logistic(cp.multiply(-Y, A @ w + c))) / N,
        cp.sum(cp.huber(A @ w - B, 0.5)),
        cp.sum(cp.pos(1 - A @ w)) / N,
        cp.norm1(A @ w - B) / N,
        cp.sum(cp.abs(B - A @ w)) / N,
        cp.sum(cp.exp(0.3 * (A @ w))) / N - 0.1 * cp.sum(w),
    ):
        agrees(cp.Minimize(loss + ridge), w)


def test_an_absolute_term_beside_a_loss() -> None:
    w = cp.Variable(P, name="w")
    agrees(cp.Minimize(0.5 * cp.sum_squares(A @ w - B) + 0.3 * cp.norm1(w)), w)


def test_constraints() -> None:
    w = cp.Variable(P, name="w")
    goal = cp.Minimize(cp.sum_squares(A @ w - B) + 0.1 * cp.sum_squares(w))
    for constraints in (
        [w >= 0],
        [cp.sum(w) == 1],
        [cp.norm(w) <= 0.5],
        [w <= 0.3, A[:2] @ w <= 1],
    ):
        agrees(goal, w, constraints)


def test_data_are_held_by_reference() -> None:
    w, data = cp.Variable(P), cp.Constant(A)
    problem = sm.Problem(cp.Minimize(cp.sum_squares(data @ w - B)), sm.card(w) <= 2)
    design = problem.form.terms[0].design
    assert np.shares_memory(design.array, data.value)


def test_what_is_not_recognised_is_named() -> None:
    w = cp.Variable(P)
    loss = cp.sum_squares(A @ w - B)
    with pytest.raises(sm.ModelError, match="atom log_sum_exp"):
        sm.Problem(cp.Minimize(loss + cp.log_sum_exp(w)), sm.card(w) <= 2)
    with pytest.raises(sm.ModelError, match="not recognised"):
        sm.Problem(cp.Minimize(loss), sm.card(w) <= 2, cp.exp(w) <= 2)
    with pytest.raises(sm.ModelError, match="minimise the negative"):
        sm.Problem(cp.Maximize(-loss), sm.card(w) <= 2)


def test_the_restricted_problem() -> None:
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.logistic_loss(A @ w + c, Y) + sm.ridge(w, 0.05))
    problem = sm.Problem(goal, sm.card(w) <= 2)
    solution = problem.solve()
    reference = problem.restricted(solution.support)
    reference.solve(solver=cp.CLARABEL)
    assert reference.value == pytest.approx(solution.value, rel=1e-7)
    sizes = {v.name(): v.size for v in reference.variables()}
    assert sizes == {"w": 2, "c": 1}
    with pytest.raises(sm.ModelError, match="out of range"):
        problem.restricted([P + 3])
