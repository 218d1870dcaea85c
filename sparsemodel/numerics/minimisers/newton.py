r"""Minimise a smooth objective on a support (debiasing): Newton's method in few unknowns.

One Newton step solves a quadratic exactly; a second one with the factor kept is iterative
refinement, which brings the normal equations to the accuracy of an orthogonal factorisation
(Bjorck, Numerical Methods for Least Squares Problems, section 2.9.3). They lose what differs by
less than the root of the rounding: nearly dependent columns are factored themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Objective,
    Point,
    SparseRegression,
    UnboundedError,
)
from sparsemodel.numerics.budget import budget, cholesky_cost, gram_cost, products_cost
from sparsemodel.numerics.minimisers.few_columns import ARMIJO, SMALL_PIVOT, minimise_few
from sparsemodel.numerics.support.units import support_units
from sparsemodel.threads import keep_to_one

DIRECT_LIMIT = 1500
"""Unknowns up to which the Hessian is formed and factored; conjugate gradients above.

To full accuracy both cost the same on well conditioned columns at every size (250 to 3000
unknowns, n = 5000: ``python -m benchmarks.algorithms newton``); the factorisation does not depend
on the condition, and is left where its memory and the cube of its size begin to count. Loose
systems (1e-2) are solved ten times faster by conjugate gradients from 250 unknowns on, but NHTP's
runs on logistic losses became only 0 to 50 % shorter and ended up to 3 % higher.
"""

_MAX_NEWTON = 100
FULL_ACCURACY = 1e-13

FAR = 1e12
"""A point this far away stands for one at infinity."""
STRIDE = 1e3
_LARGE = 1e-4
"""Share of the gradient at zero from which a gradient calls for a step."""

_INVERTED = 64
"""Unknowns up to which a triangular factor is inverted: calls count there, not numbers."""

_NO_PIVOT = 1e-7
"""Pivot that may be rounding: condition 1e14."""
_ROUNDED = 3e-9
"""Share of the largest singular value below which a direction may be what centring has rounded.

