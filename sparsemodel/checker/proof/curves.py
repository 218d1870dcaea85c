"""Convex curves of the losses, with their conjugates.

Each is a function for values and slopes at ``u``, one for the conjugate at a slope, every result
followed by what its error is :data:`LIBRARY` times of, and up to where all that is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import entr, expit

from sparsemodel.checker.proof.arithmetic import UNIT

LIBRARY = 32.0 * UNIT
"""Relative error of a few operations and library functions (exp, log: a few units each)."""

_Function = Callable[[Any], Any]


def soft(n: Any, sign: Any, shift: float) -> tuple[Any, ...]:
    """Return ``n log(1 + exp(z))``; its conjugate is entropy of a share ``p``, and a line."""

    def at(u: Any) -> tuple[Any, ...]:
        z = sign * (u - shift)
        value, share = n * np.logaddexp(0.0, z), n * expit(z)
        noise = 0.1 * share * (np.abs(u) + np.abs(shift)) * (shift != 0.0)
        return value, value + noise, sign * share, share + noise

    def conjugate(s: Any) -> tuple[Any, Any]:
        p = np.minimum(sign * s / n, 1.0)
        logs, line = np.log1p(-np.where(p < 1.0, p, 0.0)), sign * shift * p
        size = np.abs(entr(p)) + p * (1.0 - 0.1 * logs) + 0.25 * np.abs(line)
        return n * ((1.0 - p) * logs - entr(p) + line), n * size

    return at, conjugate, np.inf


def exponential(n: Any, sign: int) -> tuple[Any, ...]:
    """Return ``n exp(z)``; its conjugate is ``p log(p / n) - p``."""

    def at(u: Any) -> tuple[Any, ...]:
        grown = n * np.exp(sign * u)
        return grown, grown, sign * grown, grown

    def conjugate(s: Any) -> tuple[Any, Any]:
        p, line = sign * s, sign * s * np.log(n)
        return -entr(p) - line - p, np.abs(entr(p)) + p + np.abs(line)

    return at, conjugate, 300.0


def tweedie(y: Any, power: float) -> tuple[Any, ...]:
    """Return an exponential on either side."""
    fall, rise = power - 1.0, 2.0 - power

    def at(u: Any) -> tuple[Any, ...]:
        shrunk = np.where(y > 0.0, y * np.exp(-fall * u), 0.0)
        grown, size = np.exp(rise * u), 0.3 + 0.1 * np.abs(u)  # some ten roundings; the exponent's
        value = shrunk / fall + grown / rise
        return value, size * value, grown - shrunk, size * (grown + shrunk)

    def conjugate(s: Any) -> tuple[Any, Any]:
        return _peak(at, s, lambda v: (1.0 + np.abs(v)) / min(fall, rise), y == 0.0)

    return at, conjugate, 300.0


def log(q: float, b: Any, edge: Any) -> tuple[Any, ...]:
    """Return ``q u^2 - b log(u)`` from ``edge`` on."""

    def inner(v: Any) -> tuple[Any, ...]:
        some, line = b > 0.0, 2.0 * q * v
        ratio = np.divide(b, v, out=np.zeros_like(v), where=some)
        logs = b * np.log(v, out=np.zeros_like(v), where=some)
        curve = 2.0 * q + ratio * ratio / np.where(some, b, 1.0)
        return q * v * v - logs, q * v * v + np.abs(logs), line - ratio, line + ratio, curve

    return _continued(inner, edge, b == 0.0)


def root(edge: Any) -> tuple[Any, ...]:
    """Return ``-sqrt(u)`` from ``edge`` on."""

    def inner(v: Any) -> tuple[Any, ...]:
        r = np.sqrt(v)
        return -r, r, -0.5 / r, 0.5 / r, 0.25 / (v * r)

    return _continued(inner, edge, np.False_)


def _continued(inner: _Function, edge: Any, flat: Any) -> tuple[Any, ...]:
    """Return a function with these values, slopes and curvatures, below ``edge`` its parabola."""

    def at(u: Any) -> tuple[Any, ...]:
        v = np.maximum(u, edge)
        value, size, slope, error, curve = inner(v)
        d = u - v
        size = size + np.abs(d * slope) + d * d * curve
        return value + d * (slope + d * curve / 2.0), size, slope + curve * d, error - curve * d

    return at, lambda s: _peak(at, s, lambda v: np.maximum(np.abs(v), edge), flat), np.inf


def _peak(at: _Function, s: Any, scale: _Function, flat: Any) -> tuple[Any, Any]:
    """Return ``max s v - f(v)`` from values and slopes of ``f``, and what its error is as large as.

    It is concave, so that no value is above a tangent. The maximiser is between two points at which
    tangents rise and fall for certain, on both sides of the float at which the slope passes ``s``
    (found by halves of all floats in order); of the tangent at the first the larger value at either
    is an upper bound. A share of ``scale`` changes slopes by that share of their size; functions
    that are ``flat`` have the infimum zero at minus infinity.
    """
    none = flat & (s == 0.0)
    s = np.where(none, 1.0, s)

    def ordered(k: Any) -> Any:
        return np.copysign(np.abs(k).view(np.float64), k)

    left, right = (np.full(s.shape, end) for end in (-(2**63 - 2**53), 2**63 - 2**53))
    for _ in range(64):
        half = (left >> 1) + (right >> 1) + (left & right & 1)
        rises = at(ordered(half))[2] < s
        left, right = np.where(rises, half, left), np.where(rises, right, half)
    v = ordered(left)
    step = 1e-11 * scale(v)
    value, size, slope, error = at(v - step)
    rising, noise = s - slope, LIBRARY * (np.abs(s) + error)
    _, _, slope, error = at(v + step)
    certain = (rising >= noise) & (s - slope <= -LIBRARY * (np.abs(s) + error))
    most = s * (v - step) - value + 2.5 * step * (np.maximum(rising, 0.0) + noise)
    found = np.where(none, 0.0, np.where(certain, most, np.inf))
    return found, np.where(none, 0.0, size + np.abs(s * v))
