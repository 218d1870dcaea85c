r"""The largest gain over all small sets of candidates, by elimination; compiled.

For a quadratic :math:`\frac12 x^T M x - g^T x` a set ``S`` gains :math:`g_S^T M_{SS}^{-1} g_S`
(twice what it lowers the value by). Eliminating one coordinate after the other adds
:math:`g_i^2 / M_{ii}` each time. The innermost loop only counts who may be better than the best so
far, without a division; where one does, the row is looked at again.
"""

from __future__ import annotations

import numpy as np

from sparsemodel import loading
from sparsemodel.certificates.proving.compiling import interruptible
from sparsemodel.interfaces import FloatArray, IntArray

numba = loading.numba()


@numba.njit(cache=True)
def _last(row, other, ratio, diagonal, slopes, own, slope, needed):  # type: ignore[no-untyped-def]
    """Return the largest gain of one coordinate after another, if ``needed``, and its place.

    ``row - ratio * other`` are the products with the other one, whose curvature and slope are
    ``own`` and ``slope``. Infinite where a pivot is not positive; -1 where no column gains enough.
    """
    inverse, share = 1.0 / own, slope / own
    hits = 0
    for b in range(row.size):
        product = row[b] - ratio * other[b]
        left = diagonal[b] - product * product * inverse
        rest = slopes[b] - product * share
        # A pivot that is not positive is a hit, too.
        hits += 1 if not (rest * rest < needed * left) or not left > 0.0 else 0
    best, place = needed, -1
    if hits > 0:
        for b in range(row.size):
            product = row[b] - ratio * other[b]
            left = diagonal[b] - product * product * inverse
            rest = slopes[b] - product * share
            if not left > 0.0:
                return np.inf, b
            if rest * rest > best * left:
                best, place = rest * rest / left, b
    return best, place


@numba.njit(cache=True)
def _pairs(m, diagonal, slopes, first, other, own, taken, chosen, best):  # type: ignore[no-untyped-def]
    """Return the best gain of one or two candidates from ``first`` on, ``taken`` added.

    ``other`` is the row of a coordinate that was eliminated before, with the curvature ``own``;
    what it left of the diagonal and the slopes is in ``diagonal`` and ``slopes``.
    """
    gain = best
    for i in range(first, slopes.size):
        pivot = diagonal[i]
        if not pivot > 0.0:
            return np.inf
        alone = taken + slopes[i] * slopes[i] / pivot
        if alone > gain:
            gain = alone
            chosen[0], chosen[1] = i, -1
        needed = max(gain - alone, 0.0)
        more, place = _last(
            m[i, i + 1 :],
            other[i + 1 :],
            other[i] / own,
            diagonal[i + 1 :],
            slopes[i + 1 :],
            pivot,
            slopes[i],
            needed,
        )
        if place >= 0:
            gain = alone + more
            chosen[0], chosen[1] = i, i + 1 + place
        if gain == np.inf:
            return gain
    return gain


@interruptible
@numba.njit(cache=True)
def best_gain(
    m: FloatArray,
    offset: int,
    diagonal: FloatArray,
    g: FloatArray,
    count: int,
    first: int,
    last: int,
    chosen: IntArray,
    best: float,
) -> float:
    """Return the largest gain of at most ``count`` (1 to 3) candidates; fills ``chosen``.

    Looks at sets whose first member is one of ``first`` to ``last``, and goes on from ``best``. The
    rows and columns of ``m`` begin with those of candidate ``offset``, 0 where ``count`` is 3.
    Infinite where a pivot is not positive: then nothing is known.
    """
    c = g.size
    gain = best
    left, slopes, nobody = diagonal.copy(), g.copy(), np.zeros(c)
    pair = np.full(2, -1)
    for i in range(first, last):
        own, row = diagonal[i], m[i - offset]
        if not own > 0.0:
            return np.inf
        taken = g[i] * g[i] / own
        if taken > gain:
            gain = taken
            chosen[0], chosen[1], chosen[2] = i, -1, -1
        if count == 2:
            more, place = _last(
                row[i + 1 - offset :],
                nobody[i + 1 :],
                0.0,
                diagonal[i + 1 :],
                g[i + 1 :],
                own,
                g[i],
                max(gain - taken, 0.0),
            )
            if place >= 0:
                gain = taken + more
                chosen[0], chosen[1], chosen[2] = i, i + 1 + place, -1
        elif count == 3:
            for b in range(i + 1, c):
                ratio = row[b] / own
                left[b] = diagonal[b] - row[b] * ratio
                slopes[b] = g[b] - g[i] * ratio
            pair[0] = -1
            after = _pairs(m, left, slopes, i + 1, row, own, taken, pair, gain)
            if after > gain:
                gain = after
                chosen[0], chosen[1], chosen[2] = i, pair[0], pair[1]
        if gain == np.inf:
            return gain
    return gain
