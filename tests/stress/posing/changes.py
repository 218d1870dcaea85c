"""Random problems whose parameters change between two solves, in both languages."""

from __future__ import annotations

from typing import Any

import numpy as np

import sparsemodel as sm
from tests.stress.courts.court import Court
from tests.stress.posing.structures import answers, cvxpy, data, pick, posed


def parameters(court: Court) -> None:
    """Change k, ridge, factor, weights, bound, target and data, and solve again."""
    rng = court.rng
    n, p = int(rng.integers(8, 30)), int(rng.integers(3, 8))
    a, y = data(court, n, p)
    w, c = sm.Variable(p, name="w"), sm.Variable(name="c")
    k = sm.Parameter(integer=True, value=2, name="k")
    lam = sm.Parameter(nonneg=True, value=0.1, name="lam")
    factor = sm.Parameter(nonneg=True, value=1.0, name="factor")
    weights = sm.Parameter(n, nonneg=True, value=np.ones(n), name="weights")
    bound = sm.Parameter(value=2.0, name="bound")
    target = sm.Parameter(n, value=y, name="target")
    matrix = sm.Parameter((n, p), value=a, name="A")
    loss = pick(court, (sm.squared_loss, sm.huber_loss, sm.squared_loss))
    u = matrix @ w + c if rng.random() < 0.5 else matrix @ w
    constraints: list[Any] = [sm.card(w) <= k]
    if rng.random() < 0.6:
        constraints.append(w <= bound)
    if rng.random() < 0.3:
        constraints.append(w >= -1.0 * bound)
    if rng.random() < 0.2:
        constraints.append(sm.norm(w) <= bound)
    problem = posed(
        court,
        lambda: sm.minimize(factor * loss(u, target, weights=weights) + sm.ridge(w, lam)),
        constraints,
    )
    if problem is None:
        return
    changes: dict[Any, tuple[Any, ...]] = {
        k: (0, 1, p, 3),
        lam: (0.0, 1e-6, 10.0, 0.01),
        factor: (0.5, 3.0, 1e6, 1e-6),
        weights: (rng.uniform(0.0, 2.0, n), np.ones(n), 1e8 * np.ones(n)),
        bound: (0.1, 1e-6, 5.0, 1e6),
        target: (10.0 * y, y[::-1].copy(), y + 1e6, 1e-8 * y),
        matrix: (a[:, ::-1].copy(), 1e-6 * a, a + 1.0),
    }
    answers(court, problem)
    for _ in range(4):
        changed = pick(court, tuple(changes))
        changed.value = pick(court, changes[changed])
        answers(court, problem)


def cvxpy_parameters(court: Court) -> None:
    """Change the parameters of CVXPY after the declaration."""
    cp = cvxpy()
    rng = court.rng
    n, p = int(rng.integers(8, 30)), int(rng.integers(3, 8))
    a, y = data(court, n, p)
    w = cp.Variable(p, nonneg=bool(rng.random() < 0.2))
    bound, lam = cp.Parameter(value=1.0), cp.Parameter(nonneg=True, value=0.1)
    target = cp.Parameter(n, value=y)
    constraints: list[Any] = [sm.card(w) <= int(rng.integers(1, p + 1))]
    if rng.random() < 0.6:
        constraints.append(w <= bound)
    if rng.random() < 0.3:
        constraints.append(cp.norm(w, 2) <= 2.0 * bound)
    aim = target if rng.random() < 0.5 else y
    goal = cp.Minimize(cp.sum_squares(a @ w - aim) + lam * cp.sum_squares(w))
    problem = posed(court, lambda: goal, constraints)
    if problem is None:
        return
    answers(court, problem)
    for _ in range(3):
        choice = rng.random()
        if choice < 0.4:
            bound.value = pick(court, (0.2, 1e-3, 10.0))
        elif choice < 0.7:
            lam.value = pick(court, (0.0, 5.0, 1e-6))
        else:
            target.value = pick(court, (10.0 * y, y[::-1].copy(), np.zeros(n)))
        answers(court, problem)
