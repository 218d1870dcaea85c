"""Solutions for a range of k of any form, by searches from their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from sparsemodel.compiler.choice.all_supports import all_tried
from sparsemodel.compiler.choice.dispatch import backend_for, make_plan
from sparsemodel.compiler.choice.effort import Effort
from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.facts.fact_sheet import FactSheet
from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.driver import RunOptions, run
from sparsemodel.interfaces import (
    Cardinality,
    FloatArray,
    Form,
    Role,
    SparseRegression,
    Stop,
)
from sparsemodel.numerics import best_units, select
from sparsemodel.numerics.budget import budget
from sparsemodel.progress import counted
from sparsemodel.selection.path import PathPoint, PathResult, Search

F = TypeVar("F", bound=Form)
Thinning = Callable[[F, FloatArray], FloatArray]
"""Takes a point with too many units for a form to one that the form allows."""

_LEVEL: dict[Effort, Effort] = {"low": "low", "medium": "low", "high": "medium"}
"""How long to search from a neighbour, which is a good start."""
LITTLE = 10_000
"""Prices of exchanges at a time (``k p``) up to which sweeps take little."""
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
    grown: PathResult | None = None,
    gradient: FloatArray | None = None,
    descended: bool = False,
) -> PathResult:
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
        Without a backend the roles decide what searches; where none compares candidates, each
        ``k`` is searched as a solve for it is.
    thinned
        What is left of a solution for more units.
    limited
        The form at each ``k``; by default ``form`` with that limit on all that is counted.
    grown
        A path that was found otherwise: upwards there is one search for each of its points, from
        that or from the solution for fewer units, and points that time does not allow for stay.
    gradient
        That of ``form`` at zero, where it is known.
    descended
        Whether no exchange improves the points of ``grown``: no search begins there.

    Notes
    -----
    Two searches for each ``k`` (one where the path is ``grown``), and one or two more for each
    sweep, which are left out where a search has begun at the same support.
    """
    search = _Searches(form, facts, thinned, limited or form.with_limit, how, gradient)
    if grown is None:
        points = _fresh(search, ks, how.near)
    else:
        search.passes, search.stop = grown.passes, grown.stop
        points = search.onwards(grown, descended=descended)
    carried = grown is None or search.carries(max(ks))
    for _ in range(how.sweeps if carried else 0):
        below = search.downwards(points)
        if not (below and search.upwards(points)):
            break
    return PathResult(points, search.passes, search.stop)


def _neighbourhood(*problem: Any) -> Any:
    """Return the best point on some units; only searches within linked constraints need it."""
    from sparsemodel.certificates.proving.neighbourhood import best_within

    return best_within(*problem)


def _fresh(search: _Searches[Any], ks: Sequence[int], near: Sequence[PathPoint]) -> list[PathPoint]:
    """Return what is found for each ``k`` from nothing, from fewer units and from ``near``."""
    points: list[PathPoint] = []
    for place, k in enumerate(counted(ks, "size")):
        if points and search.ended:
            break
        tried = [search.found(k, None)]
        if search.final(k):
            points.append(tried[0])
            continue
        if points and not search.ended:
            tried.append(search.found(k, points[-1].x))
        if place < len(near) and not search.ended:
            tried.append(search.found(k, near[place].x))
        best = min(tried, key=_value)
        if points and search.ended and points[-1].value < best.value:
            break  # a search cut short, and worse than fewer units
        points.append(best)
    return points


