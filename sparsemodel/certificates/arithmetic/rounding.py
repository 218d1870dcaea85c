r"""Rounding errors, bounded before they are made: the arithmetic behind a printed bound.

Throughout, ``U`` is the unit roundoff of float64 and
:math:`\gamma_n = n u / (1 - n u)` (Higham, *Accuracy and Stability of Numerical Algorithms*,
section 3.1). Additions to an allowance are themselves rounded up.
"""

from __future__ import annotations

import math

import numpy as np

from sparsemodel.interfaces import Conjugable, FloatArray, Loss
from sparsemodel.interfaces.numeric import UNIT_ROUNDOFF

U = UNIT_ROUNDOFF

TINY = float(np.finfo(np.float64).tiny)
"""Added wherever a product may underflow."""

CAUTION = 4.0
"""Multiple of the rounding allowance that a search subtracts. Two computations of a bound, in
another order or on another machine, differ by twice the allowance at most; so that a check that
subtracts it once never proves less than the search claimed."""

COMPUTED = 64.0 * U
"""What losses without a known conjugate may round, relative to the sizes that they state."""

TWICE = 2.02
"""Rounding allowances by which two computations of the same objective may differ: each is within
its own of the exact one, and the allowances themselves are within a hundredth of each other."""

_OPERATIONS = 32.0
"""Rounding errors, in units of the magnitude of its terms, that one evaluation of a loss or a
conjugate may commit: a few elementary operations and one or two library functions of a few ulp."""


def gamma(n: float) -> float:
    r"""Return :math:`\gamma_n`, an upper bound on the relative error of ``n`` roundings."""
    if n * U >= 0.5:
        return math.inf
    return n * U / (1.0 - n * U) * (1.0 + 4.0 * U)


def add_up(values: FloatArray) -> float:
    """Return an upper bound on the exact sum of ``values`` (infinite entries allowed)."""
    if not np.all(np.isfinite(values)):
        return math.inf if not np.any(np.isnan(values)) else math.nan
    return math.nextafter(math.fsum(values.ravel()), math.inf)


def add_down(values: FloatArray) -> float:
    """Return a lower bound on the exact sum of finite ``values``."""
    if not np.all(np.isfinite(values)):
        return -math.inf
    return math.nextafter(math.fsum(values.ravel()), -math.inf)


def up(values: FloatArray, operations: int = 8) -> FloatArray:
    """Return nonnegative ``values`` increased beyond the error of ``operations`` roundings."""
    return values * (1.0 + 2.0 * operations * U) + TINY


def norm_up(values: FloatArray, axis: int | None = None) -> FloatArray:
    """Return an upper bound on Euclidean norms; safe against overflow and underflow."""
    size = values.size if axis is None else values.shape[axis]
    scale = np.max(np.abs(values), axis=axis, keepdims=True, initial=0.0)
    safe = np.where(scale > 0.0, scale, 1.0)
    norms = np.sqrt(np.sum(np.square(values / safe), axis=axis, keepdims=True)) * safe
    out = np.squeeze(norms, axis=axis) if axis is not None else norms.ravel()[0]
    return np.asarray(out * (1.0 + gamma(size + 16)) + TINY)


def value_error(loss: Loss, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
    """Return a bound on the rounding errors of ``loss.value(u, y)``, observation by observation."""
    outputs = u.shape[1] if u.ndim > 1 else 1
    return (_OPERATIONS + 2 * outputs) * U * loss.value_magnitude(u, y, value)


def conjugate_error(
    loss: Conjugable, a: FloatArray, y: FloatArray, value: FloatArray
) -> FloatArray:
    """Return a bound on the rounding errors of ``loss.conjugate(a, y)``."""
    outputs = a.shape[1] if a.ndim > 1 else 1
    return (_OPERATIONS + 2 * outputs) * U * loss.conjugate_magnitude(a, y, value)


def sums_agree(a: FloatArray, b: FloatArray, *, zero: bool) -> bool:
    """Return whether ``a + b`` is exactly the same in every row; with ``zero``, whether it is 0."""
    total = a + b
    moved = total - a
    left = (a - (total - moved)) + (b - moved)  # what rounding took (Knuth)
    if zero:
        return not (total.any() or left.any())
    return bool(np.all(total == total[:1]) and np.all(left == left[:1]))
