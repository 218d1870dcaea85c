"""What a design is: the linear map from coefficients to predictions, and who owns the storage.

A design hides format, precision, storage and distribution. Solvers hand it float64 vectors and
get float64 vectors back; a float32 or memory-mapped design converts the vector, never itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from enum import Flag, auto
from typing import Literal, final

import numpy as np

from sparsemodel.interfaces.numeric import FloatArray, IntArray

_PAIR, _NUMBER = 40.0, 100.0
"""What the product of two stored entries costs, and a number of a Gram matrix that is written and
copied, in operations of a product of matrices."""

BLOCK_BYTES = 2**22
"""Rows are converted to float64 in blocks of about this size, which stay in the cache."""


FAR_BLOCK_BYTES = 2**26
"""The same for rows of a file, or on another device (64 MB): large against a seek, small in memory.
"""


def rows_of_a_block(columns: int, size: int = BLOCK_BYTES) -> int:
    """Return how many rows of so many numbers in float64 a block of ``size`` bytes has."""
    return max(1, size // (8 * max(columns, 1)))


class Access(Flag):
    """How a design can be read at a cost proportional to what is read."""

    PRODUCTS = auto()
    """``A @ x`` and ``A.T @ r``; every design has them."""
    COLUMNS = auto()
    """A few columns cost a few columns, not a full product each."""
    ROWS = auto()
    """A block of rows costs a block of rows (stochastic methods need it)."""
    DISTRIBUTED = auto()
    """Some of its rows are held by workers, next to which products are computed."""
    DEVICE = auto()
    """Some of its entries are another library's: products are computed where they are."""
    MEMORY = PRODUCTS | COLUMNS | ROWS
    """What an array in memory offers."""


@final
@dataclass(frozen=True, slots=True)
class NormBound:
    """A number in place of a spectral norm, and how it relates to the true value."""

    value: float
    kind: Literal["exact", "upper", "estimate"]
    """``"upper"``: never below the truth. ``"estimate"``: from an iteration, may be below."""


