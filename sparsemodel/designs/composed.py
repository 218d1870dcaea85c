"""Designs made of other designs without touching their storage."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import final

import numpy as np

from sparsemodel.designs.dense import DenseDesign
from sparsemodel.designs.elsewhere import grams
from sparsemodel.designs.elsewhere.foreign import ForeignDesign, is_elsewhere
from sparsemodel.designs.sparse import SparseDesign
from sparsemodel.interfaces import Access, Design, FloatArray, IntArray
from sparsemodel.interfaces.numeric import known_sum, rowwise, viewed

_SPARSE = 0.2
"""Share of nonzero entries up to which centred columns lose no digits to their means."""
_ENTRIES = 2**19
"""Entries of a block of rows whose means are taken off (4 MB)."""


@final
class StackedDesign(Design):
    """Designs side by side: each block acts on its own sorted set of coordinates.

    Coordinates that no block acts on have a zero column. Blocks may share coordinates.
    """

    def __init__(self, n: int, p: int, blocks: tuple[tuple[IntArray, Design], ...]) -> None:
        self._n, self._p, self._blocks = n, p, blocks

    @property
    def shape(self) -> tuple[int, int]:
        return self._n, self._p

    @property
    def names(self) -> tuple[str, ...] | None:
        """Return the names of the columns, empty ones for a block without names."""
        named = {int(j): n for i, d in self._blocks for j, n in zip(i, d.names or (), strict=False)}
        return tuple(named.get(j, "") for j in range(self._p)) if named else None

    @property
    def access(self) -> Access:
        every = {design.access for _, design in self._blocks}
        if every == {Access.MEMORY}:  # most often, and flags are slow to combine
            return Access.MEMORY
        cheap, held = Access.MEMORY, Access(0)
        for access in every:
            cheap &= access
            held |= access & (Access.DISTRIBUTED | Access.DEVICE)
        return cheap | held

    @property
    def entries(self) -> int:
        return sum(design.entries for _, design in self._blocks)

    @property
    def nbytes(self) -> int | None:
        return known_sum(design.nbytes for _, design in self._blocks)

    @property
    def sums(self) -> int:
        return max([self._n, *(design.sums for _, design in self._blocks)])

    @property
    def stamp(self) -> Hashable | None:
        stamps = [design.stamp for _, design in self._blocks]
        return None if None in stamps else tuple(stamps)

    @property
    def bytes_read(self) -> int | None:
        return known_sum(design.bytes_read for _, design in self._blocks)

    @property
    def product_seconds(self) -> float:
        return sum(design.product_seconds for _, design in self._blocks)

    @property
    def blocks(self) -> tuple[tuple[IntArray, Design], ...]:
        """Return the blocks with the coordinates they act on."""
        return self._blocks

    def describe(self) -> str:
        return " + ".join(design.describe() for _, design in self._blocks) or "empty design"

    def matvec(self, x: FloatArray) -> FloatArray:
        out = np.zeros((self._n, *x.shape[1:]))
        for index, design in self._blocks:
            out += design.matvec(x[index])
        return out

    def matvec_in_double(self, x: FloatArray) -> FloatArray:
        out = np.zeros((self._n, *x.shape[1:]))
        for index, design in self._blocks:
            out += design.matvec_in_double(x[index])
        return out

    def rmatvec(self, r: FloatArray) -> FloatArray:
        out = np.zeros((self._p, *r.shape[1:]))
        for index, design in self._blocks:
            out[viewed(index)] += design.rmatvec(r)
        return out

    def rmatvec_in_double(self, r: FloatArray) -> FloatArray:
        out = np.zeros((self._p, *r.shape[1:]))
        for index, design in self._blocks:
            out[index] += design.rmatvec_in_double(r)
        return out

    def restrict(self, support: IntArray) -> Design:
        blocks = []
        for index, design in self._blocks:
            place = np.searchsorted(index, support)
            outer = np.flatnonzero(index[np.minimum(place, index.size - 1)] == support)
            if outer.size:
                blocks.append((outer, design.restrict(place[outer])))
        return StackedDesign(self._n, int(support.size), tuple(blocks))

    def restrict_rows(self, rows: IntArray) -> Design:
        blocks = tuple((index, design.restrict_rows(rows)) for index, design in self._blocks)
        return StackedDesign(int(rows.size), self._p, blocks)

    def gram(self, h: FloatArray | None = None) -> FloatArray:
        if self.streamed:
            return super().gram(h)
        return grams.gram_of_blocks(self._blocks, self._p, h)

    def gram_rows(self, rows: IntArray, h: FloatArray | None = None) -> FloatArray:
        if is_elsewhere(self):
            return grams.rows_of_blocks(self._blocks, self._p, rows, h)
        return super().gram_rows(rows, h)

    def to_array(self) -> FloatArray:
        out = np.zeros((self._n, self._p), order="F")  # as restricted columns are
        for index, design in self._blocks:
            out[:, viewed(index)] += design.to_array()
        return out

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        readers = [(viewed(index), design.row_blocks(size)) for index, design in self._blocks]
        alone = sum(index.size for index, _ in self._blocks) == self._p and not self.overlapping
        for start in range(0, self._n, size):
            rows = slice(start, min(start + size, self._n))
            out = (np.empty if alone else np.zeros)((rows.stop - rows.start, self._p))
            for index, reader in readers:
                part = next(reader)[1]
                out[:, index] = part if alone else out[:, index] + part
            yield rows, out

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        if self.overlapping:
            return super().column_square_norms(h)
        out = np.zeros(self._p)
        for index, design in self._blocks:
            out[index] = design.column_square_norms(h)
        return out

    @property
    def overlapping(self) -> bool:
        """Return whether blocks share coordinates: those add up before they are squared."""
        index = np.concatenate([np.empty(0, np.intp), *(index for index, _ in self._blocks)])
        return index.size > 0 and int(np.bincount(index).max()) > 1

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        if self.overlapping:
            return None
        out = np.zeros(self._p)
        for index, design in self._blocks:
            sample = design.sampled_square_norms(rows)
            if sample is None:
                return None
            out[index] += sample
        return out

    def first_nonfinite(self) -> tuple[int, int] | None:
        found = [(index, at) for index, d in self._blocks if (at := d.first_nonfinite())]
        return min(((row, int(index[j])) for index, (row, j) in found), default=None)


@final
class TransformedDesign(Design):
    r"""Selected, centred and scaled columns of a design, kept implicit:
    :math:`(A_{:,S} - 1 m^\top)\,\mathrm{diag}(d)`.

    The reductions of the compiler make these; the user's array is never copied. Products with
    the means are taken off the others', or, ``explicit``, the means off blocks of rows that are
    then multiplied: slower, with no digit lost where the means are large.
    """

    def __init__(
        self,
        design: Design,
        *,
        select: IntArray | None = None,
        means: FloatArray | None = None,
        scale: FloatArray | None = None,
        explicit: bool = False,
    ) -> None:
        self._design, self._explicit = design, explicit
        self.select, self._means, self._scale = select, means, scale

    @property
    def scale(self) -> FloatArray | None:
        """Return what columns are multiplied by; None for ones."""
        return self._scale

    @property
    def inner(self) -> Design:
        """Return the design that is transformed."""
        return self._design

    @property
    def only_scaled(self) -> bool:
        """Return whether all columns are there, and are not centred."""
        return self.select is None and self._means is None

    def over(self, design: Design) -> TransformedDesign:
        """Return the same transformation of another design with as many columns."""
        return TransformedDesign(
            design,
            select=self.select,
            means=self._means,
            scale=self._scale,
            explicit=self._explicit,
        )

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self._design.shape
        return n, p if self.select is None else int(self.select.size)

    @property
    def access(self) -> Access:
        return self._design.access

    @property
    def entries(self) -> int:
        return self._design.entries

    @property
    def product_seconds(self) -> float:
        return self._design.product_seconds

    @property
    def nbytes(self) -> int | None:
        return self._design.nbytes

    @property
    def stamp(self) -> Hashable | None:
        found = self._design.stamp
        parts = (self.select, self._means, self._scale)
        own = tuple(None if part is None else part.tobytes() for part in parts)
        return None if found is None else (found, own, self._explicit)

    @property
    def bytes_read(self) -> int | None:
        return self._design.bytes_read

    def describe(self) -> str:
        return self._design.describe()

    def matvec(self, x: FloatArray) -> FloatArray:
        return self._multiplied(self._design.matvec, x)

    def matvec_in_double(self, x: FloatArray) -> FloatArray:
        return self._multiplied(self._design.matvec_in_double, x)

    def _multiplied(
        self, multiply: Callable[[FloatArray], FloatArray], x: FloatArray
    ) -> FloatArray:
        if self._explicit:
            return np.concatenate([block @ x for _, block in self.row_blocks(self._block())])
        scaled = x if self._scale is None else rowwise(self._scale, x)
        if self.select is None:
            out = multiply(scaled)
        else:
            full = np.zeros((self._design.shape[1], *x.shape[1:]))
            full[self.select] = scaled
            out = multiply(full)
        return out if self._means is None else out - self._means @ scaled

    def rmatvec(self, r: FloatArray) -> FloatArray:
        if self._explicit:
            total = np.zeros((self.shape[1], *r.shape[1:]))
            for rows, block in self.row_blocks(self._block()):
                total += block.T @ r[rows]
            return total
        out = self._design.rmatvec(r)
        if self.select is not None:
            out = out[self.select]
        if self._means is not None:
            shift = np.multiply.outer(self._means, r.sum(axis=0))
            out = np.subtract(out, shift, out=shift)
        return out if self._scale is None else rowwise(self._scale, out)

    def rmatvec_in_double(self, r: FloatArray) -> FloatArray:
        if self._explicit:
            return self.rmatvec(r)
        if self._means is None:
            out = self._design.rmatvec_in_double(r)
            out = out if self.select is None else out[self.select]
        elif isinstance(self._design, ForeignDesign) and self.select is None:
            out = self._design.rmatvec_in_double(r, self._means)
        else:  # what is taken off afterwards may cancel
            return super().rmatvec_in_double(r)
        return out if self._scale is None else rowwise(self._scale, out)

    def restrict(self, support: IntArray) -> Design:
        inner = support if self.select is None else self.select[support]
        return self._wrap(self._design.restrict(inner), support)

    def restrict_again(self, support: IntArray, last: IntArray, restricted: Design) -> Design:
        if not isinstance(restricted, TransformedDesign):
            return self.restrict(support)
        inner, before = support, last
        if self.select is not None:
            inner, before = self.select[support], self.select[last]
        return self._wrap(self._design.restrict_again(inner, before, restricted._design), support)

    def restrict_rows(self, rows: IntArray) -> Design:
        return self.over(self._design.restrict_rows(rows))

    def _wrap(self, design: Design, support: IntArray) -> Design:
        parts = (self._means, self._scale)
        means, scale = (None if part is None else part[support] for part in parts)
        return TransformedDesign(design, means=means, scale=scale, explicit=self._explicit)

    def _block(self) -> int:
        return max(1, _ENTRIES // max(self._design.shape[1], 1))

    def gram(self, h: FloatArray | None = None) -> FloatArray:
        if self.streamed:
            return super().gram(h)
        if self.select is not None:
            return self.restrict(np.arange(self.shape[1])).gram(h)
        if isinstance(self._design, ForeignDesign):
            return grams.rows_of_scaled(self._design, None, h, self._means, self._scale)
        if self._means is not None and not _stored_sparse(self._design):
            # A'HA - mm' would cancel where a mean is large; the restricted columns are few.
            return DenseDesign(self.to_array()).gram(h)
        out = self._design.gram(h)
        if self._means is not None:
            grams.without_means(out, self._design, self._means, h)
        if self._scale is not None:
            out *= self._scale[:, None]
            out *= self._scale
        return out

    def gram_rows(self, rows: IntArray, h: FloatArray | None = None) -> FloatArray:
        design = self._design
        if self._explicit or not isinstance(design, ForeignDesign):
            return super().gram_rows(rows, h)
        return grams.rows_of_scaled(design, rows, h, self._means, self._scale, self.select)

    def to_array(self) -> FloatArray:
        if self.select is not None:
            return self.restrict(np.arange(self.shape[1])).to_array()
        return self._transform(self._design.to_array())

    def _transform(self, block: FloatArray) -> FloatArray:
        if self._means is not None:
            block = grams.centred(block, self._means, exact=Access.ROWS in self.access)
            return block if self._scale is None else np.multiply(block, self._scale, out=block)
        return block if self._scale is None else block * self._scale

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        for rows, block in self._design.row_blocks(size):
            yield rows, self._transform(block if self.select is None else block[:, self.select])

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        if self._explicit or (self._means is not None and self.streamed):
            return super().column_square_norms(h)  # one reading, where sums would be another
        out = self._design.column_square_norms(h)
        weights = np.ones(self.shape[0]) if h is None else h
        sums = None if self._means is None else self._design.rmatvec(weights)
        if self.select is not None:
            out = out[self.select]
            sums = None if sums is None else sums[self.select]
        if self._means is not None and sums is not None:
            raw, out = out, out - 2.0 * self._means * sums + np.square(self._means) * weights.sum()
            # What is left of a constant column is rounding: n eps times what cancelled.
            noise = 4.0 * np.finfo(np.float64).eps * self.shape[0] * raw
            out = np.where(out > noise, out, 0.0)
        return out if self._scale is None else np.square(self._scale) * out

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        out = None if self._means is not None else self._design.sampled_square_norms(rows)
        if out is None:
            return None
        out = out if self.select is None else out[self.select]
        return out if self._scale is None else np.square(self._scale) * out


def _stored_sparse(design: Design) -> bool:
    """Return whether the entries are stored sparse, most of them zero."""
    while isinstance(design, TransformedDesign) and design._means is None:
        design = design._design
    most = _SPARSE * float(np.prod(design.shape))
    return isinstance(design, SparseDesign) and bool(design.array.nnz <= most)
