"""Choose the reader by the name of the file."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from sparsemodel.cli.exits import UsageError
from sparsemodel.cli.reading.archives import read_archive
from sparsemodel.cli.reading.delimited import read_delimited
from sparsemodel.cli.reading.parquet import read_parquet
from sparsemodel.cli.reading.svmlight import read_svmlight
from sparsemodel.cli.reading.table import Columns, Table
from sparsemodel.interfaces import DataError

FORMATS = ("csv", "parquet", "npz", "svmlight")

_NAMED = frozenset({"csv", "parquet"})
"""Formats in which the target is a column like the others."""

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".svmlight": "svmlight",
}

_TEXT = "utf-8-sig"
"""Spreadsheets put a byte order mark in front."""

_UNPACKING = {
    ".gz": "gzip -dc",
    ".bz2": "bzip2 -dc",
    ".xz": "xz -dc",
    ".zip": "unzip -p",
    ".zst": "zstd -dc",
}


def read_table(path: str, columns: Columns, *, kind: str | None = None) -> Table:
    """Read ``path`` (``-`` is delimited text on standard input).

    Parameters
    ----------
    path
        The file.
    columns
        Which columns are wanted.
    kind
        One of :data:`FORMATS`; None goes by the ending of the name.

    Raises
    ------
    DataError
        When the content cannot be understood; the message names line and column.
    MissingDependencyError
        For Parquet without pandas and pyarrow.
    """
    if columns.needs_target and columns.target is None and _suffix_kind(path, kind) in _NAMED:
        raise UsageError("Name the column to predict with --target.")
    if path == "-":
        if kind not in (None, "csv"):
            raise UsageError("Standard input is read as delimited text only.")
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding=_TEXT)
        return read_delimited(sys.stdin, columns, where="standard input")
    file = Path(path)
    kind = _suffix_kind(path, kind)
    if kind is None:
        unpack = _UNPACKING.get(file.suffix.lower())
        raise UsageError(
            f"{path}: the format is not known from the name; "
            + (
                f"unpack it, for a table of text as in `{unpack} {file.name} | sparsemodel ... -`."
                if unpack
                else f"add --format {'|'.join(FORMATS)}."
            )
        )
    size = file.stat().st_size
    if size > columns.max_bytes:
        raise DataError(
            f"{path} has {size / 1e9:.3g} GB, more than the limit of "
            f"{columns.max_bytes / 1e9:.3g} GB; raise it with --max-gigabytes."
        )
    if kind == "csv":
        with file.open(newline="", encoding=_TEXT) as handle:
            return read_delimited(handle, columns, where=path)
    if kind == "npz":
        return read_archive(file, columns)
    if kind == "svmlight":
        return read_svmlight(file, columns)
    return read_parquet(file, columns)


def _suffix_kind(path: str, kind: str | None) -> str | None:
    """Return the format, by the ending of the name unless it is given."""
    if kind is not None:
        return kind
    return "csv" if path == "-" else _SUFFIXES.get(Path(path).suffix.lower())
