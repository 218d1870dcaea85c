"""Products of a matrix variable with a matrix on each side, as a design of its entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import final

import numpy as np

from sparsemodel.designs.dense import DenseDesign
from sparsemodel.designs.sparse import SparseDesign
from sparsemodel.interfaces import Access, Design, FloatArray, IntArray


@final
class KroneckerDesign(Design):
    r"""The map from ``W``, row by row, to ``A @ W @ R``, row by row: :math:`A \otimes R^\top`.

    ``A`` is a design and stays as it is stored; ``R`` is a small array. A product costs one
    product of ``A`` with the columns of ``W``, whatever the size of the Kronecker product.

    Parameters
    ----------
    left
        ``A``, shape ``(n, p)``.
    right
        ``R``, shape ``(m, q)``; a whole number ``m`` stands for the identity of that order.
    """

    def __init__(self, left: Design, right: FloatArray | int) -> None:
        self._left = left
        self._right = None if isinstance(right, int) else np.asarray(right, dtype=np.float64)
        self._m, self._q = (right, right) if isinstance(right, int) else right.shape

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self._left.shape
        return n * self._q, p * self._m

    @property
    def access(self) -> Access:
        return self._left.access & Access.MEMORY

    @property
    def entries(self) -> int:
        return int(self._left.entries * max(self._m, self._q))

    @property
    def nbytes(self) -> int | None:
        return self._left.nbytes

    @property
    def bytes_read(self) -> int | None:
        return self._left.bytes_read

    def describe(self) -> str:
        sides = f"for each of {self._m} columns" if self._right is None else "with one to the right"
        return f"{self._left.describe()} {sides}"

    def matvec(self, x: FloatArray) -> FloatArray:
        return self._predicted(self._left.matvec, x)

    def matvec_in_double(self, x: FloatArray) -> FloatArray:
        return self._predicted(self._left.matvec_in_double, x)

    def rmatvec(self, r: FloatArray) -> FloatArray:
        return self._summed(self._left.rmatvec, r)

    def rmatvec_in_double(self, r: FloatArray) -> FloatArray:
        return self._summed(self._left.rmatvec_in_double, r)

    def _predicted(self, multiply: Callable[[FloatArray], FloatArray], x: FloatArray) -> FloatArray:
        if x.ndim == 2:
            return np.stack([self._predicted(multiply, column) for column in x.T], axis=1)
        w = x.reshape(-1, self._m)
        return multiply(w if self._right is None else w @ self._right).ravel()

    def _summed(self, multiply: Callable[[FloatArray], FloatArray], r: FloatArray) -> FloatArray:
        if r.ndim == 2:
            return np.stack([self._summed(multiply, column) for column in r.T], axis=1)
        g = multiply(r.reshape(-1, self._q))
        return (g if self._right is None else g @ self._right.T).ravel()

    def restrict(self, support: IntArray) -> Design:
        rows, columns = np.divmod(support, self._m)
        kept, place = np.unique(rows, return_inverse=True)
        entries = self._left.restrict(kept).to_array()[:, place.reshape(-1)]
        if self._right is not None:
            return DenseDesign(_outer(entries, self._right[columns].T))
        from scipy.sparse import csc_array

        n, s = entries.shape
        indices = (np.arange(n) * self._q + columns[:, None]).ravel()
        data, ends = entries.T.ravel(), np.arange(s + 1) * n
        return SparseDesign(csc_array((data, indices, ends), shape=(n * self._q, s)))

    def restrict_rows(self, rows: IntArray) -> Design:
        outer, inner = np.divmod(rows, self._q)
        kept, place = np.unique(outer, return_inverse=True)
        entries = self._left.restrict_rows(kept).to_array()[place.reshape(-1)]
        right = np.eye(self._m) if self._right is None else self._right
        block = entries[:, :, None] * right[:, inner].T[:, None, :]
        return DenseDesign(np.asfortranarray(block.reshape(rows.size, -1)))

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        n = self.shape[0]
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            yield rows, self.restrict_rows(np.arange(rows.start, rows.stop)).to_array()

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        n = self._left.shape[0]
        weights = np.ones((n, self._q)) if h is None else h.reshape(n, self._q)
        squares = np.stack([self._left.column_square_norms(w) for w in weights.T], axis=1)
        out = squares if self._right is None else squares @ np.square(self._right).T
        return out.ravel()

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        sample = self._left.sampled_square_norms(rows)
        if sample is None:
            return None
        if self._right is None:
            return np.repeat(sample / self._q, self._m)
        return np.outer(sample, np.square(self._right).mean(axis=1)).ravel()

    def first_nonfinite(self) -> tuple[int, int] | None:
        at = self._left.first_nonfinite()
        return None if at is None else (at[0] * self._q, at[1] * self._m)


def _outer(entries: FloatArray, rows: FloatArray) -> FloatArray:
    """Return column by column the Kronecker products of two sets of columns."""
    n, s = entries.shape
    return np.asfortranarray((entries[:, None, :] * rows[None, :, :]).reshape(n * rows.shape[0], s))
