"""DataFrames and Series as arrays, nullable types included; pandas itself is never imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemodel.interfaces import DataError, DataTypeError

REAL_KINDS = "biuf"
"""NumPy's kinds of data types whose values are real numbers."""


def in_memory(table: Any, where: str) -> Any:
    """Return a table of Arrow as a DataFrame, anything else as it is.

    Raises
    ------
    DataTypeError
        For a table that is only a plan of one.
    """
    if type(table).__module__.startswith("pyarrow.") and hasattr(table, "to_pandas"):
        return table.to_pandas()
    if type(table).__name__ == "LazyFrame":
        raise DataTypeError(f"{where} is a LazyFrame, which has no rows yet; write df.collect().")
    return table


def refuse_times(frame: Any, where: str) -> None:
    """Refuse a DataFrame with dates or times, which would be numbers of days or nanoseconds.

    Raises
    ------
    DataTypeError
        The message names the columns.
    """
    dtypes = getattr(frame, "dtypes", None)
    if dtypes is None or not hasattr(frame, "columns"):  # neither pandas nor Polars
        return
    pairs = zip(frame.columns, dtypes, strict=True)
    names = [str(name) for name, dtype in pairs if _is_time(dtype)]
    if names:
        raise DataTypeError(
            f"{where} has columns of dates or times: {', '.join(map(repr, names))}. Make numbers "
            "of them that say what is meant, such as days since the first."
        )


def _is_time(dtype: Any) -> bool:
    of_polars = getattr(dtype, "is_temporal", None)
    if of_polars is not None:
        return bool(of_polars())
    # Periods are objects to NumPy.
    return getattr(dtype, "kind", "O") in "mM" or type(dtype).__name__ == "PeriodDtype"


def frame_array(frame: Any, where: str) -> Any:
    """Return the numeric columns of a DataFrame as one array.

    Columns of pandas' nullable and Arrow types, and booleans beside numbers, become float64.

    Raises
    ------
    DataTypeError
        When a column is not numeric; the message names it.
    DataError
        When a nullable column misses a value; the message names the column and the row.
    """
    dtypes = getattr(frame, "dtypes", None)
    if dtypes is None or not hasattr(frame, "columns"):  # neither pandas nor Polars
        return frame.to_numpy()
    of_polars = not hasattr(dtypes, "items")
    if of_polars:
        _check_kinds([frame[name].to_numpy().dtype for name in frame.columns], frame, where)
    else:
        _check_kinds(dtypes, frame, where)
    plain = True
    for j, dtype in enumerate(dtypes):
        if not isinstance(dtype, np.dtype):
            plain = of_polars
            column = frame[frame.columns[j]] if of_polars else frame.iloc[:, j]
            _check_present(column, f"{where}, column {str(frame.columns[j])!r}")
    array = frame.to_numpy() if plain else None
    if array is None or array.dtype.kind == "O":
        array = frame.to_numpy(dtype=np.float64)
    return array


def frame_of_dask(frame: Any, where: str) -> Any:
    """Return the numeric columns of a Dask DataFrame as a Dask array; rows stay where they are.

    The rows of the partitions are counted, which reads the frame once unless its files tell.

    Raises
    ------
    DataTypeError
        When a column is not numeric; the message names it.
    """
    _check_kinds(frame.dtypes, frame, where)
    plain = all(isinstance(dtype, np.dtype) for dtype in frame.dtypes)
    return (frame if plain else frame.astype(np.float64)).to_dask_array(lengths=True)


def _of_times(dtype: Any) -> bool:
    """Return whether a column holds dates, times between them, periods or intervals."""
    named = type(dtype).__name__ in ("PeriodDtype", "IntervalDtype")
    return named or getattr(dtype, "kind", "O") in "mM"


def _check_kinds(dtypes: Any, frame: Any, where: str) -> None:
    kinds = [getattr(dtype, "kind", "O") for dtype in dtypes]
    pairs = list(zip(frame.columns, dtypes, strict=True))
    times = [(str(name), dtype) for name, dtype in pairs if _of_times(dtype)]
    if times:  # which encode() refuses, too
        raise DataTypeError(
            f"{where} has a column {times[0][0]!r} of {times[0][1]}, which is neither numbers nor "
            "text; make numbers of it (of dates, days since one of them), or leave it out."
        )
    bad = [
        str(name) for name, kind in zip(frame.columns, kinds, strict=True) if kind not in REAL_KINDS
    ]
    if bad:
        listed = ", ".join(repr(name) for name in bad[:5]) + (", ..." if len(bad) > 5 else "")
        raise DataTypeError(
            f"{where} has columns that are not numeric: {listed}. "
            "Drop them, or write `A, features = sm.encode(df)`, which makes dummies of categories."
        )


def series_array(values: Any, where: str) -> Any:
    """Return a Series as an array: numbers, truth values, or what it holds otherwise.

    Raises
    ------
    DataError
        When a nullable Series misses a value; the message names the row.
    """
    dtype = getattr(values, "dtype", None)
    if dtype is None or isinstance(dtype, np.dtype) or not hasattr(values, "isna"):
        return values.to_numpy()
    _check_present(values, where)
    kind = getattr(dtype, "kind", "O")
    if kind == "b":
        return values.to_numpy(dtype=bool)
    return values.to_numpy(dtype=np.float64) if kind in "iuf" else values.to_numpy()


def _check_present(column: Any, where: str) -> None:
    absent = column.isna() if hasattr(column, "isna") else column.is_null()
    missing = np.asarray(absent, dtype=bool)
    if not missing.any():
        return
    row = int(np.argmax(missing))
    label = column.index[row] if hasattr(column, "index") else row
    shown = f"row {row}" if label == row else f"row {row} (index {str(label)!r})"
    raise DataError(
        f"{where}: {int(missing.sum())} value(s) are missing, the first in {shown}. "
        "Drop such rows, or write `A, features = sm.encode(df, missing='mean')`."
    )
