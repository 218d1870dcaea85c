"""Forward selection of edges with backward steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    IntArray,
    IterativeBackend,
    Objective,
    Point,
    Prior,
    Role,
    Stop,
    check_options,
)
from sparsemodel.interfaces.precision import JointPrecision, SparsePrecision
from sparsemodel.numerics.precision import active_bounds, precision_states
from sparsemodel_backends.precision._search import edge_scores, objective_weight, with_edges
from sparsemodel_backends.precision.fbs import best_edges

_NONE: IntArray = np.empty(0, dtype=np.intp)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrecisionFoBaState:
    """The optimum on the edges chosen so far, with what the forward steps gained."""

    point: Point
    gains: tuple[float, ...] = ()
    """Gain in nats of the forward step that reached each number of edges."""
    forward: bool = True
    done: bool = False
    polished: bool = False


@final
@dataclass(frozen=True, slots=True)
class PrecisionFoBa(IterativeBackend[PrecisionFoBaState]):
    r"""Add the best edge; drop edges while that costs less than half of what adding gained.

    The adaptive forward-backward greedy algorithm (Zhang 2008), applied to Gaussian graphical
    models by Jalali, Johnson and Ravikumar (2011). The gain :math:`\delta_s` of the step to ``s``
    edges is remembered; a removal from ``s`` edges is kept while it costs less than
    ``ratio * delta_s``. Nothing is removed where an eigenvalue bound is active: every solve then
    takes a hundred times as long.

    Parameters
    ----------
    ratio
        In (0, 1).
    batch
        Edges added at a time; each backward step removes one.
    tol
        Accuracy of the restricted solves on the way, as a Newton decrement; the last one is exact.
    max_iter
        Limit on the number of forward and backward steps.

    Notes
    -----
    Literal mode solves exactly on the way, too.
    """

    ratio: float = 0.5
    batch: int = 1
    tol: float = 0.1
    max_iter: int = 1_000_000

    name: ClassVar[str] = "precision_foba"
    reference: ClassVar[str] = "Jalali, Johnson and Ravikumar (NeurIPS 2011); Zhang (2008)"
    guarantee: ClassVar[str] = (
        "ends, because a removal costs less than half of what the additions gained; "
        "how far the best support is has not been proved"
    )
    purpose: ClassVar[str] = "adds edges one by one, drops those that stop paying: another start"
    roles: ClassVar[frozenset[Role]] = frozenset({Role.GREEDY})
    prior: ClassVar[Prior | None] = Prior(close=0.55, excess=0.015)
    published: ClassVar[Mapping[str, Any] | None] = {"tol": 1e-13}
    capabilities: ClassVar[Capabilities] = Capabilities(
        forms=(SparsePrecision, JointPrecision), groups=False
    )

    def __post_init__(self) -> None:
        check_options(self, ratio="in (0, 1)", batch="at least 1", tol="positive")

    def init(self, objective: Objective, context: Context) -> PrecisionFoBaState:
        point = context.first_point(objective)
        counted = np.setdiff1d(point.support, objective.cardinality.free, assume_unique=True)
        return PrecisionFoBaState(point, gains=(0.0,) * int(counted.size))

    def step(
        self, objective: Objective, state: PrecisionFoBaState, context: Context
    ) -> PrecisionFoBaState:
        if state.done:
            exact = context.restricted(objective, state.point.support, state.point)
            return replace(state, point=exact, polished=True)
        if not state.forward:
            return self._backward(objective, state, context)
        point = state.point
        sparsity = objective.cardinality
        room = min(sparsity.budget, sparsity.units) - len(state.gains)
        if room <= 0:
            return replace(state, done=True)
        added = best_edges(objective, point, min(self.batch, room), "gain")
        support = with_edges(point.support, added, _NONE)
        following = context.restricted(objective, support, point, tol=self.tol)
        gain = max(0.0, point.value - following.value) / objective_weight(objective)
        gains = state.gains + (gain / added.size,) * int(added.size)
        slow = any(
            active_bounds(factor, part.alpha, part.beta)
            for _, part, factor in precision_states(objective, following)
        )
        return PrecisionFoBaState(following, gains, forward=slow)

    def _backward(
        self, objective: Objective, state: PrecisionFoBaState, context: Context
    ) -> PrecisionFoBaState:
        """Remove the cheapest edge when that is worth it; otherwise go forward again."""
        forward = replace(state, forward=True)
        scores = edge_scores(objective, state.point)
        limit = self.ratio * state.gains[-1]
        # The score bounds the cost from above: the other entries adapt, too.
        if len(state.gains) < 2 or not scores.costs.min(initial=np.inf) < 2.0 * limit:
            return forward
        removed = scores.inside[[int(np.argmin(scores.costs))]]
        support = with_edges(state.point.support, _NONE, removed)
        following = context.restricted(objective, support, state.point, tol=self.tol)
        cost = (following.value - state.point.value) / objective_weight(objective)
        if not cost < limit:
            return forward
        return PrecisionFoBaState(following, state.gains[:-1], forward=False)

    def stopped(self, objective: Objective, state: PrecisionFoBaState) -> Stop | None:
        return Stop.CONVERGED if state.polished else None
