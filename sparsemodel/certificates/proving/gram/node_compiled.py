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
``w`` and nearly so in ``t``. Where a coordinate also has a price :math:`\pi_j z_j`, its ``t`` is
:math:`\sqrt{c_j t^2 + 2 \pi_j}`, with what it takes of the budget, :math:`\sum c_j z_j \le k`, for
``c``; a price that all have is in ``t`` itself, which does not go below it.

Plain loops on purpose: they compile in a quarter of the time that array expressions take. Division
by zero gives what it gives in NumPy: a point that proves nothing, not an exception.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemodel import loading
from sparsemodel.certificates.proving.compiling import NODES, interruptible, warmed
from sparsemodel.certificates.proving.gram.enumeration_compiled import best_gain
from sparsemodel.certificates.proving.gram.newton_compiled import newton_step
from sparsemodel.certificates.proving.gram.penalty_compiled import (
    budget,
    clipped,
    gain,
    own,
    penalty,
)
from sparsemodel.certificates.proving.gram.top_compiled import filled, top
from sparsemodel.interfaces import FloatArray

numba = loading.numba()


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
def _sweep(q, d, low, high, w, slopes, status, live, t, costs, prices, plain):  # type: ignore[no-untyped-def]
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
            slope, width = penalty(own(t, costs[j], prices[j]), d[j], limit)
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
def _measure(  # type: ignore[no-untyped-def]
    q, g, constant, d, low, high, w, slopes, status, live, undecided, gains, k, costs, prices,
    floor, plain,
):  # fmt: skip
    """Return the bound and the value at ``w``, and the profit per cost at which ``k`` ends."""
    energy, linear, inside, ridge, weight = 0.0, 0.0, 0.0, 0.0, 0.0
    least_price, alike = 0.5 * floor * floor, True
    for j in live:
        energy += w[j] * (slopes[j] + g[j])
        linear += w[j] * g[j]
        weight += abs(w[j]) * np.sqrt(q[j, j])
        if status[j] == 1:
            inside += gain(slopes[j], d[j], low[j], high[j])
            ridge += d[j] * w[j] * w[j]
    for i in range(undecided.size):
        j = undecided[i]
        alike = alike and costs[j] == 1.0
        profit = gain(slopes[j], d[j], low[j], high[j]) - prices[j] - least_price
        gains[i] = max(profit, 0.0)
    if alike:
        most, least = top(gains, min(int(k), undecided.size))
    else:
        most, least = filled(gains, costs[undecided], k)
    # Large points that cancel prove nothing, whatever rounding makes of them.
    bound = constant - 0.5 * energy - inside - most - 2e-16 * weight * weight
    count, spent, shared = 0, 0.0, 0.0
    sizes, shares = np.empty(undecided.size), np.empty(undecided.size)
    taken, extra = np.empty(undecided.size), np.empty(undecided.size)
    for j in undecided:
        if w[j] != 0.0:
            sizes[count] = np.sqrt(d[j]) * abs(w[j])
            shares[count] = w[j] / high[j] if w[j] > 0.0 else w[j] / low[j]
            taken[count], extra[count] = costs[j], prices[j]
            shared += costs[j] * shares[count]
            count += 1
    # A point beyond the budget, whatever the multiplier, is as good as it is after shrinking.
    shrink = 1.0 if plain or not shared > k else k / shared
    for i in range(count):
        sizes[i] *= shrink
        shares[i] *= shrink
    t = floor if plain else budget(sizes, shares, taken, extra, count, k, floor)
    for i in range(count):
        each = own(t, taken[i], extra[i])
        z = 1.0 if each <= 0.0 else max(shares[i], min(sizes[i] / each, 1.0))
        if sizes[i] > 0.0:
            spent += 0.5 * sizes[i] * sizes[i] / z
        spent += (extra[i] + least_price) * z
    value = constant + shrink * (0.5 * shrink * (energy + ridge) - linear) + spent
    return bound, value, least


@numba.njit(cache=True, error_model="numpy")
def _begun(status, start, k):  # type: ignore[no-untyped-def]
    """Return the coordinates that may be nonzero, those of them to be decided, and the start."""
    r = status.size
    live, undecided = np.empty(r, np.int64), np.empty(r, np.int64)
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
    return live[:n_live], undecided[:n_undecided], w


