"""What it costs to drop a unit from a support."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, Objective, Point
from sparsemodel.numerics.curvatures.curvature import cheap_columns, full_diagonal
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges
from sparsemodel.numerics.minimisers.newton import DIRECT_LIMIT
from sparsemodel.numerics.support.selection import top_k
from sparsemodel.numerics.support.units import insertion_scores, support_units

_LOOKED = 96
"""Coordinates outside a support whose gains are computed: those of the largest gradients."""
_NOTHING = 1e-12
"""Share of a curvature that is rounding."""
_CLEAR = ((0.4, 0.75), (0.8, 2.5), (0.9, 5.0))
"""See :func:`clear_from`. Perturbations, twice as many as usual, were better than 441 of 3159 ends
of exchanges (Gaussian, autoregressive, factor and binary columns, bumps, cosines; squared,
logistic and Poisson losses), and than none of the 1468 of them that stand out so without the first
pair; of 1824 others with squared losses than 450, and than none of the 80 that it adds."""


_GROUPS_CLEAR = ((0.4, 0.15), (0.5, 0.3), (0.6, 0.75), (0.8, 1.0), (0.9, 2.0))
"""See :func:`groups_clear_up_to`. Of 558 ends of exchanges of groups (2 to 5 Gaussian columns each,
independent, autoregressive, blocks, factors; squared and logistic losses) the usual perturbations
improved 94, and none of the 165 that stand out so."""


def groups_clear_up_to(contrast: float) -> float:
    """Return up to which correlation with groups outside others stand out; 0 if they never do.

    Between combinations of the members of two groups, the largest; where the cheapest exchange
    costs ``contrast`` times the most that a group outside gains.
    """
    return max((likest for likest, times in _GROUPS_CLEAR if contrast > times), default=0.0)


def groups_alike(across: FloatArray, blocks: FloatArray, units: IntArray, least: float) -> bool:
    """Return whether combinations of columns of ``units`` and of others are correlated by more.

    ``across[a, b]`` is the product of the columns of ``units[a]`` and of group ``b``, ``blocks[b]``
    that of group ``b`` with itself.
    """
    values, roots = np.linalg.eigh(blocks)
    roots = roots / np.sqrt(np.where(values > _NOTHING, values, np.inf))[:, None]
    across = np.swapaxes(roots[units], 1, 2)[:, None] @ across @ roots
    across = np.delete(across, units, axis=1)
    likely = across[np.square(across).sum(axis=(2, 3)) > least**2]  # else alike by less
    return bool(np.any(np.linalg.norm(likely, ord=2, axis=(1, 2)) > least))


def clear_from(correlation: float) -> float:
    """Return how many times what another gains a chosen unit is worth where a support stands out.

    By how much its members are correlated with those outside at most; infinite where they could
    stand in each other's place. A wrong member resembles the right one, or a few of them do each
    other.
    """
    return next((times for most, times in _CLEAR if correlation <= most), np.inf)


def with_cheapest_replaced(now: Exchanges, many: int, price: float, refresh: int) -> Exchanges:
    """Return a copy of the only support without its cheapest members, refilled by what gains most.

    ``many`` leave one by one, and as many enter that gain more than ``price``. After ``refresh``
    changes everything is computed again, and at the end.
    """
    trial = now.tiled(1)
    for step in range(2 * many):
        if step < many:
            trial.remove(int(np.argmin(trial.removals()[0])))
        else:
            gains = trial.insertions()[0]
            into = int(np.argmax(gains))
            if not gains[into] > price:
                break
            if not trial.fetch(np.array([into])):
                trial.insert(into)
        if trial.updates >= refresh:
            trial.reset(trial.members[0])
    trial.reset(trial.members[0])
    return trial


def of_size_beside(now: Exchanges, many: int) -> Exchanges:
    """Return a copy of the only support with the best other, or without the cheapest member."""
    trial = now.tiled(1)
    if many < 0:
        trial.remove(int(np.argmin(trial.removals()[0])))
        return trial
    into = int(np.argmax(trial.insertions()[0]))
    trial.fetch(np.array([into]))
    trial.insert(into)
    return trial


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
