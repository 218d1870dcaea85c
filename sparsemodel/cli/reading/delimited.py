"""Delimited text: commas, semicolons or tabs, with a header or without."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np

from sparsemodel.cli.reading.table import (
    MISSING,
    Columns,
    Selection,
    Table,
    as_numbers_or_text,
)
from sparsemodel.interfaces import DataError

_DELIMITERS = ",;\t|"


def read_delimited(handle: TextIO, columns: Columns, *, where: str) -> Table:
    """Read a table of numbers whose target may be text.

    The numbers are parsed by NumPy in one go. Where that fails the rows are gone through one by
    one, to name the line and the column, or to leave out rows with missing values.
    """
    if not handle.seekable():
        handle = io.StringIO(handle.read(), newline="")
    try:
        return _read(handle, columns, where)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where} is not text in UTF-8 (byte {error.start}); save it as UTF-8, or name its "
            "format with --format."
        ) from error
    except csv.Error as error:
        raise DataError(f"{where} is not delimited text: {error}.") from error


def _read(handle: TextIO, columns: Columns, where: str) -> Table:
    start = handle.tell()
    first = handle.readline()
    if not first.strip():
        raise DataError(f"{where} is empty.")
    delimiter = columns.delimiter or max(_DELIMITERS, key=first.count)
    handle.seek(start)
    rows = csv.reader(handle, delimiter=delimiter)
    names = [field.strip() for field in next(rows)]
    header_lines = rows.line_num
    header = not all(_is_number(field) or field.lower() in MISSING for field in names)
    if not header:
        names = [f"column_{j}" for j in range(1, len(names) + 1)]
        header_lines = 0
    chosen = columns.select(names, where)
    handle.seek(start)
    for _ in range(header_lines):
        handle.readline()
    body = handle.tell()
    notes: tuple[str, ...] = ()
    numbers = _all_numbers(handle, delimiter, (*chosen.features, *chosen.others), len(names))
    if numbers is not None:
        width = len(chosen.features)
        X = np.ascontiguousarray(numbers[:, :width])
        others = [numbers[:, j].copy() for j in range(width, numbers.shape[1])]
    else:
        handle.seek(body)
        lines = csv.reader(handle, delimiter=delimiter)
        X, others, dropped = _row_by_row(lines, header_lines, names, chosen, columns, where)
        if dropped:
            notes = (f"{dropped} row(s) with missing values were left out.",)
    return Table(
        X=X,
        names=tuple(names[j] for j in chosen.features) if header else None,
        target=others.pop(0) if chosen.target is not None else None,
        weights=others.pop(0) if chosen.weights is not None else None,
        notes=notes,
    )


def _all_numbers(handle: TextIO, delimiter: str, wanted: tuple[int, ...], width: int) -> Any:
    """Return the wanted columns, or None where anything in the table is unusual."""
    start = handle.tell()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that there are no rows is a warning only
            numbers = np.loadtxt(
                handle, delimiter=delimiter, comments=None, quotechar='"', usecols=wanted, ndmin=2
            )
    except (ValueError, UserWarning):
        return None
    if not np.isfinite(numbers).all():
        return None
    # Given columns to use, NumPy does not mind rows of different lengths.
    handle.seek(start)
    rows = csv.reader(handle, delimiter=delimiter)
    return numbers if all(len(row) == width for row in rows if row) else None


def _row_by_row(
    lines: Iterator[list[str]],
    skipped: int,
    names: list[str],
    chosen: Selection,
    columns: Columns,
    where: str,
) -> tuple[Any, list[Any], int]:
    """Return features, target and weights, and how many rows were left out."""
    features: list[list[float]] = []
    targets: list[str] = []
    weights: list[float] = []
    dropped = 0
    for row in lines:
        if not row:
            continue
        line = skipped + lines.line_num  # type: ignore[attr-defined]
        if len(row) != len(names):
            raise DataError(
                f"{where}, line {line}: {len(row)} fields, and the first line has {len(names)}."
            )
        fields = [row[j].strip() for j in chosen.features]
        needed = fields + [row[j].strip() for j in chosen.others]
        if any(field.lower() in MISSING for field in needed):
            if columns.drop_missing:
                dropped += 1
                continue
            order = (*chosen.features, *chosen.others)
            name = names[next(j for j in order if row[j].strip().lower() in MISSING)]
            raise DataError(
                f"{where}, line {line}, column {name!r}: the value is missing. Impute it, or "
                "leave such rows out with --missing drop."
            )
        features.append(_numbers(fields, [names[j] for j in chosen.features], line, where))
        if chosen.target is not None:
            targets.append(row[chosen.target].strip())
        if chosen.weights is not None:
            name = names[chosen.weights]
            weights += _numbers([row[chosen.weights].strip()], [name], line, where)
    if not features:
        raise DataError(f"{where} has a header but no rows" + (" left." if dropped else "."))
    others: list[Any] = []
    if chosen.target is not None:
        others.append(as_numbers_or_text(targets))
    if chosen.weights is not None:
        others.append(np.array(weights))
    return np.array(features), others, dropped


def _numbers(fields: list[str], names: list[str], line: int, where: str) -> list[float]:
    try:
        values = list(map(float, fields))
    except ValueError:
        name, field = next((n, f) for n, f in zip(names, fields, strict=True) if not _is_number(f))
        raise DataError(
            f"{where}, line {line}, column {name!r}: {field!r} is not a number. Encode text as "
            "numbers, or leave the column out with --drop."
        ) from None
    if not np.isfinite(values).all():
        name = names[int(np.flatnonzero(~np.isfinite(values))[0])]
        raise DataError(f"{where}, line {line}, column {name!r}: the value is infinite.")
    return values


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


__all__ = ["read_delimited"]
