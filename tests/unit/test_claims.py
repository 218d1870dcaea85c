"""No certificate claims more than its numbers say: bounds that are none, offsets, exact fits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, certify, verify
from sparsemodel.certificates.precision_matrices.certificate_of_precision import decide_precision
from sparsemodel.certificates.statements.claims import gap_of, relative_gap_of, strongest
from sparsemodel.interfaces import Ball

NO_NUMBERS = (math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("bound", NO_NUMBERS)
def test_no_bound_is_no_gap(bound):
    assert gap_of(1.0, bound) == relative_gap_of(1.0, bound) == math.inf
    for stationary, claim in ((True, Claim.STATIONARY), (False, Claim.NONE)):
        found = strongest(
            feasible=True, share=relative_gap_of(1.0, bound), zero=True, stationary=stationary
        )
        assert found is claim
    numbers = {"upper": 1.0, "restricted_bound": -math.inf, "null_value": 2.0, "weight": 1.0}
    assert decide_precision(bound=bound, **numbers) is Claim.NONE
    assert decide_precision(**(numbers | {"upper": bound, "bound": 0.0})) is Claim.NONE


def test_a_claim_needs_a_feasible_point_and_a_gap_is_one_whatever_its_size():
    assert strongest(feasible=False, share=0.0, zero=True, stationary=True) is Claim.NONE
    assert strongest(feasible=True, share=math.nan, zero=True) is Claim.NONE
    assert strongest(feasible=True, share=0.9e-6) is Claim.OPTIMAL
    for share in (2e-6, 0.1, 0.176, 1.0, 1e9):
        assert strongest(feasible=True, share=share, stationary=True) is Claim.WITHIN_GAP


def test_a_constant_does_not_make_the_gap_smaller():
    for constant in (0.0, 1.0, -1e9, 1e12):
        assert relative_gap_of(constant + 2.0, constant + 1.0, constant) == pytest.approx(0.5)
    rng = np.random.default_rng(0)
    X, mu = rng.standard_normal((30, 8)), rng.standard_normal(8)
    y = X[:, 0] + rng.standard_normal(30)
    x = np.zeros(8)
    x[[6, 7]] = 0.1
    for constant in (1e9, -1e9):
        for term in (lambda w: 0.0 * (mu @ w), lambda w: mu @ w):
            w = sm.Variable(8)
            goal = sm.squared_loss(X @ w, y) + sm.ridge(w, 1e-2) + (term(w) + constant)
            form = sm.Problem(sm.minimize(goal), sm.card(w) <= 2).form
            certificate = certify(form, x)
            assert certificate.claim is Claim.WITHIN_GAP
            assert certificate.relative_gap > 0.1
            verify(certificate, form)


def quadratic(p: int, seed: int):
    rng = np.random.default_rng(seed)
    L = rng.standard_normal((p + 10, p)) + 1.5 * rng.standard_normal((p + 10, 1))
    Q, b = L.T @ L / p, rng.standard_normal(p)
    w = sm.Variable(p, name="w")
    loss = sm.custom_loss(lambda u: 0.5 * u @ Q @ u - b @ u, lambda u: Q @ u - b, of=w)
    return sm.Problem(sm.minimize(loss), sm.card(w) <= 3)


@pytest.mark.parametrize("limit", [None, 0.0])
def test_what_has_no_bound_is_not_called_optimal(limit):
    problem = quadratic(12, 0)
    problem.solve(time_limit=limit)
    certificate = problem.certify()
    assert certificate.bound == -math.inf
    assert certificate.claim in (Claim.STATIONARY, Claim.NONE)
    assert "no lower bound" in str(certificate) or certificate.claim is Claim.NONE
    verify(certificate, problem.form)


def test_what_cvxpy_calls_a_quadratic_form_is_not_called_optimal_without_a_bound():
    cp = pytest.importorskip("cvxpy")
    w = cp.Variable(5)
    goal = cp.Minimize(cp.quad_form(w, np.diag(np.arange(1.0, 6.0))) - np.arange(5.0) @ w)
    problem = sm.Problem(goal, [sm.card(w) <= 2])
    problem.solve(time_limit=0)
    assert problem.certify().claim is not Claim.OPTIMAL


def best(X: np.ndarray, y: np.ndarray, k: int, ridge: float) -> float:
    """Return the optimum with an intercept over all supports."""
    X, y = X - X.mean(axis=0), y - y.mean()
    n, least = len(y), math.inf
    for S in itertools.combinations(range(X.shape[1]), k):
        P = X[:, S]
        w = np.linalg.solve(P.T @ P / n + ridge * np.eye(k), P.T @ y / n)
        least = min(least, ((P @ w - y) ** 2).sum() / (2 * n) + 0.5 * ridge * w @ w)
    return least


OFFSETS = [0.0, 1e3, 2460000.5, 1.76e9, -1e11, 1e13]
SCALES = [1e-4, 1.0, 60.0]


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("scale", SCALES)
def test_an_offset_makes_nothing_optimal(offset, scale):
    if offset and scale * 1e12 < abs(offset):
        pytest.skip("nothing but the rounding of the offset is left of such targets")
    # Each scale and each offset meets every support, not each pair of them.
    seed = (OFFSETS.index(offset) + SCALES.index(scale)) % 3
    support = [(0, 1), (4, 5), ()][seed]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6)) + 0.9 * rng.standard_normal((40, 1))
    y = offset + scale * (X[:, :4] @ rng.standard_normal(4) + 0.3 * rng.standard_normal(40))
    w, c = sm.Variable(6, name="w"), sm.Variable(name="c")
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(X @ w + c, y) + sm.ridge(w, 1e-3)), sm.card(w) <= 2
    )
    optimum = best(X, y, 2, 1e-3)
    x = np.zeros(problem.form.shape)
    part = X[:, list(support)]
    basis = np.column_stack([part - part.mean(axis=0), np.ones(40)])
    w_c = np.linalg.lstsq(basis, y, rcond=None)[0]
    x[list(support)] = w_c[:-1]
    x[-1] = w_c[-1] - part.mean(axis=0) @ w_c[:-1]
    certificate = certify(problem.form, x)
    assert certificate.claim is not Claim.ZERO
    if certificate.claim is Claim.OPTIMAL:
        assert certificate.value <= optimum * (1.0 + 1e-5)
    assert verify(certificate, problem.form).claim is certificate.claim


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("intercept", [False, True])
def test_exact_recovery_is_zero_up_to_rounding(scale, intercept):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 100)) / np.sqrt(40)
        x = np.zeros(100)
        x[rng.choice(100, 4, replace=False)] = 3.0 * rng.standard_normal(4)
        w = sm.Variable(100, name="w")
        u = X @ w + sm.Variable(name="c") if intercept else X @ w
        y = scale * (X @ x)
        problem = sm.Problem(sm.minimize(sm.squared_loss(u, y)), sm.card(w) <= 4)
        problem.solve()
        certificate = problem.certify()
        assert certificate.claim is Claim.ZERO, certificate
        assert verify(certificate, problem.form).claim is Claim.ZERO
        assert "zero up to rounding" in str(certificate).lower()


def test_a_small_objective_is_not_zero_up_to_rounding():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 10))
    aim = X[:, 0] - X[:, 1]

    def claim(y: np.ndarray, columns: np.ndarray = X, w: dict[int, float] | None = None) -> Claim:
        problem_w = sm.Variable(columns.shape[1], name="w")
        problem = sm.Problem(
            sm.minimize(sm.squared_loss(columns @ problem_w, y)), sm.card(problem_w) <= 3
        )
        x = np.zeros(columns.shape[1])
        for j, value in (w or {0: 1.0, 1: -1.0}).items():
            x[j] = value
        return certify(problem.form, x).claim

    assert claim(aim) in (Claim.ZERO, Claim.OPTIMAL)
    for noise in (1e-4, 1e-8, 1e-11):  # relative objectives down to 1e-22
        assert claim(aim + noise * rng.standard_normal(40)) is Claim.WITHIN_GAP
    # An offset that a counted column of ones fits.
    ones = np.column_stack([X, np.ones(40)])
    assert claim(1e9 + 1e-5 * X[:, 0], ones, {10: 1e9}) is Claim.WITHIN_GAP
    # One huge target, which a column of its own fits, does not make the others small.
    y = rng.standard_normal(40)
    y[0] = 1e15
    indicator = np.column_stack([X, np.eye(40)[0]])
    assert claim(y, indicator, {10: 1e15 - X[0, 0], 0: 1.0}) is Claim.WITHIN_GAP
    both = np.column_stack([indicator, np.ones(40)])
    assert claim(y + 1e6, both, {10: 1e15, 11: 1e6}) is Claim.WITHIN_GAP


def test_losses_without_a_residual_are_zero_where_they_are_zero():
    X = np.array([[3.0, 0.1], [-2.0, 0.2], [4.0, -0.3], [-5.0, 0.4]])
    y = np.sign(X[:, 0])
    w = sm.Variable(2, name="w")
    problem = sm.Problem(sm.minimize(sm.hinge_loss(X @ w, y)), sm.card(w) <= 1)
    assert certify(problem.form, np.array([1.0, 0.0])).claim is Claim.ZERO
    assert certify(problem.form, np.array([0.4, 0.0])).claim is Claim.WITHIN_GAP


def test_a_bound_is_never_called_no_useful_one():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 60))
    y = np.where(X[:, 0] + rng.standard_normal(30) > 0.0, 1.0, -1.0)
    w = sm.Variable(60, name="w")
    problem = sm.Problem(
        sm.minimize(sm.logistic_loss(X @ w, y) + sm.ridge(w, 0.02)), sm.card(w) <= 4
    )
    problem.solve()
    certificate = problem.certify()
    assert math.isfinite(certificate.bound)
    assert certificate.claim is Claim.WITHIN_GAP
    assert certificate.relative_gap > 0.05
    assert f"{100.0 * certificate.relative_gap:.3g} % of the objective" in str(certificate)
    assert "useful" not in str(certificate)


def test_a_proof_that_reaches_what_was_asked_for_says_so():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 25)) + 0.5 * rng.standard_normal((40, 1))
    y = np.where(X[:, :4].sum(axis=1) + 3.0 * rng.standard_normal(40) > 0.0, 1.0, -1.0)
    w = sm.Variable(25, name="w")
    problem = sm.Problem(
        sm.minimize(sm.logistic_loss(X @ w, y) + sm.ridge(w, 0.03)), sm.card(w) <= 4
    )
    proof = problem.prove(gap=1e-2)
    assert proof.claim is Claim.WITHIN_GAP
    assert "optimal within the requested tolerance of 1 %" in str(proof)
    assert verify(proof, problem.form).claim is Claim.WITHIN_GAP
    assert "requested" not in str(problem.certify())


@pytest.mark.parametrize(
    "loss", ["squared_loss", "logistic_loss", "hinge_loss", "huber_loss", "poisson_loss"]
)
@pytest.mark.parametrize("intercept", [False, True])
def test_what_was_enumerated_is_proved(loss, intercept):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 5)) + 0.7 * rng.standard_normal((40, 1))
    u = X[:, 0] - X[:, 1] + rng.standard_normal(40)
    y = u if loss in ("squared_loss", "huber_loss") else np.where(u > 0.3, 1.0, -1.0)
    y = np.round(np.exp(0.5 * u)) if loss == "poisson_loss" else y
    w = sm.Variable(5, name="w")
    z = X @ w + sm.Variable(name="c") if intercept else X @ w
    problem = sm.Problem(sm.minimize(getattr(sm, loss)(z, y) + sm.ridge(w, 1e-2)), sm.card(w) <= 2)
    solution = problem.solve()
    assert "exhaustive" in solution.backend
    certificate = problem.certify()
    assert certificate.claim is Claim.OPTIMAL
    assert certificate.value == pytest.approx(solution.value, rel=1e-9)
    assert verify(certificate, problem.form, names=problem.layout.names()).claim is Claim.OPTIMAL


def test_a_search_of_few_supports_speaks_of_the_point_at_hand():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 8)) + 0.7 * rng.standard_normal((40, 1))
    y = np.where(X[:, 6] - X[:, 7] + 0.2 * rng.standard_normal(40) > 0.0, 1.0, -1.0)
    w = sm.Variable(8, name="w")
    problem = sm.Problem(
        sm.minimize(sm.logistic_loss(X @ w, y) + sm.ridge(w, 1e-2)), sm.card(w) <= 2
    )
    problem.solve("exhaustive", max_iter=1)
    here, certificate = problem.value, problem.certify()
    optimum = problem.solve("exhaustive").value
    assert certificate.value == pytest.approx(here, rel=1e-12)
    assert here > 1.1 * optimum
    assert certificate.claim is Claim.WITHIN_GAP
    assert certificate.bound == pytest.approx(optimum, rel=1e-5)
    assert verify(certificate, problem.form).claim is Claim.WITHIN_GAP


@pytest.mark.parametrize("far", [0.0, 1.0, 1e6, 1e9, -1e12])
def test_a_ball_far_from_zero_is_met_up_to_rounding(far):
    rng = np.random.default_rng(0)
    index = np.arange(6)
    for radius in (1e-3, 1.0, 50.0):
        center = np.full(6, far) + rng.standard_normal(6)
        step = rng.standard_normal(6)
        step /= np.linalg.norm(step)
        ball = Ball(index, radius, center)
        assert ball.violation(center + radius * step) <= 1e-15
        unit = 2.0**-52 * max(1.0, abs(far))
        outside = center + (radius * (1.0 + 1e-6) + 50.0 * unit) * step
        assert ball.violation(outside) > 0.0
    assert np.isnan(Ball(index, 1.0).violation(np.full(6, np.nan)))
    assert Ball(index, 1.0).violation(np.full(6, 1e300)) > 1e299
