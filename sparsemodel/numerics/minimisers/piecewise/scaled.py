r"""Piecewise linear-quadratic losses on a support, in units in which all numbers are near one.

Targets, columns, weights and ridges may have any size that floats have. Powers of two take them to
one and back, which is exact; and residuals are counted from a least squares fit, so that targets
far from zero leave their digits to what is minimised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast, final

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Piecewise,
    Point,
    SparseRegression,
    SquaredDistance,
    Term,
)
from sparsemodel.numerics.minimisers.newton import DIRECT_LIMIT, factored
from sparsemodel.numerics.minimisers.piecewise.interior import Pieces, least, piece_values
from sparsemodel.numerics.objectives.regression import RegressionObjective

_ENTRIES = 2**24
"""Entries up to which columns are written out (128 MB)."""
_STEP = 2**27
"""Products of a step up to which it is worth more than several of Newton's, on losses that have
both."""
_ROUNDS = 4
_SMALL = 1e-6
"""Share of the value that was begun with, below which it is solved again in its own units."""
_GAP, _ROUGHEST = 1e-13, 1e-6
"""Gap at the end, relative to the value: where none is allowed, and where much is."""
_SETTLED = 1e-9
"""Gradient, relative to the size of what adds up to it, that is none."""
_FAR = 1e30
"""Slopes beyond it, in units of those that are reached, are as good as none."""


def minimise_pieces(
    objective: RegressionObjective, support: IntArray, start: Point, tol: float | None
) -> Point | None:
    """Return ``argmin f(x)`` over the ``x`` on ``support`` within the form's bounds.

    Its duals prove it the minimum. None where that is too large to be written out.

    Parameters
    ----------
    objective
        Of one vector, with piecewise losses and no constraints beside bounds.
    support
        Sorted indices; free coordinates included.
    start
        Its values on ``support`` are where the search may begin.
    tol
        Gap, as a hundredth share of the value, that is small enough; None asks for none.

    Notes
    -----
    :math:`O(n q^2)` a step in ``q`` unknowns, one or two dozen steps in all.
    """
    if _too_large(objective.form, support):
        return None
    goal = _GAP if tol is None else min(max(_GAP, 0.01 * tol), _ROUGHEST)
    parts = _Parts(objective, support)
    v = parts.start(start.x[support])
    b, value = parts.nothing(), parts.value(v)
    for _ in range(_ROUNDS if support.size and value > 0.0 else 0):
        following, slopes = parts.solved(v, goal)
        objective.work.factorizations += 1
        last, value = value, parts.value(following)
        if value < last:
            v = following
        if min(value, last) > 0.0:
            b = slopes
        if not 0.0 < value <= _SMALL * last:
            break
    if parts.unproved(v, b) > value:
        b = parts.nothing()  # an exact fit, but for rounding, that slopes of zero prove one
    return replace(objective.point(support, v), duals=parts.duals(b))


def settled(
    objective: RegressionObjective, support: IntArray, point: Point, tol: float | None
) -> bool:
    """Return whether the gradient vanishes at ``point``, each entry in its own units.

    That is, up to ``tol`` of what adds up to it; entries that their bounds hold do not count.
    """
    form = objective.form
    if _too_large(form, support):
        return True
    x, gradient = point.x[support], objective.restricted_gradient(point, support)
    size = np.abs(form.ridge[support] * x)
    slopes = objective.prediction_gradients(point)
    for design, slope in zip(objective.columns(support), slopes, strict=True):
        size += np.abs(design.to_array()).T @ np.abs(slope)
    moving = np.abs(gradient) > max(_SETTLED, 0.0 if tol is None else tol) * size
    if form.box is not None:
        box = form.box.chosen
        moving &= ~((x <= box.lower[support]) & (gradient > 0.0))
        moving &= ~((x >= box.upper[support]) & (gradient < 0.0))
    return not moving.any()


def _too_large(form: SparseRegression, support: IntArray) -> bool:
    entries = sum(2 * term.design.shape[0] for term in form.terms) * support.size
    slow = form.traits.has_hessian and entries * support.size > _STEP
    return slow or support.size > DIRECT_LIMIT or entries > _ENTRIES


@final
class _Parts:
    """The terms' pieces, one under the other, with the columns of the support."""

    def __init__(self, objective: RegressionObjective, support: IntArray) -> None:
        form = objective.form
        self._terms, self._ridge = form.terms, form.ridge[support]
        ends = form.ends_on(support).chosen
        self._low, self._high = ends.lower, ends.upper
        blocks = []
        for term, design in zip(form.terms, objective.columns(support), strict=True):
            c = term.weights
            columns, offset = design.to_array(), 0.0 if term.offset is None else term.offset
            pieces, softness = _pieces(term)
            for at, lower, upper in pieces:
                soft = np.full(c.size, softness)
                blocks.append((columns, offset - at, c, lower, upper, soft))
        whole = [np.concatenate(part) for part in zip(*blocks, strict=True)]
        self._counted = whole[2] > 0.0
        self._A, self._away, self._c, self._lower, self._upper, self._soft = (
            part[self._counted] for part in whole
        )

    def start(self, v: FloatArray) -> FloatArray:
        """Return ``v`` or a least squares fit, whichever is better, between the bounds."""
        v = np.clip(v, self._low, self._high)
        if not v.size or not self._away.size:
            return v
        size = _exponent(np.abs(self._A).max(axis=0))
        A = np.ldexp(self._A, -size)
        solve = factored(A.T @ A)
        fit, r = np.zeros_like(v), self._away
        for _ in range(2):  # the second time for the digits that large targets cost
            t = _exponent(np.abs(r).max())
            fit = fit + np.ldexp(solve(-(A.T @ np.ldexp(r, -t))), t - size)
            r = self._away + self._A @ fit
        fit = np.clip(fit, self._low, self._high)
        return fit if self.value(fit) < self.value(v) else v

    def value(self, v: FloatArray) -> float:
        """Return the objective at ``v``, up to its constant."""
        r = self._away + self._A @ v
        loss = np.dot(self._c, piece_values(r, self._lower, self._upper, self._soft))
        return float(loss + 0.5 * np.dot(self._ridge * v, v))

    def solved(self, v: FloatArray, goal: float) -> tuple[FloatArray, FloatArray]:
        """Return a minimiser and the slopes that prove it one, from the residuals at ``v``."""
        r = self._away + self._A @ v
        steepest = self._c * np.maximum(np.abs(self._lower), np.abs(self._upper))
        largest = float(np.abs(r).max())
        ridged = 0.5 * float(np.dot(self._ridge * v, v))
        if ridged > 0.5 * self.value(v):
            # Residuals of a fit through all observations are rounding, not what a ridge leaves.
            largest = max(largest, float((np.abs(self._A) @ np.abs(v)).max()))
        t = _exponent(largest)
        bent = np.divide(
            self._c * largest, self._soft, out=np.full_like(r, np.inf), where=self._soft > 0
        )
        tall = _exponent(np.minimum(steepest, bent).max())
        wide = t - _exponent(np.abs(self._A).max(axis=0))
        cheap = (t + tall - _exponent(self._ridge)) // 2
        wide = np.where(self._ridge > 0.0, np.minimum(wide, cheap), wide)
        moving = self._low < self._high
        wide, at = wide[moving], np.ldexp(v[moving], -wide[moving])
        ridge = np.ldexp(self._ridge[moving], 2 * wide - t - tall)
        slope = np.where(ridge > 0.0, ridge * at, 0.0)
        e, b = least(
            Pieces(
                A=np.ldexp(self._A[:, moving], wide - t),
                r=np.ldexp(r, -t),
                lower=np.maximum(np.ldexp(self._c * self._lower, -tall), -_FAR),
                upper=np.minimum(np.ldexp(self._c * self._upper, -tall), _FAR),
                soft=np.ldexp(self._soft / self._c, tall - t),
                slope=slope,
                ridge=ridge,
                constant=0.5 * float(np.dot(slope, np.where(slope == 0.0, 0.0, at))),
                low=np.ldexp(self._low[moving] - v[moving], -wide),
                high=np.ldexp(self._high[moving] - v[moving], -wide),
            ),
            goal,
        )
        out = v.copy()
        out[moving] += np.ldexp(e, wide)
        return np.clip(out, self._low, self._high), np.ldexp(b, tall)

    def unproved(self, v: FloatArray, b: FloatArray) -> float:
        """Return what the slopes leave open: the gradient that no bound answers to, times ``v``."""
        g = self._A.T @ b + self._ridge * v
        held = ((v <= self._low) & (g > 0.0)) | ((v >= self._high) & (g < 0.0))
        return float(np.dot(np.abs(g), np.where(held, 0.0, np.abs(v))))

    def nothing(self) -> FloatArray:
        """Return the slopes where nothing is lost."""
        return np.zeros_like(self._c)

    def duals(self, b: FloatArray) -> tuple[FloatArray, ...]:
        """Return the slopes of the terms: what their pieces' ``b`` add up to."""
        whole = np.zeros(self._counted.size)
        whole[self._counted] = b
        out, done = [], 0
        for term in self._terms:
            n = term.weights.size
            many = len(_pieces(term)[0])
            out.append(whole[done : done + many * n].reshape(many, n).sum(axis=0))
            done += many * n
        return tuple(out)


def _pieces(term: Term) -> tuple[Sequence[tuple[FloatArray, FloatArray, FloatArray]], float]:
    """Return the pieces of a term and their softness; a squared loss is one without ends."""
    loss, y = term.loss, term.target
    if isinstance(loss, SquaredDistance):
        ends = np.full(y.size, np.inf)
        return ((loss.centre(y), -ends, ends),), 1.0 / loss.steepness
    piecewise = cast("Piecewise", loss)
    return piecewise.pieces(y), piecewise.softness


def _exponent(size: Any) -> Any:
    """Return the exponents of the powers of two next above."""
    return np.frexp(size)[1].astype(np.int64)
