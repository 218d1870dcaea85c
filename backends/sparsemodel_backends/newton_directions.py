"""Newton directions on a support that an iteration selects (Zhou, Xiu and Qi 2021, eq. 18)."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, Objective, Point
from sparsemodel.numerics import conjugate_gradients, newton_solver

_INEXACT = 0.1
"""Accuracy of a linear solve in units of the stationarity measure (inexact Newton)."""
_MOVING = 16
"""While more than one in so many coordinates is new, two digits are enough."""
_LOOSE_COST = 16
"""At most one step of conjugate gradients for so many unknowns is cheaper than a factorisation
(k = 500, n = 2500: 7 steps for two digits, a factorisation as expensive as 45)."""


def newton_direction(
    objective: Objective,
    point: Point,
    support: IntArray,
    g: FloatArray,
    linear: FloatArray | None,
    residual: float | None,
) -> FloatArray | None:
    """Solve ``H_TT d_T = H_TJ x_J - grad_T f(x)`` with ``J = supp(x) minus T`` (eq. 18).

    By conjugate gradients no more accurately than ``residual``, the stationarity measure, deserves
    yet; exactly where that is None. ``linear`` is the gradient at zero of a quadratic, ``g`` that
    at the point. None where the system cannot be solved.
    """
    if not support.size:
        return np.zeros_like(g[support])
    accuracy = 1e-12 if residual is None else min(1e-2, max(_INEXACT * residual, 1e-10))
    explicit = objective.quadratic and objective.explicit_hessian(support)
    if residual is not None and explicit and _moving(point.support, support):
        d = _loose_direction(objective, point, support)
        if d is not None:
            return d
    linear = linear if explicit else None
    if linear is not None:
        right = -linear[support]
    elif objective.quadratic:
        # Then d_T leads to the minimiser on T, and its gradient there is H_TJ x_J's twin.
        right = _to_minimiser(objective, point, support)[1]
    else:
        right = -g[support]
        dropped = np.setdiff1d(point.support, support, assume_unique=True)
        if np.any(point.x[dropped]):
            union = np.union1d(support, dropped)
            v = np.where(np.isin(union, dropped), 1.0, 0.0)
            v = (v if point.x.ndim == 1 else v[:, None]) * point.x[union]
            product = objective.hessian_product(point, union, v)
            right = right + product[np.searchsorted(union, support)]
    try:
        d = newton_solver(objective, point, support, tol=accuracy)(right)
    except (np.linalg.LinAlgError, ArithmeticError):
        return None
    d = d if linear is None else d - point.x[support]
    return d if np.all(np.isfinite(d)) else None


def refined(objective: Objective, point: Point) -> Point:
    """Return a minimiser of a quadratic after a step with the factor that is at hand.

    It has the digits of an orthogonal factorisation then, as those of other methods have.
    """
    support = point.support
    d = newton_solver(objective, point, support, tol=1e-2)(
        -objective.restricted_gradient(point, support)
    )
    following = objective.point(support, point.x[support] + d)
    return following if following.value <= point.value else point


def _moving(last: IntArray, support: IntArray) -> bool:
    """Return whether the support still changes by more than one coordinate in ``_MOVING``."""
    shared = np.isin(support, last, assume_unique=True).sum()
    return bool(_MOVING * (support.size - shared) > support.size)


def _loose_direction(objective: Objective, point: Point, support: IntArray) -> FloatArray | None:
    """Return the way to the minimiser on ``T`` to two digits, or None where that takes long.

    A support that is about to change again deserves no factorisation.
    """
    kept, right = _to_minimiser(objective, point, support)
    limit = support.size // _LOOSE_COST
    return conjugate_gradients(objective, kept, support, right, tol=1e-2, max_iter=limit)


def _to_minimiser(
    objective: Objective, point: Point, support: IntArray
) -> tuple[Point, FloatArray]:
    """Return a point without what is not on the support, and its negative gradient there."""
    kept = objective.point(support, point.x[support])
    return kept, -objective.restricted_gradient(kept, support)
