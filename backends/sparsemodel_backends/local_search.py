"""Exhaustive local search over supports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    FloatArray,
    IntArray,
    IterativeBackend,
    Objective,
    Point,
    Role,
    TwiceDifferentiable,
    check_options,
    priced,
)
from sparsemodel.numerics import (
    LAYERS,
    NEGLIGIBLE,
    QuadraticSwaps,
    Swap,
    first_improvement,
    full_diagonal,
    insertion_scores,
    insertions,
    removal_costs,
    removal_order,
    support_units,
    top_k,
    unexplained,
)

_ROUGH = 1e-3
"""Accuracy of the restricted minimisations that only compare supports."""
_TRIALS = 160
"""Insertions that are re-solved, about, while an empty support is filled."""
_REMOVALS = 3
"""Coordinates that are dropped in turn before the search by re-solving ends."""

REMOVALS = ("smallest", "cheapest", "all")


@final
@dataclass(frozen=True, slots=True, eq=False)
class LocalSearchState:
    """A minimiser over its support, with the prices of swaps for quadratic objectives."""

    point: Point
    swaps: QuadraticSwaps | None
    scale: float
    """``|f(0) - f|``; what rounding is measured against."""
    diagonal: FloatArray | None = None
    """Of the Hessian, to rank insertions by; as it was when ``f`` was ``measured``."""
    measured: float = np.inf
    decrease: float = np.inf
    done: bool = False


@final
@dataclass(frozen=True, slots=True)
class LocalSearch(IterativeBackend[LocalSearchState]):
    r"""Drop a coordinate, insert the one that lowers ``f`` most, while ``f`` falls.

    :math:`j = \arg\min_{j \in S} |x_j|`; :math:`i` minimises
    :math:`\min\{f(x) : \mathrm{supp}(x) \subseteq S \cup \{i\} \setminus \{j\}\}` over all
    :math:`i \notin S` (Axiotis and Sviridenko 2020, Algorithm 4). A support with room is first
    filled by the same rule (forward stepwise selection). Where the objective has a price on the
    cardinality, what it falls by has to be worth the price, and a coordinate that is not leaves.

    Parameters
    ----------
    removal
        ``"smallest"`` drops the smallest :math:`|x_j|`, as the paper;
        ``"cheapest"`` the coordinate whose removal costs least; ``"all"`` goes on to the next
        cheapest until a swap improves, so that the result is optimal under all single swaps.
    scaled
        Compare :math:`|x_j|` as if all columns had unit norm. False takes them as they are.
    candidates
        Insertions that are re-solved where there is no closed form.
    max_iter
        Additions and swaps at most.

    Notes
    -----
    For a quadratic objective of stored columns all insertions are priced in closed form,
    :math:`g_i^2 / (2 d_i)` with :math:`d_i` the square norm of what the support leaves of column
    ``i``: a swap costs about one pass over the data, less where few may gain. For other losses,
    groups, bounds and matrix-free designs, insertions are ranked by their one-coordinate Newton
    decrease, the first of them again by the second-order model on the support, and the best
    ``candidates`` are minimised, or those that it does not tell to be worse than these: then the
    best insertion may be missed. Room for 60 units and more
    is filled a thirtieth at a time, by rank alone, supports of more than 32 units with fewer
    ``candidates``; before the search ends the three smallest (or cheapest) coordinates are dropped
    in turn. A step costs half a pass and ``candidates`` warm-started minimisations; curvatures are
    measured when ``f`` has halved. More patience than usual tries all removals, unless sizes are
    taken as they are.

    Literal mode compares :math:`|x_j|`; the paper's :math:`S^0` is the support of ``start``. It is
    Algorithm 4 where insertions have a closed form, and with ``candidates`` the number of
    coordinates wherever a single removal is tried.
    """

    removal: Literal["smallest", "cheapest", "all"] = "smallest"
    scaled: bool = True
    candidates: int = 5
    max_iter: int = 100_000

    name: ClassVar[str] = "local_search"
    reference: ClassVar[str] = "Axiotis and Sviridenko (2020), Algorithm 4"
    guarantee: ClassVar[str] = (
        "for the squared loss of stored columns without groups or bounds, an exchange lowers f at "
        "least as much as the exchange of OMPR from the same point, and with removal='all' the "
        "result is optimal under all exchanges of one coordinate"
    )
    purpose: ClassVar[str] = (
        "fills the support one by one, then exchanges coordinates while that helps"
    )
    roles: ClassVar[frozenset[Role]] = frozenset({Role.SWAPS})
    published: ClassVar[Mapping[str, Any] | None] = {"scaled": False, "removal": "smallest"}
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(TwiceDifferentiable,), box=True, region=True, price=True
    )

    def __post_init__(self) -> None:
        removal = " or ".join(map(repr, REMOVALS))
        check_options(self, removal=removal, candidates="at least 1")

    def with_patience(self, factor: float) -> LocalSearch:
        return replace(self, removal="all") if factor > 1.0 and self.scaled else self

    def init(self, objective: Objective, context: Context) -> LocalSearchState:
        origin = objective.origin()
        point = origin if context.start is None else objective.point_from(context.start)
        point = context.restricted(objective, point.support, point)
        scale = abs(origin.value - point.value)
        return LocalSearchState(point, QuadraticSwaps.start(objective, point), scale)

    def step(
        self, objective: Objective, state: LocalSearchState, context: Context
    ) -> LocalSearchState:
        threshold = NEGLIGIBLE * max(state.scale, abs(state.point.value))
        if state.swaps is None:
            state = _measured(objective, state)
            following = self._general(objective, state, context, threshold)
        else:
            following = self._quadratic(objective, state.point, state.swaps, context, threshold)
        if following is None or not _falls(objective, state.point, following, threshold):
            debiased = context.restricted(objective, state.point.support, state.point)
            if debiased.value > state.point.value:
                debiased = state.point
            return replace(state, point=debiased, decrease=0.0, done=True)
        decrease = priced(objective, state.point) - priced(objective, following)
        scale = max(state.scale, decrease)
        return replace(state, point=following, scale=scale, decrease=decrease)

    # ---- closed form -------------------------------------------------------------------------

    def _quadratic(
        self,
        objective: Objective,
        point: Point,
        swaps: QuadraticSwaps,
        context: Context,
        threshold: float,
    ) -> Point | None:
        if swaps.stale:
            point = context.restricted(objective, point.support, point)
            if not swaps.reset(point):
                return None
        sparsity = objective.cardinality
        if support_units(sparsity, point.support).size < sparsity.budget:
            addition = swaps.best_insertion()
            if addition is not None and addition[1] > sparsity.price + threshold:
                return swaps.point() if swaps.insert(addition[0]) else None
        unprofitable = swaps.unprofitable(sparsity.price - threshold) if sparsity.price else None
        if unprofitable is not None:
            swaps.remove(unprofitable)
            return swaps.point()
        swap = self._swap(swaps, threshold, context)
        if swap is None or swap.decrease <= threshold:
            return None
        return swaps.point() if swaps.exchange(swap) else None

    def _swap(self, swaps: QuadraticSwaps, threshold: float, context: Context) -> Swap | None:
        if self.removal == "all":
            return first_improvement(swaps, threshold, context.limits.expired)
        positions, costs, inverse = swaps.removals()
        if not positions.size:
            return None
        first = positions[0]
        if self.removal == "smallest":  # line 7
            positions = np.sort(positions)
            sizes = swaps.sizes(scaled=self.scaled)
            first = positions[np.argmin(sizes[positions])]
        return swaps.best_swap(np.array([first]), costs, inverse)  # line 8

    # ---- by re-solving -----------------------------------------------------------------------

    def _general(
        self, objective: Objective, state: LocalSearchState, context: Context, threshold: float
    ) -> Point | None:
        point, sparsity = state.point, objective.cardinality
        units = support_units(sparsity, point.support)
        room = min(sparsity.budget, sparsity.units) - units.size
        # Loose solves are relative to the gradient at zero, which is large beside the one here.
        tol = _ROUGH * unexplained(objective, point)
        if room > 0:
            following = self._added(objective, state, context, units, room, tol)
            if following is not None and _falls(objective, point, following, threshold):
                return following
        for unit in self._removed(objective, point, state.diagonal):
            kept = sparsity.coordinates(units[units != unit])
            base = context.restricted(objective, kept, point, tol=tol)
            trials = self._trials(objective, base, context, state.diagonal, tol, excluded=unit)
            best = min([base, *trials], key=lambda trial: priced(objective, trial))
            if _falls(objective, point, best, threshold):
                return context.restricted(objective, best.support, best, tol=tol)
            if context.limits.expired():
                return None
        return None

    def _added(
        self,
        objective: Objective,
        state: LocalSearchState,
        context: Context,
        units: IntArray,
        room: int,
        tol: float,
    ) -> Point | None:
        """Return the point with the best unit added, or with many where there is much room."""
        sparsity, point = objective.cardinality, state.point
        block = room // LAYERS if sparsity.price == 0.0 else 1
        if block <= 1:
            trials = self._trials(objective, point, context, state.diagonal, tol)
            return min(trials, key=lambda trial: priced(objective, trial), default=None)
        scores = insertion_scores(objective, point, state.diagonal, for_ranking=True)
        best = top_k(scores, block)
        support = sparsity.coordinates(np.append(units, best[scores[best] > 0.0]))
        return context.restricted(objective, support, point, tol=tol)

    def _trials(
        self,
        objective: Objective,
        base: Point,
        context: Context,
        diagonal: FloatArray | None,
        tol: float,
        excluded: int | None = None,
    ) -> list[Point]:
        units = support_units(objective.cardinality, base.support)
        restricted, count = context.restricted, self.candidates
        if excluded is None:
            count = min(count, max(1, _TRIALS // max(objective.cardinality.budget, 1)))
        return list(
            insertions(
                objective, base, units, restricted, diagonal, count, excluded=excluded, tol=tol
            )
        )

    def _removed(
        self, objective: Objective, point: Point, diagonal: FloatArray | None
    ) -> tuple[int, ...]:
        units = support_units(objective.cardinality, point.support)
        if self.removal == "smallest":
            unit = diagonal if self.scaled else None
            return tuple(removal_order(objective, point, units, unit)[:_REMOVALS])
        costs = removal_costs(objective, point)
        if costs is None:
            order = removal_order(objective, point, units, diagonal)
        else:
            order = units[np.argsort(costs, kind="stable")]
        return tuple(order if self.removal == "all" else order[:_REMOVALS])

    def residual(self, state: LocalSearchState) -> float:
        return state.decrease


def _falls(objective: Objective, point: Point, following: Point, threshold: float) -> bool:
    return priced(objective, point) - priced(objective, following) > threshold


def _measured(objective: Objective, state: LocalSearchState) -> LocalSearchState:
    """Return the state with curvatures that are not much older than its point.

    They change with the value: measured again when that has halved, they cost little.
    """
    value = state.point.value - (infimum if np.isfinite(infimum := objective.infimum()) else 0.0)
    if state.diagonal is not None and value > 0.5 * state.measured:
        return state
    diagonal = full_diagonal(objective, state.point, for_ranking=True)
    return replace(state, diagonal=diagonal, measured=value)
