"""Nodes of squares by compiled code: prices, budgets, limits and hierarchies, by brute force."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from scipy.optimize import linprog

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.proving.gram.kernels.node_compiled import solve_node
from sparsemodel.certificates.proving.gram.kernels.node_problem import Limits, NodeProblem
from sparsemodel.certificates.proving.gram.kernels.top_compiled import filled

KINDS = ("price", "prices", "costs", "costs and k", "limits", "order", "prices and costs")


def supports(p, k):
    return chain.from_iterable(combinations(range(p), size) for size in range(k + 1))


def least_squares(a, b, columns, ridge):
    a, n = a[:, list(columns)], len(b)
    scale = 1.0 / np.sqrt(np.sum(a * a, axis=0) / n + ridge)
    h = (a.T @ a / n + ridge * np.eye(a.shape[1])) * np.outer(scale, scale)
    g = scale * (a.T @ b) / n
    return 0.5 * (b @ b / n - g @ np.linalg.lstsq(h, g, rcond=None)[0])


def posed(kind, seed):
    """Return a problem with the least objective of all its supports."""
    rng = np.random.default_rng(seed)
    p, n, k = int(rng.integers(6, 9)), int(rng.integers(7, 25)), int(rng.integers(1, 5))
    size = float(rng.choice([1.0, 1e-8, 1e8]))
    a = (rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))) * size
    b = (a[:, :3] / size).sum(axis=1) + rng.standard_normal(n)
    ridge = float(rng.choice([1e-3, 0.1])) * size**2
    if seed % 3 == 0 and n > p:
        ridge = 0.0
    w = sm.Variable(p)
    objective = sm.squared_loss(a @ w, b) + (sm.ridge(w, ridge) if ridge else 0.0)
    limits, charge = [sm.card(w) <= k], np.zeros(p)
    allowed = [set(s) for s in supports(p, k)]
    if kind == "price":
        charge = np.full(p, rng.uniform(0.001, 0.1))
        objective = objective + charge[0] * sm.card(w)
    if "prices" in kind:
        charge = rng.uniform(0.0, 0.2, p) * (rng.random(p) < 0.8)
        objective = objective + charge @ sm.chosen(w)
    if "costs" in kind:
        costs, most = rng.uniform(0.0, 2.0, p), rng.uniform(1.0, 4.0)
        limits = [costs @ sm.chosen(w) <= most, *(limits if "k" in kind else ())]
        allowed = [set(s) for s in supports(p, k if "k" in kind else p)]
        allowed = [s for s in allowed if costs[list(s)].sum() <= most]
    if kind == "limits":
        limits += [sm.card(w[:3]) <= 1, sm.card(w[3:]) <= 2]
        allowed = [s for s in allowed if len(s & {0, 1, 2}) <= 1 and len(s - {0, 1, 2}) <= 2]
    if kind == "order":
        limits += [sm.chosen(w)[3:6] <= sm.chosen(w)[:3]]
        allowed = [s for s in allowed if all(j - 3 in s for j in s & {3, 4, 5})]
    problem = sm.Problem(sm.minimize(objective), limits)
    return problem, min(least_squares(a, b, s, ridge) + charge[list(s)].sum() for s in allowed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_support_is_proved_as_by_brute_force(kind, seed):
    problem, best = posed(kind, seed)
    found = problem.prove()
    assert found.proof["tree"]["gram"]
    assert found.bound <= best * (1.0 + 1e-9)
    assert found.relative_gap <= 1e-4
    assert np.isclose(found.value, best, rtol=2e-4)
    verify(found, problem.form)


@pytest.mark.parametrize("seed", range(8))
def test_a_node_is_solved_to_the_value_of_its_dual(seed):
    """The bound is that of a linear program of shares, and meets the value."""
    rng = np.random.default_rng(seed)
    r = 12
    a = rng.standard_normal((30, r))
    q, g, d = a.T @ a / 30, a.T @ (a[:, 0] - a[:, 1] + rng.standard_normal(30)) / 30, np.ones(r)
    d *= rng.uniform(0.01, 0.3)
    high = np.where(rng.random(r) < 0.5, rng.uniform(0.3, 1.0, r), np.inf)
    status = np.where(np.arange(r) == 0, 1, 0).astype(np.int8)
    costs = rng.uniform(0.2, 2.0, r) if seed % 2 else np.ones(r)
    prices = rng.uniform(0.0, 0.05, r) if seed % 4 > 1 else np.zeros(r)
    floor, k = (0.0, 2.5) if seed % 2 else ([0.0, 0.1][seed // 4], 2.0)
    node = NodeProblem(q, g, 1.0, d, -high, high, status, k, costs, prices, floor)
    w, _, bound, value, _ = solve_node(node, np.zeros(r), 0.0, Limits(np.inf, 1e-11, 500))
    assert -1e-12 <= value - bound <= 1e-7
    slopes = q @ w - g
    at = np.clip(-slopes / d, -high, high)
    gains = -slopes * at - 0.5 * d * at**2
    profits = (gains - prices - 0.5 * floor**2)[1:]
    best = -linprog(-profits, A_ub=[costs[1:]], b_ub=[k], bounds=(0.0, 1.0)).fun
    assert np.isclose(bound, 1.0 - 0.5 * w @ q @ w - gains[0] - best, atol=1e-9)


def test_a_budget_is_filled_by_profit_per_cost():
    values, costs = np.array([3.0, 2.0, 4.0, 1.0]), np.array([1.0, 0.0, 4.0, 1.0])
    assert filled(values, costs, 3.0) == (7.0, 1.0)
    assert filled(values, costs, 6.0) == (10.0, 0.0)
