"""Subspace pursuit."""

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
)
from sparsemodel.numerics import GreedySupport, support_units, top_k


@final
@dataclass(frozen=True, slots=True, eq=False)
class SPState:
    """A minimiser over its support, and whether the last step failed to improve on it."""

    point: Point
    support: GreedySupport
    decrease: float = np.inf
    done: bool = False


@final
@dataclass(frozen=True, slots=True)
class SP(IterativeBackend[SPState]):
    r"""Merge the support with the ``k`` largest gradients, minimise, keep the ``k`` largest.

    :math:`\tilde S = S \cup \mathrm{supp}_k(\nabla f(x))`,
    :math:`b = \arg\min\{f : \mathrm{supp} \subseteq \tilde S\}`, :math:`S = \mathrm{supp}_k(b)`,
    :math:`x = \arg\min\{f : \mathrm{supp} \subseteq S\}`; ends, keeping the old ``x``, when ``f``
    does not fall (Dai and Milenkovic 2009, Algorithm 1; their ``f`` is the squared residual).

    Parameters
    ----------
    scaled
        Compare gradients and coefficients as if all columns had unit norm. False takes them as
        they are.
    max_iter
        Iteration limit.

    Notes
    -----
    One gradient and two restricted minimisations, over at most ``2k`` and ``k`` units, an
    iteration. ``2k`` columns should be independent, or regularised by a ridge.

    Literal mode compares :math:`|g_i|` and :math:`|x_j|`.
    """

    scaled: bool = True
    max_iter: int = 500

    name: ClassVar[str] = "sp"
    reference: ClassVar[str] = "Dai and Milenkovic (2009), Algorithm 1"
    guarantee: ClassVar[str] = (
        "as published, recovers every k-sparse x exactly from noiseless linear measurements when "
        "the restricted isometry constant delta_3k is below 0.165 (Dai and Milenkovic 2009, "
        "Theorem 1)"
    )
    purpose: ClassVar[str] = "exchanges many coordinates at once and settles in a few passes"
    published: ClassVar[Mapping[str, Any] | None] = {"scaled": False}
    capabilities: ClassVar[Capabilities] = Capabilities(facets=(TwiceDifferentiable,), box=True)

    def init(self, objective: Objective, context: Context) -> SPState:
        support = GreedySupport(objective, context.restricted, scaled=self.scaled)
        return SPState(support.start(context.start), support)

    def step(self, objective: Objective, state: SPState, context: Context) -> SPState:
        sparsity, point = objective.cardinality, state.point
        k = min(sparsity.budget, sparsity.units)
        found = top_k(state.support.insertion_scores(point), k)
        units = support_units(sparsity, point.support)
        if units.size:
            merged = sparsity.coordinates(np.union1d(units, found))
            middle = context.restricted(objective, merged, point, tol=1e-6)
            kept = sparsity.coordinates(top_k(state.support.sizes(middle), k))
            following = context.restricted(objective, kept, middle)
        else:  # the initialisation of the paper
            following = context.restricted(objective, sparsity.coordinates(found), point)
        decrease = point.value - following.value
        if decrease <= 1e-13 * abs(point.value):
            return replace(state, decrease=decrease, done=True)
        return SPState(following, state.support, decrease)

    def residual(self, state: SPState) -> float:
        return state.decrease

    def stopped(self, objective: Objective, state: SPState) -> Stop | None:
        if np.isnan(state.decrease):
            return Stop.NON_FINITE
        return Stop.CONVERGED if state.done else None
