"""What the precision backends share: scores of edges, starts, and searches that exchange blocks."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import (
    Context,
    FloatArray,
    IntArray,
    IterativeBackend,
    Objective,
    Point,
)
from sparsemodel.interfaces.precision import AnyPrecision
from sparsemodel.numerics import top_k
from sparsemodel.numerics.budget import budget, cholesky_cost, inverse_cost
from sparsemodel.numerics.precision import (
    default_shrinkage,
    insertion_gains,
    precision_states,
    removal_costs,
    ridge_partial_correlations,
)

_PROGRESS = 1e-4
"""Nats that an exchange must gain, above the error of the restricted solves."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class EdgeScores:
    """The counted edges in and out of the support of a point, with what each is worth in nats."""

    inside: IntArray
    costs: FloatArray
    outside: IntArray
    gains: FloatArray


def edge_scores(objective: Objective, point: Point) -> EdgeScores:
    """Return removal costs and insertion gains of all counted edges. O(p^2) after the inverse."""
    form = cast("AnyPrecision", objective.form)
    counted = form.sparsity.counted
    member = np.zeros(form.sparsity.size, dtype=bool)
    member[point.support] = True
    inside = np.flatnonzero(counted & member)
    outside = np.flatnonzero(counted & ~member)
    costs, gains = np.zeros(inside.size), np.zeros(outside.size)
    for share, part, factor in precision_states(objective, point):
        S, W = part.covariance, factor.inverse
        cost = removal_costs(S, factor.omega, W, form.rows[inside], form.cols[inside])
        costs += share * cost
        gains += share * insertion_gains(S, W, form.rows[outside], form.cols[outside])
    return EdgeScores(inside, costs, outside, gains)


def with_edges(support: IntArray, added: IntArray, removed: IntArray) -> IntArray:
    """Return the sorted support with some coordinates more and some less."""
    kept = support if not removed.size else np.setdiff1d(support, removed, assume_unique=True)
    return np.union1d(kept, added)


def best_first(scores: FloatArray, k: int) -> IntArray:
    """Return the indices of the ``k`` largest scores, best first; ties to the lower index."""
    chosen = top_k(scores, k)
    return chosen[np.argsort(-scores[chosen], kind="stable")]


def screened_start(
    objective: Objective, context: Context, *, shrinkage: float | None, tol: float | None
) -> Point:
    """Return the optimum on the ``k`` edges of the largest ridge partial correlations, in time.

    Of several matrices, on those with the largest sums of their squares.
    """
    form = cast("AnyPrecision", objective.form)
    p = form.order
    if not budget().fits(cholesky_cost(p), inverse_cost(p), inverse_cost(p)):
        return objective.origin()  # the screening and a step of the fit would not end in time
    strengths = np.zeros((p, p))
    for share, part in zip(form.shares, form.parts, strict=True):
        S, ridge = part.covariance, shrinkage
        ridge = default_shrinkage(S, part.samples) if ridge is None else ridge
        strengths += share * np.square(ridge_partial_correlations(S, ridge))
    sparsity = form.sparsity
    units = sparsity.unit_scores(np.sqrt(strengths)[form.rows, form.cols])
    support = sparsity.coordinates(top_k(units, sparsity.budget))
    return context.restricted(objective, support, objective.origin(), tol=tol)


def given_start(
    objective: Objective, context: Context, start: FloatArray, *, tol: float | None
) -> Point:
    """Return a start filled up to ``k`` edges by their insertion gains, and minimised."""
    point = objective.point_from(start)
    if not np.isfinite(point.value):
        point = context.restricted(objective, point.support, objective.origin(), tol=tol)
    missing = objective.cardinality.budget - objective.cardinality.count(point.x)
    if missing > 0:
        scores = edge_scores(objective, point)
        added = scores.outside[top_k(scores.gains, missing)]
        support = with_edges(point.support, added, np.empty(0, dtype=np.intp))
        following = context.restricted(objective, support, point, tol=tol)
        if following.value <= point.value:
            return following
    return point


def first_point(objective: Objective, context: Context) -> Point:
    """Return the start (the diagonal without one), optimal on its own support."""
    point = context.first_point(objective)
    fitted = context.restricted(objective, point.support, point)
    return fitted if fitted.value <= point.value else point


def objective_weight(objective: Objective) -> float:
    """Return the constant in front of the likelihood, to turn nats into objective units."""
    return cast("AnyPrecision", objective.form).weight


@final
@dataclass(frozen=True, slots=True, eq=False)
class BlockState:
    """An optimum on a support, and how many edges are exchanged next."""

    point: Point
    block: int
    """0 once no exchange helps."""
    gained: float = np.inf
    """How far the last exchange lowered the objective, in nats."""
    failures: int = 0
    """Exchanges of single edges that did not help, since one did."""
    tried: int = 0
    """Exchanges that were tried."""
    done: bool = False


class BlockSearch(IterativeBackend[BlockState]):
    """Exchanges blocks of edges while that helps; the last solve is exact."""

    __slots__ = ()

    first_block: float

    def step(self, objective: Objective, state: BlockState, context: Context) -> BlockState:
        if state.block > 0:
            return self.exchanged(objective, state, context)
        point = context.restricted(objective, state.point.support, state.point)
        return replace(state, point=min(point, state.point, key=lambda p: p.value), done=True)

    @abstractmethod
    def exchanged(self, objective: Objective, state: BlockState, context: Context) -> BlockState:
        """Return the state after a block was tried."""

    def improved(
        self, objective: Objective, state: BlockState, following: Point, q: int
    ) -> BlockState | None:
        """Return the state with a larger block where ``q`` edges helped; None where not."""
        gained = (state.point.value - following.value) / objective_weight(objective)
        if not gained > _PROGRESS:
            return None
        block = min(q + q // 2 + 1, self.largest_block(objective))
        return replace(state, point=following, block=block, gained=gained, failures=0)

    def largest_block(self, objective: Objective) -> int:
        """Return the size of the first block."""
        return max(1, int(self.first_block * objective.cardinality.budget))

    def residual(self, state: BlockState) -> float:
        return state.gained
