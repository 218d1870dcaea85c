"""Projected Newton: minimise a smooth function of few unknowns, or an objective, between bounds."""

from __future__ import annotations

from typing import Any, Protocol, final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, Objective, Point
from sparsemodel.numerics.budget import budget
from sparsemodel.numerics.minimisers.few_columns import ARMIJO
from sparsemodel.numerics.minimisers.newton import (
    DIRECT_LIMIT,
    FULL_ACCURACY,
    LEVEL,
    STRIDE,
    factored,
    farthest,
)

_FLAT = 1e-16
"""Curvature, relative to the largest, that is nothing but rounding."""
_NEAR = 1e-8
"""Entries this close to a bound, relative to their size, count as on it while they move to it.

Never farther than the projected steepest descent would move, as Bertsekas has it: otherwise
everything between narrow bounds would count.
"""


def minimise_in_box(
    objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
) -> Point:
    """Return ``argmin f(x)`` over the ``x`` on ``support`` within the form's bounds.

    Entries that a bound holds are exactly on it. Parameters and accuracy are those of
    :func:`~sparsemodel.numerics.minimise_on_support`.

    Notes
    -----
    Projected Newton, :math:`O(n q^2 + q^3)` a step in ``q`` unknowns up to ``DIRECT_LIMIT``;
    L-BFGS-B, :math:`O(n q)` a step, above.
    """
    form = objective.form
    if form.box is None:
        raise TypeError("minimise_in_box is for forms with bounds.")
    box = form.box.chosen
    lower, upper = box.lower[support].ravel(), box.upper[support].ravel()
    first = np.clip(start.x[support].ravel(), lower, upper)
    function = _OnSupport(objective, support)
    if not support.size:
        return function.point(first)
    size = objective.steepness(support, float(np.linalg.norm(function.evaluate(first)[1])))
    goal = (FULL_ACCURACY if tol is None else tol) * max(size, 1e-300)
    if first.size <= DIRECT_LIMIT:
        v = box_newton(function, first, lower, upper, tol=goal, far=farthest(objective))
    else:
        v = _quasi_newton(function, first, lower, upper, goal)
    return function.point(v)


@final
class _OnSupport:
    """The objective as a function of the values on the support, flattened."""

    def __init__(self, objective: Objective, support: IntArray) -> None:
        self._objective, self._support = objective, support
        self._shape = (support.size, *objective.shape[1:])
        self._last: Point | None = None

    def point(self, v: FloatArray) -> Point:
        return self._objective.point(self._support, v.reshape(self._shape))

    def evaluate(self, v: FloatArray) -> tuple[float, FloatArray]:
        self._last = self.point(v)
        gradient = self._objective.restricted_gradient(self._last, self._support)
        return self._last.value, gradient.ravel()

    def hessian(self, v: FloatArray) -> FloatArray:
        at = self.point(v) if self._last is None else self._last
        self._objective.work.factorizations += 1
        return self._objective.hessian(at, self._support)


def _quasi_newton(
    function: Any, first: FloatArray, lower: FloatArray, upper: FloatArray, goal: float
) -> FloatArray:
    from scipy.optimize import Bounds, minimize

    clock = budget()

    def on_time(_: FloatArray) -> None:
        if clock.over():
            raise StopIteration

    found = minimize(
        function.evaluate,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(lower, upper),
        callback=on_time,
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 0.0, "gtol": goal, "maxcor": 30},
    )
    best: FloatArray = np.clip(found.x, lower, upper)
    return best


