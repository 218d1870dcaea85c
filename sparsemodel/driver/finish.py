"""From the best point of a run to the user's coordinates: debias, restore, evaluate again."""

from __future__ import annotations

from typing import cast

import numpy as np

from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.compiler.services import objective_of
from sparsemodel.interfaces import (
    DataError,
    FloatArray,
    Form,
    Objective,
    Point,
    RestrictedSolver,
    Result,
    SparseRegression,
)
from sparsemodel.numerics import RegressionObjective, feasible_start, satisfied
from sparsemodel.numerics.minimisers.convex_starts import ConvexStarts

_EXACT = 1e-28
"""Share of the objective at zero below which a squared residual is rounding."""
_SMALL = (1e-10, 1e-14)
"""Sizes of coefficients, relative to the largest, that rounding may have left."""
_ROUNDED = 5e-13
"""Relative difference of two objectives that minimisation leaves open."""


def first_point(
    objective: Objective,
    restricted: RestrictedSolver,
    start: FloatArray | None,
    convex: ConvexStarts | None = None,
) -> FloatArray | None:
    """Return a feasible start, None where zero is one; a start that is not is fitted first."""
    form = objective.form
    if start is not None and not satisfied(form, start):
        at = objective.point_from(start)
        fitted = restricted(objective, at.support, at)
        start = fitted.x if np.isfinite(fitted.value) else None
    if start is not None:
        return start
    first = feasible_start(objective, restricted, convex)
    return None if first is None else first.x


def debiased_point(objective: Objective, restricted: RestrictedSolver, result: Result) -> Point:
    """Minimise on the final support to full accuracy, where that can be done."""
    point = result.point
    if result.stop.requested or point.memo.minimised or not objective.twice_differentiable:
        return point
    floor = objective.infimum()
    if np.isfinite(floor) and point.value - floor <= _EXACT * (objective.origin().value - floor):
        return point  # the residual is rounding
    refitted = restricted(objective, point.support, point)
    return refitted if refitted.value <= point.value else point


def restored_dual(
    form: Form, reduced: Reduced, objective: Objective, at: Point
) -> tuple[FloatArray, ...]:
    """Return the gradients in the predictions at ``at``, those of the unreduced form."""
    if not reduced.keeps_predictions:
        objective = RegressionObjective(cast(SparseRegression, form))  # predictions come here
        at = objective.point_from(reduced.restore(at.x))
    return cast("RegressionObjective", objective).prediction_gradients(at)


def restored(form: Form, reduced: Reduced, point: Point) -> tuple[FloatArray, float]:
    """Return the point and its value on the unreduced form, evaluated again if it changed."""
    x = point.x.copy() if not reduced.reductions else reduced.restore(point.x)
    value = point.value
    if form.box is not None:
        x = form.box.clipped(x)
    if reduced.reductions:
        fresh = objective_of(form)
        value = fresh.point_from(x).value
    if isinstance(form, SparseRegression):
        x, value = _without_rounding(form, x, value)
    value += form.cardinality.paid(x)
    if not np.isfinite(value):
        raise DataError(
            "The objective overflows at the solution; rescale the data matrix or the target."
        )
    return x, value


def _without_rounding(
    form: SparseRegression, x: FloatArray, value: float
) -> tuple[FloatArray, float]:
    """Return the point with zero for small coefficients without which it is as good, and its value.

    Nothing is computed where no coefficient is small.
    """
    sizes = np.abs(x)
    for share in _SMALL:
        small = (sizes > 0.0) & (sizes <= share * sizes.max(initial=0.0))
        if not small.any():
            break
        trial, sparsity = np.where(small, 0.0, x), form.sparsity
        needed = sparsity.active_units(trial), sparsity.relaxed().active_units(trial)
        others = sparsity.coordinates(np.setdiff1d(*needed))  # which an order has beside others
        others = np.setdiff1d(others, sparsity.free)
        trial[others] = x[others]
        if not satisfied(form, trial):
            continue
        objective = objective_of(form)
        origin, floor = objective.origin().value, objective.infimum()
        least = _EXACT * (origin - floor) if np.isfinite(floor) else 0.0
        found = objective.point_from(trial).value
        if found <= value + max(_ROUNDED * abs(value), least):
            return trial, found
    return x, value
