"""The svmlight (libsvm) format: ``label index:value index:value ... # comment``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from sparsemodel.cli.exits import UsageError
from sparsemodel.cli.reading.table import Columns, Table
from sparsemodel.designs.coerce import LAPACK_LIMIT
from sparsemodel.interfaces import DataError

_BYTES = 100
"""Memory a column takes at least, empty or not: a name, and coefficients in several vectors."""


def read_svmlight(file: Path, columns: Columns) -> Table:
    """Read a sparse table; indices count from 1, or from 0 if a 0 occurs.

    All numbers are parsed in one go: the colons become blanks, and the number of colons on a
    line says where the next line's label is.
    """
    if columns.target is not None or columns.weights is not None or columns.keep is not None:
        raise UsageError(
            f"{file}: in svmlight files the label comes first on every line, and there are no "
            "columns to choose; leave out --target, --weights and --features."
        )
    if columns.drop:
        raise UsageError(f"{file}: --drop needs named columns, which svmlight files do not have.")
    lines = [line.partition(b"#")[0].strip() for line in file.read_bytes().splitlines()]
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line]
    if not numbered:
        raise DataError(f"{file} is empty.")
    rows = [line for _, line in numbered]
    counts = np.array([row.count(b":") for row in rows])
    values = _all_numbers(b"\n".join(rows).replace(b":", b" "))
    if values is None or values.size != rows.__len__() + 2 * counts.sum():
        _complain(numbered, file)
    labels_at = np.concatenate([[0], np.cumsum(1 + 2 * counts)[:-1]])
    target = values[labels_at]
    entries = np.delete(values, labels_at)
    indices, data = entries[0::2], entries[1::2]
    if not (np.isfinite(data).all() and np.isfinite(target).all()):
        raise DataError(f"{file} holds values that are NaN or infinite; leave such lines out.")
    if np.any(indices < 0) or np.any(indices != np.floor(indices)):
        _complain(numbered, file)
    largest = float(indices.max(initial=0.0))
    if largest > LAPACK_LIMIT or largest * _BYTES > columns.max_bytes:
        row = int(np.searchsorted(np.cumsum(counts), int(indices.argmax()), side="right"))
        most = (
            f"at most 2^31 - 1 = {LAPACK_LIMIT:,} can be solved"
            if largest > LAPACK_LIMIT
            else f"their coefficients would take {largest * _BYTES / 1e9:.3g} GB, more than the "
            f"limit of {columns.max_bytes / 1e9:.3g} GB (--max-gigabytes)"
        )
        raise DataError(
            f"{file}, line {numbered[row][0]}: the index {largest:.15g} means as many columns, "
            f"and {most}. Hash the features into fewer columns."
        )
    base = 0 if np.any(indices == 0) else 1
    return Table(X=_csr(indices - base, data, counts), names=None, target=target)


def _csr(indices: Any, data: Any, counts: Any) -> Any:
    from scipy.sparse import csr_array

    columns = indices.astype(np.int64)
    pointers = np.concatenate([[0], np.cumsum(counts)])
    shape = (counts.size, int(columns.max(initial=0)) + 1)
    matrix = csr_array((data, columns, pointers), shape=shape)
    matrix.sum_duplicates()
    return matrix


def _all_numbers(text: bytes) -> Any:
    with warnings.catch_warnings():
        # A DeprecationWarning is how NumPy says that it met something that is not a number.
        warnings.simplefilter("error")
        try:
            return np.fromstring(text, sep=" ")
        except (DeprecationWarning, ValueError):
            return None


def _complain(numbered: list[tuple[int, bytes]], file: Path) -> None:
    """Find the first line that is wrong, and say so."""
    for number, line in numbered:
        label, *entries = line.split()
        if _number(label) is None:
            raise DataError(f"{file}, line {number}: the label {_text(label)} is not a number.")
        for entry in entries:
            index, colon, value = entry.partition(b":")
            if index == b"qid":
                raise DataError(f"{file}, line {number}: qid (ranking) is not supported.")
            if not colon or not index.isdigit() or _number(value) is None:
                raise DataError(
                    f"{file}, line {number}: {_text(entry)} is not of the form index:value."
                )
    raise DataError(f"{file} is not in the svmlight format.")


def _number(field: bytes) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None


def _text(field: bytes) -> str:
    return repr(field.decode("utf-8", "replace"))
