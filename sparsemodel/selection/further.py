"""Paths of regressions: grown along k, then each point searched as a solve for that k is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from sparsemodel.compiler import Effort, Facts, Reduced, backend_for, checked_effort, make_plan
from sparsemodel.compiler.services import objective_of, restricted_of
from sparsemodel.driver import Outcome, RunOptions, run
from sparsemodel.interfaces import Role, SparseRegression
from sparsemodel.numerics.budget import budget
from sparsemodel.selection.path import Followed, PathPoint, Search
from sparsemodel.selection.regression_path import grown_path
from sparsemodel.selection.searched_path import searched_path

_LEVEL: dict[Effort, Effort] = {"medium": "low", "high": "medium"}


def solve_path(
    form: SparseRegression, reduced: Reduced, facts: Facts, ks: Sequence[int], how: Search
) -> Followed:
    """Return a solution for every ``k`` (sorted), and the passes over the data that they cost.

    Parameters
    ----------
    form, reduced, facts
        The problem; its ``k`` and its price are not looked at.

    Raises
    ------
    UnsupportedProblemError, InfeasibleError
        As :func:`~sparsemodel.selection.regression_path.grown_path`.
    """
    if how.backend is not None:
        free = replace(form, sparsity=replace(form.sparsity, price=0.0))
        return searched_path(free, ks, lambda _: facts, how)
    search = _search_of(form, how.effort)
    if search is None or len(how.near) < len(ks):
        found = grown_path(form, reduced, ks, sweeps=how.sweeps)
    else:
        found = _moved(how.near, reduced)
    if search is None:
        return found
    return _searched_further(found, reduced, facts, search, _LEVEL[how.effort])


def _search_of(form: SparseRegression, effort: Effort) -> str | None:
    """Return what searches each ``k``; None where each stays as it was grown.

    Losses with kinks and convex constraints are left as they were grown: there a search for one
    ``k`` takes as long as the whole path.
    """
    slow = form.region is not None or not form.traits.has_hessian
    if checked_effort(effort) == "low" or slow:
        return None
    return backend_for(Role.FINISH, form)


def _moved(near: Sequence[PathPoint], reduced: Reduced) -> Followed:
    """Return the supports of another ridge's solutions, minimised on."""
    form = cast("SparseRegression", reduced.form)
    most = max(point.k for point in near)
    free = replace(form, sparsity=replace(form.sparsity, k=most, price=0.0))
    objective, restricted = objective_of(free, reduced.gradient), restricted_of(free)
    points = []
    for point in near:
        start = objective.point_from(reduced.carry(point.x))
        moved = restricted(objective, start.support, start)
        points.append(PathPoint(point.k, reduced.restore(moved.x), moved.value))
    return Followed(points, objective.work.passes * reduced.shrinkage)


def _searched_further(
    path: Followed, reduced: Reduced, facts: Facts, search: str, effort: Effort
) -> Followed:
    """Return the path with each point searched further, from the best that its neighbours offer.

    Parameters
    ----------
    path
        What a path along ``k`` found.
    search, effort
        What searches each ``k``, as the next lower level of a solve does, since neighbours are good
        starts.

    Notes
    -----
    A search for one ``k`` costs what a solve costs without its analysis. The objective never rises
    with ``k``. When time is up, or on Ctrl-C, the points that were not reached stay as they are.
    """
    points, passes, stop = list(path.points), path.passes, path.stop
    for place, point in enumerate(points):
        best = point
        if place and points[place - 1].value < point.value:
            best = PathPoint(point.k, points[place - 1].x, points[place - 1].value)
        if not stop.requested and point.k > 0:
            found = _from(best, reduced, facts, search, effort)
            passes += found.passes * reduced.shrinkage
            if found.value < best.value:
                best = PathPoint(point.k, reduced.restore(found.x), found.value)
            stop = found.stop if found.stop.requested else stop
        points[place] = best
    return Followed(points, passes, stop)


def _from(point: PathPoint, reduced: Reduced, facts: Facts, search: str, effort: Effort) -> Outcome:
    """Return what a search finds with ``k`` units from a point of the unreduced form."""
    form = cast("SparseRegression", reduced.form)
    form = replace(form, sparsity=replace(form.sparsity, k=point.k, price=0.0))
    alone = Reduced(form, (), reduced.gradient)
    plan = make_plan(form, alone, facts, search, effort=effort)
    limit = budget().limit
    return run(form, alone, plan, RunOptions(start=reduced.carry(point.x), time_limit=limit))


__all__ = ["solve_path"]
