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
    ModelError,
    Objective,
    Point,
    Stop,
    TwiceDifferentiable,
)
from sparsemodel.interfaces.self_description import Theorem
from sparsemodel.numerics import normalised_step, project
from sparsemodel_backends.theorems.grahtp import THEOREM_2B
from sparsemodel_backends.theorems.tight import THEOREM_06


@final
@dataclass(frozen=True, slots=True, eq=False)
class IHTState:
    """An iterate with the step that led to it."""

    point: Point
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

    Notes
    -----
    One gradient an iteration. A fixed step above ``1 / M_2k`` may diverge. With bounds,
    :math:`H_k` is the projection onto the sparse points within them.

    Literal mode takes the step 1 of Blumensath and Davies (2009); ``step_size`` gives the
    :math:`\eta` of FGraHTP.
    """

    step_size: float | None = None
    tol: float = 1e-8
    max_iter: int = 1000

    name: ClassVar[str] = "iht"
    reference: ClassVar[str] = "Blumensath and Davies (2009); FGraHTP of Yuan, Li and Zhang (2018)"
    guarantee: ClassVar[str] = (
        "with a step eta such that 1 - 2 eta m_3k + (eta M_3k)^2 < 0.62^2, linear convergence to "
        " every k-sparse point, up to its gradient, when M_3k / m_3k < 1.26 (Yuan, Li and Zhang "
        "2018, Theorem 2(b))"
    )
    purpose: ClassVar[str] = "plain gradient steps give a cheap first support"
    published: ClassVar[Mapping[str, Any] | None] = {"step_size": 1.0, "tol": 0.0}
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(TwiceDifferentiable,), box=True, limits=True
    )

    def theorems(self) -> tuple[Theorem, ...]:
        return (THEOREM_2B, THEOREM_06)

    def __post_init__(self) -> None:
        if self.step_size is not None and not self.step_size > 0.0:
            raise ModelError(f"step_size must be positive or None, not {self.step_size}.")

    def init(self, objective: Objective, context: Context) -> IHTState:
        point = context.first_point(objective)
        return IHTState(point, self.step_size or 0.0)

    def step(self, objective: Objective, state: IHTState, context: Context) -> IHTState:
        x = state.point.x
        g = objective.gradient(state.point)
        if self.step_size is not None:
            z = x - self.step_size * g
            following = objective.point(*project(objective, z))
            return _advance(following, state, self.step_size)
        first = state.point.support
        if first.size == objective.cardinality.free.size:  # at the origin: the support to come
            first = project(objective, -g)[0]
        eta = normalised_step(objective, state.point, first) or state.step_size or 1.0
        for _ in range(60):
            following = objective.point(*project(objective, x - eta * g))
            d = following.x - x
            bound = state.point.value + float(np.vdot(g, d)) + float(np.vdot(d, d)) / (2.0 * eta)
            if following.value <= bound + 1e-15 * abs(state.point.value):
                return _advance(following, state, eta)
            eta *= 0.5
        return IHTState(state.point, eta, state.change, stuck=True)

    def residual(self, state: IHTState) -> float:
        return state.change

    def stopped(self, objective: Objective, state: IHTState) -> Stop | None:
        if state.stuck:
            return Stop.STALLED
        return Stop.CONVERGED if state.change <= self.tol else None


def _advance(following: Point, state: IHTState, eta: float) -> IHTState:
    size = float(np.linalg.norm(following.x))
    moved = float(np.linalg.norm(following.x - state.point.x))
    return IHTState(following, eta, moved / size if size > 0.0 else moved)


__all__ = ["IHT", "IHTState"]
