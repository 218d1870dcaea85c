r"""Minimise losses over the coordinates that nothing holds: :math:`\min_b f(z + F b)`.

Newton's method, with the steps made safe by the monotone derivative along each direction: where
losses are flat or straight a second derivative says nothing about how far to go.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from sparsemodel.interfaces import Curved, FloatArray, Term, TwiceDifferentiable

Terms = tuple[Term, ...]
Predictions = list[FloatArray]

_STEPS, _TRIES = 50, 80
_EXACT = 1e-13
"""Share of the gradients' sizes that may be left unbalanced."""
_ULP = 4e-16
_LONGEST = 64.0
"""Newton's steps outside a bracket may be so many times longer than the growing ones."""


def minimised(
    terms: Terms, free: tuple[FloatArray, ...], z: Predictions, b: FloatArray
) -> tuple[float, tuple[FloatArray, ...], FloatArray]:
    """Return the least value over the free coordinates, the gradients there, and the coordinates.

    Parameters
    ----------
    terms
        Losses, each with its part of ``z``.
    free
        Columns of the free coordinates, for every term; empty when there are none.
    z
        Predictions at ``b``.
    b
        Where to start.
    """
    if not free:
        return _total(terms, z), _gradients(terms, z), b
    if b.size == 1:
        return _along_one(terms, free, z, b)
    gradients = _gradients(terms, z)
    value, before = _total(terms, z), np.inf
    reach = max(float(np.abs(f).max(initial=0.0)) for f in free)
    for _ in range(_STEPS):
        residual = summed([f.T @ g for f, g in zip(free, gradients, strict=True)])
        scale = sum(float(np.abs(g).sum()) for g in gradients)
        left = float(np.abs(residual).max(initial=0.0))
        if left <= _EXACT * scale:
            break
        hessian = _hessian(terms, free, z, b)
        size = max(float(np.abs(u).max(initial=0.0)) for u in z)
        if left * reach <= _ULP * size * float(np.trace(hessian)):
            break  # predictions are rounded by as much
        step = -_solve(hessian, residual)
        if not np.all(np.isfinite(step)):
            break
        moves = [f @ step for f in free]
        slope = float(np.vdot(residual, step))
        if not slope < 0.0:
            break
        length = _line(terms, z, moves, slope)
        if length == 0.0:
            break
        ahead = [u + length * move for u, move in zip(z, moves, strict=True)]
        following, value = value, _total(terms, ahead)
        if not value < following and left >= before:
            break  # rounding leaves nothing to gain
        before = min(before, left)
        z, b = ahead, b + length * step
        gradients = _gradients(terms, z)
    return _total(terms, z), gradients, b


def _along_one(
    terms: Terms, free: tuple[FloatArray, ...], z: Predictions, b: FloatArray
) -> tuple[float, tuple[FloatArray, ...], FloatArray]:
    """Find the root of the derivative in the only coordinate, which grows with it.

    Newton's steps while they stay inside the bracket and halve the derivative, bisections where
    they do not. It ends at the latest where the bracket is within the rounding of ``z``.
    """
    unit = np.ones_like(b)
    moves = [f @ unit for f in free]
    reach = max(float(np.abs(move).max(initial=0.0)) for move in moves)
    size = max(float(np.abs(u).max(initial=0.0)) for u in z)
    fine = _ULP * size / reach if reach > 0.0 else np.inf
    low, high, t, last = -np.inf, np.inf, 0.0, np.inf
    best, found, ahead = np.inf, (0.0, _gradients(terms, z)), z
    for _ in range(_TRIES):
        gradients = _gradients(terms, ahead) if t != 0.0 else found[1]
        slope = _dot(gradients, moves)
        if not np.isfinite(slope):
            if t == 0.0:
                break
            t = 0.5 * (t + found[0])  # predictions beyond all floats
            ahead = [u + t * move for u, move in zip(z, moves, strict=True)]
            continue
        if abs(slope) < best:
            best, found = abs(slope), (t, gradients)
        scale = sum(float(np.abs(g).sum()) for g in gradients) * reach
        if abs(slope) <= _EXACT * scale:
            break
        low, high = (t, high) if slope < 0.0 else (low, t)
        if high - low <= fine + _ULP * abs(t):
            break
        second = _along(terms, ahead, moves)
        newton = t - slope / second if second > 0.0 else np.inf
        if np.isfinite(high - low):
            inside = low < newton < high and abs(slope) <= 0.5 * last
            t = newton if inside else 0.5 * (low + high)
        else:  # a curvature of almost nothing asks for steps beyond all floats
            width = 4.0 * abs(t) if t != 0.0 else (size / (1024.0 * reach) if size > 0.0 else 1.0)
            jump = width if slope < 0.0 else -width
            t = newton if abs(newton - t) <= _LONGEST * width else t + jump
        last = abs(slope)
        ahead = [u + t * move for u, move in zip(z, moves, strict=True)]
    t, gradients = found
    ahead = [u + t * move for u, move in zip(z, moves, strict=True)]
    return _total(terms, ahead), gradients, b + t