@numba.njit(cache=True, error_model="numpy")
def _stepped(  # type: ignore[no-untyped-def]
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
    costs,
    prices,
    floor,
    plain,
    ahead,
    here,
    cutoff,
    best,
    best_bound,
):
    """Go towards ``ahead`` until the value falls; 0 where it does not, and nothing moved.

    Returns the step, the best bound so far, the value and the least profit per cost. The value is
    convex in w, so that a shorter step helps where a full one does not.
    """
    r = g.size
    before, there = w.copy(), np.zeros(r)
    for j in live:
        ahead[j] -= w[j]
    _slopes(q, np.zeros(r), ahead, live, there)
    length, step, least = 0.0, 1.0, 0.0
    for _ in range(5):
        for j in live:
            w[j] += (step - length) * ahead[j]
        for i in range(r):
            slopes[i] += (step - length) * there[i]
        length = step
        bound, following, least = _measure(
            q, g, constant, d, low, high, w, slopes, status, live, undecided, gains, k,
            costs, prices, floor, plain,
        )  # fmt: skip
        if bound > best_bound:
            best_bound = bound
            for j in live:
                best[j] = w[j]
        if following < here or (step == 1.0 and bound >= cutoff):
            return step, best_bound, following, least
        step *= 0.5
    # A step that helps nowhere may be far off, where the columns are dependent.
    for j in live:
        w[j] = before[j]
    _slopes(q, g, w, live, slopes)
    return 0.0, best_bound, here, least


@numba.njit(cache=True, error_model="numpy")
def _share(d, low, high, w, undecided, t, costs, prices, k):  # type: ignore[no-untyped-def]
    """Return a factor for ``t`` that brings the budget that is used nearer to ``k``."""
    used = 0.0
    for j in undecided:
        _, width = penalty(own(t, costs[j], prices[j]), d[j], high[j] if w[j] > 0.0 else -low[j])
        used += costs[j] * min(abs(w[j]) / width, 1.0) if w[j] != 0.0 else 0.0
    return min(max(np.sqrt(used / k), 0.7), 1.5)


@interruptible
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
    k: float,
    costs: FloatArray,
    prices: FloatArray,
    floor: float,
    cutoff: float,
    tolerance: float,
    rounds: int,
) -> tuple[FloatArray, float, float, float, int]:
    """Solve a node's relaxation until it prunes, clearly cannot prune, or is exact.

    Every undecided coordinate takes its own of ``costs`` from ``k``, and has the price
    ``floor ** 2 / 2`` and its own of ``prices``; those that are in have paid. Returns the point
    with the best bound, ``t``, that bound, the least value, and the rounds.
    """
    live, undecided, w = _begun(status, start, k)
    plain = np.sum(costs[undecided]) <= k
    t = floor if plain else max(t, floor)
    free = plain and floor == 0.0 and not np.any(prices > 0.0)
    best_bound, value = -np.inf, np.inf
    best, ahead, slopes = w.copy(), np.zeros(g.size), np.zeros(g.size)
    gains = np.empty(undecided.size)
    done = 0
    _slopes(q, g, w, live, slopes)
    bound, here, least = _measure(
        q, g, constant, d, low, high, w, slopes, status, live, undecided, gains, k,
        costs, prices, floor, plain,
    )  # fmt: skip
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
        if t <= floor and not plain:
            t = np.sqrt(2.0 * least + floor * floor)
            if t <= 0.0:
                break
        for j in live:
            ahead[j] = w[j]
        aim = newton_step(
            q, g, d, low, high, ahead, slopes, status, live, t, k, costs, prices, floor, plain, free
        )
        step = 0.0
        if aim >= 0.0:
            step, best_bound, here, least = _stepped(
                q, g, constant, d, low, high, w, slopes, status, live, undecided, gains, k,
                costs, prices, floor, plain, ahead, here, cutoff, best, best_bound,
            )  # fmt: skip
            if step > 0.0 and plain:
                continue
            t += step * (aim - t)
        for _ in range(1 if step > 0.0 else 5):
            _sweep(q, d, low, high, w, slopes, status, live, t, costs, prices, free)
        if step == 0.0 and not plain:
            t = max(floor, t * _share(d, low, high, w, undecided, t, costs, prices, k))
        _slopes(q, g, w, live, slopes)
        bound, here, least = _measure(
            q, g, constant, d, low, high, w, slopes, status, live, undecided, gains, k,
            costs, prices, floor, plain,
        )  # fmt: skip
    return best, t, best_bound, value, done


def _all() -> None:
    """Call all that a proof compiles once, with the types of a search."""
    one, status = np.ones(1), np.zeros(1, dtype=np.int8)
    solve_node(
        np.eye(1), one, 1.0, one, -one, one, one, 0.0, status, 1.0, one, one, 0.0, 1.0, 1.0, 1
    )
    best_gain(np.eye(1), 0, one, one, 1, 0, 1, np.full(3, -1, dtype=np.int64), 0.0)


def compiling() -> float:
    """Compile all where that is not done yet; return the seconds that this took."""
    return warmed(NODES, _all)