def limited_path(
    form: SparseRegression,
    ks: Sequence[int],
    along: Mapping[int, Cardinality] | None,
    how: Search,
    known: dict[Hashable, Any],
) -> PathResult:
    """Return a solution for every ``k``, by searches from neighbours.

    Parameters
    ----------
    ks
        Sorted.
    along
        The constraint at each ``k``; None limits all that is counted to ``k``, beside the limits on
        parts of it and costs.
    known
        What was computed from the data alone.
    """

    def limited(k: int) -> SparseRegression:
        sparsity = _with_total(form.sparsity, k) if along is None else along[k]
        return replace(form, sparsity=sparsity)

    return searched_path(form, ks, lambda part: Facts(part, known), how, limited=limited)


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
        how: Search,
        gradient: FloatArray | None,
    ) -> None:
        self._limited, self._facts, self._thinned = limited, facts, thinned
        self._gradient, self._effort = gradient, how.effort
        # One start for each k is enough: neighbours along the path are others.
        self._compares = how.backend is None
        self._backend = backend_for(Role.COMPARISON, form) if self._compares else how.backend
        self._begun: set[tuple[int, bytes]] = set()
        self._exhausted: frozenset[int] = frozenset()  # sizes of which all supports were tried
        self.passes = 0.0
        self.stop = Stop.CONVERGED

    def final(self, k: int) -> bool:
        """Return whether nothing is left to search with ``k`` units."""
        return k in self._exhausted and not self.ended

    @property
    def ended(self) -> bool:
        """Return whether time is up, or a search was interrupted."""
        if budget().over() and not self.stop.requested:
            self.stop = Stop.TIME_LIMIT
        return self.stop.requested

    def found(self, k: int, start: FloatArray | None, effort: Effort | None = None) -> PathPoint:
        """Return what a search finds with ``k`` units from ``start``."""
        form = self._limited(k)
        reduced = Reduced(form, (), self._gradient)
        effort = self._effort if effort is None else effort
        backend = self._backend
        if start is None and self._compares and all_tried(form, effort):
            backend, self._exhausted = None, self._exhausted | {k}
        plan = make_plan(form, reduced, self._facts(form), backend, effort=effort)
        if start is not None:
            self._begun.add((k, _support(start)))
            plan = plan.from_near() if backend is None else plan
        limit = budget().limit
        options = RunOptions(start=start, time_limit=limit, neighbourhood=_neighbourhood)
        outcome = run(form, reduced, plan, options)
        self._begun.add((k, _support(outcome.x)))
        self.passes += outcome.passes
        if outcome.stop.requested:
            self.stop = outcome.stop
        return PathPoint(k, outcome.x, outcome.value)

    def onwards(self, grown: PathResult, *, descended: bool) -> list[PathPoint]:
        """Return the points, each searched further from itself or from the one before it.

        Without a backend each ``k`` is also searched alone, as a solve does it.
        """
        out: list[PathPoint] = []
        for point in counted(grown.points, "size"):
            best = point
            if out and out[-1].value < point.value:
                best = replace(out[-1], k=point.k)
            tried = [best]
            if self._backend is None and point.k > 0 and not self.ended:
                tried.append(self.found(point.k, None))
            ahead = not descended and (len(tried) == 1 or _improves(best, tried[1]))
            if ahead and point.k > 0 and not self.ended:
                tried.append(self.found(point.k, best.x, _LEVEL[self._effort]))
            out.append(min(tried, key=_value))
        return out

    def carries(self, k: int) -> bool:
        """Return whether a grown path gains more by sweeps than they cost."""
        form = self._limited(k)
        quadratic = isinstance(form, SparseRegression) and form.traits.quadratic
        return quadratic or 0 < k * form.cardinality.units <= LITTLE

    def downwards(self, points: list[PathPoint]) -> bool:
        """Search from the solutions for more units; return whether that helped anywhere."""
        better = False
        for place in counted(range(len(points) - 2, -1, -1), "going back, size"):
            if self.ended:
                break
            above, here = points[place + 1], points[place]
            start = self._thinned(self._limited(here.k), above.x)
            better |= self._retried(points, place, start)
        return better

    def upwards(self, points: list[PathPoint]) -> bool:
        """Search from the solutions for fewer units; return whether that helped anywhere."""
        better = False
        for place in counted(range(1, len(points)), "again, size"):
            if self.ended:
                break
            better |= self._retried(points, place, points[place - 1].x)
        return better

    def _retried(self, points: list[PathPoint], place: int, start: FloatArray) -> bool:
        """Search again from ``start``, keep what is better, and return whether it is."""
        here = points[place]
        if here.k in self._exhausted or (here.k, _support(start)) in self._begun:
            return False
        trial = self.found(here.k, start, "low")
        if not _improves(trial, here):
            return False
        points[place] = trial
        return True


def _improves(trial: PathPoint, on: PathPoint) -> bool:
    return trial.value < on.value - _PROGRESS * (1.0 + abs(on.value))


def _value(point: PathPoint) -> float:
    return point.value


def _support(x: FloatArray) -> bytes:
    return np.flatnonzero(x).tobytes()
