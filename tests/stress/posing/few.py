"""Random problems with next to no data: one observation, one event, supports of size 0, n and p.

Every loss and every search meets them, and what is asked of a model afterwards: its path, the
choice of ``k``, its summary and predictions.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

import sparsemodel as sm
from sparsemodel.interfaces import FloatArray
from tests.stress.courts.court import Court
from tests.stress.posing.structures import pick, posed

_LOSSES: tuple[tuple[str, dict[str, float]], ...] = (
    ("squared", {}),
    ("logistic", {}),
    ("cox", {}),
    ("multinomial", {}),
    ("ordinal", {}),
    ("huber", {}),
    ("absolute", {}),
    ("quantile", {"tau": 0.3}),
    ("epsilon_insensitive", {"epsilon": 0.1}),
    ("expectile", {"tau": 0.3}),
    ("hinge", {}),
    ("smoothed_hinge", {}),
    ("squared_hinge", {}),
    ("poisson", {}),
    ("negative_binomial", {"theta": 2.0}),
    ("gamma", {}),
    ("inverse_gaussian", {}),
    ("tweedie", {"power": 1.5}),
)
_LABELLED = ("logistic", "hinge", "smoothed_hinge", "squared_hinge")
_CRITERIA = ("aic", "bic", "ebic", "gic", "aicc", "mbic")


def few_observations(court: Court) -> None:
    """Pose a regression with as few observations as there are features, or one, and ask it all."""
    rng = court.rng
    name, options = pick(court, _LOSSES)
    n = int(pick(court, (1, 2, 3, 5, 8)))
    p = int(pick(court, (1, max(n - 1, 1), n, n + 1, 2 * n)))
    k = int(pick(court, (0, 1, min(n, p), p - 1, p)))
    a, target = rng.standard_normal((n, p)), _target(court, name, n)
    classes = len(np.unique(target)) if name == "multinomial" else 0
    w = sm.Variable((p, max(classes, 1)) if name == "multinomial" else p, name="w")
    c = sm.Variable(w.shape[1:], name="c")
    limit, lam = sm.Parameter(integer=True, name="k", value=k), pick(court, (0.0, 1e-3, 1e-3))
    own_intercept = name not in ("cox", "ordinal") and rng.random() < 0.5
    groups = np.arange(p) // 2 if rng.random() < 0.2 and w.ndim == 1 else None
    loss = getattr(sm, f"{name}_loss")

    def goal() -> Any:
        u = a @ w + c if own_intercept else a @ w
        return sm.minimize(loss(u, target, **options) + sm.ridge(w, lam))

    counted = sm.card(w, groups=groups, axis=1 if w.ndim == 2 else None)
    constraints: list[Any] = [counted <= limit]
    if rng.random() < 0.2:
        constraints.append(pick(court, (w >= 0.0, w <= 0.5)))
    problem = posed(court, goal, constraints)
    if problem is not None:
        with warnings.catch_warnings():
            # What the library warns of on purpose is no fault: the end of a path, say.
            warnings.simplefilter("ignore", UserWarning)
            _solved_everyhow(court, problem, p)
            _followed(court, problem, limit, p if groups is None else int(groups[-1]) + 1)


def _target(court: Court, name: str, n: int) -> Any:
    """Return a target: one class or one event in some, all equal in others."""
    rng = court.rng
    y = rng.standard_normal(n) * pick(court, (0.0, 1.0, 1.0))
    if name in _LABELLED:
        return np.where(y > 0.0, 1.0, -1.0) if rng.random() < 0.5 else _one(n)
    if name in ("multinomial", "ordinal"):
        return np.arange(n) % 3 if rng.random() < 0.7 else _one(n).astype(np.intp)
    if name == "cox":
        event = _one(n) if rng.random() < 0.6 else (rng.random(n) < 0.5).astype(np.float64)
        return np.column_stack([1.0 + np.round(2.0 * np.abs(y)), event])
    if name in ("poisson", "negative_binomial"):
        return np.floor(np.abs(2.0 * y))
    if name in ("gamma", "inverse_gaussian", "tweedie"):
        return np.abs(y) + (name != "tweedie") * 0.1
    return y


def _one(n: int) -> FloatArray:
    """Return one event among ``n`` observations, or one label of its class."""
    return np.asarray(np.arange(n) == n - 1, dtype=np.float64)


def _solved_everyhow(court: Court, problem: sm.Problem, p: int) -> None:
    """Solve by the plan and by other backends, certify, prove, and read what comes back."""
    names = [info.name for info in sm.available_backends() if "precision" not in info.name]
    for name in court.rng.choice(names, 2, replace=False):
        court.ask(f"solve {name}", partial(problem.solve, str(name)), problem)
    solution = court.ask("solve", problem.solve, problem)
    if solution is None:
        return
    court.ask("print", lambda: (str(solution), repr(solution), solution.status, solution.gap))
    court.ask("certify", lambda: problem.certify(time_limit=1.0), problem)
    court.ask("prove", lambda: problem.prove(time_limit=1.0), problem)
    court.ask("explain", lambda: str(problem.explain()))
    court.ask("summary", lambda: str(solution.summary()))
    predicted = court.ask("predict", lambda: solution.predict(np.ones((2, p))))
    if predicted is not None and np.isnan(np.asarray(predicted, dtype=np.float64)).any():
        court.faults.append("wrong value: predict: NaN")


def _followed(court: Court, problem: sm.Problem, limit: sm.Parameter, units: int) -> None:
    """Follow ``k`` from nothing to everything, and choose one of them in every way."""
    path = court.ask("path", lambda: problem.path(limit, range(units + 1)), problem)
    if path is None:
        return
    court.ask("print the path", lambda: (str(path), repr(path)))
    if np.isnan(path.objective).any():
        court.faults.append("wrong value: path: NaN")
    for criterion in _CRITERIA:
        chosen = court.ask(f"select {criterion}", partial(path.select, criterion))
        if chosen is not None:
            court.ask("print the choice", partial(str, chosen))
    court.ask("cross_validate", lambda: path.cross_validate(folds=2))
    court.ask("stability", lambda: path.stability(resamples=2))
