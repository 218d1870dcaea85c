"""Steps of a local search: the next improving exchange, insertions to try, removals in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import final

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Objective,
    Point,
    RestrictedSolver,
    coordinate_scores,
)
from sparsemodel.numerics.curvatures.curvature import cheap_columns
from sparsemodel.numerics.exchange.quadratic_swaps import QuadraticSwaps, Swap
from sparsemodel.numerics.minimisers.few_columns import INDEPENDENT
from sparsemodel.numerics.minimisers.newton import DIRECT_LIMIT, factored
from sparsemodel.numerics.objectives.validity import observations
from sparsemodel.numerics.support.selection import top_k
from sparsemodel.numerics.support.units import insertion_scores

_SCREENED = 4
"""Insertions that are priced by a model for each that is re-solved."""
_DOUBTED = 5.0
"""How many times farther from what a model promised the next insertion may gain than the last."""
_KEPT, _NUMBERS, _AS_EXACT = 64, 2**22, 2.0
"""Minimisers that are kept, numbers of all of them (32 MB), and times the tolerance asked for up to
which one is as good."""
_ROUGH = 1e-6
"""Accuracy of the restricted minimisations that only compare supports."""


def first_improvement(
    engine: QuadraticSwaps, threshold: float, over: Callable[[], bool] | None = None
) -> Swap | None:
    """Return an improving swap, or None when no single swap lowers the objective enough.

    Removals are looked at cheapest first: one, then blocks that grow from 16 (a product with 16
    vectors costs about as much as two with one); the best swap of the first block that has an
    improving one is taken. ``over()`` ends the search.
    """
    positions, costs, inverse = engine.removals()
    width, start = 1, 0
    while start < positions.size:
        if over is not None and over():
            return None
        block = positions[start : start + width]
        swap = engine.best_swap(block, costs, inverse)
        if swap is not None and swap.decrease > threshold:
            return swap
        start += width
        width = min(max(16, 2 * width), engine.block_width)
    return None


def insertions(
    objective: Objective,
    base: Point,
    units: IntArray,
    restricted: RestrictedSolver,
    diagonal: FloatArray | None,
    candidates: int,
    *,
    excluded: int | None = None,
    tol: float = _ROUGH,
) -> Iterator[Point]:
    """Yield the ``candidates`` best scored additions to ``units``, minimised from ``base``.

    To an accuracy of ``tol``. ``base`` is a minimiser over ``units``; ``excluded`` is a unit that
    is not to be tried. Nor are those that a model promises less of than others have gained, by more
    than it was wrong about these; all are where there are no more than ``candidates``.
    """
    sparsity = objective.cardinality
    scores = insertion_scores(objective, base, diagonal, for_ranking=True)
    if excluded is not None:
        scores[excluded] = 0.0
    best = top_k(scores, _SCREENED * candidates)
    best = best[scores[best] > 0.0]
    modelled = _modelled(objective, base, best, scores, diagonal)
    gains = scores[best] if modelled is None else modelled
    most, doubt = -np.inf, 0.0 if modelled is not None and candidates < sparsity.units else np.inf
    for place in np.argsort(-gains, kind="stable")[:candidates]:
        promised = float(gains[place])
        if promised + doubt <= most:
            break
        found = restricted(
            objective, sparsity.coordinates(np.append(units, best[place])), base, tol=tol
        )
        gained = base.value - found.value
        most, doubt = max(most, gained), max(doubt, _DOUBTED * abs(gained - promised))
        yield found


def _modelled(
    objective: Objective,
    base: Point,
    units: IntArray,
    scores: FloatArray,
    diagonal: FloatArray | None,
) -> FloatArray | None:
    r"""Return what adding each of ``units`` gains in the second-order model at ``base``.

    :math:`g_i^2 / (2 d_i)` with :math:`d_i` the square norm of what the support leaves of column
    ``i`` under the Hessian there. None where there is no such model: with groups, without columns,
    or with more unknowns than are factored.
    """
    support = base.support
    known = scores[units]
    if (
        units.size < 2
        or not support.size
        or support.size > DIRECT_LIMIT
        or objective.cardinality.groups is not None
        or len(objective.shape) > 1
        or not cheap_columns(objective)
    ):
        return None
    together = np.union1d(support, units)
    hessian = objective.hessian(base, together)
    inside, outside = np.searchsorted(together, support), np.searchsorted(together, units)
    if not np.all(np.isfinite(hessian)):
        return None
    cross = hessian[np.ix_(inside, outside)]
    projected = factored(hessian[np.ix_(inside, inside)])
    own = np.diag(hessian)[outside]
    left = own - np.array([column @ projected(column) for column in cross.T])
    squares = known if diagonal is None else known * diagonal[units]
    gains = np.zeros_like(known)
    np.divide(squares, left, out=gains, where=left > INDEPENDENT * own)
    return gains


def removal_order(
    objective: Objective, point: Point, units: IntArray, diagonal: FloatArray | None
) -> IntArray:
    r"""Return ``units`` sorted by :math:`\sum_{i \in u} h_i x_i^2`, a scale-free size."""
    scores = coordinate_scores(point.x)
    if diagonal is not None:
        scores = scores * diagonal
    return units[np.argsort(objective.cardinality.unit_scores(scores)[units], kind="stable")]


@final
class CachedSolver:
    """A restricted solver of one objective that keeps its last answers: supports come back.

    Not for constraints, under which an answer depends on the start.
    """

    def __init__(self, objective: Objective, restricted: RestrictedSolver) -> None:
        self._restricted = restricted
        self._kept: dict[bytes, tuple[float, Point]] = {}
        numbers = objective.shape[0] + observations(objective)
        self._most = min(_KEPT, _NUMBERS // max(numbers * math.prod(objective.shape[1:]), 1))

    def __call__(
        self, objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
    ) -> Point:
        """Return the minimiser over ``support``, the last one if that is as exact as asked for."""
        key, goal = support.tobytes(), 0.0 if tol is None else tol
        known = self._kept.pop(key, None)
        if known is None or known[0] > _AS_EXACT * goal:
            known = goal, self._restricted(objective, support, start, tol=tol)
        if np.isfinite(known[1].value):
            self._kept[key] = known
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return known[1]
