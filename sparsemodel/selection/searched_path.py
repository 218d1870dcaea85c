"""Solutions for a range of k of any form, by searches from their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from sparsemodel.compiler import Facts, Reduced, backend_for, make_plan
from sparsemodel.compiler.facts.fact_sheet import FactSheet
from sparsemodel.driver import RunOptions, run
from sparsemodel.interfaces import (
    Backend,
    Cardinality,
    FloatArray,
    Form,
    Role,
    SparseRegression,
    Stop,
)
from sparsemodel.numerics import best_units, select
from sparsemodel.numerics.budget import budget
from sparsemodel.selection.path import Followed, PathPoint, Search

F = TypeVar("F", bound=Form)
Thinning = Callable[[F, FloatArray], FloatArray]
"""Takes a point with too many units for a form to one that the form allows."""

_PROGRESS = 1e-9
"""Relative decrease from which on a point replaces another."""


def largest_units(form: Form, x: FloatArray) -> FloatArray:
    """Return ``x`` with its largest units alone, as many as ``form`` allows."""
    out = np.zeros_like(x)
    kept = select(form.cardinality, x)
    out[kept] = x[kept]
    return out


def searched_path(
    form: F,
    ks: Sequence[int],
    facts: Callable[[F], FactSheet],
    how: Search,
    *,
    thinned: Thinning[F] = largest_units,
    limited: Callable[[int], F] | None = None,
) -> Followed:
    """Return a solution for every ``k``, and the passes over the data that they cost.

    Upwards, the search for ``k`` units starts at the solution for fewer, and at the start that the
    backend makes for itself; the better end is kept. In a sweep downwards it starts at the
    solution for more units without some of them. The objective never rises with ``k``. When time
    is up, or on Ctrl-C, the path ends where it is, with one point at least.

    Parameters
    ----------
    ks
        Sorted limits.
    facts
        What is known of the form with a limit.
    how
        Without a backend the roles decide what searches.
    thinned
        What is left of a solution for more units.
    limited
        The form at each ``k``; by default ``form`` with that limit on all that is counted.

    Notes
    -----
    Two searches for each ``k``, and one or two more for each sweep.
    """
    search = _Searches(form, facts, thinned, limited or form.with_limit, how.backend)
    points: list[PathPoint] = []
    for place, k in enumerate(ks):
        if points and search.ended:
            break
        tried = [search.found(k, None)]
        if points and not search.ended:
            tried.append(search.found(k, points[-1].x))
        if place < len(how.near) and not search.ended:
            tried.append(search.found(k, how.near[place].x))
        best = min(tried, key=lambda point: point.value)
        if points and search.ended and points[-1].value < best.value:
            break  # a search cut short, and worse than fewer units
        points.append(best)
    for _ in range(how.sweeps):
        below = search.downwards(points)
        if not (below and search.upwards(points)):
            break
    return Followed(points, search.passes, search.stop)


def limited_path(
    form: SparseRegression,
    ks: Sequence[int],
    along: Mapping[int, Cardinality] | None,
    how: Search,
    known: dict[Hashable, Any],
) -> Followed:
    """Return a solution for every ``k``, by searches from neighbours.

    Parameters
    ----------
    ks
        Sorted.
    along
        The constraint at each ``k``; None limits all that is counted to ``k``, beside the limits on
        parts of it.
    known
        What was computed from the data alone.
    """

    def limited(k: int) -> SparseRegression:
        sparsity = _with_total(form.sparsity, k) if along is None else along[k]
        return replace(form, sparsity=sparsity)

    def facts(part: SparseRegression) -> Facts:
        found = Facts(part, known)
        found.structure()
        return found

    return searched_path(form, ks, facts, how, limited=limited)


def _with_total(sparsity: Cardinality, k: int) -> Cardinality:
    """Return the constraint with ``k`` in all, or as many as the other limits allow."""
    free = sparsity.with_budget(sparsity.units)
    most = best_units(free, np.zeros(sparsity.units)).size + sparsity.forced_units
    return replace(sparsity, k=min(k, most))


class _Searches(Generic[F]):
    """The searches of one path, with the passes over the data that they have cost."""

    def __init__(
        self,
        form: F,
        facts: Callable[[F], FactSheet],
        thinned: Thinning[F],
        limited: Callable[[int], F],
        backend: str | Backend | None,
    ) -> None:
        self._limited, self._facts, self._thinned = limited, facts, thinned
        # One start for each k is enough: neighbours along the path are others.
        self._backend = backend_for(Role.COMPARISON, form) if backend is None else backend
        self.passes = 0.0
        self.stop = Stop.CONVERGED

    @property
    def ended(self) -> bool:
        """Return whether time is up, or somebody interrupted a search."""
        if budget().over() and not self.stop.requested:
            self.stop = Stop.TIME_LIMIT
        return self.stop.requested

    def found(self, k: int, start: FloatArray | None) -> PathPoint:
        """Return what a search finds with ``k`` units from ``start``."""
        form = self._limited(k)
        reduced = Reduced(form, ())
        plan = make_plan(form, reduced, self._facts(form), self._backend)
        limit = budget().limit
        outcome = run(form, reduced, plan, RunOptions(start=start, time_limit=limit))
        self.passes += outcome.passes
        if outcome.stop.requested:
            self.stop = outcome.stop
        return PathPoint(k, outcome.x, outcome.value)

    def downwards(self, points: list[PathPoint]) -> bool:
        """Search from the solutions for more units; return whether that helped anywhere."""
        better = False
        for place in range(len(points) - 2, -1, -1):
            if self.ended:
                break
            above, here = points[place + 1], points[place]
            trial = self.found(here.k, self._thinned(self._limited(here.k), above.x))
            if _improves(trial, here):
                points[place], better = trial, True
        return better

    def upwards(self, points: list[PathPoint]) -> bool:
        """Search from the solutions for fewer units; return whether that helped anywhere."""
        better = False
        for place in range(1, len(points)):
            if self.ended:
                break
            trial = self.found(points[place].k, points[place - 1].x)
            if _improves(trial, points[place]):
                points[place], better = trial, True
        return better


def _improves(trial: PathPoint, on: PathPoint) -> bool:
    return trial.value < on.value - _PROGRESS * (1.0 + abs(on.value))


__all__ = ["Thinning", "largest_units", "limited_path", "searched_path"]
