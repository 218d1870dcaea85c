"""Newton greedy pursuit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    FloatArray,
    IterativeBackend,
    Objective,
    Point,
    Stop,
    TwiceDifferentiable,
    check_options,
)
from sparsemodel.numerics import project, relative_change


@final
@dataclass(frozen=True, slots=True, eq=False)
class NTGPState:
    """An iterate, and how the last step went."""

    point: Point
    step_size: float = 0.0
    """Inverse curvature with which the last inner iteration ended."""
    change: float = np.inf
    gradient: float = 0.0
    stuck: bool = False


@final
@dataclass(frozen=True, slots=True)
class NTGP(IterativeBackend[NTGPState]):
    r"""Minimise quadratic models over the sparse set, by hard thresholding.

    :math:`Q(y) = \langle g, y - x \rangle + \frac12 (y - x)^\top H (y - x)` with the gradient and
    Hessian at ``x`` is minimised over the sparse set by iterative hard thresholding; its result
    is the next ``x`` (Yuan and Liu 2014). When ``f`` does not fall there, the model is trusted
    less: fewer inner iterations, at last a single projected gradient step that lowers ``f``.

    Parameters
    ----------
    inner_iter, inner_tol
        Iterations of the inner method at most, and the relative change at which it ends; 50 and
        1e-3 in the comparison of Zhou, Xiu and Qi (2021).
    retries
        How often the model is trusted less; 0 takes its minimiser even where ``f`` rises.
    tol
        Stops when the relative change of ``x`` falls below it.
    max_iter
        Outer iterations.

    Notes
    -----
    One gradient an outer iteration and one Hessian product (half a pass) an inner iteration. At
    the end ``f`` is minimised over the support.

    Literal mode takes every minimiser of a model. The paper leaves open how it is found; here 50
    iterations are made, or ``inner_iter``.
    """

    inner_iter: int = 50
    inner_tol: float = 1e-3
    retries: int = 3
    tol: float = 1e-6
    max_iter: int = 200

    name: ClassVar[str] = "ntgp"
    reference: ClassVar[str] = "Yuan and Liu, Newton greedy pursuit (CVPR 2014)"
    guarantee: ClassVar[str] = (
        "superlinear local convergence to a sparse minimiser when the Hessian is restricted "
        "Lipschitz and well conditioned (Yuan and Liu 2014, Theorem 1)"
    )
    published: ClassVar[Mapping[str, Any] | None] = {"inner_tol": 0.0, "retries": 0, "tol": 0.0}
    capabilities: ClassVar[Capabilities] = Capabilities(facets=(TwiceDifferentiable,), box=True)

    def __post_init__(self) -> None:
        check_options(self, inner_iter="at least 1", retries="at least 0")

    def init(self, objective: Objective, context: Context) -> NTGPState:
        return NTGPState(context.first_point(objective))

    def step(self, objective: Objective, state: NTGPState, context: Context) -> NTGPState:
        point = state.point
        g = objective.gradient(point)
        level = float(np.linalg.norm(g))
        for attempt in range(self.retries + 1):
            limit = max(1, self.inner_iter // 10**attempt)
            following, eta = self._model(objective, point, g, limit)
            if self.retries == 0 or not following.value > point.value:
                break
        else:
            following = None
        if following is None:
            following = _gradient_step(objective, point, g, eta)
        if following is None:
            debiased = context.restricted(objective, point.support, point)
            better = debiased if debiased.value <= point.value else point
            return replace(state, point=better, gradient=level, stuck=True)
        change = relative_change(following.x, point.x)
        if change <= self.tol:
            debiased = context.restricted(objective, following.support, following)
            following = following if debiased.value > following.value else debiased
        return NTGPState(following, eta, change, level)

    def _model(
        self, objective: Objective, point: Point, g: FloatArray, limit: int
    ) -> tuple[Point, float]:
        """Minimise the quadratic model from ``y = x`` in ``limit`` inner iterations."""
        y, slope = point.x, g  # the gradient of Q at y
        support = point.support
        eta = 0.0
        for _ in range(limit):
            along = support
            if support.size == objective.cardinality.free.size:
                along = project(objective, -slope)[0]
            inside = slope[along]
            square = float(np.vdot(inside, inside))
            if square <= 1e-12 * float(np.vdot(slope, slope)):  # minimised on its support
                along = project(objective, -slope)[0]
                inside = slope[along]
                square = float(np.vdot(inside, inside))
            curvature = float(np.vdot(inside, objective.hessian_product(point, along, inside)))
            eta = square / curvature if curvature > 0.0 else eta or 1.0
            for _ in range(30):
                support, values = project(objective, y - eta * slope)
                z = np.zeros_like(y)
                z[support] = values
                d = z - y
                moved = np.flatnonzero(d if d.ndim == 1 else np.any(d != 0.0, axis=1))
                bend = objective.full_hessian_product(point, moved, d[moved])
                step = float(np.vdot(d, d))
                if eta * float(np.vdot(d, bend)) <= step * (1.0 + 1e-12):  # eta may underflow
                    break
                eta *= 0.5
            y, slope = z, slope + bend
            if np.sqrt(step) <= self.inner_tol * float(np.linalg.norm(y)):
                break
        return objective.point(support, y[support]), eta

    def residual(self, state: NTGPState) -> float:
        return state.change

    def stopped(self, objective: Objective, state: NTGPState) -> Stop | None:
        if not np.isfinite(state.gradient):
            return Stop.NON_FINITE
        if state.stuck:
            return Stop.STALLED
        return Stop.CONVERGED if state.change <= self.tol else None


def _gradient_step(objective: Objective, point: Point, g: FloatArray, eta: float) -> Point | None:
    """Return a projected gradient step that lowers ``f``, None when there is none."""
    for _ in range(60):
        following = objective.point(*project(objective, point.x - eta * g))
        if following.value < point.value:
            return following
        eta *= 0.5
    return None
