"""Iterative hard thresholding with an Armijo step (IIHT)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    FloatArray,
    IterativeBackend,
    ModelError,
    Objective,
    Point,
    Role,
    Stop,
)
from sparsemodel.numerics import project


@final
@dataclass(frozen=True, slots=True, eq=False)
class IIHTState:
    """An iterate with the step that led to it."""

    point: Point
    previous: Point | None = None
    step_size: float = 0.0
    change: float = np.inf
    """``||x+ - x|| / ||x+||`` of the last step."""
    stuck: bool = False


@final
@dataclass(frozen=True, slots=True)
class IIHT(IterativeBackend[IIHTState]):
    r"""Projected gradient steps onto the sparse set with sufficient decrease.

    :math:`x^+ = P(x - \alpha_0 \beta^m g)` for the smallest ``m`` with
    :math:`f(x^+) \le f(x) - \frac{\sigma}{2 \alpha_0} \|x^+ - x\|^2`, where ``P`` projects onto
    the sparse points within the bounds (Pan, Zhou, Xiu and Qi 2017, for nonnegative ``x``). The
    first trial :math:`\alpha_0` is the Barzilai-Borwein step unless ``step_size`` is given.

    Parameters
    ----------
    sigma, beta
        Armijo constants. ``sigma`` is in units of :math:`1 / \alpha_0`, so that the method does
        not depend on the units of ``f``; of ``f`` over the square of ``x`` with a ``step_size``.
    step_size
        :math:`\alpha_0` of every iteration; None for Barzilai-Borwein steps.
    tol
        Stops when the relative change of ``x`` falls below it.
    max_iter
        Iteration limit.

    Notes
    -----
    First order only: one gradient and a few values an iteration, no Hessian.

    Literal mode has :math:`\alpha_0 = 1` and the paper's rule,
    :math:`f(x^+) \le f(x) - \frac{\sigma}{2} \|x^+ - x\|^2`.
    """

    sigma: float = 1e-2
    beta: float = 0.5
    step_size: float | None = None
    tol: float = 1e-9
    max_iter: int = 5000

    name: ClassVar[str] = "iiht"
    reference: ClassVar[str] = (
        "Pan, Zhou, Xiu and Qi, A convergent iterative hard thresholding algorithm for "
        "nonnegative sparsity optimization (2017)"
    )
    guarantee: ClassVar[str] = (
        "f falls in every step and every limit is a fixed point of the projected gradient step "
        "when f has a Lipschitz gradient (Pan et al. 2017)"
    )
    purpose: ClassVar[str] = "comes near a support with products alone, whatever the classes"
    roles: ClassVar[frozenset[Role]] = frozenset({Role.APPROACH})
    published: ClassVar[Mapping[str, Any] | None] = {"step_size": 1.0, "sigma": 1e-4, "tol": 0.0}
    capabilities: ClassVar[Capabilities] = Capabilities(box=True, limits=True)

    def __post_init__(self) -> None:
        if not 0.0 < self.beta < 1.0:
            raise ModelError(f"beta must be in (0, 1), not {self.beta}.")
        if self.step_size is not None and not self.step_size > 0.0:
            raise ModelError(f"step_size must be positive or None, not {self.step_size}.")
        if not 0.0 < self.sigma < (1.0 if self.step_size is None else np.inf):
            raise ModelError(f"sigma must be in (0, 1), not {self.sigma}.")

    def init(self, objective: Objective, context: Context) -> IIHTState:
        return IIHTState(context.first_point(objective))

    def step(self, objective: Objective, state: IIHTState, context: Context) -> IIHTState:
        point = state.point
        g = objective.gradient(point)
        alpha = first = self.step_size or _trial(objective, state, g)
        unit = max(first, 1e-300) if self.step_size is None else 1.0
        for _ in range(80):
            following = objective.point(*project(objective, point.x - alpha * g))
            square = float(np.sum(np.square(following.x - point.x)))
            enough = 0.5 * self.sigma / unit * square
            if following.value <= point.value - enough + 1e-15 * abs(point.value):
                size = float(np.linalg.norm(following.x))
                moved = float(np.sqrt(square))
                change = moved / size if size > 0.0 else moved
                return IIHTState(following, point, alpha, change)
            alpha *= self.beta
        return IIHTState(point, state.previous, first, state.change, stuck=True)

    def residual(self, state: IIHTState) -> float:
        return state.change

    def stopped(self, objective: Objective, state: IIHTState) -> Stop | None:
        if state.stuck:
            return Stop.STALLED
        return Stop.CONVERGED if state.change <= self.tol else None


def _trial(objective: Objective, state: IIHTState, g: FloatArray) -> float:
    """Return the Barzilai-Borwein step, or a first one from the curvature along ``-g``."""
    point, previous = state.point, state.previous
    if previous is not None:
        s, y = point.x - previous.x, g - objective.gradient(previous)
        along = float(np.vdot(s, y))
        if along > 0.0:
            return float(
                np.clip(np.vdot(s, s) / along, 1e-3 * state.step_size, 1e6 * state.step_size)
            )
        return 2.0 * state.step_size
    support, values = project(objective, -g)
    size = float(np.linalg.norm(values))
    if size == 0.0:
        return 1.0
    # A secant in the gradient over a tiny step measures the curvature, whatever the units.
    slope = float(np.linalg.norm(objective.gradient(point)))
    t = 1e-4 * max(abs(point.value), np.finfo(np.float64).tiny) / slope**2
    moved = point.x[support] + t * values
    probe = objective.point(support, moved)
    difference = objective.restricted_gradient(probe, support) - g[support]
    curvature = float(np.vdot(difference, values)) / t
    return size**2 / curvature if curvature > 0.0 else t * 1e4
