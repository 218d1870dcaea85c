"""``cp.Parameter`` is followed wherever it stands: what changes later is never kept as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm

RNG = np.random.default_rng(3)
N, P = 30, 6
A = RNG.standard_normal((N, P))
B = A @ np.array([1.0, 0.0, -1.0, 0.0, 0.3, 0.0]) + 0.2 * RNG.standard_normal(N)
Y = np.where(B > 0.0, 1.0, -1.0)
COUNTS = RNG.poisson(1.0, N).astype(float)
SQUARES = A.T @ A / N

Declare = Callable[[Any], sm.Problem]
PLACES: dict[str, tuple[Any, Any, Any, Callable[[cp.Variable, cp.Parameter], Any]]] = {
    "target": ((N,), B, -3.0 * B, lambda w, t: cp.sum_squares(A @ w - t)),
    "data": ((N, P), A, A[:, ::-1].copy(), lambda w, D: cp.sum_squares(D @ w - B)),
    "ridge": ((), 0.1, 9.0, lambda w, r: cp.sum_squares(A @ w - B) + r * cp.sum_squares(w)),
    "divisor": ((), 1.0, 50.0, lambda w, r: cp.sum_squares(A @ w - B) / r + cp.sum_squares(w)),
    "weights": ((N,), np.ones(N), COUNTS, lambda w, c: c @ cp.square(A @ w - B)),
    "labels": (
        (N,),
        Y,
        -Y,
        lambda w, y: cp.sum(cp.logistic(cp.multiply(-y, A @ w))) + 0.1 * cp.sum_squares(w),
    ),
    "counts": ((N,), COUNTS, COUNTS + 2, lambda w, m: cp.sum(cp.exp(0.2 * (A @ w))) - m @ (A @ w)),
    "offset": ((), 0.0, 2.0, lambda w, o: cp.norm1(A @ w + o - B)),
    "quadratic": (
        (P, P),
        SQUARES,
        SQUARES + np.eye(P),
        lambda w, Q: cp.quad_form(w, Q) - w @ (A.T @ B / N),
    ),
    "slope": ((P,), np.zeros(P), A.T @ B, lambda w, m: cp.sum_squares(A @ w - B) - m @ w),
    "constant": ((), 0.0, 7.0, lambda w, c: cp.sum_squares(A @ w - B) + c),
}


def parameter(shape: Any, value: Any) -> cp.Parameter:
    square = len(shape) == 2 and shape[0] == shape[1]
    made = cp.Parameter(shape, name="theta", symmetric=square)
    if value is not None:
        made.value = value
    return made


def follows(declare: Declare, shape: Any, first: Any, then: Any) -> None:
    """After every change, in place too, all is as if declared afresh; without a value it says so.

    There are 15 supports: all are tried, and a warm start changes nothing.
    """
    theta = parameter(shape, None)
    waiting = declare(theta)
    for ask in (waiting.solve, waiting.plan, waiting.certify):
        with pytest.raises(sm.ModelError, match=r"theta\.value"):
            ask()
    changed = declare(theta)
    for value, problems in (
        (first, (waiting, changed)),
        (then, (waiting, changed)),
        (first, [changed]),
    ):
        theta.value = np.array(value)
        fresh = declare(parameter(shape, value))
        words, wanted = fresh.explain(), fresh.solve().value
        for problem in problems:
            assert problem.explain() == words
            assert problem.solve().value == pytest.approx(wanted, rel=1e-7, abs=1e-9)
        bound = fresh.certify().bound
        assert changed.certify().bound == pytest.approx(bound, rel=1e-6, abs=1e-7)
    if len(shape) == 1:
        theta.value[...] = then  # in place
        assert changed.solve().value == pytest.approx(declare(parameter(shape, then)).solve().value)


@pytest.mark.parametrize("place", PLACES)
def test_in_an_objective(place: str) -> None:
    shape, first, then, goal = PLACES[place]

    def declare(theta: cp.Parameter) -> sm.Problem:
        w = cp.Variable(P, name="w")
        return sm.Problem(cp.Minimize(goal(w, theta)), [sm.card(w) <= 2])

    follows(declare, shape, first, then)


@pytest.mark.parametrize(
    ("then", "constraint"),
    [
        (0.1, lambda w, u: w <= u),
        (0.1, lambda w, u: cp.sum(w) == 2.0 * u),
        pytest.param(0.1, lambda w, u: cp.norm(w) <= u, marks=pytest.mark.slow),
        (0.1, lambda w, u: cp.abs(w) <= u),
        (0.1, lambda w, u: cp.sum_squares(w) <= u),
        (1.0, lambda w, k: sm.card(w) <= k),
        (0.25, lambda w, k: sm.card(w) <= 4 * k),
        (0.1, lambda w, u: sm.norm(w, 1) <= u),
    ],
)
def test_in_a_constraint(then: float, constraint: Callable[[Any, Any], Any]) -> None:
    def declare(theta: cp.Parameter) -> sm.Problem:
        w = cp.Variable(P, name="w")
        goal = cp.Minimize(cp.sum_squares(A @ w - B) / N)
        return sm.Problem(goal, [sm.card(w) <= 2, constraint(w, theta)])

    follows(declare, (), 0.5 if then < 1.0 else 2.0, then)


@pytest.mark.parametrize("attribute", [0, 1])
def test_in_the_bounds_of_a_variable(attribute: int) -> None:
    def declare(theta: cp.Parameter) -> sm.Problem:
        w = cp.Variable(P, bounds=[-theta, 0.5] if attribute == 0 else [-0.5, theta])
        return sm.Problem(cp.Minimize(cp.sum_squares(A @ w - B)), [sm.card(w) <= 2])

    follows(declare, (), 0.4, 0.1)


@pytest.mark.parametrize(
    ("shape", "first", "then", "term"),
    [
        ((N,), B, 2.0 * B, lambda w, t: sm.squared_loss(A @ w, t)),
        ((N,), B, 2.0 * B, lambda w, t: sm.squared_loss(A @ w - t, np.zeros(N))),
        ((N, P), A, 2.0 * A, lambda w, D: sm.squared_loss(D @ w, B)),
        ((N,), np.ones(N), COUNTS, lambda w, c: sm.squared_loss(A @ w, B, weights=c)),
        ((), 1.0, 0.01, lambda w, s: sm.squared_loss(A @ w, B) * s + sm.ridge(w, 0.1)),
        ((), 1.0, 9.0, lambda w, r: sm.squared_loss(A @ w, B) + sm.ridge(w, r)),
        ((), 0.01, 9.0, lambda w, g: sm.squared_loss(A @ w, B) + sm.card(w) * g),
    ],
)
def test_in_our_own_terms(shape: Any, first: Any, then: Any, term: Any) -> None:
    def declare(theta: cp.Parameter) -> sm.Problem:
        # CVXPY's matrix multiplies CVXPY's variable
        w = cp.Variable(P, name="w") if len(shape) == 2 else sm.Variable(P, name="w")
        return sm.Problem(sm.minimize(term(w, theta)), sm.card(w) <= 2)

    follows(declare, shape, first, then)


def test_a_precision_matrix() -> None:
    S = np.cov(A[:, :4].T, bias=True)

    def declare(theta: cp.Parameter) -> sm.Problem:
        Omega = cp.Variable((4, 4), symmetric=True)
        goal = cp.Minimize(-cp.log_det(Omega) + cp.trace(theta @ Omega))
        return sm.Problem(goal, [sm.card(sm.offdiag(Omega)) <= 2])

    follows(declare, (4, 4), S, S + np.eye(4))


def test_a_path_over_a_parameter_of_cvxpy() -> None:
    w, k = cp.Variable(P), cp.Parameter(integer=True)
    problem = sm.Problem(cp.Minimize(cp.sum_squares(A @ w - B)), [sm.card(w) <= k])
    path = problem.path(k, [1, 2, 3])
    assert k.value is None
    for place, limit in enumerate((1, 2, 3)):
        k.value = limit
        assert path.objective[place] == pytest.approx(problem.solve().value)


def test_a_path_over_a_parameter_that_stands_elsewhere_is_refused() -> None:
    w, k = cp.Variable(P), cp.Parameter(integer=True, value=2)
    loss = cp.sum_squares(A @ w - B)
    inside = sm.Problem(cp.Minimize(loss + k * cp.sum_squares(w)), [sm.card(w) <= k])
    ours = sm.Problem(
        sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, 0.5 * k)), sm.card(w) <= k
    )
    for problem in (inside, ours):
        with pytest.raises(sm.ModelError, match="stands elsewhere"):
            problem.path(k, [1, 2])


def test_what_cannot_be_followed_is_refused() -> None:
    w, gamma = sm.Variable(P, name="w"), cp.Parameter(value=1.0, name="gamma")
    v = cp.Variable(P)
    with pytest.raises(sm.ModelError, match=r"gamma .* cannot be followed here"):
        sm.minimize(0.1 * sm.card(v) + gamma * cp.sum_squares(A @ v - B))
    with pytest.raises(sm.ModelError, match="CVXPY cannot put it"):
        gamma * sm.card(w)
    with pytest.raises(sm.ModelError, match="CVXPY cannot put it"):
        _ = gamma <= w
    Omega = cp.Variable((3, 3), symmetric=True)
    with pytest.raises(sm.ModelError, match="not a parameter"):
        sm.gaussian_nll(Omega, cp.Parameter((3, 3), value=np.eye(3)))


def test_a_sum_of_both_languages() -> None:
    v = cp.Variable(P)
    mixed = sm.Problem(sm.minimize(0.1 * sm.card(v) + cp.sum_squares(A @ v - B))).solve().value
    w = sm.Variable(P)
    ours = sm.minimize(2.0 * sm.squared_loss(A @ w, B, reduction="sum") + 0.1 * sm.card(w))
    assert mixed == pytest.approx(sm.Problem(ours).solve().value)
