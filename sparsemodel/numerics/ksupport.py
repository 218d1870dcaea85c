r"""The convex relaxation of a ridge under a cardinality constraint: values and proximal points.

The relaxation replaces :math:`\frac12 \sum \lambda_j x_j^2` under "at most ``k`` nonzeros", with a
price :math:`\gamma` for each, the same or its own, by

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
    price: float | FloatArray = 0.0,
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
    least = np.minimum(least, 1.0)
    if isinstance(price, np.ndarray):
        z = _at_prices(lambda theta: np.maximum(least, np.minimum(1.0, sizes * theta)), k, price)
    elif limit is None:
        z = fill(sizes, np.zeros(x.size), k, _highest(price))
    else:
        z = _fill_above(sizes, least, k, _highest(price))
    positive, paid = sizes > 0.0, float(np.sum((price * z)[x > 0.0]))
    return float(0.5 * np.sum(np.square(sizes[positive]) / z[positive])) + paid


def ksupport_prox(
    q: FloatArray,
    step: float,
    ridge: FloatArray,
    k: int,
    *,
    price: float | FloatArray = 0.0,
    limit: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Return ``(x, z)`` minimising :math:`\frac{1}{2t}\|x - q\|^2 + R(x)`, for sizes ``q >= 0``.

    :math:`z_j = \mathrm{clip}(q_j \sqrt{\lambda_j} \theta - t\lambda_j, 0, 1)` and
    :math:`x_j = q_j z_j / (z_j + t\lambda_j)`, with :math:`\theta` such that
    :math:`\sum z \le k` and :math:`\theta \le 1/\sqrt{2\gamma}`. With limits ``z``
    depends on the multiplier of the sum in two pieces.

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
    slope = np.sqrt(ridge) * q
    if limit is not None:
        z = _limited(q, step, ridge, k, price, limit)
    elif isinstance(price, np.ndarray):
        z = _at_prices(lambda theta: np.clip(slope * theta - shift, 0.0, 1.0), k, price)
    else:
        z = fill(slope, shift, k, _highest(price))
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
    """Return ``z = max(least, min(1, sizes theta))`` with sum ``k`` at most."""
    if int(np.count_nonzero((sizes > 0.0) | (least > 0.0))) <= k and math.isinf(highest):
        return np.where(sizes > 0.0, 1.0, least)

    def at(theta: float) -> tuple[FloatArray, float, float]:
        full = np.minimum(1.0, sizes * theta)
        moving = float(sizes[(full > least) & (full < 1.0)].sum())
        return np.maximum(least, full), moving, 0.0

    total = float(sizes.sum())
    return _largest(at, k, highest, k / total if total > 0.0 else 1.0)


def _largest(
    curve: Callable[[float], tuple[FloatArray, float, float]], k: int, highest: float, start: float
) -> FloatArray:
    r"""Return the values of ``curve`` for the largest theta with sum ``k`` at most.

    ``curve`` returns increasing values, and the rates at which their sum rises in ``theta`` and
    falls in :math:`1/(2\theta^2)`, of both of which values are linear in pieces. A step is right
    for the piece, from the end of the bracket that is nearer; every sixth halves its logarithm, so
    that no corner holds it up.
    """
    highest = min(highest, 1e300)
    everything = curve(highest)[0]
    if float(everything.sum()) <= k:
        return everything
    theta, low, high = start if start < highest else min(1.0, 0.5 * highest), 0.0, highest
    kept: FloatArray | None = None
    nearest = (math.inf, theta, 0.0, 0.0)
    for step in range(1, _STEPS):
        z, rising, falling = curve(theta)
        excess = float(z.sum()) - k
        if abs(excess) <= _ACCURACY * k:
            return z
        if excess > 0.0:
            high = theta
        else:
            low, kept = theta, z
        if abs(excess) < abs(nearest[0]):
            nearest = (excess, theta, rising, falling)
        following = _balanced(*nearest) if step % 6 else 0.0
        if not low < following < high:
            upper = min(high, 16.0 * theta)
            following = math.sqrt(low) * math.sqrt(upper) if low > 0.0 else 1e-3 * upper
        if following in (low, theta) or not 1e-300 < following < 1e300:
            break
        theta = following
    return curve(low)[0] if kept is None else kept


def _balanced(excess: float, theta: float, rising: float, falling: float) -> float:
    r"""Return ``t`` where ``excess + rising (t - theta) = falling (1/t^2 - 1/theta^2) / 2``.

    Newton's method; zero where there is none. The difference is concave in ``t``, so that steps
    from below do not go too far.
    """
    t = theta
    for _ in range(50):
        left = excess + rising * (t - theta) - 0.5 * falling * (1.0 / t / t - 1.0 / theta / theta)
        slope = rising + falling / t / t / t
        if not 0.0 < slope < math.inf:
            return 0.0
        following = t - left / slope
        following = following if following > 0.25 * t else 0.25 * t
        if abs(following - t) <= 1e-15 * t:
            return following
        t = following
    return t


def _limited(
    q: FloatArray,
    step: float,
    ridge: FloatArray,
    k: int,
    price: float | FloatArray,
    limit: FloatArray,
) -> FloatArray:
    r"""Return the shares ``z`` of the proximal point with limits.

    The cost of a share falls at rate :math:`\lambda q^2 / (2 (z + t \lambda)^2)` where the limit is
    slack and :math:`M (q - M z)/t - \lambda M^2/2` where it binds; both meet at
    :math:`\lambda M^2/2`. With a rate of :math:`1/(2\theta^2)` the slack shares are linear.
    """
    able = (limit > 0.0) & (q > 0.0)
    out = np.zeros_like(q)
    if not able.any():
        return out
    highest = math.inf if isinstance(price, np.ndarray) else _highest(price)
    if int(np.count_nonzero(able)) <= k and math.isinf(highest) and not np.any(price):
        out[able] = 1.0
        return out
    q, ridge, limit = q[able], ridge[able], limit[able]
    slope, shift = np.sqrt(ridge) * q, step * ridge
    with np.errstate(divide="ignore", over="ignore"):
        meeting = 1.0 / (np.sqrt(ridge) * limit)
        inverse = 1.0 / limit
        pull = np.where(np.isfinite(limit), step * inverse * inverse, 0.0)
        flat = np.where(np.isfinite(limit), q * inverse - 0.5 * shift, 0.0)
    bounded = np.isfinite(limit)

    def shares(theta: float | FloatArray) -> tuple[FloatArray, float, float]:
        theta = np.maximum(theta, 1e-150)  # one over its square is a number
        binds = bounded & (theta <= meeting)
        with np.errstate(over="ignore"):
            z = np.where(binds, flat - pull * (0.5 / theta / theta), slope * theta - shift)
        moving = (z > 0.0) & (z < 1.0)
        rising, falling = slope[moving & ~binds], pull[moving & binds]
        return np.minimum(np.maximum(z, 0.0), 1.0), float(rising.sum()), float(falling.sum())

    if isinstance(price, np.ndarray):
        out[able] = _at_prices(lambda theta: shares(theta)[0], k, price[able])
        return out
    with np.errstate(divide="ignore", over="ignore"):
        saturated = np.where(slope > 0.0, (1.0 + shift) / slope, np.inf)
        tight = bounded & (flat > 1.0) & ~(saturated > meeting)
        saturated[tight] = np.sqrt(0.5 * pull[tight] / (flat[tight] - 1.0))
    start = float(np.partition(saturated, min(k, saturated.size) - 1)[min(k, saturated.size) - 1])
    out[able] = _largest(shares, k, highest, start)
    return out


def _at_prices(curve: Callable[[FloatArray], FloatArray], k: int, prices: FloatArray) -> FloatArray:
    r"""Return the shares at prices :math:`\gamma_j + \mu`, for the least ``mu`` with sum ``k``.

    :math:`\theta_j = 1 / \sqrt{2 (\gamma_j + \mu)}`: the sum falls in ``mu``, whose logarithm is
    halved between one where it is below ``k`` and one where it is not.
    """

    def at(mu: float) -> FloatArray:
        return curve(1.0 / np.sqrt(2.0 * np.maximum(prices + mu, 1e-300)))

    z = at(0.0)
    if float(z.sum()) <= k:
        return z
    high = max(float(prices.max()), 1e-300)
    while float((z := at(high)).sum()) > k and high < 1e300:
        high *= 16.0
    low = high / 2.0
    while float(at(low).sum()) <= k and low > 1e-290:
        high, low = low, low / 16.0
    for _ in range(_STEPS):
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        low, high = (low, middle) if float(at(middle).sum()) <= k else (middle, high)
    return at(high)


def _shares(x: FloatArray, limit: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > 0.0, x / limit, 0.0)


def _highest(price: float) -> float:
    return 1.0 / math.sqrt(2.0 * price) if price > 0.0 else math.inf
