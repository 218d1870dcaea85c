"""The largest of what coordinates outside a small subset can add to a row; compiled.

A coordinate ``i`` outside adds the absolute value of a combination of entries of its column, one
for each row of the subset, times its bound. Few of many coordinates can be among the largest:
those whose entry is large in one of the rows. So the largest entries of every row, its *head*, are
listed once, and the tail of a row is no larger than the smallest of them. Whether the largest of
what the heads list are the largest of all is known by the tails; where it is not, all coordinates
are looked at.
"""

from __future__ import annotations

import numpy as np

from sparsemodel import loading
from sparsemodel.certificates.proving.compiling import interruptible
from sparsemodel.interfaces import FloatArray, IntArray

numba = loading.numba()

SPARE = 4
"""Coordinates that are listed beyond those that a part has room for."""

_BLOCK = 1024
_ROUNDED = 1.0 + 1e-9
"""More than roundings make of a sum of a few thousand products."""

_TRIES, _STEP = 40, 1.2
"""Levels that are tried for the head of a row, and the first factor between two of them."""


@numba.njit(cache=True)
def _insert(value, i, best, where):  # type: ignore[no-untyped-def]
    """Put ``value``, which is above the last of ``best``, in its place."""
    t = best.size - 1
    while t > 0 and best[t - 1] < value:
        best[t], where[t] = best[t - 1], where[t - 1]
        t -= 1
    best[t], where[t] = value, i


@numba.njit(cache=True)
def _largest(values, best, where):  # type: ignore[no-untyped-def]
    """Fill ``best`` with the largest of nonnegative ``values``, ``where`` with places or -1."""
    best[:], where[:] = 0.0, -1
    least = 0.0
    for i in range(values.size):
        if values[i] > least:
            _insert(values[i], i, best, where)
            least = best[-1]


@numba.njit(cache=True)
def dropped(gone, best, where):  # type: ignore[no-untyped-def]
    """Take one coordinate out of the list of the largest."""
    t = 0
    while t < where.size and where[t] != gone:
        t += 1
    while t + 1 < where.size:
        best[t], where[t] = best[t + 1], where[t + 1]
        t += 1
    if t < where.size:
        best[t], where[t] = 0.0, -1


