"""A design whose rows are blocks of a Dask array, multiplied where they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import pairwise
from typing import Any, final

import numpy as np

from sparsemodel.designs.dense import DenseDesign
from sparsemodel.designs.elsewhere import columns
from sparsemodel.designs.elsewhere.workers import (
    client,
    gathered,
    loaded,
    placed,
    rows_of,
    sent,
    summed,
    worker_count,
)
from sparsemodel.interfaces import Access, DataError, DataTypeError, Design, FloatArray, IntArray
from sparsemodel.interfaces.design import FAR_BLOCK_BYTES, RestrictedDesign, rows_of_a_block
from sparsemodel.interfaces.numeric import is_masked


@final
class DistributedDesign(Design):
    """A design over a Dask array, on the machine's threads or on a cluster.

    Blocks of rows are loaded once, where Dask puts them, and stay there: as many groups of
    consecutive blocks as the cluster has threads, so that a product is one task for each. Without
    a :class:`distributed.Client` the blocks live in this process and its threads do the work.

    Parameters
    ----------
    array
        A two-dimensional Dask array with known chunk sizes; it is chunked by rows if it is not.
    names
        Of the columns.

    Notes
    -----
    ``A @ x`` sends the nonzeros of ``x`` to every group and brings ``n`` numbers back;
    ``A.T @ r`` sends ``n`` numbers and brings ``p`` back, added up in a tree. Columns of a support
    are brought over once where they take at most 128 MB, and all at once where that holds for all
    of them: products are then made here. Where they do not, the objective of a
    problem keeps predictions with the blocks, and no ``n`` numbers travel
    (:mod:`~sparsemodel.numerics.objectives.distributed`). Blocks that are lost with a worker are
    computed again from the array's own graph; blocks that came from this process are sent again.
    """

    def __init__(self, array: Any, names: tuple[str, ...] | None = None) -> None:
        if any(np.isnan(size) for axis in array.chunks for size in axis):
            raise DataError(
                "The Dask array has chunks of unknown size; call array.compute_chunk_sizes() first."
            )
        if len(array.chunks[1]) > 1:
            array = array.rechunk({1: -1})
        if array.dtype not in (np.float64, np.float32):
            array = array.astype(np.float64)
        self._array = array
        self._names = names
        self._groups = _groups(array.chunks[0], worker_count())
        self._loaded: tuple[Any, ...] | None = None
        self._losses = 0
        self._columns = columns.ReadColumns(self._brought)
        self._whole: DenseDesign | None = None  # all that is small enough to be here

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self._array.shape
        return int(n), int(p)

    @property
    def nbytes(self) -> int | None:
        return int(self._array.nbytes)

    @property
    def bytes_read(self) -> int | None:
        return None

    @property
    def access(self) -> Access:
        held = Access.PRODUCTS | Access.ROWS | Access.DISTRIBUTED
        return Access.MEMORY if self._small else held

    @property
    def names(self) -> tuple[str, ...] | None:
        return self._names

    def describe(self) -> str:
        n, p = self.shape
        blocks = f"{self._array.numblocks[0]} blocks of rows"
        return f"distributed {self._array.dtype.name} {n} x {p} in {blocks}"

    @property
    def array(self) -> Any:
        """Return the Dask array, chunked by rows."""
        return self._array

    @property
    def groups(self) -> tuple[tuple[slice, ...], ...]:
        """Return the rows of every block of each group."""
        return self._groups

    @property
    def rows(self) -> tuple[slice, ...]:
        """Return the rows of each group."""
        return tuple(slice(blocks[0].start, blocks[-1].stop) for blocks in self._groups)

    @property
    def blocks(self) -> tuple[Any, ...]:
        """Return handles of the groups, lists of arrays, loaded where they will stay."""
        if self._loaded is None:
            parts, width = iter(_blocks(self._array, self._groups)), self.shape[1]
            tasks = [
                (
                    _checked,
                    [next(parts) for _ in blocks],
                    [(rows.stop - rows.start, width) for rows in blocks],
                )
                for blocks in self._groups
            ]
            self._loaded = tuple(placed(tasks))
            rows_of(self._loaded, self.rows)
        return self._loaded

    @property
    def stamp(self) -> Hashable | None:
        """Return what names the blocks that workers hold; None where they are in this process."""
        return None if client() is None else (self._array.name, self._losses)

    @property
    def _small(self) -> bool:
        """Return whether all of it is copied to this process, once."""
        there = self._whole is not None or client() is not None
        return there and self.comes_over(self.shape[1])

    @property
    def _here(self) -> DenseDesign | None:
        """Return all of it where it is small, from one trip; else None."""
        if self._whole is None and self._small:
            parts = self._gather(_joined)
            self._whole = DenseDesign(np.concatenate(parts, dtype=self._array.dtype))
        return self._whole

    def forget(self) -> None:
        """Load the blocks again when they are next needed: some were lost with a worker."""
        self._loaded = None
        self._losses += 1

    # ---- products ----------------------------------------------------------------------------

    def matvec(self, x: FloatArray) -> FloatArray:
        if (here := self._here) is not None:
            return here.matvec_in_double(x)
        used = np.flatnonzero(x if x.ndim == 1 else np.any(x != 0.0, axis=1))
        # Columns that are taken out are in float64: what bounds rest on is not rounded to single.
        if 2 * used.size < x.shape[0] or self._array.dtype == np.float32:
            parts = self._gather(_sparse_product, used, x[used])
        else:
            parts = self._gather(_product, x)
        return np.concatenate(parts, axis=0)

    def magnitudes(self, support: IntArray, sizes: FloatArray) -> FloatArray:
        """Return ``|A[:, support]| @ sizes``, multiplied in float64 where the entries are."""
        if (here := self._here) is not None:
            return _magnitudes([here.array], support, sizes)
        return np.concatenate(self._gather(_magnitudes, support, sizes), axis=0)

    def rmatvec(self, r: FloatArray) -> FloatArray:
        return self._sum(DenseDesign.rmatvec, r)

    def rmatvec_in_double(self, r: FloatArray) -> FloatArray:
        return self._sum(DenseDesign.rmatvec_in_double, r)

    def comes_over(self, count: int) -> bool:
        """Return whether so many columns are brought over, and not multiplied where they are."""
        n, p = self.shape
        return 8 * n * min(count, p) <= columns.KEPT_BYTES

    def restrict(self, support: IntArray) -> Design:
        return self.restrict_again(support, support[:0], self)

    def restrict_again(self, support: IntArray, last: IntArray, restricted: Design) -> Design:
        if (here := self._here) is not None:
            return here.restrict_again(support, last, restricted)
        if not self.comes_over(support.size):
            return RestrictedDesign(self, support)
        return self._columns.restrict(support, last, restricted, self.stamp)

    def _brought(self, support: IntArray) -> FloatArray:
        """Return the columns as rows of a float64 array."""
        parts = self._gather(_picked_columns, support)
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def to_array(self) -> FloatArray:
        return super().to_array() if (here := self._here) is None else here.to_array()

    def restrict_rows(self, rows: IntArray) -> Design:
        if (here := self._here) is not None:
            return here.restrict_rows(rows)
        wanted = [rows[(rows >= s.start) & (rows < s.stop)] - s.start for s in self.rows]

        def tasks() -> list[Any]:
            found = zip(self.blocks, wanted, strict=True)
            return [(_picked, block, some) for block, some in found if some.size]

        parts = gathered(tasks, self.forget)
        return DenseDesign(np.concatenate(parts or [np.empty((0, self.shape[1]))], axis=0))

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        if (here := self._here) is not None:
            yield from here.row_blocks(size)
            return
        most = max(size, rows_of_a_block(self.shape[1], FAR_BLOCK_BYTES) // size * size)
        for start in range(0, self.shape[0], most):
            stop = min(start + most, self.shape[0])
            entries = self.restrict_rows(np.arange(start, stop)).to_array()
            for first in range(start, stop, size):
                rows = slice(first, min(first + size, stop))
                yield rows, entries[first - start : rows.stop - start]

    def gram(self, h: FloatArray | None = None) -> FloatArray:
        return self._sum(DenseDesign.gram, h)

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        return self._sum(DenseDesign.column_square_norms, h)

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        if (here := self._here) is not None:
            return here.sampled_square_norms(rows)
        each = max(1, rows // self._array.numblocks[0])
        sums = summed(lambda: [(_sampled, block, each) for block in self.blocks], self.forget)
        return np.asarray(sums[0] / sums[1])

    def first_nonfinite(self) -> tuple[int, int] | None:
        for found, rows in zip(self._gather(_nonfinite), self.rows, strict=True):
            if found is not None:
                return found[0] + rows.start, found[1]
        return None

    # ---- on the groups -----------------------------------------------------------------------

    def _gather(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return gathered(
            lambda: [(function, block, *arguments) for block in self.blocks], self.forget
        )

    def _sum(self, method: Callable[..., FloatArray], values: FloatArray | None) -> FloatArray:
        """Return the sum over all blocks of a method that takes a number for each row, or None."""
        if (here := self._here) is not None:
            return method(here, values)

        def tasks() -> list[Any]:
            if values is None:
                return [(_totalled, block, method, None) for block in self.blocks]
            parts = [values[rows] for rows in self.rows]
            return [
                (_totalled, block, method, sent(part, part.nbytes, number))
                for number, (block, part) in enumerate(zip(self.blocks, parts, strict=True))
            ]

        return np.array(summed(tasks, self.forget), dtype=np.float64)


def _groups(sizes: tuple[int, ...], count: int) -> tuple[tuple[slice, ...], ...]:
    """Return the rows of each block, in ``count`` groups with about as many rows or fewer."""
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp).tolist()
    blocks = [slice(a, b) for a, b in pairwise(ends)]
    place = [min(count - 1, count * (s.start + s.stop) // (2 * ends[-1])) for s in blocks]
    found: dict[int, list[slice]] = {}
    for group, rows in zip(place, blocks, strict=True):
        found.setdefault(group, []).append(rows)
    return tuple(tuple(rows) for rows in found.values())


def _blocks(array: Any, groups: tuple[tuple[slice, ...], ...]) -> list[Any]:
    """Return handles of the blocks; those that are numbers in the array's graph are sent beside it.

    (Computed as they are, they would go through the scheduler and stay there.)
    """
    graph = array.__dask_graph__()
    held = [getattr(graph[key], "value", graph[key]) for (key,) in array.__dask_keys__()]
    if client() is not None and all(isinstance(value, np.ndarray) for value in held):
        hand = [number for number, blocks in enumerate(groups) for _ in blocks]
        return [sent(value, value.nbytes, to) for value, to in zip(held, hand, strict=True)]
    return loaded([part for (part,) in array.to_delayed()], [rows for b in groups for rows in b])


# ---- what runs where the blocks are --------------------------------------------------------------


def _checked(blocks: list[Any], shapes: list[tuple[int, int]]) -> list[Any]:
    """Return blocks if they are what the array says of them: real numbers of these shapes."""
    for block, shape in zip(blocks, shapes, strict=True):
        if is_masked(block):
            raise DataTypeError(
                "A block of the Dask array is a masked array; fill the missing entries first, "
                "with dask.array.ma.filled."
            )
        found = np.asarray(block)
        if found.shape != shape or found.dtype.kind not in "biuf":
            raise DataError(
                f"A block of the Dask array has shape {found.shape} and dtype {found.dtype}, and "
                f"the array says {shape} and real numbers. Give map_blocks the right chunks and "
                "dtype."
            )
    return blocks


def _cut(blocks: list[Any]) -> Iterator[tuple[slice, Any]]:
    """Yield the blocks of a group with their rows, counted from the first of the group."""
    start = 0
    for block in blocks:
        yield slice(start, start + block.shape[0]), block
        start += block.shape[0]


def _totalled(blocks: list[Any], method: Callable[..., Any], values: Any) -> Any:
    return sum(
        method(DenseDesign(block), None if values is None else values[rows])
        for rows, block in _cut(blocks)
    )


def _product(blocks: list[Any], x: FloatArray) -> FloatArray:
    return np.concatenate([DenseDesign(block).matvec(x) for block in blocks], axis=0)


def _sparse_product(blocks: list[Any], used: IntArray, values: FloatArray) -> FloatArray:
    parts = [DenseDesign(block).restrict(used).matvec(values) for block in blocks]
    return np.concatenate(parts, axis=0)


def _magnitudes(blocks: list[Any], used: IntArray, sizes: FloatArray) -> FloatArray:
    parts = [np.abs(DenseDesign(block).restrict(used).to_array()) @ sizes for block in blocks]
    return np.concatenate(parts, axis=0)


def _joined(blocks: list[Any]) -> Any:
    """Return the entries of a group, in the precision they have."""
    return np.concatenate([np.asarray(block) for block in blocks])


def _picked_columns(blocks: list[Any], index: IntArray) -> FloatArray:
    """Return columns of a group as rows, in the precision they have until they are here."""
    parts = [np.take(np.asarray(block), index, axis=1).T for block in blocks]
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _picked(blocks: list[Any], index: IntArray) -> Any:
    """Return rows of a group, by sorted numbers."""
    parts = [
        block[index[(index >= rows.start) & (index < rows.stop)] - rows.start]
        for rows, block in _cut(blocks)
    ]
    return np.concatenate(parts, axis=0)


def _sampled(blocks: list[Any], rows: int) -> Any:
    samples = [
        np.square(np.asarray(block[:: max(1, block.shape[0] // rows)], dtype=np.float64))
        for block in blocks
    ]
    sample = np.concatenate(samples, axis=0)
    return np.array([sample.sum(axis=0), np.full(sample.shape[1], float(sample.shape[0]))])


def _nonfinite(blocks: list[Any]) -> tuple[int, int] | None:
    for rows, block in _cut(blocks):
        found = DenseDesign(block).first_nonfinite()
        if found is not None:
            return found[0] + rows.start, found[1]
    return None
