"""Exchanges priced all at once, from perturbed supports."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    IterativeBackend,
    Objective,
    Point,
    Prior,
    Role,
    SparseRegression,
    TwiceDifferentiable,
    check_options,
    priced,
)
from sparsemodel.numerics import (
    ExchangeSearch,
    ExchangeTrials,
    Rounds,
    cheap_columns,
    exactly_priced,
    found_beside,
    found_elsewhere,
    many_rows,
    observations,
    quadratic_of,
)

_WORK = 2**24
"""Prices between two looks at the callback, about."""
_BLOCKS = 16
"""Units from which several are replaced at a time before a search ends. Of 100 x 200 problems with
5 or 15 units none of 12 gained by it."""
_FEW, _PRICES, _NUMBERS = 6, 20_000, 2**15
"""Units, prices of exchanges at a time and numbers of a batch up to which the sizes beside are
searched before a search ends. Of 60 problems with 2 to 6 units (factors, neighbours that look
alike, polynomials) 11 ended up to 25 % higher without."""
_APART = 0.6
"""Correlation of members with units outside up to which that is left out, unless perturbations
ended at many supports: of 448 such supports it improved none, of 560 others four."""
_LEAST = 7
"""Perturbations that are searched side by side, at least."""
_VARIED, _KEPT = 8, 24
"""Different ends of searches from which the same is done with more units, and supports of a size
that are kept then, which perturbations add to. Of 70 problems of noise with 7 to 15 units 10 ended
up to 11 % above the path without those, 4 with them, by up to 7 %, 1.7 times as late."""
_NEARLY, _LONGER, _SMALL = 0.05, 5.0, 150_000
"""Share of the objective that a support leaves up to which another may fit exactly where rows are
few, how many times as long that is searched for, and prices times units up to which. Of 180
problems without noise, 36 to 64 x 256 with 13 to 24 units, other methods recovered the support in 4
where this one did not, with it in none, in 61 ms in place of 38. Of 48 of noise, 30 to 100 rows
with 8 to 15 units, one ended 11 % lower; the longest took 350 ms in place of 160."""
_DEAR, _DEARER, _GROUPED = 1.0 / 2.0, 1.0 / 6.0, 2.0
"""Effort where the objective judges what a model found or units need others, where every change of
a support is a minimisation, and where groups have exact prices, in units of that for quadratics. Of
38 problems with 50 groups of correlated columns 5 ended up to 3.9 % too high with a half, one with
1, none with 2; of 120 where some features need others 11 up to 14.6 % with a sixth, 2 up to 1.6 %
with a half."""
_SEVERAL = 2.0
"""How many times as long a search of several columns goes on where perturbations end at many
supports, as their model says less. Of 90 multinomial problems with few rows 5 ended up to 24 %
higher without, two of 60 with one, none with two, in 1.02 times the time (median; sum 3)."""
_LITTLE, _LIKELY = 2**17, 3.0
"""Numbers of a design up to which that is no such matter under equations, and how many times as
long a search within bounds goes on that has improved. Of 64 problems with either 4 ended 1 to 60 %
higher without."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExchangeState:
    """The best point so far and the search that goes on from it."""

    point: Point
    search: ExchangeSearch | ExchangeTrials
    rounds: Rounds
    at_rest: bool = False
    """Whether no single change of the support was found to improve it."""
    decrease: float = np.inf
    done: bool = False
    proved: bool = False
    """Whether a proof has been tried."""


