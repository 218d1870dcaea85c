"""Orthogonal matching pursuit, for any smooth loss (forward selection)."""

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
class OMPState:
    """A minimiser over its support, and the best score of a unit outside it."""

    point: Point
    support: GreedySupport
    first: float
    """The best score at zero."""
    score: float
    """The best score now; 0 when the support is full."""
    unit: int
    restart: bool = False
    """The start was full: see what forward selection finds by itself."""


@final
@dataclass(frozen=True, slots=True)
class OMP(IterativeBackend[OMPState]):
    r"""Add the coordinate with the largest gradient, minimise over the support, repeat.

    :math:`i = \arg\max_{i \notin S} |\nabla_i f(x)|`, :math:`S \leftarrow S \cup \{i\}`,
    :math:`x = \arg\min\{f : \mathrm{supp}(x) \subseteq S\}`. For the squared loss this is
    orthogonal matching pursuit, for other losses fully corrective forward selection (FBS in Yuan,
    Li and Zhang 2018). A group enters by the norm of its gradient.

    Parameters
    ----------
    tol
        Stops early when the largest gradient has fallen to ``tol`` times its first value.
    scaled
        Compare gradients as if all columns had unit norm, :math:`|g_i| / \sqrt{H_{ii}}`, as the
        literature assumes. False compares :math:`|g_i|`.

    Notes
    -----
    One gradient per coordinate, plus ``O(n k + k^2)`` for the squared loss (a Cholesky factor is
    updated) and a warm-started restricted minimisation for others. A start is continued when it
    leaves room; a full one is only competed with.

    Literal mode compares :math:`|g_i|`.
    """

    tol: float = 1e-12
    scaled: bool = True

    name: ClassVar[str] = "omp"
    reference: ClassVar[str] = (
        "Pati, Rezaiifar and Krishnaprasad (1993); Axiotis and Sviridenko (2020), Algorithm 2"
    )
    guarantee: ClassVar[str] = (
        "reaches f(x*) + eps for an s*-sparse x* with O(s* kappa log((f(0) - f(x*)) / eps)) "
        "coordinates, kappa the restricted condition number (Shalev-Shwartz, Srebro, Zhang 2010)"
    )
    purpose: ClassVar[str] = (
        "adds the best coordinate a pass: slow, and careful where columns are correlated"
    )
    published: ClassVar[Mapping[str, Any] | None] = {"scaled": False, "tol": 0.0}
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(TwiceDifferentiable,), box=True, price=True
    )
    default_max_iter: ClassVar[int] = 2**62

    def __post_init__(self) -> None:
        check_options(self, tol="in [0, 1)")

    def init(self, objective: Objective, context: Context) -> OMPState:
        support = GreedySupport(objective, context.restricted, scaled=self.scaled)
        origin = support.start(None)
        first = float(support.insertion_scores(origin).max(initial=0.0))
        if context.start is None:
            return _look(objective, support, origin, first)
        point = support.start(context.start)
        full = _used(objective, point) >= _limit(objective) > 0
        return replace(_look(objective, support, point, first), restart=full)

    def step(self, objective: Objective, state: OMPState, context: Context) -> OMPState:
        support = state.support
        if state.restart:
            return _look(objective, support, support.start(None), state.first)
        following = support.with_unit(state.point, state.unit)
        if _used(objective, following) == _limit(objective):
            following = support.debiased(following)
        return _look(objective, support, following, state.first)

    def residual(self, state: OMPState) -> float:
        return float(np.sqrt(2.0 * state.score))

    def stopped(self, objective: Objective, state: OMPState) -> Stop | None:
        if state.restart:
            return None
        if not np.isfinite(state.score):
            return Stop.NON_FINITE
        return Stop.CONVERGED if state.score <= self.tol**2 * state.first else None


def _limit(objective: Objective) -> int:
    return min(objective.cardinality.budget, objective.cardinality.units)


def _used(objective: Objective, point: Point) -> int:
    return int(support_units(objective.cardinality, point.support).size)


def _look(objective: Objective, support: GreedySupport, point: Point, first: float) -> OMPState:
    if _used(objective, point) >= _limit(objective):
        return OMPState(point, support, first, 0.0, -1)
    scores = support.insertion_scores(point)
    unit = int(np.argmax(scores))
    return OMPState(point, support, first, float(scores[unit]), unit)
