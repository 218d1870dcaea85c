"""One kind of numbers: floats that know their rounding errors, or exact rationals.

A :class:`Ball` is an array of floats ``mid`` with bounds ``rad`` on how far the exact numbers may
be from them; every operation adds what it rounds (N. J. Higham, *Accuracy and Stability of
Numerical Algorithms*, chapters 2 and 3). Where ``mid`` holds ``fractions.Fraction``, nothing is
rounded and ``rad`` is zero. The formulas of the checker are written once and run with either.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

UNIT = 2.0**-53  # unit roundoff of float64
TINY = 2.0**-1000  # more than anything that underflow can hide


class Ball:
    """Real numbers within ``rad`` of ``mid``, entry by entry."""

    __array_ufunc__ = None  # an array and a Ball make a Ball

    def __init__(self, mid: Any, rad: Any = 0.0) -> None:
        mid = np.asarray(mid)
        self.exact = mid.dtype.hasobject
        self.mid = mid if self.exact else mid.astype(np.float64, copy=False)
        self.rad = np.broadcast_to(np.asarray(rad, dtype=np.float64), mid.shape)
        self.shape = mid.shape

    def like(self, other: Any) -> Ball:
        """Return numbers of the same kind."""
        return other if isinstance(other, Ball) else number(other, self.exact)

    def __add__(self, other: Any) -> Ball:
        b = self.like(other)
        mid = self.mid + b.mid
        return Ball(mid) if self.exact else Ball(mid, up(self.rad + b.rad + UNIT * np.abs(mid)))

    def __mul__(self, other: Any) -> Ball:
        b = self.like(other)
        mid = self.mid * b.mid
        if self.exact:
            return Ball(mid)
        rad = np.abs(self.mid) * b.rad + self.rad * np.abs(b.mid) + self.rad * b.rad
        return Ball(mid, up(rad + UNIT * np.abs(mid)) + TINY * ((self.mid != 0) & (b.mid != 0)))

    def __truediv__(self, other: Any) -> Ball:
        b = self.like(other)
        mid, size = self.mid / b.mid, np.abs(b.mid)
        if self.exact:
            return Ball(mid)
        rad = (np.abs(self.mid) * b.rad + self.rad * size) / (size * (size - b.rad))
        rad = np.where(size > b.rad, up(rad + UNIT * np.abs(mid)) + TINY * (mid != 0), np.inf)
        return Ball(mid, rad)

    def __matmul__(self, other: Any) -> Ball:
        b = self.like(other)
        if self.exact:
            return Ball(self.mid @ b.mid)
        one, two = np.abs(self.mid), np.abs(b.mid)
        mid, rad = _product(self.mid, b.mid)
        rad = rad + one @ b.rad if b.rad.any() else rad
        rad = rad + self.rad @ (two + b.rad) if self.rad.any() else rad
        touched = ((one + self.rad) > 0.0).astype(float) @ ((two + b.rad) > 0.0).astype(float)
        return Ball(mid, up(rad * (1.0 + 2.0 * gamma(one.shape[-1] + 2))) + TINY * touched)

    def __rmatmul__(self, other: Any) -> Ball:
        return self.like(other) @ self

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    def __sub__(self, other: Any) -> Ball:
        return self + -self.like(other)

    def __rsub__(self, other: Any) -> Ball:
        return self.like(other) - self

    def __abs__(self) -> Ball:
        return Ball(np.abs(self.mid), self.rad)

    __radd__, __rmul__ = __add__, __mul__

    def __getitem__(self, index: Any) -> Ball:
        return Ball(self.mid[index], self.rad[index])

    @property
    def T(self) -> Ball:
        """Return the transpose."""
        return Ball(self.mid.T, self.rad.T)


def _product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return ``a @ b`` rounded hardly more than once, and a bound on the error.

    Both are cut into slices of so few digits that products of slices are exact in floats (K. Ozaki,
    T. Ogita, S. Oishi and S. M. Rump, *Numerical Algorithms* 59, 2012); these are added up together
    with what their sums round. Where sums cancel, digits are left that a plain product loses.
    Units of the terms that are added up are such that the largest entries of ``b`` are near one.
    """
    n = a.shape[-1]
    unit = np.frexp(np.abs(b).max(axis=tuple(range(1, b.ndim)), initial=0.0))[1]
    a, b = np.ldexp(a, unit), np.ldexp(b.T, -unit).T
    digits = (53 - math.ceil(math.log2(n + 1))) // 2
    one, two = _slices(a, -1, digits), _slices(b, -min(b.ndim, 2), digits)
    mid, rest = one[0] @ two[0], one[2] @ b + (a - one[2]) @ two[2]
    small = np.abs(rest)
    for part in (one[0] @ two[1], one[1] @ two[0], one[1] @ two[1]):
        total = mid + part
        back = total - mid
        error = (mid - (total - back)) + (part - back)  # exact (Knuth)
        mid, rest, small = total, rest + error, small + np.abs(error)
    rad = gamma(n + 4) * (np.abs(one[2]) @ np.abs(b) + np.abs(a) @ np.abs(two[2]))
    mid, rad = mid + rest, UNIT * np.abs(mid + rest) + gamma(16) * small + rad
    if np.all(np.isfinite(mid)):
        return mid, rad
    return a @ b, gamma(n + 2) * (np.abs(a) @ np.abs(b))  # slices overflow


