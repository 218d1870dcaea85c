"""Random problems about what is nonzero together, and with losses that know a domain or an order.

All ask for proofs, whose answers are compared with all supports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import sparsemodel as sm
from tests.stress.courts.court import Court
from tests.stress.posing.structures import (
    COUNTS,
    LABELLED,
    NUMERICAL,
    answers,
    cvxpy,
    data,
    pick,
    posed,
)


def choices(court: Court) -> None:
    """Pose hierarchies (strong, weak, any of several), least numbers, and limits on parts."""
    rng = court.rng
    n, p = int(rng.integers(10, 40)), int(rng.integers(4, 8))
    a, y = data(court, n, p)
    loss = pick(court, (*NUMERICAL[:2], sm.squared_loss, *LABELLED[:2], *COUNTS))
    if loss in LABELLED:
        y = np.where(y > np.median(y), 1.0, -1.0)
    elif loss in COUNTS:
        y = np.floor(np.exp(np.clip(y, -2.0, 2.0))) + (loss is sm.gamma_loss)
    w, c = sm.Variable(p, name="w"), sm.Variable(name="c")
    u = a @ w + c if rng.random() < 0.5 else a @ w
    objective = loss(u, y) + sm.ridge(w, pick(court, (1e-6, 1e-3, 0.1)))
    z, order = sm.chosen(w), rng.permutation(p)
    kids, parents, rest = order[:1], order[1:3], order[3:]
    kinds: dict[str, Any] = {
        "strong": lambda: z[kids] <= z[parents],
        "weak": lambda: z[kids] <= z[parents[:1]] + z[parents[1:]],
        "any": lambda: z[rest] <= sm.card(w[np.sort(parents)]),
        "chain": lambda: [z[kids] <= z[parents[:1]], z[parents[:1]] <= z[parents[1:]]],
        "least": lambda: sm.card(w[np.sort(parents)]) >= int(rng.integers(1, 3)),
    }
    constraints: list[Any] = [sm.card(w) <= int(rng.integers(1, p + 1))]
    constraints.append(kinds[pick(court, tuple(kinds))]())
    if rng.random() < 0.3:
        constraints.append(sm.card(w[np.sort(rest)]) <= 1)
    if rng.random() < 0.2:
        objective = objective + pick(court, (1e-3, 0.1)) * sm.card(w)
    elif rng.random() < 0.3:
        constraints.append(rng.integers(1, 5, p).astype(float) @ z <= 6.0)
    if rng.random() < 0.3:
        constraints.append(pick(court, (w >= 0.0, w <= 0.5, w[[int(parents[0])]] == 0.0)))
    problem = posed(court, lambda: sm.minimize(objective), constraints)
    if problem is not None:
        answers(court, problem, prove=rng.random() < 0.6)


def mixtures(court: Court) -> None:
    """Pose limits, costs, prices, hierarchies, bounds and equations together, in several units."""
    rng = court.rng
    n, p = int(rng.integers(5, 40)), int(rng.integers(4, 8))
    a, y = data(court, n, p)
    if rng.random() < 0.2:
        a[:, 1] = a[:, 0]
    loss = pick(court, (sm.squared_loss, sm.squared_loss, *NUMERICAL[1:], sm.logistic_loss))
    if loss is sm.logistic_loss:
        y = np.where(y > np.median(y), 1.0, -1.0)
    a *= pick(court, (1.0, 1.0, 1e-4, 1e-2, 1e3))
    w, c = sm.Variable(p, name="w"), sm.Variable(name="c")
    u = a @ w + c if rng.random() < 0.4 else a @ w
    objective: Any = loss(u, y)
    lam = pick(court, (0.0, 1e-2, 1.0))
    if lam:
        objective = objective + sm.ridge(w, lam)
    z, (kid, parent) = sm.chosen(w), rng.choice(p, 2, replace=False)
    possible: list[tuple[float, Callable[[], list[Any]]]] = [
        (0.8, lambda: [sm.card(w) <= int(rng.integers(1, p))]),
        (0.4, lambda: [sm.card(w[: p // 2]) <= int(rng.integers(0, p // 2 + 1))]),
        (0.4, lambda: [rng.integers(1, 6, p).astype(float) @ z <= float(rng.integers(2, 12))]),
        (0.3, lambda: [z[[kid]] <= z[[parent]]]),
        (0.3, lambda: [w >= -pick(court, (0.1, 0.5, 3.0)), w <= pick(court, (0.2, 0.5, 3.0))]),
        (0.2, lambda: [w >= 0.0]),
        (0.25, lambda: [w.sum() == pick(court, (1.0, 0.3))]),
        (0.1, lambda: [sm.norm(w) <= pick(court, (0.5, 2.0))]),
    ]
    constraints = [one for chance, made in possible if rng.random() < chance for one in made()]
    if rng.random() < 0.3:
        objective = objective + rng.uniform(0.0, 0.1, p) @ z
    problem = posed(court, lambda: sm.minimize(objective), constraints)
    if problem is not None:
        answers(court, problem, prove=rng.random() < 0.6)


def outputs(court: Court) -> None:
    """Pose several outputs: rows, entries or columns are counted, entries have bounds."""
    rng = court.rng
    n, p, m = int(rng.integers(6, 40)), int(rng.integers(3, 6)), int(rng.integers(2, 4))
    a, _ = data(court, n, p)
    y = a[:, :1] + a[:, 1:2] + rng.standard_normal((n, m))
    W, c = sm.Variable((p, m), name="W"), sm.Variable(m, name="c")
    u = a @ W + c if rng.random() < 0.4 else a @ W
    weights = rng.uniform(0.2, 2.0, n) if rng.random() < 0.3 else None
    counted = pick(court, ("rows", "rows", "entries", "columns"))
    kind, k = rng.random(), int(rng.integers(1, p))
    objective: Any = sm.ridge(W, pick(court, (1e-4, 0.1, 1.0)))
    if kind < 0.6:
        objective = objective + sm.squared_loss(u, y, weights=weights)
    elif kind < 0.8:
        counted = "rows"
        objective = objective + sm.multinomial_loss(u, np.argmax(y, axis=1), weights=weights)
    else:
        loss = pick(court, NUMERICAL[1:])
        for j in range(m):
            objective = objective + loss(a @ W[:, j], y[:, j], weights=weights)
    limits: dict[str, Any] = {
        "rows": lambda: [sm.card(W, axis=1) <= k],
        "entries": lambda: [sm.card(W) <= k],
        "columns": lambda: [sm.card(W[:, j]) <= 1 for j in range(m)],
    }
    constraints: list[Any] = limits[counted]()
    bounds: Any = pick(court, ((), (), (W >= 0.0,), (W <= 0.5, W >= -0.3), (W <= 2.0,)))
    problem = posed(court, lambda: sm.minimize(objective), [*constraints, *bounds])
    if problem is not None:
        answers(court, problem, prove=rng.random() < 0.6)


def links(court: Court) -> None:
    """Pose losses of positive predictions, logarithms of CVXPY's, and ordered classes."""
    rng = court.rng
    n, p = int(rng.integers(10, 40)), int(rng.integers(2, 8))
    a, y = data(court, n, p)
    lam, k = pick(court, (0.0, 1e-3, 0.1)), int(rng.integers(1, p + 1))
    kind, w, c = rng.random(), sm.Variable(p, name="w"), sm.Variable(name="c")
    constraints: list[Any] = [sm.card(w) <= k]
    if kind < 0.2:
        classes = np.digitize(y, np.quantile(y, pick(court, ((0.5,), (0.3, 0.7)))))
        objective: Any = sm.ordinal_loss(a @ w, classes) + sm.ridge(w, lam)
    elif kind < 0.4:
        cp, gains = cvxpy(), np.exp(pick(court, (0.01, 0.3, 2.0)) * a)
        x = cp.Variable(p)
        objective = cp.Maximize(cp.sum(cp.log(gains @ x)) / n)
        constraints = [sm.card(x) <= k, cp.sum(x) == 1.0, x >= 0.0]
    else:
        mean = np.exp(np.clip(y, -2.0, 2.0)) * pick(court, (1.0, 1e-3, 1e3))
        if kind < 0.7:
            y = np.floor(mean) + rng.integers(0, 2)
            u, link = np.abs(a) @ w + c, pick(court, ("identity", "sqrt"))
            objective = sm.poisson_loss(u, y, link=link) + sm.ridge(w, lam)
        else:
            objective = sm.gamma_loss(np.abs(a) @ w + c, mean, link="inverse") + sm.ridge(w, lam)
        if rng.random() < 0.3:
            constraints.append(w >= 0.0)
    goal = objective if 0.2 <= kind < 0.4 else sm.minimize(objective)
    problem = posed(court, lambda: goal, constraints)
    if problem is not None:
        answers(court, problem, prove=rng.random() < 0.6)
