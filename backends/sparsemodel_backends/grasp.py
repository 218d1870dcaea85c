"""Gradient support pursuit; for the squared loss, CoSaMP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    IterativeBackend,
    Objective,
    Point,
    Role,
    Stop,
    TwiceDifferentiable,
    check_options,
)
from sparsemodel.interfaces.self_description import Theorem
from sparsemodel.numerics import GreedySupport, relative_change
from sparsemodel_backends.theorems.tight import THEOREM_07


@final
@dataclass(frozen=True, slots=True, eq=False)
class GraSPState:
    """An iterate, and how the last iteration moved it."""

    point: Point
    support: GreedySupport
    change: float = np.inf
    best: float = np.inf
    worse: int = 0
    """Iterations since the best value."""
    gradient: float = 0.0


@final
@dataclass(frozen=True, slots=True)
class GraSP(IterativeBackend[GraSPState]):
    r"""Merge the support with the ``2k`` largest gradients, minimise, keep the ``k`` largest.

    :math:`Z = \mathrm{supp}_{2k}(\nabla f(x))`,
    :math:`b = \arg\min\{f : \mathrm{supp} \subseteq Z \cup \mathrm{supp}(x)\}`,
    :math:`x = H_k(b)` (Bahmani, Raj and Boufounos 2013, Algorithm 1). For the squared loss this
    is CoSaMP (Needell and Tropp 2009).

    Parameters
    ----------
    debias
        Minimise over the support after pruning, a variant that the authors describe and that is
        never worse from one iteration to its own result. False is the algorithm as printed.
    scaled
        Compare gradients and coefficients as if all columns had unit norm. False takes them as
        they are.
    tol
        Stops when the relative change of ``x`` falls below it.
    max_iter
        Iteration limit.
    patience
        Iterations without a better value after which the run ends (the iteration may cycle).

    Notes
    -----
    One gradient and a restricted minimisation over at most ``3k`` units an iteration. ``3k``
    columns should be independent, or regularised by a ridge: with fewer observations than that
    the merged problem is solved by interpolation and the iterates mean little.

    Literal mode does not debias and compares :math:`|g_i|` and :math:`|x_j|`.
    """

    debias: bool = True
    scaled: bool = True
    tol: float = 1e-8
    max_iter: int = 500
    patience: int = 20

    name: ClassVar[str] = "grasp"
    reference: ClassVar[str] = "Bahmani, Raj and Boufounos (JMLR 2013), Algorithm 1"
    guarantee: ClassVar[str] = (
        "as published, halves the distance to a k-sparse x* in each iteration, up to its gradient, "
        "when the Hessian restricted to 4k coordinates is conditioned by (1 + sqrt 3) / 2 "
        "(Bahmani, Raj and Boufounos 2013, Theorem 1)"
    )
    roles: ClassVar[frozenset[Role]] = frozenset({Role.MERGES})
    published: ClassVar[Mapping[str, Any] | None] = {
        "debias": False,
        "scaled": False,
        "tol": 0.0,
        "patience": 2**62,
    }
    capabilities: ClassVar[Capabilities] = Capabilities(facets=(TwiceDifferentiable,), box=True)

    def theorems(self) -> tuple[Theorem, ...]:
        return (THEOREM_07,)

    def __post_init__(self) -> None:
        check_options(self, tol="at least 0")

    def init(self, objective: Objective, context: Context) -> GraSPState:
        support = GreedySupport(objective, context.restricted, scaled=self.scaled)
        point = support.start(context.start)
        return GraSPState(point, support, best=point.value)

    def step(self, objective: Objective, state: GraSPState, context: Context) -> GraSPState:
        point = state.point
        if self.debias:
            following = state.support.merged(point)
            following = context.restricted(objective, following.support, following)
        else:
            following = state.support.merged(point, tol=None)
        return GraSPState(
            following,
            state.support,
            change=relative_change(following.x, point.x),
            best=min(state.best, following.value),
            worse=0 if following.value < state.best else state.worse + 1,
            gradient=float(np.abs(objective.gradient(point)).max(initial=0.0)),
        )

    def residual(self, state: GraSPState) -> float:
        return state.change

    def stopped(self, objective: Objective, state: GraSPState) -> Stop | None:
        if not np.isfinite(state.gradient):
            return Stop.NON_FINITE
        if state.change <= self.tol:
            return Stop.CONVERGED
        return Stop.STALLED if state.worse >= self.patience else None
