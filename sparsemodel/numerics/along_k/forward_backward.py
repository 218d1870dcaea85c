"""Minimisers for one, two, three, ... units: up by adding or exchanging, down by dropping."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Objective,
    Point,
    RestrictedSolver,
    coordinate_scores,
)
from sparsemodel.numerics.budget import budget
from sparsemodel.numerics.curvatures.curvature import full_diagonal
from sparsemodel.numerics.curvatures.step_lengths import normalised_step
from sparsemodel.numerics.exchange.removal import removal_costs
from sparsemodel.numerics.support.projection import project
from sparsemodel.numerics.support.selection import top_k
from sparsemodel.numerics.support.units import insertion_scores, support_units

_LEAST_DECREASE = 1e-12
"""Relative decrease below which a point is no better than another."""
_WARM = 1e-9
"""Relative accuracy of the minimisations on the way."""


def forward_backward_path(
    objective: Objective,
    restricted: RestrictedSolver,
    most: int,
    *,
    sweeps: int = 1,
    enough: Callable[[list[Point]], bool] | None = None,
    prepare: Callable[[Point], Point] | None = None,
    scale: FloatArray | None = None,
) -> list[Point]:
    """Return a point with at most ``k`` units for each ``k`` from 0, ``most`` at the end.

    Upwards, each point is the better of two: the last one with the unit that promises most
    added, and one step of gradient hard thresholding pursuit from it, which may exchange units.
    Both need the same gradient. Downwards, the unit whose loss costs least is dropped from the
    point above, which replaces the one below if it is better. A sweep goes down and
    carries what became better up again. Values never rise with ``k``; they are infinite as long
    as no feasible point with so few units was found.

    Parameters
    ----------
    objective
        Twice differentiable.
    sweeps
        How often to go down and up again; it ends by itself when nothing changes.
    enough
        Asked after each step of the first forward pass whether to stop there; the points it is
        given are the list that is returned, which the sweeps improve.
    prepare
        Returns each point with the gradient that counts, where that is not the one of
        ``objective``.
    scale
        What squared gradients are divided by to compare coordinates; None takes the diagonal of
        the Hessian at zero.

    Notes
    -----
    Half a pass and two or three restricted minimisations for every step upwards, one or two
    minimisations for every step downwards.
    """
    origin, left = objective.origin(), budget()
    points = [restricted(objective, origin.support, origin)]
    diagonal = full_diagonal(objective, origin) if scale is None else scale
    for _ in range(min(most, objective.cardinality.units)):
        if prepare is not None:
            points[-1] = prepare(points[-1])
        points.append(_one_more(objective, restricted, points[-1], diagonal))
        if (enough is not None and enough(points)) or left.over():
            break
    for _ in range(sweeps):
        if left.over() or not _downwards(objective, restricted, points):
            break
        _upwards(points)
    return points


def _one_more(
    objective: Objective, restricted: RestrictedSolver, point: Point, diagonal: FloatArray | None
) -> Point:
    """Return the better of an insertion and a step of hard thresholding pursuit."""
    sparsity = objective.cardinality
    units = support_units(sparsity, point.support)
    scores = insertion_scores(objective, point, diagonal)
    added = sparsity.coordinates(np.union1d(units, top_k(scores, 1)))
    trials = [restricted(objective, added, point, tol=_WARM)]
    exchanged = _pursuit(objective, point, units.size + 1)
    if not np.array_equal(exchanged, added):
        trials.append(restricted(objective, exchanged, point, tol=_WARM))
    if np.isfinite(point.value):
        trials.append(point)  # more room never costs anything
    return min(trials, key=lambda trial: trial.value)


def _pursuit(objective: Objective, point: Point, k: int) -> IntArray:
    """Return the support of a gradient step, cut to ``k`` units."""
    g = objective.gradient(point)
    if point.normal is not None:
        g = g + point.normal
    outside = g.copy()
    outside[point.support] = 0.0
    along = np.union1d(point.support, top_k(coordinate_scores(outside), max(1, min(k, g.shape[0]))))
    eta = normalised_step(objective, point, along) or 1.0
    support, _ = project(objective, point.x - eta * g, k=k)
    return support


def _downwards(objective: Objective, restricted: RestrictedSolver, points: list[Point]) -> bool:
    """Drop a unit from each point for the one below; return whether that helped anywhere."""
    changed = False
    for k in range(len(points) - 1, 0, -1):
        above, below = points[k], points[k - 1]
        units = support_units(objective.cardinality, above.support)
        if units.size < k or not np.isfinite(above.value):
            continue
        if budget().over():
            break
        costs = removal_costs(objective, above)
        if costs is None:
            continue
        guess = above.value + float(costs.min())
        if guess >= below.value and objective.quadratic:
            continue  # dropping costs at least that much for a quadratic
        kept = np.delete(units, int(np.argmin(costs)))
        support = objective.cardinality.coordinates(kept)
        if np.array_equal(support, below.support):
            continue
        fewer = restricted(objective, support, above, tol=_WARM)
        if _better(fewer, below):
            points[k - 1] = fewer
            changed = True
    return changed


def _upwards(points: list[Point]) -> None:
    """Let improvements below reach the points above, where they are better.

    Another forward pass from them would cost half a pass each and gains next to nothing.
    """
    for k in range(1, len(points)):
        if points[k - 1].value < points[k].value:
            points[k] = points[k - 1]


def _better(new: Point, old: Point) -> bool:
    if not np.isfinite(old.value):
        return bool(np.isfinite(new.value))
    return bool(new.value < old.value - _LEAST_DECREASE * abs(old.value))
