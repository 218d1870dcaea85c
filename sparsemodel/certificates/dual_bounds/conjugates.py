r"""The part of a dual bound that a term contributes: :math:`\sum_i c_i (a_i o_i - \ell^*(a_i))`.

The exact dual point may differ a little from the array at hand: ``delta`` says by how much,
observation by observation. Whatever is returned holds for every dual point that near.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import (
    COMPUTED,
    TINY,
    U,
    add_down,
    add_up,
    conjugate_error,
)
from sparsemodel.interfaces import (
    Conjugable,
    FloatArray,
    IntervalConjugable,
    Loss,
    SimplexConjugable,
    Term,
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class TermBound:
    """A minorant of one term, ``F(A x + o) >= constant + <slopes, A x>``."""

    constant: float
    """Rounded down."""
    allowance: float
    """How much of the constant was given away for rounding."""
    slopes: FloatArray
    """``c_i a_i``."""
    slope_error: FloatArray
    """Bound on the distance of the exact slopes, elementwise."""


def domain_slack(term: Term, a: FloatArray) -> FloatArray:
    """Return how far each entry of ``a`` can move without leaving the conjugate's domain."""
    if isinstance(term.loss, IntervalConjugable):
        lower, upper = term.loss.dual_interval(term.target)
        return np.minimum(a - lower, upper - a)
    if isinstance(term.loss, SimplexConjugable):
        chances = term.loss.chances(a, term.target)
        return np.broadcast_to(chances.min(axis=1, keepdims=True), a.shape)
    return np.zeros(a.shape)


def plane_error(term: Term, a: FloatArray) -> FloatArray:
    """Return how far the rows of a dual point of classes are from summing to zero exactly."""
    if not isinstance(term.loss, SimplexConjugable):
        return np.zeros(a.shape)
    sums = np.abs(a.sum(axis=1)) + 2.0 * a.shape[1] * U * np.abs(a).sum(axis=1)
    out = np.zeros(a.shape)
    # The largest probability of each row absorbs the difference; it is at least 1/m.
    chances = term.loss.chances(a, term.target)
    out[np.arange(a.shape[0]), chances.argmax(axis=1)] = 2.0 * sums
    return out


def term_bound(term: Term, a: FloatArray, delta: FloatArray) -> TermBound | str:
    """Return the minorant that the dual points within ``delta`` of ``a`` give, or why none.

    Of a loss whose conjugate is not known ``a`` are predictions, whose gradient is the dual point.
    """
    loss, y, c = term.loss, term.target, term.weights
    if not (isinstance(loss, Loss) and isinstance(loss, Conjugable)):
        return _tangent(term, a)
    values = loss.conjugate(a, y)
    if not np.all(np.isfinite(values)):
        first = int(np.flatnonzero(~np.isfinite(values))[0])
        return f"the dual point leaves the domain of the conjugate of {loss.name} (row {first})"
    errors = conjugate_error(loss, a, y, values)
    if delta.any():
        values, widened = _largest_nearby(loss, a, delta, y)
        errors = np.maximum(errors, widened)
    wide = c if a.ndim == 1 else c[:, None]
    slopes = wide * a
    lost = c * (errors + TINY) + 4.0 * U * c * np.abs(values)
    pieces = -(c * values)
    if term.offset is not None:
        products = slopes * term.offset
        slack = 4.0 * U * np.abs(products) + wide * delta * np.abs(term.offset)
        pieces = np.concatenate([pieces, products.ravel()])
        lost = np.concatenate([lost, slack.ravel()])
    allowance = add_up(lost) * (1.0 + 8.0 * U) + pieces.size * TINY
    if not math.isfinite(allowance):
        return f"the conjugate of {loss.name} is not finite near the dual point"
    total = add_down(pieces)
    return TermBound(
        constant=math.nextafter(total - allowance, -math.inf),
        allowance=allowance,
        slopes=slopes,
        slope_error=wide * delta * (1.0 + 4.0 * U) + 2.0 * U * np.abs(slopes) + TINY,
    )


def _tangent(term: Term, z: FloatArray) -> TermBound | str:
    r"""Return the tangent minorant of a term at the predictions ``z``.

    With the gradient ``g`` there, :math:`F(A x + o) \ge F(z) + \langle g, o - z\rangle
    + \langle g, A x\rangle`: what the conjugate says at ``g``, by Fenchel and Young. For the Cox
    loss ``g`` has, at every event, the softmax over its risk set as weights.
    """
    value = term.loss.total(z, term.target, term.weights)
    g = term.loss.gradient(z, term.target, term.weights)
    size, sizes = term.loss.magnitudes(z, term.target, term.weights)
    slope_error = COMPUTED * sizes + TINY
    away = -z if term.offset is None else term.offset - z
    products = g * away
    slack = slope_error * np.abs(away) + 4.0 * U * np.abs(products) + 2.0 * U * np.abs(g * z)
    allowance = add_up(slack) + COMPUTED * size + products.size * TINY
    if not math.isfinite(allowance):
        return f"{term.loss.name} is not finite where it is linearised"
    constant = math.fsum([value, add_down(products), -allowance])
    return TermBound(math.nextafter(constant, -math.inf), allowance, g, slope_error)


def _largest_nearby(
    loss: Conjugable, a: FloatArray, delta: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the conjugate over the points within ``delta``, with evaluation errors."""
    if isinstance(loss, SimplexConjugable):
        s = loss.chances(a, y)
        reach = delta * (1.0 + 4.0 * U) + 2.0 * U
        below, above = np.maximum(s - reach, 0.0), np.minimum(s + reach, 1.0)
        largest = np.maximum(loss.chance_conjugate(below), loss.chance_conjugate(above)).sum(axis=1)
        return largest, conjugate_error(loss, a, y, largest)
    if isinstance(loss, IntervalConjugable):
        lower, upper = loss.dual_interval(y)
        reach = delta * (1.0 + 4.0 * U)
        ends = [np.clip(a - reach, lower, upper), np.clip(a + reach, lower, upper)]
        if a.ndim == 1:
            # Convex on the interval, so that an end of it is largest.
            tried = [loss.conjugate(end, y) for end in ends]
            errors = [conjugate_error(loss, e, y, t) for e, t in zip(ends, tried, strict=True)]
            return np.maximum(*tried), np.maximum(*errors)
        return _separable_columns(loss, ends, y)
    return np.full(a.shape[0], np.inf), np.zeros(a.shape[0])


def _separable_columns(
    loss: Conjugable, ends: list[FloatArray], y: FloatArray
) -> tuple[FloatArray, FloatArray]:
    largest, errors = np.zeros(y.shape[0]), np.zeros(y.shape[0])
    for column in range(y.shape[1]):
        tried = [loss.conjugate(end[:, column], y[:, column]) for end in ends]
        slack = [
            conjugate_error(loss, end[:, column], y[:, column], t)
            for end, t in zip(ends, tried, strict=True)
        ]
        largest += np.maximum(*tried)
        errors += np.maximum(*slack) + 2.0 * U * y.shape[1] * np.maximum(*np.abs(tried))
    return largest, errors