Columns with means of 1e7 standard deviations keep nine digits: what is smaller may be no part of
the data that were given, and coefficients of its inverse size would make the model worse on them.
"""

LEVEL = 1e-7
"""Share of a gradient left over by a Newton step that is more than rounding."""


def minimise_on_support(
    objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
) -> Point:
    """Return ``argmin f(x)`` over ``x`` that vanish outside ``support``.

    Parameters
    ----------
    objective
        Convex and twice differentiable.
    support
        Sorted indices; free coordinates included.
    start
        Any point; its values on ``support`` are where the search begins.
    tol
        Stop when the restricted gradient is ``tol`` times the size of its terms; None asks
        for the accuracy of the arithmetic.

    Returns
    -------
    Point
        Never worse than the start restricted to ``support``; of value NaN where products fail.

    Notes
    -----
    O(n q^2 + q^3) per Newton step for q unknowns up to ``DIRECT_LIMIT``, O(n q) per conjugate
    gradient step above. A singular Hessian gives the step of minimum norm. Columns that nearly
    depend on each other are factored by QR, where at most 2^24 numbers hold them.
    """
    goal = FULL_ACCURACY if tol is None else tol
    direct = 0 < support.size <= DIRECT_LIMIT
    quick = minimise_few(objective, support, start, goal) if direct else None
    if quick is not None:
        quick.memo.minimised = tol is None
        return quick
    point = start
    if not np.array_equal(start.support, support):
        point = objective.point(support, start.x[support])
    if not support.size:
        return point
    gradient = objective.restricted_gradient(point, support)
    scale = objective.steepness(support, _norm(gradient))
    solve: Callable[[FloatArray], FloatArray] | None = None
    endless, left = may_fall_forever(objective, support), budget()
    for _ in range(_MAX_NEWTON):
        size = _norm(gradient)
        if not size > goal * scale or (np.isfinite(point.value) and left.over()):
            break
        if solve is None or not objective.quadratic:
            solve = newton_solver(objective, point, support, tol=max(goal * scale / size, 1e-14))
        step = solve(-gradient)
        if endless:
            step += _level_direction(objective, point, support, gradient, step)
        elif size > _LARGE * scale and not objective.quadratic:
            step = _unless_blind(objective, point, gradient, step)
        following, t = _search(objective, point, gradient, step, support)
        if following is None:
            break
        after = objective.restricted_gradient(following, support)
        progress = _norm(after)
        if following.value >= point.value and progress >= 0.5 * size:
            # Rounding has taken over; keep whichever gradient is smaller.
            return following if progress < size and following.value <= point.value else point
        point, gradient = following, after
        if t < 1e-10 or (endless and _norm(point.x[support]) > FAR):
            break
    if np.isnan(_norm(gradient)) and np.isfinite(point.value):
        return replace(point, value=np.nan)  # products have failed: nothing was minimised
    return point


def farthest(objective: Objective) -> float:
    """Return the norm beyond which coefficients are as good as infinite: :data:`FAR`, or none.

    What is bounded below may have its minimiser there: targets may be that large, or columns that
    small.
    """
    return np.inf if np.isfinite(objective.infimum()) else FAR


def may_fall_forever(objective: Objective, support: IntArray) -> bool:
    """Return whether the objective has no known lower bound and ``support`` is a feasible one.

    Minimisers on a feasible support may then be infinitely far, which is said of them by going
    as far as :data:`FAR`. On larger supports (algorithms look at them on the way) directions
    without curvature are left out instead.
    """
    if np.isfinite(objective.infimum()):
        return False
    sparsity = objective.cardinality
    return support_units(sparsity, support).size <= sparsity.budget


def _level_direction(
    objective: Objective, point: Point, support: IntArray, gradient: FloatArray, step: FloatArray
) -> FloatArray:
    """Return a long step along the part of the gradient that no curvature answers to."""
    left = gradient + objective.hessian_product(point, support, step)
    size = _norm(left)
    if size <= LEVEL * _norm(gradient):
        return np.zeros_like(step)
    return -(STRIDE * (1.0 + _norm(point.x[support])) / size) * left


def _unless_blind(
    objective: Objective, point: Point, gradient: FloatArray, step: FloatArray
) -> FloatArray:
    """Return Newton's step, or one down the gradient where Newton's promises nothing.

    So it is where the losses are linear and a large gradient meets no curvature (a Huber loss far
    from its targets, say). The step would reach the infimum if nothing bent.
    """
    room = point.value - objective.infimum()
    if not np.isfinite(room) or -float(np.vdot(gradient, step)) > 1e-14 * room:
        return step
    return -(room / float(np.vdot(gradient, gradient))) * gradient


def _search(
    objective: Objective,
    point: Point,
    gradient: FloatArray,
    step: FloatArray,
    support: IntArray,
) -> tuple[Point | None, float]:
    """Backtrack from the full Newton step until the Armijo condition holds.

    None where it never does; a point of value NaN where products fail.
    """
    slope = float(np.vdot(gradient, step))
    if not np.isfinite(slope) or slope >= 0.0:
        return None, 0.0
    values = point.x[support]
    rounding = 1e-15 * abs(point.value)
    t = 1.0
    for place in range(60):
        following = objective.point(support, values + t * step)
        if following.value <= point.value + ARMIJO * t * slope + rounding:
            return following, t
        t *= 0.5
        if place == 0 and objective.together:
            lengths = np.asarray(0.5 ** np.arange(1, 60), dtype=np.float64)
            found = objective.values_along(support, values, step, lengths)
            most = point.value + ARMIJO * slope * lengths + rounding
            t = float(lengths[int(np.argmax(found <= most))])
    return (following if np.isnan(following.value) else None), 0.0


def newton_solver(
    objective: Objective, point: Point, support: IntArray, *, tol: float
) -> Callable[[FloatArray], FloatArray]:
    """Return a map ``b -> H^{-1} b`` for the Hessian on ``support`` at ``point``.

    By a factorisation up to ``DIRECT_LIMIT`` unknowns (``tol`` is not used then), else by
    conjugate gradients to a relative residual of ``tol``, at most 0.1. So too where a
    factorisation would not end in the time that is left; conjugate gradients stop with it.
    """
    unknowns = int(np.prod(point.x[support].shape))
    if objective.quadratic:
        last = objective.last_factor.get(support)
        if last is not None:
            return last
    if (
        unknowns > DIRECT_LIMIT
        or not objective.explicit_hessian(support)
        or not budget().allows(_hessian_cost(objective, unknowns), cholesky_cost(unknowns))
    ):
        return lambda b: _conjugate_gradients(objective, point, support, b, min(0.1, tol))
    objective.work.factorizations += 1
    solve = factored(
        objective.hessian(point, support), lambda: objective.hessian_root(point, support)
    )
    if objective.quadratic:
        objective.last_factor.keep(support, solve)
    return solve


def _hessian_cost(objective: Objective, unknowns: int) -> float:
    """Return the operations of a Hessian on so many unknowns, where they grow with the data."""
    form = objective.form
    if not isinstance(form, SparseRegression):
        return 0.0
    designs = [term.design for term in form.terms]
    rows = sum(design.shape[0] for design in designs)
    return gram_cost(rows, unknowns) + products_cost(designs, 2.0 * unknowns)


def _triangular(factor: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return ``b -> (L L^T)^{-1} b``; small factors are inverted, which SciPy need not be for."""
    if len(factor) <= _INVERTED:
        inverse = np.linalg.inv(factor)
        return lambda b: inverse.T @ (inverse @ b)
    from scipy.linalg import cho_solve

    keep_to_one()
    return lambda b: np.asarray(cho_solve((factor, True), b, check_finite=False))


