"""One Newton step on the active sets of a node's relaxation, in its point and its multiplier.

The conditions are those of :mod:`sparsemodel.certificates.proving.gram.node_compiled`; compiled.
"""

from __future__ import annotations

import numpy as np

from sparsemodel import loading
from sparsemodel.certificates.proving.gram.penalty_compiled import (
    cholesky,
    clipped,
    own,
    penalty,
    substitute,
)

numba = loading.numba()


@numba.njit(cache=True, error_model="numpy")
def _kinds(  # type: ignore[no-untyped-def]
    q, d, low, high, w, slopes, status, live, t, costs, prices, plain, index, kind, signs, rates,
    widths,
):  # fmt: skip
    """Fill in what each coordinate is at ``(w, t)``; return how many are not zero, what those that
    are full take of the budget, and how many are linear.

    Kinds: 0 linear with a width that ``t`` sets, 1 linear up to a bound, 2 full, 3 at a bound, 4
    in for good, 5 in for good and at a bound.
    """
    size, full, linear = 0, 0.0, 0
    for j in live:
        a = q[j, j]
        b = a * w[j] - slopes[j]
        signs[size] = 1.0 if b > 0.0 else -1.0
        limit = high[j] if b > 0.0 else -low[j]
        index[size] = j
        if plain or status[j] == 1:
            at = clipped(b, a + d[j], low[j], high[j])
            kind[size] = 4 if low[j] < at < high[j] else 5
            widths[size] = at
            size += 1
            continue
        each = own(t, costs[j], prices[j])
        slope, width = penalty(each, d[j], limit)
        left = abs(b) - slope
        if not left > 0.0:
            continue
        widths[size] = width
        if left < a * width:
            kind[size] = 0 if width < limit else 1
            rates[size] = costs[j] * (np.sqrt(d[j]) * (t / each) if width < limit else t / width)
            linear += 1
        else:
            full += costs[j]
            kind[size] = 2 if abs(b) < (a + d[j]) * limit and width < limit else 3
            if kind[size] == 3:
                widths[size] = signs[size] * limit
        size += 1
    return size, full, linear


@numba.njit(cache=True, error_model="numpy")
def _system(q, g, d, t, costs, prices, index, kind, signs, rates, widths, place):  # type: ignore[no-untyped-def]
    """Return the matrix of the optimality conditions, their right side, and its slope in ``t``."""
    inner = place.size
    matrix = np.empty((inner, inner))
    right, along = np.zeros(inner), np.zeros(inner)
    for i in range(inner):
        a = place[i]
        j = index[a]
        right[i] = g[j]
        for b in range(inner):
            matrix[i, b] = q[j, index[place[b]]]
        for b in range(index.size):
            if kind[b] == 3 or kind[b] == 5:
                right[i] -= q[j, index[b]] * widths[b]
        if kind[a] == 2 or kind[a] == 4:
            matrix[i, i] += d[j]
        else:
            # Linear columns may be dependent; Newton's method forgives a little curvature.
            matrix[i, i] += 1e-12 * (1.0 + matrix[i, i])
            each = own(t, costs[j], prices[j])
            slope = np.sqrt(d[j]) * each
            if kind[a] == 1:
                slope = 0.5 * (d[j] * widths[a] + each * each / widths[a])
            right[i] -= signs[a] * slope
            along[i] = signs[a] * rates[a]
    return matrix, right, along


@numba.njit(cache=True, error_model="numpy")
def _change(t, left, kind, signs, rates, place, right, along):  # type: ignore[no-untyped-def]
    """Return how much ``t`` changes so that ``left`` of the budget is used; nan for nowhere."""
    held = False
    by_t, by_bound, by_t_along, by_bound_along = 0.0, 0.0, 0.0, 0.0
    for i in range(place.size):
        a = place[i]
        held = held or kind[a] == 1
        if kind[a] == 0:
            by_t += rates[a] * signs[a] * right[i]
            by_t_along += rates[a] * signs[a] * along[i]
        elif kind[a] == 1:
            by_bound += rates[a] / t * signs[a] * right[i]
            by_bound_along += rates[a] / t * signs[a] * along[i]
    budget_left = left - by_bound
    below = budget_left + by_t_along + t * by_bound_along
    if not below > 0.0:
        return np.nan
    change = (by_t - t * budget_left) / below
    if held:
        # The slopes of widths at a bound are tangents in t: they hold nearby.
        change = min(max(change, -0.8 * t), 4.0 * t)
    return change


@numba.njit(cache=True, error_model="numpy")
def newton_step(  # type: ignore[no-untyped-def]
    q, g, d, low, high, w, slopes, status, live, t, k, costs, prices, floor, plain, free
):
    """Solve the optimality conditions on the sets that ``(w, t)`` points at; ``t`` or -1.

    ``plain`` is a problem without a budget, ``free`` one without prices, too.
    """
    index, kind = np.empty(live.size, np.int64), np.empty(live.size, np.int64)
    signs, rates, widths = np.zeros(live.size), np.zeros(live.size), np.zeros(live.size)
    size, full, linear = _kinds(
        q, d, low, high, w, slopes, status, live, t, costs, prices, free, index, kind, signs, rates,
        widths,
    )  # fmt: skip
    inner = 0
    place = np.empty(size, np.int64)
    for a in range(size):
        if kind[a] != 3 and kind[a] != 5:
            place[inner] = a
            inner += 1
    if size == 0 or inner > 1500:
        return -1.0
    matrix, right, along = _system(
        q, g, d, t, costs, prices, index[:size], kind, signs, rates, widths, place[:inner]
    )
    if inner > 0:
        lower = cholesky(matrix)
        if lower.shape[0] < inner:
            return -1.0
        substitute(lower, right)
    ahead = t
    if not plain and linear > 0 and full < k:
        # The multiplier is part of the system: its row is the budget.
        substitute(lower, along)
        change = _change(t, k - full, kind, signs, rates, place[:inner], right, along)
        if np.isnan(change):
            return -1.0
        change = max(change, floor - t)
        ahead = t + change
        for i in range(inner):
            right[i] -= change * along[i]
    for i in range(inner):
        if not np.isfinite(right[i]):
            return -1.0
    if not plain and not ahead > 0.0:
        return -1.0
    for j in live:
        w[j] = 0.0
    for a in range(size):
        if kind[a] == 3 or kind[a] == 5:
            w[index[a]] = widths[a]
    for i in range(inner):
        j = index[place[i]]
        w[j] = min(max(right[i], low[j]), high[j])
    return max(min(max(ahead, 0.2 * t), 5.0 * t), floor)
