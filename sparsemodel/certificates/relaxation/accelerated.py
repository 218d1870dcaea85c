"""Minimise ``f + R``: accelerated proximal steps with restarts, then Newton's method.

Beck and Teboulle, *A fast iterative shrinkage-thresholding algorithm*, SIAM J. Imaging Sci. 2
(2009), with the gradient restart of O'Donoghue and Candes, Found. Comput. Math. 15 (2015). Every
gradient carries a lower bound, ``f(y) - <g, y> - R*(-g)``, so that the gap closes from both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sparsemodel.certificates.relaxation.from_files import Models, minimise_from_files
from sparsemodel.certificates.relaxation.newton import proximal_newton
from sparsemodel.certificates.relaxation.regulariser import Regulariser
from sparsemodel.certificates.relaxation.smooth import Image, LossSmooth, Smooth
from sparsemodel.certificates.relaxation.state import State, offer
from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.budget import Budget

_FIRST = 25
"""Accelerated steps before Newton's method, which wants a sensible start."""

_MOST = 5000
"""Steps in all."""

_SMALL, _SYSTEM, _LATEST = 300, 160.0, 600
"""Newton's systems have as many rows as coordinates are active. More than so many, with a square
more than so many times the number of all, cost more than steps do: so many are taken first, unless
Newton's model is exact."""

_STUCK = 50
"""Steps that change neither the value nor the bound: rounding leaves nothing to gain."""

_ROUND = 100
_PROGRESS = 0.01
"""A gap that does not shrink by this share in a round of steps will not close in all of them."""


def minimise(
    smooth: Smooth,
    regulariser: Regulariser,
    start: FloatArray,
    *,
    goal: Callable[[State], bool],
    deadline: float | None = None,
    models: tuple[Models, IntArray] | None = None,
) -> State:
    """Return the state at which ``goal`` holds, or at the limits.

    One product for the step and one for the gradient an iteration. Where every product reads files
    (``smooth.stored``) models come first, those of ``models`` and new ones, which go with the
    coordinates that are minimised out.
    """
    if isinstance(smooth, LossSmooth) and smooth.stored:
        state, ended = minimise_from_files(
            smooth,
            regulariser,
            start,
            *((Models(), start[:0].astype(np.intp)) if models is None else models),
            goal=goal,
            deadline=deadline,
            solve=minimise,
        )
        if ended:
            return state
        start = state.x
        smooth.shift(start)
    step_bound = max(smooth.curvature_guess(), 1e-300)
    image = smooth.image(start)
    first, gradient = smooth.gradient(start, image)
    x, z = regulariser.prox(start - gradient / step_bound, 1.0 / step_bound)
    state = State(x, z, smooth.image(x), math.inf, lipschitz=step_bound)
    state.value = smooth.value(x, state.image) + regulariser.value(x, z)
    offer(state, regulariser, start, first, gradient)
    try:
        _descend(smooth, regulariser, state, goal=goal, deadline=deadline)
    except KeyboardInterrupt:
        state.interrupted = True  # what was met so far is as good as any bound
    return state


def _descend(
    smooth: Smooth,
    regulariser: Regulariser,
    state: State,
    *,
    goal: Callable[[State], bool],
    deadline: float | None,
) -> None:
    """Take accelerated steps, and Newton's where they help, until ``goal`` holds."""
    y, image_y, t = state.x, state.image, 1.0
    newton = True
    before, idle, gap = (state.value, state.bound), 0, math.inf
    while state.iterations < _MOST:
        if goal(state) or Budget(deadline).over():
            break
        idle = idle + 1 if before == (state.value, state.bound) else 0
        if idle == _STUCK:
            break
        stalled = False
        if state.iterations % _ROUND == _ROUND - 1:
            stalled = state.gap >= (1.0 - _PROGRESS) * gap
            if stalled and not newton:
                break
            gap = state.gap
        before = (state.value, state.bound)
        state.iterations += 1
        f_y, gradient = smooth.gradient(y, image_y)
        offer(state, regulariser, y, f_y, gradient)
        found = _step(smooth, regulariser, state, y, f_y, gradient)
        if found is None and not np.array_equal(y, state.x):
            y, image_y, t = state.x, state.image, 1.0
            continue
        if found is None and not newton:
            break
        x, z, image = (state.x, state.z, state.image) if found is None else found
        value = smooth.value(x, image) + regulariser.value(x, z)
        ahead = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        if np.vdot(y - x, x - state.x) > 0.0 or value > state.value:
            ahead, weight = 1.0, 0.0
        else:
            weight = (t - 1.0) / ahead
        if value <= state.value:
            y = x + weight * (x - state.x)
            image_y = _combine(image, state.image, weight)
            state.x, state.z, state.image, state.value = x, z, image, value
        else:
            y, image_y = state.x, state.image
        t = ahead
        if newton and (stalled or found is None or _time_for_newton(smooth, state)):
            # The model of an exponential loss may be trusted too far: such steps are refused.
            with np.errstate(over="ignore", invalid="ignore"):
                newton = proximal_newton(smooth, regulariser, state, goal=goal, deadline=deadline)
            if newton:
                break
            y, image_y, t = state.x, state.image, 1.0


def _time_for_newton(smooth: Smooth, state: State) -> bool:
    """Return whether enough steps were taken for Newton's systems to be small."""
    if state.iterations % _FIRST:
        return False
    if smooth.quadratic or state.iterations >= _LATEST:
        return True
    active = np.count_nonzero(state.x)
    return bool(active <= _SMALL or active**2 <= _SYSTEM * state.x.size)


def _step(
    smooth: Smooth,
    regulariser: Regulariser,
    state: State,
    y: FloatArray,
    f_y: float,
    gradient: FloatArray,
) -> tuple[FloatArray, FloatArray, Image] | None:
    """Return the proximal step from ``y``, with the step length that the quadratic model allows.

    None where no length does: rounding or overflow decides. The Lipschitz constant then stays as
    it was, so that it cannot grow to infinity.
    """
    before = state.lipschitz
    for _ in range(60):
        step = 1.0 / state.lipschitz
        x, z = regulariser.prox(y - step * gradient, step)
        image = smooth.image(x)
        move = x - y
        model = f_y + float(np.vdot(gradient, move))
        model += 0.5 * state.lipschitz * float(np.vdot(move, move))
        if smooth.value(x, image) <= model + 1e-12 * max(abs(model), abs(f_y)):
            return x, z, image
        if not np.any(move) or not math.isfinite(2.0 * state.lipschitz):
            break
        state.lipschitz *= 2.0
    state.lipschitz = before
    return None


def _combine(image: Image, last: Image, weight: float) -> Image:
    if weight == 0.0:
        return image
    return tuple(a + weight * (a - b) for a, b in zip(image, last, strict=True))
