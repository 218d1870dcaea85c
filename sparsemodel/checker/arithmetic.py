"""Two kinds of numbers with one set of formulas: floats with error bounds, and exact rationals.

A :class:`Ball` is an array of floats ``mid`` with bounds ``rad`` on how far the exact numbers may
be from them; every operation adds what it rounds (N. J. Higham, *Accuracy and Stability of
Numerical Algorithms*, chapters 2 and 3). The exact kind is a NumPy array of ``fractions.Fraction``.
The formulas of the checker are written once and run with either.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

UNIT = 2.0**-53
"""Unit roundoff of float64."""

TINY = 2.0**-1000
"""More than anything that underflow can hide."""

Number = Any
"""A Ball, an array of Fractions, or one Fraction."""


class Ball:
    """Real numbers within ``rad`` of the floats ``mid``, entry by entry."""

    __array_ufunc__ = None  # an array and a Ball make a Ball

    def __init__(self, mid: Any, rad: Any = 0.0) -> None:
        self.mid = np.asarray(mid, dtype=np.float64)
        self.rad = np.broadcast_to(np.asarray(rad, dtype=np.float64), self.mid.shape)

    def __add__(self, other: Any) -> Ball:
        b = lift(other)
        mid = self.mid + b.mid
        return Ball(mid, up(self.rad + b.rad + UNIT * np.abs(mid)))

    def __mul__(self, other: Any) -> Ball:
        b = lift(other)
        mid = self.mid * b.mid
        rad = np.abs(self.mid) * b.rad + self.rad * np.abs(b.mid) + self.rad * b.rad
        return Ball(mid, up(rad + UNIT * np.abs(mid)) + TINY * ((self.mid != 0) & (b.mid != 0)))

    def __truediv__(self, other: Any) -> Ball:
        b = lift(other)
        mid, size = self.mid / b.mid, np.abs(b.mid)
        rad = (np.abs(self.mid) * b.rad + self.rad * size) / (size * (size - b.rad))
        rad = np.where(size > b.rad, up(rad + UNIT * np.abs(mid)) + TINY * (mid != 0), np.inf)
        return Ball(mid, rad)

    def __matmul__(self, other: Any) -> Ball:
        b = lift(other)
        one, two, n = np.abs(self.mid), np.abs(b.mid), self.mid.shape[-1]
        rad = gamma(n + 2) * (one @ two)
        if b.rad.any():
            rad = rad + one @ b.rad
        if self.rad.any():
            rad = rad + self.rad @ (two + b.rad)
        touched = ((one + self.rad) > 0.0).astype(float) @ ((two + b.rad) > 0.0).astype(float)
        return Ball(self.mid @ b.mid, up(rad * (1.0 + 2.0 * gamma(n + 2))) + TINY * touched)

    def __rmatmul__(self, other: Any) -> Ball:
        return lift(other) @ self

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    def __sub__(self, other: Any) -> Ball:
        return self + -lift(other)

    def __rsub__(self, other: Any) -> Ball:
        return lift(other) - self

    def __abs__(self) -> Ball:
        return Ball(np.abs(self.mid), self.rad)

    __radd__, __rmul__ = __add__, __mul__

    def __getitem__(self, index: Any) -> Ball:
        return Ball(self.mid[index], self.rad[index])

    @property
    def T(self) -> Ball:
        """Return the transpose."""
        return Ball(self.mid.T, self.rad.T)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape."""
        return self.mid.shape


def up(rad: Any) -> Any:
    """Return error bounds increased by more than their own rounding; zeros stay zero."""
    return np.where(rad == 0.0, 0.0, rad * (1.0 + 64.0 * UNIT) + TINY)


def gamma(n: int) -> float:
    """Return a bound on the relative error of ``n`` roundings."""
    return n * UNIT / (1.0 - n * UNIT) * (1.0 + 4.0 * UNIT)


def lift(x: Any) -> Ball:
    """Return ``x`` as a Ball."""
    return x if isinstance(x, Ball) else Ball(x)


def number(x: Any, exact: bool) -> Number:
    """Return an array of floats as numbers of either kind; infinite ones only as they are."""
    x = np.asarray(x, dtype=np.float64)
    if not exact:
        return Ball(x)
    out = np.empty(x.shape, dtype=object)
    out.ravel()[:] = [Fraction(v) if math.isfinite(v) else v for v in x.ravel().tolist()]
    return out


def low(x: Number) -> Any:
    """Return the lower end: floats rounded down, or the exact number itself."""
    if not isinstance(x, Ball):
        return x
    return np.where(x.rad == 0.0, x.mid, np.nextafter(x.mid - x.rad, -np.inf))


def high(x: Number) -> Any:
    """Return the upper end: floats rounded up, or the exact number itself."""
    return -low(-x) if isinstance(x, Ball) else x


def middle(x: Number) -> Any:
    """Return floats near the numbers."""
    return x.mid if isinstance(x, Ball) else np.asarray(x, dtype=np.float64)


def total(x: Number) -> Number:
    """Return the sum of all entries."""
    if isinstance(x, Ball):
        if not np.all(np.isfinite(x.mid) & np.isfinite(x.rad)):
            return Ball(np.nan, np.nan)
        mid = math.fsum(x.mid.ravel())
        return Ball(mid, up(math.fsum(x.rad.ravel()) + UNIT * abs(mid)))
    entries = np.asarray(x, dtype=object).ravel().tolist()
    if not all(isinstance(v, (Fraction, int)) for v in entries):
        raise TypeError("a float among exact numbers")
    return sum(entries, Fraction(0))


def put(x: Number, index: Any, value: float) -> Number:
    """Return a copy of ``x`` whose entries at ``index`` are exactly ``value``."""
    if isinstance(x, Ball):
        mid, rad = x.mid.copy(), x.rad.copy()
        mid[index], rad[index] = value, 0.0
        return Ball(mid, rad)
    out = x.copy()
    out[index] = Fraction(value)
    return out


def add_up(values: Any) -> Any:
    """Return an upper bound on the sum of floats, or the exact sum of Fractions."""
    entries = list(values)
    if all(isinstance(v, (Fraction, int)) for v in entries):
        return sum(entries, Fraction(0))
    return math.nextafter(math.fsum(entries), math.inf) if any(entries) else 0.0


__all__ = [
    "TINY",
    "UNIT",
    "Ball",
    "Number",
    "add_up",
    "gamma",
    "high",
    "lift",
    "low",
    "middle",
    "number",
    "put",
    "total",
    "up",
]
