"""Parquet, through pandas and pyarrow where they are installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sparsemodel.cli.reading.table import Columns, Table, encoded
from sparsemodel.designs.tables.encoding import fields_of
from sparsemodel.interfaces import DataError, MissingDependencyError


def read_parquet(file: Path, columns: Columns) -> Table:
    """Read a table of numbers, text and categories."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependencyError(
            "Parquet files are read with pandas and pyarrow; pip install "
            "pandas pyarrow, or save the data as CSV or npz."
        ) from error
    try:
        frame = pd.read_parquet(file)
    except ImportError as error:
        raise MissingDependencyError(
            "pandas reads Parquet files with pyarrow; pip install pyarrow, or save "
            "the data as CSV or npz."
        ) from error
    except (OSError, ValueError) as error:  # pyarrow's errors derive from these
        raise DataError(f"{file} is not a Parquet file: {error}") from error
    if not len(frame):
        raise DataError(f"{file} has columns but no rows.")
    names = [str(name) for name in frame.columns]
    chosen = columns.select(names, str(file))
    frame = frame.iloc[:, [*chosen.features, *chosen.others]]
    notes: tuple[str, ...] = ()
    width = len(chosen.features)
    missing = frame.isna()
    if columns.fills:
        missing.iloc[:, :width] = False
    if missing.to_numpy().any():
        if columns.missing != "drop":
            row, column = (int(i) for i in np.argwhere(missing.to_numpy())[0])
            raise DataError(
                f"{file}, row {row + 1}, column {frame.columns[column]!r}: the value is missing. "
                "Leave such rows out with --missing drop, or fill features with --missing mean."
            )
        kept = ~missing.any(axis=1)
        frame = frame[kept]
        notes = (f"{int((~kept).sum())} row(s) with missing values were left out.",)
    X, encoding = encoded(fields_of(frame.iloc[:, :width], str(file)), columns, str(file))
    others = [frame.iloc[:, j] for j in range(width, frame.shape[1])]
    target = None
    if chosen.target is not None:
        series = others.pop(0)
        numeric = series.dtype.kind in "biuf"
        target = series.to_numpy(np.float64) if numeric else series.astype(str).to_numpy(str)
    return Table(
        X=X,
        names=encoding.names,
        target=target,
        weights=others.pop(0).to_numpy(np.float64) if chosen.weights is not None else None,
        notes=notes,
        encoding=encoding,
    )