@final
@dataclass(frozen=True, slots=True)
class Exchange(IterativeBackend[ExchangeState]):
    r"""Make the best of all exchanges until none helps, replace some units at random, do it again.

    At the minimiser over a support ``S`` all :math:`k (p - k)` exchanges of a unit inside for one
    outside are priced in :math:`O(k p)`: with :math:`B = H_{SS}^{-1}`, :math:`Q = B H_{S:}`, the
    negative gradient ``r`` and what ``S`` leaves of the columns' curvatures ``s``, exchanging ``i``
    for ``j`` lowers the objective by

    .. math:: \frac12 \left( \frac{(r_j + Q_{ij} x_i / B_{ii})^2}{s_j + Q_{ij}^2 / B_{ii}}
              - \frac{x_i^2}{B_{ii}} \right) ,

    exactly for a quadratic. The best is carried out by outer products, with one new row of ``H``
    for a column that was never seen before. A support with room is filled by the best insertions
    (forward selection). Where no exchange is left, up to two thirds of the support are replaced by
    units that promise much, and the search descends from there; the better point is kept.

    Parameters
    ----------
    rounds
        Perturbations at most; 0 for the descent alone.
    effort
        A factor on how long the search goes on without improvement
        (:class:`~sparsemodel.numerics.Rounds`). Up to 1, without a time limit and where prices are
        exact it is shorter in proportion where that would take five seconds by forecast.
    candidates
        Exchanges that are minimised, where prices are not exact, before the search gives up.
    max_iter
        Steps at most: a descent, or one for each some perturbations.

    Notes
    -----
    The numbers are constants in the code, most with the measurement behind them.

    **Cost**, of quadratics without constraints. The first support takes at most ``k`` passes (one
    product of matrices if all of ``H`` is formed), a column that enters for the first time half a
    pass, an exchange :math:`O(k p)`. Memory: ``8 k p`` bytes, and ``8 p`` for each column seen.

    **After a descent** pairs of exchanges are evaluated, then a short proof is tried, if the
    context offers one (``Context.proof``). A support is not perturbed if it is proved, if it stands
    out (removing any unit costs a multiple of what any other gains), or if all pairs cost much.
    Groups stand out if every exchange costs twice what another group gains and no combination of
    their columns is correlated with one of a group outside by more than 0.9 (the same up to 0.8,
    0.75 times up to 0.6, 0.3 up to 0.5, 0.15 up to 0.4). With exact prices perturbations end after
    7 for each local optimum found, if none is better and every exchange costs half of what any
    other coordinate gains, and after 14 if it costs a tenth.

    **Perturbations** read almost no data, and some are searched side by side; more are made where
    they end at many different supports, and from 24 on 30 exchanges in each that undo none of the
    last few, even at a loss (tabu search). Before a search of 16 units or more ends, 2, 4, 8, ...
    units are removed one after the other and replaced. The best supports of all sizes up to one
    more are searched before one of at most six units that are correlated with others by more than
    0.6 ends, or of any number if perturbations ended at eight supports. Large problems are then
    also searched from units drawn at random, 2400 times, compiled. With an L0 penalty, sizes up to
    three larger or smaller are tried as well. With two to four observations for each unit
    that may be chosen, and fewer than units, another support may fit exactly: small problems are
    then perturbed five times as long. With many columns only the most promising are priced, and all
    before the search ends; perturbations draw from even fewer, and from more once they end at
    different supports.

    **Other losses, groups, constraints and several limits.** Prices are those of the second-order
    model at the minimiser (blocks for groups, steps within bounds). The best ``candidates`` are
    minimised on their supports, and the first that lowers the objective is taken. If there is none
    and the support does not stand out, the 96 supports that the model ranks next are minimised by a
    few Newton steps, and the search continues from the best two that are better. With few units, or
    if every exchange costs much, this takes the place of perturbations.

    - *Sparse data*: a step of a column with few entries can be far from the model. The change of
      the loss along each coordinate corrects it; searches alternate between the two models.
    - *Multinomial losses*: all classes share one curvature in the model, so the objective judges
      most perturbations, and the nearest exchanges before a descent ends.
    - *Nearly separable classes*, if less than a hundredth of the objective at zero is left:
      exchanges also start from an empty support and from those of GraSP and IIHT, perturbations
      from the best of them. Units are then replaced by those with the largest gains at the
      minimiser without them; so they are, after GraSP alone, if the model predicts a decrease that
      no exchange gives (not where a loss of smooth, bounded curvature was higher on those 96, too).
    - *Constraints*: a search also begins at what the convex problem without a limit is rounded to
      (``Context.starts``). Where constraints link units, and no exchange helps, those near the
      point are searched together by the branch and bound of proofs (``Context.neighbourhood``).

    No literal mode: it was made for this library.
    """

    rounds: int = 500
    effort: float = 1.0
    candidates: int = 6
    max_iter: int = 100_000

    name: ClassVar[str] = "exchange"
    reference: ClassVar[str] = "no paper: made for this library"
    guarantee: ClassVar[str] = (
        "never worse than its start; with the squared loss and no constraint the result is optimal "
        "under all exchanges, insertions and removals of one coordinate, up to rounding"
    )
    always: ClassVar[str] = "never worse than its start"
    purpose: ClassVar[str] = (
        "evaluates all exchanges of features at once, takes the best, and perturbs the result"
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
        check_options(self, rounds="at least 0", effort="positive", candidates="at least 1")

    def with_patience(self, factor: float) -> Exchange:
        if factor == 1.0:
            return self
        if factor == 0.0:
            return replace(self, rounds=0)
        rounds = self.rounds if factor <= 1.0 else math.ceil(factor * self.rounds)
        return replace(self, effort=factor * self.effort, rounds=rounds)

    def init(self, objective: Objective, context: Context) -> ExchangeState:
        origin = objective.origin()
        point = origin if context.start is None else objective.point_from(context.start)
        sparsity, effort = objective.cardinality, self.effort
        timed = context.limits.deadline is not None
        patience = math.inf if timed else max(1.0, effort)
        if not exactly_priced(objective):
            over = context.limits.expired
            trials = ExchangeTrials(objective, context.restricted, self.candidates, over)
            effort *= _share(objective, trials)
            times = 1.0 if len(objective.shape) == 1 else _SEVERAL
            varied = times * effort if trials.varied else 0.0
            rounds = Rounds(effort, self.rounds, patience, varied)
            return ExchangeState(trials.debiased(point), trials, rounds)
        most = min(sparsity.budget, sparsity.units)
        rows, linear = quadratic_of(objective)
        search = ExchangeSearch(rows, linear, most=most, price=sparsity.price)
        search.start(point.support[sparsity.counted[point.support]])
        k, p = (0, 0) if timed or effort > 1.0 else (most, objective.shape[0])
        return ExchangeState(point, search, Rounds.of_quadratic(effort, self.rounds, k, p))

    def step(self, objective: Objective, state: ExchangeState, context: Context) -> ExchangeState:
        if isinstance(state.search, ExchangeSearch):
            point, at_rest, size = _quadratic(objective, state, state.search, context)
        else:
            point, at_rest, size = _general(objective, state, state.search, context)
        ended = at_rest and (
            size < 2
            or state.rounds.enough
            or _closed(objective, point)
            or (
                _settled(state, point, self.effort, proving=context.proof is not None)
                and not _nearly_fits(objective, point)
            )
        )
        proved = state.proved
        if at_rest and not ended and not proved and context.proof is not None:
            proved, found = True, point
            point, ended = context.proof(found)
            at_rest = ended or point is found
            if not at_rest and isinstance(state.search, ExchangeSearch):
                counted = objective.cardinality.counted
                state.search.start(point.support[counted[point.support]])
        decrease = priced(objective, state.point) - priced(objective, point)
        return replace(
            state,
            point=point,
            at_rest=at_rest,
            done=ended,
            decrease=decrease,
            proved=proved,
        )

    def residual(self, state: ExchangeState) -> float:
        return state.decrease


def _share(objective: Objective, trials: ExchangeTrials) -> float:
    """Return the effort of a search that the objective judges, beside one of a quadratic."""
    sparsity, form = objective.cardinality, objective.form
    if trials.models.rare:  # for two models
        return 1.0
    plain = sparsity.groups is not None and sparsity.plain and not form.constrained
    if plain and objective.quadratic:
        return _GROUPED
    little = form.region is not None and observations(objective) * objective.shape[0] <= _LITTLE
    beside = sparsity.order is not None
    return _DEAR if trials.models.searchable or little or beside else _DEARER


def _settled(state: ExchangeState, point: Point, effort: float, *, proving: bool) -> bool:
    """Return whether the support stands out, or enough searches have found none that is better."""
    search, rounds = state.search, state.rounds
    if isinstance(search, ExchangeTrials):
        return search.conclusive(point, rounds) if effort <= 1.0 else search.clear(point)
    if rounds.done and rounds.none_better(search.support.tobytes(), search.sure):
        return True
    return search.clear if proving or effort > 1.0 else search.apart


def _closed(objective: Objective, point: Point) -> bool:
    """Return whether the objective has fallen as far as any point could make it."""
    floor = objective.infimum()
    if not np.isfinite(floor):
        return False
    rounding = 1e-13 * abs(objective.origin().value - floor)
    return not objective.cardinality.priced and bool(point.value - floor <= rounding)


def _nearly_fits(objective: Objective, point: Point) -> bool:
    """Return whether little is left, and so few rows and units that another support may fit."""
    form, sparsity = objective.form, objective.cardinality
    if not isinstance(form, SparseRegression) or sparsity.priced:
        return False
    n, p, k = observations(objective), sparsity.units, sparsity.budget
    if not (2 * k <= n <= 4 * k and n < p and k * k * p <= _SMALL):
        return False
    floor = objective.infimum()
    whole = objective.origin().value - floor
    return bool(np.isfinite(floor) and point.value - floor <= _NEARLY * whole)


def _quadratic(
    objective: Objective, state: ExchangeState, search: ExchangeSearch, context: Context
) -> tuple[Point, bool, int]:
    """Descend, or perturb once the descent has ended."""
    over = context.limits.expired
    if not state.at_rest:
        budget = max(1, _WORK // max(1, objective.shape[0] * objective.cardinality.budget))
        at_rest = search.descend(budget, over)
        going = at_rest and not (state.rounds.enough or over() or objective.cardinality.price)
        if going and many_rows(objective, search.size) and not search.clear and search.try_double():
            at_rest = False
            state.rounds.left_local_optimum()
        point = _point(objective, search)
        rough = priced(objective, point) > priced(objective, state.point)
        return state.point if rough else point, at_rest, search.size
    most = max(_LEAST, state.rounds.wanted(search.sure))
    search.walking = state.rounds.scattered
    ends, better = search.perturb(context.rng, over, most)
    state.rounds.count(ends, better=better, searches=2 * len(ends) if search.walking else 0)
    if state.rounds.enough and _nearly_fits(objective, state.point):
        state.rounds.prolong(_LONGER)
    # Ends of perturbed supports tell of their own size, a price of others, too.
    none = state.rounds.none_better(search.support.tobytes(), search.sure)
    if not better and (state.rounds.enough or (none and objective.cardinality.price)):
        better = _further(objective, state.rounds, search, context)
    if not better:
        return state.point, True, search.size
    point = _point(objective, search)
    if priced(objective, point) < priced(objective, state.point):
        return point, False, search.size
    return state.point, True, search.size


def _further(
    objective: Objective, rounds: Rounds, search: ExchangeSearch, context: Context
) -> bool:
    """Look further before the search ends; True when that leads to a better support."""
    size, sparsity, over = search.size, objective.cardinality, context.limits.expired
    if sparsity.price and search.resized(context.rng, over):
        return True
    if size >= _BLOCKS:
        return search.exchange_blocks(over)
    few = rounds.ends >= _VARIED or (size <= _FEW and search.comparison.correlation > _APART)
    if sparsity.price or not (few and rounds.done and cheap_columns(objective)):
        return False
    if size * search.rows.size <= _PRICES:
        kept: dict[str, Any] = {"entries": _NUMBERS} if size <= _FEW else {"width": _KEPT}
        if found_beside(search, over, perturbed=size > _FEW, **kept):
            return True
    return rounds.ends >= _VARIED and found_elsewhere(search, over, width=_KEPT)


def _point(objective: Objective, search: ExchangeSearch) -> Point:
    support, w = search.solution()
    x = search.rows.values(support, w)
    free = objective.cardinality.free
    if free.size:
        rest = search.rows.free_values(objective.gradient(objective.origin()), support, x)
        support, x = np.concatenate([support, free]), np.concatenate([x, rest])
        order = np.argsort(support)
        support, x = support[order], x[order]
    return objective.point(support, x[:, 0] if len(objective.shape) == 1 else x)


def _general(
    objective: Objective, state: ExchangeState, trials: ExchangeTrials, context: Context
) -> tuple[Point, bool, int]:
    """Make one change, or descend from a perturbed support once no change helps."""
    size = objective.cardinality.count(state.point.x)
    if not state.at_rest:
        following = trials.improved(state.point)
        following = following or trials.started(state.point, state.rounds, context.starts)
        if following is None and context.neighbourhood is not None:
            following = context.neighbourhood(objective, trials.debiased(state.point))
        following = following or trials.beside(state.point, state.rounds)
        if following is not None:
            return following, False, size
        return trials.debiased(state.point), True, size
    if size < 2:
        return state.point, True, size
    better = trials.round(state.point, context.rng, state.rounds)
    if better is None and state.rounds.enough:
        better = trials.restarted(state.point, state.rounds)
    if better is not None and objective.form.box is not None and objective.form.region is None:
        state.rounds.prolong(_LIKELY)
    return (state.point, True, size) if better is None else (better, False, size)