class SmoothFunction(Protocol):
    """A convex function of a vector with its derivatives (second ones may be generalised)."""

    def evaluate(self, v: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        ...

    def hessian(self, v: FloatArray) -> FloatArray:
        """Return the Hessian at the point of the last :meth:`evaluate`."""
        ...


def box_newton(
    function: SmoothFunction,
    start: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    *,
    tol: float,
    far: float,
    max_iter: int = 200,
) -> FloatArray:
    r"""Return a minimiser of ``function`` over ``lower <= v <= upper``.

    Newton's method in the entries that no bound blocks, with a search along the projected arc
    (Bertsekas, Projected Newton methods for optimization problems with simple constraints, SIAM
    J. Control Optim. 1982). Entries end exactly on their bounds. Semismooth functions (piecewise
    quadratic ones, say) are welcome; the search keeps them convergent.

    Parameters
    ----------
    function
        Convex; :math:`O(q^3)` for each of its Hessians in ``q`` unknowns.
    tol
        Stop when the norm of the projected gradient is below it.
    far
        Stop when the norm of the unknowns is above it.

    Notes
    -----
    Ends early where the time is over.
    """
    v, clock = np.clip(start, lower, upper), budget()
    value, g = function.evaluate(v)
    for _ in range(max_iter):
        if np.isfinite(value) and clock.over():
            break
        blocked = ((v <= lower) & (g > 0.0)) | ((v >= upper) & (g < 0.0)) | (lower == upper)
        size = float(np.linalg.norm(g[~blocked]))
        if not size > tol:
            break
        hessian = function.hessian(v)
        diagonal = np.maximum(np.diag(hessian), 1e-300)
        steepest = np.where(blocked, 0.0, -g / diagonal)
        moved = float(np.linalg.norm(np.clip(v + steepest, lower, upper) - v))
        reach = np.minimum(_NEAR * (1.0 + np.abs(v)), moved)
        close = (((v - lower) <= reach) & (g > 0.0)) | (((upper - v) <= reach) & (g < 0.0))
        moving = ~blocked & ~close
        d = steepest.copy()
        if moving.any():
            inner = np.flatnonzero(moving)
            square = hessian[np.ix_(inner, inner)]
            d[inner] = factored(square)(-g[inner])
            left = g[inner] + square @ d[inner]
            rest = float(np.linalg.norm(left))
            if rest > LEVEL * float(np.linalg.norm(g[inner])):
                # The part of the gradient that the factor left out, as it has next to no curvature:
                # to its minimum where it has some, else to a bound, or away.
                stride = STRIDE * (1.0 + float(np.linalg.norm(v))) / rest
                bend = float(left @ square @ left) / rest**2
                if bend > _FLAT * float(np.max(np.diag(square))):
                    stride = min(stride, 1.0 / bend)
                d[inner] -= stride * left
        found = _search(function, v, value, g, d, lower, upper)
        if found is None:
            # Where an exponential is flat, a step may be 1e80 long: no halving brings it back.
            longest = STRIDE * (1.0 + float(np.linalg.norm(v)))
            steepest *= min(1.0, longest / max(float(np.linalg.norm(steepest)), 1e-300))
            found = _search(function, v, value, g, steepest, lower, upper)
        if found is None:
            break
        following, new_value, new_g = found
        stalled = new_value >= value and bool(
            np.linalg.norm(new_g[~blocked]) >= 0.5 * np.linalg.norm(g[~blocked])
        )
        if stalled and new_value > value:
            break
        v, value, g = following, new_value, new_g
        if stalled or float(np.linalg.norm(v)) > far:
            break
    return v


def _search(
    function: SmoothFunction,
    v: FloatArray,
    value: float,
    g: FloatArray,
    d: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> tuple[FloatArray, float, FloatArray] | None:
    """Backtrack along ``clip(v + t d)`` until the value falls enough; None when it never does."""
    t = 1.0
    rounding = 4e-16 * abs(value)
    for _ in range(50):
        following = np.clip(v + t * d, lower, upper)
        change = float(np.dot(g, following - v))
        if change >= 0.0:
            return None
        new_value, new_g = function.evaluate(following)
        if new_value <= value + ARMIJO * change + rounding:
            return following, new_value, new_g
        t *= 0.5
    return None
