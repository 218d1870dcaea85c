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

from sparsemodel import loading
from sparsemodel.certificates.proving.compiling import NODES, interruptible, warmed
from sparsemodel.certificates.proving.gram.kernels.enumeration_compiled import best_gain
from sparsemodel.certificates.proving.gram.kernels.newton_compiled import newton_step
from sparsemodel.certificates.proving.gram.kernels.node_problem import (
    COORDINATE,
    Limits,
    NodeProblem,
    PackedNode,
    Point,
)
from sparsemodel.certificates.proving.gram.kernels.penalty_compiled import (
    budget,
    clipped,
    gain,
    own,
    penalty,
)
from sparsemodel.certificates.proving.gram.kernels.top_compiled import filled, top
from sparsemodel.interfaces import FloatArray

numba = loading.numba()


@numba.njit(cache=True, error_model="numpy")
def _slopes(node, at):  # type: ignore[no-untyped-def]
    """Compute the slopes of a point again, so that rounding errors do not add up."""
    q, w, slopes = node.q, at.w, at.slopes
    r = w.size
    for i in range(r):
        slopes[i] = -node.coordinates[i].g
    _add_products(q, w, node.live, slopes)


@numba.njit(cache=True, error_model="numpy")
def _add_products(q, w, live, slopes):  # type: ignore[no-untyped-def]
    r = w.size
    for j in live:
        x = w[j]
        if x != 0.0:
            for i in range(r):
                slopes[i] += x * q[j, i]


@numba.njit(cache=True, error_model="numpy")
def _sweep(node, at, t):  # type: ignore[no-untyped-def]
    """Minimise over one coordinate after the other at this ``t``."""
    q, w, slopes = node.q, at.w, at.slopes
    r = w.size
    for j in node.live:
        a, c = q[j, j], node.coordinates[j]
        b = a * w[j] - slopes[j]
        new = 0.0
        if node.free or c.inside:
            new = clipped(b, a + c.d, c.low, c.high)
        else:
            size = abs(b)
            limit = c.high if b > 0.0 else -c.low
            slope, width = penalty(own(t, c.cost, c.price), c.d, limit)
            if size > slope:
                new = (size - slope) / a if a > 0.0 else np.inf
                if new > width:
                    new = limit if width >= limit else min(max(size / (a + c.d), width), limit)
                if b < 0.0:
                    new = -new
        change = new - w[j]
        if change != 0.0:
            w[j] = new
            for i in range(r):
                slopes[i] += change * q[j, i]


@numba.njit(cache=True, error_model="numpy")
def _measure(node, at, gains):  # type: ignore[no-untyped-def]
    """Return the bound and the value at a point, and the profit per cost at which ``k`` ends.

    ``gains`` is room for a number for each undecided coordinate.
    """
    k, floor, undecided, w, slopes = node.k, node.floor, node.undecided, at.w, at.slopes
    energy, linear, inside, ridge, weight = 0.0, 0.0, 0.0, 0.0, 0.0
    least_price, alike = 0.5 * floor * floor, True
    for j in node.live:
        c = node.coordinates[j]
        energy += w[j] * (slopes[j] + c.g)
        linear += w[j] * c.g
        weight += abs(w[j]) * np.sqrt(node.q[j, j])
        if c.inside:
            inside += gain(slopes[j], c.d, c.low, c.high)
            ridge += c.d * w[j] * w[j]
    for i in range(undecided.size):
        j = undecided[i]
        c = node.coordinates[j]
        alike = alike and c.cost == 1.0
        gains[i] = max(gain(slopes[j], c.d, c.low, c.high) - c.price - least_price, 0.0)
    if alike:
        most, least = top(gains, min(int(k), undecided.size))
    else:
        costs = np.empty(undecided.size)
        for i in range(undecided.size):
            costs[i] = node.coordinates[undecided[i]].cost
        most, least = filled(gains, costs, k)
    # Large points that cancel prove nothing, whatever rounding makes of them.
    bound = node.constant - 0.5 * energy - inside - most - 2e-16 * weight * weight
    count, spent, shared = 0, 0.0, 0.0
    sizes, shares = np.empty(undecided.size), np.empty(undecided.size)
    taken, extra = np.empty(undecided.size), np.empty(undecided.size)
    for j in undecided:
        if w[j] != 0.0:
            c = node.coordinates[j]
            sizes[count] = np.sqrt(c.d) * abs(w[j])
            shares[count] = w[j] / c.high if w[j] > 0.0 else w[j] / c.low
            taken[count], extra[count] = c.cost, c.price
            shared += c.cost * shares[count]
            count += 1
    # A point beyond the budget, whatever the multiplier, is as good as it is after shrinking.
    shrink = 1.0 if node.plain or not shared > k else k / shared
    for i in range(count):
        sizes[i] *= shrink
        shares[i] *= shrink
    t = floor if node.plain else budget(sizes, shares, taken, extra, count, k, floor)
    for i in range(count):
        each = own(t, taken[i], extra[i])
        z = 1.0 if each <= 0.0 else max(shares[i], min(sizes[i] / each, 1.0))
        if sizes[i] > 0.0:
            spent += 0.5 * sizes[i] * sizes[i] / z
        spent += (extra[i] + least_price) * z
    value = node.constant + shrink * (0.5 * shrink * (energy + ridge) - linear) + spent
    return bound, value, least


