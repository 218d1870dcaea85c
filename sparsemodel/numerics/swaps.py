"""Local search by swaps: a polish for the result of any backend."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Objective,
    Point,
    RestrictedSolver,
    coordinate_scores,
    priced,
)
from sparsemodel.numerics.curvature import cheap_columns, full_diagonal
from sparsemodel.numerics.hard_threshold import top_k
from sparsemodel.numerics.quadratic_swaps import QuadraticSwaps, Swap
from sparsemodel.numerics.restricted import DIRECT_LIMIT, factored
from sparsemodel.numerics.units import insertion_scores, support_units

_NEGLIGIBLE = 1e-11
"""A decrease below this fraction of the objective's range is rounding."""
_SCREENED = 4
"""Insertions that are priced by a model for each that is re-solved."""
_INDEPENDENT = 1e-9
"""Fraction of its square norm that a column must keep to be worth adding."""
_ROUGH = 1e-6
"""Accuracy of the restricted minimisations that only compare supports."""


def polish_by_swaps(
    objective: Objective,
    point: Point,
    *,
    restricted: RestrictedSolver,
    max_swaps: int | None = None,
    deadline: float | None = None,
    candidates: int = 3,
) -> Point:
    r"""Exchange one unit of the support for one outside while that lowers the objective.

    Where the cardinality leaves room, units are added first; where it has a price, units that
    are not worth it leave. For a quadratic objective of stored
    columns the result is optimal under all single swaps (up to rounding), unless a limit ended
    the search. For other objectives, and for groups, bounds and matrix-free designs, a swap is
    tried with each unit of the support and the ``candidates`` best scored ones outside.

    Parameters
    ----------
    objective
        Any objective; with a Hessian the scores are Newton decreases, else squared gradients.
    point
        Feasible. It need not be the minimiser over its support.
    restricted
        Minimises on a support (``Context.restricted``).
    max_swaps
        Exchanges and additions at most; None for no limit.
    deadline
        Ends the search, in the clock of :func:`time.perf_counter`.
    candidates
        Insertions that are re-solved for each removal, when there is no closed form.

    Returns
    -------
    Point
        Minimised over its support, never worse than ``point``.

    Notes
    -----
    Quadratic case, ``k`` units: half a pass over the data per removal that is looked at (in
    blocks, at the speed of a matrix product), half a pass per swap carried out, ``k / 2`` passes
    at the start in one product of matrices. A search that ends at a local optimum looks at all
    ``k`` removals once more. Other cases: per removal one restricted minimisation and half a
    pass, and ``candidates`` restricted minimisations.
    """
    search = _Limits(max_swaps, deadline)
    best = _better(objective, restricted(objective, point.support, point), point)
    threshold = _NEGLIGIBLE * max(abs(best.value), abs(objective.origin().value - best.value))
    engine = QuadraticSwaps.start(objective, best)
    if engine is None:
        return _general(objective, best, restricted, search, threshold, candidates)
    return _quadratic(objective, best, restricted, search, threshold, engine)


class _Limits:
    def __init__(self, max_swaps: int | None, deadline: float | None) -> None:
        self._left = max_swaps
        self._deadline = deadline

    def spend(self) -> None:
        if self._left is not None:
            self._left -= 1

    def over(self) -> bool:
        if self._left is not None and self._left <= 0:
            return True
        return self._deadline is not None and time.perf_counter() >= self._deadline


# ---- quadratic objectives --------------------------------------------------------------------


def _quadratic(
    objective: Objective,
    point: Point,
    restricted: RestrictedSolver,
    search: _Limits,
    threshold: float,
    engine: QuadraticSwaps,
) -> Point:
    best, intact = point, True
    while intact and not search.over():
        if engine.worn:
            following = restricted(objective, engine.support, engine.point())
            if following.value > best.value - threshold:
                break
            best, intact = following, engine.reset(following)
            continue
        addition = _addition(objective, engine, threshold)
        price = objective.cardinality.price
        worthless = engine.worthless(price - threshold) if price else None
        if addition is not None:
            intact = engine.insert(addition)
        elif worthless is not None:
            engine.remove(worthless)
        else:
            swap = first_improvement(engine, threshold, search.over)
            if swap is None:
                break
            intact = engine.exchange(swap)
        search.spend()
    return _better(objective, restricted(objective, engine.support, engine.point()), best)


