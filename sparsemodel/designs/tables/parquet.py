"""Rows of Parquet files, read in order a stretch at a time, so that they need not fit in memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sparsemodel.interfaces import DataError, DataTypeError, IntArray, MissingDependencyError
from sparsemodel.loading import uninterrupted
from sparsemodel.progress import counted

_BATCH_BYTES = 2**22
"""Bytes of rows that are decoded together (4 MB): columns are turned into rows in the cache."""

_SAMPLED = 8
"""Groups of rows that a sample is taken from, at most."""

KEPT_BYTES = 2**28
"""Decoded rows of a file are kept up to this size (256 MB): decoding takes longer than products."""

_BUFFER = 2**20
"""Bytes that are read of a column at a time: all of a row group at once take twice the time."""

_ARROW = {4: "float32", 8: "float64"}


@final
class ParquetRows:
    """The numeric columns of Parquet files, one below the other, sliced like an array of rows.

    What takes at most 256 MB is decoded once and kept. Else a slice that begins where the last one
    ended is decoded from there, any other one from the beginning of its row group. Columns of
    integers and truth values become float64, as all do but those of files that hold single
    precision alone; missing values become NaN, which is refused as in any data.

    Parameters
    ----------
    path
        A file, or a folder of files, which are taken in the order of their names, numbers by size.
    columns
        Names, in order; None takes all, but for the index that pandas wrote.
    where
        What the user calls it, for error messages.
    """

    strides = (2, 1)  # rows are what is cheap
    mode = "r"

    def __init__(self, path: Path, columns: Sequence[str] | None, where: str) -> None:
        reader = _pyarrow(where)
        self.filename, self._where, self._wanted = path, where, columns
        self._files = [_opened(reader, one, where) for one in _parts(path, where)]
        self.names = _names(self._files[0].schema_arrow, columns, where)
        self.dtype = _common_type(self._files, self.names, where)
        sizes = [f.metadata.row_group(g).num_rows for f, g in self._groups()]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self.shape = int(self._starts[-1]), len(self.names)
        self.bytes_read, self._first_stamp = 0, self.stamp
        self._at, self._rest = -1, np.empty((0, len(self.names)), dtype=self.dtype)
        self._batches: Iterator[Any] = iter(())
        self._kept: NDArray[Any] | None = None
        self._decoding = Lock()  # threads may share the rows, and there is one place to go on from

    def __reduce__(self) -> tuple[Any, ...]:
        return ParquetRows, (self.filename, self._wanted, self._where)

    @property
    def itemsize(self) -> int:
        """Return the bytes of a number."""
        return int(self.dtype.itemsize)

    @property
    def size(self) -> int:
        """Return how many numbers there are."""
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """Return the bytes that they take in memory."""
        return self.size * self.itemsize

    @property
    def stamp(self) -> tuple[Any, ...]:
        """Return what differs once a file was changed."""
        found = map(os.stat, _parts(self.filename, self._where))
        return tuple((f.st_ino, f.st_size, f.st_mtime_ns, f.st_ctime_ns) for f in found)

    def __getitem__(self, index: slice | IntArray) -> NDArray[Any]:
        """Return rows: a slice, or those of sorted numbers."""
        if isinstance(index, slice) and index.step in (None, 1):
            start, stop, _ = index.indices(self.shape[0])
            return self._rows(start, stop)
        if self.nbytes <= KEPT_BYTES:
            return np.asarray(self._rows(0, self.shape[0])[index])
        rows = np.arange(self.shape[0])[index]
        out = np.empty((rows.size, self.shape[1]), dtype=self.dtype)
        step = self._batch()
        for start in np.unique(rows // step * step):
            here = (rows >= start) & (rows < start + step)
            last = int(rows[here][-1]) + 1
            out[here] = self._rows(int(start), last)[rows[here] - start]
        return out

    def sample(self, count: int) -> NDArray[Any]:
        """Return about so many rows, the first of groups that are spread evenly.

        Rows far into a group would be decoded with all that are before them.
        """
        groups, n = len(self._starts) - 1, self.shape[0]
        if 4 * count > n:
            return self[:n]
        chosen = np.unique(np.linspace(0, groups - 1, min(groups, _SAMPLED)).astype(np.intp))
        each = -(-count // chosen.size)
        ends = [min(int(self._starts[g]) + each, int(self._starts[g + 1])) for g in chosen]
        parts = [self[int(self._starts[g]) : end] for g, end in zip(chosen, ends, strict=True)]
        return np.concatenate(parts)

    def forget(self) -> None:
        """Decode all rows again."""
        with self._decoding:
            self._kept = None

    # ---- decoding ----------------------------------------------------------------------------

    def _rows(self, start: int, stop: int) -> NDArray[Any]:
        with self._decoding:
            at, self._at = self._at, -1  # what breaks off in between leaves no place to go on from
            again = start < at or at < 0
            if again and self.stamp != self._first_stamp:
                raise DataError(
                    f"{self._where}: {str(self.filename)!r} has changed; open it again."
                )
            if self.nbytes <= KEPT_BYTES:
                found = self._all()[start:stop]
            else:
                if again or self._group(start) > self._group(at):
                    group = self._group(start)
                    self._batches, at = self._decoded(group), int(self._starts[group])
                    self._rest = self._rest[:0]
                self._taken(start - at)
                found = self._taken(stop - start)
            self._at = stop
            return found

    def _all(self) -> NDArray[Any]:
        """Return all rows, decoded the first time they are asked for."""
        if self._kept is None:
            kept, step = np.empty(self.shape, dtype=self.dtype), self._batch()
            self._batches, self._rest = self._decoded(0), self._rest[:0]
            for start in counted(range(0, len(kept), step), "stretch"):
                part = kept[start : start + step]
                part[:] = self._taken(len(part))
            kept.flags.writeable = False
            self._kept = kept
        return self._kept

    def _taken(self, count: int) -> NDArray[Any]:
        """Return the next rows."""
        out = np.empty((count, self.shape[1]), dtype=self.dtype)
        done = 0
        while done < count:
            if not len(self._rest):
                batch = next(self._batches)
                self._rest = np.empty((batch.num_rows, self.shape[1]), dtype=self.dtype)
                self._write(batch, self._rest)
            some = self._rest[: count - done]
            out[done : done + len(some)] = some
            self._rest = self._rest[len(some) :]
            done += len(some)
        return out

    def _decoded(self, first: int) -> Iterator[Any]:
        """Yield batches of rows from the beginning of a row group."""
        for number, (file, group) in enumerate(self._groups()):
            if number >= first:
                names = list(self.names)
                yield from file.iter_batches(self._batch(), row_groups=[group], columns=names)

    def _write(self, batch: Any, out: NDArray[Any]) -> None:
        """Write a batch into an array, NaN where values are missing."""
        for place, name in enumerate(self.names):
            column = batch.column(name).cast(_ARROW[self.itemsize], safe=False)
            out[:, place] = column.to_numpy(zero_copy_only=False)
        self.bytes_read += out.nbytes

    def _groups(self) -> Iterator[tuple[Any, int]]:
        for file in self._files:
            for group in range(file.num_row_groups):
                yield file, group

    def _group(self, row: int) -> int:
        return int(np.searchsorted(self._starts, row, side="right")) - 1

    def _batch(self) -> int:
        return max(1, _BATCH_BYTES // max(1, self.itemsize * len(self.names)))


def is_parquet(path: Any) -> bool:
    """Return whether a path is that of a Parquet file, or of a folder of them."""
    if not isinstance(path, (str, os.PathLike)):
        return False
    found = Path(path)
    if found.suffix in (".parquet", ".pq"):
        return True
    return "\n" not in str(path) and found.is_dir() and any(found.glob("*.parquet"))


def _parts(path: Path, where: str) -> list[Path]:
    def order(one: Path) -> list[Any]:
        return [int(s) if s.isdigit() else s for s in re.split(r"(\d+)", one.name)]

    found = sorted(path.glob("*.parquet"), key=order) if path.is_dir() else [path]
    if not found or not all(one.exists() for one in found):
        raise DataError(f"{where}: there is no Parquet file {str(path)!r}.")
    return found


def _opened(reader: Any, path: Path, where: str) -> Any:
    try:
        return reader.ParquetFile(path, buffer_size=_BUFFER)
    except (OSError, ValueError) as error:  # pyarrow's own errors are both or one
        raise DataError(f"{where}: {str(path)!r} is no readable Parquet file ({error}).") from error


def _names(schema: Any, columns: Sequence[str] | None, where: str) -> tuple[str, ...]:
    if columns is None:
        index = (schema.pandas_metadata or {}).get("index_columns", ())
        return tuple(name for name in schema.names if name not in index)
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        raise DataError(
            f"{where} has no column {unknown[0]!r}; it has {', '.join(schema.names[:10])}"
            + (", ..." if len(schema.names) > 10 else ".")
        )
    return tuple(columns)


def _common_type(files: list[Any], names: tuple[str, ...], where: str) -> Any:
    """Return float32 where all columns are, else float64; text and dates are refused."""
    from pyarrow import types

    def numeric(kind: Any) -> bool:
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    single = True
    for file in files:
        schema = file.schema_arrow
        absent = [name for name in names if name not in schema.names]
        if absent:
            raise DataError(f"{where}: a file of the folder has no column {absent[0]!r}.")
        kinds = [schema.field(name).type for name in names]
        bad = [repr(name) for name, kind in zip(names, kinds, strict=True) if not numeric(kind)]
        if bad:
            raise DataTypeError(
                f"{where} has columns that are not numeric: {', '.join(bad[:5])}. Choose others "
                "with sm.as_design(path, columns=[...]), or write `A, features = "
                "sm.encode(pandas.read_parquet(path))`, which makes dummies of categories."
            )
        single = single and all(types.is_float32(kind) for kind in kinds)
    return np.dtype(np.float32 if single else np.float64)


def _pyarrow(where: str) -> Any:
    try:
        with uninterrupted():
            import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError(
            f"{where} is a Parquet file, for which the package pyarrow is missing; "
            "pip install pyarrow, or pass the table as a DataFrame or an array."
        ) from error
    return pyarrow.parquet
