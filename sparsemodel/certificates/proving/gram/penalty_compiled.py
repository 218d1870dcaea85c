"""What a node's penalty, budget and gains are, and small dense systems; compiled."""

from __future__ import annotations

import numpy as np

from sparsemodel.certificates.proving.gram.numba_compiled import numba


@numba.njit(cache=True, error_model="numpy")
def used(sizes, shares, count, t):  # type: ignore[no-untyped-def]
    """Return how much of the budget nonzeros use at a multiplier."""
    total = 0.0
    for i in range(count):
        total += max(shares[i], min(sizes[i] / t, 1.0))
    return total


@numba.njit(cache=True, error_model="numpy")
def budget(sizes, shares, count, k):  # type: ignore[no-untyped-def]
    """Return ``t`` with ``sum max(shares, min(sizes / t, 1)) = k``; 0 for at most ``k`` nonzeros.

    ``sizes`` are the nonzeros in units of the root of their curvature, ``shares`` in units of
    their bounds.
    """
    if count <= k:
        return 0.0
    total, least, held = 0.0, np.inf, False
    for i in range(count):
        total += sizes[i]
        least = min(least, sizes[i])
        held = held or shares[i] > 0.0
    t = total / k
    if held:
        if not total > 0.0:
            return 0.0
        low, high = 0.0, t
        while used(sizes, shares, count, high) > k and high < 1e6 * t:
            high *= 2.0
        for _ in range(50):
            t = 0.5 * (low + high)
            if used(sizes, shares, count, t) > k:
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
    return t


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