def _addition(objective: Objective, engine: QuadraticSwaps, threshold: float) -> int | None:
    sparsity = objective.cardinality
    if support_units(sparsity, engine.support).size >= sparsity.budget:
        return None
    found = engine.best_insertion()
    if found is None or found[1] <= max(threshold, sparsity.price):
        return None
    return found[0]


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


# ---- everything else -------------------------------------------------------------------------


def _general(
    objective: Objective,
    point: Point,
    restricted: RestrictedSolver,
    search: _Limits,
    threshold: float,
    candidates: int,
) -> Point:
    while not search.over():
        diagonal = full_diagonal(objective, point) if objective.twice_differentiable else None
        following = None
        for trial in _neighbours(objective, point, restricted, diagonal, candidates):
            if priced(objective, trial) < priced(objective, point) - threshold:
                full = restricted(objective, trial.support, trial)
                if priced(objective, full) < priced(objective, point) - threshold:
                    following = full
                    break
            if search.over():
                return point
        if following is None:
            break
        point = following
        search.spend()
    return point


def _neighbours(
    objective: Objective,
    point: Point,
    restricted: RestrictedSolver,
    diagonal: FloatArray | None,
    candidates: int,
) -> Iterator[Point]:
    """Yield roughly minimised points one exchange (or one addition) away, most promising first."""
    sparsity = objective.cardinality
    units = support_units(sparsity, point.support)
    if units.size < sparsity.budget:
        yield from insertions(objective, point, units, restricted, diagonal, candidates)
        if units.size == sparsity.units:
            return
    for unit in removal_order(objective, point, units, diagonal):
        kept = units[units != unit]
        without = restricted(objective, sparsity.coordinates(kept), point, tol=_ROUGH)
        if sparsity.price > 0.0:
            yield without
        yield from insertions(
            objective, without, kept, restricted, diagonal, candidates, excluded=unit
        )


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
    is not to be tried.
    """
    sparsity = objective.cardinality
    scores = insertion_scores(objective, base, diagonal, for_ranking=True)
    if excluded is not None:
        scores[excluded] = 0.0
    best = top_k(scores, _SCREENED * candidates)
    best = best[scores[best] > 0.0]
    gains = _modelled(objective, base, best, scores, diagonal)
    for unit in best[np.argsort(-gains, kind="stable")[:candidates]]:
        support = sparsity.coordinates(np.append(units, unit))
        yield restricted(objective, support, base, tol=tol)


def _modelled(
    objective: Objective,
    base: Point,
    units: IntArray,
    scores: FloatArray,
    diagonal: FloatArray | None,
) -> FloatArray:
    r"""Return what adding each of ``units`` gains in the second-order model at ``base``.

    :math:`g_i^2 / (2 d_i)` with :math:`d_i` the square norm of what the support leaves of column
    ``i`` under the Hessian there. The ``scores`` themselves where there is no such model: with
    groups, without columns, or with more unknowns than are factored.
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
        return known
    together = np.union1d(support, units)
    hessian = objective.hessian(base, together)
    inside, outside = np.searchsorted(together, support), np.searchsorted(together, units)
    if not np.all(np.isfinite(hessian)):
        return known
    cross = hessian[np.ix_(inside, outside)]
    projected = factored(hessian[np.ix_(inside, inside)])
    own = np.diag(hessian)[outside]
    left = own - np.array([column @ projected(column) for column in cross.T])
    squares = known if diagonal is None else known * diagonal[units]
    gains = np.zeros_like(known)
    np.divide(squares, left, out=gains, where=left > _INDEPENDENT * own)
    return gains


def removal_order(
    objective: Objective, point: Point, units: IntArray, diagonal: FloatArray | None
) -> IntArray:
    r"""Return ``units`` sorted by :math:`\sum_{i \in u} h_i x_i^2`, a scale-free size."""
    scores = coordinate_scores(point.x)
    if diagonal is not None:
        scores = scores * diagonal
    return units[np.argsort(objective.cardinality.unit_scores(scores)[units], kind="stable")]


def _better(objective: Objective, new: Point, old: Point) -> Point:
    return new if priced(objective, new) <= priced(objective, old) else old


__all__ = ["first_improvement", "insertions", "polish_by_swaps", "removal_order"]
