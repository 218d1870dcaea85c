"""Exchanges priced all at once by a local model, from ever other starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    FloatArray,
    IterativeBackend,
    Objective,
    Point,
    Prior,
    Role,
    TwiceDifferentiable,
    check_options,
    priced,
)
from sparsemodel.numerics import SupportSearch


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExchangeState:
    """The best point so far, and the search that goes on from it."""

    point: Point
    search: SupportSearch
    """A workspace."""
    is_local_optimum: bool = False
    """Whether no single change of the support was found to improve the point."""
    decrease: float = np.inf
    done: bool = False
    is_proof_tried: bool = False
    starts: tuple[FloatArray, ...] | None = None
    """What the problem without its limit is rounded to; None before the first descent ended."""


@final
@dataclass(frozen=True, slots=True)
class Exchange(IterativeBackend[ExchangeState]):
    r"""Descend by the best exchanges in a local model, confirm on the objective, start elsewhere.

    At the minimiser over a support ``S`` a model of second order (exact for squared losses) prices
    all :math:`k (p - k)` exchanges of a unit inside for one outside: with
    :math:`B = H_{SS}^{-1}`, :math:`Q = B H_{S:}`, the negative gradient ``r`` and what ``S`` leaves
    of the columns' curvatures ``s``, exchanging ``i`` for ``j`` lowers it by

    .. math:: \frac12 \left( \frac{(r_j + Q_{ij} x_i / B_{ii})^2}{s_j + Q_{ij}^2 / B_{ii}}
              - \frac{x_i^2}{B_{ii}} \right) .

    A support with room is filled by the best additions. The steps of a run are

    1. **Propose**: descend in the model. The best addition enters, the cheapest removal leaves, as
       long as these are not the same; then the best exchange, until none gains.
    2. **Confirm**: the minimiser of the objective over the support that was proposed decides,
       always. If it is better, a model is made there.
    3. **Diversify**: descend in the model from other starts, in batches: ``k`` random units, as
       long as all of them lead to one end; then half of them so, else the best end with up to two
       thirds redrawn among units that promise much, or two ends merged and thinned. For losses
       that are not squared, and where only a pool of columns is searched, then in models
       elsewhere: at minimisers over a part of the support.
    4. **Stop** when it has been searched in vain as long as the last improvement took, and from 32
       random starts (3 elsewhere) times ``effort``; up to 1024 (24) where random starts end where
       none ended before. At most about half a second, times ``effort``, is searched in vain.

    Under constraints descents also begin at what the convex problem without the limit is rounded
    to, and where constraints link units, some tens of them are searched together by branch and
    bound.
    Groups are whitened, several outputs share a model, steps within bounds are clipped. Limits on
    parts, prices, hierarchies and constraints decide which changes are allowed; linear equations
    enter the model as stiff squares.

    Parameters
    ----------
    effort
        A factor on the patience of step 4; 0 for the descent alone.
    max_iter
        Steps at most: a descent, or a batch of starts.

    Notes
    -----
    **Cost**, of squared losses. The first support takes at most ``k`` passes (one product of
    matrices if all of ``H`` is formed), a column that enters for the first time half a pass, an
    exchange :math:`O(k p)`. Where columns are many, starts are searched in a pool of the 64 that
    promise most and 16 in the place of each member. Memory: ``8 k p`` bytes, and ``8 p`` for each
    column seen. Descents are made in NumPy until half a second was spent there in a process, then
    by compiled code, which takes some seconds once on a machine.

    No literal mode: it was made for this library.
    """

    effort: float = 1.0
    max_iter: int = 100_000

    name: ClassVar[str] = "exchange"
    reference: ClassVar[str] = "no paper: made for this library"
    guarantee: ClassVar[str] = (
        "never worse than its start; with the squared loss and no constraint the result is optimal "
        "under all exchanges, insertions and removals of one coordinate, up to rounding"
    )
    always: ClassVar[str] = "never worse than its start"
    purpose: ClassVar[str] = (
        "evaluates all exchanges of features at once, takes the best, and starts elsewhere"
    )
    roles: ClassVar[frozenset[Role]] = frozenset({Role.FINISH})
    prior: ClassVar[Prior | None] = Prior(close=0.85, excess=0.005)
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(TwiceDifferentiable,),
        box=True,
        region=True,
        price=True,
        limits=True,
        costs=True,
        order=True,
    )

    def __post_init__(self) -> None:
        check_options(self, effort="at least 0")

    def with_patience(self, factor: float) -> Exchange:
        return self if factor == 1.0 else replace(self, effort=factor * self.effort)

    def init(self, objective: Objective, context: Context) -> ExchangeState:
        start = None if context.start is None else objective.point_from(context.start)
        origin = objective.origin() if start is None else start
        over = context.limits.expired
        search = SupportSearch(objective, context.restricted, context.rng, self.effort, over)
        fixed = origin.support.size or objective.form.constrained
        return ExchangeState(search.debiased(origin) if fixed else origin, search)

    def step(self, objective: Objective, state: ExchangeState, context: Context) -> ExchangeState:
        search, point = state.search, state.point
        previous, is_local = point, state.is_local_optimum
        if not np.isfinite(objective.gradient(point)).all():  # the data are not finite
            return replace(state, point=replace(point, value=math.nan), done=True)
        tried, is_done = state.is_proof_tried, False
        # 1, 2. Propose by the model, confirm.
        if not state.is_local_optimum:
            better = search.improved(point)
            if better is None:
                point, is_local = search.debiased(point), True
            else:
                point, is_local = better, search.is_local_optimum(better)
            is_done = is_local and self.effort == 0.0
        # Where constraints link units: from the convex problem, then some tens of them at a time.
        elif state.starts is None:
            starts = () if context.starts is None else tuple(context.starts())
            neighbourhood = context.neighbourhood
            better = None if neighbourhood is None else neighbourhood(objective, point)
            state = replace(state, starts=starts)
            if better is not None and priced(objective, better) < priced(objective, point):
                point, is_local = better, False
        elif state.starts:
            point = search.better_end(objective.point_from(state.starts[0]), point)
            state = replace(state, starts=state.starts[1:])
            is_local = point is previous
        # A short proof ends the search, once it is at rest.
        elif not tried and context.proof is not None:
            tried = True
            point, is_done = context.proof(point)
            is_local = is_done or point is previous
        # 3, 4. Start elsewhere until it has been in vain long enough.
        else:
            better, is_done = search.diversified(point)
            point, is_local = (point, True) if better is None else (better, search.is_exact)
        decrease = priced(objective, previous) - priced(objective, point)
        return ExchangeState(point, search, is_local, decrease, is_done, tried, state.starts)

    def residual(self, state: ExchangeState) -> float:
        return state.decrease
