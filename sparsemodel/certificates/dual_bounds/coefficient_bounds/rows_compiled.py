r"""What a coefficient can be, given bounds on the others: row by row, rounded up; compiled.

For a row ``j`` with neighbours ``N`` and every set ``T`` of at most ``k - 1`` of them, with
``I = {j} + T`` and any numbers ``r``, the stationary equations of a support that meets ``N`` in
``T`` add up to

.. math:: (r^T H_{I j}) w_j + \sum_{i \in T} (r^T H_{I i}) w_i + \sum_{i \in R} (r^T G_{I i}) w_i
          = r^T c_I

with at most ``k - 1 - |T|`` coordinates in ``R``. With ``r`` near :math:`e_j^T H_{II}^{-1}` the
first factor is near one and the next ones near zero. Nothing need be assumed about ``r``: every
product is taken with a bound on its error, which covers the errors of ``G`` and ``c`` as well.
"""

from __future__ import annotations

import numpy as np

from sparsemodel.certificates.proving.gram.numba_compiled import numba
from sparsemodel.interfaces import FloatArray, IntArray

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
def _largest(values, count, best, where):  # type: ignore[no-untyped-def]
    """Fill ``best`` with the ``count`` largest of nonnegative ``values``, ``where`` with places."""
    for t in range(count):
        best[t], where[t] = 0.0, -1
    least = 0.0
    for i in range(values.size):
        value = values[i]
        if value > least:
            t = count - 1
            while t > 0 and best[t - 1] < value:
                best[t], where[t] = best[t - 1], where[t - 1]
                t -= 1
            best[t], where[t] = value, i
            least = best[count - 1]


@numba.njit(cache=True)
def _on_subset(gram, linear, ridge, sizes, unit, index, size, r, m):  # type: ignore[no-untyped-def]
    """Return the right-hand side, the error of a product, the own factor, and the others' part."""
    slope, weight = 0.0, 0.0
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
        if b == 0:
            own = total - error * sizes[i]
        else:
            rest += (abs(total) + error * sizes[i]) * m[i]
    return slope, error, own, rest


@numba.njit(cache=True)
def _outside(gram, sizes, index, size, r, error, m, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with what each coordinate outside the subset can add, 0 inside."""
    row = gram[index[0]]
    for i in range(out.size):
        out[i] = r[0] * row[i]
    for a in range(1, size):
        row = gram[index[a]]
        factor = r[a]
        for i in range(out.size):
            out[i] += factor * row[i]
    for i in range(out.size):
        out[i] = (abs(out[i]) + error * sizes[i]) * m[i]
    for a in range(size):
        out[index[a]] = 0.0


@numba.njit(cache=True)
def _remember(room, own, best, where, m, others, factors):  # type: ignore[no-untyped-def]
    """Write down which coordinates outside gave the largest value, and their factors."""
    for t in range(others.size):
        others[t], factors[t] = -1, 0.0
        if t < room and where[t] >= 0:
            others[t] = where[t]
            factors[t] = best[t] / (own * m[where[t]])


@numba.njit(cache=True)
def rows(
    gram: FloatArray,
    linear: FloatArray,
    ridge: FloatArray,
    sizes: FloatArray,
    unit: float,
    reach: float,
    floor: float,
    k: int,
    m: FloatArray,
    which: IntArray,
    starts: IntArray,
    neighbours: IntArray,
    tables: IntArray,
    counts: IntArray,
    values: FloatArray,
    known: FloatArray,
    ratio: float,
    out: FloatArray,
    shares: FloatArray,
    others: IntArray,
    factors: FloatArray,
) -> None:
    r"""Fill ``out`` with bounds on the coefficients of rows ``which``, given bounds ``m``.

    Parameters
    ----------
    floor
        Added to every right-hand side, so that no bound is zero.
    starts, neighbours
        The neighbours of row ``j`` are ``neighbours[starts[j]:starts[j + 1]]``.
    tables, counts
        ``tables[q]`` lists the subsets of ``q`` neighbours, -1 where they are shorter;
        ``counts[q]`` of them.
    values, known
        For every subset: its value and its part without ``m`` when last computed (not used when
        ``ratio`` is infinite), row ``j``'s from ``counts`` of the rows before it on.
    ratio
        How much larger an entry of ``m`` is than when ``values`` were computed, at most.
    shares, others, factors
        The largest value is ``shares[j] + sum(factors[j] * m[others[j]])``, but for roundings.
    """
    p = m.size
    longest = tables.shape[2]
    index = np.empty(longest + 1, np.int64)
    lower, r = np.empty((longest + 1, longest + 1)), np.empty(longest + 1)
    buffer = np.empty(p)
    best, where = np.empty(k), np.empty(k, np.int64)
    offset = 0
    for spot in range(which.size):
        j = which[spot]
        first, q = starts[j], starts[j + 1] - starts[j]
        highest = -1.0
        for turn in range(counts[q]):
            # The subset that was worst last time goes first, others only where they may matter.
            entry = offset + turn
            if np.isfinite(ratio):
                possible = known[entry] + (values[entry] - known[entry]) * ratio
                if possible * (1.0 + 1e-9) <= highest:
                    continue
            index[0], size = j, 1
            for t in range(longest):
                if tables[q, turn, t] < 0:
                    break
                index[size] = neighbours[first + tables[q, turn, t]]
                size += 1
            if not _inverse_row(gram, ridge, index, size, lower, r):
                highest = np.inf
                values[entry], known[entry] = np.inf, 0.0
                break
            slope, error, own, rest = _on_subset(
                gram, linear, ridge, sizes, unit, index, size, r, m
            )
            if not own > 0.5:
                highest = np.inf
                values[entry], known[entry] = np.inf, 0.0
                break
            constant = abs(slope) + error * reach + floor
            room = k - size
            total = 0.0
            if room > 0:
                _outside(gram, sizes, index, size, r, error, m, buffer)
                for t in range(q):
                    buffer[neighbours[first + t]] = 0.0
                _largest(buffer, room, best, where)
                for t in range(room):
                    total += best[t]
            value = (constant + rest + total) / own * (1.0 + 8.0 * (k + size + 16) * _U)
            values[entry], known[entry] = value, constant / own
            if value > highest:
                highest = value
                shares[j] = (constant + rest) / own
                _remember(room, own, best, where, m, others[j], factors[j])
        offset += counts[q]
        out[j] = highest


@numba.njit(cache=True)
def settle(
    m: FloatArray,
    ceiling: FloatArray,
    shares: FloatArray,
    others: IntArray,
    factors: FloatArray,
    limit: float,
    sweeps: int,
) -> bool:
    """Iterate ``m = min(shares + factors * m, ceiling)`` in place; False beyond limits."""
    for _ in range(sweeps):
        change = 0.0
        for j in range(m.size):
            value = shares[j]
            for t in range(others.shape[1]):
                if others[j, t] >= 0:
                    value += factors[j, t] * m[others[j, t]]
            value = min(value, ceiling[j])
            if value > limit:
                return False
            change = max(change, abs(value - m[j]) / (value + 1e-300))
            m[j] = value
        if change <= 1e-10:
            return True
    return True


__all__ = ["rows", "settle"]
