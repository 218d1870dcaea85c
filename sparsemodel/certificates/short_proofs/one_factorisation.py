r"""A proof by one factorisation: curvature that is chosen so that no other support is better.

At a point with the slopes ``v`` the curvatures

.. math:: d_j = v_j^2 / (2 T) \text{ outside,} \qquad d_i = 2 (T - s) / x_i^2 \text{ inside}

let every unit outside gain ``T`` and those inside ``T - s``, when the quadratic less
:math:`\tfrac12 \sum d x^2` is bounded by its tangent. If it is convex, which one factorisation
tells, no support of ``k`` units is better than the point by more than ``k s``. What rounding did to
the matrix and the slopes is in a lower diagonal and a lower constant, see
:mod:`~sparsemodel.certificates.short_proofs.part`.
"""

from __future__ import annotations

import math

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U, gamma
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.short_proofs.part import balanced, semidefinite
from sparsemodel.interfaces import FloatArray, IntArray, SparseRegression

_FREE = 1e-4
"""Share of its curvature that a coordinate which is always in gives away: its slope vanishes."""


def bound_by_one_factorisation(
    form: SparseRegression, q: Quadratic, x: FloatArray, allowed: float
) -> float | None:
    """Return a lower bound on all supports that is near to the objective at ``x``.

    None where the factorisation fails, or the point has fewer units than it may. ``allowed`` is the
    gap that may be left, relative to the objective. O(p^3) beside the quadratic.
    """
    sparsity, on = form.sparsity, np.flatnonzero(x)
    counted = sparsity.counted[on]
    inside, values = on[counted], x[on]
    if inside.size != sparsity.budget:
        return None
    most, squares = sparsity.budget + sparsity.free.size, np.square(q.norms)
    norms = np.sqrt(squares + q.ridge) * (1.0 + 4.0 * U)
    diagonal = q.hessian.diagonal() + q.ridge
    diagonal -= 2.0 * q.unit * most * squares + 8.0 * U * (squares + q.ridge)
    moved = diagonal - q.hessian.diagonal()
    reach = float(norms[on] @ np.abs(values)) * (1.0 + gamma(on.size + 8)) + q.aim
    product = values @ q.hessian[on]
    product[on] += moved[on] * values
    sizes = product - q.linear
    base = float((0.5 * (sizes - q.linear)[on]) @ values)
    slopes = sizes[inside] @ x[inside]
    np.abs(sizes, out=sizes)
    sizes += gamma(on.size + 16) * 4.0 * reach * norms
    value = q.lowest_constant + base
    curvature = _chosen(sizes, x[inside], inside, diagonal, allowed * abs(value) / inside.size)
    if curvature is None:
        return None
    free = sparsity.free
    curvature[free] = _FREE * diagonal[free]
    proved = np.all(diagonal > 0.0) and semidefinite(q.hessian, moved - curvature, 4.0 * diagonal)
    if not proved:
        return None
    own, ends = curvature[inside], np.abs(x[inside])
    gains = np.square(sizes[inside] + own * ends) / (2.0 * own)
    outside = np.square(sizes) / (2.0 * curvature)
    lost = float(outside[free].sum())
    outside[on] = 0.0
    top = float(np.maximum(gains, outside.max(initial=0.0)).sum())
    bound = value - float(slopes) + 0.5 * float(own @ np.square(ends)) - top - lost
    rounding = 64.0 * gamma(on.size + 32) * (reach * reach + top + lost + abs(q.lowest_constant))
    return bound - rounding - q.unit * q.aim**2


def _chosen(
    sizes: FloatArray, values: FloatArray, inside: IntArray, diagonal: FloatArray, spare: float
) -> FloatArray | None:
    """Return the curvatures, with ``T`` where both parts have the same norm; None for none."""
    outside, least = np.square(sizes), 1.0 / np.square(values)
    outside[inside] = 0.0
    level = 0.5 * (balanced(outside / diagonal, least / diagonal[inside]) + spare)
    if not (math.isfinite(level) and level > spare):
        return None
    curvature = outside / (2.0 * level) + 1e-12 * diagonal
    curvature[inside] = 2.0 * (level - spare) * least
    return np.asarray(curvature)
