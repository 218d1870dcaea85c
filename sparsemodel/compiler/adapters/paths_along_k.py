"""Minimisers for several k of any regression, losses with kinks included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from sparsemodel.compiler.adapters.smoothing import smoothed_form, typical_widths
from sparsemodel.interfaces import Objective, Point, RestrictedSolver, SparseRegression
from sparsemodel.numerics import PointsAlongK, RegressionObjective

_MODEL = 0.1
"""Smoothing of losses with kinks, in units of the typical distance from them at zero, for the
curvature that supports are chosen by."""


def along_k(
    form: SparseRegression,
    objective: Objective,
    restricted: RestrictedSolver,
    sizes: Sequence[int],
    *,
    through: Sequence[int] = (),
    effort: float = 1.0,
) -> PointsAlongK:
    """Return what searches the sizes of ``form``, whose budget is the largest of them."""
    sparsity = form.sparsity
    alike = sparsity.bare and form.region is None

    def at(size: int) -> Objective:
        return RegressionObjective(
            replace(form, sparsity=sparsity.with_budget(size)), work=objective.work
        )

    return PointsAlongK(
        objective, restricted, sizes, through=through, effort=effort, at=None if alike else at
    )


def swept_points(
    form: SparseRegression,
    objective: Objective,
    restricted: RestrictedSolver,
    sizes: Sequence[int],
) -> list[Point]:
    """Return a point for each size, by a sweep alone; fewer where time ends before.

    With kinks supports are those of a smooth approximation, and points exact minimisers on them.
    Passes are counted in ``objective``.
    """
    if form.traits.has_hessian:
        path = along_k(form, objective, restricted, sizes)
        path.sweep()
        return path.points
    easier = smoothed_form(form, _MODEL * typical_widths(form))
    model = RegressionObjective(easier, work=cast("RegressionObjective", objective).work)
    path = along_k(easier, model, restricted, sizes)
    path.sweep()
    points: list[Point] = []
    for near in path.points:
        start = points[-1] if points else objective.origin()
        point = restricted(objective, near.support, start)
        better = not points or point.value < points[-1].value
        points.append(point if better else points[-1])
    return points