def _slices(x: Any, axis: int, digits: int) -> list[Any]:
    """Return two slices of ``x`` with so many digits below the largest entry, and the rest."""
    out, left = [], x
    for _ in range(2):
        largest = np.abs(left).max(axis=axis, keepdims=True, initial=0.0)
        shift = np.ldexp(np.where(largest > 0.0, 1.0, 0.0), np.frexp(largest)[1] + 53 - digits)
        out.append((left + shift) - shift)
        left = left - out[-1]
    return [*out, left]


def up(rad: Any) -> Any:
    """Return error bounds increased by more than their own rounding; zeros stay zero."""
    return np.where(rad == 0.0, 0.0, rad * (1.0 + 64.0 * UNIT) + TINY)


def gamma(n: int) -> float:
    """Return a bound on the relative error of ``n`` roundings."""
    return n * UNIT / (1.0 - n * UNIT) * (1.0 + 4.0 * UNIT)


def number(x: Any, exact: bool) -> Ball:
    """Return an array of floats as numbers of either kind; infinite ones only as they are."""
    x = np.asarray(x)
    if exact and not x.dtype.hasobject:
        values, x = x.ravel().tolist(), np.empty(x.shape, dtype=object)
        x.ravel()[:] = [Fraction(v) if math.isfinite(v) else v for v in values]
    return Ball(x)


def low(x: Ball) -> Any:
    """Return the lower end: floats rounded down, or the exact numbers themselves."""
    if x.exact:
        return x.mid[()]
    return np.where(x.rad == 0.0, x.mid, np.nextafter(x.mid - x.rad, -np.inf))[()]


def high(x: Ball) -> Any:
    """Return the upper end: floats rounded up, or the exact numbers themselves."""
    return -low(-x)


def middle(x: Ball) -> Any:
    """Return floats near the numbers."""
    return x.mid.astype(np.float64, copy=False)


def total(x: Ball) -> Ball:
    """Return the sum of all entries."""
    if x.exact:
        return Ball(sum(x.mid.ravel().tolist(), Fraction(0)))
    if not np.all(np.isfinite(x.mid) & np.isfinite(x.rad)):
        return Ball(np.nan, np.nan)
    mid = math.fsum(x.mid.ravel())
    return Ball(mid, up(math.fsum(x.rad.ravel()) + UNIT * abs(mid)))


def put(x: Ball, index: Any, values: Any) -> Ball:
    """Return a copy of ``x`` with other numbers at ``index``."""
    new, mid, rad = x.like(values), x.mid.copy(), x.rad.copy()
    mid[index], rad[index] = new.mid, new.rad
    return Ball(mid, rad)


def eliminated(m: Ball, at: Any) -> Ball | None:
    """Return a matrix with the pivots ``at`` eliminated, unless one of them may not be positive.

    Its other rows and columns are then a Schur complement; those of ``at`` mean nothing.
    """
    for f in at:
        if not low(m[f, f]) > 0:
            return None
        m = m - m[:, f][:, None] * (m[f] / m[f, f])[None, :]
    return m


def solution(matrix: Ball, right: Ball) -> Ball | None:
    """Return the solution with a positive definite matrix; None where it may not be one."""
    n, sides = matrix.shape[0], right if len(right.shape) > 1 else right[:, None]
    below: list[Any] = [-np.eye(n), np.zeros(sides.shape)]
    out = eliminated(blocks([[matrix, sides], below]), range(n))
    if out is None:
        return None
    return out[n:, n:] if len(right.shape) > 1 else out[n:, n]


def blocks(parts: list[list[Any]]) -> Ball:
    """Return a matrix from blocks of numbers and floats."""
    held = [[parts[0][0].like(part) for part in row] for row in parts]
    return Ball(*(np.block([[getattr(b, end) for b in r] for r in held]) for end in ("mid", "rad")))


def less(base: Any, gains: Any) -> Any:
    """Return ``base`` less the sum of ``gains``, rounded down unless all are exact."""
    entries = list(gains)
    if isinstance(base, Fraction):
        return base - sum(entries, Fraction(0))
    entries = [v for v in entries if v != 0]
    if not entries or not math.isfinite(base) or not all(map(math.isfinite, entries)):
        return -math.inf if entries else base
    return math.nextafter(math.fsum([base, *(-v for v in entries)]), -math.inf)


def one_sum(a: Any, b: Any, *, zero: bool) -> Any:
    """Return in which columns ``a + b`` is one number exactly in every row, with ``zero`` 0."""
    total = a + b
    moved = total - a
    left = (a - (total - moved)) + (b - moved)  # what rounding took
    parts = np.stack([total, left])
    return np.all(parts == (0.0 if zero else parts[:, :1]), axis=(0, 1))


def distinct(columns: list[Any]) -> list[int]:
    """Return which columns to keep, so that all sums vanish if those of the kept ones do.

    Zero columns and multiples by powers of two are left out; beside a constant column those that
    differ from another by a constant.
    """
    b = np.concatenate(columns)
    scale = np.ldexp(1.0, np.frexp(abs(b).max(axis=0, initial=0.0))[1] - 1)
    b = b / np.where(np.all(b / scale * scale == b, axis=0), scale, 1.0)  # exact
    zero, keep = not np.any(np.all(b == b[:1], axis=0) & (b[0] != 0.0)), list[int]()
    for j in np.flatnonzero(b.any(axis=0)).tolist():
        near = [one_sum(b[:, keep], sign * b[:, [j]], zero=zero) for sign in (1.0, -1.0)]
        if not np.any(near):
            keep.append(j)
    return keep
