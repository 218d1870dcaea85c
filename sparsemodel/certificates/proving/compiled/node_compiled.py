r"""The relaxation of one node, compiled: coordinate descent and Newton steps on active sets.

Scaled so that every ridge is one, a node asks for

.. math:: \min_w \tfrac12 w^T Q w - g^T w + \tfrac12 \sum_{j\ \mathrm{in}} w_j^2
          + \min_{0 \le z \le 1,\, \sum z \le k} \tfrac12 \sum_j w_j^2 / z_j .

With the multiplier :math:`t^2 / 2` of the budget an undecided coordinate pays the reversed Huber
penalty: :math:`t |w|` up to ``t``, :math:`(w^2 + t^2) / 2` beyond. Given which coordinates are
zero, fractional (:math:`|w| < t`) and full, the optimality conditions are linear in ``(w, t)``.

Plain loops on purpose: they compile in a quarter of the time that array expressions take. Division
by zero gives what it gives in NumPy: a point that proves nothing, not an exception.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemodel.certificates.proving.numba_compiled import numba
from sparsemodel.interfaces import FloatArray


@numba.njit(cache=True, error_model="numpy")
def _top(values, k):  # type: ignore[no-untyped-def]
    """Return the sum of the ``k`` largest values and the least of them; reorders ``values``."""
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    total, least = 0.0, np.inf
    for i in range(min(k, values.size)):
        total += values[i]
        least = min(least, values[i])
    return total, least


@numba.njit(cache=True, error_model="numpy")
def _budget(w, undecided, k):  # type: ignore[no-untyped-def]
    """Return ``t`` with ``sum min(|w| / t, 1) = k``; 0 when there are at most ``k`` nonzeros."""
    nonzero, total = 0, 0.0
    for j in undecided:
        if w[j] != 0.0:
            nonzero += 1
            total += abs(w[j])
    if nonzero <= k:
        return 0.0
    t = total / k
    for _ in range(nonzero):
        full, rest = 0, 0.0
        for j in undecided:
            if abs(w[j]) > t:
                full += 1
            else:
                rest += abs(w[j])
        if full >= k:
            break
        following = rest / (k - full)
        if following >= t:
            break
        t = following
    return t


@numba.njit(cache=True, error_model="numpy")
def _cholesky(matrix):  # type: ignore[no-untyped-def]
    """Return the lower factor; empty where the matrix is not positive definite."""
    try:
        return np.linalg.cholesky(matrix)
    except Exception:  # noqa: BLE001 - the only kind that compiled code can catch
        return np.empty((0, 0))


@numba.njit(cache=True, error_model="numpy")
def _substitute(lower, right):  # type: ignore[no-untyped-def]
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
def _newton(q, g, w, slopes, status, live, t, k, plain):  # type: ignore[no-untyped-def]
    """Solve the optimality conditions on the sets that ``(w, t)`` points at; ``t`` or -1."""
    index = np.empty(live.size, np.int64)
    kind = np.empty(live.size, np.int64)
    size, full, fractional = 0, 0, 0
    for j in live:
        b = abs(q[j, j] * w[j] - slopes[j])
        if plain or status[j] == 1:
            kind[size] = 2
        elif b > t * (1.0 + q[j, j]):
            kind[size] = 1
            full += 1
        elif b > t:
            kind[size] = 0
            fractional += 1
        else:
            continue
        index[size] = j
        size += 1
    if size == 0 or size > 1500:
        return -1.0
    own = not plain and fractional > 0 and full < k
    matrix = np.empty((size, size))
    right, signs = np.zeros(size), np.zeros(size)
    for a in range(size):
        j = index[a]
        right[a] = g[j]
        for b in range(size):
            matrix[a, b] = q[j, index[b]]
        if kind[a] >= 1:
            matrix[a, a] += 1.0
        else:
            # Fractional columns may be dependent; Newton's method forgives a little curvature.
            matrix[a, a] += 1e-12 * (1.0 + matrix[a, a])
            signs[a] = 1.0 if q[j, j] * w[j] > slopes[j] else -1.0
    lower = _cholesky(matrix)
    if lower.shape[0] < size:
        return -1.0
    ahead = t
    if own:
        # The multiplier is part of the system: its row is the budget, sum |w| = (k - full) t.
        along = signs.copy()
        _substitute(lower, along)
        _substitute(lower, right)
        above, below = 0.0, float(k - full)
        for a in range(size):
            above += signs[a] * right[a]
            below += signs[a] * along[a]
        if not below > 0.0:
            return -1.0
        ahead = above / below
        for a in range(size):
            right[a] -= ahead * along[a]
    else:
        for a in range(size):
            right[a] -= signs[a] * t
        _substitute(lower, right)
    for a in range(size):
        if not np.isfinite(right[a]):
            return -1.0
    if not plain and not ahead > 0.0:
        return -1.0
    for j in live:
        w[j] = 0.0
    for a in range(size):
        w[index[a]] = right[a]
    return min(max(ahead, 0.2 * t), 5.0 * t)


@numba.njit(cache=True, error_model="numpy")
def _sweep(q, w, slopes, status, live, t, plain):  # type: ignore[no-untyped-def]
    """Minimise over one coordinate after the other at this ``t``."""
    r = w.size
    for j in live:
        a = q[j, j]
        b = a * w[j] - slopes[j]
        size = abs(b)
        new = 0.0
        if plain or status[j] == 1 or size > t * (1.0 + a):
            new = b / (1.0 + a)
        elif size > t and a > 0.0:
            new = (size - t) / a
            if b < 0.0:
                new = -new
        change = new - w[j]
        if change != 0.0:
            w[j] = new
            for i in range(r):
                slopes[i] += change * q[j, i]


@numba.njit(cache=True, error_model="numpy")
def _measure(g, constant, w, slopes, status, live, undecided, squares, k, plain):  # type: ignore[no-untyped-def]
    """Return the bound and the value at ``w``, and the k-th largest squared slope."""
    energy, linear, inside, own, spent = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in live:
        energy += w[j] * (slopes[j] + g[j])
        linear += w[j] * g[j]
        if status[j] == 1:
            inside += slopes[j] * slopes[j]
            own += w[j] * w[j]
    for i in range(undecided.size):
        squares[i] = slopes[undecided[i]] ** 2
    top, least = _top(squares, min(k, undecided.size))
    tau = 0.0 if plain else _budget(w, undecided, k)
    for j in undecided:
        spent += abs(w[j]) * max(abs(w[j]), tau)
    bound = constant - 0.5 * (energy + inside + top)
    return bound, constant + 0.5 * (energy + own + spent) - linear, least


@numba.njit(cache=True, error_model="numpy")
def solve_node(
    q: FloatArray,
    g: FloatArray,
    constant: float,
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
    slopes, there, ahead = np.zeros(r), np.zeros(r), np.zeros(r)
    squares = np.empty(n_undecided)
    done = 0
    _slopes(q, g, w, live, slopes)
    bound, here, least = _measure(
        g, constant, w, slopes, status, live, undecided, squares, k, plain
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
            t = np.sqrt(least)
            if t <= 0.0:
                break
        for j in live:
            ahead[j] = w[j]
        aim = _newton(q, g, ahead, slopes, status, live, t, k, plain)
        moved = False
        if aim >= 0.0:
            # The value is convex in w, so that a shorter step helps where a full one does not.
            for j in live:
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
                    g, constant, w, slopes, status, live, undecided, squares, k, plain
                )
                if bound > best_bound:
                    best_bound = bound
                    for j in live:
                        best[j] = w[j]
                if following < here or (step == 1.0 and bound >= cutoff):
                    moved = True
                    break
                step *= 0.5
            t += step * (aim - t)
            if plain:
                here = following
                continue
        sweeps = 1 if moved else 5
        for _ in range(sweeps):
            _sweep(q, w, slopes, status, live, t, plain)
        if not moved and not plain:
            used = 0.0
            for j in undecided:
                used += min(abs(w[j]) / t, 1.0)
            t *= min(max(np.sqrt(used / k), 0.7), 1.5)
        _slopes(q, g, w, live, slopes)
        bound, here, least = _measure(
            g, constant, w, slopes, status, live, undecided, squares, k, plain
        )
    return best, t, best_bound, value, done


__all__ = ["solve_node"]
