"""Regressions for a range of k, each from its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from sparsemodel.compiler.adapters.paths_along_k import path_of_form
from sparsemodel.compiler.adapters.smoothing import smoothable
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
    Objective,
    Point,
    RestrictedSolver,
    SparseRegression,
    Stop,
    UnsupportedProblemError,
)
from sparsemodel.numerics import (
    RegressionObjective,
    SupportBeam,
    SupportsAlongK,
    cheap_columns,
    exactly_priced,
    feasible_start,
    quadratic_of,
    searched_along,
)
from sparsemodel.numerics.budget import budget, without_deadline
from sparsemodel.numerics.minimisers.unboundedness import check_attained
from sparsemodel.progress import report
from sparsemodel.selection.path import PathPoint, PathResult, Search

_ROWS = 2**12
"""Rows that are looked at together."""
_TOGETHER, _SIZES = 2**17, 5
"""Prices of exchanges at a time (``k p``) up to which all sizes are searched together, and sizes
for each ``k`` that is asked for: there are no fewer between them."""
_KEPT, _NUMBERS = 24, 2**16
"""Supports of each size that are kept, and numbers up to which more are. Twice as many take a
quarter more time and end no lower; sweeps help more."""
_SCATTERED = 300
"""Compiled searches of each size at most. Of 144 points of khan's genes in three orders of the
columns 2 ended more than .1 % above a solve of that size, 32 below, in .34 of the time of solves;
with 150 8 above in .25, with 600 3 above and 35 below in .43."""
_BEYOND = 2
"""Sizes above the largest from which that is searched, too: without, it and the one below were the
only ones of 651 points that ended above a separate search."""
_FEW, _FEWER = 16, 4
"""Supports of each size that are kept with little effort, and so with starts of another ridge: a
tenth of the time, and the same choices by cross-validation where it was compared."""


def searched_together(form: SparseRegression, ks: Sequence[int]) -> bool:
    """Return whether the supports of all sizes are searched together, with exact prices."""
    most = max(ks) - form.sparsity.forced_units
    few = 0 < most <= _SIZES * len(ks) and most * form.sparsity.units <= _TOGETHER
    if not few or not form.traits.quadratic:
        return False
    objective = objective_of(form)
    return exactly_priced(objective) and cheap_columns(objective)


def searched_by_models(form: SparseRegression, ks: Sequence[int], how: Search) -> bool:
    """Return whether the supports of all sizes are searched by models of a smooth loss."""
    most = max(ks) - form.sparsity.forced_units
    few = 0 < most <= _SIZES * len(ks)
    if not few or how.effort == "low" or not form.traits.has_hessian or distributed(form):
        return False
    free = replace(form, sparsity=replace(form.sparsity, price=0.0))
    return searched_along(objective_of(free), most)


def grown_path(
    reduced: Reduced,
    ks: Sequence[int],
    how: Search,
    *,
    together: bool,
) -> PathResult:
    """Return a solution for every ``k`` (sorted), and the passes over the data that they cost.

    The supports come from :class:`~sparsemodel.numerics.SupportBeam` where they are searched
    ``together``, else from :func:`~sparsemodel.numerics.forward_backward_path`; each point is
    minimised on its support to full accuracy, within all constraints. Nonsmooth losses are
    minimised exactly at every step; their multipliers give the gradient that the next unit is
    chosen by. The objective never rises with ``k``. When time is up, or on Ctrl-C, the path
    ends at the last ``k`` that was reached; before the first of them it is a point with fewer
    units.

    Raises
    ------
    UnsupportedProblemError
        For losses with neither second derivatives nor smooth approximations.
    InfeasibleError
        When no point with as few units as the smallest ``k`` was found feasible.
    """
    small = cast("SparseRegression", reduced.form)
    if not smoothable(small):
        raise UnsupportedProblemError(
            "A path needs losses that are twice differentiable or have smooth approximations; "
            "solve for each k with a Parameter instead."
        )
    most = max(ks)
    free = replace(small, sparsity=replace(small.sparsity, k=most, price=0.0))
    objective = objective_of(free, reduced.gradient)
    restricted = restricted_of(free)
    agreed: frozenset[int] = frozenset()
    how = replace(how, near=[replace(point, x=reduced.carry(point.x)) for point in how.near])
    if together:
        points, stop = _beamed(free, objective, restricted, how, ks=ks)
    elif searched_by_models(free, ks, how):
        points, stop, agreed = _by_models(free, objective, restricted, how, ks=ks)
    else:
        points, stop = _grown(free, objective, restricted, how)
    if len(points) <= most - small.sparsity.forced_units and stop.requested:
        reached = [k for k in ks if k - small.sparsity.forced_units < len(points)]
        ks = reached or ks[:1]
    chosen: list[PathPoint] = []
    best: Point | None = None
    for k in ks:
        trials = [] if best is None else [best]
        point = points[min(k - small.sparsity.forced_units, len(points) - 1)]
        if best is None or not np.array_equal(point.support, best.support):
            trials += [restricted(objective, point.support, point), point]
        best = min(trials, key=lambda trial: trial.value)
        if not np.isfinite(best.value):
            best = _feasible(free, k, reduced)
        if k in agreed:  # no solve looks at it again
            check_attained(cast("RegressionObjective", objective), best)
        chosen.append(PathPoint(k, reduced.restore(best.x), best.value))
    return PathResult(chosen, objective.work.passes * reduced.shrinkage, stop, agreed)


def _beamed(
    form: SparseRegression,
    objective: Objective,
    restricted: RestrictedSolver,
    how: Search,
    *,
    ks: Sequence[int],
) -> tuple[list[Point], Stop]:
    """Return the points of a path whose sizes are searched together, and what ended it.

    Those of sizes that are not in ``ks`` have fewer units.
    """
    wanted = {k - form.sparsity.forced_units for k in ks}
    most, late = min(form.sparsity.budget, form.sparsity.units), budget()
    rows, linear = quadratic_of(objective)
    brief, free = how.effort == "low", form.sparsity.free
    width, numbers = (_FEWER if how.near else _FEW, 0) if brief else (_KEPT, _NUMBERS)
    largest = most if brief else min(most + _BEYOND, form.sparsity.units)
    beam = SupportBeam(
        rows,
        linear,
        largest,
        late.over,
        width=width,
        entries=numbers,
        scattered=0 if brief else _SCATTERED,
    )
    stop = Stop.CONVERGED
    try:
        beam.search(
            how.sweeps,
            wanted,
            [np.setdiff1d(objective.point_from(point.x).support, free) for point in how.near],
            perturbed=not brief,
        )
    except KeyboardInterrupt:
        if not beam.reached:
            raise
        stop = Stop.INTERRUPTED
    with without_deadline():
        points = [restricted(objective, objective.origin().support, objective.origin())]
        reached = min(beam.reached, most)
        for size in range(1, reached + 1):
            point = points[-1]
            if size in wanted or size == reached:
                support = np.union1d(beam.best(size), free)
                point = restricted(objective, support, point)
            points.append(point)
    return points, Stop.TIME_LIMIT if late.over() and stop is Stop.CONVERGED else stop


def _by_models(
    form: SparseRegression,
    objective: Objective,
    restricted: RestrictedSolver,
    how: Search,
    *,
    ks: Sequence[int],
) -> tuple[list[Point], Stop, frozenset[int]]:
    """Return the points of a path of a smooth loss, what ended it, and which ``k`` are agreed."""
    forced, late, free = form.sparsity.forced_units, budget(), form.sparsity.free
    most = min(form.sparsity.budget, form.sparsity.units)
    sizes = SupportsAlongK(
        cast("RegressionObjective", objective),
        restricted,
        min(most + 1, form.sparsity.units),
        late.over,
    )
    stop = Stop.CONVERGED
    try:
        sizes.search(
            {k - forced for k in ks},
            [np.setdiff1d(objective.point_from(point.x).support, free) for point in how.near],
        )
    except KeyboardInterrupt:
        if len(sizes.points) < 2:
            raise
        stop = Stop.INTERRUPTED
    points = sizes.points[: most + 1]
    agreed = frozenset(k for k in ks if k - forced < len(points) and sizes.agreed(k - forced))
    return points, Stop.TIME_LIMIT if late.over() and stop is Stop.CONVERGED else stop, agreed


def _grown(
    form: SparseRegression, objective: Objective, restricted: RestrictedSolver, how: Search
) -> tuple[list[Point], Stop]:
    """Return the points of the path, and whether it was ended from outside."""
    points: list[Point] = []

    def keep(found: list[Point]) -> bool:
        nonlocal points
        late, most = budget().over(), _largest_size(form)
        report(lambda: f"size {len(found) - 1} of {most}")
        points = found[:-1] if late else found  # the last minimisation was broken off
        return late

    try:
        whole = path_of_form(
            form, objective, restricted, _largest_size(form), sweeps=how.sweeps, enough=keep
        )
        points = points or whole
    except KeyboardInterrupt:
        if not points:
            raise
        return points, Stop.INTERRUPTED
    return points, Stop.TIME_LIMIT if budget().over() else Stop.CONVERGED


def _largest_size(form: SparseRegression) -> int:
    """Return the largest size to try: beyond the largest ``k`` where dropping units is cheap.

    Dropping units from twice as many finds better supports than adding them (for 1 to 50 of 2308
    genes by up to a tenth of the objective). Without a ridge only as far as the data determine
    the coefficients.
    """
    k, most = form.sparsity.budget, 2 * form.sparsity.budget
    observations = sum(term.target.shape[0] for term in form.terms)
    if np.all(form.ridge[form.sparsity.counted] > 0.0) or 4 * most <= observations:
        return min(most, form.sparsity.units)
    return k


def _feasible(form: SparseRegression, k: int, reduced: Reduced) -> Point:
    """Return a feasible point with at most ``k`` units, or raise that there is none."""
    limited = replace(form, sparsity=replace(form.sparsity, k=k))
    objective = objective_of(limited, reduced.gradient)
    restricted = restricted_of(limited)
    found = feasible_start(objective, restricted, convex_starts_of(objective, restricted))
    return objective.origin() if found is None else found


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
