r"""Products with the Hessian of the Gaussian likelihood on a sparse pattern, compiled.

Only the entries of :math:`W V W` on the pattern are formed, for a symmetric :math:`V` that is zero
off the pattern: ``O(p size)`` operations in place of ``O(p^3)``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from sparsemodel import loading
from sparsemodel.interfaces import FloatArray, MissingDependencyError
from sparsemodel.numerics.budget import numba_in_time
from sparsemodel.numerics.precision.pattern import Pattern

_ORDER = 150
"""Order from which a search takes longer than loading what is compiled."""

_WIDTH = 256
"""Columns of :math:`V W` that are formed at once: they stay in the cache."""


def product_on(pattern: Pattern) -> Callable[[FloatArray, FloatArray], FloatArray] | None:
    """Return ``(W, v) -> (W V W)`` on a pattern, where ``v`` are the entries of ``V`` on it.

    None where dense products are as fast, Numba cannot be imported, or not in the time left.
    """
    if pattern.order < _ORDER or 4 * pattern.size > pattern.order**2:
        return None
    compiled = _compiled() if numba_in_time() else None
    if compiled is None:
        return None
    pointers, neighbours, entries = pattern.adjacency

    def product(W: FloatArray, v: FloatArray) -> FloatArray:
        out = np.empty(v.size)
        compiled(W, pointers, neighbours, entries, v, out)
        return out

    return product


@cache
def _compiled() -> Any:
    """Return the compiled kernel; None where Numba cannot be imported."""
    try:
        numba = loading.numba()
    except MissingDependencyError:
        return None
    # Reordered sums use vector instructions.
    return numba.njit(cache=True, fastmath=True, nogil=True)(_product)


def _product(W, pointers, neighbours, entries, v, out):  # type: ignore[no-untyped-def]
    p = W.shape[0]
    across, along = np.empty((p, _WIDTH)), np.empty((_WIDTH, p))
    for first in range(0, p, _WIDTH):
        last = min(first + _WIDTH, p)
        n = last - first
        for i in range(p):
            row = across[i, :n]  # columns first to last of V W
            row[:] = 0.0
            for a in range(pointers[i], pointers[i + 1]):
                value, other = v[entries[a]], W[neighbours[a], first:last]
                for j in range(n):
                    row[j] += value * other[j]
        for i in range(p):
            for j in range(n):
                along[j, i] = across[i, j]
        for i in range(first, last):
            column = along[i - first]
            for a in range(pointers[i], pointers[i + 1]):
                if neighbours[a] >= i:
                    other, total = W[neighbours[a]], 0.0
                    for j in range(p):
                        total += column[j] * other[j]
                    out[entries[a]] = total
