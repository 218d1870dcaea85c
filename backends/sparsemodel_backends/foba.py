"""Forward-backward greedy selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    IterativeBackend,
    Objective,
    Point,
    Stop,
    TwiceDifferentiable,
    check_options,
)
from sparsemodel.numerics import GreedySupport, support_units


@final
@dataclass(frozen=True, slots=True, eq=False)
class FoBaState:
    """A minimiser over its support, with the gain that each size of the support brought."""

    point: Point
    support: GreedySupport
    gains: tuple[float, ...]
    """``delta+`` of each forward step that was not taken back."""
    first: float
    """The gain of the first forward step."""
    restart: bool = False
    done: bool = False
    finite: bool = True


@final
@dataclass(frozen=True, slots=True)
class FoBa(IterativeBackend[FoBaState]):
    r"""Forward steps as in matching pursuit, each followed by removals that cost little.

    Forward: add :math:`\arg\max_{i \notin S} |\nabla_i f(x)|`, minimise over the support, with
    the gain :math:`\delta^+`. Backward: while dropping some coordinate (and minimising over the
    others) raises ``f`` by less than :math:`\nu\, \delta^+` of the current size, drop it.

    Parameters
    ----------
    nu
        Fraction of the gain that a removal may give back, in [0, 1).
    tol
        Stops early when a forward step gains less than ``tol`` times the first one.
    scaled
        Compare gradients as if all columns had unit norm. False takes them as they are.
    max_iter
        Forward steps at most.

    Notes
    -----
    One gradient per forward step, plus ``O(n k + k^2)`` per change of the support for the squared
    loss, where the costs of removals are exact; a restricted minimisation and a quadratic model
    of the costs for others. Ends when the support is full.

    Literal mode compares :math:`|g_i|`; ``tol`` (times the first gain) is the paper's
    :math:`\epsilon`. It is the printed algorithm for squared losses, which the paper is about; for
    others the quadratic model may remove another unit than the one that is cheapest.
    """

    nu: float = 0.5
    tol: float = 1e-12
    scaled: bool = True
    max_iter: int = 100_000

    name: ClassVar[str] = "foba"
    reference: ClassVar[str] = "Zhang (2008; IEEE Trans. Information Theory 2011)"
    guarantee: ClassVar[str] = (
        "finds the support of a sparse x* from O(s* log p) observations when restricted "
        "eigenvalues and the smallest coefficient are bounded below (Zhang 2011, Theorem 1)"
    )
    purpose: ClassVar[str] = "adds coordinates one by one and drops those that stop paying"
    published: ClassVar[Mapping[str, Any] | None] = {"scaled": False, "nu": 0.5}
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(TwiceDifferentiable,), box=True, price=True
    )

    def __post_init__(self) -> None:
        check_options(self, nu="in [0, 1)")

    def init(self, objective: Objective, context: Context) -> FoBaState:
        support = GreedySupport(objective, context.restricted, scaled=self.scaled)
        point = support.start(context.start)
        used = support_units(objective.cardinality, point.support).size
        limit = min(objective.cardinality.budget, objective.cardinality.units)
        # What the coordinates of a start gained is not known: they are not removed.
        return FoBaState(
            point, support, (0.0,) * used, 0.0, restart=used >= limit > 0, done=limit == 0
        )

    def step(self, objective: Objective, state: FoBaState, context: Context) -> FoBaState:
        support, sparsity = state.support, objective.cardinality
        if state.restart:
            return FoBaState(support.start(None), support, (), 0.0)
        point = state.point
        scores = support.insertion_scores(point)  # forward
        into = int(np.argmax(scores))
        if not scores[into] > 0.0:
            return replace(state, done=True, finite=bool(np.isfinite(scores[into])))
        following = support.with_unit(point, into)
        gain = point.value - following.value
        first = state.first or gain
        if gain <= self.tol * first:
            return replace(state, point=support.debiased(point), done=True)
        gains = [*state.gains, gain]
        while True:  # backward, while it costs less than nu delta+ of this size
            units, costs = support.removal_costs(following)
            cheapest = int(np.argmin(costs))
            if costs[cheapest] > self.nu * gains[-1] or units[cheapest] == into:
                break
            smaller = support.without_unit(following, int(units[cheapest]))
            if smaller.value - following.value > self.nu * gains[-1]:  # the model was wrong
                break
            following = smaller
            gains.pop()
        full = len(gains) >= min(sparsity.budget, sparsity.units)
        if full:
            following = support.debiased(following)
        return FoBaState(following, support, tuple(gains), first, done=full)

    def residual(self, state: FoBaState) -> float:
        return state.gains[-1] if state.gains else float("nan")

    def stopped(self, objective: Objective, state: FoBaState) -> Stop | None:
        if not state.finite:
            return Stop.NON_FINITE
        return Stop.CONVERGED if state.done and not state.restart else None
