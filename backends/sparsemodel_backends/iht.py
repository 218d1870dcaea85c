"""Iterative hard thresholding, for any smooth loss (FGraHTP)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
from sparsemodel.interfaces.self_description import Theorem
from sparsemodel.numerics import (
    Units,
    normalised_step,
    project,
    pruned,
    relative_change,
    relaxed_budget,
    size_in_units,
)
from sparsemodel_backends.theorems.grahtp import fast_theorems
from sparsemodel_backends.theorems.tight import iht_theorem


@final
@dataclass(frozen=True, slots=True, eq=False)
class IHTState:
    """An iterate with the step that led to it."""

    relaxed: Point
    """The iterate, with ``k`` units."""
    point: Point
    """The iterate, or where it may have more than ``K`` units its ``K`` largest, minimised."""
    step_size: float
    change: float = np.inf
    """``||x+ - x|| / ||x+||`` of the last step."""
    stuck: bool = False


@final
@dataclass(frozen=True, slots=True)
class IHT(IterativeBackend[IHTState]):
    r"""Projected gradient steps onto the sparse set,
    :math:`x \leftarrow H_k(x - \eta \nabla f(x))`.

    For the squared loss this is iterative hard thresholding (Blumensath and Davies 2009), for
    other losses FGraHTP (Yuan, Li and Zhang, JMLR 2018, Algorithm 1 without debiasing).

    Parameters
    ----------
    step_size
        :math:`\eta`. None backtracks: starting from the exact step on the current support,
        :math:`\eta` is halved until
        :math:`f(x^+) \le f(x) + \langle g, x^+ - x\rangle + \|x^+ - x\|^2 / (2\eta)`.
    tol
        Stops when the relative change of ``x`` falls below it.
    max_iter
        Iteration limit.
    relaxation
        :math:`k / K` with ``K`` the cardinality of the problem, as in
        :class:`~sparsemodel_backends.pgd.PGD`.
    units
        What ``step_size`` multiplies the gradient of: the objective as it is ``"declared"``, the
        ``"sum"`` of the losses, or their ``"mean"``.

    Notes
    -----
    One gradient an iteration. A fixed step above ``1 / M_2k`` may diverge. With bounds,
    :math:`H_k` is the projection onto the sparse points within them.

    Literal mode takes the step 1 of Blumensath and Davies (2009), whose ``f`` is a sum,
    :math:`\|A x - b\|^2 / 2`. The ``f`` of FGraHTP is a mean:
    ``as_published(units="mean", step_size=...)`` gives its :math:`\eta`.
    """

    step_size: float | None = None
    tol: float = 1e-8
    max_iter: int = 1000
    relaxation: float = 1.0
    units: Units = "declared"

    name: ClassVar[str] = "iht"
    reference: ClassVar[str] = "Blumensath and Davies (2009); FGraHTP of Yuan, Li and Zhang (2018)"
    guarantee: ClassVar[str] = (
        "with a step eta such that 1 - 2 eta m_3k + (eta M_3k)^2 < 1/1.62^2, linear convergence to "
        "every k-sparse point, up to its gradient, when M_3k / m_3k < 1.26 (Yuan, Li and Zhang "
        "2018, Theorem 2(b))"
    )
    purpose: ClassVar[str] = "plain gradient steps give a cheap first support"
    published: ClassVar[Mapping[str, Any] | None] = {
        "step_size": 1.0,
        "units": "sum",
        "tol": 0.0,
    }
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(TwiceDifferentiable,), box=True, limits=True
    )

    def theorems(self) -> tuple[Theorem, ...]:
        given = self.step_size, "", self.units, self.relaxation
        return (*fast_theorems(*given), iht_theorem(*given))

    def __post_init__(self) -> None:
        check_options(
            self,
            step_size="positive or None",
            relaxation="at least 1",
            units="'declared' or 'sum' or 'mean'",
        )

    def init(self, objective: Objective, context: Context) -> IHTState:
        point = context.first_point(objective)
        eta = (self.step_size or 0.0) / size_in_units(objective.form, self.units)
        return IHTState(point, point, eta)

    def step(self, objective: Objective, state: IHTState, context: Context) -> IHTState:
        at = state.relaxed
        x, g = at.x, objective.gradient(at)
        k = relaxed_budget(objective, self.relaxation)
        if self.step_size is not None:
            following = objective.point(*project(objective, x - state.step_size * g, k=k))
            return self._advance(objective, context, following, state, state.step_size)
        first = at.support
        if first.size == objective.cardinality.free.size:  # at the origin: the support to come
            first = project(objective, -g, k=k)[0]
        eta = normalised_step(objective, at, first) or state.step_size or 1.0
        for _ in range(60):
            following = objective.point(*project(objective, x - eta * g, k=k))
            d = following.x - x
            bound = at.value + float(np.vdot(g, d)) + float(np.vdot(d, d)) / (2.0 * eta)
            if following.value <= bound + 1e-15 * abs(at.value):
                return self._advance(objective, context, following, state, eta)
            eta *= 0.5
        return IHTState(at, state.point, eta, state.change, stuck=True)

    def _advance(
        self, objective: Objective, context: Context, following: Point, state: IHTState, eta: float
    ) -> IHTState:
        point = following
        if self.relaxation > 1.0:
            last = None if state.point is state.relaxed else state.point
            point = pruned(objective, context.restricted, following, last)
        return IHTState(following, point, eta, relative_change(following.x, state.relaxed.x))

    def published_iterate(self, state: IHTState) -> Point:
        return state.relaxed

    def residual(self, state: IHTState) -> float:
        return state.change

    def stopped(self, objective: Objective, state: IHTState) -> Stop | None:
        if state.stuck:
            return Stop.STALLED
        return Stop.CONVERGED if state.change <= self.tol else None
