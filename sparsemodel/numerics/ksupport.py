r"""The convex relaxation of a ridge under a cardinality constraint: values and proximal points.

The relaxation replaces :math:`\frac12 \sum \lambda_j x_j^2` under "at most ``k`` nonzeros", with a
price :math:`\gamma` for each, by

.. math:: R(x) = \min_{0 \le z \le 1,\ \sum z \le k}\
          \sum_j \frac{\lambda_j x_j^2}{2 z_j} + \gamma z_j ,

for equal :math:`\lambda_j` and no price :math:`\lambda/2` times the squared k-support norm
(Argyriou, Foygel and Srebro, *Sparse prediction with the k-support norm*, NIPS 2012). Its conjugate
is the sum of the ``k`` largest :math:`(v_j^2/(2\lambda_j) - \gamma)_+`, which is what dual bounds
contain. Limits :math:`|x_j| \le M_j` become :math:`|x_j| \le M_j z_j`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sparsemodel.interfaces import FloatArray

_ACCURACY = 1e-13
_STEPS = 200


def ksupport_value(
    x: FloatArray,
    ridge: FloatArray,
    k: int,
    *,
    price: float = 0.0,
    limit: FloatArray | None = None,
) -> float:
    """Return ``R(x)`` for nonnegative sizes ``x``; infinite where the limits cannot be kept.

    O(p) a step, a handful of steps.

    Examples
    --------
    >>> import numpy as np
    >>> ksupport_value(np.array([3.0, 4.0]), np.ones(2), 2)  # enough room: the ridge itself
    12.5
    >>> ksupport_value(np.array([3.0, 4.0]), np.ones(2), 1)  # half of the squared l1 norm
    24.5
    """
    sizes = np.sqrt(ridge) * x
    least = np.zeros(x.size) if limit is None else _shares(x, limit)
    if not np.all(least <= 1.0 + 1e-9) or float(least.sum()) > k * (1.0 + 1e-9):
        return math.inf
    if k <= 0:
        return 0.0 if not np.any(x) else math.inf
    if limit is None:
        z = fill(sizes, np.zeros(x.size), k, _highest(price))
    else:
        z = _fill_above(sizes, np.minimum(least, 1.0), k, _highest(price))
    positive = sizes > 0.0
    return float(0.5 * np.sum(np.square(sizes[positive]) / z[positive]) + price * z[x > 0.0].sum())


def ksupport_prox(
    q: FloatArray,
    step: float,
    ridge: FloatArray,
    k: int,
    *,
    price: float = 0.0,
    limit: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Return ``(x, z)`` minimising :math:`\frac{1}{2t}\|x - q\|^2 + R(x)`, for sizes ``q >= 0``.

    :math:`z_j = \mathrm{clip}(q_j \sqrt{\lambda_j} \theta - t\lambda_j, 0, 1)` and
    :math:`x_j = q_j z_j / (z_j + t\lambda_j)`, with :math:`\theta` such that
    :math:`\sum z \le k` and :math:`\theta \le 1/\sqrt{2\gamma}`. With limits ``z``
    depends on the multiplier of the sum in two pieces, and bisection finds it.

    Examples
    --------
    >>> import numpy as np
    >>> x, z = ksupport_prox(np.array([2.0, 1.0]), 1.0, np.ones(2), 1)
    >>> x.round(6), z.round(6)
    (array([1., 0.]), array([1., 0.]))
    """
    if k <= 0:
        return np.zeros_like(q), np.zeros_like(q)
    shift = step * ridge
    if limit is None:
        z = fill(np.sqrt(ridge) * q, shift, k, _highest(price))
    else:
        z = _limited(q, step, ridge, k, price, limit)
    total = z + shift
    x = q * np.divide(z, total, out=np.zeros_like(q), where=total > 0.0)
    if limit is not None:
        x = np.where(ridge > 0.0, x, q)
        x = np.minimum(x, np.where(z > 0.0, limit, 0.0) * z)
    return x, z


def fill(slope: FloatArray, shift: FloatArray, k: float, highest: float = math.inf) -> FloatArray:
    r"""Return :math:`z_j = \mathrm{clip}(a_j \theta - b_j, 0, 1)` for the largest
    :math:`\theta \le` ``highest`` with :math:`\sum z \le k`.

    The sum is piecewise linear and increasing in theta; Newton's method with a bracket ends on
    the right piece.
    """
    positive = slope > 0.0
    count = int(np.count_nonzero(positive))
    if count <= k and math.isinf(highest):
        return positive.astype(np.float64)
    if not count:
        return np.zeros_like(slope)
    with np.errstate(divide="ignore", over="ignore"):
        saturated = np.where(positive, (1.0 + shift) / np.where(positive, slope, 1.0), np.inf)
    # At the theta that saturates the ceil(k) easiest ones the sum has reached k.
    index = min(max(math.ceil(k), 1), slope.size) - 1
    theta = float(np.partition(saturated, index)[index])
    theta = min(theta, highest)
    # What is zero at the largest theta is zero at all: few are left.
    out = np.zeros_like(slope)
    left = np.flatnonzero(slope * theta > shift)
    out[left] = _newton(slope[left], shift[left], k, theta)
    return out


