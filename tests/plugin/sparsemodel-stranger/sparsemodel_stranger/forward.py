"""Forward selection."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    IterativeBackend,
    Objective,
    Point,
    Stop,
    TwiceDifferentiable,
    coordinate_scores,
)


@final
@dataclass(frozen=True, slots=True)
class Forward(IterativeBackend[Point]):
    """Add the unit with the largest gradient, minimise on the support, repeat."""

    name: ClassVar[str] = "forward"
    reference: ClassVar[str] = "folklore"
    capabilities: ClassVar[Capabilities] = Capabilities(facets=(TwiceDifferentiable,))

    def init(self, objective: Objective, context: Context) -> Point:
        start = context.first_point(objective)
        return context.restricted(objective, start.support, start)

    def step(self, objective: Objective, state: Point, context: Context) -> Point:
        sparsity = objective.cardinality
        scores = coordinate_scores(objective.gradient(state))
        scores[state.support] = 0.0
        best = np.argmax(sparsity.unit_scores(scores))
        units = np.append(sparsity.active_units(state.x), best)
        return context.restricted(objective, sparsity.coordinates(units), state)

    def iterate(self, state: Point) -> Point:
        return state

    def stopped(self, objective: Objective, state: Point) -> Stop | None:
        sparsity = objective.cardinality
        room = sparsity.count(state.x) < min(sparsity.budget, sparsity.units)
        rest = np.delete(objective.gradient(state), state.support, axis=0) if room else np.zeros(1)
        return None if np.any(rest) else Stop.CONVERGED
