"""Sparse precision matrices for a range of edges, each from its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparsemodel.compiler import Reduced, backend_for, make_plan
from sparsemodel.compiler.precision_layout import precision_facts
from sparsemodel.compiler.services import objective_of
from sparsemodel.driver import RunOptions, run
from sparsemodel.interfaces import FloatArray, Role, Stop
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics import top_k
from sparsemodel.numerics.budget import budget
from sparsemodel.numerics.precision import precision_state, removal_costs
from sparsemodel.selection.path import Followed, PathPoint

_PROGRESS = 1e-9
"""Relative decrease from which on a point replaces another."""


def solve_precision_path(form: SparsePrecision, ks: Sequence[int], *, sweeps: int = 1) -> Followed:
    """Return a matrix for every number of edges ``k``, and the passes over ``S`` that they cost.

    Upwards, the search for ``k`` edges starts at the matrix for fewer, filled up with the edges
    that gain most, and at the start the backend makes for itself; the better end is kept. In a
    sweep downwards it starts at the matrix for more edges without the cheapest ones. The
    objective never rises with ``k``. When time is up, or on Ctrl-C, the path ends where it is, with
    one matrix at least.

    Parameters
    ----------
    ks
        Sorted numbers of edges.
    sweeps
        How often improvements are carried down and up again.

    Notes
    -----
    Two searches per number of edges, and one or two more per sweep.
    """
    search = _Search(form)
    points: list[PathPoint] = []
    for k in ks:
        if points and search.ended:
            break
        tried = [search.found(k, None)]
        if points and not search.ended:
            tried.append(search.found(k, points[-1].x))
        best = min(tried, key=lambda point: point.value)
        if points and search.ended and points[-1].value < best.value:
            break  # a search cut short, and worse than fewer edges
        points.append(best)
    for _ in range(sweeps):
        below = search.downwards(points)
        if not (below and search.upwards(points)):
            break
    return Followed(points, search.passes, search.stop)


class _Search:
    """The searches of one path, with the passes over the covariance that they have cost."""

    def __init__(self, form: SparsePrecision) -> None:
        self._form = form
        # One start for each number of edges is enough: neighbours along the path are others.
        self._search = backend_for(Role.COMPARISON, form)
        self.passes = 0.0
        self.stop = Stop.CONVERGED

    @property
    def ended(self) -> bool:
        """Return whether time is up, or somebody interrupted a search."""
        if budget().over() and not self.stop.requested:
            self.stop = Stop.TIME_LIMIT
        return self.stop.requested

    def found(self, k: int, start: FloatArray | None) -> PathPoint:
        """Return what exchanges of edges find with ``k`` edges from ``start``."""
        form = replace(self._form, sparsity=replace(self._form.sparsity, k=k))
        reduced = Reduced(form, ())
        plan = make_plan(form, reduced, precision_facts(form), self._search)
        left = budget()
        limit = None if left.deadline is None else max(left.left, 0.0)
        outcome = run(form, reduced, plan, RunOptions(start=start, time_limit=limit))
        self.passes += outcome.passes
        if outcome.stop.requested:
            self.stop = outcome.stop
        return PathPoint(k, outcome.x, outcome.value)

    def downwards(self, points: list[PathPoint]) -> bool:
        """Search from the next larger graphs; return whether that helped anywhere."""
        better = False
        for place in range(len(points) - 2, -1, -1):
            if self.ended:
                break
            above, here = points[place + 1], points[place]
            trial = self.found(here.k, self._thinned(above.x, here.k))
            if _improves(trial, here):
                points[place], better = trial, True
        return better

    def upwards(self, points: list[PathPoint]) -> bool:
        """Search from the next smaller graphs; return whether that helped anywhere."""
        better = False
        for place in range(1, len(points)):
            if self.ended:
                break
            trial = self.found(points[place].k, points[place - 1].x)
            if _improves(trial, points[place]):
                points[place], better = trial, True
        return better

    def _thinned(self, x: FloatArray, k: int) -> FloatArray:
        """Return ``x`` without its cheapest counted edges, down to ``k`` of them."""
        form = self._form
        chosen = np.flatnonzero(form.sparsity.counted & (x != 0.0))
        if chosen.size <= k:
            return x
        objective = objective_of(form)
        _, factor = precision_state(objective, objective.point_from(x))
        rows, cols = form.rows[chosen], form.cols[chosen]
        costs = removal_costs(form.covariance, factor.omega, factor.inverse, rows, cols)
        out = x.copy()
        out[np.delete(chosen, top_k(costs, k))] = 0.0
        return out


def _improves(trial: PathPoint, on: PathPoint) -> bool:
    return trial.value < on.value - _PROGRESS * (1.0 + abs(on.value))


__all__ = ["solve_precision_path"]
