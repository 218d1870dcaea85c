"""A design in files, mapped or decoded block by block so that it need not fit in memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Hashable, Iterator
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sparsemodel.designs.dense import DenseDesign
from sparsemodel.designs.remote.columns import ReadColumns
from sparsemodel.designs.tables import parquet
from sparsemodel.designs.tables.parquet import ParquetRows
from sparsemodel.interfaces import Access, Design, FloatArray, IntArray
from sparsemodel.interfaces.design import FAR_BLOCK_BYTES, RestrictedDesign, rows_of_a_block
from sparsemodel.progress import counted
from sparsemodel.threads import cross_product, product

COLUMN_BYTES = 2**29
"""Columns of supports and of proofs are kept in memory as float64 up to this size (512 MB)."""


@final
class ChunkedDesign(Design):
    """A design over a :class:`numpy.memmap` or Parquet files, without ever holding all of it.

    Products read the file once, front to back, in blocks of ``block_bytes``; the operating system
    is asked for the next block while one is multiplied, and to take each back afterwards, so the
    resident memory stays near two blocks whatever the size of the file. float64 and float32 are
    multiplied as they are, other types are converted a block at a time; sums over blocks are in
    float64.

    Parameters
    ----------
    array
        Two-dimensional, of real numbers; or rows of Parquet files
        (:class:`~sparsemodel.designs.tables.parquet.ParquetRows`). In row-major files the columns
        of a support are gathered in one reading (half a pass) and then kept; column-major files are
        read column by column, which makes supports cheap and rows expensive.
    block_bytes, column_bytes
        Sizes of what is held in memory. Supports whose columns exceed ``column_bytes`` are not
        gathered: every product with them reads the file.

    Notes
    -----
    ``bytes_read`` counts what has been looked at; divided by ``nbytes`` it is the number of
    readings, two of which make a pass.
    """

    def __init__(
        self,
        array: NDArray[Any] | ParquetRows,
        *,
        block_bytes: int = FAR_BLOCK_BYTES,
        column_bytes: int = COLUMN_BYTES,
    ) -> None:
        self._a: Any = array  # rows of Parquet files are sliced like an array
        self._block_bytes = block_bytes
        self._column_bytes = column_bytes
        self._by_columns = abs(array.strides[0]) < abs(array.strides[1])
        self._native = array.dtype in (np.float64, np.float32) and array.dtype.isnative
        self._pages = _Pages(array)
        self._read = 0
        self._columns = ReadColumns(self._read_columns)

    def __reduce__(self) -> Any:
        """A mapping stays in its process: pickled entries of a memory map are an array."""
        return _unpickled, (self._a, self._block_bytes, self._column_bytes)

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self._a.shape
        return int(n), int(p)

    @property
    def array(self) -> Any:
        """Return the mapped array or the rows of Parquet files, by reference."""
        return self._a

    @property
    def names(self) -> tuple[str, ...] | None:
        return getattr(self._a, "names", None)

    @property
    def access(self) -> Access:
        return Access.PRODUCTS | (Access.COLUMNS if self._by_columns else Access.ROWS)

    @property
    def nbytes(self) -> int | None:
        return int(self._a.nbytes)

    @property
    def stamp(self) -> Hashable | None:
        if isinstance(self._a, ParquetRows):
            return self._a.stamp
        name = getattr(self._a, "filename", None)
        if name is None or getattr(self._a, "mode", "") != "r":
            return None
        try:
            found = os.stat(name)
        except OSError:
            return None
        times = found.st_mtime_ns, found.st_ctime_ns  # the second cannot be set back
        return found.st_dev, found.st_ino, found.st_size, *times

    @property
    def bytes_read(self) -> int:
        return self._a.bytes_read if isinstance(self._a, ParquetRows) else self._read

    def describe(self) -> str:
        n, p = self.shape
        order = "column-major" if self._by_columns else "row-major"
        size = f"{self._a.nbytes / 2**30:.2g} GB" if self._a.nbytes >= 2**27 else "small"
        held = "Parquet" if isinstance(self._a, ParquetRows) else "memory-mapped"
        return f"{held} {self._a.dtype.name} {n} x {p} ({order}, {size}, read in blocks)"

    # ---- products ----------------------------------------------------------------------------

    def matvec(self, x: FloatArray) -> FloatArray:
        n, p = self.shape
        v = self._vector(x)
        out = np.zeros((n, *x.shape[1:]))
        if self._by_columns:
            used = np.flatnonzero(x if x.ndim == 1 else np.any(x != 0.0, axis=1))
            if 2 * used.size < p:  # a sparse vector reads the columns it needs
                for some, block in self._gathered(used):
                    out += block @ x[some]
                return out
            for columns, block in self._blocks():
                out += product(block, v[columns])
            return out
        for rows, block in self._blocks():
            out[rows] = product(block, v)
        return out

    def matvec_in_double(self, x: FloatArray) -> FloatArray:
        if self._a.dtype != np.float32:
            return self.matvec(x)
        if self._by_columns:
            out = np.zeros((self.shape[0], *x.shape[1:]))
            for columns, block in self._blocks():
                out += block.astype(np.float64) @ x[columns]
            return out
        size = rows_of_a_block(self.shape[1], self._block_bytes)
        return np.concatenate([block @ x for _, block in self.row_blocks(size)])

    def rmatvec_in_double(self, r: FloatArray) -> FloatArray:
        if self._a.dtype != np.float32 or not self._by_columns:
            return super().rmatvec_in_double(r)
        parts = [block.astype(np.float64).T @ r for _, block in self._blocks()]
        return np.concatenate(parts) if parts else np.zeros((0, *r.shape[1:]))

    def rmatvec(self, r: FloatArray) -> FloatArray:
        v = self._vector(r)
        out = np.zeros((self.shape[1], *r.shape[1:]))
        for part, block in self._blocks():
            if self._by_columns:
                out[part] = product(block.T, v)
            else:
                out += product(block.T, v[part])
        return out

    # ---- parts -------------------------------------------------------------------------------

    def restrict(self, support: IntArray) -> Design:
        return self.restrict_again(support, support[:0], self)

    def restrict_again(self, support: IntArray, last: IntArray, restricted: Design) -> Design:
        """Return the columns, from ``restricted`` or others that are kept where these have them."""
        if 8 * self.shape[0] * support.size > self._column_bytes:
            return RestrictedDesign(self, support)
        return self._columns.restrict(support, last, restricted, self.stamp)

    def forget(self) -> None:
        """Read columns again, even those that are still in use."""
        self._columns.forget()
        if isinstance(self._a, ParquetRows):
            self._a.forget()

    def _read_columns(self, support: IntArray) -> FloatArray:
        """Return the columns as rows of a float64 array; one reading of a row-major file."""
        out = np.empty((support.size, self.shape[0]))
        if not support.size:
            return out
        if self._by_columns:
            for place, column in enumerate(support):
                out[place] = self._a[:, column]
                self._pages.release(self._a[:, column])
            self._read += support.size * self.shape[0] * self._a.itemsize
            return out
        for rows, block in self._blocks(convert=False):
            out[:, rows] = np.take(block, support, axis=1).T
        return out

    def restrict_rows(self, rows: IntArray) -> Design:
        block = np.asarray(self._a[rows])
        self._read += block.nbytes
        return DenseDesign(block if self._native else block.astype(np.float64))

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        n = self.shape[0]
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            part = self._a[rows]
            block = np.array(part, dtype=np.float64)
            self._read += part.nbytes
            if not self._by_columns:
                self._pages.release(part)
            yield rows, block
        if self._by_columns:
            self._pages.release(self._a)

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        out = np.zeros(self.shape[1])
        sums = "ij,ij->j" if h is None else "ij,ij,i->j"
        for part, block in self._blocks():
            rows = h if h is None or self._by_columns else h[part]
            operands = (block, block) if rows is None else (block, block, rows)
            squares = np.einsum(sums, *operands, dtype=np.float64)  # without a copy in float64
            if self._by_columns:
                out[part] = squares
            else:
                out += squares
        return out

    def gram(self, h: FloatArray | None = None) -> FloatArray:
        p = self.shape[1]
        out = np.zeros((p, p))
        size = rows_of_a_block(p, self._block_bytes)
        for rows, block in self.row_blocks(size):
            out += cross_product(block, None if h is None else h[rows, None] * block)
        return out

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        if self._by_columns:
            return None
        if isinstance(self._a, ParquetRows) and self._a.nbytes > parquet.KEPT_BYTES:
            return np.asarray(np.mean(np.square(self._a.sample(rows), dtype=np.float64), axis=0))
        sample = np.array(self._a[:: max(1, self.shape[0] // rows)], dtype=np.float64)
        self._read += sample.size * self._a.itemsize
        self._pages.release(self._a)
        return np.asarray(np.mean(np.square(sample), axis=0))

    # ---- blocks of the file ------------------------------------------------------------------

    def _blocks(self, *, convert: bool = True) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield slices along the slow axis with their block; what was read is given back."""
        axis = 1 if self._by_columns else 0
        length, width = self._a.shape[axis], self._a.shape[1 - axis]
        step = max(1, self._block_bytes // max(1, width * self._a.itemsize))
        parts = [slice(s, min(s + step, length)) for s in range(0, length, step)]
        for part, following in zip(counted(parts, "block"), [*parts[1:], None], strict=True):
            if following is not None and self._pages.used:
                self._pages.fetch(self._view(following))
            view = self._view(part)
            block = np.asarray(view)
            yield part, block if self._native or not convert else block.astype(np.float64)
            self._read += view.nbytes
            self._pages.release(view)

    def _view(self, part: slice) -> NDArray[Any]:
        found: NDArray[Any] = self._a[:, part] if self._by_columns else self._a[part]
        return found

    def _gathered(self, columns: IntArray) -> Iterator[tuple[IntArray, NDArray[Any]]]:
        """Yield groups of single columns of a column-major file, copied side by side."""
        size = rows_of_a_block(self.shape[0], self._block_bytes)
        for start in range(0, columns.size, size):
            group = columns[start : start + size]
            yield group, self._read_columns(group).T

    def _vector(self, x: FloatArray) -> NDArray[Any]:
        return x.astype(self._a.dtype, copy=False) if self._native else x


def _unpickled(array: Any, block_bytes: int, column_bytes: int) -> ChunkedDesign:
    return ChunkedDesign(array, block_bytes=block_bytes, column_bytes=column_bytes)


class _Pages:
    """Asks the operating system to fetch pages of a mapping early and to take them back."""

    def __init__(self, array: Any) -> None:
        mapping = getattr(array, "_mmap", None)
        # A copy-on-write mapping would lose the caller's changes with its pages.
        usable = isinstance(mapping, mmap.mmap) and getattr(array, "mode", "c") != "c"
        usable = usable and hasattr(mmap, "MADV_DONTNEED")
        self._mapping: Any = mapping if usable else None
        self._start = 0
        if self._mapping is not None:
            self._start = np.frombuffer(self._mapping, dtype=np.uint8).ctypes.data

    @property
    def used(self) -> bool:
        """Return whether the system is asked."""
        return self._mapping is not None

    def fetch(self, view: NDArray[Any]) -> None:
        self._advise("MADV_WILLNEED", view)

    def release(self, view: NDArray[Any]) -> None:
        self._advise("MADV_DONTNEED", view)

    def _advise(self, name: str, view: NDArray[Any]) -> None:
        if self._mapping is None or not view.size:
            return
        low = int(view.__array_interface__["data"][0])
        spans = [(m - 1) * stride for m, stride in zip(view.shape, view.strides, strict=True)]
        high = low + view.itemsize + sum(span for span in spans if span > 0)
        low += sum(span for span in spans if span < 0)
        first = (low - self._start) // mmap.PAGESIZE * mmap.PAGESIZE
        self._mapping.madvise(getattr(mmap, name), first, high - self._start - first)
