"""Newton's method on a few columns in memory, without the calls that only large problems need."""

from __future__ import annotations

import numpy as np

from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import BoolArray, FloatArray, IntArray, Objective, Point
from sparsemodel.numerics.objectives.regression import (
    RegressionObjective,
    curvatures_of,
    margins,
)

_COLUMNS, _ENTRIES = 64, 2**16
"""Unknowns and entries up to which the time goes into calls, not into numbers."""
_NEWTON_STEPS = 50
SMALL_PIVOT = 1e-5
"""Pivot of a scaled Hessian below which the columns are factored themselves: condition 1e10. That
is left to the general method."""
ARMIJO = 1e-4
"""Share of the decrease that the slope promises which a step must bring."""
INDEPENDENT = 1e-9
"""Share of its curvature that a support must leave of a column that enters."""
_BLIND = 1e-14
"""Promise of a step, as a share of what is above the infimum, that is none."""


def minimise_few(
    objective: Objective, support: IntArray, start: Point, goal: float
) -> Point | None:
    """Return the minimiser on ``support``, to a gradient of ``goal`` times the size of its terms.

    None where the objective is not a smooth regression on a few columns that are held in memory,
    or is not clearly convex along the way: the general method says what is to be done then.
    """
    arrays = _columns(objective, support)
    if arrays is None or not isinstance(objective, RegressionObjective):
        return None
    form = objective.form
    ridge, floor = form.ridge[support], objective.infimum()
    x = start.x[support]

    def predicted(x: FloatArray) -> tuple[tuple[FloatArray, ...], float]:
        states = tuple(x @ rows for rows in arrays)
        value = form.constant + 0.5 * float(np.dot(ridge * x, x))
        for term, z in zip(form.terms, states, strict=True):
            value += term.loss.total(margins(term, z), term.target, term.weights)
        return states, value

    def slopes(x: FloatArray, states: tuple[FloatArray, ...]) -> FloatArray:
        out: FloatArray = ridge * x
        for term, z, rows in zip(form.terms, states, arrays, strict=True):
            out += rows @ term.loss.gradient(margins(term, z), term.target, term.weights)
        return out

    states, value = predicted(x)
    gradient = slopes(x, states)
    size = _norm(gradient)
    scale = objective.steepness(support, size)
    for _ in range(_NEWTON_STEPS):
        if size <= goal * scale:
            break
        hessian = np.zeros((support.size, support.size))
        for term, z, rows in zip(form.terms, states, arrays, strict=True):
            hessian += (rows * curvatures_of(term, z)) @ rows.T
        hessian.flat[:: support.size + 1] += ridge
        objective.work.factorizations += 1
        step = _newton_step(hessian, gradient)
        slope = np.nan if step is None else float(np.dot(gradient, step))
        if step is None or not -slope > _BLIND * (value - floor) * (size > 1e-4 * scale):
            return None
        t, limit = 1.0, value + 1e-15 * abs(value)
        following, after = predicted(x + step)
        while not after <= limit + ARMIJO * t * slope:
            t *= 0.5
            if t < 1e-10:
                return None
            following, after = predicted(x + t * step)
        moved = x + t * step
        left = slopes(moved, following)
        progress = _norm(left)
        if after >= value and progress >= 0.5 * size:  # rounding has taken over
            if progress < size and after <= value:
                x, states = moved, following
            break
        x, states, value, gradient, size = moved, following, after, left, progress
    return objective.predicted(support, x, states)


def _columns(objective: Objective, support: IntArray) -> list[FloatArray] | None:
    """Return the columns of each term as rows of an array, None where they are not at hand."""
    if not isinstance(objective, RegressionObjective) or support.size > _COLUMNS:
        return None
    form = objective.form
    plain = form.traits.curved and not objective.quadratic and len(objective.shape) == 1
    if not plain or not np.isfinite(objective.infimum()):
        return None
    if sum(term.design.shape[0] for term in form.terms) * support.size > _ENTRIES:
        return None
    designs = objective.columns(support)
    held = [design.array.T for design in designs if isinstance(design, DenseDesign)]
    return held if len(held) == len(designs) else None


def _newton_step(hessian: FloatArray, gradient: FloatArray) -> FloatArray | None:
    """Return ``-H^{-1} g``; None unless the Hessian is safely positive definite."""
    diagonal = hessian.diagonal()
    if not min(diagonal.tolist()) > 0.0:
        return None
    d = np.sqrt(diagonal)
    inverse = safe_inverse(hessian / d / d[:, None], SMALL_PIVOT**2)
    return None if inverse is None else inverse @ (-gradient / d) / d


def safe_inverse(matrix: FloatArray, least: float) -> FloatArray | None:
    """Return the inverse of a positive definite matrix; None where hardly anything is left.

    Of each row and column the others must leave more than ``least``, which is one over the
    diagonal of the inverse.
    """
    try:
        inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    own = inverse.diagonal().tolist()
    return inverse if all(one > 0.0 and one * least < 1.0 for one in own) else None


def safe_inverses(matrices: FloatArray, least: float) -> tuple[FloatArray, BoolArray]:
    """Return inverses of matrices, ``(R, k, k)``, and which of them :func:`safe_inverse` has."""
    try:
        inverses = np.asarray(np.linalg.inv(matrices), dtype=np.float64)
    except np.linalg.LinAlgError:  # of one of them
        if len(matrices) == 1:
            return np.full(matrices.shape, np.nan), np.zeros(1, dtype=bool)
        found = [safe_inverses(matrix[None], least)[0] for matrix in matrices]
        inverses = np.concatenate(found)
    own = inverses.diagonal(axis1=1, axis2=2)
    safe = np.logical_and(own > 0.0, own * least < 1.0)
    return inverses, np.asarray(safe.all(axis=1))


def _norm(v: FloatArray) -> float:
    return float(np.sqrt(np.dot(v, v)))
