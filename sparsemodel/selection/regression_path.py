"""The objectives of a path of a regression on the data that were declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.compiler.services import (
    convex_starts_of,
    distributed,
    objective_of,
    restricted_of,
)
from sparsemodel.interfaces import (
    FloatArray,
    InfeasibleError,
    NotSolvedError,
    SparseRegression,
)
from sparsemodel.numerics import feasible_start
from sparsemodel.selection.path import PathPoint, PathResult

_ROWS = 2**12
"""Rows that are looked at together."""


def beside_infeasible(
    form_at: Callable[[int], SparseRegression],
    ks: Sequence[int],
    follow: Callable[[Sequence[int]], PathResult],
) -> PathResult:
    """Return a path in which sizes without a feasible point are points of value ``inf``, zero.

    They are the smallest: what few units satisfy, more do. Where none was found for a size within
    the time that a solve takes to look for one, it counts among them.

    Raises
    ------
    InfeasibleError, NotSolvedError
        When that is so for every size.
    """
    first, form = 0, form_at(ks[0])
    if not form.constrained and form.traits.everywhere:
        return follow(ks)
    while first < len(ks):
        form = form_at(ks[first])
        objective, restricted = objective_of(form), restricted_of(form)
        try:
            feasible_start(objective, restricted, convex_starts_of(objective, restricted))
            break
        except (InfeasibleError, NotSolvedError):
            first += 1
            if first == len(ks):
                raise
    if first == 0:
        return follow(ks)
    found = follow(ks[first:])
    nothing = np.zeros(form_at(ks[0]).shape)
    infeasible = [PathPoint(k, nothing, np.inf) for k in ks[:first]]
    return found._replace(points=[*infeasible, *found.points])


def valued(form: SparseRegression, reduced: Reduced, path: PathResult) -> PathResult:
    """Return a path whose objectives are those of the user's data.

    Rows that were compressed have the same loss up to their rounding, which cancels where residuals
    are small beside the target. One reading of the chosen columns for all points.
    """
    if reduced.keeps_predictions:
        return path
    points: list[PathPoint] = []
    values = _squares_at(form, [point.x for point in path.points])
    for point, value in zip(path.points, values, strict=True):
        here = replace(point, value=value)
        if points and points[-1].value < here.value:  # by rounding: fewer units are as good
            here = replace(points[-1], k=point.k)
        points.append(here)
    return PathResult(points, path.passes + 0.5, path.stop)


def _squares_at(form: SparseRegression, points: Sequence[FloatArray]) -> list[float]:
    """Return the objectives of squared losses at some points without prices, in one reading."""
    at = np.stack(points, axis=-1)  # coordinates, outputs, points
    losses = partial(_losses_at, at=at)
    if distributed(form):
        from sparsemodel.numerics.objectives.distributed import over_blocks

        total = over_blocks(form, losses)
    else:
        total = losses(form)
    ridges = 0.5 * (form.ridge @ np.square(at).reshape(at.shape[0], -1)).reshape(at.shape[1:])
    values = form.constant + (total + ridges).reshape(-1, len(points)).sum(axis=0)
    return [float(value) for value in values]


def _losses_at(form: SparseRegression, at: FloatArray) -> FloatArray:
    """Return the squared losses of points, shape ``(outputs, points)`` or ``(points,)``."""
    used = np.flatnonzero(np.any(at.reshape(at.shape[0], -1) != 0.0, axis=1))
    chosen = at[used].reshape(used.size, -1)
    total = np.zeros(at.shape[1:])
    for term in form.terms:
        centre, weights = term.squares()
        aim = centre if term.offset is None else centre - term.offset
        for rows, entries in term.design.row_blocks(_ROWS):
            u = (entries[:, used] @ chosen).reshape(entries.shape[0], *at.shape[1:])
            total += 0.5 * np.tensordot(weights[rows], np.square(u - aim[rows, ..., None]), 1)
    return total
