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
    encoded,
    number_of,
)
from sparsemodel.designs.tables.encoding import Column, Encoding, Field
from sparsemodel.interfaces import DataError

_DELIMITERS = ",;\t|"
_NO_HEADER = (
    "the first row is all numbers and was read as data: columns are called column_1, column_2, ... "
    "In a header at least one name is not a number, such as y2019."
)


def read_delimited(handle: TextIO, columns: Columns, *, where: str) -> Table:
    """Read a table of numbers and text.

    Numbers alone are parsed by NumPy in one go. Where that fails the rows are gone through one by
    one, to name the line and the column, or to leave out rows with missing values. A column of
    text is a category, unless it says true and false, which are 1 and 0.
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
    blank, start, first = 0, handle.tell(), handle.readline()
    while first and not first.strip():
        blank, start, first = blank + 1, handle.tell(), handle.readline()
    if not first:
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
    notes: tuple[str, ...] = () if header else (_NO_HEADER,)
    numbers = _all_numbers(handle, delimiter, (*chosen.features, *chosen.others), len(names))
    width, shown = len(chosen.features), tuple(names[j] for j in chosen.features)
    if numbers is not None:
        X = np.ascontiguousarray(numbers[:, :width])
        others = [numbers[:, j].copy() for j in range(width, numbers.shape[1])]
        fields = [Field(name, X[:, j]) for j, name in enumerate(shown)]
        encoding = Encoding(tuple(Column(name) for name in shown))
        if columns.encoding is not None or columns.missing == "mean":
            X, encoding = encoded(fields, columns, where)
    else:
        handle.seek(body)
        lines = csv.reader(handle, delimiter=delimiter)
        fields, others, dropped = _row_by_row(
            lines, blank + header_lines, names, chosen, columns, where
        )
        X, encoding = encoded(fields, columns, where)
        if dropped:
            notes += (f"{dropped} row(s) with missing values were left out.",)
    named = header or any(column.levels is not None for column in encoding.columns)
    return Table(
        X=X,
        names=encoding.names if named else None,
        target=others.pop(0) if chosen.target is not None else None,
        weights=others.pop(0) if chosen.weights is not None else None,
        notes=notes,
        encoding=encoding if named else None,
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
) -> tuple[list[Field], list[Any], int]:
    """Return the features, target and weights, and how many rows were left out."""
    order = (*chosen.features, *chosen.others)
    filled = set(chosen.features) if columns.fills else set()
    texts: list[list[str]] = [[] for _ in order]
    numbers: list[int] = []
    dropped = 0
    for row in lines:
        if len(row) < 2 and not "".join(row).strip():
            continue
        line = skipped + lines.line_num  # type: ignore[attr-defined]
        if len(row) != len(names):
            raise DataError(
                f"{where}, line {line}: {len(row)} fields, and the first line has {len(names)}."
            )
        fields = [row[j].strip() for j in order]
        gone = [j for j, field in zip(order, fields, strict=True) if field.lower() in MISSING]
        if columns.missing == "drop" and gone:
            dropped += 1
            continue
        refused = [j for j in gone if j not in filled]
        if refused:
            raise DataError(
                f"{where}, line {line}, column {names[refused[0]]!r}: the value is missing. Leave "
                "such rows out with --missing drop, or fill features with --missing mean."
            )
        numbers.append(line)
        for column, field in zip(texts, fields, strict=True):
            column.append(field)
    if not numbers:
        raise DataError(f"{where} has a header but no rows" + (" left." if dropped else "."))
    features = [
        _field(names[j], column, numbers, where)
        for j, column in zip(chosen.features, texts, strict=False)
    ]
    rest = texts[len(features) :]
    others: list[Any] = []
    if chosen.target is not None:
        others.append(as_numbers_or_text(rest[0]))
    if chosen.weights is not None:
        weights = _field(names[chosen.weights], rest[-1], numbers, where)
        if weights.values.dtype.kind != "f":
            raise DataError(f"{where}: the weights, column {weights.name!r}, are text.")
        others.append(weights.values)
    return features, others, dropped


def _field(name: str, texts: list[str], lines: list[int], where: str) -> Field:
    """Return a column as numbers, or as text where none of it is a number."""
    known = [None if text.lower() in MISSING else text for text in texts]
    if {text.lower() for text in known if text is not None} <= {"true", "false"}:
        known = [None if text is None else str(int(text.lower() == "true")) for text in known]
    try:
        values = np.array([np.nan if text is None else number_of(text) for text in known])
    except ValueError:
        bad, text = next((i, t) for i, t in enumerate(known) if t and not _is_number(t))
        if any(text is not None and _is_number(text) for text in known):
            raise DataError(
                f"{where}, line {lines[bad]}, column {name!r}: {text!r} is not a number, and "
                "others are. Correct it, or leave the column out with --drop."
            ) from None
        return Field(name, np.array(known, dtype=object))
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        raise DataError(
            f"{where}, line {lines[infinite[0]]}, column {name!r}: the value is infinite."
        )
    return Field(name, values)


def _is_number(field: str) -> bool:
    try:
        number_of(field)
    except ValueError:
        return False
    return True
