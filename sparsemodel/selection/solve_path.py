"""Paths of regressions: a sweep along k, then each size searched on, its neighbours as starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from sparsemodel.compiler.adapters.paths_along_k import along_k, swept_points
from sparsemodel.compiler.adapters.smoothing import smoothable
from sparsemodel.compiler.choice.all_supports import all_tried
from sparsemodel.compiler.choice.dispatch import backend_for
from sparsemodel.compiler.choice.effort import checked_effort
from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.compiler.services import objective_of, restricted_of
from sparsemodel.interfaces import (
    InfeasibleError,
    Point,
    Role,
    SparseRegression,
    Stop,
    UnsupportedProblemError,
)
from sparsemodel.numerics import RegressionObjective, feasible_start
from sparsemodel.numerics.budget import budget
from sparsemodel.numerics.minimisers.unboundedness import check_attained
from sparsemodel.registry import backend_class
from sparsemodel.selection.parts import BEYOND
from sparsemodel.selection.path import PathPoint, PathResult, Search
from sparsemodel.selection.searched_path import searched_path

_EVERY = 5
"""Sizes for each ``k`` that is asked for, up to which a sweep goes through all of them."""
_PATIENCE = {"low": 0.0, "medium": 1.0, "high": 4.0}
"""Patience of each effort."""
_BRIEF, _LITTLE = 0.1, 10_000
"""Patience with a size of a path of a loss with kinks, or beside constraints, in units of that of a
solve, and prices of exchanges at a time (``k p``) up to which its sizes are searched at all with
medium effort: a search for one takes as long as the whole sweep."""


def solve_path(
    form: SparseRegression, reduced: Reduced, facts: Facts, ks: Sequence[int], how: Search
) -> PathResult:
    """Return a solution for every ``k`` (sorted), and the passes over the data that they cost.

    The objective never rises with ``k``. When time is up, or on Ctrl-C, the path ends at the last
    ``k`` that was reached; before the first of them it is a point with fewer units.

    Parameters
    ----------
    form, reduced, facts
        The problem; its ``k`` and its price are not looked at.

    Raises
    ------
    UnsupportedProblemError
        For losses with neither second derivatives nor smooth approximations.
    InfeasibleError
        When no point with as few units as the smallest ``k`` was found feasible.
    """
    if how.backend is not None:
        free = replace(form, sparsity=replace(form.sparsity, price=0.0))
        return searched_path(free, ks, lambda _: facts, how)
    effort = checked_effort(how.effort)
    small = cast("SparseRegression", reduced.form)
    if not smoothable(small):
        raise UnsupportedProblemError(
            "A path needs losses that are twice differentiable or have smooth approximations; "
            "solve for each k with a Parameter instead."
        )
    small = replace(small, sparsity=replace(small.sparsity, k=max(ks), price=0.0))
    found = _followed(small, reduced, ks, how)
    if effort != "low" and not found.stop.requested:
        found = _tried(small, reduced, facts, found, how)
    slow = not small.traits.has_hessian or small.region is not None
    little = max(ks) * small.sparsity.units <= _LITTLE
    if not slow or effort == "low" or (effort == "medium" and not little) or found.stop.requested:
        return found
    finish = backend_for(Role.FINISH, small) if effort == "medium" else None
    if finish is not None:
        how = replace(how, backend=backend_class(finish)().with_patience(_BRIEF))
    carried = [replace(point, x=reduced.carry(point.x)) for point in found.points]
    searched = searched_path(
        small,
        ks,
        lambda _: facts,
        how,
        grown=PathResult(carried, found.passes / reduced.shrinkage, found.stop),
        gradient=reduced.gradient,
    )
    points = [replace(point, x=reduced.restore(point.x)) for point in searched.points]
    return PathResult(points, searched.passes * reduced.shrinkage, searched.stop)


def _tried(
    form: SparseRegression, reduced: Reduced, facts: Facts, found: PathResult, how: Search
) -> PathResult:
    """Return a path with the sizes of which a solve tries all supports tried so."""
    effort = checked_effort(how.effort)
    few = [
        replace(point, x=reduced.carry(point.x))
        for point in found.points
        if point.k > 0 and all_tried(form.with_limit(point.k), effort)
    ]
    if not few:
        return found
    before = PathResult(few, found.passes / reduced.shrinkage, found.stop)
    tried = searched_path(
        form,
        [point.k for point in few],
        lambda _: facts,
        replace(how, sweeps=0),
        grown=before,
        gradient=reduced.gradient,
        descended=True,
    )
    better = {point.k: replace(point, x=reduced.restore(point.x)) for point in tried.points}
    points: list[PathPoint] = []
    for point in found.points:
        here = better.get(point.k, point)
        if points and points[-1].value < here.value:
            here = replace(points[-1], k=point.k)
        points.append(here)
    return PathResult(points, tried.passes * reduced.shrinkage, tried.stop)


def _followed(
    form: SparseRegression, reduced: Reduced, ks: Sequence[int], how: Search
) -> PathResult:
    """Return the points of a sweep, and of searches of its sizes where losses are smooth."""
    objective, restricted = objective_of(form, reduced.gradient), restricted_of(form)
    forced, units = form.sparsity.forced_units, form.sparsity.units
    sizes = [min(k - forced, units) for k in ks]
    points, stop, is_low = list[Point](), Stop.CONVERGED, how.effort == "low"
    if not form.traits.has_hessian:
        points = swept_points(form, objective, restricted, sizes)
    else:
        most = min(max(sizes) + BEYOND, units)
        every = range(1, most + 1) if most <= _EVERY * len(sizes) else ()
        above = [] if is_low or max(sizes) == units else [max(sizes) + 1]
        whole = form if not above else replace(form, sparsity=form.sparsity.with_budget(above[0]))
        if above:
            objective = objective_of(whole, reduced.gradient, objective.work)
        path = along_k(
            whole,
            objective,
            restricted,
            sizes + above,
            through=every,
            effort=_PATIENCE[how.effort],
        )
        try:
            path.sweep()
            if not is_low and not budget().over():
                path.search([objective.point_from(reduced.carry(one.x)) for one in how.near])
        except KeyboardInterrupt:
            if not path.points:
                raise
            stop = Stop.INTERRUPTED
        points = path.points[: len(sizes)]
    if budget().interrupted:
        stop = Stop.INTERRUPTED
    elif stop is Stop.CONVERGED and budget().over():
        stop = Stop.TIME_LIMIT
    chosen: list[PathPoint] = []
    for k, point in zip(ks, points, strict=False):
        if not np.isfinite(point.value):
            point = _feasible(form, k, reduced)
        if not is_low and isinstance(objective, RegressionObjective):
            check_attained(objective, point)
        chosen.append(PathPoint(k, reduced.restore(point.x), point.value))
    return PathResult(chosen, objective.work.passes * reduced.shrinkage, stop)


def _feasible(form: SparseRegression, k: int, reduced: Reduced) -> Point:
    """Return a feasible point with at most ``k`` units, or raise that there is none."""
    limited = replace(form, sparsity=replace(form.sparsity, k=k))
    objective = objective_of(limited, reduced.gradient)
    try:
        found = feasible_start(objective, restricted_of(limited))
    except InfeasibleError as error:
        raise InfeasibleError(f"The path begins at k = {k}: {error}") from error
    return objective.origin() if found is None else found
