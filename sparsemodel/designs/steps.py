"""Designs of which nothing is stored: a column of ones, and sequences from their jumps."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import final

import numpy as np

from sparsemodel.designs.dense import DenseDesign
from sparsemodel.interfaces import Access, BoolArray, Design, FloatArray, IntArray


@final
class OnesDesign(Design):
    """A single column of ones: the design of an intercept."""

    def __init__(self, n: int) -> None:
        self._n = n

    @property
    def shape(self) -> tuple[int, int]:
        return self._n, 1

    @property
    def access(self) -> Access:
        return Access.MEMORY

    @property
    def nbytes(self) -> int | None:
        return 0

    @property
    def stamp(self) -> Hashable | None:
        return self._n

    def describe(self) -> str:
        return "a column of ones"

    def matvec(self, x: FloatArray) -> FloatArray:
        return np.repeat(x, self._n, axis=0)

    def rmatvec(self, r: FloatArray) -> FloatArray:
        return np.asarray(r.sum(axis=0, keepdims=True))

    def rmatvec_in_double(self, r: FloatArray) -> FloatArray:
        return self.rmatvec(r)

    def restrict(self, support: IntArray) -> Design:
        return self if support.size else DenseDesign(np.zeros((self._n, 0)))

    def restrict_rows(self, rows: IntArray) -> Design:
        return OnesDesign(int(rows.size))

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        for start in range(0, self._n, size):
            rows = slice(start, min(start + size, self._n))
            yield rows, np.ones((rows.stop - rows.start, 1))

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        return np.array([float(self._n) if h is None else float(h.sum())])

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        return np.ones(1)

    def first_nonfinite(self) -> tuple[int, int] | None:
        return None


@final
class StepsDesign(Design):
    r"""``v`` from its jumps: :math:`v_i = z_{n-1} + \sum_{j < i} z_j` for ``i < n``.

    Coordinate ``j < n - 1`` is the jump from ``v[j]`` to ``v[j + 1]``, the last one is ``v[0]``.
    Products take ``O(n)``; nothing is stored.
    """

    def __init__(self, n: int) -> None:
        self._n = n

    @property
    def shape(self) -> tuple[int, int]:
        return self._n, self._n

    @property
    def access(self) -> Access:
        return Access.MEMORY

    @property
    def entries(self) -> int:
        return self._n

    @property
    def nbytes(self) -> int | None:
        return 0

    def describe(self) -> str:
        return f"the steps of a sequence of {self._n}"

    def matvec(self, x: FloatArray) -> FloatArray:
        out = np.empty((self._n, *x.shape[1:]))
        out[0], out[1:] = 0.0, np.cumsum(x[:-1], axis=0)
        out += x[-1]
        return out

    def rmatvec(self, r: FloatArray) -> FloatArray:
        sums = np.cumsum(r[::-1], axis=0)[::-1]
        return np.concatenate([sums[1:], sums[:1]])

    def rmatvec_in_double(self, r: FloatArray) -> FloatArray:
        return self.rmatvec(r)

    def inverse(self, v: FloatArray) -> FloatArray:
        """Return the jumps of ``v``, and its first entry at the end."""
        return np.concatenate([np.diff(v, axis=0), v[:1]])

    def restrict(self, support: IntArray) -> Design:
        return DenseDesign(np.asfortranarray(self._entries(np.arange(self._n), support)))

    def restrict_rows(self, rows: IntArray) -> Design:
        return DenseDesign(self._entries(rows, np.arange(self._n)))

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        for start in range(0, self._n, size):
            rows = slice(start, min(start + size, self._n))
            yield rows, self._entries(np.arange(rows.start, rows.stop), np.arange(self._n))

    def _entries(self, rows: IntArray, columns: IntArray) -> FloatArray:
        on: BoolArray = (rows[:, None] > columns) | (columns == self._n - 1)
        return on.astype(np.float64)

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        return self.rmatvec(np.ones(self._n) if h is None else h)

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        return np.asarray(self.column_square_norms() / self._n)

    def first_nonfinite(self) -> tuple[int, int] | None:
        return None
