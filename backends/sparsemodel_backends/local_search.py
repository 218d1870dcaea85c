"""Exhaustive local search over supports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    FloatArray,
    IterativeBackend,
    ModelError,
    Objective,
    Point,
    Stop,
    TwiceDifferentiable,
    priced,
)
from sparsemodel.numerics import (
    QuadraticSwaps,
    Swap,
    first_improvement,
    full_diagonal,
    insertions,
    removal_costs,
    removal_order,
    support_units,
)

REMOVALS = ("smallest", "cheapest", "all")


@final
@dataclass(frozen=True, slots=True, eq=False)
class LocalSearchState:
    """A minimiser over its support, with the prices of swaps for quadratic objectives."""

    point: Point
    swaps: QuadraticSwaps | None
    scale: float
    """``|f(0) - f|``; what rounding is measured against."""
    decrease: float = np.inf
    done: bool = False


@final
@dataclass(frozen=True, slots=True)
class LocalSearch(IterativeBackend[LocalSearchState]):
    r"""Drop a coordinate, insert the one that lowers ``f`` most, while ``f`` falls.

    :math:`j = \arg\min_{j \in S} |x_j|`; :math:`i` minimises
    :math:`\min\{f(x) : \mathrm{supp}(x) \subseteq S \cup \{i\} \setminus \{j\}\}` over all
    :math:`i \notin S` (Axiotis and Sviridenko 2020, Algorithm 4). A support with room is first
    filled by the same rule (forward stepwise selection).

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
    ``i``: a swap costs one pass over the data. For other losses, groups, bounds and matrix-free
    designs, insertions are ranked by their one-coordinate Newton decrease and the best
    ``candidates`` are minimised: then the best insertion may be missed.
    """

    removal: Literal["smallest", "cheapest", "all"] = "smallest"
    scaled: bool = True
    candidates: int = 5
    max_iter: int = 100_000

    name: ClassVar[str] = "local_search"
    reference: ClassVar[str] = "Axiotis and Sviridenko (2020), Algorithm 4"
    guarantee: ClassVar[str] = (
        "never worse than OMPR from the same point in one step; with removal='all' and the "
        "squared loss the result is optimal under all exchanges of one coordinate"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(TwiceDifferentiable,), box=True, region=True, price=True
    )

    def __post_init__(self) -> None:
        if self.removal not in REMOVALS:
            raise ModelError(f"removal must be one of {REMOVALS}, not {self.removal!r}.")
        if self.candidates < 1:
            raise ModelError(f"candidates must be at least 1, not {self.candidates}.")

    def init(self, objective: Objective, context: Context) -> LocalSearchState:
        origin = objective.origin()
        point = origin if context.start is None else objective.point_from(context.start)
        point = context.restricted(objective, point.support, point)
        scale = abs(origin.value - point.value)
        return LocalSearchState(point, QuadraticSwaps.start(objective, point), scale)

    def step(
        self, objective: Objective, state: LocalSearchState, context: Context
    ) -> LocalSearchState:
        threshold = 1e-11 * max(state.scale, abs(state.point.value))
        if state.swaps is None:
            following = self._general(objective, state.point, context, threshold)
        else:
            following = self._quadratic(objective, state.point, state.swaps, context, threshold)
        if following is None or not state.point.value - following.value > threshold:
            settled = context.restricted(objective, state.point.support, state.point)
            if settled.value > state.point.value:
                settled = state.point
            return replace(state, point=settled, decrease=0.0, done=True)
        decrease = state.point.value - following.value
        return LocalSearchState(following, state.swaps, max(state.scale, decrease), decrease)

    # ---- closed form -------------------------------------------------------------------------

    def _quadratic(
        self,
        objective: Objective,
        point: Point,
        swaps: QuadraticSwaps,
        context: Context,
        threshold: float,
    ) -> Point | None:
        if swaps.worn:
            point = context.restricted(objective, point.support, point)
            if not swaps.reset(point):
                return None
        sparsity = objective.cardinality
        if support_units(sparsity, point.support).size < sparsity.k:
            addition = swaps.best_insertion()
            if addition is not None and addition[1] > threshold:
                return swaps.point() if swaps.insert(addition[0]) else None
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
        self, objective: Objective, point: Point, context: Context, threshold: float
    ) -> Point | None:
        sparsity, restricted = objective.cardinality, context.restricted
        diagonal = full_diagonal(objective, point)
        units = support_units(sparsity, point.support)
        if units.size < sparsity.k:
            trials = insertions(objective, point, units, restricted, diagonal, self.candidates)
            best = min(trials, key=lambda trial: trial.value, default=None)
            if best is not None and best.value < point.value - threshold:
                return restricted(objective, best.support, best)
        for unit in self._removed(objective, point, diagonal):
            kept = units[units != unit]
            base = restricted(objective, sparsity.coordinates(kept), point, tol=1e-8)
            trials = insertions(
                objective, base, kept, restricted, diagonal, self.candidates, excluded=unit
            )
            best = min(trials, key=lambda trial: priced(objective, trial), default=None)
            if best is not None and best.value < point.value - threshold:
                return restricted(objective, best.support, best)
            if context.limits.expired():
                return None
        return None

    def _removed(
        self, objective: Objective, point: Point, diagonal: FloatArray | None
    ) -> tuple[int, ...]:
        units = support_units(objective.cardinality, point.support)
        if self.removal == "smallest":
            unit = diagonal if self.scaled else None
            return tuple(removal_order(objective, point, units, unit)[:1])
        costs = removal_costs(objective, point)
        if costs is None:
            order = removal_order(objective, point, units, diagonal)
        else:
            order = units[np.argsort(costs, kind="stable")]
        return tuple(order if self.removal == "all" else order[:1])

    def iterate(self, state: LocalSearchState) -> Point:
        return state.point

    def residual(self, state: LocalSearchState) -> float:
        return state.decrease

    def stopped(self, objective: Objective, state: LocalSearchState) -> Stop | None:
        return Stop.CONVERGED if state.done else None


__all__ = ["LocalSearch", "LocalSearchState"]
