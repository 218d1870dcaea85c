"""Quadratic objectives with a budget: every small portfolio against all of its supports."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

import sparsemodel as sm

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
@pytest.mark.parametrize("language", ["cvxpy", "custom"])
@pytest.mark.parametrize(("seed", "scale"), [(0, 1.0), (1, 1e-4)])
def test_portfolios_are_the_best_of_all_supports(
    kind: str, language: str, seed: int, scale: float
) -> None:
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
