"""A design stored as a SciPy sparse array (CSR or CSC); never made dense."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import Access, Design, FloatArray, IntArray, MissingDependencyError

_COMPILED = 2_000_000
"""Products of entries from which a Gram matrix is worth compiled code (8 ms of SciPy's)."""


@final
class SparseDesign(Design):
    """A design over a CSR or CSC array, kept by reference and never written to.

    Columns of a CSR array are read from a CSC copy, made when they are first needed (it doubles
    the memory; pass CSC to avoid that), and rows of a CSC array from a CSR copy.
    """

    def __init__(self, array: Any) -> None:
        self._a = array
        self._columns: Any = array if array.format == "csc" else None
        self._rows: Any = array if array.format == "csr" else None

    @classmethod
    def identity(cls, size: int, rows: IntArray | None = None) -> SparseDesign:
        """Return the identity of an order, or some rows of it."""
        from scipy import sparse  # takes a while to import, and few problems need it

        whole = sparse.eye_array(size, format="csr")
        return cls((whole if rows is None else whole[rows]).tocsc())

    @classmethod
    def diagonal(cls, factors: FloatArray) -> SparseDesign:
        """Return the square matrix with these numbers on its diagonal."""
        from scipy import sparse

        return cls(sparse.diags_array(factors).tocsc())

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self._a.shape
        return int(n), int(p)

    @property
    def access(self) -> Access:
        return Access.MEMORY

    @property
    def entries(self) -> int:
        return int(self._a.nnz)

    @property
    def nbytes(self) -> int | None:
        return int(self._a.data.nbytes + self._a.indices.nbytes + self._a.indptr.nbytes)

    @property
    def array(self) -> Any:
        """Return the sparse array itself."""
        return self._a

    def describe(self) -> str:
        n, p = self.shape
        share = self._a.nnz / max(n * p, 1)
        kind = f"{self._a.format.upper()} {self._a.dtype.name}"
        return f"sparse {kind} {n} x {p}, {100 * share:.2g} % nonzero"

    def matvec(self, x: FloatArray) -> FloatArray:
        return np.asarray(self._a @ x.astype(self._a.dtype, copy=False), dtype=np.float64)

    def rmatvec(self, r: FloatArray) -> FloatArray:
        # With many columns a CSC array reads the rows of r that stay in the cache, and writes
        # each row of the product once: two to three times as fast as a CSR array.
        a = self._a if r.ndim == 1 or self._columns is None else self._columns
        return np.asarray(a.T @ r.astype(a.dtype, copy=False), dtype=np.float64)

    def rmatvec_in_double(self, r: FloatArray) -> FloatArray:
        # SciPy promotes a product of float32 entries with a float64 vector to float64.
        return np.asarray(self._a.T @ r, dtype=np.float64)

    def restrict(self, support: IntArray) -> Design:
        if self._columns is None:
            self._columns = self._a.tocsc()
        return SparseDesign(self._columns[:, support].astype(np.float64))

    def restrict_rows(self, rows: IntArray) -> Design:
        return SparseDesign(self._by_rows()[rows])

    def gram(self, h: FloatArray | None = None) -> FloatArray:
        a = self._a.astype(np.float64, copy=False)
        if self._products() >= _COMPILED:
            with suppress(MissingDependencyError):
                from sparsemodel.designs.sparse_gram_compiled import gram_of_rows

                rows = self._by_rows().astype(np.float64, copy=False)
                weights = np.ones(self.shape[0]) if h is None else np.ascontiguousarray(h)
                return gram_of_rows(rows.indptr, rows.indices, rows.data, weights, self.shape[1])
        # The product over a support is small and usually full.
        return np.asarray((a.T @ _weighted(a, h).tocsr()).todense())

    def _by_rows(self) -> Any:
        """Return the CSR copy, made when it is first needed."""
        if self._rows is None:
            self._rows = self._a.tocsr()
        return self._rows

    def _products(self) -> int:
        """Return how many pairs of entries share a row; not counted where they are few."""
        if self.entries < np.sqrt(_COMPILED):
            return 0
        by_rows = self._a.format == "csr"
        lengths = np.diff(self._a.indptr) if by_rows else np.bincount(self._a.indices)
        return int(np.square(lengths.astype(np.int64)).sum())

    def to_array(self) -> FloatArray:
        return np.asarray(self._a.todense(), dtype=np.float64)

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        rows_first = self._a.tocsr() if self._rows is None else self._rows
        n = self.shape[0]
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            yield rows, np.asarray(rows_first[rows].todense(), dtype=np.float64)

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        squares = self._a.copy()
        squares.sum_duplicates()  # entries given in parts add up before they are squared
        squares.data = np.square(squares.data.astype(np.float64))
        weights = np.ones(self.shape[0]) if h is None else h
        return np.asarray(squares.T @ weights)

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        return self.column_square_norms() / self.shape[0]

    def first_nonfinite(self) -> tuple[int, int] | None:
        entries = self._a.tocoo()
        bad = np.flatnonzero(~np.isfinite(entries.data))
        if not bad.size:
            return None
        first = bad[np.lexsort((entries.col[bad], entries.row[bad]))[0]]
        return int(entries.row[first]), int(entries.col[first])


def _weighted(a: Any, h: FloatArray | None) -> Any:
    """Return the array with its rows times ``h``; SciPy's own product goes through a third form."""
    if h is None:
        return a
    by_entry = h[a.indices] if a.format == "csc" else np.repeat(h, np.diff(a.indptr))
    return type(a)((a.data * by_entry, a.indices, a.indptr), shape=a.shape)
