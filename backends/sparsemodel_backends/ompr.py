"""Orthogonal matching pursuit with replacement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    IntArray,
    IterativeBackend,
    Objective,
    Point,
    Stop,
    TwiceDifferentiable,
    check_options,
)
from sparsemodel.interfaces.self_description import Theorem, run_otherwise
from sparsemodel.numerics import GreedySupport, support_units
from sparsemodel_backends.theorems.arht import COROLLARY_4_5, THEOREM_4_2

REMOVALS = ("smallest", "cheapest")


@final
@dataclass(frozen=True, slots=True, eq=False)
class OMPRState:
    """A minimiser over its support, and whether the last exchange failed."""

    point: Point
    support: GreedySupport
    scale: float
    """The largest decrease seen; what rounding is measured against."""
    score: float = np.inf
    done: bool = False


@final
@dataclass(frozen=True, slots=True)
class OMPR(IterativeBackend[OMPRState]):
    r"""Exchange the smallest coefficient for the largest gradient while that lowers ``f``.

    :math:`i = \arg\max_{i \notin S} |\nabla_i f(x)|`, :math:`j = \arg\min_{j \in S} |x_j|`,
    :math:`S \leftarrow S \cup \{i\} \setminus \{j\}`, then minimise over the support; ends,
    keeping the old ``x``, when ``f`` does not fall (Axiotis and Sviridenko 2020, Algorithm 3).
    A support with room is filled by orthogonal matching pursuit first.

    Parameters
    ----------
    removal
        ``"smallest"`` drops the smallest :math:`|x_j|`, as the paper; ``"cheapest"`` the
        coordinate whose removal raises ``f`` least (exact for the squared loss, a quadratic model
        for others).
    scaled
        Compare gradients and coefficients as if all columns had unit norm. False takes them as
        they are.
    max_iter
        Additions and exchanges at most.

    Notes
    -----
    One gradient an exchange, plus ``O(n k + k^2)`` for the squared loss and a restricted
    minimisation for others.

    Literal mode compares :math:`|g_i|` and :math:`|x_j|`; the paper's :math:`S^0` is the support
    of ``start``.
    """

    removal: Literal["smallest", "cheapest"] = "smallest"
    scaled: bool = True
    max_iter: int = 100_000

    name: ClassVar[str] = "ompr"
    reference: ClassVar[str] = "Axiotis and Sviridenko (2020), Algorithm 3; Jain et al. (2011)"
    guarantee: ClassVar[str] = (
        "reaches f(x*) + eps for an s*-sparse x* when k >= s* kappa^2, kappa = rho_2^+ / rho^-, "
        "and up to a multiple of f(x*) - min f when k > s* kappa^2 / 4 (Axiotis and Sviridenko "
        "2020, Theorem 4.2)"
    )
    purpose: ClassVar[str] = "adds coordinates one by one, then exchanges them by gradients"
    published: ClassVar[Mapping[str, Any] | None] = {"scaled": False}
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(TwiceDifferentiable,), box=True, price=True
    )

    def theorems(self) -> tuple[Theorem, ...]:
        about = THEOREM_4_2, COROLLARY_4_5
        if self.removal == "smallest":
            return about
        return tuple(run_otherwise(each, "the cheapest unit is removed") for each in about)

    def __post_init__(self) -> None:
        check_options(self, removal=" or ".join(map(repr, REMOVALS)))

    def init(self, objective: Objective, context: Context) -> OMPRState:
        support = GreedySupport(objective, context.restricted, scaled=self.scaled)
        point = support.start(context.start)
        return OMPRState(point, support, abs(objective.origin().value - point.value))

    def step(self, objective: Objective, state: OMPRState, context: Context) -> OMPRState:
        point, support = state.point, state.support
        scores = support.insertion_scores(point)
        into = int(np.argmax(scores)) if scores.size else -1
        units = support_units(objective.cardinality, point.support)
        if into < 0 or scores[into] == 0.0 or objective.cardinality.budget == 0:
            return replace(state, point=support.debiased(point), score=0.0, done=True)
        if units.size < objective.cardinality.budget:
            following = support.with_unit(point, into)
        else:
            following = support.exchange(point, self._removed(support, point, units), into)
        decrease = point.value - following.value
        scale = max(state.scale, decrease)
        if decrease <= 1e-12 * scale:  # lines 12-13: keep the old point
            return replace(state, point=support.debiased(point), score=scores[into], done=True)
        return OMPRState(following, support, scale, float(scores[into]))

    def _removed(self, support: GreedySupport, point: Point, units: IntArray) -> int:
        if self.removal == "cheapest":
            units, costs = support.removal_costs(point)
            return int(units[np.argmin(costs)])
        sizes = support.sizes(point)
        return int(units[np.argmin(sizes[units])])

    def residual(self, state: OMPRState) -> float:
        return float(np.sqrt(2.0 * state.score))

    def stopped(self, objective: Objective, state: OMPRState) -> Stop | None:
        if not np.isfinite(state.score) and state.score != np.inf:
            return Stop.NON_FINITE
        return Stop.CONVERGED if state.done else None
