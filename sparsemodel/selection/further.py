"""Each point of a path searched on its own, as a solve for that ``k`` is."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from sparsemodel.compiler import Effort, Facts, Reduced, backend_for, checked_effort, make_plan
from sparsemodel.driver import Outcome, RunOptions, run
from sparsemodel.interfaces import Role, SparseRegression
from sparsemodel.numerics.budget import budget
from sparsemodel.selection.path import Followed, PathPoint

_LEVEL: dict[Effort, Effort] = {"medium": "low", "high": "medium"}


def searched_further(
    path: Followed, reduced: Reduced, facts: Facts, *, effort: Effort = "medium"
) -> Followed:
    """Return the path with each point searched further, from the best that its neighbours offer.

    Parameters
    ----------
    path
        What a path along ``k`` found.
    reduced, facts
        The problem; its ``k`` is not looked at.
    effort
        ``"low"`` leaves the path as it is; the others search each ``k`` as the next lower level of
        a solve does, since neighbours are good starts.

    Notes
    -----
    A search for one ``k`` costs what a solve costs without its analysis. The objective never rises
    with ``k``. Losses with kinks and convex constraints are left as they were climbed: there a
    search for one ``k`` takes as long as the whole climb. When time is up, or on Ctrl-C, the points
    that were not reached stay as they are.
    """
    form = cast("SparseRegression", reduced.form)
    slow = form.region is not None or not form.traits.has_hessian
    search = (
        None if checked_effort(effort) == "low" or slow else backend_for(Role.FINISH, reduced.form)
    )
    points, passes, stop = list(path.points), path.passes, path.stop
    if search is None:
        return path
    for place, point in enumerate(points):
        best = point
        if place and points[place - 1].value < point.value:
            best = PathPoint(point.k, points[place - 1].x, points[place - 1].value)
        if not stop.requested and point.k > 0:
            found = _from(best, reduced, facts, search, _LEVEL[effort])
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


__all__ = ["searched_further"]
