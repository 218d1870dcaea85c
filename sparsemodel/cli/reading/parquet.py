"""Parquet, through pandas and pyarrow where they are installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sparsemodel.cli.reading.table import Columns, Table
from sparsemodel.interfaces import DataError, MissingDependencyError


def read_parquet(file: Path, columns: Columns) -> Table:
    """Read a table of numbers whose target may be text or categories."""
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
    names = [str(name) for name in frame.columns]
    chosen = columns.select(names, str(file))
    frame = frame.iloc[:, [*chosen.features, *chosen.others]]
    notes: tuple[str, ...] = ()
    missing = frame.isna()
    if missing.to_numpy().any():
        if not columns.drop_missing:
            row, column = (int(i) for i in np.argwhere(missing.to_numpy())[0])
            raise DataError(
                f"{file}, row {row + 1}, column {frame.columns[column]!r}: the value is missing. "
                "Impute it, or leave such rows out with --missing drop."
            )
        kept = ~missing.any(axis=1)
        frame = frame[kept]
        notes = (f"{int((~kept).sum())} row(s) with missing values were left out.",)
    width = len(chosen.features)
    features = frame.iloc[:, :width]
    bad = [str(n) for n, dtype in features.dtypes.items() if dtype.kind not in "biuf"]
    if bad:
        raise DataError(
            f"{file}: the column {bad[0]!r} is not numeric. Encode it as numbers, or leave it out "
            "with --drop."
        )
    others = [frame.iloc[:, j] for j in range(width, frame.shape[1])]
    target = None
    if chosen.target is not None:
        series = others.pop(0)
        numeric = series.dtype.kind in "biuf"
        target = series.to_numpy(np.float64) if numeric else series.astype(str).to_numpy(str)
    return Table(
        X=features.to_numpy(np.float64),
        names=tuple(names[j] for j in chosen.features),
        target=target,
        weights=others.pop(0).to_numpy(np.float64) if chosen.weights is not None else None,
        notes=notes,
    )


__all__ = ["read_parquet"]
