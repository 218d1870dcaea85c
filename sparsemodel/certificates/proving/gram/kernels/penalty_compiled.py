"""What a node's penalty, budget and gains are, and small dense systems; compiled."""

from __future__ import annotations

import numpy as np

from sparsemodel import loading

numba = loading.numba()


@numba.njit(cache=True, error_model="numpy")
def own(t, cost, price):  # type: ignore[no-untyped-def]
    """Return the ``t`` of a coordinate with a price beside what it takes of the budget."""
    return t if cost == 1.0 and price == 0.0 else np.sqrt(cost * t * t + 2.0 * price)


@numba.njit(cache=True, error_model="numpy")
def used(sizes, shares, costs, prices, count, t):  # type: ignore[no-untyped-def]
    """Return how much of the budget nonzeros use at a multiplier."""
    total = 0.0
    for i in range(count):
        each = own(t, costs[i], prices[i])
        share = max(shares[i], min(sizes[i] / each, 1.0)) if each > 0.0 else 1.0
        total += costs[i] * share
    return total


@numba.njit(cache=True, error_model="numpy")
def budget(sizes, shares, costs, prices, count, k, floor):  # type: ignore[no-untyped-def]
    """Return ``t`` with ``sum c max(shares, min(sizes / t, 1)) = k``; ``floor`` where less is used.

    ``sizes`` are the nonzeros in units of the root of their curvature, ``shares`` in units of
    their bounds, and each has a ``t`` of its own where it has a price.
    """
    total, least, held = 0.0, np.inf, False
    for i in range(count):
        total += costs[i]
        held = held or costs[i] != 1.0 or prices[i] > 0.0
    if total <= k or (floor > 0.0 and used(sizes, shares, costs, prices, count, floor) <= k):
        return floor
    total = 0.0
    for i in range(count):
        total += sizes[i]
        least = min(least, sizes[i])
        held = held or shares[i] > 0.0
    t = total / k
    if held:
        if not total > 0.0:
            return floor
        low, high = floor, max(t, floor)
        while used(sizes, shares, costs, prices, count, high) > k and high < 1e6 * t:
            high *= 2.0
        for _ in range(50):
            t = 0.5 * (low + high)
            if used(sizes, shares, costs, prices, count, t) > k:
                low = t
            else:
                high = t
        return high
    for _ in range(count):
        full, rest = 0, 0.0
        for i in range(count):
            if sizes[i] > t:
                full += 1
            else:
                rest += sizes[i]
        if full >= k:
            break
        following = rest / (k - full)
        if following >= t:
            break
        t = following
    return max(t, floor)


@numba.njit(cache=True, error_model="numpy")
def penalty(t, d, limit):  # type: ignore[no-untyped-def]
    """Return the slope and the width of the linear part of a coordinate's penalty."""
    width = t / np.sqrt(d) if d > 0.0 else np.inf
    if width <= limit:
        return np.sqrt(d) * t, width
    if not limit > 0.0:
        return np.inf, 0.0
    return 0.5 * d * limit + 0.5 * t * t / limit, limit


@numba.njit(cache=True, error_model="numpy")
def clipped(b, a, low, high):  # type: ignore[no-untyped-def]
    """Return the minimiser of ``a w^2 / 2 - b w`` between bounds."""
    if a > 0.0:
        return min(max(b / a, low), high)
    if b > 0.0:
        return high
    return low if b < 0.0 else min(max(0.0, low), high)


@numba.njit(cache=True, error_model="numpy")
def gain(v, d, low, high):  # type: ignore[no-untyped-def]
    """Return the most that ``-v w - d w^2 / 2`` can be between bounds."""
    if v == 0.0:
        return 0.0
    w = clipped(-v, d, low, high)
    return -v * w - 0.5 * d * w * w


@numba.njit(cache=True, error_model="numpy")
def cholesky(matrix):  # type: ignore[no-untyped-def]
    """Return the lower factor; empty where the matrix is not positive definite."""
    try:
        return np.linalg.cholesky(matrix)
    except Exception:  # noqa: BLE001 - the only kind that compiled code can catch
        return np.empty((0, 0))


@numba.njit(cache=True, error_model="numpy")
def substitute(lower, right):  # type: ignore[no-untyped-def]
    """Solve ``lower @ lower.T @ x = right`` in place."""
    size = right.size
    for i in range(size):
        total = right[i]
        for j in range(i):
            total -= lower[i, j] * right[j]
        right[i] = total / lower[i, i]
    for i in range(size - 1, -1, -1):
        right[i] /= lower[i, i]
        value = right[i]
        for j in range(i):
            right[j] -= lower[i, j] * value
