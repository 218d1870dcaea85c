r"""The relaxation of one node, compiled: coordinate descent and Newton steps on active sets.

With curvatures :math:`d_j` (one after scaling, less where there is hardly any ridge) and bounds
:math:`l_j \le w_j \le u_j` a node asks for

.. math:: \min_w \tfrac12 w^T Q w - g^T w + \tfrac12 \sum_{j\ \mathrm{in}} d_j w_j^2
          + \min_{0 \le z \le 1,\, \sum z \le k,\, l z \le w \le u z}
          \tfrac12 \sum_j d_j w_j^2 / z_j .

With the multiplier :math:`t^2 / 2` of the budget an undecided coordinate pays a penalty that is
linear up to its width :math:`s = \min(t / \sqrt{d}, u)`, with the slope
:math:`d s / 2 + t^2 / (2 s)`, and :math:`(d w^2 + t^2) / 2` beyond, up to its bound. Given which
coordinates are zero, linear, full and at their bounds, the optimality conditions are linear in
``w`` and nearly so in ``t``.

Plain loops on purpose: they compile in a quarter of the time that array expressions take. Division
by zero gives what it gives in NumPy: a point that proves nothing, not an exception.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemodel.certificates.proving.compiling import top
from sparsemodel.certificates.proving.gram.numba_compiled import numba
from sparsemodel.certificates.proving.gram.penalty_compiled import (
    budget,
    cholesky,
    clipped,
    gain,
    penalty,
    substitute,
)
from sparsemodel.interfaces import FloatArray


@numba.njit(cache=True, error_model="numpy")
def _slopes(q, g, w, live, slopes):  # type: ignore[no-untyped-def]
    r = g.size
    for i in range(r):
        slopes[i] = -g[i]
    for j in live:
        x = w[j]
        if x != 0.0:
            for i in range(r):
                slopes[i] += x * q[j, i]


@numba.njit(cache=True, error_model="numpy")
def _kinds(q, d, low, high, w, slopes, status, live, t, plain, index, kind, signs, rates, widths):  # type: ignore[no-untyped-def]
    """Fill in what each coordinate is at ``(w, t)``; return how many are not zero, full, linear.

    Kinds: 0 linear with a width that ``t`` sets, 1 linear up to a bound, 2 full, 3 at a bound, 4
    in for good, 5 in for good and at a bound.
    """
    size, full, linear = 0, 0, 0
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
        slope, width = penalty(t, d[j], limit)
        left = abs(b) - slope
        if not left > 0.0:
            continue
        widths[size] = width
        if left < a * width:
            kind[size] = 0 if width < limit else 1
            rates[size] = np.sqrt(d[j]) if width < limit else t / width
            linear += 1
        else:
            full += 1
            kind[size] = 2 if abs(b) < (a + d[j]) * limit and width < limit else 3
            if kind[size] == 3:
                widths[size] = signs[size] * limit
        size += 1
    return size, full, linear


@numba.njit(cache=True, error_model="numpy")
def _newton(q, g, d, low, high, w, slopes, status, live, t, k, plain):  # type: ignore[no-untyped-def]
    """Solve the optimality conditions on the sets that ``(w, t)`` points at; ``t`` or -1."""
    index, kind = np.empty(live.size, np.int64), np.empty(live.size, np.int64)
    signs, rates, widths = np.zeros(live.size), np.zeros(live.size), np.zeros(live.size)
    size, full, linear = _kinds(
        q, d, low, high, w, slopes, status, live, t, plain, index, kind, signs, rates, widths
    )
    inner = 0
    place = np.empty(size, np.int64)
    for a in range(size):
        if kind[a] != 3 and kind[a] != 5:
            place[inner] = a
            inner += 1
    if size == 0 or inner > 1500:
        return -1.0
    own = not plain and linear > 0 and full < k
    matrix = np.empty((inner, inner))
    right, along = np.zeros(inner), np.zeros(inner)
    for i in range(inner):
        a = place[i]
        j = index[a]
        right[i] = g[j]
        for b in range(inner):
            matrix[i, b] = q[j, index[place[b]]]
        for b in range(size):
            if kind[b] == 3 or kind[b] == 5:
                right[i] -= q[j, index[b]] * widths[b]
        if kind[a] == 2 or kind[a] == 4:
            matrix[i, i] += d[j]
        else:
            # Linear columns may be dependent; Newton's method forgives a little curvature.
            matrix[i, i] += 1e-12 * (1.0 + matrix[i, i])
            slope = rates[a] * t if kind[a] == 0 else 0.5 * (d[j] * widths[a] + t * t / widths[a])
            right[i] -= signs[a] * slope
            along[i] = signs[a] * rates[a]
    if inner > 0:
        lower = cholesky(matrix)
        if lower.shape[0] < inner:
            return -1.0
        substitute(lower, right)
    ahead = t
    if own:
        # The multiplier is part of the system: its row is the budget.
        substitute(lower, along)
        held = False
        by_t, by_bound, by_t_along, by_bound_along = 0.0, 0.0, 0.0, 0.0
        for i in range(inner):
            a = place[i]
            held = held or kind[a] == 1
            if kind[a] == 0:
                by_t += rates[a] * signs[a] * right[i]
                by_t_along += rates[a] * signs[a] * along[i]
            elif kind[a] == 1:
                by_bound += signs[a] * right[i] / widths[a]
                by_bound_along += signs[a] * along[i] / widths[a]
        room = k - full - by_bound
        below = room + by_t_along + t * by_bound_along
        if not below > 0.0:
            return -1.0
        change = (by_t - t * room) / below
        if held:
            # The slopes of widths at a bound are tangents in t: they hold nearby.
            change = min(max(change, -0.8 * t), 4.0 * t)
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
    return min(max(ahead, 0.2 * t), 5.0 * t)


@numba.njit(cache=True, error_model="numpy")
def _sweep(q, d, low, high, w, slopes, status, live, t, plain):  # type: ignore[no-untyped-def]
    """Minimise over one coordinate after the other at this ``t``."""
    r = w.size
    for j in live:
        a = q[j, j]
        b = a * w[j] - slopes[j]
        new = 0.0
        if plain or status[j] == 1:
            new = clipped(b, a + d[j], low[j], high[j])
        else:
            size = abs(b)
            limit = high[j] if b > 0.0 else -low[j]
            slope, width = penalty(t, d[j], limit)
            if size > slope:
                new = (size - slope) / a if a > 0.0 else np.inf
                if new > width:
                    new = limit if width >= limit else min(max(size / (a + d[j]), width), limit)
                if b < 0.0:
                    new = -new
        change = new - w[j]
        if change != 0.0:
            w[j] = new
            for i in range(r):
                slopes[i] += change * q[j, i]


@numba.njit(cache=True, error_model="numpy")
def _measure(q, g, constant, d, low, high, w, slopes, status, live, undecided, gains, k, plain):  # type: ignore[no-untyped-def]
    """Return the bound and the value at ``w``, and the k-th largest gain."""
    energy, linear, inside, own, weight = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in live:
        energy += w[j] * (slopes[j] + g[j])
        linear += w[j] * g[j]
        weight += abs(w[j]) * np.sqrt(q[j, j])
        if status[j] == 1:
            inside += gain(slopes[j], d[j], low[j], high[j])
            own += d[j] * w[j] * w[j]
    for i in range(undecided.size):
        j = undecided[i]
        gains[i] = gain(slopes[j], d[j], low[j], high[j])
    most, least = top(gains, min(k, undecided.size))
    # Large points that cancel prove nothing, whatever rounding makes of them.
    bound = constant - 0.5 * energy - inside - most - 2e-16 * weight * weight
    count, spent, shared = 0, 0.0, 0.0
    sizes, shares = np.empty(undecided.size), np.empty(undecided.size)
    for j in undecided:
        if w[j] != 0.0:
            sizes[count] = np.sqrt(d[j]) * abs(w[j])
            shares[count] = w[j] / high[j] if w[j] > 0.0 else w[j] / low[j]
            shared += shares[count]
            count += 1
    # A point beyond the budget, whatever the multiplier, is as good as it is after shrinking.
    shrink = 1.0 if plain or not shared > k else k / shared
    for i in range(count):
        sizes[i] *= shrink
        shares[i] *= shrink
    t = 0.0 if plain else budget(sizes, shares, count, k)
    for i in range(count):
        z = 1.0 if t <= 0.0 else max(shares[i], min(sizes[i] / t, 1.0))
        if sizes[i] > 0.0:
            spent += sizes[i] * sizes[i] / z
    value = constant + shrink * (0.5 * shrink * (energy + own) - linear) + 0.5 * spent
    return bound, value, least


@numba.njit(cache=True, error_model="numpy")
def solve_node(
    q: FloatArray,
    g: FloatArray,
    constant: float,
    d: FloatArray,
    low: FloatArray,
    high: FloatArray,
    start: FloatArray,
    t: float,
    status: npt.NDArray[np.int8],
    k: int,
    cutoff: float,
    tolerance: float,
    rounds: int,
) -> tuple[FloatArray, float, float, float, int]:
    """Solve a node's relaxation until it prunes, clearly cannot prune, or is exact.

    Returns the point with the best bound, ``t``, that bound, the least value, and the rounds.
    """
    r = g.size
    live = np.empty(r, np.int64)
    undecided = np.empty(r, np.int64)
    n_live, n_undecided = 0, 0
    w = np.zeros(r)
    for i in range(r):
        if status[i] == 1 or (status[i] == 0 and k > 0):
            live[n_live] = i
            n_live += 1
            w[i] = start[i]
            if status[i] == 0:
                undecided[n_undecided] = i
                n_undecided += 1
    live = live[:n_live]
    undecided = undecided[:n_undecided]
    plain = n_undecided <= k
    best_bound, value = -np.inf, np.inf
    best = w.copy()
    slopes, there, ahead, before = np.zeros(r), np.zeros(r), np.zeros(r), np.zeros(r)
    gains = np.empty(n_undecided)
    done = 0
    _slopes(q, g, w, live, slopes)
    bound, here, least = _measure(
        q, g, constant, d, low, high, w, slopes, status, live, undecided, gains, k, plain
    )
    while True:
        value = min(value, here)
        if bound > best_bound:
            best_bound = bound
            for j in live:
                best[j] = w[j]
        if done >= rounds or best_bound >= cutoff or value - best_bound <= tolerance:
            break
        if cutoff < np.inf and value < cutoff and value - best_bound <= 0.1 * (cutoff - best_bound):
            break
        done += 1
        if t <= 0.0 and not plain:
            t = np.sqrt(2.0 * least)
            if t <= 0.0:
                break
        for j in live:
            ahead[j] = w[j]
        aim = _newton(q, g, d, low, high, ahead, slopes, status, live, t, k, plain)
        moved = False
        if aim >= 0.0:
            # The value is convex in w, so that a shorter step helps where a full one does not.
            for j in live:
                before[j] = w[j]
                ahead[j] -= w[j]
            _slopes(q, np.zeros(r), ahead, live, there)
            length = 0.0
            step = 1.0
            for _ in range(5):
                for j in live:
                    w[j] += (step - length) * ahead[j]
                for i in range(r):
                    slopes[i] += (step - length) * there[i]
                length = step
                bound, following, least = _measure(
                    q,
                    g,
                    constant,
                    d,
                    low,
                    high,
                    w,
                    slopes,
                    status,
                    live,
                    undecided,
                    gains,
                    k,
                    plain,
                )
                if bound > best_bound:
                    best_bound = bound
                    for j in live:
                        best[j] = w[j]
                if following < here or (step == 1.0 and bound >= cutoff):
                    moved = True
                    break
                step *= 0.5
            if moved and plain:
                here = following
                continue
            if moved:
                t += step * (aim - t)
            else:
                # A step that helps nowhere may be far off, where the columns are dependent.
                for j in live:
                    w[j] = before[j]
                _slopes(q, g, w, live, slopes)
        sweeps = 1 if moved else 5
        for _ in range(sweeps):
            _sweep(q, d, low, high, w, slopes, status, live, t, plain)
        if not moved and not plain:
            used = 0.0
            for j in undecided:
                _, width = penalty(t, d[j], high[j] if w[j] > 0.0 else -low[j])
                used += min(abs(w[j]) / width, 1.0) if w[j] != 0.0 else 0.0
            t *= min(max(np.sqrt(used / k), 0.7), 1.5)
        _slopes(q, g, w, live, slopes)
        bound, here, least = _measure(
            q, g, constant, d, low, high, w, slopes, status, live, undecided, gains, k, plain
        )
    return best, t, best_bound, value, done


__all__ = ["solve_node"]
