r"""A proximal point method whose steps are solved by semismooth Newton iterations.

Each step minimises the quadratic model of ``f`` at ``x`` plus ``R`` plus
:math:`\|\cdot - x\|^2 / (2\sigma)` with a growing :math:`\sigma`. In the dual that problem is
unconstrained and once differentiable, and Newton's method needs a handful of systems on the active
coordinates alone. (Li, Sun and Toh, *A highly efficient semismooth Newton augmented Lagrangian
method for solving Lasso problems*, SIAM J. Optim. 28, 2018, for the lasso.) Dual iterates are kept
as points ``u`` with residual :math:`A u - y`.

With the shares split into ones (``P``), fractions (``I``) and zeros, the proximal point with a step
:math:`\sigma` is a soft threshold on ``I`` whose level moves with the point: on ``P`` and ``I``
together the inverse of its derivative, divided by :math:`\sigma`, is

.. math:: \frac1\sigma I + \mathrm{diag}(\lambda_P, 0_I) + \frac1{k - |P|} s s^T,
          \qquad s_j = \sqrt{\lambda_j}\,\mathrm{sign}(x_j)\ (j \in I)

(without the last term where the price of a unit decides, not ``k``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg.lapack import dposv

from sparsemodel.certificates.relaxation.regulariser import Regulariser
from sparsemodel.certificates.relaxation.smooth import Model, Smooth
from sparsemodel.certificates.relaxation.state import State, offer
from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.budget import Budget

_OUTER, _INNER = 60, 30
_FIRST, _GROWTH = 10.0, 4.0
"""First sigma in units of 1/L, and its growth; chosen by timing problems of 200 to 1000 columns."""

_FEW = 5
"""Newton rounds up to which a step with an inexact model was short enough for a longer one."""

_ROUND, _PROGRESS = 10, 0.1
"""A gap that does not shrink by this share in a round of steps is left as it is."""

_ACTIVE = 3000
"""Active coordinates up to which a linear system is worth it."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Pattern:
    """The active coordinates of a proximal point with its derivative's inverse."""

    active: IntArray
    diagonal: FloatArray
    """``lambda`` on coordinates with a full share, 0 on fractions."""
    s: FloatArray
    """The rank-one part: zero outside the fractions."""
    room: float
    """``k - |P|``, or infinity when the sum of shares does not bind."""

    def inverse_times(self, r: FloatArray, sigma: float) -> FloatArray:
        """Return the inverse derivative over sigma applied to ``r``."""
        out = r / sigma + self.diagonal * r
        if np.isfinite(self.room):
            out += self.s * (float(self.s @ r) / self.room)
        return out

    def solve(self, gram: FloatArray, sigma: float, right: FloatArray) -> FloatArray | None:
        """Solve ``(gram + inverse derivative) d = right``; ``gram`` is overwritten."""
        matrix = gram
        if np.isfinite(self.room) and self.s.any():
            matrix += np.outer(self.s, self.s / self.room)
        matrix[np.diag_indices_from(matrix)] += self.diagonal + 1.0 / sigma
        scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        matrix *= scale
        matrix *= scale[:, None]
        matrix[np.diag_indices_from(matrix)] += 1e-14
        # The transpose of a C-ordered matrix is what LAPACK factors in place.
        _, solution, info = dposv(matrix.T, right * scale, lower=1, overwrite_a=1)
        return None if info != 0 else np.asarray(solution * scale)


def _pattern_of(regulariser: Regulariser, x: FloatArray, z: FloatArray) -> _Pattern | None:
    """Return the pattern of a proximal point; None where derivatives are not implemented.

    For vector variables without groups and limits, and where ``k`` binds with one price for all.
    """
    if x.ndim > 1 or not regulariser.single or regulariser.limited:
        return None
    share = np.ones(x.size)
    share[regulariser.counted] = z
    active = np.flatnonzero((share > 0.0) & ((x != 0.0) | ~regulariser.counted))
    if active.size > _ACTIVE:
        return None
    inner, curvature = share[active], regulariser.curvature[active]
    part = inner < 1.0
    s = np.where(part, np.sqrt(curvature) * np.sign(x[active]), 0.0)
    full = int(np.count_nonzero(~part & regulariser.counted[active]))
    binding = float(z.sum()) >= regulariser.k * (1.0 - 1e-9) and regulariser.k > full
    if binding and np.ndim(regulariser.price):
        return None
    return _Pattern(
        active=active,
        diagonal=np.where(part, 0.0, curvature),
        s=s,
        room=float(regulariser.k - full) if binding else float("inf"),
    )


