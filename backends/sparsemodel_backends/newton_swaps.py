"""Swaps priced by the second-order model, carried out on the objective itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Access,
    Capabilities,
    Context,
    Curved,
    IntArray,
    IterativeBackend,
    Objective,
    Point,
    check_options,
)
from sparsemodel.numerics import (
    QuadraticSwaps,
    RegressionObjective,
    full_diagonal,
    insertion_scores,
    quadratic_model,
    support_units,
    top_k,
)

_NEGLIGIBLE = 1e-11
"""A decrease below this fraction of the objective's range is rounding."""
_ROUGH = 1e-6
"""Accuracy of the restricted minimisations that only compare supports."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class NewtonSwapsState:
    """A minimiser over its support."""

    point: Point
    scale: float
    """``|f(0) - f|``; what rounding is measured against."""
    decrease: float = np.inf
    done: bool = False


@final
@dataclass(frozen=True, slots=True)
class NewtonSwaps(IterativeBackend[NewtonSwapsState]):
    r"""Exchange one coordinate for another, all exchanges priced in closed form by a model.

    At the minimiser ``x`` over its support ``S`` the objective is replaced by its second-order
    model, for which dropping ``j`` and adding ``i`` changes it by

    .. math:: \frac{x_j^2}{2 (H_{SS}^{-1})_{jj}} - \frac{(g_i - x_j c_{ij})^2}{2 d_{ij}}

    with :math:`c_j` and :math:`d_j` as for a quadratic. The exchanges that promise most are
    carried out on the objective itself, one after the other, until one lowers it; where none of
    the best ``candidates`` does, the search ends. A support with room is filled first, by the
    largest :math:`g_i^2 / (2 H_{ii})`.

    This is the exchange of local search (Axiotis and Sviridenko 2020, Algorithm 4) with the
    pricing of Newton's method: for a quadratic the prices are exact, and the result is optimal
    under all exchanges of one coordinate.

    Parameters
    ----------
    candidates
        Exchanges that are carried out before the search gives up.
    max_iter
        Additions and exchanges at most.

    Notes
    -----
    About ``k + 1`` passes an exchange, as products of matrices (the time of a few passes), and
    up to ``candidates`` warm-started minimisations on a support. Local search with
    ``removal="all"`` takes ``k`` times as many minimisations.

    No literal mode: the prices are this library's; the paper's algorithm is
    :class:`~sparsemodel_backends.local_search.LocalSearch`.
    """

    candidates: int = 5
    max_iter: int = 100_000

    name: ClassVar[str] = "newton_swaps"
    reference: ClassVar[str] = "after Axiotis and Sviridenko (2020), Algorithm 4"
    guarantee: ClassVar[str] = (
        "never worse than its start; with the squared loss the result is optimal under all "
        "exchanges of one coordinate"
    )
    always: ClassVar[str] = "never worse than its start"
    purpose: ClassVar[str] = (
        "exchanges features that a quadratic model predicts will lower the objective"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(Curved,), access=Access.PRODUCTS | Access.COLUMNS, groups=False, matrix=False
    )

    def __post_init__(self) -> None:
        check_options(self, candidates="at least 1")

    def init(self, objective: Objective, context: Context) -> NewtonSwapsState:
        origin = objective.origin()
        point = origin if context.start is None else objective.point_from(context.start)
        point = context.restricted(objective, point.support, point)
        return NewtonSwapsState(point, abs(origin.value - point.value))

    def step(
        self, objective: Objective, state: NewtonSwapsState, context: Context
    ) -> NewtonSwapsState:
        point = state.point
        threshold = _NEGLIGIBLE * max(state.scale, abs(point.value))
        sparsity = objective.cardinality
        if support_units(sparsity, point.support).size < min(sparsity.budget, sparsity.units):
            following = _added(objective, point, context)
        else:
            following = self._exchanged(objective, point, context, threshold)
        if following is None or not point.value - following.value > threshold:
            debiased = context.restricted(objective, point.support, point)
            if debiased.value > point.value:
                debiased = point
            return replace(state, point=debiased, decrease=0.0, done=True)
        decrease = point.value - following.value
        return NewtonSwapsState(following, max(state.scale, decrease), decrease)

    def _exchanged(
        self, objective: Objective, point: Point, context: Context, threshold: float
    ) -> Point | None:
        """Return the first of the most promising exchanges that lowers the objective."""
        out, into, gains = _prices(objective, point)
        best = np.argsort(-gains, kind="stable")[: self.candidates]
        for j, i in zip(out[best], into[best], strict=True):
            if context.limits.expired():
                return None
            support = np.sort(np.append(point.support[point.support != j], i))
            x = point.x[support].copy()
            start = objective.point(support, x)
            trial = context.restricted(objective, support, start, tol=_ROUGH)
            if point.value - trial.value > threshold:
                return context.restricted(objective, support, trial)
        return None

    def residual(self, state: NewtonSwapsState) -> float:
        return state.decrease


def _added(objective: Objective, point: Point, context: Context) -> Point | None:
    """Return the minimiser with the most promising coordinate added."""
    scores = insertion_scores(objective, point, full_diagonal(objective, point))
    best = top_k(scores, 1)
    if not scores[best[0]] > 0.0:
        return None
    sparsity = objective.cardinality
    support = np.union1d(point.support, sparsity.coordinates(best))
    return context.restricted(objective, support, point)


def _prices(objective: Objective, point: Point) -> tuple[IntArray, IntArray, np.ndarray]:
    """Return for every coordinate of the support its best replacement and what that gains.

    Only exchanges that gain something in the model are returned.
    """
    nothing = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), np.empty(0)
    if not isinstance(objective, RegressionObjective):
        return nothing
    found = quadratic_model(objective, point)
    if found is None:
        return nothing
    model, at = found
    engine = QuadraticSwaps.start(model, at)
    if engine is None:
        return nothing
    positions, costs, inverse = engine.removals()
    width = engine.block_width
    blocks = [positions[i : i + width] for i in range(0, positions.size, width)]
    priced = [engine.best_insertions(block, costs, inverse) for block in blocks]
    objective.work.passes += model.work.passes
    if not priced:
        return nothing
    into = np.concatenate([insertions for insertions, _ in priced])
    gains = np.concatenate([gained for _, gained in priced])
    useful = gains > 0.0
    return point.support[positions[useful]], into[useful], gains[useful]
