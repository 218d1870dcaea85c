"""Generalised orthogonal matching pursuit: several coordinates an iteration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    FloatArray,
    IterativeBackend,
    Objective,
    Point,
    Role,
    Stop,
    TwiceDifferentiable,
    check_options,
    coordinate_scores,
)
from sparsemodel.numerics import support_units, top_k


@final
@dataclass(frozen=True, slots=True, eq=False)
class GOMPState:
    """An iterate, with what its support may still take."""

    point: Point
    room: int
    """Units that may still enter."""
    block: int
    """Units that enter in an iteration."""


@final
@dataclass(frozen=True, slots=True)
class GOMP(IterativeBackend[GOMPState]):
    r"""Add the ``block`` coordinates with the largest gradients, minimise on the support, repeat.

    Wang, Kwon and Shim, Generalized Orthogonal Matching Pursuit, IEEE Transactions on Signal
    Processing (2012), Table I, for any twice differentiable loss. A group enters by the norm of
    its gradient. Where classes are nearly separable this reaches objectives that
    thresholding methods do not, at a small part of the cost of one coordinate at a time.

    Parameters
    ----------
    block
        Units an iteration; None takes ``ceil(k / 20)``.

    Notes
    -----
    ``ceil(k / block)`` gradients, and as many warm-started restricted minimisations, to a low
    accuracy but for the last. A start that leaves room is continued, a full one returned.

    Literal mode is the default, with ``block`` the paper's ``N``; the paper goes on beyond ``k``
    units while a residual is left, and here they are the end.
    """

    block: int | None = None

    name: ClassVar[str] = "gomp"
    reference: ClassVar[str] = "Wang, Kwon and Shim (2012), Table I"
    guarantee: ClassVar[str] = (
        "recovers every k-sparse vector from noiseless data when the restricted isometry constant "
        "of order k N is below sqrt(N) / (sqrt(k) + 3 sqrt(N)), N the block (Wang, Kwon and Shim "
        "2012)"
    )
    purpose: ClassVar[str] = "adds several coordinates a pass, so that many are in after few passes"
    roles: ClassVar[frozenset[Role]] = frozenset({Role.GREEDY})
    published: ClassVar[Mapping[str, Any] | None] = {}
    capabilities: ClassVar[Capabilities] = Capabilities(facets=(TwiceDifferentiable,), box=True)
    default_max_iter: ClassVar[int] = 2**62

    def __post_init__(self) -> None:
        check_options(self, block="at least 1 or None")

    def init(self, objective: Objective, context: Context) -> GOMPState:
        sparsity = objective.cardinality
        k = min(sparsity.budget, sparsity.units)
        start = context.first_point(objective)
        if start.support.size == sparsity.free.size:
            start = _with_free(objective, start, context)
        room = k - sparsity.count(start.x)
        return GOMPState(start, room, self.block or max(1, -(-k // 20)))

    def step(self, objective: Objective, state: GOMPState, context: Context) -> GOMPState:
        sparsity = objective.cardinality
        scores = _scores(objective, state.point)
        # By the support, not by what is nonzero: after a rough solve an entry may still be zero,
        # and it must not use up the room a second time.
        used = support_units(sparsity, state.point.support)
        units = sparsity.unit_scores(scores)
        units[used] = -1.0
        entering = top_k(units, min(state.block, state.room))
        support = sparsity.coordinates(np.union1d(used, entering))
        room = state.room - entering.size
        tol = None if room == 0 else 1e-3
        point = context.restricted(objective, support, state.point, tol=tol)
        return GOMPState(point, room, state.block)

    def stopped(self, objective: Objective, state: GOMPState) -> Stop | None:
        return Stop.CONVERGED if state.room <= 0 else None


def _with_free(objective: Objective, start: Point, context: Context) -> Point:
    # The intercept first: gradients at zero would select what imitates it.
    return context.restricted(objective, start.support, start) if start.support.size else start


def _scores(objective: Objective, point: Point) -> FloatArray:
    return coordinate_scores(objective.gradient(point))
