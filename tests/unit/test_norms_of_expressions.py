"""Bounds on the norm of an expression, as a risk limit: against all supports."""

from __future__ import annotations

from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.arithmetic.condensed import condensed
from sparsemodel.certificates.arithmetic.dualised_rows import with_stiffness
from sparsemodel.certificates.certify import with_multipliers
from sparsemodel.certificates.dual_bounds.witness import evaluate, from_point
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.certificates.statements.numbers import constraints_of
from sparsemodel.numerics import RegressionObjective
from tests.referee import judge

RNG = np.random.default_rng(5)
P, N, K = 4, 10, 2
F = RNG.standard_normal((4, P))
MU = RNG.random(P)
T = RNG.standard_normal((N, P))
Y = T @ np.full(P, 1.0 / P)
SHIFT = np.full(4, 0.1)


def least(objective, radius: float, order: int = 2, shift=SHIFT, budget: float = 1.0) -> float:
    """Return the least value over all supports, by CVXPY on the whole variable."""
    best = np.inf
    for support in combinations(range(P), K):
        x = cp.Variable(P)
        limits = [cp.norm(F @ x - shift, order) <= radius, cp.sum(x) == budget, x >= 0.0]
        limits += [x[j] == 0.0 for j in range(P) if j not in support]
        best = min(best, float(cp.Problem(cp.Minimize(objective(x)), limits).solve()))
    return best


def radius_between(order: int = 2, scale: float = 1.0) -> float:
    """Return a radius that some points on two assets keep and the best one without it does not."""
    halves = [np.eye(P)[list(pair)].mean(axis=0) for pair in combinations(range(P), 2)]
    sizes = [np.linalg.norm(F @ w - SHIFT, order) for w in (*np.eye(P), *halves)]
    return float(np.quantile(sizes, 0.3)) * scale


@pytest.mark.parametrize(("order", "backend"), [(1, "exhaustive"), (2, None)])
def test_the_most_return_within_a_risk_limit(order, backend):
    radius = radius_between(order)
    w = sm.Variable(P, name="w")
    limits = [sm.card(w) <= K, sm.norm(F @ w - SHIFT, order) <= radius, w.sum() == 1.0, w >= 0.0]
    problem = sm.Problem(sm.minimize(-MU @ w), limits)
    solution = problem.solve(backend)
    best = least(lambda x: -MU @ x, radius, order)
    assert best - 1e-6 <= solution.value <= best + 1e-5
    assert np.linalg.norm(F @ w.value - SHIFT, order) <= radius * (1.0 + 1e-8)
    assert not judge(problem, solution).faults
    # The reference is a conic solver's, and its accuracy that of the lines above.
    assert problem.certify(time_limit=2.0).bound <= min(best + 1e-6, solution.value)
    assert "the norm of an expression" in problem.explain()


@pytest.mark.parametrize(
    "scale", [1e-6, *(pytest.param(one, marks=pytest.mark.slow) for one in (1.0, 1e6))]
)
def test_tracking_within_a_risk_limit_has_a_certificate(scale):
    radius = radius_between(scale=scale)
    w, limit = sm.Variable(P, name="w"), sm.Parameter(value=radius)
    loss = sm.squared_loss(T @ w - scale * Y) + sm.ridge(w, 0.1)
    limits = [sm.norm(F @ w - scale * SHIFT) <= limit, w.sum() == scale, w >= 0.0]
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= K, limits)
    solution = problem.solve("exhaustive")
    best = scale**2 * least(
        lambda x: cp.sum_squares(T @ x - Y) / (2 * N) + 0.05 * cp.sum_squares(x), radius / scale
    )
    assert solution.value == pytest.approx(best, rel=1e-5)
    certificate = problem.certify(time_limit=2.0)
    assert certificate.bound <= best * (1.0 + 1e-9)
    verify(certificate, problem.form)
    limit.value = 1.5 * radius
    with pytest.raises(sm.CertificateError, match="region"):
        verify(certificate, problem.form)


