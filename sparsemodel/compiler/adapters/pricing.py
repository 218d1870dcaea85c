"""A price on the cardinality, for backends that only know a limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast, final

import numpy as np

from sparsemodel.interfaces import (
    Backend,
    Capabilities,
    Context,
    FloatArray,
    Iteration,
    Objective,
    Point,
    Result,
    SparseRegression,
    Stop,
    priced,
)
from sparsemodel.numerics import RegressionObjective, removal_costs, support_units

_PATIENCE = 2
"""Doublings of k without a better price before the search turns back."""


@final
@dataclass(frozen=True, slots=True)
class Priced(Backend):
    r"""Minimise :math:`f(x) + \gamma\,\mathrm{card}(x)` as a search over the limit ``k``.

    ``k`` doubles until the priced objective stops falling, then the interval around the best one
    is halved; each run starts from the best point so far. Units that do not pay for themselves
    are dropped after each run. A unit pays at most what the objective can still fall, which
    bounds ``k``.
    """

    inner: Backend

    name: ClassVar[str] = "priced"
    capabilities: ClassVar[Capabilities] = Capabilities(
        smooth=False, box=True, region=True, price=True
    )

    def describe(self) -> str:
        """Return what the adapter does, for ``explain()``."""
        return "the price on the cardinality becomes a search over k"

    def options(self) -> dict[str, Any]:
        return self.inner.options()

    def solve(self, objective: Objective, context: Context) -> Result:
        search = _Search(self.inner, objective, context)
        sparsity = objective.cardinality
        most = min(sparsity.k, sparsity.units, search.affordable())
        k, worse = 1, 0
        while most > 0 and worse < _PATIENCE and not search.ended:
            worse = 0 if search.run(min(k, most)) else worse + 1
            if k >= most:
                break
            k *= 2
        step = max(search.best_k // 2, 1)
        while step >= 1 and not search.ended:
            around = [search.best_k - step, search.best_k + step]
            moved = [search.run(trial) for trial in around if 1 <= trial <= most]
            if not any(moved):
                step //= 2
        return search.result()


@final
class _Search:
    """The runs so far; mutable, the workspace of one solve."""

    def __init__(self, inner: Backend, objective: Objective, context: Context) -> None:
        self._inner, self._objective, self._context = inner, objective, context
        start = objective.origin() if context.start is None else objective.point_from(context.start)
        self.best = self._settled(start)
        self.best_k = 0
        self.tried: set[int] = {0}
        self.stop = Stop.CONVERGED
        self._iterations = 0
        self._history: list[Iteration] = []
        self._notes: list[str] = []
        self._dual: tuple[FloatArray, ...] | None = None

    @property
    def ended(self) -> bool:
        return self.stop in (Stop.TIME_LIMIT, Stop.CALLBACK, Stop.INTERRUPTED, Stop.NON_FINITE)

    def affordable(self) -> int:
        """Return a limit on k: what the objective can fall, over the price."""
        floor = self._objective.infimum()
        room = priced(self._objective, self.best) - floor
        price = self._objective.cardinality.price
        return int(min(room / price, 1e15)) if np.isfinite(room) else int(1e15)

    def run(self, k: int) -> bool:
        """Solve with the limit ``k``; return whether that gave a better point."""
        if k in self.tried or self.ended:
            return False
        self.tried.add(k)
        form = cast("SparseRegression", self._objective.form)
        limited = replace(form, sparsity=replace(form.sparsity, k=k, price=0.0))
        objective = RegressionObjective(limited)
        fits = limited.sparsity.count(self.best.x) <= k
        context = replace(self._context, start=self.best.x if fits else self._context.start)
        found = self._inner.solve(objective, context)
        self._objective.passes += objective.passes
        self._objective.factorizations += objective.factorizations
        self.stop = found.stop
        self._iterations += found.iterations
        self._history += found.history
        self._notes += [note for note in found.notes if note not in self._notes]
        point = self._pruned(self._settled(found.point))
        if not priced(self._objective, point) < priced(self._objective, self.best):
            return False
        self.best, self.best_k, self._dual = point, k, found.dual
        return True

    def _settled(self, point: Point) -> Point:
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
            self.stop if self.ended else Stop.CONVERGED,
            self._iterations,
            tuple(self._history),
            self._dual,
            tuple(self._notes),
        )


__all__ = ["Priced"]
