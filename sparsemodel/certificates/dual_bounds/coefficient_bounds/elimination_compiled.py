r"""One part of a row's supports: neighbours eliminated, the others at their largest; compiled."""

from __future__ import annotations

import numpy as np

from sparsemodel.certificates.proving.gram.numba_compiled import numba

_U = 2.0**-53


@numba.njit(cache=True)
def inverse_row(gram, ridge, index, size, lower, r):  # type: ignore[no-untyped-def]
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
def largest(values, best, where):  # type: ignore[no-untyped-def]
    """Fill ``best`` with the largest of nonnegative ``values``, ``where`` with places or -1."""
    count = best.size
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
def dropped(values, gone, best, where):  # type: ignore[no-untyped-def]
    """Take one coordinate out of ``values`` and of the list of the largest."""
    values[gone] = 0.0
    t = 0
    while t < where.size and where[t] != gone:
        t += 1
    while t + 1 < where.size:
        best[t], where[t] = best[t + 1], where[t + 1]
        t += 1
    if t < where.size:
        best[t], where[t] = 0.0, -1


@numba.njit(cache=True)
def on_subset(gram, linear, ridge, sizes, unit, index, size, r, m):  # type: ignore[no-untyped-def]
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
def outside(gram, sizes, index, size, r, error, m, out):  # type: ignore[no-untyped-def]
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


__all__ = ["dropped", "inverse_row", "largest", "on_subset", "outside"]
