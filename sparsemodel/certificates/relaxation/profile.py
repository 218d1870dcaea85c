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
    gradients = _gradients(terms, z)
    for _ in range(_STEPS if free else 0):
        residual = _sum([f.T @ g for f, g in zip(free, gradients, strict=True)])
        scale = sum(float(np.abs(g).sum()) for g in gradients)
        if float(np.abs(residual).max(initial=0.0)) <= _EXACT * scale:
            break
        step = -_solve(_hessian(terms, free, z, b), residual)
        if not np.all(np.isfinite(step)):
            break
        moves = [f @ step for f in free]
        slope = float(np.vdot(residual, step))
        if not slope < 0.0:
            break
        length = _line(terms, z, moves, slope, exact=b.size == 1)
        if length == 0.0:
            break
        z = [u + length * move for u, move in zip(z, moves, strict=True)]
        b = b + length * step
        gradients = _gradients(terms, z)
    return _total(terms, z), gradients, b


def _line(terms: Terms, z: Predictions, moves: Predictions, slope: float, *, exact: bool) -> float:
    """Return a length at which the derivative along ``moves`` vanishes, or is much smaller.

    The derivative grows with the length. Newton's step is taken while it stays inside the bracket,
    otherwise the bracket is doubled or halved.
    """
    low, high, length, left = 0.0, np.inf, 1.0, slope
    enough = (_EXACT if exact else 0.1) * abs(slope)
    for _ in range(_TRIES):
        ahead = [u + length * move for u, move in zip(z, moves, strict=True)]
        along = _dot(_gradients(terms, ahead), moves)
        if abs(along) <= enough:
            return length
        if along < 0.0:
            low, left = length, along
        elif along > 0.0:
            high = length
        else:  # not a number: predictions beyond all floats
            return low
        if high - low <= 4e-16 * high:
            return low if low > 0.0 or not exact else high
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


def _sum(arrays: list[FloatArray]) -> FloatArray:
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return total


__all__ = ["minimised"]
