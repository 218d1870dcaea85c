"""The largest of what coordinates outside a small subset can add to a row; compiled.

A coordinate ``i`` outside adds the absolute value of a combination of entries of its column, one
for each row of the subset, times its bound. Few of many coordinates can be among the largest:
those whose entry is large in one of the rows. So of many coordinates the largest entries of every
row, its *head*, are listed once, and the tail of a row is no larger than the smallest of them.
Whether the largest of what the heads list are the largest of all is known by the tails.

Where it is not, and among fewer coordinates, all are computed, in single precision, whose roundings
are part of the error that is allowed for. What the largest of the part before add now is a level
that the largest have to reach, so that hardly any other is looked at.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemodel import loading
from sparsemodel.certificates.proving.compiling import interruptible
from sparsemodel.interfaces import FloatArray, IntArray

numba = loading.numba()

SPARE = 4
"""Coordinates that are listed beyond those that a part has room for."""

_ROUNDED = 1.0 + 1e-9
"""More than roundings make of a sum of a few thousand products."""

_TRIES, _STEP = 40, 1.2
"""Levels that are tried for the head of a row, and the first factor between two of them."""

_BLOCK, _STRIP = 512, 64
"""Entries that are computed, and looked through, at a time."""

_U = 2.0**-24
_UP = np.float32(1.0 + 2.0**-21)
"""More than a few roundings of single precision make of a number."""

_LEAST = np.float32(1e-30)
"""What stands for bounds that are smaller, which may be none in single precision."""


@numba.njit(cache=True)
def _insert(value, i, best, where):  # type: ignore[no-untyped-def]
    """Put ``value``, which is above the last of ``best``, in its place."""
    t = best.size - 1
    while t > 0 and best[t - 1] < value:
        best[t], where[t] = best[t - 1], where[t - 1]
        t -= 1
    best[t], where[t] = value, i


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
def raised(m):  # type: ignore[no-untyped-def]
    """Return bounds in single precision that are larger by a few roundings."""
    out = np.empty(m.size, np.float32)
    for i in range(m.size):
        out[i] = max(np.float32(m[i]) * _UP, _LEAST)
    return out


@numba.njit(cache=True, fastmath={"contract"})
def _combined(gram, index, size, r, first, part):  # type: ignore[no-untyped-def]
    """Fill ``part`` with the combination of the rows ``index`` from the column ``first`` on."""
    row, f = gram[index[0], first : first + part.size], np.float32(r[0])
    for i in range(part.size):
        part[i] = f * row[i]
    a = 1
    while a + 1 < size:  # two at a time: what is computed is read and written less often
        row, f = gram[index[a], first : first + part.size], np.float32(r[a])
        other, g = gram[index[a + 1], first : first + part.size], np.float32(r[a + 1])
        for i in range(part.size):
            part[i] += f * row[i] + g * other[i]
        a += 2
    if a < size:
        row, f = gram[index[a], first : first + part.size], np.float32(r[a])
        for i in range(part.size):
            part[i] += f * row[i]


@numba.njit(cache=True)
def _level(gram, index, size, r, m, skip, seeds, room):  # type: ignore[no-untyped-def]
    """Return what ``room`` coordinates and a few more add at least; 0 where ``seeds`` do not tell.

    Below what comes out in single precision, where an error is added.
    """
    known, values = 0, np.zeros(seeds.size)
    for i in seeds:
        if i >= 0 and not skip[i]:
            value = 0.0
            for a in range(size):
                value += r[a] * gram[index[a], i]
            values[known] = 0.999 * abs(value) * m[i]
            known += 1
    if known < room:
        return np.float32(0.0)
    values[:known].sort()
    return np.float32(values[max(known - room - SPARE, 0)])


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
def _from_all(data, m, index, size, k, r, weight, seeds, skip, out, best, where):  # type: ignore[no-untyped-def]
    """Fill ``best`` and ``where`` from what every coordinate outside can add.

    ``seeds`` are coordinates that may be among the largest, or -1.
    """
    gram, unit, widest = data[0], data[4], data[8]
    error = np.float32(1.01 * (unit + 4.0 * (size + 8) * _U) * weight * widest)
    level = _level(gram, index, size, r, m, skip, seeds, k - size)
    best[:], where[:] = 0.0, -1
    least = level
    for first in range(0, m.size, _BLOCK):  # what is written stays in the fastest memory
        part, own = out[first : first + _BLOCK], m[first : first + _BLOCK]
        _combined(gram, index, size, r, first, part)
        above = 0
        for i in range(part.size):
            part[i] = (abs(part[i]) + error) * own[i]
            above += part[i] > least
        if above == 0:
            continue
        for begin in range(0, part.size, _STRIP):
            strip = part[begin : begin + _STRIP]
            above = 0
            for i in range(strip.size):
                above += strip[i] > least
            if above == 0:
                continue
            for i in range(strip.size):
                if strip[i] > least and not skip[first + begin + i]:
                    _insert(strip[i], first + begin + i, best, where)
                    least = max(level, np.float32(best[-1]))


@numba.njit(cache=True)
def fill(data, heads, m, index, size, k, r, errors, gone, many, seeds, work, best, where):  # type: ignore[no-untyped-def]
    """Fill ``best`` and ``where`` with what coordinates outside can add, largest first.

    As many as there is room for, and a few more or not. ``m`` are the bounds, and the same raised
    to single precision; ``errors`` the error of a product in units of the size of a column, and the
    sum of ``r`` in units of sizes.
    """
    out, skip, sums = work
    for a in range(size):
        skip[index[a]] = True
    for t in range(many):
        skip[gone[t]] = True
    known = False
    if heads[0].size:
        most = min(k - size + SPARE, best.size)
        best[:], where[:] = 0.0, -1
        rest = _from_heads(
            data, heads, index, size, r, errors[0], m[0], skip, sums, best[:most], where[:most]
        )
        known = best[k - size - 1] > rest
        for t in range(k - size, best.size):
            if known and best[t] <= rest:  # one that is not listed may add more
                best[t], where[t] = 0.0, -1
    if not known:
        _from_all(data, m[1], index, size, k, r, errors[1], seeds, skip, out, best, where)
    for a in range(size):
        skip[index[a]] = False
    for t in range(many):
        skip[gone[t]] = False


@interruptible
@numba.njit(cache=True)
def heads_of_rows(
    gram: npt.NDArray[np.float32],
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