def proximal_newton(
    smooth: Smooth,
    regulariser: Regulariser,
    state: State,
    *,
    goal: Callable[[State], bool],
    deadline: float | None,
) -> bool:
    """Improve ``state`` until ``goal`` holds; return False when Newton's method does not apply."""
    few = _INNER - 1 if smooth.quadratic else _FEW
    sigma = state.sigma if state.sigma > 0.0 else _FIRST / state.lipschitz
    gap = math.inf
    for outer in range(_OUTER):
        if goal(state) or Budget(deadline).over():
            return True
        if outer % _ROUND == _ROUND - 1:
            if state.gap >= (1.0 - _PROGRESS) * gap:
                return True
            gap = state.gap
        f_x, gradient = smooth.gradient(state.x, state.image)
        offer(state, regulariser, state.x, f_x, gradient)
        model = smooth.model(state.x, state.image)
        if model is None:
            return False
        found = _dual_newton(model, regulariser, state, f_x, gradient, sigma, goal, deadline)
        if found is None:
            return False
        x, z, rounds = found
        image = smooth.image(x)
        value = smooth.value(x, image) + regulariser.value(x, z)
        value = value if np.isfinite(value) else np.inf
        before, full = state.value, True
        if value < before:
            state.x, state.z, state.image, state.value = x, z, image, value
        elif not smooth.quadratic and _search(smooth, regulariser, state, x):
            full = False
        elif value > before + 1e-13 * abs(before):
            sigma /= _GROWTH**2
            if sigma * state.lipschitz < 1e-3:
                return False
            continue
        if full and rounds <= few:
            sigma *= _GROWTH
        elif (rounds == _INNER or not full) and sigma * state.lipschitz > 1.0:
            sigma /= 2.0 if smooth.quadratic else _GROWTH
        state.sigma = sigma
        if before - state.value <= 1e-15 * abs(state.value) and rounds <= 1:
            return True
    return True


def _dual_newton(
    model: Model,
    regulariser: Regulariser,
    state: State,
    f_x: float,
    gradient: FloatArray,
    sigma: float,
    goal: Callable[[State], bool],
    deadline: float | None,
) -> tuple[FloatArray, FloatArray, int] | None:
    """Return the proximal step's point and shares, and how many Newton rounds it took."""
    x = state.x
    product_x = model.product(x)
    base = gradient - product_x
    u, product = x, product_x
    best = regulariser.prox(x - sigma * (base + product), sigma)
    psi = _psi(regulariser, u, product, base, best, x, sigma)
    for rounds in range(_INNER):
        v = base + product
        xs, z = best
        if model.exact:
            move, curved = u - x, product - product_x
            at_u = f_x + float(np.vdot(gradient, move)) + 0.5 * float(np.vdot(move, curved))
            offer(state, regulariser, u, at_u, v)
            if goal(state):
                return xs, z, rounds
        pattern = _pattern_of(regulariser, xs, z)
        if pattern is None:
            return None
        j = pattern.active
        if not Budget(deadline).allows(model.gram_cost(j.size)):
            return None
        residual = xs - u
        d = -u.copy()
        if j.size:
            gram = model.gram(j)
            outside = product[j] - gram @ u[j]
            right = pattern.inverse_times(residual[j], sigma) + outside
            step = pattern.solve(gram, sigma, right)
            if step is None:
                return None
            d[j] = step
        product_d = model.product(d)
        slope = -float(np.vdot(residual, product_d))
        # A bound far below zero, from a poor first dual point, says nothing about accuracy.
        sought = min(state.gap, 0.01 * abs(state.value))
        if -slope <= max(1e-3 * sought, 1e-16 * abs(state.value)):
            full = regulariser.prox(x - sigma * (base + product + product_d), sigma)
            return full[0], full[1], rounds
        length = 1.0
        for _ in range(30):
            ahead, product_ahead = u + length * d, product + length * product_d
            trial = regulariser.prox(x - sigma * (base + product_ahead), sigma)
            psi_ahead = _psi(regulariser, ahead, product_ahead, base, trial, x, sigma)
            if psi_ahead <= psi + 1e-4 * length * slope + 1e-15 * abs(psi):
                break
            length *= 0.5
        else:  # rounding hides the decrease; more rounds would find none either
            return None if not np.isfinite(psi_ahead) else (*best, _INNER)
        if not np.isfinite(psi_ahead):
            return None
        u, product, best, psi = ahead, product_ahead, trial, psi_ahead
    return best[0], best[1], _INNER


def _psi(
    regulariser: Regulariser,
    u: FloatArray,
    product: FloatArray,
    base: FloatArray,
    point: tuple[FloatArray, FloatArray],
    x: FloatArray,
    sigma: float,
) -> float:
    """Return the dual function of a proximal step (to be minimised), up to a constant."""
    xs, z = point
    envelope = regulariser.value(xs, z) + float(np.vdot(base + product, xs))
    envelope += float(np.vdot(xs - x, xs - x)) / (2.0 * sigma)
    return 0.5 * float(np.vdot(u, product)) - envelope


def _search(smooth: Smooth, regulariser: Regulariser, state: State, target: FloatArray) -> bool:
    """Move towards ``target`` as far as the value falls; values cost no product there."""
    direction = target - state.x
    along = smooth.image(direction)
    length = 1.0
    for _ in range(20):
        length *= 0.5
        x = state.x + length * direction
        image = tuple(a + length * d for a, d in zip(state.image, along, strict=True))
        value = smooth.value(x, image) + regulariser.value(x)
        if value < state.value:
            state.x, state.image, state.value = x, image, value
            return True
    return False
