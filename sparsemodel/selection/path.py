"""Solutions for a range of k, each from its neighbours: up by adding, down by dropping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast, final

import numpy as np

from sparsemodel.compiler import Reduced
from sparsemodel.compiler.services import objective_of, restricted_of
from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Objective,
    Point,
    RestrictedSolver,
    SparseRegression,
    TwiceDifferentiable,
    UnsupportedProblemError,
    coordinate_scores,
)
from sparsemodel.numerics import (
    full_diagonal,
    insertion_scores,
    normalised_step,
    project,
    removal_costs,
    support_units,
    top_k,
)

_NEGLIGIBLE = 1e-12
"""Relative decrease below which a point is no better than another."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class PathPoint:
    """The solution for one k, in the coordinates of the unreduced form."""

    k: int
    x: FloatArray
    value: float
    """Objective without a price."""


def solve_path(
    form: SparseRegression, reduced: Reduced, ks: Sequence[int], *, sweeps: int = 1
) -> tuple[list[PathPoint], float]:
    """Return a solution for every ``k`` (sorted), and the passes over the data that they cost.

    Upwards, each solution is the better of two: the last one with the unit that promises most
    added, and one step of gradient hard thresholding pursuit from it, which may exchange units.
    Both need the same gradient. Downwards, the unit whose loss costs least is dropped from the
    solution above, which replaces the one below if it is better. The objective never rises
    with k.

    Notes
    -----
    Half a pass and two or three restricted minimisations for every unit of the largest k.
    """
    small = cast("SparseRegression", reduced.form)
    if small.region is not None or not all(
        isinstance(term.loss, TwiceDifferentiable) for term in small.terms
    ):
        raise UnsupportedProblemError(
            "A path needs twice differentiable losses and no constraints beside bounds; solve "
            "for each k with a Parameter instead."
        )
    most = max(ks)
    free = replace(small, sparsity=replace(small.sparsity, k=most, price=0.0))
    objective = objective_of(free, reduced.gradient)
    restricted = restricted_of(free)
    points = _upwards(objective, restricted, most)
    for _ in range(sweeps):
        if not _downwards(objective, restricted, points):
            break
        _upwards_again(objective, restricted, points)
    chosen = []
    for k in ks:
        point = points[min(k, len(points) - 1)]
        settled = restricted(objective, point.support, point)
        best = settled if settled.value <= point.value else point
        chosen.append(PathPoint(k, reduced.restore(best.x), best.value))
    return chosen, objective.passes * reduced.shrinkage


def _upwards(objective: Objective, restricted: RestrictedSolver, most: int) -> list[Point]:
    origin = objective.origin()
    points = [restricted(objective, origin.support, origin)]
    diagonal = full_diagonal(objective, origin)
    for _ in range(min(most, objective.cardinality.units)):
        points.append(_one_more(objective, restricted, points[-1], diagonal))
    return points


def _one_more(
    objective: Objective, restricted: RestrictedSolver, point: Point, diagonal: FloatArray | None
) -> Point:
    """Return the better of an insertion and a step of hard thresholding pursuit."""
    sparsity = objective.cardinality
    units = support_units(sparsity, point.support)
    scores = insertion_scores(objective, point, diagonal)
    best = top_k(scores, 1)
    added = sparsity.coordinates(np.union1d(units, best))
    trials = [restricted(objective, added, point, tol=1e-9)]
    exchanged = _pursuit(objective, point, units.size + 1)
    if not np.array_equal(exchanged, added):
        trials.append(restricted(objective, exchanged, point, tol=1e-9))
    trials.append(point)  # more room never costs anything
    return min(trials, key=lambda trial: trial.value)


def _pursuit(objective: Objective, point: Point, k: int) -> IntArray:
    """Return the support of a gradient step, cut to ``k`` units."""
    g = objective.gradient(point)
    outside = g.copy()
    outside[point.support] = 0.0
    along = np.union1d(point.support, top_k(coordinate_scores(outside), max(1, min(k, g.shape[0]))))
    eta = normalised_step(objective, point, along) or 1.0
    support, _ = project(objective, point.x - eta * g, k=k)
    return support


def _downwards(objective: Objective, restricted: RestrictedSolver, points: list[Point]) -> bool:
    """Drop a unit from each solution for the one below; return whether that helped anywhere."""
    better = False
    for k in range(len(points) - 1, 0, -1):
        above, below = points[k], points[k - 1]
        units = support_units(objective.cardinality, above.support)
        if units.size < k:
            continue
        costs = removal_costs(objective, above)
        if costs is None:
            continue
        guess = above.value + float(costs.min())
        if guess >= below.value and objective.quadratic:
            continue  # the costs are exact for a quadratic
        kept = np.delete(units, int(np.argmin(costs)))
        support = objective.cardinality.coordinates(kept)
        if np.array_equal(support, below.support):
            continue
        fewer = restricted(objective, support, above, tol=1e-9)
        if fewer.value < below.value - _NEGLIGIBLE * abs(below.value):
            points[k - 1] = fewer
            better = True
    return better


def _upwards_again(objective: Objective, restricted: RestrictedSolver, points: list[Point]) -> None:
    """Let improvements below reach the solutions above, where they are better."""
    for k in range(1, len(points)):
        below, here = points[k - 1], points[k]
        if below.value < here.value:
            points[k] = below


__all__ = ["PathPoint", "solve_path"]
