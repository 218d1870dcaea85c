"""What the greedy methods share: a minimiser over a support that changes, and starts from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
from sparsemodel.numerics.curvatures.curvature import full_diagonal
from sparsemodel.numerics.exchange.models import ExchangeModels
from sparsemodel.numerics.exchange.removal import removal_costs
from sparsemodel.numerics.exchange.support_factor import SupportFactor, has_common_hessian
from sparsemodel.numerics.objectives.validity import unexplained
from sparsemodel.numerics.support.selection import top_k
from sparsemodel.numerics.support.thresholding import thresholded
from sparsemodel.numerics.support.units import gradient_scores, insertion_scores, support_units

_WARM = 1e-8
"""Relative accuracy of the minimisations on the way; the last one is done in full."""
_MERGED = 1e-6
"""The same of those over a support that is larger than allowed."""

_MERGERS = 100
"""Steps of GraSP at most; it may cycle."""
_STEPS = 2000
"""Steps of IIHT to a support, at most."""
_REMOVED, _REPLACEMENTS = 16, 6
"""Smallest units that are taken out, and units that are tried in place of each, at most."""

_REDRAWN = 2.0 / 3.0
"""Share of a support that a perturbation replaces at most. Of 160 random problems with bounds, or
with groups and a logistic loss, one ended too high, five with a half, in 1.04 times the time
(median); of 60 with signs and a factor model on 30 rows 12 lower, two higher."""
_PROMISING, _GROUPS = 50, 20
"""Units, or groups, that one draws from: of 60 problems with 50 groups 5 end too high, 12 with all
groups."""

LAYERS = 30
"""A thirtieth of the room is filled at a time, so that blocks become single units at the end."""


@final
class GreedySupport:
    """Minimise over supports that gain and lose units, from one minimiser to the next.

    For quadratic objectives the Cholesky factor of the Hessian on the support is updated:
    ``O(n k + k^2)`` a change. Each change ends with a Newton step from the true gradient, so
    that errors do not build up. Other objectives, and bounds, go to the restricted solver,
    warm-started.

    Parameters
    ----------
    objective, restricted
        Of the run; ``restricted`` is ``Context.restricted``.
    scaled
        Measure gradients and coefficients as if all columns had unit norm, as the papers assume
        (``diagonal`` is then the diagonal of the Hessian at zero). Designs that only have
        products are taken as they are.
    """

    def __init__(
        self, objective: Objective, restricted: RestrictedSolver, *, scaled: bool = True
    ) -> None:
        self._objective = objective
        self._restricted = restricted
        origin = objective.origin()
        self.diagonal: FloatArray | None = (
            full_diagonal(objective, origin) if scaled and objective.twice_differentiable else None
        )
        quick = has_common_hessian(objective) and not objective.form.constrained
        self._factor = SupportFactor(objective, origin) if quick else None

    # ---- where to go -------------------------------------------------------------------------

    def gradient_scores(self, point: Point) -> FloatArray:
        """Return the scores of all units; see :func:`gradient_scores`."""
        return gradient_scores(self._objective, point, self.diagonal)

    def insertion_scores(self, point: Point) -> FloatArray:
        """Return the scores of all units, 0 for those inside; see :func:`insertion_scores`."""
        return insertion_scores(self._objective, point, self.diagonal)

    def sizes(self, point: Point) -> FloatArray:
        """Return the squared (scaled) size of ``x`` in each unit."""
        squares = coordinate_scores(point.x)
        if self.diagonal is not None:
            squares = squares * self.diagonal
        return self._objective.cardinality.unit_scores(squares)

    def removal_costs(self, point: Point) -> tuple[IntArray, FloatArray]:
        """Return the units of the support and what removing each would raise the objective by.

        ``x_u^T ((H^{-1})_uu)^{-1} x_u / 2``: exact for a quadratic at its minimiser, a quadratic
        model elsewhere. Where the Hessian cannot be factored, half the :meth:`sizes`.
        """
        sparsity = self._objective.cardinality
        units = support_units(sparsity, point.support)
        if self._factor is not None and sparsity.groups is None and self._follow(point):
            inverse = np.zeros(sparsity.size)
            inverse[point.support] = self._factor.inverse_diagonal()
            costs = np.zeros(sparsity.size)
            np.divide(0.5 * coordinate_scores(point.x), inverse, out=costs, where=inverse > 0.0)
            return units, sparsity.unit_scores(costs)[units]
        modelled = removal_costs(self._objective, point)
        return units, 0.5 * self.sizes(point)[units] if modelled is None else modelled

    # ---- going there -------------------------------------------------------------------------

    def start(self, x: FloatArray | None) -> Point:
        """Return the minimiser over the support of ``x`` (of the free coordinates when None)."""
        point = self._objective.origin() if x is None else self._objective.point_from(x)
        return self._restricted(self._objective, point.support, point)

    def with_unit(self, point: Point, unit: int) -> Point:
        """Return the minimiser with ``unit`` added, from ``point``, a minimiser without it."""
        sparsity = self._objective.cardinality
        units = np.append(support_units(sparsity, point.support), np.intp(unit))
        support = sparsity.coordinates(units)
        if self._follow(point) and self._extend(np.setdiff1d(support, point.support)):
            return self._newton(point, support)
        return self._restricted(self._objective, support, point, tol=_WARM)

    def without_unit(self, point: Point, unit: int) -> Point:
        """Return the minimiser with ``unit`` removed, from ``point``, a minimiser with it."""
        sparsity = self._objective.cardinality
        units = support_units(sparsity, point.support)
        support = sparsity.coordinates(units[units != unit])
        if self._follow(point) and self._factor is not None:
            for coordinate in np.setdiff1d(point.support, support):
                self._factor.remove(int(coordinate))
            without = self._objective.point(support, point.x[support])
            return self._newton(without, support)
        return self._restricted(self._objective, support, point, tol=_WARM)

    def exchange(self, point: Point, out: int, into: int) -> Point:
        """Return the minimiser with unit ``out`` replaced by ``into``, from a minimiser."""
        sparsity = self._objective.cardinality
        units = support_units(sparsity, point.support)
        support = sparsity.coordinates(np.append(units[units != out], np.intp(into)))
        if self._follow(point) and self._factor is not None:
            for coordinate in np.setdiff1d(point.support, support):
                self._factor.remove(int(coordinate))
            if self._extend(np.setdiff1d(support, point.support)):
                return self._newton(self._objective.point(support, point.x[support]), support)
        return self._restricted(self._objective, support, point, tol=_WARM)

    def merged(self, point: Point, tol: float | None = _MERGED) -> Point:
        """Return the ``k`` largest units of a minimiser over ``point`` and ``2k`` large gradients.

        The step of GraSP, before its result is minimised again. ``tol`` is how exact that
        minimiser is: enough to rank its units, or None for full accuracy.
        """
        objective, sparsity = self._objective, self._objective.cardinality
        k = min(sparsity.budget, sparsity.units)
        found = top_k(self.gradient_scores(point), min(2 * k, sparsity.units))
        units = np.union1d(support_units(sparsity, point.support), found)
        middle = self._restricted(objective, sparsity.coordinates(units), point, tol=tol)
        kept = sparsity.coordinates(top_k(self.sizes(middle), k))
        return objective.point(kept, middle.x[kept])

    def debiased(self, point: Point) -> Point:
        """Return ``point`` minimised over its support to full accuracy."""
        following = self._restricted(self._objective, point.support, point)
        return point if following.value > point.value else following  # NaN is passed on

    # ---- the factor --------------------------------------------------------------------------

    def _follow(self, point: Point) -> bool:
        """Bring the factor to the support of ``point``; False when there is none."""
        if self._factor is None:
            return False
        if np.array_equal(self._factor.support, point.support):
            return True
        return self._factor.reset(point.support)

    def _extend(self, coordinates: IntArray) -> bool:
        """Add coordinates to the factor; False, and all undone, when one is dependent."""
        if self._factor is None:
            return False
        added: list[int] = []
        for coordinate in coordinates:
            if self._factor.add(int(coordinate)) is None:
                for known in reversed(added):
                    self._factor.remove(known)
                return False
            added.append(int(coordinate))
        return True

    def _newton(self, point: Point, support: IntArray) -> Point:
        if self._factor is None or not support.size:
            return self._objective.point(support, point.x[support])
        gradient = self._objective.restricted_gradient(point, support)
        return self._objective.point(support, point.x[support] - self._factor.solve(gradient))


def fresh(
    objective: Objective,
    most: int,
    separated: bool,
    restricted: RestrictedSolver,
    minimised_on: Callable[[IntArray, Point], Point],
    debiased: Callable[[Point], Point],
    better: Callable[[Point, Point], bool],
    over: Callable[[], bool],
    too_long: Callable[[], bool],
) -> list[Point]:
    """Return points found otherwise than by exchanges, the best first, as time may be short.

    That of GraSP; and if classes are nearly ``separated``, where curvatures say little of other
    supports, a grown support and that of IIHT.
    """
    ways: list[Callable[[], Point]]
    ways = [partial(merged, objective, restricted, debiased, better, over)]
    if separated:
        ways.insert(0, partial(grown, objective, restricted, most, minimised_on, better, over))
        ways.append(lambda: debiased(thresholded(objective, _STEPS, over)))
    starts = [start() for start in ways if not too_long()]
    return sorted(starts, key=lambda start: float(np.nan_to_num(start.value, nan=np.inf)))


def grown(
    objective: Objective,
    restricted: RestrictedSolver,
    most: int,
    minimised_on: Callable[[IntArray, Point], Point],
    better: Callable[[Point, Point], bool],
    over: Callable[[], bool],
) -> Point:
    """Return a support of ``most`` grown from nothing, from one minimiser to the next.

    Prices rest on curvatures that change along the way: where classes become separable, the
    model that a support is filled by promises too much of rare columns.
    """
    origin, counted = objective.origin(), objective.cardinality.counted
    point = restricted(objective, origin.support, origin)
    measured, diagonal = np.inf, None
    while not over():
        inside = point.support[counted[point.support]]
        if (room := most - inside.size) <= 0:
            break
        left = unexplained(objective, point)
        if left < 0.5 * measured:  # curvatures change with the value
            diagonal = full_diagonal(objective, point, for_ranking=True)
            measured = left
        scores = insertion_scores(objective, point, diagonal, for_ranking=True)
        best = top_k(scores, max(1, room // LAYERS))
        best = np.flatnonzero(counted)[best[scores[best] > 0.0]]
        more = minimised_on(np.union1d(inside, best), point)
        if not better(more, point):
            break
        point = more
    return point


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


def replaced_one_by_one(
    objective: Objective,
    point: Point,
    minimised: Callable[[IntArray, Point], Point],
    better: Callable[[Point, Point], bool],
    over: Callable[[], bool],
) -> Point:
    """Return a point that no replacement of a unit improves, of those that promise most without it.

    At the minimiser without the unit more of the objective is left than at ``point``: where classes
    are nearly separable a model there says more.
    """
    best, found = point, None
    while found is not best and not over():
        found = best
        units = objective.cardinality.active_units(found.x)
        sizes = objective.cardinality.unit_scores(coordinate_scores(found.x))[units]
        for unit in units[np.argsort(sizes, kind="stable")[:_REMOVED]]:
            rest = units[units != unit]
            base = minimised(rest, found)
            diagonal = full_diagonal(objective, base, for_ranking=True)
            scores = insertion_scores(objective, base, diagonal, for_ranking=True)
            scores[unit] = 0.0
            promising = top_k(scores, _REPLACEMENTS)
            for other in promising[scores[promising] > 0.0]:
                trial = minimised(np.append(rest, other), base)
                if better(trial, best):
                    best = trial
            if over():
                break
    return best


def redrawn(
    objective: Objective,
    models: ExchangeModels,
    point: Point,
    minimised: Callable[[IntArray, Point], Point],
    rng: np.random.Generator,
) -> Point:
    """Return the minimiser over a support with some of the units of ``point`` replaced."""
    sparsity = objective.cardinality
    units = sparsity.active_units(point.x)
    times = int(rng.integers(1, max(1, int(_REDRAWN * units.size)) + 1))
    gone = rng.choice(units, min(times, units.size), replace=False)
    kept = np.setdiff1d(units, gone)
    if sparsity.order is not None:
        kept = sparsity.order.largest_closed(kept)
        start, gone = minimised(kept, point), np.setdiff1d(units, kept)
        return minimised(models.regrown(start, kept, gone, rng), point)
    base = minimised(kept, point)
    if not np.isfinite(base.value):  # what is left admits no feasible point
        base = point
    gains = models.insertions(base)
    gains[units] = 0.0
    drawn: IntArray = kept
    one_by_one = bool(sparsity.layers or sparsity.knapsacks)
    most = sparsity.budget if sparsity.knapsacks or sparsity.crossing else gone.size
    for left in range(most, 0, -1):
        gains[~sparsity.room(drawn)] = 0.0
        best = top_k(gains, _PROMISING if sparsity.groups is None else _GROUPS)
        best = best[gains[best] > 0.0]
        if not best.size:
            break
        chances = gains[best] / gains[best].sum()
        many = 1 if one_by_one else min(left, int(np.count_nonzero(chances)))
        drawn = np.concatenate([drawn, rng.choice(best, many, replace=False, p=chances)])
        if not one_by_one:
            break
    return point if drawn is kept else minimised(drawn, base)