def _newton(slope: FloatArray, shift: FloatArray, k: float, theta: float) -> FloatArray:
    low, high = 0.0, theta
    z = np.clip(slope * theta - shift, 0.0, 1.0)
    if float(z.sum()) <= k:
        return z
    for _ in range(_STEPS):
        excess = float(z.sum()) - k
        if abs(excess) <= _ACCURACY * k:
            break
        if excess > 0.0:
            high = theta
        else:
            low = theta
        moving = float(slope[(z > 0.0) & (z < 1.0)].sum())
        theta = theta - excess / moving if moving > 0.0 else 0.5 * (low + high)
        if not low < theta < high:
            theta = 0.5 * (low + high)
            if theta in (low, high):
                break
        z = np.clip(slope * theta - shift, 0.0, 1.0)
    return z


def _fill_above(sizes: FloatArray, least: FloatArray, k: int, highest: float) -> FloatArray:
    """Return ``z = max(least, min(1, sizes theta))`` with sum ``k`` at most; by bisection."""

    def at(theta: float) -> FloatArray:
        with np.errstate(invalid="ignore"):
            full = np.where(sizes > 0.0, np.minimum(1.0, sizes * theta), 0.0)
        return np.maximum(least, full)

    return _largest(at, k, highest, float(sizes.max(initial=0.0)))


def _largest(
    curve: Callable[[float], FloatArray], k: int, highest: float, scale: float
) -> FloatArray:
    """Return ``curve(theta)`` for the largest theta with sum ``k`` at most; it is increasing."""
    top = min(highest, 1e18 / scale if scale > 0.0 else 1.0)
    z = curve(top)
    if float(z.sum()) <= k:
        return z
    low, high = 0.0, top
    below, above = -float(k), float(z.sum()) - k
    last = 0.0
    for _ in range(_STEPS):
        if high <= low * (1.0 + 4e-16) or high < 1e-300:
            break
        # Regula falsi once the bracket is narrow, with the Illinois halving of the end that stays;
        # before that, and where it would leave the bracket, halves of the logarithm.
        theta = low - below * (high - low) / (above - below) if high < 16.0 * low else 0.0
        if not low < theta < high:
            theta = math.sqrt(low) * math.sqrt(high) if low > 0.0 else 1e-3 * high
            if theta in (low, high):
                break
        excess = float(curve(theta).sum()) - k
        if excess <= 0.0:
            low, below = theta, excess
            above *= 0.5 if last < 0.0 else 1.0
            if excess >= -_ACCURACY * k:
                break
        else:
            high, above = theta, excess
            below *= 0.5 if last > 0.0 else 1.0
        last = excess
    return curve(low)


def _limited(
    q: FloatArray, step: float, ridge: FloatArray, k: int, price: float, limit: FloatArray
) -> FloatArray:
    """Return the shares ``z`` of the proximal point with limits.

    The cost of a share falls at rate ``lam q^2 / (2 (z + t lam)^2)`` where the limit is slack
    and ``M (q - M z)/t - lam M^2/2`` where it binds; both meet at ``lam M^2/2``.
    """
    shift = step * ridge
    turning = 0.5 * ridge * np.square(limit)

    def shares(inverse: float) -> FloatArray:
        rate = 1.0 / inverse if inverse > 0.0 else math.inf  # price + multiplier
        with np.errstate(divide="ignore", invalid="ignore"):
            slack = q * np.sqrt(ridge / (2.0 * rate)) - shift
            binding = (q - step * (rate + turning) / limit) / limit
        z = np.where(rate >= turning, binding, slack)
        return np.clip(np.where((limit > 0.0) & (q > 0.0), z, 0.0), 0.0, 1.0)

    finite = limit[np.isfinite(limit)]
    scale = (
        step / max(float(q.max(initial=0.0)), 1e-300) / max(float(finite.max(initial=1.0)), 1e-300)
    )
    highest = 1.0 / price if price > 0.0 else math.inf
    return _largest(shares, k, highest, 1.0 / max(scale, 1e-300))


def _shares(x: FloatArray, limit: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > 0.0, x / limit, 0.0)


def _highest(price: float) -> float:
    return 1.0 / math.sqrt(2.0 * price) if price > 0.0 else math.inf


__all__ = ["fill", "ksupport_prox", "ksupport_value"]
