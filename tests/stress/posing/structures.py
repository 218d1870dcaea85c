"""Random problems by structure: symmetric matrices, offsets, portfolios, paths, scales, limits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import sparsemodel as sm
from sparsemodel.interfaces import FloatArray
from tests.stress.courts.court import Court

NUMERICAL = (sm.squared_loss, sm.huber_loss, sm.absolute_loss, sm.quantile_loss)
LABELLED = (sm.logistic_loss, sm.squared_hinge_loss, sm.smoothed_hinge_loss, sm.hinge_loss)
COUNTS = (sm.poisson_loss, sm.gamma_loss)
_WEAK = (None, None, "iht", "omp", "niht")
"""Backends: the chosen one, and some that stop short of the optimum."""


def pick(court: Court, values: Any) -> Any:
    """Return one of some values."""
    return values[int(court.rng.integers(len(values)))]


def data(court: Court, n: int, p: int) -> tuple[FloatArray, FloatArray]:
    """Return a design, whose columns may hang together, and a target with a sparse model."""
    rng = court.rng
    a = rng.standard_normal((n, p)) + pick(court, (0.0, 0.0, 1.0, 3.0)) * rng.standard_normal(
        (n, 1)
    )
    w = np.zeros(p)
    w[rng.permutation(p)[: max(1, p // 3)]] = rng.standard_normal(max(1, p // 3))
    return a, a @ w + pick(court, (0.01, 0.5, 3.0)) * rng.standard_normal(n)


def answers(court: Court, problem: sm.Problem, *, prove: bool = False) -> None:
    """Solve and certify, with a weak backend in some problems, and prove where asked for."""
    backend = pick(court, _WEAK)
    found = court.ask("solve", lambda: problem.solve(backend), problem)
    if found is None and backend is not None:
        found = court.ask("solve", problem.solve, problem)
    if found is None:
        return
    court.ask("certify", lambda: problem.certify(time_limit=2.0), problem, time_limit=2.0)
    if prove:
        court.ask("prove", lambda: problem.prove(time_limit=2.0), problem, time_limit=2.0)


def posed(court: Court, goal: Any, constraints: list[Any]) -> sm.Problem | None:
    """Return the problem, None where it is refused."""
    made: sm.Problem | None = court.ask("declare", lambda: sm.Problem(goal(), constraints))
    return made


def cvxpy() -> Any:
    """Return CVXPY, which is imported where it is needed only."""
    return import_module("cvxpy")


def symmetric_matrices(court: Court) -> None:
    """Pose likelihoods, and in one of four problems squares, of a symmetric variable.

    With patterns and eigenvalue bounds, which only likelihoods know.
    """
    rng, p = court.rng, int(court.rng.integers(2, 6))
    omega = sm.Variable((p, p), symmetric=True, name="Omega")
    goal = _squares(court, omega) if rng.random() < 0.25 else _likelihood(court, omega)
    constraints: list[Any] = []
    choice = rng.random()
    if choice < 0.7:
        limit = pick(court, (1, 2)) * int(rng.integers(0, p))
        made = court.ask("declare", lambda: sm.card(sm.offdiag(omega)) <= limit)
        constraints += [] if made is None else [made]
    elif choice < 0.8:
        made = court.ask("declare", lambda: sm.card(omega, axis=1) <= max(1, p // 2))
        constraints += [] if made is None else [made]
    if rng.random() < 0.4:
        constraints.append(omega >> pick(court, (0.1, 1.0, 5.0)))
    if rng.random() < 0.3:
        constraints.append(omega << pick(court, (3.0, 10.0)))
    if rng.random() < 0.3:
        constraints.append(sm.forbidden_edges(omega, [(0, 1)]))
    elif rng.random() < 0.3:
        constraints.append(sm.required_edges(omega, [(0, 1)]))
    problem = posed(court, goal, constraints)
    if problem is not None:
        answers(court, problem, prove=rng.random() < 0.3)


def _squares(court: Court, omega: sm.Variable) -> Callable[[], Any]:
    """Return squared losses and a ridge."""
    rng, p = court.rng, omega.shape[0]
    t = rng.standard_normal((p + 3, p))
    y = rng.standard_normal((p + 3, p)) if rng.random() < 0.5 else t @ _symmetric(court, p)
    lam = pick(court, (0.0, 0.01, 1.0))
    return lambda: sm.minimize(sm.squared_loss(t @ omega, y) + sm.ridge(omega, lam))


def _likelihood(court: Court, omega: sm.Variable) -> Callable[[], Any]:
    """Return a likelihood in one of its spellings: of observations, of moments, of two samples."""
    rng, p = court.rng, omega.shape[0]
    n = int(rng.integers(2, 6 * p))
    x = rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    x *= pick(court, (1.0, 1.0, 1e-3, 1e4))
    s, kind = x.T @ x / n, rng.random()
    if kind < 0.3:
        return lambda: sm.minimize(sm.gaussian_nll(omega, data=x))
    if kind < 0.6:
        factor, shift = pick(court, (0.5, 1.0, 7.0)), pick(court, (0.0, -3.0))
        return lambda: sm.minimize(factor * (sm.trace(s @ omega) - sm.log_det(omega)) + shift)
    if kind < 0.8:
        return lambda: sm.minimize(
            -2.0 * sm.log_det(omega) + sm.trace(s @ omega) + 0.5 * sm.trace(np.eye(p) @ omega)
        )
    return lambda: sm.minimize(sm.gaussian_nll(omega, s, shrinkage=pick(court, (0.1, 0.9))))


def _symmetric(court: Court, p: int) -> FloatArray:
    x = court.rng.standard_normal((p, p))
    return np.asarray(x + x.T)


def offsets(court: Court) -> None:
    """Pose intercepts with unbalanced targets, and constants up to 1e12."""
    rng = court.rng
    n, p = int(rng.integers(8, 40)), int(rng.integers(2, 9))
    a, y = data(court, n, p)
    shift = pick(court, (0.0, 1.0, 1e3, 1e6, 1e8, 1e10, 1e12)) * pick(court, (-1.0, 1.0))
    kind, w, c = rng.random(), sm.Variable(p, name="w"), sm.Variable(name="c")
    inside: float = 0.0
    if kind < 0.5:
        loss, y = pick(court, NUMERICAL), y + shift
    elif kind < 0.8:
        loss, y = pick(court, LABELLED), np.where(y > np.quantile(y, 0.9), 1.0, 0.0)
        inside = shift if rng.random() < 0.3 else 0.0
    else:
        loss = pick(court, COUNTS)
        y = np.floor(np.exp(np.clip(y, -2.0, 2.0))) + (loss is sm.gamma_loss)
        inside = pick(court, (0.0, 5.0, 30.0, -30.0, 200.0))
    constant = shift if rng.random() < 0.2 else 0.0
    lam = pick(court, (0.01, 1.0, 0.0, 1e-6))
    k = int(rng.integers(1, p + 1))
    problem = posed(
        court,
        lambda: sm.minimize(loss(a @ w + c + inside, y) + sm.ridge(w, lam) + constant),
        [sm.card(w) <= k],
    )
    if problem is not None:
        answers(court, problem, prove=rng.random() < 0.4)


def without_bound(court: Court) -> None:
    """Pose custom losses and quadratic forms: nothing bounds most of them from below."""
    rng, p = court.rng, int(court.rng.integers(3, 10))
    root = rng.standard_normal((p + 2, p)) + pick(court, (0.0, 1.0))
    h, g = root.T @ root, rng.standard_normal(p) * pick(court, (1.0, 1e-6, 1e6))
    k = int(rng.integers(1, p))
    if rng.random() < 0.5:
        cp = cvxpy()
        x = cp.Variable(p)
        goal: Any = cp.Minimize(cp.quad_form(x, cp.psd_wrap(h)) - g @ x)
        counted: Any = x
    else:
        w = counted = sm.Variable(p, name="w")
        least = pick(court, (-np.inf, float(-g @ np.linalg.lstsq(h, g, rcond=None)[0])))
        f = sm.custom_loss(
            lambda u: float(0.5 * u @ h @ u - g @ u),
            lambda u: h @ u - g,
            of=w,
            lower_bound=least,
        )
        goal = sm.minimize(f + sm.ridge(w, pick(court, (0.0, 0.0, 0.1))))
    constraints = [sm.card(counted) <= k]
    if rng.random() < 0.2:
        constraints.append(counted >= 0)
    problem = posed(court, lambda: goal, constraints)
    if problem is not None:
        answers(court, problem, prove=rng.random() < 0.3)


def portfolios(court: Court) -> None:
    """Pose risk against return under a budget, in both languages."""
    rng, p = court.rng, int(court.rng.integers(3, 10))
    returns = rng.standard_normal((3 * p, p)) + rng.standard_normal((3 * p, 1))
    scale = pick(court, (1.0, 1e-4, 1e4))
    sigma, mu = np.cov(returns, rowvar=False) * scale, scale * rng.uniform(0.0, 1.0, p)
    k = int(rng.integers(1, p + 1))
    budget = pick(court, (1.0, 1e-6, 1e6))
    if rng.random() < 0.5:
        cp = cvxpy()
        w: Any = cp.Variable(p)
        goal: Any = cp.Minimize(cp.quad_form(w, cp.psd_wrap(sigma)) - mu @ w)
        total: Any = cp.sum(w)
    else:
        w = sm.Variable(p, name="w")
        risk = sm.custom_loss(
            lambda u: float(u @ sigma @ u), lambda u: 2.0 * sigma @ u, of=w, lower_bound=0.0
        )
        goal = sm.minimize(risk - mu @ w)
        total = w.sum()
    constraints: list[Any] = [sm.card(w) <= k]
    constraints.append(pick(court, (total == budget, total >= budget, total == budget)))
    if rng.random() < 0.5:
        constraints += [w >= 0.0, w <= budget * pick(court, (1.0, 2.0 / k))]
    problem = posed(court, lambda: goal, constraints)
    if problem is not None:
        answers(court, problem)


def costs(court: Court) -> None:
    """Pose prices and budgets of single entries, and entries that are zero or away from it."""
    rng = court.rng
    n, p = int(rng.integers(10, 40)), int(rng.integers(3, 8))
    a, y = data(court, n, p)
    loss = pick(court, (*NUMERICAL, sm.logistic_loss))
    if loss is sm.logistic_loss:
        y = np.where(y > np.median(y), 1.0, -1.0)
    each = rng.integers(0, 6, p) * pick(court, (1e-6, 0.01, 1.0, 1e6))
    w, c = sm.Variable(p, name="w"), sm.Variable(name="c")
    objective = loss(a @ w + c, y) + sm.ridge(w, pick(court, (1e-3, 0.1)))
    constraints: list[Any] = [sm.card(w) <= int(rng.integers(1, p + 1))]
    kind = rng.random()
    if kind < 0.3:
        objective = objective + each @ sm.chosen(w)
    elif kind < 0.7:
        constraints.append(each @ sm.chosen(w) <= float(each.sum()) * pick(court, (0.0, 0.3, 0.6)))
    if kind > 0.6:
        low = pick(court, (1e-6, 0.1, 1.0))
        constraints.append(sm.semicontinuous(w, low, low * pick(court, (1.0, 3.0, np.inf))))
    problem = posed(court, lambda: sm.minimize(objective), constraints)
    if problem is not None:
        answers(court, problem, prove=rng.random() < 0.5)


def paths(court: Court) -> None:
    """Follow k, also with units that are forced, and solve for each k again."""
    rng = court.rng
    n, p = int(rng.integers(10, 40)), int(rng.integers(4, 12))
    a, y = data(court, n, p)
    w, k = sm.Variable(p, name="w"), sm.Parameter(integer=True, name="k")
    loss = pick(court, NUMERICAL[:2])
    groups = pick(court, (None, None, np.arange(p) // 2))
    constraints: list[Any] = [sm.card(w, groups=groups) <= k]
    if rng.random() < 0.4:
        constraints.append(w[[0]] >= pick(court, (0.5, 1e-3)))
    if rng.random() < 0.2:
        constraints.append(w >= -0.2)
    least = 1 if len(constraints) > 1 else 0
    goal = sm.minimize(loss(a @ w, y) + sm.ridge(w, pick(court, (0.0, 0.01, 1.0))))
    k.value = pick(court, (None, 2))
    problem = posed(court, lambda: goal, constraints)
    if problem is None:
        return
    most = p // 2 if groups is not None else min(p, 6)
    ks = range(least, most + 1)
    path = court.ask("path", lambda: problem.path(k, ks), problem)
    if path is None and court.refusals:
        court.faults.append(f"refused path: {court.refusals[-1]}")
    for place, at in enumerate(ks if path is not None else ()):
        k.value = at
        found = court.ask("solve", problem.solve, problem)
        if found is not None and path.objective[place] > found.value:
            court.worse.append(
                float((path.objective[place] - found.value) / max(abs(found.value), 1e-300))
            )


def extreme_scales(court: Court) -> None:
    """Pose squared losses at scales of 1e-150 to 1e150, to be judged in rational numbers."""
    rng = court.rng
    n, p = int(rng.integers(1, 12)), int(rng.integers(1, 6))
    a, y = data(court, n, p)
    scales = (1e-150, 1e-100, 1e-76, 1e-30, 1e-8, 1.0, 1e8, 1e30, 1e76, 1e150)
    size, height = pick(court, scales), pick(court, scales)
    a, y = a * size, y * height
    lam = pick(court, (0.0, 1e-2 * size * size, 1.0, 1e-300, size))
    if not np.isfinite(lam):
        lam = 1.0
    w = sm.Variable(p, name="w")
    reduction = pick(court, ("mean", "sum"))
    k = int(rng.integers(0, p + 1))
    problem = posed(
        court,
        lambda: sm.minimize(sm.squared_loss(a @ w, y, reduction=reduction) + sm.ridge(w, lam)),
        [sm.card(w) <= k],
    )
    if problem is not None:
        answers(court, problem, prove=rng.random() < 0.5)


def limits(court: Court) -> None:
    """Give larger problems little time."""
    rng = court.rng
    n, p = pick(court, ((300, 600), (800, 200), (120, 1500), (400, 400)))
    a, y = data(court, n, p)
    limit = pick(court, (0.05, 0.1, 0.3))
    w, c = sm.Variable(p, name="w"), sm.Variable(name="c")
    loss = pick(court, (*NUMERICAL, *LABELLED))
    target = np.where(y > 0.0, 1.0, -1.0) if loss in LABELLED else y
    goal = sm.minimize(loss(a @ w + c, target) + sm.ridge(w, pick(court, (1e-3, 0.1))))
    constraints: list[Any] = [sm.card(w) <= int(rng.integers(2, 20))]
    if rng.random() < 0.2:
        constraints.append(sm.norm(w, 1) <= 0.5)
    problem = posed(court, lambda: goal, constraints)
    if problem is None:
        return
    for what in ("solve", "certify", "prove"):
        call = getattr(problem, what)
        court.ask(what, partial(call, time_limit=limit), problem, time_limit=limit)
