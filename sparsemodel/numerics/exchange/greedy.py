"""What the greedy methods share: a minimiser over a support that changes."""

from __future__ import annotations

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
from sparsemodel.numerics.exchange.removal import removal_costs
from sparsemodel.numerics.exchange.support_factor import SupportFactor, has_common_hessian
from sparsemodel.numerics.support.selection import top_k
from sparsemodel.numerics.support.units import gradient_scores, insertion_scores, support_units

_WARM = 1e-8
"""Relative accuracy of the minimisations on the way; the last one is done in full."""
_MERGED = 1e-6
"""The same of those over a support that is larger than allowed."""

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