@numba.njit(cache=True)
def _outside(gram, sizes, index, size, r, error, m, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with what each coordinate outside the subset can add, 0 inside."""
    for first in range(0, out.size, _BLOCK):  # what is written stays in the fastest memory
        part = out[first : first + _BLOCK]
        row = gram[index[0], first : first + _BLOCK]
        for i in range(part.size):
            part[i] = r[0] * row[i]
        for a in range(1, size):
            row = gram[index[a], first : first + _BLOCK]
            factor = r[a]
            for i in range(part.size):
                part[i] += factor * row[i]
        own, known = sizes[first : first + _BLOCK], m[first : first + _BLOCK]
        for i in range(part.size):
            part[i] = (abs(part[i]) + error * own[i]) * known[i]
    for a in range(size):
        out[index[a]] = 0.0


@numba.njit(cache=True)
def _added(gram, sizes, index, size, r, error, m, i):  # type: ignore[no-untyped-def]
    """Return what coordinate ``i`` outside the subset can add."""
    value = 0.0
    for a in range(size):
        value += r[a] * gram[index[a], i]
    return (abs(value) + error * sizes[i]) * m[i]


@numba.njit(cache=True)
def _sort(best, where):  # type: ignore[no-untyped-def]
    """Sort a short list, largest first."""
    for s in range(1, best.size):
        value, i, t = best[s], where[s], s
        while t > 0 and best[t - 1] < value:
            best[t], where[t] = best[t - 1], where[t - 1]
            t -= 1
        best[t], where[t] = value, i


@numba.njit(cache=True)
def _from_heads(data, heads, index, size, r, error, m, skip, sums, best, where):  # type: ignore[no-untyped-def]
    """Fill ``best`` and ``where`` from the heads of the subset's rows; return what others can add.

    A coordinate adds at most what the heads that list it sum to, and the tails of the other rows.
    It is computed only where that is above the least of ``best``. What is returned is at least
    the value of every coordinate that no head lists.
    """
    gram, sizes = data[0], data[3]
    listed, entries, counts, tails, widest = heads
    total, tail, touched = sums
    many, rest = 0, 0.0
    for a in range(size):
        row, factor = index[a], r[a]
        own = abs(factor) * tails[row]
        rest += own
        for t in range(counts[row]):
            i = listed[row, t]
            if tail[i] == 0.0:
                touched[many] = i
                many += 1
            total[i] += factor * entries[row, t]
            tail[i] += own + 1e-300
    best[:], where[:] = 0.0, -1
    for t in range(many):
        i = touched[t]
        value = (abs(total[i]) + error * sizes[i]) * m[i] + (rest - tail[i])
        total[i] = 0.0 if skip[i] else value * _ROUNDED
        tail[i] = 0.0
        if total[i] > best[-1]:
            _insert(total[i], i, best, where)
    # The largest of what is possible are computed first, so that few others are.
    for t in range(best.size):
        i, best[t] = where[t], 0.0
        if i >= 0:
            best[t] = _added(gram, sizes, index, size, r, error, m, i)
            total[i] = 0.0
    _sort(best, where)
    for t in range(many):
        i = touched[t]
        if total[i] > best[-1]:
            value = _added(gram, sizes, index, size, r, error, m, i)
            if value > best[-1]:
                _insert(value, i, best, where)
        total[i] = 0.0
    return (rest + error * widest) * _ROUNDED


@numba.njit(cache=True)
def fill(data, heads, index, size, k, r, error, m, gone, many, work, best, where):  # type: ignore[no-untyped-def]
    """Fill ``best`` and ``where`` with what coordinates outside can add, largest first.

    As many as there is room for and a few more, unless fewer are above zero.
    """
    out, skip, sums = work
    if heads[0].size:
        for a in range(size):
            skip[index[a]] = True
        for t in range(many):
            skip[gone[t]] = True
        best[:], where[:] = 0.0, -1
        most = min(k - size + SPARE, best.size)
        top, places = best[:most], where[:most]
        rest = _from_heads(data, heads, index, size, r, error, m, skip, sums, top, places)
        for a in range(size):
            skip[index[a]] = False
        for t in range(many):
            skip[gone[t]] = False
        if best[k - size - 1] > rest:
            for t in range(k - size, best.size):
                if best[t] <= rest:  # one that is not listed may add more
                    best[t], where[t] = 0.0, -1
            return
    _outside(data[0], data[3], index, size, r, error, m, out)
    for t in range(many):
        out[gone[t]] = 0.0
    _largest(out, best, where)


@interruptible
@numba.njit(cache=True)
def heads_of_rows(
    gram: FloatArray,
    m: FloatArray,
    listed: IntArray,
    entries: FloatArray,
    counts: IntArray,
    tails: FloatArray,
) -> None:
    """List the largest ``abs(gram[j, i]) * m[i]`` of every row ``j``, the diagonal left out.

    ``listed[j, :counts[j]]`` are columns and ``entries`` the row's entries in them; none of the
    other columns is worth more than ``tails[j]``. A head is half of the width or more, unless
    values are too much alike.
    """
    p, width = m.size, listed.shape[1]
    values, level = np.empty(p), 1.0
    for j in range(p):
        for i in range(p):
            values[i] = abs(gram[j, i]) * m[i]
        values[j] = 0.0
        step, low, high, fits = _STEP, 0.0, np.inf, False
        for _ in range(_TRIES):
            count = 0
            for i in range(p):
                count += values[i] > level
            fits = width // 2 <= count <= width
            if fits:
                break
            if count > width:
                low = level
            else:
                high = level
            if low > 0.0 and high < np.inf:
                level = np.sqrt(low * high)
            else:
                level = level * step if count > width else level / step
                step = min(step * step, 1e9)
        count, most = 0, 0.0
        for i in range(p):
            if fits and values[i] > level:
                listed[j, count], entries[j, count] = i, gram[j, i]
                count += 1
            elif values[i] > most:
                most = values[i]
        counts[j], tails[j] = count, most * _ROUNDED
        level = level if fits else 1.0