class Design(ABC):
    r"""A linear map ``x -> A x`` of shape ``(n, p)``.

    Only :meth:`matvec` and :meth:`rmatvec` are required; the rest has defaults built on them,
    which a format overrides where it can do better. ``x`` may be ``(p,)`` or ``(p, m)``.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Return ``(n, p)``: observations, coordinates."""

    @property
    def access(self) -> Access:
        """Return what is cheap to read."""
        return Access.PRODUCTS

    @property
    def entries(self) -> int:
        """Return how many numbers a product reads, for example the stored entries."""
        n, p = self.shape
        return n * p

    @property
    def nbytes(self) -> int | None:
        """Return the bytes its numbers take, in memory or on disk; None where that is not known."""
        return None

    @property
    def product_seconds(self) -> float:
        """Return the measured time of a product, 0 where its cost follows from its size."""
        return 0.0

    @property
    def gram_operations(self) -> float:
        """Return about how many operations, of a product of matrices, :meth:`gram` takes.

        Rows that hold about as many entries each are taken for granted.
        """
        n, p = self.shape
        pairs = float(self.entries) ** 2 / max(n, 1)
        return min(2.0 * n * p * p, _PAIR * pairs + _NUMBER * p * p)

    @property
    def sums(self) -> int:
        """Return the number of summands in a column's products, which bounds their rounding errors.

        More than there are rows where these stand for others.
        """
        return self.shape[0]

    @property
    def stamp(self) -> Hashable | None:
        """Return a value that differs once the stored data have changed, without reading them.

        None where that cannot be known: an array in memory, a file that may be written to.
        """
        return None

    @property
    def streamed(self) -> bool:
        """Return whether rows are read from files here, where a column costs all of them."""
        access = self.access
        elsewhere = Access.COLUMNS in access or Access.DISTRIBUTED in access
        return Access.ROWS in access and not elsewhere

    @property
    def bytes_read(self) -> int | None:
        """Return how many bytes were read from storage so far; 0 for what is in memory.

        None where that is not known here: workers load the rows, or products are all there is.
        """
        return 0

    @property
    def names(self) -> tuple[str, ...] | None:
        """Return the names of the columns, where the source of the data had some."""
        return None

    @abstractmethod
    def matvec(self, x: FloatArray) -> FloatArray:
        """Return ``A @ x``."""

    @abstractmethod
    def rmatvec(self, r: FloatArray) -> FloatArray:
        """Return ``A.T @ r``."""

    def rmatvec_in_double(self, r: FloatArray) -> FloatArray:
        """Return ``A.T @ r`` of the same entries, multiplied and added up in float64.

        Bounds rest on it. The default reads blocks of rows; without ``Access.ROWS`` it is
        :meth:`rmatvec`, taken on trust. Override it where the entries are elsewhere.
        """
        if Access.ROWS not in self.access:
            return self.rmatvec(r)
        out = np.zeros((self.shape[1], *r.shape[1:]))
        for rows, block in self.row_blocks(self._rows_at_once):
            out += block.T @ r[rows]
        return out

    def matvec_in_double(self, x: FloatArray) -> FloatArray:
        """Return ``A @ x`` of the same entries, multiplied and added up in float64.

        The default is :meth:`matvec`; formats that multiply in single precision override it.
        """
        return self.matvec(x)

    def describe(self) -> str:
        """Return a few words for ``explain()``, for example ``"dense float64 38 x 3051"``."""
        n, p = self.shape
        return f"{type(self).__name__} {n} x {p}"

    def __repr__(self) -> str:
        return f"<{self.describe()}>"

    def restrict(self, support: IntArray) -> Design:
        """Return the design of the columns in ``support`` (sorted, distinct), in that order.

        Where ``Access.COLUMNS`` is set its products cost O(n |support|); the default scatters
        into a full vector and pays a full product.
        """
        return RestrictedDesign(self, support)

    def restrict_again(self, support: IntArray, last: IntArray, restricted: Design) -> Design:
        """Return ``restrict(support)``, given that ``restricted == restrict(last)``.

        A format may copy the columns both supports share instead of reading them again.
        """
        return self.restrict(support)

    def restrict_rows(self, rows: IntArray) -> Design:
        """Return the design of the observations ``rows`` (sorted, distinct), in that order.

        Where ``Access.ROWS`` is set its products cost those rows; the default pays full products.
        """
        return RestrictedRows(self, rows)

    def gram(self, h: FloatArray | None = None) -> FloatArray:
        """Return ``A.T @ diag(h) @ A`` (``h`` of ones when None), shape ``(p, p)``.

        Meant for restricted designs, where ``p`` is the size of a support. What is
        :attr:`streamed` is read once.
        """
        p = self.shape[1]
        out = np.zeros((p, p))
        if self.streamed:
            for rows, block in self.row_blocks(self._rows_at_once):
                out += block.T @ (block if h is None else h[rows, None] * block)
            return out
        unit = np.zeros(p)
        for j in range(p):
            unit[j] = 1.0
            column = self.matvec_in_double(unit)
            out[j] = self.rmatvec_in_double(column if h is None else h * column)
            unit[j] = 0.0
        return (out + out.T) / 2.0

    def gram_rows(self, rows: IntArray, h: FloatArray | None = None) -> FloatArray:
        """Return some rows of :meth:`gram`, shape ``(len(rows), p)``."""
        columns = self.restrict(rows).to_array()
        if h is not None:
            columns *= h[:, None]
        if rows.size == 1:  # a product with a vector is quicker than with one column
            return self.rmatvec(columns[:, 0])[None]
        return self.rmatvec(columns).T

    def to_array(self) -> FloatArray:
        """Return the entries, shape ``(n, p)``. Meant for restricted designs (O(n |support|))."""
        return self.matvec(np.eye(self.shape[1]))

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        """Yield ``(rows, A[rows])`` in order, dense float64 blocks of at most ``size`` rows."""
        n = self.shape[0]
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            indicator = np.zeros((n, rows.stop - rows.start))
            indicator[np.arange(rows.start, rows.stop), np.arange(rows.stop - rows.start)] = 1.0
            yield rows, self.rmatvec(indicator).T

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        """Return ``sum_i h_i A_ij^2`` for every column ``j`` (``h`` of ones when None)."""
        out = np.zeros(self.shape[1])
        for rows, block in self.row_blocks(self._rows_at_once):
            weights = np.ones(rows.stop - rows.start) if h is None else h[rows]
            out += weights @ np.square(block)
        return out

    @property
    def _rows_at_once(self) -> int:
        cheap = Access.ROWS in self.access
        return rows_of_a_block(self.shape[1]) if cheap else 64

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        """Return every column's mean square, estimated from about ``rows`` rows spread evenly.

        May return the exact values where they are as cheap; None when rows cannot be read.
        """
        return None

    def spectral_norm(self) -> NormBound:
        """Return ``||A||_2``, a bound on it or an estimate; the result says which.

        The default runs a power iteration and labels its result an estimate (from below).
        """
        rng = np.random.default_rng(0)
        v = rng.standard_normal(self.shape[1])
        sigma = 0.0
        for _ in range(50):
            norm = float(np.linalg.norm(v))
            if norm == 0.0:
                return NormBound(0.0, "estimate")
            v = self.rmatvec(self.matvec(v / norm))
            last, sigma = sigma, float(np.sqrt(np.linalg.norm(v)))
            if abs(sigma - last) <= 1e-4 * sigma:
                break
        return NormBound(sigma, "estimate")

    def first_nonfinite(self) -> tuple[int, int] | None:
        """Return ``(row, column)`` of the first NaN or infinite entry in reading order, or None.

        Without ``Access.ROWS``: the first row and the first column that hold one, by a product
        each with a vector of ones.
        """
        if Access.ROWS not in self.access:
            n, p = self.shape
            with np.errstate(invalid="ignore"):
                row = np.flatnonzero(~np.isfinite(self.matvec(np.ones(p))))
                column = np.flatnonzero(~np.isfinite(self.rmatvec(np.ones(n))))
            return (int(row[0]), int(column[0])) if row.size and column.size else None
        for rows, block in self.row_blocks(64):
            bad = np.argwhere(~np.isfinite(block))
            if bad.size:
                return int(bad[0, 0]) + rows.start, int(bad[0, 1])
        return None


