"""A design stored as a NumPy array, float64 or float32, in either memory order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sparsemodel.designs.tables.encoding import Encoding
from sparsemodel.designs.tables.formulas import Formula
from sparsemodel.interfaces import Access, Design, FloatArray, IntArray, NormBound
from sparsemodel.interfaces.design import BLOCK_BYTES, rows_of_a_block
from sparsemodel.threads import cross_product, each, product

_TILE, _LONG = 2**17, 2048
"""Entries that are converted to float64 at a time, and how many of a row or column in memory."""

_GATHER_ROWS = 512
"""Rows that are gathered at a time, in two thirds of the time of all 2500, for 500 of 10,000
columns."""

_FEW = 0.3
"""Share of rows up to which copying them out is cheaper than multiplying them all."""

_NARROW = 256
"""Columns up to which Gram matrices of blocks of rows are made at the same time, then added."""

_EXACT_NORM = 2**27
"""Operations that a spectral norm may take; those of a larger matrix are estimated."""

_FAINT = 1e-20
"""Weights below this fraction of the largest may be lost in the rounding of a Gram matrix."""


@final
class DenseDesign(Design):
    """A design over a two-dimensional array, which is kept by reference and never written to.

    Products run in the array's own precision: for float32 data the vector is rounded to float32
    and the result widened again, so the data are read once and never copied.
    """

    def __init__(
        self,
        array: NDArray[Any],
        names: tuple[str, ...] | None = None,
        sums: int | None = None,
        encoding: Encoding | Formula | None = None,
        labels: Any = None,
    ) -> None:
        self._a = array
        self.labels = labels
        """The index of the DataFrame it was made of, where it was made of one."""
        self.encoding = encoding
        """How a table became the array, where one did."""
        self._names = names
        self._sums = sums
        self._whole = False  # whether every entry has been in a product

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self._a.shape
        return int(n), int(p)

    @property
    def sums(self) -> int:
        return self.shape[0] if self._sums is None else self._sums

    @property
    def access(self) -> Access:
        return Access.MEMORY

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
        return np.asarray(product(self._a, x.astype(self._a.dtype, copy=False)), dtype=np.float64)

    def rmatvec(self, r: FloatArray) -> FloatArray:
        v = r.astype(self._a.dtype, copy=False)
        if v.ndim == 1 and (rows := self._few(v)) is not None:
            return self._sum_of_rows(rows, lambda some, block: v[some] @ block)
        self._whole = True
        return np.asarray(product(self._a.T, v), dtype=np.float64)

    def matvec_in_double(self, x: FloatArray) -> FloatArray:
        double = self._a.dtype == np.float64
        return self.matvec(x) if double else product(self._a, x, _in_double)

    def rmatvec_in_double(self, r: FloatArray) -> FloatArray:
        double = self._a.dtype == np.float64
        return self.rmatvec(r) if double else product(self._a.T, r, _in_double)

    def _few(self, weights: FloatArray) -> IntArray | None:
        """Return the rows of nonzero weight where they are few and rows are cheap to read.

        Not before all rows were multiplied once: that product is what finds NaN and infinity.
        """
        if not self._whole or not self._a.flags.c_contiguous or self._a.size < BLOCK_BYTES // 8:
            return None
        if np.count_nonzero(weights) > _FEW * weights.size:
            return None
        return np.flatnonzero(weights)

    def _sum_of_rows(
        self, rows: IntArray, product: Callable[[IntArray, NDArray[Any]], NDArray[Any]]
    ) -> FloatArray:
        """Return the sum of ``product(some, A[some])`` over blocks ``some`` of ``rows``.

        ``product`` may overwrite the block, which is a copy.
        """
        p = self._a.shape[1]
        out = np.zeros(p)
        size = rows_of_a_block(p)
        buffer = np.empty((min(size, rows.size), p), dtype=self._a.dtype)
        for start in range(0, rows.size, size):
            some = rows[start : start + size]
            block = buffer[: some.size]
            np.take(self._a, some, axis=0, out=block, mode="clip")
            out += product(some, block)
        return out

    def restrict(self, support: IntArray) -> Design:
        if self._a.flags.f_contiguous:
            columns = np.take(self._a.T, support, axis=0)
            return DenseDesign(columns.astype(np.float64, copy=False).T)
        out = np.empty((support.size, self.shape[0]))
        self._gather(support, out, slice(None))
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

    def _gather(self, support: IntArray, out: FloatArray, places: IntArray | slice) -> None:
        """Copy columns into the rows ``places`` of ``out``."""
        if self._a.flags.f_contiguous:
            out[places] = self._a.T[support]
            return
        # A few rows at a time: their entries stay in the cache from one column to the next.
        for start in range(0, self.shape[0], _GATHER_ROWS):
            rows = slice(start, start + _GATHER_ROWS)
            out[places, rows] = self._a[rows].T[support]

    def restrict_rows(self, rows: IntArray) -> Design:
        if rows.size and rows[-1] - rows[0] + 1 == rows.size:  # contiguous: no copy
            return DenseDesign(self._a[rows[0] : rows[-1] + 1])
        return DenseDesign(self._a[rows])

    def gram(self, h: FloatArray | None = None) -> FloatArray:
        a, (n, p) = self._a, self.shape
        signed = h is not None and not np.all(h >= 0.0)
        if h is not None and not signed:
            significant = self._significant(a, h)
            if significant is not None:
                return significant
        roots = None if h is None or signed else np.sqrt(h)

        def block(rows: slice) -> FloatArray:
            some = (None if v is None else v[rows] for v in (h, roots))
            return _gram(a[rows].astype(np.float64, copy=False), *some)

        size = max(p, rows_of_a_block(p))
        parts = [slice(start, start + size) for start in range(0, n, size)]
        if p <= _NARROW:
            return sum(each(block, parts, operations=2.0 * a.size * p), np.zeros((p, p)))
        return sum(map(block, parts), np.zeros((p, p)))

    @staticmethod
    def _significant(a: NDArray[Any], h: FloatArray) -> FloatArray | None:
        """Return the Gram matrix of the rows that matter, where they are few; else None.

        What is left out changes no entry by more than the rounding of the smallest diagonal one.
        Weights fall off exponentially where classes are nearly separable.
        """
        matter = h > _FAINT * h.max(initial=0.0)
        if np.count_nonzero(matter) > 0.5 * h.size:
            return None
        scaled = np.sqrt(h[matter])[:, None] * a[matter]
        out = cross_product(scaled)
        lost = float(np.sum(np.where(matter, 0.0, h) @ np.square(a)))
        rounding = float(np.finfo(np.float64).eps * np.diag(out).min(initial=np.inf))
        return out if lost <= rounding else None

    def to_array(self) -> FloatArray:
        return self._a.astype(np.float64)

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        n = self.shape[0]
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            yield rows, self._a[rows].astype(np.float64, copy=False)

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        if h is None and self._a.dtype == np.float64:
            return np.asarray(np.einsum("ij,ij->j", self._a, self._a))
        if h is not None and (few := self._few(h)) is not None:
            return self._sum_of_rows(few, lambda some, block: h[some] @ _squared(block))
        return _square_norms(self._a, np.ones(self.shape[0]) if h is None else h)

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        sample = self._a[:: max(1, self.shape[0] // rows)]
        return _square_norms(sample, np.full(sample.shape[0], 1.0 / max(sample.shape[0], 1)))

    def spectral_norm(self) -> NormBound:
        n, p = self.shape
        if min(n, p) <= 64 or n * p * min(n, p) <= _EXACT_NORM:
            a = self._a.astype(np.float64, copy=False)
            return NormBound(float(np.linalg.norm(a, 2)) if a.size else 0.0, "exact")
        return super().spectral_norm()


def columns_again(
    read: Callable[[IntArray], FloatArray], support: IntArray, last: IntArray, restricted: Design
) -> DenseDesign:
    """Return the design of the columns ``support``, those of ``last`` taken from ``restricted``.

    ``read`` returns columns as rows of a float64 array; it is asked for those that are new.
    """
    known = np.isin(support, last, assume_unique=True)
    if not isinstance(restricted, DenseDesign) or not known.any():
        return DenseDesign(read(support).T)
    if known.all() and support.size == last.size:
        return restricted
    out = np.empty((support.size, restricted.shape[0]))
    out[known] = restricted.array.T[np.searchsorted(last, support[known])]
    out[~known] = read(support[~known])
    return DenseDesign(out.T)


@final
class DenseColumns(Design):
    """Most columns of a dense matrix, left where they are: a copy would be as large as the data."""

    def __init__(self, design: DenseDesign, columns: IntArray) -> None:
        self._design, self._columns = design, columns

    @property
    def inner(self) -> DenseDesign:
        """Return the design whose columns these are."""
        return self._design

    @property
    def columns(self) -> IntArray:
        """Return which columns they are, sorted."""
        return self._columns

    @property
    def shape(self) -> tuple[int, int]:
        return self._design.shape[0], int(self._columns.size)

    @property
    def access(self) -> Access:
        return self._design.access

    def describe(self) -> str:
        return f"{self._columns.size} columns of {self._design.describe()}"

    def matvec(self, x: FloatArray) -> FloatArray:
        return self._design.matvec(self._scattered(x))

    def rmatvec(self, r: FloatArray) -> FloatArray:
        return np.asarray(self._design.rmatvec(r)[self._columns])

    def matvec_in_double(self, x: FloatArray) -> FloatArray:
        return self._design.matvec_in_double(self._scattered(x))

    def rmatvec_in_double(self, r: FloatArray) -> FloatArray:
        return np.asarray(self._design.rmatvec_in_double(r)[self._columns])

    def _scattered(self, x: FloatArray) -> FloatArray:
        full = np.zeros((self._design.shape[1], *x.shape[1:]))
        full[self._columns] = x
        return full

    def restrict(self, support: IntArray) -> Design:
        return self._design.restrict(self._columns[support])

    def restrict_again(self, support: IntArray, last: IntArray, restricted: Design) -> Design:
        columns = self._columns
        return self._design.restrict_again(columns[support], columns[last], restricted)

    def restrict_rows(self, rows: IntArray) -> Design:
        return DenseDesign(self._design.array[rows][:, self._columns])

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        for rows, block in self._design.row_blocks(size):
            yield rows, block[:, self._columns]

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        return np.asarray(self._design.column_square_norms(h)[self._columns])


def _tiles(a: NDArray[Any]) -> Iterator[tuple[slice, slice]]:
    """Yield places of tiles that are long in memory and stay in the cache in float64."""
    by_rows = abs(a.strides[0]) >= abs(a.strides[1])
    long = max(1, min(a.shape[by_rows], _LONG))
    rows, columns = (_TILE // long, long) if by_rows else (long, _TILE // long)
    for i in range(0, a.shape[0], rows):
        for j in range(0, a.shape[1], columns):
            yield slice(i, i + rows), slice(j, j + columns)


def _square_norms(a: NDArray[Any], h: FloatArray) -> FloatArray:
    """Return ``h @ a**2``, multiplied and added up in float64."""
    out = np.zeros(a.shape[1])
    for rows, columns in _tiles(a):
        tile = a[rows, columns].astype(np.float64)
        out[columns] += h[rows] @ np.square(tile, out=tile)
    return out


def _in_double(a: NDArray[Any], x: FloatArray) -> FloatArray:
    """Return ``a @ x`` of single precision entries, multiplied and added up in float64."""
    out = np.zeros((a.shape[0], *x.shape[1:]))
    for rows, columns in _tiles(a):
        out[rows] += a[rows, columns].astype(np.float64) @ x[columns]
    return out


def _gram(a: FloatArray, h: FloatArray | None, roots: FloatArray | None) -> FloatArray:
    """Return ``a.T @ diag(h) @ a``; with the roots of ``h`` by one symmetric product (syrk)."""
    if h is None:
        return cross_product(a)
    if roots is None:
        return cross_product(a, h[:, None] * a)
    return cross_product(roots[:, None] * a)


def _squared(block: NDArray[Any]) -> FloatArray:
    """Return the squares in float64, in place where that is the precision."""
    wide = block.astype(np.float64, copy=False)
    return np.square(wide, out=wide)