def _line(terms: Terms, z: Predictions, moves: Predictions, slope: float) -> float:
    """Return a length at which the derivative along ``moves`` is much smaller.

    The derivative grows with the length. Newton's step is taken while it stays inside the bracket,
    otherwise the bracket is doubled or halved.
    """
    low, high, length, left = 0.0, np.inf, 1.0, slope
    for _ in range(_TRIES):
        ahead = [u + length * move for u, move in zip(z, moves, strict=True)]
        along = _dot(_gradients(terms, ahead), moves)
        if abs(along) <= 0.1 * abs(slope):
            return length
        if along < 0.0:
            low, left = length, along
        elif along > 0.0:
            high = length
        else:  # not a number: predictions beyond all floats
            return low
        if high <= 2.0 * low or high - low <= _ULP * high:
            return low
        second = _along(terms, ahead, moves)
        newton = length - along / second if second > 0.0 else np.inf
        if low < newton < high and np.isfinite(newton):
            length = newton
        else:
            length = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
    return low if left < 0.0 else length


def _hessian(
    terms: Terms, free: tuple[FloatArray, ...], z: Predictions, b: FloatArray
) -> FloatArray:
    size = b.size
    out = np.zeros((size, size))
    for term, f, u in zip(terms, free, z, strict=True):
        if isinstance(term.loss, Curved) and b.ndim == 1:
            h = term.weights * term.loss.second_derivative(u, term.target)
            out += f.T @ (h[:, None] * f)
            continue
        loss = cast("TwiceDifferentiable", term.loss)
        unit = np.zeros(size)
        for j in range(size):
            unit[j] = 1.0
            product = loss.hessian_product(u, term.target, term.weights, f @ unit.reshape(b.shape))
            out[:, j] += (f.T @ product).ravel()
            unit[j] = 0.0
    return out


def _along(terms: Terms, z: Predictions, moves: Predictions) -> float:
    total = 0.0
    for term, u, move in zip(terms, z, moves, strict=True):
        loss = cast("TwiceDifferentiable", term.loss)
        total += float(np.vdot(move, loss.hessian_product(u, term.target, term.weights, move)))
    return total


def _solve(h: FloatArray, residual: FloatArray) -> FloatArray:
    # A singular direction (all observations on a flat piece) gets a gradient step.
    largest = float(np.trace(h)) / max(h.shape[0], 1)
    damped = h + (1e-10 * largest if largest > 0.0 else 1.0) * np.eye(h.shape[0])
    return np.asarray(np.linalg.solve(damped, residual.ravel())).reshape(residual.shape)


def _total(terms: Terms, z: Predictions) -> float:
    return sum(t.loss.total(u, t.target, t.weights) for t, u in zip(terms, z, strict=True))


def _gradients(terms: Terms, z: Predictions) -> tuple[FloatArray, ...]:
    return tuple(t.loss.gradient(u, t.target, t.weights) for t, u in zip(terms, z, strict=True))


def _dot(one: tuple[FloatArray, ...], two: Predictions) -> float:
    return sum(float(np.vdot(a, b)) for a, b in zip(one, two, strict=True))


def summed(arrays: list[FloatArray]) -> FloatArray:
    """Return the sum of some arrays, in their order."""
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return total
