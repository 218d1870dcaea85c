"""Where else a search by exchanges begins: supports that do not come from the first one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemodel.interfaces import IntArray, Objective, Point, RestrictedSolver, coordinate_scores
from sparsemodel.numerics.curvatures.curvature import full_diagonal
from sparsemodel.numerics.exchange.greedy import GreedySupport
from sparsemodel.numerics.support.hard_threshold import top_k

_MERGERS = 100
"""Steps of GraSP at most; it may cycle."""
_MANY = 300
"""Units that a start from all of them has, where there are more."""


def merged(
    objective: Objective,
    restricted: RestrictedSolver,
    debiased: Callable[[Point], Point],
    better: Callable[[Point, Point], bool],
    over: Callable[[], bool],
) -> Point:
    """Return the best point of GraSP, from nothing."""
    support = GreedySupport(objective, restricted)
    best = point = support.start(None)
    seen: set[bytes] = set()
    while len(seen) < _MERGERS and not over():
        if (found := point.support.tobytes()) in seen:
            break
        seen.add(found)
        point = debiased(support.merged(point))
        if better(point, best):
            best = point
    return best


def thinned(
    objective: Objective,
    point: Point,
    minimised: Callable[[IntArray, Point], Point],
    allowed: Callable[[IntArray, IntArray], IntArray],
    over: Callable[[], bool],
) -> Point:
    """Return the minimiser on all units less the smallest of them, of which half leave at a time.

    Of many units those begin whose gradients differ most from the others'.

    Parameters
    ----------
    minimised
        Minimises on some units, from a point.
    allowed
        Adds to the first units those of the others, in order, that may stand beside them.
    """
    sparsity = objective.cardinality
    most = min(sparsity.budget, sparsity.units)
    pulls = objective.gradient(point)
    apart = sparsity.unit_scores(coordinate_scores(pulls - np.median(pulls, axis=0)))
    units, found = top_k(apart, max(_MANY, 4 * most)), point
    while not over():
        found = minimised(units, found)
        if units.size <= most or not np.isfinite(found.value):
            break
        weights = full_diagonal(objective, found, for_ranking=True)
        scores = coordinate_scores(found.x)
        sizes = sparsity.unit_scores(scores if weights is None else weights * scores)
        best = top_k(sizes, max(most, int(np.count_nonzero(sizes)) // 2))
        best = best[np.argsort(-sizes[best], kind="stable")]
        units = best if best.size > most else allowed(best[:0], best)
    return found
