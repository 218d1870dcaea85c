"""What it costs to drop a unit from a support."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, Objective, Point
from sparsemodel.numerics.curvatures.curvature import cheap_columns, full_diagonal
from sparsemodel.numerics.minimisers.newton import DIRECT_LIMIT
from sparsemodel.numerics.support.selection import top_k
from sparsemodel.numerics.support.units import insertion_scores, support_units

_LOOKED = 96
"""Coordinates outside a support whose gains are computed: those of the largest gradients."""
_NOTHING = 1e-12
"""Share of a curvature that is rounding."""


def removal_costs(objective: Objective, point: Point) -> FloatArray | None:
    r"""Return by how much dropping each unit of the support raises the objective.

    :math:`\tfrac12 x_u^\top ((H_{SS}^{-1})_{uu})^{-1} x_u`, the others being minimised again:
    exact for a quadratic at the minimiser over its support, a quadratic model elsewhere. In the
    order of :func:`support_units`. None without a Hessian, or with more unknowns than are
    factored. ``O(n q^2 + q^3)`` for ``q`` unknowns on the support.
    """
    if not objective.twice_differentiable:
        return None
    sparsity = objective.cardinality
    units = support_units(sparsity, point.support)
    shape = point.x[point.support].shape
    size = int(np.prod(shape))
    if size > DIRECT_LIMIT:
        return None
    costs = np.empty(units.size)
    if not size:
        return costs
    hessian = objective.hessian(point, point.support)
    if not np.all(np.isfinite(hessian)):
        return None
    root = np.sqrt(np.maximum(np.diag(hessian), 0.0))
    scale = np.where(root > 0.0, root, 1.0)
    inverse = np.linalg.pinv(hessian / scale[:, None] / scale, hermitian=True)
    inverse = inverse / scale[:, None] / scale
    if sparsity.groups is None and point.x.ndim == 1:
        counted = sparsity.counted[point.support]
        squares, curved = np.square(point.x[point.support][counted]), np.diag(inverse)[counted]
        return 0.5 * np.divide(squares, curved, out=np.zeros_like(squares), where=curved > 0.0)
    flat = np.arange(size).reshape(shape)
    for position, unit in enumerate(units):
        coordinates = np.setdiff1d(sparsity.coordinates(np.array([unit])), sparsity.free)
        rows = flat[np.searchsorted(point.support, coordinates)].ravel()
        x = point.x[coordinates].ravel()
        costs[position] = 0.5 * float(x @ np.linalg.pinv(inverse[np.ix_(rows, rows)]) @ x)
    return costs


def separation(objective: Objective, point: Point) -> float:
    """Return the least that a unit of the support is worth over the most another would gain.

    A wrong unit is worth about what the right one outside would gain, so a large value tells
    that, between columns of little correlation, exchanges have nothing to find. 0 where the
    objective has no Hessian or columns cannot be read; infinite when nothing outside gains.
    """
    costs = removal_costs(objective, point)
    if costs is None or not costs.size:
        return 0.0
    if objective.cardinality.groups is None and point.x.ndim == 1:
        gains = _best_insertions(objective, point)
    else:
        diagonal = full_diagonal(objective, point)
        gains = None if diagonal is None else insertion_scores(objective, point, diagonal)
    if gains is None:
        return 0.0
    gain = float(gains.max(initial=0.0))
    return float(costs.min()) / gain if gain > 0.0 else np.inf


def _best_insertions(objective: Objective, point: Point) -> FloatArray | None:
    """Return what the coordinates outside with the largest gradients would gain.

    Columns are about of one size, or scaled: theirs alone are read.
    """
    if not cheap_columns(objective):
        return None
    slopes = insertion_scores(objective, point)
    best = top_k(slopes, _LOOKED)
    outside = np.flatnonzero(objective.cardinality.counted)[best]
    left = _curvature_left(objective, point, outside)
    return np.divide(slopes[best], left, out=np.zeros_like(left), where=left > 0.0)


def _curvature_left(objective: Objective, point: Point, outside: IntArray) -> FloatArray:
    """Return how much of the curvature of some coordinates the support leaves of them."""
    together = np.union1d(point.support, outside)
    hessian = objective.hessian(point, together)
    size = np.sqrt(np.maximum(np.diag(hessian), np.finfo(float).tiny))
    alike = hessian / size[:, None] / size
    inside, rest = np.searchsorted(together, point.support), np.searchsorted(together, outside)
    across = alike[np.ix_(rest, inside)]
    own = np.linalg.pinv(alike[np.ix_(inside, inside)], hermitian=True)
    share = np.maximum(1.0 - np.einsum("ji,ik,jk->j", across, own, across), _NOTHING)
    return np.asarray(np.diag(hessian)[rest] * share)
