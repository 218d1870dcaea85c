"""A price on the cardinality, for backends that only know a limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast, final

import numpy as np

from sparsemodel.compiler.adapters.event_relay import EventRelay
from sparsemodel.compiler.adapters.paths_along_k import swept_points
from sparsemodel.compiler.adapters.smoothing import smoothable
from sparsemodel.interfaces import (
    Backend,
    Capabilities,
    Context,
    FloatArray,
    Objective,
    Point,
    Result,
    SparseRegression,
    Stop,
    priced,
)
from sparsemodel.numerics import RegressionObjective, removal_costs, support_units

_FIRST = 32
"""Units of the first path: about as quick as what all of its sizes need to know of the data."""
_BEYOND = 5
"""How many units beyond twice the best number the path goes."""


@final
@dataclass(frozen=True, slots=True)
class Priced(Backend):
    r"""Minimise :math:`f(x) + \gamma\,\mathrm{card}(x)` along a path over the limit ``k``.

    The path grows unit by unit until ``k`` is well beyond the best price on it, and shrinks
    again; units that do not pay for themselves are dropped. Then the backend itself runs for the
    best ``k``, from the point found, and for its neighbours as long as that helps. A unit pays at
    most what the objective can still fall, which bounds ``k``.

    Notes
    -----
    Half a pass a unit for about twice the units of the result, and three runs of the backend.
    """

    inner: Backend

    name: ClassVar[str] = "priced"
    capabilities: ClassVar[Capabilities] = Capabilities(
        smooth=False, box=True, region=True, price=True
    )

    def describe(self) -> str:
        """Return what the adapter does, for ``explain()``."""
        return "the price on the cardinality becomes a search along k"

    def options(self) -> dict[str, Any]:
        return self.inner.options()

    def solve(self, objective: Objective, context: Context) -> Result:
        search = _Search(self.inner, objective, context)
        sparsity = objective.cardinality
        most = min(sparsity.budget, sparsity.units, search.affordable())
        if most > 0:
            search.forward(most)
            search.run(max(search.best_k, 1))
        for step in (1, -1):
            while 1 <= search.best_k + step <= most and search.run(search.best_k + step):
                pass
        return search.result()


@final
class _Search:
    """The runs so far; mutable, the workspace of one solve."""

    def __init__(self, inner: Backend, objective: Objective, context: Context) -> None:
        self._inner, self._objective, self._context = inner, objective, context
        start = context.first_point(objective)
        self.best = self._debiased(start)
        self.best_k = self._count(self.best)
        self.tried: set[int] = {0}
        self.stop = Stop.CONVERGED
        self._iterations = 0
        self._relay = EventRelay(objective, context)
        self._notes: list[str] = []
        self._dual: tuple[FloatArray, ...] | None = None

    def affordable(self) -> int:
        """Return a limit on k: what the objective can fall, over the price."""
        floor = self._objective.infimum()
        room = priced(self._objective, self.best) - floor
        price = self._objective.cardinality.price
        return int(min(room / price, 1e15)) if np.isfinite(room) else int(1e15)

    def forward(self, most: int) -> None:
        """Take the best point of a path, up to twice as many units as that has and a few."""
        form = cast("SparseRegression", self._objective.form)
        limited = replace(form, sparsity=replace(form.sparsity.with_budget(most), price=0.0))
        if not smoothable(limited):
            return
        objective = RegressionObjective(limited, work=self._objective.work)

        # The path goes on until twice as many units as are worth their price are on it.
        reached, points = 0, list[Point]()
        while reached < most and not self._context.limits.expired():
            reached = min(max(2 * reached + _BEYOND, _FIRST), most)
            points = swept_points(limited, objective, self._context.restricted, range(reached + 1))
            best = min(points, key=lambda point: priced(self._objective, point))
            if 2 * self._count(best) + _BEYOND <= reached or len(points) <= reached:
                break
        if points:
            self._take(min(points, key=lambda point: priced(self._objective, point)))

    def _count(self, point: Point) -> int:
        return self._objective.cardinality.count(point.x)

    def _take(self, point: Point) -> bool:
        """Drop what does not pay, and keep the point if that makes it the best."""
        point = self._pruned(self._debiased(point))
        if not priced(self._objective, point) < priced(self._objective, self.best):
            return False
        self.best, self.best_k = point, self._count(point)
        return True

    def run(self, k: int) -> bool:
        """Solve with the limit ``k``; return whether that gave a better point."""
        if k in self.tried or self.stop.breaks_off:
            return False
        self.tried.add(k)
        form = cast("SparseRegression", self._objective.form)
        limited = replace(form, sparsity=replace(form.sparsity.with_budget(k), price=0.0))
        objective = RegressionObjective(limited, work=self._objective.work)
        fits = limited.sparsity.count(self.best.x) <= k
        before = len(self._relay.history)
        context = replace(
            self._relay.listening_to(self._context),
            start=self.best.x if fits else self._context.start,
        )
        found = self._inner.solve(objective, context)
        self._relay.complete(found, before)
        self.stop = found.stop
        self._iterations += found.iterations
        self._notes += [note for note in found.notes if note not in self._notes]
        if not self._take(found.point):
            return False
        self._dual = found.dual
        return True

    def _debiased(self, point: Point) -> Point:
        return self._context.restricted(self._objective, point.support, point)

    def _pruned(self, point: Point) -> Point:
        """Drop units while that lowers the priced objective."""
        objective, price = self._objective, self._objective.cardinality.price
        while True:
            costs = removal_costs(objective, point)
            units = support_units(objective.cardinality, point.support)
            if costs is None or not units.size or costs.min() > price:
                return point
            kept = np.delete(units, int(np.argmin(costs)))
            support = objective.cardinality.coordinates(kept)
            fewer = self._context.restricted(objective, support, point)
            if not priced(objective, fewer) <= priced(objective, point):
                return point
            point = fewer

    def result(self) -> Result:
        return Result(
            self.best,
            self.stop if self.stop.breaks_off else Stop.CONVERGED,
            self._iterations,
            tuple(self._relay.history),
            self._dual,
            tuple(self._notes),
        )
