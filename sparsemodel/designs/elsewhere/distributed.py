"""A design whose rows are blocks of a Dask array, multiplied where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, final

import numpy as np

from sparsemodel.designs.dense import DenseDesign
from sparsemodel.interfaces import Access, DataError, Design, FloatArray, IntArray

_FAN_IN = 8
"""Results of blocks that are added in one task, so that no machine receives all of them."""

_ATTEMPTS = 3
"""Runs of a computation that loses its workers. Lost blocks are made again by Dask itself."""


@final
class DistributedDesign(Design):
    """A design over a Dask array, on the machine's threads or on a cluster.

    Blocks of rows are loaded once, where Dask puts them, and stay there: products go to the
    blocks and small results come back. Without a :class:`distributed.Client` the blocks live in
    this process and its threads do the work.

    Parameters
    ----------
    array
        A two-dimensional Dask array with known chunk sizes; it is chunked by rows if it is not.

    Notes
    -----
    ``A @ x`` sends the nonzeros of ``x`` to every block and brings ``n`` numbers back;
    ``A.T @ r`` sends ``n`` numbers and brings ``p`` back, added up in a tree. The objective of a
    problem keeps predictions with the blocks instead, and no ``n`` numbers travel
    (:mod:`~sparsemodel.numerics.objectives.distributed`). Blocks that are lost with a worker are
    computed again from the array's own graph.
    """

    def __init__(self, array: Any) -> None:
        if any(np.isnan(size) for axis in array.chunks for size in axis):
            raise DataError(
                "The Dask array has chunks of unknown size; call array.compute_chunk_sizes() first."
            )
        if len(array.chunks[1]) > 1:
            array = array.rechunk({1: -1})
        if array.dtype not in (np.float64, np.float32):
            array = array.astype(np.float64)
        self._array = array
        self._bounds = np.concatenate([[0], np.cumsum(array.chunks[0])]).astype(np.intp)
        self._loaded: tuple[Any, ...] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self._array.shape
        return int(n), int(p)

    @property
    def nbytes(self) -> int | None:
        return int(self._array.nbytes)

    @property
    def access(self) -> Access:
        return Access.PRODUCTS | Access.ROWS | Access.DISTRIBUTED

    def describe(self) -> str:
        n, p = self.shape
        return f"distributed {self._array.dtype.name} {n} x {p} in {len(self.rows)} blocks of rows"

    @property
    def rows(self) -> tuple[slice, ...]:
        """Return the rows of each block."""
        ends = self._bounds.tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @property
    def blocks(self) -> tuple[Any, ...]:
        """Return the blocks as delayed values, loaded where they are going to stay."""
        if self._loaded is None:
            from dask.base import persist
            from dask.delayed import delayed

            width = self.shape[1]
            checked = [
                delayed(_checked)(block, (rows.stop - rows.start, width))
                for (block,), rows in zip(self._array.to_delayed(), self.rows, strict=True)
            ]
            self._loaded = tuple(persist(*checked))  # type: ignore[no-untyped-call]
        return self._loaded

    def matvec(self, x: FloatArray) -> FloatArray:
        used = np.flatnonzero(x if x.ndim == 1 else np.any(x != 0.0, axis=1))
        if 2 * used.size < x.shape[0]:
            parts = self._each(_sparse_product, used, x[used])
        else:
            parts = self._each(_product, x)
        return np.concatenate(gather(parts), axis=0)

    def rmatvec(self, r: FloatArray) -> FloatArray:
        from dask.delayed import delayed

        tasks = [
            delayed(_transposed_product, pure=False)(block, r[rows])
            for block, rows in zip(self.blocks, self.rows, strict=True)
        ]
        return np.asarray(total(tasks))

    def restrict_rows(self, rows: IntArray) -> Design:
        return DenseDesign(np.asarray(run(self._array[rows])))

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        for start in range(0, self.shape[0], size):
            rows = slice(start, min(start + size, self.shape[0]))
            yield rows, np.asarray(run(self._array[rows]), dtype=np.float64)

    def gram(self, h: FloatArray | None = None) -> FloatArray:
        from dask.delayed import delayed

        tasks = [
            delayed(_gram, pure=False)(block, None if h is None else h[rows])
            for block, rows in zip(self.blocks, self.rows, strict=True)
        ]
        return np.asarray(total(tasks))

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        from dask.delayed import delayed

        tasks = [
            delayed(_squares, pure=False)(block, None if h is None else h[rows])
            for block, rows in zip(self.blocks, self.rows, strict=True)
        ]
        return np.asarray(total(tasks))

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        each = max(1, rows // len(self.rows))
        sums = total(self._each(_sampled, each))
        return np.asarray(sums[0] / sums[1])

    def first_nonfinite(self) -> tuple[int, int] | None:
        for found, rows in zip(gather(self._each(_nonfinite)), self.rows, strict=True):
            if found is not None:
                return found[0] + rows.start, found[1]
        return None

    def _each(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        from dask.delayed import delayed

        return [delayed(function, pure=False)(block, *arguments) for block in self.blocks]


# ---- computing on blocks -------------------------------------------------------------------------


def total(tasks: Sequence[Any]) -> Any:
    """Return the sum of delayed values, added in a tree where they are."""
    from dask.delayed import delayed

    level = list(tasks)
    while len(level) > 1:
        level = [
            delayed(_sum, pure=False)(level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)
        ]
    return run(level[0])


def gather(tasks: Sequence[Any]) -> list[Any]:
    """Return the values of delayed tasks."""
    from dask.base import compute

    return list(
        _again(lambda: compute(*tasks, optimize_graph=False))  # type: ignore[no-untyped-call]
    )


def run(task: Any) -> Any:
    """Return the value of one delayed task or array."""
    return _again(task.compute)


def _again(attempt: Callable[[], Any]) -> Any:
    """Run ``attempt``, again if the cluster lost the workers that were at it."""
    for left in range(_ATTEMPTS - 1, -1, -1):
        try:
            return attempt()
        except Exception as error:
            if not left or type(error).__name__ not in _LOST:
                raise
    raise AssertionError("unreachable")


_LOST = frozenset({"KilledWorker", "CommClosedError", "CancelledError", "FutureCancelledError"})
"""Failures of workers, by name: the package that defines them may not be installed."""


def _sum(parts: list[Any]) -> Any:
    out = parts[0]
    for part in parts[1:]:
        out = out + part
    return out


def _checked(block: Any, shape: tuple[int, int]) -> Any:
    """Return a block if it is what the array says of it: real numbers of that shape."""
    found = np.asarray(block)
    if found.shape != shape or found.dtype.kind not in "biuf":
        raise DataError(
            f"A block of the Dask array has shape {found.shape} and dtype {found.dtype}, and the "
            f"array says {shape} and real numbers. Give map_blocks the right chunks and dtype."
        )
    return block


def _product(block: Any, x: FloatArray) -> FloatArray:
    return DenseDesign(block).matvec(x)


def _sparse_product(block: Any, used: IntArray, values: FloatArray) -> FloatArray:
    return DenseDesign(block).restrict(used).matvec(values)


def _transposed_product(block: Any, r: FloatArray) -> FloatArray:
    return DenseDesign(block).rmatvec(r)


def _gram(block: Any, h: FloatArray | None) -> FloatArray:
    return DenseDesign(block).gram(h)


def _squares(block: Any, h: FloatArray | None) -> FloatArray:
    return DenseDesign(block).column_square_norms(h)


def _sampled(block: Any, rows: int) -> Any:
    sample = np.square(np.asarray(block[:: max(1, block.shape[0] // rows)], dtype=np.float64))
    return np.array([sample.sum(axis=0), np.full(sample.shape[1], float(sample.shape[0]))])


def _nonfinite(block: Any) -> tuple[int, int] | None:
    return DenseDesign(block).first_nonfinite()


__all__ = ["DistributedDesign", "gather", "run", "total"]