@final
class RestrictedDesign(Design):
    """Columns of a design that only has products: scatter, then multiply."""

    def __init__(self, design: Design, support: IntArray) -> None:
        self._design = design
        self._support = support

    @property
    def inner(self) -> Design:
        """Return the design whose columns these are."""
        return self._design

    @property
    def shape(self) -> tuple[int, int]:
        return self._design.shape[0], int(self._support.size)

    @property
    def access(self) -> Access:
        return self._design.access & ~Access.COLUMNS

    @property
    def product_seconds(self) -> float:
        return self._design.product_seconds

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        for rows, block in self._design.row_blocks(size):
            yield rows, block[:, self._support]

    def matvec(self, x: FloatArray) -> FloatArray:
        if not np.any(x):  # nothing to be read
            return np.zeros((self.shape[0], *x.shape[1:]))
        full = np.zeros((self._design.shape[1], *x.shape[1:]))
        full[self._support] = x
        return self._design.matvec_in_double(full)  # as columns that are kept are in double

    def rmatvec(self, r: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self._design.rmatvec(r)[self._support])

    def rmatvec_in_double(self, r: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self._design.rmatvec_in_double(r)[self._support])

    def spectral_norm(self) -> NormBound:
        """Return the norm of the whole design, which is no smaller."""
        whole = self._design.spectral_norm()
        return NormBound(whole.value, "estimate" if whole.kind == "estimate" else "upper")

    @property
    def _rows_at_once(self) -> int:
        return self._design._rows_at_once


@final
class RestrictedRows(Design):
    """Rows of a design that only has products: multiply, then pick."""

    def __init__(self, design: Design, rows: IntArray) -> None:
        self._design = design
        self._rows = rows

    @property
    def inner(self) -> Design:
        """Return the design whose rows these are."""
        return self._design

    @property
    def shape(self) -> tuple[int, int]:
        return int(self._rows.size), self._design.shape[1]

    @property
    def product_seconds(self) -> float:
        return self._design.product_seconds

    def matvec(self, x: FloatArray) -> FloatArray:
        return np.ascontiguousarray(self._design.matvec(x)[self._rows])

    def rmatvec(self, r: FloatArray) -> FloatArray:
        full = np.zeros((self._design.shape[0], *r.shape[1:]))
        full[self._rows] = r
        return self._design.rmatvec(full)
