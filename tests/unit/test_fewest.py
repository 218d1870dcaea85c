"""The fewest nonzeros with which a loss stays within a bound, against all supports."""

from __future__ import annotations

from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import verify

RNG = np.random.default_rng(3)
N, P = 20, 6
A = RNG.standard_normal((N, P)) @ np.linalg.cholesky(0.4 * np.eye(P) + 0.6).T
B = A @ np.array([1.0, 0.0, -2.0, 0.0, 1.5, 0.2]) + 0.3 * RNG.standard_normal(N)


def squares(support: tuple[int, ...]) -> float:
    S = A[:, list(support)]
    return float(np.sum((S @ np.linalg.lstsq(S, B, rcond=None)[0] - B) ** 2))


LEAST = [min(map(squares, combinations(range(P), k))) for k in range(P + 1)]


def test_an_exact_fit_of_few_observations_ends():
    # With more nonzeros than observations every exchange gains something that is rounding.
    rng = np.random.default_rng(9)
    x = rng.standard_normal((12, 40))
    y = x[:, :3] @ [1.0, 2.0, -1.0] + 0.01 * rng.standard_normal(12)
    w = sm.Variable(40)
    problem = sm.Problem(sm.minimize(sm.card(w)), sm.squared_loss(x @ w, y) <= 0.0)
    solution = problem.solve(time_limit=20)
    assert solution.status != "stopped early"
    assert np.count_nonzero(w.value) == solution.value <= 12
    # A loss of 1e-14 of that without features is taken for zero: with squares, 1e-7 of residuals.
    assert np.linalg.norm(x @ w.value - y) <= 1e-7 * np.linalg.norm(y)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_fewest_are_found_and_proved(unit):
    w, t = sm.Variable(P, name="w"), sm.Parameter(nonneg=True)
    problem = sm.Problem(sm.minimize(sm.card(w)), sm.norm(A @ w - unit * B) ** 2 <= t)
    for k in range(P + 1):
        for t.value, fewest in (
            (unit**2 * LEAST[k] * (1 + 1e-6), k),
            (unit**2 * LEAST[k] * (1 - 1e-6), k + 1),
        ):
            if fewest > P:
                with pytest.raises(sm.InfeasibleError, match="Allow a larger one"):
                    problem.solve()
                continue
            solution = problem.solve()
            assert solution.value == problem.value == np.count_nonzero(w.value) == fewest
            assert np.sum((A @ w.value - unit * B) ** 2) <= t.value * (1 + 1e-9)
            assert solution.bound <= fewest
            certificate = problem.prove()
            assert problem.solution.value == problem.solution.bound == fewest
            assert fewest == 0 or certificate.bound > t.value
            assert problem.solution.support.tolist() == np.flatnonzero(w.value).tolist()


def test_the_certificate_is_that_of_one_less():
    w = sm.Variable(P)
    loss = sm.squared_loss(A @ w, B) + sm.ridge(w, 1e-6)
    most = 1.05 * LEAST[3] / (2 * N)
    problem = sm.Problem(sm.minimize(sm.card(w)), loss <= most)
    certificate = problem.certify()
    k = int(problem.value)
    assert problem.solution.bound == k == 3
    one_less = sm.Problem(sm.minimize(loss), sm.card(w) <= k - 1)
    verify(certificate, one_less.form)
    assert certificate.bound > most >= loss.value
    assert "squared_loss(A @ variable)" in problem.solution.notes[-1]
    assert problem.theory() is not None
    assert np.allclose(problem.predict(A), A @ w.value)


