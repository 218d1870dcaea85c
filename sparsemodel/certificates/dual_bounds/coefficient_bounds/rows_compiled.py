r"""What a coefficient can be, given bounds on the others: row by row, rounded up; compiled.

The supports of row ``j`` are divided: those with a neighbour ``i``, those without it, and again. A
part has some neighbours ``T`` in and some ``E`` out. With ``I = {j} + T`` and any numbers ``r`` the
stationary equations of a support in it add up to

.. math:: (r^T H_{I j}) w_j + \sum_{i \in T} (r^T H_{I i}) w_i + \sum_{i \in R} (r^T G_{I i}) w_i
          = r^T c_I

with at most ``k - 1 - |T|`` coordinates in ``R``, none of them in ``E``. With ``r`` near
:math:`e_j^T H_{II}^{-1}` the first factor is near one and the next ones near zero. Nothing need be
assumed about ``r``: every product is taken with a bound on its error, which covers the errors of
``G`` and ``c`` as well.

For all points at a level, not minimisers alone, the equations have :math:`c + g` in the place of
``c``, with the gradient ``g``. A step along ``I`` lowers the objective by :math:`\frac12 g_I^T
H_{II}^{-1} g_I`, which is no more than half the ``room`` above the infimum, so that :math:`|r^T
g_I| \le \sqrt{\mathrm{room} \cdot r^T H_{II} r}`.

A part is divided, by the neighbour that can add most, only where its value is above what is known
to be needed for the row anyway.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemodel import loading
from sparsemodel.certificates.dual_bounds.coefficient_bounds.largest_compiled import (
    SPARE,
    dropped,
    fill,
    heads_of_rows,
    raised,
)
from sparsemodel.certificates.proving.compiling import BOUNDS, interruptible, warmed
from sparsemodel.interfaces import FloatArray, IntArray

numba = loading.numba()

_U = 2.0**-53


@numba.njit(cache=True)
def _inverse_row(gram, ridge, index, size, lower, r):  # type: ignore[no-untyped-def]
    """Fill ``r`` with the first row of the inverse on ``index``; False where it is singular."""
    for a in range(size):
        for b in range(a + 1):
            total = gram[index[a], index[b]]
            if a == b:
                total += ridge[index[a]]
            for t in range(b):
                total -= lower[a, t] * lower[b, t]
            if a == b:
                if not total > 1e-12:
                    return False
                lower[a, a] = np.sqrt(total)
            else:
                lower[a, b] = total / lower[b, b]
    for a in range(size):
        total = 1.0 if a == 0 else 0.0
        for b in range(a):
            total -= lower[a, b] * r[b]
        r[a] = total / lower[a, a]
    for a in range(size - 1, -1, -1):
        total = r[a]
        for b in range(a + 1, size):
            total -= lower[b, a] * r[b]
        r[a] = total / lower[a, a]
    return True


@numba.njit(cache=True)
def _on_subset(gram, linear, ridge, sizes, unit, index, size, r, m):  # type: ignore[no-untyped-def]
    """Return the right-hand side, weight and error of products, the own and the others' factor.

    And ``r' H r`` on the subset, rounded up.
    """
    slope, weight, energy = 0.0, 0.0, 0.0
    for a in range(size):
        slope += r[a] * linear[index[a]]
        weight += abs(r[a]) * sizes[index[a]]
    error = 1.01 * (unit + 4.0 * (size + 8) * _U) * weight
    own, rest = 0.0, 0.0
    for b in range(size):
        i = index[b]
        total = 0.0
        for a in range(size):
            total += r[a] * gram[index[a], i]
        total += r[b] * ridge[i]
        energy += abs(r[b]) * (abs(total) + error * sizes[i])
        if b == 0:
            own = total - error * sizes[i]
        else:
            rest += (abs(total) + error * sizes[i]) * m[i]
    return slope, weight, error, own, rest, energy


@numba.njit(cache=True)
def _remember(k, j, depth, index, best, where, constant, own, m, cases):  # type: ignore[no-untyped-def]
    """Write down the part of a row: its coordinates, and those outside with their factors."""
    shares, others, factors, inside = cases
    shares[j] = constant[depth] / own[depth]
    for t in range(k - 1):
        others[j, t], factors[j, t] = -1, 0.0
        if t < k - 1 - depth and where[depth, t] >= 0:
            others[j, t] = where[depth, t]
            reach = own[depth] * m[where[depth, t]]
            if reach > 0.0:  # a coefficient may be fixed at zero
                factors[j, t] = best[depth, t] / reach
        inside[j, t] = index[t + 1] if t < depth else -1


@numba.njit(cache=True)
def _value(k, depth, best, constant, own):  # type: ignore[no-untyped-def]
    """Return the bound of the part that is looked at, rounded up."""
    total, size = 0.0, depth + 1
    for t in range(k - size):
        total += best[depth, t]
    return (constant[depth] + total) / own[depth] * (1.0 + 8.0 * (k + size + 16) * _U)


@numba.njit(cache=True)
def _look(data, heads, m, k, index, depth, gone, many, seeds, work, best, where, constant, own):  # type: ignore[no-untyped-def]
    """Evaluate a part with ``depth`` neighbours in and ``many`` out; False where it has no value.

    ``constant`` and ``own`` become what does not depend on the others, and the factor of the
    coefficient itself; ``best`` and ``where`` what the others can add, largest first. ``seeds`` are
    coordinates that may be among these.
    """
    gram, linear, ridge, sizes, unit, reach, room, floor, _ = data
    lower, r, known, outside = work
    size = depth + 1
    if not _inverse_row(gram, ridge, index, size, lower, r):
        return False
    slope, weight, error, factor, rest, energy = _on_subset(
        gram, linear, ridge, sizes, unit, index, size, r, m
    )
    if not factor > 0.5:
        return False
    own[depth] = factor
    constant[depth] = abs(slope) + error * reach + floor + rest
    constant[depth] += np.sqrt(room * energy) * (1.0 + 4.0 * (size + 8) * _U)
    if size < k:
        top, places = best[depth], where[depth]
        bounds, errors = (m, known), (error, weight)
        fill(
            data, heads, bounds, index, size, k, r, errors, gone, many, seeds, outside, top, places
        )
    return True


@numba.njit(cache=True)
def _likely(data, heads, m, k, j, near, nearby, low, lists, cases):  # type: ignore[no-untyped-def]
    """Return the largest bound of likely parts of a row, or ``low`` where that is more, and looks.

    These have the neighbours in that the worst part had, or none, and all others out. What is no
    larger need not be divided.
    """
    work, best, where, constant, own, index, gone, _ = lists
    looks = 0
    for known in range(k - 1, -1, -(k - 1)) if k > 1 else range(0):
        size, many = 1, 0
        for t in range(known):
            if cases[3][j, t] >= 0 and near[cases[3][j, t]]:
                index[size] = cases[3][j, t]
                size += 1
        if known and size == 1:
            continue
        for i in nearby:
            if not np.any(index[1:size] == i):
                gone[many] = i
                many += 1
        looks += 1
        if _look(
            data, heads, m, k, index, size - 1, gone, many, cases[1][j], work, best, where,
            constant, own,
        ):  # fmt: skip
            value = _value(k, size - 1, best, constant, own)
            if value > low:
                low = value
                _remember(k, j, size - 1, index, best, where, constant, own, m, cases)
    return low, looks


@numba.njit(cache=True)
def _row(data, heads, m, k, j, near, nearby, low, enough, most, lists, cases):  # type: ignore[no-untyped-def]
    """Return the bound of one row and how many parts were looked at."""
    work, best, where, constant, own, index, gone, began = lists
    highest, looks, many = low, 0, 0
    index[0], began[0], depth, fresh = j, 0, 0, True
    if nearby.size:
        highest, looks = _likely(data, heads, m, k, j, near, nearby, low, lists, cases)
    if most == 0 or highest > enough:
        return highest, looks
    while depth >= 0:
        size = depth + 1
        seeds = where[depth - 1] if depth else cases[1][j]
        if fresh:
            looks += 1
            fresh = False
            if looks > most or not _look(
                data, heads, m, k, index, depth, gone, many, seeds, work, best, where, constant, own
            ):
                return np.inf, looks
        value = _value(k, depth, best, constant, own)
        split = -1
        if value > highest:
            for t in range(k - size):
                if split < 0 and where[depth, t] >= 0 and near[where[depth, t]]:
                    split = where[depth, t]
            if split < 0:
                highest = value
                _remember(k, j, depth, index, best, where, constant, own, m, cases)
                if highest > enough:
                    return highest, looks
        if split >= 0:
            index[size], depth, fresh = split, size, True
            began[depth] = many
            continue
        # The part is done. What was in to make it is out in the rest of the part before.
        many = began[depth]
        depth -= 1
        if depth >= 0:
            gone[many] = index[depth + 1]
            many += 1
            dropped(index[depth + 1], best[depth], where[depth])
            if where[depth, k - depth - 2] < 0:
                seeds = where[depth - 1] if depth else cases[1][j]
                _look(
                    data, heads, m, k, index, depth, gone, many, seeds, work, best, where, constant,
                    own,
                )  # fmt: skip
    return highest, looks


@interruptible
@numba.njit(cache=True)
def rows(
    gram: npt.NDArray[np.float32],
    linear: FloatArray,
    ridge: FloatArray,
    sizes: FloatArray,
    unit: float,
    reach: float,
    room: float,
    floor: float,
    k: int,
    m: FloatArray,
    first: int,
    last: int,
    starts: IntArray,
    neighbours: IntArray,
    low: FloatArray,
    enough: FloatArray,
    most: int,
    heads: tuple[IntArray, FloatArray, IntArray, FloatArray, float],
    out: FloatArray,
    cases: tuple[FloatArray, IntArray, FloatArray, IntArray],
) -> int:
    r"""Fill ``out`` with bounds on the coefficients of rows ``first`` to ``last``, given ``m``.

    Returns how many parts were looked at.

    Parameters
    ----------
    room
        Twice by how much points may be above the infimum; 0 for minimisers.
    floor
        Added to every right-hand side, so that no bound is zero.
    starts, neighbours
        The supports of row ``j`` are divided by ``neighbours[starts[j]:starts[j + 1]]``.
    low
        Parts whose value is no larger need not be divided, and ``out`` is not below it. A row whose
        is infinite is left out.
    enough
        A row is given up once its value is beyond this.
    most
        Parts that a row may have; beyond them its bound is infinite. With 0 only the last worst
        part is looked at, and ``out`` bounds nothing.
    heads
        The largest entries of every row, from `heads_of_rows`; none of them where these are empty.
    cases
        Shares, others, factors, inside: the largest value is ``shares[j] + sum(factors[j] *
        m[others[j]])``, but for roundings, of a part with ``inside[j]`` in; unchanged where no part
        is above ``low``.
    """
    p = m.size
    data = (gram, linear, ridge, sizes, unit, reach, room, floor, np.max(sizes))
    sums = (np.zeros(p), np.zeros(p), np.empty(p, np.int64))
    outside = (np.empty(p, np.float32), np.zeros(p, np.bool_), sums)
    work = (np.empty((k, k)), np.empty(k), raised(m), outside)
    best, where = np.zeros((k, k + SPARE)), np.full((k, k + SPARE), -1)
    index, gone, began = np.empty(k, np.int64), np.empty(p, np.int64), np.empty(k, np.int64)
    lists = (work, best, where, np.empty(k), np.empty(k), index, gone, began)
    near = np.zeros(p, np.bool_)
    looks = 0
    for j in range(first, last):
        out[j] = np.inf
        if low[j] == np.inf:
            continue
        nearby = neighbours[starts[j] : starts[j + 1]]
        near[nearby] = True
        out[j], count = _row(
            data, heads, m, k, j, near, nearby, low[j], enough[j], most, lists, cases
        )
        looks += count
        near[nearby] = False
    return looks


@interruptible
@numba.njit(cache=True)
def settle(
    m: FloatArray,
    ceiling: FloatArray,
    shares: FloatArray,
    others: IntArray,
    factors: FloatArray,
    slack: float,
    limit: float,
    sweeps: int,
) -> bool:
    """Iterate ``m = min((1 + slack) (shares + factors m), ceiling)`` in place; False at limits."""
    for _ in range(sweeps):
        change = 0.0
        for j in range(m.size):
            value = shares[j]
            for t in range(others.shape[1]):
                if others[j, t] >= 0:
                    value += factors[j, t] * m[others[j, t]]
            value = min((1.0 + slack) * value, ceiling[j])
            if value > limit:
                return False
            change = max(change, abs(value - m[j]) / (value + 1e-300))
            m[j] = value
        if change <= 1e-10:
            return True
    return True


def _all() -> None:
    """Call all once, with the types of a search."""
    one, none = np.ones(1), np.empty((1, 0))
    starts, others = np.zeros(2, np.int64), np.empty((1, 0), np.int64)
    gram = np.ones((1, 1), np.float32)
    data, sides = (gram, one, one, one, 1.0, 1.0, 0.0), (0, 1, starts, starts[:0])
    heads = (np.zeros((1, 1), np.int32), np.zeros((1, 1)), starts[:1], one, 1.0)
    heads_of_rows(gram, one, *heads[:4])
    rows(*data, 0.0, 1, one, *sides, one, one, 1, heads, one, (one, others, none, others))
    settle(one, one, one, others, none, 0.0, 1.0, 1)


def compiling() -> float:
    """Compile all where that is not done yet; return the seconds that this took."""
    return warmed(BOUNDS, _all)
