r"""The largest gain over all small sets of candidates, by elimination; compiled.

For a quadratic :math:`\frac12 x^T M x - g^T x` a set ``S`` gains :math:`g_S^T M_{SS}^{-1} g_S`
(twice what it lowers the value by). Eliminating one coordinate after the other adds
:math:`g_i^2 / M_{ii}` each time.
"""

from __future__ import annotations

import numpy as np

from sparsemodel.certificates.proving.gram.numba_compiled import numba
from sparsemodel.interfaces import FloatArray, IntArray


@numba.njit(cache=True)
def _pairs(
    m: FloatArray, g: FloatArray, first: int, taken: float, chosen: IntArray, best: float
) -> float:
    """Return the best gain of one or two candidates from ``first`` on, ``taken`` added."""
    c = g.size
    gain = best
    for i in range(first, c):
        own = m[i, i]
        if not own > 0.0:
            return np.inf
        share = g[i] / own
        alone = g[i] * share
        if taken + alone > gain:
            gain = taken + alone
            chosen[0], chosen[1] = i, -1
        top = 0.0
        for j in range(i + 1, c):
            ratio = m[i, j] / own
            left = m[j, j] - m[i, j] * ratio
            slope = g[j] - m[i, j] * share
            if not left > 0.0:
                return np.inf
            value = slope * slope
            # A division only where it may matter.
            if value > top * left:
                top = value / left
                if taken + alone + top > gain:
                    gain = taken + alone + top
                    chosen[0], chosen[1] = i, j
    return gain


@numba.njit(cache=True)
def best_gain(m: FloatArray, g: FloatArray, count: int, chosen: IntArray) -> float:
    """Return the largest gain of at most ``count`` (1 to 3) candidates; fills ``chosen``.

    Infinite where a pivot is not positive: then nothing is known.
    """
    c = g.size
    gain: float = 0.0
    chosen[:] = -1
    if count == 1:
        for i in range(c):
            if not m[i, i] > 0.0:
                return np.inf
            value = g[i] * g[i] / m[i, i]
            if value > gain:
                gain = value
                chosen[0] = i
        return gain
    pair = np.empty(2, np.int64)
    if count == 2:
        pair[:] = -1
        gain = _pairs(m, g, 0, 0.0, pair, gain)
        chosen[0], chosen[1] = pair[0], pair[1]
        return gain
    rest, slopes = np.empty((c, c)), np.empty(c)
    for i in range(c):
        own = m[i, i]
        if not own > 0.0:
            return np.inf
        for j in range(i + 1, c):
            ratio = m[i, j] / own
            slopes[j] = g[j] - ratio * g[i]
            for b in range(j, c):
                rest[j, b] = m[j, b] - ratio * m[i, b]
        taken = g[i] * g[i] / own
        if taken > gain:
            gain = taken
            chosen[0], chosen[1], chosen[2] = i, -1, -1
        pair[:] = -1
        after = _pairs(rest, slopes, i + 1, taken, pair, gain)
        if after > gain:
            gain = after
            chosen[0], chosen[1], chosen[2] = i, pair[0], pair[1]
    return gain


__all__ = ["best_gain"]
