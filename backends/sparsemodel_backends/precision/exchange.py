"""Local search by adding edges, solving, and removing as many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    IntArray,
    Objective,
    Prior,
    Role,
    check_options,
)
from sparsemodel.interfaces.precision import JointPrecision, SparsePrecision
from sparsemodel_backends.precision._search import (
    BlockSearch,
    BlockState,
    best_first,
    edge_scores,
    given_start,
    with_edges,
)
from sparsemodel_backends.precision.swap import PrecisionSwap

_BRIEF = 120
"""Tries of a search with a factor of its patience, in units of the factor."""
_NONE: IntArray = np.empty(0, dtype=np.intp)


@final
@dataclass(frozen=True, slots=True)
class PrecisionExchange(BlockSearch):
    r"""Add ``q`` edges, solve on the larger support, remove the ``q`` cheapest, solve again.

    A removal is priced after the insertion has taken effect, so edges that stand in for each
    other are recognised; :class:`~sparsemodel_backends.precision.swap.PrecisionSwap`, which
    prices both at the same point, is several times faster and stops earlier. Its result is the
    start here when none is given.

    Parameters
    ----------
    first_block
        Size of the first block as a fraction of ``k``, in (0, 1].
    patience
        At size one, how many insertions are tried, best first, before the search ends.
    tries
        Blocks that are tried before the search ends. The first gain most.
    tol
        Accuracy of the restricted solves on the way, as a Newton decrement; the last one is exact.
    max_iter
        Limit on the number of exchanges tried.

    Notes
    -----
    No literal mode: it was made for this library.
    """

    first_block: float = 0.05
    patience: int = 5
    tries: int = 2000
    tol: float = 0.1
    max_iter: int = 2000

    name: ClassVar[str] = "precision_exchange"
    reference: ClassVar[str] = "add-and-drop local search"
    guarantee: ClassVar[str] = "never worse than its start"
    always: ClassVar[str] = guarantee
    purpose: ClassVar[str] = "adds edges, refits and drops as many, until nothing is gained"
    roles: ClassVar[frozenset[Role]] = frozenset({Role.FINISH})
    prior: ClassVar[Prior | None] = Prior(close=0.68, excess=0.0045)
    capabilities: ClassVar[Capabilities] = Capabilities(
        forms=(SparsePrecision, JointPrecision), groups=False
    )

    def __post_init__(self) -> None:
        check_options(
            self, first_block="in (0, 1]", patience="at least 1", tries="at least 0", tol="positive"
        )

    def with_patience(self, factor: float) -> PrecisionExchange:
        return self if factor >= 1.0 else replace(self, tries=int(_BRIEF * factor))

    def init(self, objective: Objective, context: Context) -> BlockState:
        if context.start is None:
            quiet = replace(context, on_iterate=None)
            point = PrecisionSwap(tol=self.tol).solve(objective, quiet).point
        else:
            point = given_start(objective, context, context.start, tol=self.tol)
        return BlockState(point, self.largest_block(objective))

    def exchanged(self, objective: Objective, state: BlockState, context: Context) -> BlockState:
        point = state.point
        scores = edge_scores(objective, point)
        q = min(state.block, scores.inside.size, scores.outside.size)
        if q == 0 or state.failures >= scores.outside.size or state.tried >= self.tries:
            return replace(state, block=0)
        state = replace(state, tried=state.tried + 1)
        if q == 1:
            order = best_first(scores.gains, state.failures + 1)
            added = scores.outside[order[state.failures :]]
        else:
            added = scores.outside[best_first(scores.gains, q)]
        larger = context.restricted(
            objective, with_edges(point.support, added, _NONE), point, tol=self.tol
        )
        priced = edge_scores(objective, larger)
        removed = priced.inside[best_first(-priced.costs, q)]
        if not np.array_equal(np.sort(removed), np.sort(added)):
            support = with_edges(larger.support, _NONE, removed)
            following = context.restricted(objective, support, larger, tol=self.tol)
            better = self.improved(objective, state, following, q)
            if better is not None:
                return better
        if q > 1:
            return replace(state, block=q // 2)
        failures = state.failures + 1
        return replace(state, block=int(failures < self.patience), failures=failures)