@numba.njit(cache=True, error_model="numpy")
def _begun(problem, start):  # type: ignore[no-untyped-def]
    """Return the problem as it is passed on, and the point to start from."""
    status, k = problem.status, problem.k
    r = status.size
    coordinates = np.empty(r, COORDINATE)
    live, undecided = np.empty(r, np.int64), np.empty(r, np.int64)
    n_live, n_undecided = 0, 0
    w, priced = np.zeros(r), problem.floor != 0.0
    for i in range(r):
        c = coordinates[i]
        c.g, c.d, c.inside = problem.g[i], problem.d[i], status[i] == 1
        c.low, c.high = problem.low[i], problem.high[i]
        c.cost, c.price = problem.costs[i], problem.prices[i]
        priced = priced or c.price > 0.0
        if status[i] == 1 or (status[i] == 0 and k > 0):
            live[n_live] = i
            n_live += 1
            w[i] = start[i]
            if status[i] == 0:
                undecided[n_undecided] = i
                n_undecided += 1
    live, undecided = live[:n_live], undecided[:n_undecided]
    plain = np.sum(problem.costs[undecided]) <= k
    node = PackedNode(
        problem.q, problem.constant, coordinates, live, undecided, k, problem.floor, plain,
        plain and not priced,
    )  # fmt: skip
    at = Point(w, np.empty(r))
    _slopes(node, at)
    return node, at


@numba.njit(cache=True, error_model="numpy")
def _stepped(node, at, gains, ahead, here, cutoff, best, best_bound):  # type: ignore[no-untyped-def]
    """Go towards ``ahead`` until the value falls; 0 where it does not, and nothing moved.

    Returns the step, the best bound so far, the value and the least profit per cost. The value is
    convex in w, so that a shorter step helps where a full one does not.
    """
    live, w, slopes = node.live, at.w, at.slopes
    r = w.size
    before, there = w.copy(), np.zeros(r)
    for j in live:
        ahead[j] -= w[j]
    _add_products(node.q, ahead, live, there)
    length, step, least = 0.0, 1.0, 0.0
    for _ in range(5):
        for j in live:
            w[j] += (step - length) * ahead[j]
        for i in range(r):
            slopes[i] += (step - length) * there[i]
        length = step
        bound, following, least = _measure(node, at, gains)
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
    _slopes(node, at)
    return 0.0, best_bound, here, least


@numba.njit(cache=True, error_model="numpy")
def _share(node, w, t):  # type: ignore[no-untyped-def]
    """Return a factor for ``t`` that brings the budget that is used nearer to ``k``."""
    used = 0.0
    for j in node.undecided:
        if w[j] != 0.0:
            c = node.coordinates[j]
            _, width = penalty(own(t, c.cost, c.price), c.d, c.high if w[j] > 0.0 else -c.low)
            used += c.cost * min(abs(w[j]) / width, 1.0)
    return min(max(np.sqrt(used / node.k), 0.7), 1.5)


@interruptible
@numba.njit(cache=True, error_model="numpy")
def solve_node(
    problem: NodeProblem, start: FloatArray, t: float, limits: Limits
) -> tuple[FloatArray, float, float, float, int]:
    """Solve a node's relaxation until it prunes, clearly cannot prune, or is exact.

    From the point ``start`` and the multiplier ``t``. Returns the point with the best bound, ``t``,
    that bound, the least value, and the rounds.
    """
    node, at = _begun(problem, start)
    cutoff, floor, plain, live, w = limits.cutoff, node.floor, node.plain, node.live, at.w
    t = floor if plain else max(t, floor)
    best_bound, value = -np.inf, np.inf
    best, ahead, gains = w.copy(), np.zeros(w.size), np.empty(node.undecided.size)
    done = 0
    bound, here, least = _measure(node, at, gains)
    while True:
        value = min(value, here)
        if bound > best_bound:
            best_bound = bound
            for j in live:
                best[j] = w[j]
        if done >= limits.rounds or best_bound >= cutoff or value - best_bound <= limits.tolerance:
            break
        if cutoff < np.inf and value < cutoff and value - best_bound <= 0.1 * (cutoff - best_bound):
            break
        done += 1
        if t <= floor and not plain:
            t = np.sqrt(2.0 * least + floor * floor)
            if t <= 0.0:
                break
        aim = newton_step(node, at, t, ahead)
        step = 0.0
        if aim >= 0.0:
            step, best_bound, here, least = _stepped(
                node, at, gains, ahead, here, cutoff, best, best_bound
            )
            if step > 0.0 and plain:
                continue
            t += step * (aim - t)
        for _ in range(1 if step > 0.0 else 5):
            _sweep(node, at, t)
        if step == 0.0 and not plain:
            t = max(floor, t * _share(node, w, t))
        _slopes(node, at)
        bound, here, least = _measure(node, at, gains)
    return best, t, best_bound, value, done


def _all() -> None:
    """Call all that a proof compiles once, with the types of a search."""
    one, status = np.ones(1), np.zeros(1, dtype=np.int8)
    node = NodeProblem(np.eye(1), one, 1.0, one, -one, one, status, 1.0, one, one, 0.0)
    solve_node(node, one, 0.0, Limits(1.0, 1.0, 1))
    best_gain(np.eye(1), 0, one, one, 1, 0, 1, np.full(3, -1, dtype=np.int64), 0.0)


def compiling() -> float:
    """Compile all where that is not done yet; return the seconds that this took."""
    return warmed(NODES, _all)