@pytest.mark.parametrize("form", ["norm", "quad_form", "sum_squares"])
def test_cvxpys_spellings_of_a_risk_limit(form):
    radius = radius_between()
    w = cp.Variable(P)
    risk = {
        "norm": cp.norm(F @ w) <= radius,
        "quad_form": cp.quad_form(w, F.T @ F) <= radius**2,
        "sum_squares": cp.sum_squares(F @ w) <= radius**2,
    }[form]
    problem = sm.Problem(cp.Maximize(MU @ w), [risk, cp.sum(w) == 1, w >= 0, sm.card(w) <= K])
    solution = problem.solve("exhaustive")
    best = least(lambda x: -MU @ x, radius, shift=np.zeros(4))
    assert solution.value == pytest.approx(best, abs=1e-5)
    assert not judge(problem, solution).faults


def test_what_no_support_keeps_is_said():
    w = sm.Variable(P)
    problem = sm.Problem(
        sm.minimize(-MU @ w), sm.card(w) <= K, sm.norm(F @ w - 9.0) <= 0.1, w.sum() == 1.0, w >= 0.0
    )
    with pytest.raises(sm.InfeasibleError, match="the norm of an expression"):
        problem.solve()


def test_a_matrix_expression_is_bounded_by_columns():
    W = sm.Variable((P, 2))
    with pytest.raises(sm.ModelError, match="each column"):
        sm.norm(F @ W)


def test_the_squared_norm_of_a_variable_is_a_ridge():
    w = sm.Variable(3, name="w")
    assert repr(sm.norm(w) ** 2) == repr(sm.ridge(w, 2.0).as_terms())
    assert "squared_loss" in repr(sm.norm(w - 1.0) ** 2)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("scale", [1e-8, 1e6])
def test_norms_are_kept_in_any_units(order, scale):
    """Solvers of CVXPY failed on them, or left the norm 1e-7 beyond its limit."""
    rng = np.random.default_rng(4)
    A, F = rng.standard_normal((12, 5)), rng.standard_normal((2, 5))
    y = A[:, 0] - A[:, 1] + rng.standard_normal(12)
    values = []
    for unit in (1.0, scale):
        w = sm.Variable(5, name="w")
        loss = sm.squared_loss((unit * A) @ w, y)
        limit = sm.norm((unit * F) @ w - 0.1, order) <= 0.4
        values.append(sm.Problem(sm.minimize(loss), [sm.card(w) <= 2, limit]).solve().value)
        part = F @ (unit * w.value) - 0.1
        assert np.linalg.norm(part, order) == pytest.approx(0.4, rel=1e-8)  # active
    assert values[1] == pytest.approx(values[0], rel=1e-8)


def test_multipliers_of_a_norm_are_those_of_free_entries_as_well() -> None:
    rng = np.random.default_rng(68)
    A, C = 5.0 * rng.standard_normal((5, 3)), rng.standard_normal((3, 3))
    w = sm.Variable(3)
    goal = sm.minimize(sm.squared_loss(A @ w, A @ [2.0, -3.0, 1.0]) + sm.ridge(w, 1.0))
    problem = sm.Problem(goal, sm.card(sm.diff(w)) <= 2, sm.norm(C @ w - 0.1) <= 1.0)
    problem.solve()  # the level is free, has no ridge of its own, and is held by the norm alone
    form, x = problem.form, np.append(np.diff(w.value), w.value[0])
    assert form.sparsity.free.tolist() == [2]
    held = with_multipliers(condensed(form, x), x, own=True, sloped=True).multipliers
    objective = RegressionObjective(form)
    left = objective.gradient(objective.point_from(x))
    pushed = constraints_of(form).design.rmatvec(held.slopes)
    assert np.linalg.norm(left) > 1.0
    assert left + pushed == pytest.approx(0.0 * left, abs=1e-6 * np.linalg.norm(left))


def test_stiffness_moves_into_the_slopes_of_rows_beside_norms() -> None:
    w = sm.Variable(P)
    goal = sm.minimize(sm.squared_loss(T @ w, Y) + sm.ridge(w, 0.1))
    limits = [F[0] @ w == 0.2, F[1] @ w <= 0.5, sm.norm(F @ w - SHIFT) <= 0.4]
    problem = sm.Problem(goal, sm.card(w) <= P, limits)
    problem.solve()
    form = with_multipliers(
        condensed(problem.form, w.value), w.value, own=True, sloped=True
    ).minorant
    duals = from_point(form, w.value + 0.1).duals
    moved = with_stiffness(form, duals)
    bounds = [evaluate(form, Witness(each)).value for each in (duals, moved)]
    assert np.isfinite(bounds[0])
    assert bounds[0] < bounds[1]
