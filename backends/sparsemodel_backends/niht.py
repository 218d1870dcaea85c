"""Normalised iterative hard thresholding."""

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
    check_options,
)
from sparsemodel.numerics import normalised_step, project, relative_change


@final
@dataclass(frozen=True, slots=True, eq=False)
class NIHTState:
    """An iterate with the step that led to it."""

    point: Point
    step_size: float = 1.0
    change: float = np.inf
    """``||x+ - x|| / ||x+||`` of the last step."""
    stuck: bool = False


@final
@dataclass(frozen=True, slots=True)
class NIHT(IterativeBackend[NIHTState]):
    r"""Hard thresholding with the step that is exact on the current support.

    :math:`\mu = \|g_S\|^2 / g_S^\top H g_S`; :math:`x^+ = H_k(x - \mu g)`. When the support
    changes, :math:`\mu` is divided by ``shrink * (1 - c)`` until
    :math:`\mu \le (1 - c) \|x^+ - x\|^2 / \|x^+ - x\|_H^2` (Blumensath and Davies 2010).

    Parameters
    ----------
    c, shrink
        As above; ``shrink > 1 / (1 - c)``.
    tol
        Stops when the relative change of ``x`` falls below it.
    max_iter
        Iteration limit.

    Notes
    -----
    One gradient an iteration. For losses that are not quadratic the test is made on the values,
    :math:`f(x^+) \le f(x) + \langle g, d \rangle + (1 - c) \|d\|^2 / (2 \mu)` with
    :math:`d = x^+ - x`, which is the same inequality when ``f`` is a quadratic, and on every
    step, because the curvature changes.

    Literal mode differs by ``tol`` alone.
    """

    c: float = 0.01
    shrink: float = 2.0
    tol: float = 1e-8
    max_iter: int = 1000

    name: ClassVar[str] = "niht"
    reference: ClassVar[str] = (
        "Blumensath and Davies, Normalized iterative hard thresholding (2010)"
    )
    guarantee: ClassVar[str] = (
        "for the squared loss, converges to a point that is optimal in its neighbourhood when all "
        "sets of k columns are independent (Blumensath and Davies 2010, Theorem 3)"
    )
    published: ClassVar[Mapping[str, Any] | None] = {"tol": 0.0}
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(TwiceDifferentiable,), box=True, limits=True
    )

    def __post_init__(self) -> None:
        check_options(self, c="in [0, 1)")
        if not self.shrink * (1.0 - self.c) > 1.0:
            raise ModelError(
                f"shrink must be larger than 1 / (1 - c) = {1.0 / (1.0 - self.c):.4g}, "
                f"not {self.shrink}."
            )

    def init(self, objective: Objective, context: Context) -> NIHTState:
        return NIHTState(context.first_point(objective))

    def step(self, objective: Objective, state: NIHTState, context: Context) -> NIHTState:
        point = state.point
        g = objective.gradient(point)
        support = point.support
        if support.size == objective.cardinality.free.size:  # at the origin: the support to come
            support = project(objective, -g)[0]
        mu = normalised_step(objective, point, support) or state.step_size
        for _ in range(60):
            kept, values = project(objective, point.x - mu * g)
            following = objective.point(kept, values)
            d = following.x - point.x
            square = float(np.vdot(d, d))
            same = np.array_equal(kept, support)
            bound = point.value + float(np.vdot(g, d)) + (1.0 - self.c) * square / (2.0 * mu)
            rounding = 1e-15 * abs(point.value)
            exact = same and objective.quadratic and following.value <= point.value + rounding
            if exact or following.value <= bound + rounding:
                return NIHTState(following, mu, relative_change(following.x, point.x))
            mu /= self.shrink * (1.0 - self.c)
        return NIHTState(point, state.step_size, state.change, stuck=True)

    def residual(self, state: NIHTState) -> float:
        return state.change

    def stopped(self, objective: Objective, state: NIHTState) -> Stop | None:
        if state.stuck:
            return Stop.STALLED
        return Stop.CONVERGED if state.change <= self.tol else None
