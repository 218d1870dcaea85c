"""What a CVXPY user types by habit: understood, or answered with what to write."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import sparsemodel as sm

RNG = np.random.default_rng(4)
A = RNG.standard_normal((12, 4))
B = A[:, 0] - 0.5 * A[:, 2]
X = cp.Variable(4)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sum_squares", "squared_loss"),
        ("Minimize", "sm.minimize"),
        ("Maximize", "negative"),
        ("hstack", "keep the variables apart"),
        ("probit_loss", "sm.logistic_loss"),
        ("logcosh_loss", "huber_loss"),
        ("zip_loss", "two parts"),
        ("hinge", "sm.hinge_loss"),
        ("LinearRegression", "sparsemodel.sklearn"),
        ("OMP", r"problem\.solve\('omp'\)"),
        ("no_such_thing", "no attribute 'no_such_thing'$"),
    ],
)
def test_names_of_cvxpy(name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=words):
        getattr(sm, name)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda w: A * w, "entry by entry"),
        (lambda w: w <= 5.0 * sm.chosen(w), "is the bound `w <= M`"),
        (
            lambda w: sm.Problem(sm.minimize(sm.ridge(w, 1.0)), np.ones(4) @ sm.chosen(w) == 2),
            "costs with `<=`",
        ),
        (lambda w: sm.negative_binomial_loss(A @ w, np.arange(12), alpha=0.5), "1 / dispersion"),
        (lambda w: sm.logistic_loss(A @ w, np.linspace(0.1, 0.9, 12)), "k in m trials"),
        (lambda w: A @ sm.Variable((4, 3)) + sm.Variable((1, 3)), r"sm\.Variable\(m\)"),
        (lambda w: cp.Problem(cp.Minimize(cp.sum_squares(X)), [sm.card(X) <= 1]), "sm.Problem"),
        (lambda w: cp.Problem(sm.minimize(sm.squared_loss(A @ w, B))), "sm.Problem"),
        (lambda w: np.ones((4, 1)) * w, "entry by entry"),
        (lambda w: np.dot(A, w), "np.dot"),
        (lambda w: np.linalg.norm(w), "sm.norm"),
        (lambda w: sm.squared_loss(B, A @ w), "prediction comes first"),
        (lambda w: A @ sm.Variable((3, 4), name="W").T, "other shape"),
        (lambda w: sm.minimize(sm.log_det(sm.Variable((2, 2), symmetric=True))), "concave"),
        (lambda w: sm.minimize(sm.squared_loss(A @ w, B) + A @ w), "one number"),
        (lambda w: w.T @ w, r"sm\.norm\(F @ w\)\*\*2"),
        (lambda w: (A @ w - B) @ (A @ w - B), r"sm\.norm\(A @ w - b\)\*\*2"),
        (
            lambda w: sm.Problem(cp.Minimize(cp.sum_squares(X - 1.0)), [cp.abs(X) >= 0.3]),
            r"sm\.semicontinuous\(w, m\)",
        ),
        (lambda w: sm.Problem(cp.Minimize(cp.norm(A @ X - B))), "same minimisers"),
        (lambda w: sm.norm(w, 0) <= 2, r"sm\.card\(w\) <= k"),
        (lambda w: sm.norm(w, 1) ** 2, "Of powers of norms"),
        (lambda w: np.diff(w), r"sm\.diff\(w\)"),
        (lambda w: np.count_nonzero(w), r"sm\.card"),
        (lambda w: pd.DataFrame(A) @ w, r"sm\.as_design\(df\) @ w"),
        (lambda w: sm.squared_loss("y ~ x", B), "formula="),
        (lambda w: sm.card(cp.norm(cp.Variable((4, 2)), 2, axis=1)) <= 2, "axis=1"),
        (lambda w: sm.poisson_loss(A @ w, B, offset=B), "A @ w \\+ offset"),
        (lambda w: sm.logistic_loss(A @ w, B, link="probit"), "sm.custom_loss"),
        (lambda w: sm.logistic_loss(A @ w, B, class_weight="balanced"), "weights=np.where"),
        (lambda w: sm.huber_loss(A @ w, B, weight=B), "is 'weights' meant"),
        (lambda w: sm.Variable(4, lb=0), "w >= 0"),
        (lambda w: sm.squared_loss(sm.diff(w)), r"np\.zeros\(n\)"),
        (lambda w: sm.tweedie_loss(A @ w, B, power=3), "not convex"),
        (lambda w: sm.logistic_loss(A @ w, ["lo", "mid", "hi"] * 4), "'hi', 'lo', 'mid' are 0"),
        (lambda w: 0 <= w <= 1, "two constraints"),
        (lambda w: sm.card(w) < 3, "k - 1"),
        (lambda w: sm.Problem(sm.minimize(sm.squared_loss(w, B[:4]))).path(), r"path\(k\) needs k"),
        (lambda w: sm.logistic_loss(A @ w), "needs target"),
        (lambda w: sm.card(A @ w, axis=1) <= 2, "counts entries"),
    ],
)
def test_habits_are_answered(write: Callable[[sm.Variable], Any], words: str) -> None:
    with pytest.raises(sm.SparseModelError, match=words):
        write(sm.Variable(4, name="w"))


def test_squared_norms_and_products_with_sums_are_understood() -> None:
    u, v = sm.Variable(4, name="u"), sm.Variable(4, name="v")
    u.value, v.value = RNG.standard_normal((2, 4))
    there = u.value - 2.0 * v.value + 0.5
    inside: Any = A @ (u - 2.0 * v + np.full(4, 0.5))
    assert np.allclose(inside.value, A @ there)
    assert np.allclose(((u - 2.0 * v + 0.5) @ A.T).value, inside.value)
    assert np.isclose((inside - B).sum().value[0], np.sum(A @ there - B))
    for offset in (B, 0.25):
        squared = sm.minimize(3.0 * sm.norm(inside - offset) ** 2)
        assert np.isclose(squared.value or 0.0, 3.0 * np.sum((A @ there - offset) ** 2))
    problem = sm.Problem(sm.minimize(sm.norm(A @ u - B) ** 2), sm.card(u) <= 1)
    least = min(np.linalg.lstsq(A[:, [j]], B, rcond=None)[1][0] for j in range(4))
    assert np.isclose(problem.solve().value, least)


@pytest.mark.parametrize("loss", [cp.sum_squares, cp.norm1, lambda r: 2 * cp.sum(cp.huber(r))])
def test_a_variable_may_stand_for_residuals(loss: Callable[[Any], Any]) -> None:
    x, r = cp.Variable(4), cp.Variable(12)
    named = sm.Problem(cp.Minimize(loss(r)), [A @ x - B == r, r <= 9.0, sm.card(x) <= 1])
    plain = sm.Problem(cp.Minimize(loss(A @ x - B)), [A @ x - B <= 9.0, sm.card(x) <= 1])
    assert np.isclose(named.solve().value, plain.solve().value, rtol=1e-6)
    named.solve()
    assert np.allclose(r.value, A @ x.value - B)


def test_the_largest_residual_is_minimised_by_its_bound() -> None:
    x, t = cp.Variable(4), cp.Variable()
    problem = sm.Problem(cp.Minimize(t), [cp.abs(A @ x - B) <= t, sm.card(x) <= 2])
    best = np.inf
    for pair in combinations(range(4), 2):
        y = cp.Variable(2)
        alone = cp.Problem(cp.Minimize(cp.norm_inf(A[:, list(pair)] @ y - B)))
        best = min(best, alone.solve(solver="CLARABEL"))
    assert np.isclose(problem.solve().value, best, rtol=1e-5)
    assert np.isclose(np.abs(A @ x.value - B).max(), best, rtol=1e-5)


def test_a_size_may_be_bounded_by_an_expression() -> None:
    x, t = cp.Variable(4), cp.Variable(12)
    bounded = [cp.abs(A @ x - B) <= t, t <= 9.0, sm.card(x) <= 1]
    sm.Problem(cp.Minimize(cp.sum_squares(A @ x - B) + cp.sum(t)), bounded).solve()
    assert np.all(np.abs(A @ x.value - B) <= t.value + 1e-6)
    assert np.allclose(np.abs(A @ x.value - B), t.value, atol=1e-5)


def test_habits_that_are_understood() -> None:
    x = cp.Variable(4, name="x")
    theirs = sm.Problem(
        sm.minimize(sm.squared_loss(A @ x, B) + sm.ridge(x, 0.1)),
        constraints=[sm.card(x) <= 2, sm.norm(x) <= 0.5],
    )
    w = sm.Variable(4, name="w")
    ours = sm.Problem(
        sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, 0.1)),
        [sm.card(w) <= 2, sm.norm(w) <= 0.5],
    )
    assert theirs.solve().value == pytest.approx(ours.solve().value, rel=1e-12)
    np.testing.assert_allclose(x.value, w.value)
    positive = sm.Variable(4, nonneg=True)
    goal = sm.minimize(sm.squared_loss(A @ positive, B))
    sm.Problem(goal, sm.card(positive) <= 2).solve()
    assert np.all(positive.value >= 0.0)
    assert np.any(positive.value > 0.0)
