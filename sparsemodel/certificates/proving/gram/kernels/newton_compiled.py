"""One Newton step on the active sets of a node's relaxation, in its point and its multiplier.

Compiled; the conditions are those of
:mod:`sparsemodel.certificates.proving.gram.kernels.node_compiled`.
"""

from __future__ import annotations

import numpy as np

from sparsemodel import loading
from sparsemodel.certificates.proving.gram.kernels.node_problem import ACTIVE
from sparsemodel.certificates.proving.gram.kernels.penalty_compiled import (
    cholesky,
    clipped,
    own,
    penalty,
    substitute,
)

numba = loading.numba()


@numba.njit(cache=True, error_model="numpy")
def _kinds(node, at, t, active):  # type: ignore[no-untyped-def]
    """Fill in what each coordinate is at ``(w, t)``; return how many are not zero, what those that
    are full take of the budget, and how many are linear."""
    size, full, linear = 0, 0.0, 0
    for j in node.live:
        a, c, one = node.q[j, j], node.coordinates[j], active[size]
        b = a * at.w[j] - at.slopes[j]
        limit = c.high if b > 0.0 else -c.low
        one.index, one.sign, one.rate = j, 1.0 if b > 0.0 else -1.0, 0.0
        if node.free or c.inside:
            one.width = clipped(b, a + c.d, c.low, c.high)
            one.kind = 4 if c.low < one.width < c.high else 5
            size += 1
            continue
        each = own(t, c.cost, c.price)
        slope, width = penalty(each, c.d, limit)
        above = abs(b) - slope
        if not above > 0.0:
            continue
        one.width = width
        if above < a * width:
            one.kind = 0 if width < limit else 1
            one.rate = c.cost * (np.sqrt(c.d) * (t / each) if width < limit else t / width)
            linear += 1
        else:
            full += c.cost
            one.kind = 2 if abs(b) < (a + c.d) * limit and width < limit else 3
            if one.kind == 3:
                one.width = one.sign * limit
        size += 1
    return size, full, linear


@numba.njit(cache=True, error_model="numpy")
def _system(node, t, active, place):  # type: ignore[no-untyped-def]
    """Return the matrix of the optimality conditions, their right side, and its slope in ``t``."""
    q, inner = node.q, place.size
    matrix = np.empty((inner, inner))
    right, along = np.zeros(inner), np.zeros(inner)
    for i in range(inner):
        one = active[place[i]]
        j = one.index
        c = node.coordinates[j]
        right[i] = c.g
        for b in range(inner):
            matrix[i, b] = q[j, active[place[b]].index]
        for other in active:
            if other.kind == 3 or other.kind == 5:
                right[i] -= q[j, other.index] * other.width
        if one.kind == 2 or one.kind == 4:
            matrix[i, i] += c.d
        else:
            # Linear columns may be dependent; Newton's method tolerates a little curvature.
            matrix[i, i] += 1e-12 * (1.0 + matrix[i, i])
            each = own(t, c.cost, c.price)
            slope = np.sqrt(c.d) * each
            if one.kind == 1:
                slope = 0.5 * (c.d * one.width + each * each / one.width)
            right[i] -= one.sign * slope
            along[i] = one.sign * one.rate
    return matrix, right, along


@numba.njit(cache=True, error_model="numpy")
def _change(t, left, active, place, right, along):  # type: ignore[no-untyped-def]
    """Return how much ``t`` changes so that ``left`` of the budget is used; nan for nowhere."""
    held = False
    by_t, by_bound, by_t_along, by_bound_along = 0.0, 0.0, 0.0, 0.0
    for i in range(place.size):
        one = active[place[i]]
        held = held or one.kind == 1
        if one.kind == 0:
            by_t += one.rate * one.sign * right[i]
            by_t_along += one.rate * one.sign * along[i]
        elif one.kind == 1:
            by_bound += one.rate / t * one.sign * right[i]
            by_bound_along += one.rate / t * one.sign * along[i]
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
def newton_step(node, at, t, ahead):  # type: ignore[no-untyped-def]
    """Solve the optimality conditions on the sets that ``(w, t)`` points at; ``t`` or -1.

    Fills in ``ahead``, the point that solves them.
    """
    active = np.empty(node.live.size, ACTIVE)
    size, full, linear = _kinds(node, at, t, active)
    active = active[:size]
    inner = 0
    place = np.empty(size, np.int64)
    for a in range(size):
        if active[a].kind != 3 and active[a].kind != 5:
            place[inner] = a
            inner += 1
    if size == 0 or inner > 1500:
        return -1.0
    place = place[:inner]
    matrix, right, along = _system(node, t, active, place)
    if inner > 0:
        lower = cholesky(matrix)
        if lower.shape[0] < inner:
            return -1.0
        substitute(lower, right)
    following = t
    if not node.plain and linear > 0 and full < node.k:
        # The multiplier is part of the system: its row is the budget.
        substitute(lower, along)
        change = _change(t, node.k - full, active, place, right, along)
        if np.isnan(change):
            return -1.0
        change = max(change, node.floor - t)
        following = t + change
        for i in range(inner):
            right[i] -= change * along[i]
    for i in range(inner):
        if not np.isfinite(right[i]):
            return -1.0
    if not node.plain and not following > 0.0:
        return -1.0
    for j in node.live:
        ahead[j] = 0.0
    for one in active:
        if one.kind == 3 or one.kind == 5:
            ahead[one.index] = one.width
    for i in range(inner):
        j = active[place[i]].index
        ahead[j] = min(max(right[i], node.coordinates[j].low), node.coordinates[j].high)
    return max(min(max(following, 0.2 * t), 5.0 * t), node.floor)
