"""A design stored as a NumPy array, float64 or float32, in either memory order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sparsemodel.interfaces import Access, Design, FloatArray, IntArray, NormBound

_BLOCK_BYTES = 2**22
"""Rows are processed in blocks of about this size, so that a block stays in cache."""


_GATHER_ROWS = 64
"""Rows that are gathered at a time (half the time of all at once, for 500 of 10000 columns)."""


@final
class DenseDesign(Design):
    """A design over a two-dimensional array, which is kept by reference and never written to.

    Products run in the array's own precision: for float32 data the vector is rounded to float32
    and the result widened again, so the data are read once and never copied.
    """

    def __init__(self, array: NDArray[Any], names: tuple[str, ...] | None = None) -> None:
        self._a = array
        self._names = names

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self._a.shape
        return int(n), int(p)

    @property
    def access(self) -> Access:
        return Access.PRODUCTS | Access.COLUMNS | Access.ROWS

    @property
    def nbytes(self) -> int | None:
        return int(self._a.nbytes)

    @property
    def names(self) -> tuple[str, ...] | None:
        return self._names

    @property
    def array(self) -> NDArray[Any]:
        """Return the array itself."""
        return self._a

    def describe(self) -> str:
        n, p = self.shape
        order = "C" if self._a.flags.c_contiguous else "F" if self._a.flags.f_contiguous else "view"
        return f"dense {self._a.dtype.name} {n} x {p} ({order} order)"

    def matvec(self, x: FloatArray) -> FloatArray:
        return np.asarray(self._a @ x.astype(self._a.dtype, copy=False), dtype=np.float64)

    def rmatvec(self, r: FloatArray) -> FloatArray:
        v = r.astype(self._a.dtype, copy=False)
        # Several vectors on a row-major array: the other order of the factors is twice as fast.
        turned = v.ndim == 2 and self._a.flags.c_contiguous
        return np.asarray((v.T @ self._a).T if turned else self._a.T @ v, dtype=np.float64)

    def restrict(self, support: IntArray) -> Design:
        if self._a.flags.f_contiguous:
            columns = np.take(self._a.T, support, axis=0)
            return DenseDesign(columns.astype(np.float64, copy=False).T)
        out = np.empty((support.size, self.shape[0]))
        self._gather(support, out, np.arange(support.size))
        return DenseDesign(out.T)

    def restrict_again(self, support: IntArray, last: IntArray, restricted: Design) -> Design:
        position = np.searchsorted(last, support)
        position[position == last.size] = 0
        shared = last[position] == support if last.size else np.zeros(support.size, dtype=bool)
        if not isinstance(restricted, DenseDesign) or not shared.any():
            return self.restrict(support)
        if shared.all() and support.size == last.size:
            return restricted
        # Column by column in memory, so that what is shared is copied in whole blocks.
        # (Rows of fresh columns are copied from anywhere, to be overwritten: one copy in all.)
        out = np.empty((support.size, self.shape[0]))
        np.take(restricted._a.T, position, axis=0, out=out, mode="clip")
        fresh = np.flatnonzero(~shared)
        self._gather(support[fresh], out, fresh)
        return DenseDesign(out.T)

    def _gather(self, support: IntArray, out: FloatArray, places: IntArray) -> None:
        """Copy columns into the rows ``places`` of ``out``."""
        if self._a.flags.f_contiguous:
            out[places] = self._a.T[support]
            return
        # Along the contiguous axis, because reading down the columns of a row-major array misses
        # the page cache at every entry; a few rows at a time, to be turned round in the cache.
        for start in range(0, self.shape[0], _GATHER_ROWS):
            rows = slice(start, start + _GATHER_ROWS)
            out[places, rows] = np.take(self._a[rows], support, axis=1, mode="clip").T

    def restrict_rows(self, rows: IntArray) -> Design:
        if rows.size and rows[-1] - rows[0] + 1 == rows.size:  # contiguous: no copy
            return DenseDesign(self._a[rows[0] : rows[-1] + 1])
        return DenseDesign(self._a[rows])

    def gram(self, h: FloatArray | None = None) -> FloatArray:
        a = self._a.astype(np.float64, copy=False)
        if h is None:
            return np.asarray(a.T @ a)
        if np.all(h >= 0.0):
            scaled = np.sqrt(h)[:, None] * a  # one symmetric product (syrk) in place of a gemm
            return np.asarray(scaled.T @ scaled)
        return np.asarray(a.T @ (h[:, None] * a))

    def to_array(self) -> FloatArray:
        return self._a.astype(np.float64)

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        n = self.shape[0]
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            yield rows, self._a[rows].astype(np.float64, copy=False)

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        _, p = self.shape
        if self._a.flags.f_contiguous and not self._a.flags.c_contiguous:
            operands = (self._a, self._a) if h is None else (self._a, self._a, h)
            sums = "ij,ij->j" if h is None else "ij,ij,i->j"
            return np.asarray(np.einsum(sums, *operands, dtype=np.float64))
        out = np.zeros(p)
        for rows, block in self.row_blocks(max(1, _BLOCK_BYTES // (8 * max(p, 1)))):
            if h is None:
                out += np.einsum("ij,ij->j", block, block)
            else:
                out += h[rows] @ np.square(block)
        return out

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        n = self.shape[0]
        sample = self._a[:: max(1, n // rows)].astype(np.float64)
        return np.asarray(np.mean(np.square(sample), axis=0))

    def spectral_norm(self) -> NormBound:
        n, p = self.shape
        if min(n, p) <= 64:
            a = self._a.astype(np.float64, copy=False)
            return NormBound(float(np.linalg.norm(a, 2)) if a.size else 0.0, "exact")
        return super().spectral_norm()


__all__ = ["DenseDesign"]