def factored(
    hessian: FloatArray, root: Callable[[], FloatArray | None] = lambda: None
) -> Callable[[FloatArray], FloatArray]:
    """Return ``b -> H^+ b`` for a symmetric positive semidefinite matrix.

    Cholesky after scaling to a unit diagonal. Where a pivot is small, the singular values of the
    matrix ``R`` with ``R.T @ R = H`` that ``root`` makes, whose condition is not squared; without
    one, an eigendecomposition where Cholesky breaks down. Null spaces are dropped.
    """
    diagonal = np.sqrt(np.maximum(np.diag(hessian), 0.0))
    d = np.where(diagonal > 0.0, diagonal, 1.0)
    scaled = hessian / d[:, None]
    scaled /= d
    least, factor = 0.0, scaled
    if np.all(diagonal > 0.0):
        try:
            factor = np.asarray(np.linalg.cholesky(scaled), dtype=np.float64)
            least = float(np.diag(factor).min(initial=np.inf))
        except np.linalg.LinAlgError:
            pass
    close = not least > SMALL_PIVOT
    if close and not np.all(np.isfinite(scaled)):
        raise UnboundedError(
            "The Hessian has entries that are NaN or infinite. Products with the data may return "
            "NaN; else the curvature overflows: rescale the data matrix or the target, and add a "
            "ridge, sm.ridge(w, 1e-3), if there is none and the coefficients grow without bound."
        )
    rows = root() if close else None
    if rows is not None:
        basis, inverse = _from_root(rows / d)
    elif least > _NO_PIVOT:
        inner = _triangular(factor)
        return lambda b: (inner(b.ravel() / d) / d).reshape(b.shape)
    else:
        eigenvalues, vectors = np.linalg.eigh(scaled)
        keep = eigenvalues > 1e-13 * max(eigenvalues[-1], 1e-300) * len(d)
        basis, inverse = vectors[:, keep], 1.0 / eigenvalues[keep]
    return lambda b: ((basis @ (inverse * (basis.T @ (b.ravel() / d)))) / d).reshape(b.shape)


def _from_root(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvectors of ``R.T @ R`` that are not rounding, and their inverse eigenvalues.

    ``rows`` has shape ``(m, q)`` with ``m >= q``; ``O(m q^2)``. Singular values below
    :data:`_ROUNDED` of the largest count as rounding.
    """
    _, values, vectors = np.linalg.svd(np.linalg.qr(rows, mode="r"))
    keep = values > _ROUNDED * values[0]
    return vectors[keep].T, values[keep] ** -2.0


def conjugate_gradients(
    objective: Objective,
    point: Point,
    support: IntArray,
    b: FloatArray,
    *,
    tol: float,
    max_iter: int,
) -> FloatArray | None:
    """Solve ``H v = b`` on ``support`` to a relative residual of ``tol``.

    None where ``max_iter`` products with the Hessian do not suffice or it has a direction
    without curvature.
    """
    return _cg(objective, point, support, b, tol, max_iter)[1]


def _conjugate_gradients(
    objective: Objective, point: Point, support: IntArray, b: FloatArray, tol: float
) -> FloatArray:
    """Solve ``H v = b`` to a relative residual of ``tol``, as far as that goes."""
    return _cg(objective, point, support, b, tol, 10 * b.size + 50)[0]


def _cg(
    objective: Objective, point: Point, support: IntArray, b: FloatArray, tol: float, limit: int
) -> tuple[FloatArray, FloatArray | None]:
    """Return the last iterate of conjugate gradients, and again if it is accurate enough."""
    v = np.zeros_like(b)
    residual = b.copy()
    direction = residual.copy()
    square = float(np.vdot(residual, residual))
    target, left = (tol**2) * square, budget()
    for _ in range(limit):
        if square <= target or left.over():
            break
        product = objective.hessian_product(point, support, direction)
        curvature = float(np.vdot(direction, product))
        if curvature <= 0.0:
            break
        alpha = square / curvature
        v += alpha * direction
        residual -= alpha * product
        last, square = square, float(np.vdot(residual, residual))
        direction = residual + (square / last) * direction
    return v, v if square <= target else None


def _norm(v: FloatArray) -> float:
    return float(np.linalg.norm(v))
