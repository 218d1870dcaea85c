"""Measures of fit against textbook formulas, and standard errors against their definitions."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.modelling.regression.measures import area_under_curve

RNG = np.random.default_rng(11)
N = 40
A = RNG.standard_normal((N, 3)) * [1.0, 100.0, 0.01]
SCORE = A @ [1.0, -0.01, 0.0] + 0.7 * RNG.standard_normal(N)
ONES = np.ones((N, 1))


def fitted(loss: Any, target: Any, k: int = 2, lam: float = 0.0, **options: Any) -> Any:
    w, c = sm.Variable(3, name="w"), sm.Variable(name="c")
    goal = sm.minimize(loss(A @ w + c, target, **options) + sm.ridge(w, lam))
    solution = sm.Problem(goal, sm.card(w) <= k).solve()
    return solution, np.hstack([A[:, solution.indices], ONES]), A @ w.value + c.value


@pytest.mark.parametrize("scale", [1.0, 1e8, 1e-8])
def test_least_squares_is_that_of_textbooks(scale: float) -> None:
    y = scale * SCORE
    solution, X, u = fitted(sm.squared_loss, y)
    found = solution.summary()
    rss, d = np.sum((y - u) ** 2), 3
    r2 = 1.0 - rss / np.sum((y - y.mean()) ** 2)
    assert found.r2 == pytest.approx(r2)
    assert found.deviance_explained == pytest.approx(r2)
    assert found.rmse == pytest.approx(np.sqrt(rss / N))
    errors = np.sqrt(rss / (N - d) * np.diag(np.linalg.inv(X.T @ X)))
    np.testing.assert_allclose([e.standard_error for e in found.estimates], errors, rtol=1e-6)
    np.testing.assert_allclose(
        [e.refitted for e in found.estimates][:2], solution.values["w"][solution.indices], rtol=1e-6
    )
    fit = N * np.log(rss / 2 / N)
    assert (found.n, found.k, found.d) == (N, 2, d)
    assert found.aic == pytest.approx(fit + 2 * d)
    assert found.bic == pytest.approx(fit + d * np.log(N))
    assert found.ebic == pytest.approx(found.bic + 2 * np.log(3))  # (3 choose 2) supports


def test_the_ridge_is_left_out_of_errors_and_stays_in_coefficients() -> None:
    plain, _, _ = fitted(sm.squared_loss, SCORE)
    shrunk, _, _ = fitted(sm.squared_loss, SCORE, lam=0.05)
    one, two = plain.summary().estimates, shrunk.summary().estimates
    for a, b in zip(one, two, strict=True):
        assert b.refitted == pytest.approx(a.refitted, rel=1e-6)
        assert b.standard_error == pytest.approx(a.standard_error, rel=1e-6)
    assert abs(two[0].value) < 0.99 * abs(one[0].value)


def test_whole_weights_are_copies() -> None:
    weights = np.arange(N) % 3 + 1.0
    loss = partial(sm.squared_loss, weights_are="frequency")
    weighted = fitted(loss, SCORE, weights=weights)[0].summary()
    rows = np.repeat(np.arange(N), weights.astype(int))
    w, c = sm.Variable(3, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.squared_loss(A[rows] @ w + c, SCORE[rows]))
    copied = sm.Problem(goal, sm.card(w) <= 2).solve().summary()
    for name in ("n", "r2", "rmse", "aic", "bic", "ebic", "deviance_explained"):
        assert getattr(weighted, name) == pytest.approx(getattr(copied, name)), name
    for a, b in zip(weighted.estimates, copied.estimates, strict=True):
        assert a[1:] == pytest.approx(b[1:], rel=1e-6)


def test_two_classes() -> None:
    y = np.where(SCORE > 0.0, "yes", "no")
    solution, X, u = fitted(sm.logistic_loss, y)
    found = solution.summary()
    one = y == "yes"
    p = 1.0 / (1.0 + np.exp(-u))
    pairs = [(a > b) + 0.5 * (a == b) for a, b in product(u[one], u[~one])]
    assert found.auc == pytest.approx(np.mean(pairs))
    assert found.accuracy == pytest.approx(np.mean((u > 0) == one))
    assert found.largest_class == pytest.approx(max(one.mean(), 1 - one.mean()))
    assert found.positive == "yes"
    logs = -2.0 * np.sum(np.log(np.where(one, p, 1.0 - p)))
    null = -2.0 * N * (one.mean() * np.log(one.mean()) + (~one).mean() * np.log((~one).mean()))
    assert found.deviance_explained == pytest.approx(1.0 - logs / null)
    assert found.aic == pytest.approx(logs + 6.0)
    errors = np.sqrt(np.diag(np.linalg.inv(X.T @ ((p * (1 - p))[:, None] * X))))
    np.testing.assert_allclose([e.standard_error for e in found.estimates], errors, rtol=1e-5)
    assert "positive class" in str(found)
    assert "ignore that the support was selected" in " ".join(str(found).split())


def test_counts_and_amounts() -> None:
    counts = RNG.poisson(np.exp(0.5 * SCORE)).astype(float)
    solution, X, u = fitted(sm.poisson_loss, counts)
    found, mu = solution.summary(), np.exp(u)

    def deviance(means: Any) -> float:
        logs = np.log(np.where(counts > 0, counts, 1.0) / means)
        return float(2.0 * np.sum(counts * logs - counts + means))

    null = deviance(np.full(N, counts.mean()))
    assert found.deviance_explained == pytest.approx(1.0 - deviance(mu) / null)
    errors = np.sqrt(np.diag(np.linalg.inv(X.T @ (mu[:, None] * X))))
    np.testing.assert_allclose([e.standard_error for e in found.estimates], errors, rtol=1e-5)
    amounts = np.exp(0.5 * SCORE)
    solution, X, u = fitted(sm.gamma_loss, amounts)
    found, ratio = solution.summary(), amounts / np.exp(u)
    spread = np.sum((ratio - 1.0) ** 2) / (N - 3)
    errors = np.sqrt(spread * np.diag(np.linalg.inv(X.T @ (ratio[:, None] * X))))
    np.testing.assert_allclose([e.standard_error for e in found.estimates], errors, rtol=1e-5)
    assert found.r2 is None


def test_an_observation_of_weight_zero_may_have_any_least_loss() -> None:
    counts = np.maximum(np.round(np.exp(SCORE)), 1.0)
    shares = []
    for first in (0.0, 1.0):
        y, weights = counts.copy(), np.ones(N)
        y[0], weights[0] = first, 0.0
        w, c = sm.Variable(3, name="w"), sm.Variable(name="c")
        loss = sm.poisson_loss(A @ w + c + 5.0, y, link="identity", weights=weights)
        problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 2)
        shares.append(problem.solve().summary().deviance_explained)
    assert 0.0 < shares[0] == shares[1]


def test_medians_explain_the_share_of_absolute_errors() -> None:
    solution, _, u = fitted(sm.absolute_loss, SCORE)
    found = solution.summary()
    null = np.abs(SCORE - np.median(SCORE)).sum()
    assert found.deviance_explained == pytest.approx(1.0 - np.abs(SCORE - u).sum() / null)
    assert "no second derivatives" in found.without_errors


def test_several_classes() -> None:
    y = np.digitize(SCORE, [-0.7, 0.7])
    W, c = sm.Variable((3, 3), name="W"), sm.Variable(3, name="c")
    goal = sm.minimize(sm.multinomial_loss(A @ W + c, y) + sm.ridge(W, 0.01))
    found = sm.Problem(goal, sm.card(W, axis=1) <= 2).solve().summary()
    u = A @ W.value + c.value
    logs = np.log(np.exp(u).sum(axis=1)) - u[np.arange(N), y]
    shares = np.bincount(y) / N
    assert found.accuracy == pytest.approx(np.mean(u.argmax(axis=1) == y))
    assert found.deviance_explained == pytest.approx(
        1 + logs.mean() / np.sum(shares * np.log(shares))
    )
    assert found.auc is None
    assert not found.estimates


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda w: [w >= 0.0], "constraints hold"),
        (lambda w: [], "no minimum"),
    ],
)
def test_errors_that_mean_nothing_are_left_out(change: Any, reason: str) -> None:
    w = sm.Variable(3, name="w")
    y = np.sign(A[:, 0])  # the classes can be separated
    goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 0.1))
    found = sm.Problem(goal, sm.card(w) <= 1, *change(w)).solve().summary()
    assert reason in found.without_errors
    assert all(e.standard_error is None for e in found.estimates)


def test_columns_that_depend_on_each_other() -> None:
    w = sm.Variable(2, name="w")
    goal = sm.minimize(sm.squared_loss(A[:, [0, 0]] @ w, SCORE) + sm.ridge(w, 0.1))
    assert "depend on" in sm.Problem(goal, sm.card(w) <= 2).solve().summary().without_errors


def test_points_of_a_path_predict_and_say_how_they_fit() -> None:
    w = sm.Variable(3, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, SCORE) + sm.ridge(w, 1e-3))
    path = sm.Problem(goal, sm.card(w) <= 1).path(range(3), ridges=[0.0, 1.0])
    point = path.at(2, ridge=0.0)
    np.testing.assert_allclose(point.predict(A[:5]), A[:5] @ point.values["w"], rtol=1e-12)
    assert w.value is None
    assert point.summary().k == 2
    assert path.at(0, ridge=1.0).summary().without_errors == "no coefficient is nonzero"


def test_summaries_of_what_has_none() -> None:
    w = sm.Variable(3, name="w")
    two = sm.minimize(sm.squared_loss(A @ w, SCORE) + sm.absolute_loss(A @ w, SCORE))
    with pytest.raises(sm.ModelError, match=r"has 2 losses"):
        sm.Problem(two, sm.card(w) <= 1).solve().summary()
    S = sm.Variable((3, 3), symmetric=True)
    graph = sm.minimize(sm.trace(np.eye(3) @ S) - sm.log_det(S))
    with pytest.raises(sm.ModelError, match=r"summary\(\) is for regressions"):
        sm.Problem(graph, sm.card(sm.offdiag(S)) <= 2).solve().summary()
    assert area_under_curve(SCORE, np.ones(N, dtype=bool), np.ones(N)) is None
