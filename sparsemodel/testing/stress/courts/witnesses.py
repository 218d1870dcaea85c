"""Feasible points that a bound must not exceed, found support by support with SciPy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice

import numpy as np
from scipy.optimize import minimize

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.testing.stress.posing.build import Trial

EXHAUSTIVE = 12
"""Up to so many coordinates the supports are tried one after the other."""
_SUPPORTS = 70
"""At most so many of them; more are drawn at random."""


def witnesses(trial: Trial, given: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield feasible points ``(x, c)``, among them the best that SciPy finds on each support.

    Any feasible point refutes a bound above its objective, so that a poor one is a weak witness
    and never a false one. The support of ``given`` is tried first.
    """
    c = np.zeros(trial.shape[1:])
    zero = np.zeros(trial.shape)
    yield zero, c
    for support in _supports(trial, given):
        x, at = _minimised(trial, support)
        yield x, at
        for size in (0.999, 0.5):
            yield size * x, at


def _supports(trial: Trial, given: FloatArray) -> Iterator[IntArray]:
    yield np.flatnonzero((given != 0.0).reshape(len(given), -1).any(axis=1))
    p = trial.coordinates
    if p > EXHAUSTIVE:
        return
    labels = np.arange(p) - trial.always if trial.groups is None else trial.groups
    units = int(labels.max()) + 1
    size = units if trial.price else trial.k
    every = list(islice(combinations(range(units), size), 2000))
    rng = np.random.default_rng(trial.recipe.seed)
    for i in rng.permutation(len(every))[:_SUPPORTS].tolist():
        yield np.flatnonzero(np.isin(labels, every[i]) | (labels < 0))


def _minimised(trial: Trial, support: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return a point on the support; least squares where that is the problem, else L-BFGS."""
    x = np.zeros(trial.shape)
    free = trial.recipe.intercept
    with np.errstate(all="ignore"):
        if trial.recipe.loss == "squared":
            x[support], c = _least_squares(trial, support)
        else:
            x[support], c = _descended(trial, support)
    x = np.where(np.isfinite(x), x, 0.0)
    return _inside(trial, x), np.where(np.isfinite(c) & free, c, 0.0)


def _inside(trial: Trial, x: FloatArray) -> FloatArray:
    low, high = trial.box
    inside = np.clip(x, low, high)
    if low <= 0.0 <= high:
        inside = np.where(x == 0.0, 0.0, inside)
    norm = float(np.linalg.norm(inside))
    if trial.recipe.constraint == "norm" and norm > 1.0:
        inside = inside * ((1.0 - 1e-12) / norm)
    total = inside.sum(axis=0)
    if trial.recipe.constraint == "inequality" and np.any(total > 0.5):
        inside = inside * (0.499 / np.max(total))
    return np.asarray(inside)


def _least_squares(trial: Trial, support: IntArray) -> tuple[FloatArray, FloatArray]:
    rows, right = [], []
    columns = len(support) + trial.recipe.intercept
    for block in trial.blocks:
        root = np.sqrt(block.factors).astype(np.float64)
        a = block.entries[:, support].astype(np.float64)
        if trial.recipe.intercept:
            a = np.column_stack([a, np.ones(len(a))])
        rows.append(root[:, None] * a)
        right.append(root * block.targets.astype(np.float64))
    ridge = np.zeros(columns)
    ridge[: len(support)] = np.sqrt(np.broadcast_to(trial.ridge, trial.shape)[support])
    stacked = np.concatenate([*rows, np.diag(ridge)])
    size = np.sqrt(np.square(stacked).sum(axis=0))
    size = np.where((size > 0.0) & np.isfinite(size), size, 1.0)
    both = np.concatenate([*right, np.zeros(columns)])
    if not columns or not np.all(np.isfinite(stacked / size)) or not np.all(np.isfinite(both)):
        return np.zeros(len(support)), np.zeros(())
    solution = np.linalg.lstsq(stacked / size, both, rcond=None)[0] / size
    return solution[: len(support)], np.asarray(solution[-1] if trial.recipe.intercept else 0.0)


def _descended(trial: Trial, support: IntArray) -> tuple[FloatArray, FloatArray]:
    shape = (len(support), *trial.shape[1:])
    tail = trial.shape[1:]
    count = int(np.prod(shape))
    # In units of the columns' sizes, so that extreme scales are moderate ones for SciPy.
    size = max(float(np.abs(b.entries[:, support]).max(initial=0.0)) for b in trial.blocks) or 1.0

    def split(v: FloatArray) -> tuple[FloatArray, FloatArray]:
        x = np.zeros(trial.shape)
        x[support] = v[:count].reshape(shape) / size
        c = v[count:].reshape(tail) if trial.recipe.intercept else np.zeros(tail)
        return x, c

    def value(v: FloatArray) -> tuple[float, FloatArray]:
        total, gradient, shift = trial.slopes(*split(v))
        slope = np.concatenate([(gradient[support] / size).ravel(), np.ravel(shift)])[: v.size]
        found = float(total)
        return min(found, 1e300) if found == found else 1e300, np.clip(
            np.nan_to_num(slope.astype(np.float64)), -1e150, 1e150
        )

    extra = int(np.prod(tail)) if trial.recipe.intercept else 0
    start = np.zeros(count + extra)
    if not start.size:
        return np.zeros(shape), np.zeros(tail)
    limits = {"maxiter": 30, "maxfun": 60}
    v = minimize(value, start, jac=True, method="L-BFGS-B", options=limits).x
    x, c = split(v)
    return x[support], c
