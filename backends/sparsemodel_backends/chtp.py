"""Hard thresholding pursuit under convex constraints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    IterativeBackend,
    Objective,
    Point,
    TwiceDifferentiable,
    check_options,
)
from sparsemodel.numerics import normalised_step, project, select


@final
@dataclass(frozen=True, slots=True, eq=False)
class CHTPState:
    """A minimiser over its support, and whether no other support was found better."""

    point: Point
    change: float = np.inf
    """Relative decrease of the last step."""
    done: bool = False


@final
@dataclass(frozen=True, slots=True)
class CHTP(IterativeBackend[CHTPState]):
    r"""Projected gradient steps choose the support, the restricted solver keeps the constraints.

    At a minimiser over its support with the normal vector :math:`\nu` of the constraints that
    hold it (their multipliers times their gradients),

    1. :math:`z = x - \eta (\nabla f(x) + \nu)`,
    2. ``F`` is the support of the projection of ``z`` onto sparse vectors within the bounds,
    3. :math:`x^+ = \arg\min \{ f(x) : \mathrm{supp}(x) \subseteq F, x \text{ feasible} \}`,

    with :math:`\eta` halved until the objective falls. Without constraints this is gradient hard
    thresholding pursuit with a line search (Yuan, Li and Zhang, JMLR 2018, Algorithm 1); for
    nonnegative coefficients the projection is that of Pan, Zhou, Xiu and Qi (2017).

    Parameters
    ----------
    tol
        Smallest relative decrease that counts.
    halvings
        Step lengths tried in each iteration.
    max_iter
        Iteration limit.

    Notes
    -----
    One gradient and at most ``halvings`` restricted minimisations an iteration. The objective
    never rises, so the method ends.

    No literal mode: no paper has constraints of this kind.
    """

    tol: float = 1e-10
    halvings: int = 8
    max_iter: int = 200

    name: ClassVar[str] = "chtp"
    reference: ClassVar[str] = (
        "gradient hard thresholding pursuit (Yuan, Li and Zhang 2018) on the Lagrangian"
    )
    guarantee: ClassVar[str] = "the objective falls in every step, and every iterate is feasible"
    always: ClassVar[str] = guarantee
    purpose: ClassVar[str] = "its steps stay within the constraints"
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(TwiceDifferentiable,), box=True, region=True
    )

    def __post_init__(self) -> None:
        check_options(self, halvings="at least 1")

    def init(self, objective: Objective, context: Context) -> CHTPState:
        point = context.first_point(objective)
        debiased = context.restricted(objective, point.support, point)
        return CHTPState(debiased if debiased.value <= point.value else point)

    def step(self, objective: Objective, state: CHTPState, context: Context) -> CHTPState:
        point = state.point
        pull = objective.gradient(point)
        if point.normal is not None:
            pull = pull + point.normal
        if not np.all(np.isfinite(pull)):  # a projection would take NaN for nothing to gain
            return CHTPState(replace(point, value=np.nan))
        eta = 2.0 * _step_length(objective, point, pull)
        seen = [point.support]
        for _ in range(self.halvings):
            support = project(objective, point.x - eta * pull)[0]
            eta *= 0.5
            if any(np.array_equal(support, before) for before in seen):
                continue
            seen.append(support)
            following = context.restricted(objective, support, point)
            decrease = point.value - following.value
            # So written that NaN is handed on, and ends the run with its own reason.
            if not decrease <= self.tol * max(abs(point.value), abs(following.value)):
                return CHTPState(following, decrease / max(abs(point.value), 1e-300))
            if context.limits.expired():
                return state
        return replace(state, change=0.0, done=True)

    def residual(self, state: CHTPState) -> float:
        return state.change


def _step_length(objective: Objective, point: Point, pull: np.ndarray) -> float:
    """Return the exact step of a quadratic along the entries that pull hardest."""
    support = select(objective.cardinality, pull)
    shown = point.with_gradient(pull)  # to measure curvature along it
    return normalised_step(objective, shown, support) or 1.0
