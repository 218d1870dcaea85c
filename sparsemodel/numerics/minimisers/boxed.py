"""Minimise a smooth objective on a support between bounds."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, Objective, Point
from sparsemodel.numerics.minimisers.box_newton import box_newton
from sparsemodel.numerics.minimisers.newton import DIRECT_LIMIT, farthest

_FULL_ACCURACY = 1e-13


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
    lower, upper = form.box.lower[support].ravel(), form.box.upper[support].ravel()
    first = np.clip(start.x[support].ravel(), lower, upper)
    function = _OnSupport(objective, support)
    if not support.size:
        return function.point(first)
    sizes = [float(np.linalg.norm(function.evaluate(at)[1])) for at in (0.0 * first, first)]
    goal = (_FULL_ACCURACY if tol is None else tol) * max(*sizes, 1e-300)
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

    found = minimize(
        function.evaluate,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(lower, upper),
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 0.0, "gtol": goal, "maxcor": 30},
    )
    best: FloatArray = np.clip(found.x, lower, upper)
    return best


__all__ = ["minimise_in_box"]