SPELLINGS = {
    "norm": lambda w, t: sm.norm(A @ w - B) <= np.sqrt(t),
    "mean": lambda w, t: sm.squared_loss(A @ w, B) <= t / (2 * N),
    "CVXPY's squares": lambda w, t: cp.sum_squares(A @ w - B) <= t,
    "CVXPY's norm": lambda w, t: cp.norm(A @ w - B) <= np.sqrt(t),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_all_spellings_mean_the_same(spelling):
    w = cp.Variable(P) if "CVXPY" in spelling else sm.Variable(P)
    problem = sm.Problem(sm.minimize(sm.card(w)), SPELLINGS[spelling](w, LEAST[3] * 1.01))
    assert problem.solve().value == 3 == np.count_nonzero(w.value)


def test_booleans_of_cvxpy_and_its_parameters():
    w, z, t = cp.Variable(P), cp.Variable(P, boolean=True), cp.Parameter(nonneg=True)
    fit = cp.sum_squares(A @ w - B) <= t
    problem = sm.Problem(cp.Minimize(cp.sum(z)), [cp.abs(w) <= 9 * z, fit])
    for k in (3, 1, 2):
        t.value = LEAST[k] * 1.01
        assert problem.solve().value == k == z.value.sum()


def test_groups_and_constraints_count():
    groups, w = np.arange(P) // 2, sm.Variable(P)
    within = [
        (n, squares(tuple(j for j in range(P) if groups[j] in chosen)))
        for n in range(4)
        for chosen in combinations(range(3), n)
    ]
    t = 1.5 * LEAST[3]
    problem = sm.Problem(sm.minimize(sm.card(w, groups=groups)), sm.norm(A @ w - B) ** 2 <= t)
    assert problem.solve().value == min(n for n, loss in within if loss <= t)
    y = (B > 0).astype(float)
    positive = sm.Problem(sm.minimize(sm.card(w)), sm.logistic_loss(A @ w, y) <= 0.6, w >= 0)
    k = int(positive.solve().value)
    assert sm.logistic_loss(A @ w, y).value <= 0.6
    assert np.all(w.value >= 0)
    fewer = sm.Problem(sm.minimize(sm.logistic_loss(A @ w, y)), sm.card(w) <= k - 1, w >= 0)
    assert fewer.solve("exhaustive").value > 0.6


@pytest.mark.parametrize(
    ("goal", "limits", "words"),
    [
        (lambda w, loss: loss, lambda w, loss: [loss <= 1.0], "number of nonzeros is minimised"),
        (lambda w, loss: sm.card(w), lambda w, loss: [loss <= 1.0, loss <= 2.0], "not two"),
        (lambda w, loss: 2 * sm.card(w), lambda w, loss: [loss <= 1.0], "a budget a parameter"),
        (lambda w, loss: sm.card(w) + loss, lambda w, loss: [loss <= 1.0], "with a weight"),
        (lambda w, loss: sm.card(w), lambda w, loss: [w <= 1.0], "has no loss"),
        (lambda w, loss: sm.card(w), lambda w, loss: [loss >= 1.0], "lower bound"),
        (lambda w, loss: sm.card(w), lambda w, loss: [loss <= w], "The bound on"),
    ],
)
def test_what_else_is_refused(goal, limits, words):
    w = sm.Variable(P)
    loss = sm.squared_loss(A @ w, B)
    with pytest.raises(sm.SparseModelError, match=words):
        sm.Problem(sm.minimize(goal(w, loss)), limits(w, loss))


def test_the_explanation_begins_with_what_was_written():
    w = sm.Variable(P, name="w")
    problem = sm.Problem(sm.minimize(sm.card(w)), sm.norm(A @ w - B) ** 2 <= LEAST[2] * 1.01)
    for full in (False, True):
        said = problem.explain(full=full)
        assert said.startswith("Problem: minimize(card(w)), ")
        assert f"<= {LEAST[2] * 1.01:g}" in said.splitlines()[0]
        assert "minimise squared_loss" in said


def test_a_start_is_where_runs_begin_that_allow_as_many_nonzeros():
    w = sm.Variable(P, name="w")
    problem = sm.Problem(sm.minimize(sm.card(w)), sm.norm(A @ w - B) ** 2 <= LEAST[2] * 1.01)
    for start in (np.ones(P), {w: np.zeros(P)}):
        assert problem.solve(start=start).value == 2.0
    found = w.value
    assert problem.solve("iht", start=found, max_iter=0).value == 2.0  # the start is all it has
    with pytest.raises(sm.InfeasibleError):
        problem.solve("iht", max_iter=0)
    with pytest.raises(sm.SparseModelError, match="start"):
        problem.solve(start=np.ones(P + 1))
