"""Projected gradient descent with a relaxed sparsity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

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
from sparsemodel.numerics import normalised_step, project, select


@final
@dataclass(frozen=True, slots=True, eq=False)
class PGDState:
    """The relaxed iterate, the feasible point made of it, and the step."""

    relaxed: Point
    point: Point
    """Minimised over the ``K`` largest units of the relaxed iterate."""
    step_size: float
    change: float = np.inf


@final
@dataclass(frozen=True, slots=True)
class PGD(IterativeBackend[PGDState]):
    r"""Hard thresholding that keeps more coordinates than are allowed, and prunes for the result.

    :math:`b = x - \eta \nabla f(x)`, :math:`x \leftarrow H_k(b)` with :math:`k > K`, ``K`` being
    the cardinality of the problem (Shen and Li, JMLR 2018, Section 3). Keeping more than ``K``
    brings the expansion factor of hard thresholding (``numerics.expansion_factor``) towards 1, and
    with it relaxes the restricted isometry that recovery asks for.

    Parameters
    ----------
    relaxation
        :math:`k / K`, at least 1; 1 is iterative hard thresholding with a fixed step.
    step_size
        :math:`\eta`. None takes 2 / L with the global Lipschitz constant L of the gradient, as
        the paper's experiments do, halved whenever ``f`` would rise; losses without such a
        constant start from the exact step on the current support.
    tol
        Stops when the relative change of ``x`` falls below it.
    max_iter
        Iteration limit.

    Notes
    -----
    One gradient an iteration, and a restricted minimisation whenever the ``K`` largest units of
    the iterate are others than before.
    """

    relaxation: float = 2.0
    step_size: float | None = None
    tol: float = 1e-6
    max_iter: int = 1000

    name: ClassVar[str] = "pgd"
    reference: ClassVar[str] = "Shen and Li (JMLR 2018), Theorem 1 and Section 3"
    guarantee: ClassVar[str] = (
        "for linear measurements and a step of 1, halves the distance to a K-sparse x* in each "
        "iteration, up to the noise, when the restricted isometry constant of order 2k + K is at "
        "most 1 / sqrt(8 nu), nu tending to 1 as k / K grows (Shen and Li 2018, Theorem 6)"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(facets=(TwiceDifferentiable,), box=True)

    def __post_init__(self) -> None:
        if not self.relaxation >= 1.0:
            raise ModelError(f"relaxation must be at least 1, not {self.relaxation}.")
        if self.step_size is not None and not self.step_size > 0.0:
            raise ModelError(f"step_size must be positive or None, not {self.step_size}.")

    def init(self, objective: Objective, context: Context) -> PGDState:
        start = context.start
        point = objective.origin() if start is None else objective.point_from(start)
        eta = self.step_size or 0.0
        if self.step_size is None:
            bound = objective.smoothness().value
            eta = 2.0 / bound if np.isfinite(bound) and bound > 0.0 else 0.0
        return PGDState(point, point, eta)

    def step(self, objective: Objective, state: PGDState, context: Context) -> PGDState:
        x = state.relaxed.x
        g = objective.gradient(state.relaxed)
        eta = state.step_size
        if eta == 0.0:
            along = select(objective.cardinality, g)
            eta = 2.0 * (normalised_step(objective, state.relaxed, along) or 1.0)
        k = self._relaxed(objective)
        following = objective.point(*project(objective, x - eta * g, k=k))
        for _ in range(60):
            rises = following.value > state.relaxed.value * (1.0 + 1e-14)
            if self.step_size is not None or not rises:
                break
            eta *= 0.5
            following = objective.point(*project(objective, x - eta * g, k=k))
        size = float(np.linalg.norm(following.x))
        moved = float(np.linalg.norm(following.x - x))
        change = moved / size if size > 0.0 else moved
        support, values = project(objective, following.x)
        point = state.point
        if change <= self.tol or not np.array_equal(support, point.support):
            point = context.restricted(objective, support, objective.point(support, values))
        return PGDState(following, point, eta, change)

    def _relaxed(self, objective: Objective) -> int:
        sparsity = objective.cardinality
        return min(int(np.ceil(self.relaxation * sparsity.budget)), sparsity.units)

    def iterate(self, state: PGDState) -> Point:
        return state.point

    def residual(self, state: PGDState) -> float:
        return state.change

    def stopped(self, objective: Objective, state: PGDState) -> Stop | None:
        if not np.isfinite(state.change) and not np.isfinite(state.relaxed.value):
            return Stop.NON_FINITE
        return Stop.CONVERGED if state.change <= self.tol else None


__all__ = ["PGD", "PGDState"]
