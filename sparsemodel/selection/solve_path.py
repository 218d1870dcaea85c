"""Paths of regressions: grown along k, then each point searched as a solve for that k is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from sparsemodel.compiler.choice.all_supports import all_tried
from sparsemodel.compiler.choice.dispatch import backend_for
from sparsemodel.compiler.choice.effort import checked_effort
from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.compiler.services import objective_of, restricted_of
from sparsemodel.interfaces import Role, SparseRegression
from sparsemodel.registry import backend_class
from sparsemodel.selection.path import PathPoint, PathResult, Search
from sparsemodel.selection.regression_path import (
    grown_path,
    searched_by_models,
    searched_together,
)
from sparsemodel.selection.searched_path import LITTLE, searched_path

_ALONE = 2
"""Sizes for each ``k`` that is asked for, above which these are also searched alone though all
sizes were searched together: that takes about as long."""
_BRIEF = 0.1
"""Share of its patience with which ``exchange`` follows a path of a loss with kinks: of 12 points 4
were 1 to 45 % higher without."""


def solve_path(
    form: SparseRegression, reduced: Reduced, facts: Facts, ks: Sequence[int], how: Search
) -> PathResult:
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
    effort = checked_effort(how.effort)
    small = cast("SparseRegression", reduced.form)
    together = searched_together(small, ks)
    if together or len(how.near) < len(ks) or searched_by_models(small, ks, how):
        found = grown_path(reduced, ks, how, together=together)
    else:
        found = _moved(how.near, reduced)
    known: frozenset[int] = frozenset()
    if not together:
        found, known = _tried(small, reduced, facts, found, how)
    if together and effort != "high":
        if effort == "low" or _ALONE * len(ks) >= max(ks):
            return found
        how = replace(how, sweeps=0)
    slow = form.region is not None or not form.traits.has_hessian
    little = form.region is None and max(ks) * form.sparsity.units <= LITTLE
    descended = little and effort == ("medium" if slow else "low")
    finish = backend_for(Role.FINISH, reduced.form) if descended else None
    if finish is not None:  # perturbations take long
        how = replace(how, backend=backend_class(finish)().with_patience(_BRIEF if slow else 0.0))
    elif effort == "low" or (slow and effort == "medium"):
        return found  # a search for one k takes as long as the whole path
    agreed = known if effort == "high" else found.agreed | known
    if found.agreed:
        how = replace(how, sweeps=0)
    carried = [replace(point, x=reduced.carry(point.x)) for point in found.points]
    searched = searched_path(
        replace(small, sparsity=replace(small.sparsity, price=0.0)),
        ks,
        lambda _: facts,
        how,
        grown=PathResult(carried, found.passes / reduced.shrinkage, found.stop, agreed),
        gradient=reduced.gradient,
        descended=together,
    )
    points = [replace(point, x=reduced.restore(point.x)) for point in searched.points]
    return PathResult(points, searched.passes * reduced.shrinkage, searched.stop)


def _tried(
    form: SparseRegression, reduced: Reduced, facts: Facts, found: PathResult, how: Search
) -> tuple[PathResult, frozenset[int]]:
    """Return a path with the sizes of which a solve tries all supports tried so, and which."""
    free = replace(form, sparsity=replace(form.sparsity, price=0.0))
    effort = checked_effort(how.effort)
    few = [
        replace(point, x=reduced.carry(point.x))
        for point in found.points
        if point.k > 0 and point.k not in found.agreed
        if all_tried(free.with_limit(point.k), effort)
    ]
    if not few:
        return found, frozenset()
    tried = searched_path(
        free,
        [point.k for point in few],
        lambda _: facts,
        replace(how, sweeps=0),
        grown=PathResult(few, found.passes / reduced.shrinkage, found.stop),
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
    passes = tried.passes * reduced.shrinkage
    return found._replace(points=points, passes=passes, stop=tried.stop), frozenset(better)


def _moved(near: Sequence[PathPoint], reduced: Reduced) -> PathResult:
    """Return the supports of another ridge's solutions, minimised on, or that with fewer units."""
    form = cast("SparseRegression", reduced.form)
    most = max(point.k for point in near)
    free = replace(form, sparsity=replace(form.sparsity, k=most, price=0.0))
    objective, restricted = objective_of(free, reduced.gradient), restricted_of(free)
    points: list[PathPoint] = []
    for point in near:
        start = objective.point_from(reduced.carry(point.x))
        moved = restricted(objective, start.support, start)
        here = PathPoint(point.k, reduced.restore(moved.x), moved.value)
        fewer = replace(points[-1], k=point.k) if points else here
        points.append(min(fewer, here, key=lambda one: one.value))
    return PathResult(points, objective.work.passes * reduced.shrinkage)
