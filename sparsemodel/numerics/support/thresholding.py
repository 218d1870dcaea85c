"""Steps along the gradient onto the sparse set, as long as the objective allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, Objective, Point
from sparsemodel.numerics.support.projection import project

_FADE = 0.1


@final
@dataclass(frozen=True, slots=True, eq=False)
class Threshold:
    """An iterate with the step that led to it."""

    point: Point
    previous: Point | None = None
    step_size: float = 0.0
    change: float = np.inf
    """Of the last step; see :func:`relative_change`."""
    stuck: bool = False
    pace: float = 1.0
    """By what share the objective fell in a step: the mean in which the last ten count most."""


def relative_change(new: FloatArray, old: FloatArray) -> float:
    r"""Return :math:`\|x^+ - x\| / \|x^+\|`, or how far it moved where :math:`x^+` is zero."""
    size, moved = float(np.linalg.norm(new)), float(np.linalg.norm(new - old))
    return moved / size if size > 0.0 else moved


def armijo_step(
    objective: Objective,
    at: Threshold,
    *,
    sigma: float = 1e-2,
    beta: float = 0.5,
    step_size: float | None = None,
) -> Threshold:
    r"""Return the first of :math:`P(x - \alpha_0 \beta^m g)` at which the objective falls enough,

    .. math:: f(x^+) \le f(x) - \frac{\sigma}{2 \alpha_0} \|x^+ - x\|^2 .

    :math:`\alpha_0` is the Barzilai-Borwein step; or ``step_size``, and then the rule has one in
    the place of :math:`\alpha_0`.
    """
    point = at.point
    g = objective.gradient(point)
    alpha = first = step_size or _trial(objective, at, g)
    unit = max(first, 1e-300) if step_size is None else 1.0
    for _ in range(80):
        following = objective.point(*project(objective, point.x - alpha * g))
        enough = 0.5 * sigma / unit * float(np.sum(np.square(following.x - point.x)))
        if following.value <= point.value - enough + 1e-15 * abs(point.value):
            change = relative_change(following.x, point.x)
            fall = (point.value - following.value) / max(abs(point.value), 1e-300)
            pace = (1.0 - _FADE) * at.pace + _FADE * fall
            return Threshold(following, point, alpha, change, pace=pace)
        alpha *= beta
    return replace(at, step_size=first, stuck=True)


def thresholded(
    objective: Objective, steps: int, over: Callable[[], bool], *, stood: int = 200
) -> Point:
    """Return the point after ``steps`` such steps from zero.

    After fewer where none moves it further or the support has stood for ``stood`` of them: where
    classes are nearly separable it changes after hundreds.
    """
    at, still = Threshold(objective.origin()), 0
    for _ in range(steps):
        if over() or at.stuck or at.change <= 1e-9 or still >= stood:
            break
        before, at = at.point.support, armijo_step(objective, at)
        still = still + 1 if np.array_equal(before, at.point.support) else 0
    return at.point


def _trial(objective: Objective, at: Threshold, g: FloatArray) -> float:
    """Return the Barzilai-Borwein step, or a first one from the curvature along ``-g``."""
    point, previous = at.point, at.previous
    if previous is not None:
        s, y = point.x - previous.x, g - objective.gradient(previous)
        along = float(np.vdot(s, y))
        if along > 0.0:
            return float(np.clip(np.vdot(s, s) / along, 1e-3 * at.step_size, 1e6 * at.step_size))
        return 2.0 * at.step_size
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
