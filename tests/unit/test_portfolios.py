"""Quadratic objectives with a budget: every small portfolio against all of its supports."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

import sparsemodel as sm
from sparsemodel.certificates import certify

P = 4

CONSTRAINTS: dict[str, dict[str, Any]] = {
    "none": {},
    "budget": {"equal": 1.0},
    "short": {"equal": -1.0},
    "long only": {"low": 0.0},
    "budget, long only": {"equal": 1.0, "low": 0.0},
    "budget, box": {"equal": 1.0, "low": -0.3, "high": 0.7},
    "at least one": {"least": 1.0},
    "at least one, long only": {"least": 1.0, "low": 0.0},
    "two equalities": {"equal": 1.0, "second": True},
}


def _data(seed: int, scale: float) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((12, P))
    return scale * np.cov(A.T), scale * rng.standard_normal(P), rng.standard_normal((1, P))


def _declared(kind: str, language: str, k: int, sigma: Any, mu: Any, row: Any) -> sm.Problem:
    said = CONSTRAINTS[kind]
    if language == "cvxpy":
        cp = pytest.importorskip("cvxpy")
        w: Any = cp.Variable(P)
        total = cp.sum(w)
        goal: Any = cp.Minimize(cp.quad_form(w, sigma) - mu @ w)
    else:
        w = sm.Variable(P, name="w")
        total = w.sum()
        goal = sm.minimize(
            sm.custom_loss(lambda u: u @ sigma @ u - mu @ u, lambda u: 2.0 * (sigma @ u) - mu, of=w)
        )
    constraints = [sm.card(w) <= k]
    if "equal" in said:
        constraints.append(total == said["equal"])
    if "least" in said:
        constraints.append(total >= said["least"])
    if "low" in said:
        constraints.append(w >= said["low"])
    if "high" in said:
        constraints.append(w <= said["high"])
    if "second" in said:
        constraints.append(row @ w == row.mean(axis=1))
    return sm.Problem(goal, constraints)


def _least(kind: str, support: tuple[int, ...], sigma: Any, mu: Any, row: Any) -> float:
    """Return the minimum on a support by SciPy, infinite where the support admits no point."""
    said, index = CONSTRAINTS[kind], list(support)
    S, m, r = sigma[np.ix_(index, index)], mu[index], row[0, index]
    size = float(np.abs(sigma).max())
    rows = []
    if "equal" in said:
        rows.append({"type": "eq", "fun": lambda u: u.sum() - said["equal"]})
    if "least" in said:
        rows.append({"type": "ineq", "fun": lambda u: u.sum() - said["least"]})
    if "second" in said:
        rows.append({"type": "eq", "fun": lambda u: r @ u - row.mean()})
    if len(rows) > len(index):
        return np.inf  # two equalities in one unknown
    found = scipy_minimize(
        lambda u: float(u @ S @ u - m @ u) / size,
        np.full(len(index), 1.0 / len(index)),
        jac=lambda u: (2.0 * S @ u - m) / size,
        bounds=[(said.get("low"), said.get("high"))] * len(index),
        constraints=rows,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return float(found.fun) * size if found.success else np.inf


@pytest.mark.parametrize("kind", CONSTRAINTS)
@pytest.mark.parametrize("language", ["cvxpy", pytest.param("custom", marks=pytest.mark.slow)])
def test_portfolios_are_the_best_of_all_supports(kind: str, language: str) -> None:
    # Each kind and each language meets both scales, not each pair of them.
    seed = (list(CONSTRAINTS).index(kind) + (language == "cvxpy")) % 2
    scale = (1.0, 1e-4)[seed]
    sigma, mu, row = _data(seed, scale)
    supports = [s for size in range(1, P + 1) for s in itertools.combinations(range(P), size)]
    by_size = {s: _least(kind, s, sigma, mu, row) for s in supports}
    for k in (1, 2, P):
        best = min(value for s, value in by_size.items() if len(s) <= k)
        problem = _declared(kind, language, k, sigma, mu, row)
        if np.isinf(best):
            with pytest.raises(sm.InfeasibleError):
                problem.solve()
            continue
        assert problem.solve().value == pytest.approx(best, rel=1e-5, abs=1e-6 * scale)


def _least_variance(S: Any, m: Any, *, short: bool) -> float:
    """Return the least ``u'Su/2 - m'u`` with ``sum(u) == 1``, by its linear equations."""
    k = len(m)
    sizes = range(k if short else 1, k + 1)
    found = np.inf
    for used in (list(t) for size in sizes for t in itertools.combinations(range(k), size)):
        inside, ones = S[np.ix_(used, used)], np.ones((len(used), 1))
        u = np.linalg.solve(np.block([[inside, ones], [ones.T, 0.0]]), np.append(m[used], 1.0))[:-1]
        if short or u.min() >= 0.0:
            found = min(found, float(0.5 * u @ inside @ u - m[used] @ u))
    return found


@pytest.mark.parametrize("seed", [2, 25, 69, 107, 113, 117])
def test_a_portfolio_with_returns_is_the_best_of_all(seed):
    """Returns make the objective unbounded without the budget; the search goes on nevertheless."""
    rng = np.random.default_rng(1000 + seed)
    p, short = 12, bool(seed % 2)
    A = rng.standard_normal((40, p)) * rng.uniform(0.5, 2.0, p)
    A += rng.standard_normal((40, 2)) @ rng.standard_normal((2, p))
    S, m = np.cov(A.T), 0.5 * rng.standard_normal(p) + 2.0
    best = min(
        _least_variance(S[np.ix_(t, t)], m[list(t)], short=short)
        for t in itertools.combinations(range(p), 3)
    )
    w = sm.Variable(p, name="w")
    goal = sm.minimize(
        sm.squared_loss(np.linalg.cholesky(S).T @ w, np.zeros(p), reduction="sum") - m @ w
    )
    rules = [w.sum() == 1.0] if short else [w.sum() == 1.0, w >= 0.0]
    solution = sm.Problem(goal, sm.card(w) <= 3, *rules).solve()
    assert solution.value == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_quad_form_is_a_squared_loss_with_a_bound():
    """Also of a matrix without full rank; the objective is that of the matrix."""
    cp = pytest.importorskip("cvxpy")
    B = np.random.default_rng(3).standard_normal((4, 9))
    w = cp.Variable(9)
    goal = cp.Minimize(cp.quad_form(w, cp.psd_wrap(B.T @ B)) - np.arange(9.0) @ w)
    problem = sm.Problem(goal, [sm.card(w) <= 2, w >= -1, w <= 1])
    solution, certificate = problem.solve(), problem.prove()
    x = w.value
    assert solution.value == pytest.approx(np.sum((B @ x) ** 2) - np.arange(9.0) @ x, rel=1e-12)
    assert certificate.relative_gap <= 1e-4


def test_a_search_does_not_end_below_what_is_certified(monkeypatch):
    proving = importlib.import_module("sparsemodel.certificates.proving.prove")
    rng = np.random.default_rng(3)
    returns = rng.standard_normal((60, 8))
    w = sm.Variable(8)
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(returns @ w, returns.mean(axis=1))),
        [sm.card(w) <= 4, w >= 0.0, w.sum() == 1, sm.norm(w, 2) <= 0.9],
    )
    problem.solve()
    x = np.nextafter(w.value, 1.0) * (w.value != 0.0)  # as good, up to rounding
    monkeypatch.setattr(proving, "prove", lambda form, _, **how: certify(form, x, relax=False))
    weak = proving.prove(problem.form, x)
    found = problem.prove(time_limit=5.0)  # nothing was certified before
    assert found.bound > weak.bound + 0.1 * (weak.upper - weak.bound)
    certificate = problem.certify(time_limit=5.0)
    assert problem.prove(time_limit=5.0).bound == certificate.bound
