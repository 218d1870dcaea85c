"""Bounds that turn out to be met anyway: a search without them first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast, final

import numpy as np

from sparsemodel.compiler.adapters.event_relay import EventRelay
from sparsemodel.interfaces import (
    Backend,
    Capabilities,
    Context,
    Iteration,
    Objective,
    Result,
    SparseRegression,
)
from sparsemodel.losses import SquaredLoss
from sparsemodel.numerics import RegressionObjective, satisfied


def may_be_left_out(form: SparseRegression) -> bool:
    """Return whether a search without the constraints is quick, and may end within them.

    A squared loss has a minimum without them. Under linear equations it is hardly ever within.
    """
    box, region = form.box, form.region
    equations = region is not None and any(
        np.array_equal(part.lower, part.upper) for part in region.linear
    )
    mild = not equations and (box is None or box.least is None)
    squared = all(isinstance(term.loss, SquaredLoss) for term in form.terms)
    quick = squared and form.sparsity.plain and not form.sparsity.priced
    return form.constrained and mild and quick and satisfied(form, np.zeros(form.shape), 0.0)


@final
@dataclass(frozen=True, slots=True)
class WithoutBounds(Backend):
    """Run a backend without the constraints; where its point breaks one, another one with them.

    A support that is best without them is best with them if its minimiser keeps them. Else the
    other backend begins at the minimiser on that support that keeps them. Where both are the same
    search, its first point that breaks a constraint ends the run without them: its way parts there.
    """

    inner: Backend
    """Searches without the constraints."""
    otherwise: Backend
    """Searches with them."""

    name: ClassVar[str] = "without_bounds"
    capabilities: ClassVar[Capabilities] = Capabilities(box=True, region=True)

    def describe(self) -> str:
        """Return what the adapter does, for ``explain()``."""
        return "constraints are left out until a point breaks them"

    def options(self) -> dict[str, Any]:
        return self.otherwise.options()

    def solve(self, objective: Objective, context: Context) -> Result:
        form = cast("SparseRegression", objective.form)
        easier = RegressionObjective(replace(form, box=None, region=None), work=objective.work)
        relay = EventRelay(objective, context)
        watch = _Watch(form, relay, ends_run=self.inner is self.otherwise)
        first = self.inner.solve(easier, replace(context, on_iterate=watch, proof=None))
        start = context.start
        if not watch.is_ended:
            point = context.restricted(objective, first.point.support, objective.origin())
            if first.stop.requested or satisfied(form, first.point.x, 0.0):
                return replace(first, point=point, history=tuple(relay.history), dual=None)
            start = point.x if np.isfinite(point.value) else start
        before = len(relay.history)
        result = self.otherwise.solve(objective, replace(relay.listening_to(context), start=start))
        relay.complete(result, before)
        return replace(result, iterations=len(relay.history), history=tuple(relay.history))


@final
class _Watch:
    """Passes on iterations that keep the constraints of a form.

    Attributes
    ----------
    is_ended
        Whether a point broke one, and that ended the run.
    """

    def __init__(self, form: SparseRegression, relay: EventRelay, ends_run: bool) -> None:
        self._form, self._relay, self._ends_run = form, relay, ends_run
        self.is_ended = False

    def __call__(self, event: Iteration) -> bool:
        x = np.zeros(self._form.shape)
        x[event.support] = event.values
        if satisfied(self._form, x, 0.0):
            return self._relay(event)
        self.is_ended = self._ends_run
        return self.is_ended
