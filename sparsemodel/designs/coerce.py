"""Turn what users pass as a matrix into a design, or say what is wrong with it."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.designs.chunked import ChunkedDesign
from sparsemodel.designs.dense import DenseDesign
from sparsemodel.designs.operator import OperatorDesign
from sparsemodel.designs.remote.foreign import ForeignDesign, is_foreign
from sparsemodel.designs.sparse import SparseDesign
from sparsemodel.designs.tables.encoding import Encoding, Missing, fields_of
from sparsemodel.designs.tables.formulas import Formula
from sparsemodel.designs.tables.frames import REAL_KINDS, frame_array, frame_of_dask, in_memory
from sparsemodel.designs.tables.labels import labels_of
from sparsemodel.designs.tables.parquet import ParquetRows, is_parquet
from sparsemodel.interfaces import (
    DataError,
    DataTypeError,
    Design,
    FloatArray,
    MissingDependencyError,
)
from sparsemodel.interfaces.numeric import described, is_masked

_ARRAY = "Pass a two-dimensional array or a data frame, with one row for each observation."

LAPACK_LIMIT = 2**31 - 1
"""Rows and columns at most: LAPACK counts them in 32 bits. Entries may be more."""

_FEWER = (
    ("rows", "Add up equal rows and give them weights, or solve on a sample of the rows."),
    ("columns", "Screen the columns, or hash the features into fewer."),
)


@rejects_unknown_arguments
def as_design(matrix: Any, *, where: str = "A", columns: Sequence[str] | None = None) -> Design:
    """Return a design matrix for ``@``, without a copy if the format allows it.

    Parameters
    ----------
    matrix
        A two-dimensional ndarray (real, integer or boolean), a SciPy sparse array or matrix, a
        ``LinearOperator``, a :class:`numpy.memmap` (read in blocks, never loaded), a Dask array
        or DataFrame (left where its blocks are), an array of PyTorch, JAX, CuPy or another library
        of the array API (left on its device; needs ``array-api-compat``), a pandas or Polars
        DataFrame or an Arrow table with numeric columns, a nested list, the path of a Parquet file
        or of a folder of them (read in blocks, never loaded; needs ``pyarrow``), or a
        :class:`~sparsemodel.interfaces.Design`, which is returned as it is.
    where
        Its name in error messages.
    columns
        Names of the columns to read from a Parquet file; None reads all.

    Returns
    -------
    Design
        Use it in place of the matrix, ``sm.as_design(matrix) @ w``.

    Raises
    ------
    DataError
        When the matrix is empty, not two-dimensional, has 2^31 rows or columns or more, or is
        sparse with indices out of range.
    DataTypeError
        When the entries are not real numbers, or an array of another library is not float32 or
        float64.
    MissingDependencyError
        When a package that is needed cannot be imported.

    Notes
    -----
    Whether the entries are finite is checked later, in the first product.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> from scipy.sparse.linalg import LinearOperator
    >>> double = LinearOperator((3, 3), matvec=lambda x: 2.0 * x, rmatvec=lambda r: 2.0 * r)
    >>> sm.as_design(double) @ sm.Variable(3, name="w")
    A @ w
    """
    matrix = in_memory(matrix, where)
    if is_parquet(matrix):
        return _mapped(ParquetRows(Path(matrix), columns, where), where)
    if columns is not None:
        raise DataTypeError(
            f"columns= is for Parquet files only, and {where} is of type "
            f"{type(matrix).__name__}; select columns before, for example with df[columns]."
        )
    if isinstance(matrix, Design):
        return matrix
    if _is_sparse(matrix):
        return _sparse(matrix, where)
    if _is_of_dask(matrix, "array", "Array"):
        return _distributed(matrix, where)
    if _is_of_dask(matrix, "dataframe", "DataFrame"):
        names = tuple(str(name) for name in matrix.columns)
        return _distributed(frame_of_dask(matrix, where), where, names)
    if isinstance(matrix, np.memmap):
        return _mapped(matrix, where)
    if is_foreign(matrix):
        _check_shape(tuple(matrix.shape), where)
        return ForeignDesign(matrix, where)
    if hasattr(matrix, "matvec") and hasattr(matrix, "rmatvec") and hasattr(matrix, "shape"):
        return _operator(matrix, where)
    return _dense(matrix, where)


@rejects_unknown_arguments
def encode(
    frame: Any,
    *,
    missing: Missing = "refuse",
    formula: str | None = None,
    like: DenseDesign | None = None,
) -> tuple[DenseDesign, tuple[str, ...]]:
    """Return a DataFrame as a design with dummy columns, and the feature of each column.

    Numbers and truth values remain one column. Text and categories become one column of zeros and
    ones for each category except the first (in the declared order, or sorted), named
    ``colour[red]``. ``solution.predict`` encodes new data frames in the same way.

    Parameters
    ----------
    frame
        A pandas or Polars DataFrame, an Arrow table, or an object that has ``columns`` and gives
        columns with ``to_numpy()``.
    missing
        ``"refuse"`` raises an error; ``"mean"`` replaces missing numbers by the column mean and
        missing categories by the most frequent one. New data are filled with the same values.
    formula
        A formula for the columns as in R, ``"age * colour + log(size)"``; needs ``formulaic``.
        The constant (add a variable for it) and a target before ``~`` are ignored.
    like
        What ``encode`` returned before: new rows get the same columns, the same categories, and
        the same values where some are missing.

    Returns
    -------
    design : DenseDesign of shape (n, p)
    features : tuple of str, of length p
        The feature (or term of the formula) of each column. With
        ``sm.card(w, groups=features)`` each counts once.

    Raises
    ------
    DataError, DataTypeError
        When values are missing, or when a column is neither numbers nor text or has nearly as many
        different texts as rows. The message names the column.

    Examples
    --------
    >>> import pandas as pd, sparsemodel as sm
    >>> A, features = sm.encode(pd.DataFrame({"age": [3, 5, 4], "colour": ["red", "blue", "red"]}))
    >>> A.names, features, A.array.tolist()
    (('age', 'colour[red]'), ('age', 'colour'), [[3.0, 1.0], [5.0, 0.0], [4.0, 1.0]])
    """
    if _is_of_dask(frame, "dataframe", "DataFrame"):
        raise DataTypeError(
            "encode() takes a DataFrame in memory, and this one is of Dask; make the dummies "
            "there, with dask.dataframe.get_dummies(df.categorize()), or encode df.compute()."
        )
    frame = in_memory(frame, "The data frame")
    names = column_names(frame)
    if names is None or isinstance(frame, Design):
        raise DataTypeError(
            f"encode() takes a DataFrame, not {type(frame).__name__}. Write pd.DataFrame(...) of "
            "columns with text; an array of numbers needs no encoding: `A @ w`."
        )
    if not names:
        raise DataError("The data frame has no columns.")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise DataError(f"The data frame has {times} columns named {name!r}; rename all but one.")
    encoding: Encoding | Formula
    if like is not None:
        if missing != "refuse" or formula is not None:
            raise DataError(
                "With like= the columns are as before; leave missing= and formula= out."
            )
        encoding, array = _encoded_like(frame, names, like)
    elif formula is not None:
        if not isinstance(formula, str):
            text = "a text such as 'age * colour'"
            raise DataTypeError(f"formula must be {text}, not {described(formula)}.")
        if missing != "refuse":
            raise DataError("A formula fills no missing values; drop such rows, or fill them.")
        encoding, array = Formula.of(formula, frame, "The data frame")
    else:
        fields = fields_of(frame, "The data frame")
        encoding = Encoding.of(fields, missing, "The data frame")
        array = encoding.apply({field.name: field.values for field in fields}, "The data frame")
    _check_shape(array.shape, "The encoded data frame")
    design = DenseDesign(array, encoding.names, encoding=encoding, labels=labels_of(frame))
    return design, encoding.features


def _encoded_like(
    frame: Any, names: tuple[str, ...], like: Any
) -> tuple[Encoding | Formula, FloatArray]:
    """Return the encoding of an earlier table, and this one in the same way."""
    encoding: Encoding | Formula | None = getattr(like, "encoding", None)
    if encoding is None:
        raise DataTypeError(
            "like= takes the design that sm.encode returned of the first data frame, as in "
            f"`A, features = sm.encode(df)`, not {described(like)}."
        )
    wanted, _ = encoding.needed(np.ones(len(encoding.names), dtype=bool))
    missing = [name for name in wanted if name not in names]
    if missing:
        raise DataError(f"The data frame lacks the column {missing[0]!r}, which was there before.")
    return encoding, encoding.of_frame(frame, wanted, "The data frame")


def column_names(matrix: Any) -> tuple[str, ...] | None:
    """Return the column names of a DataFrame (or of a design made of one), None for others."""
    if isinstance(matrix, Design):
        return matrix.names
    columns = getattr(matrix, "columns", None)
    if columns is None or not (hasattr(matrix, "to_numpy") or hasattr(matrix, "to_dask_array")):
        return None
    return tuple(str(c) for c in columns)


def _is_sparse(matrix: Any) -> bool:
    # SciPy's sparse package is imported only if something else already has.
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(matrix))


def _sparse(matrix: Any, where: str) -> Design:
    _check_shape(matrix.shape, where)
    _check_kind(matrix.dtype, where)
    if matrix.format not in ("csr", "csc"):
        matrix = matrix.tocsr()
    _check_indices(matrix, where)
    if matrix.dtype not in (np.float64, np.float32):
        matrix = matrix.astype(np.float64)
    return SparseDesign(matrix)


def _is_of_dask(matrix: Any, module: str, name: str) -> bool:
    found = sys.modules.get(f"dask.{module}")
    return found is not None and isinstance(matrix, getattr(found, name))


def _distributed(array: Any, where: str, names: tuple[str, ...] | None = None) -> Design:
    try:
        import dask.base
        import dask.delayed  # noqa: F401
    except ImportError as error:
        raise _dask_is_missing(where, error) from error
    from sparsemodel.designs.remote.distributed import DistributedDesign

    _check_shape(array.shape, where)
    _check_kind(array.dtype, where)
    return DistributedDesign(array, names)


def _mapped(array: Any, where: str) -> Design:
    _check_shape(array.shape, where)
    _check_kind(array.dtype, where)
    return ChunkedDesign(array)


def _operator(operator: Any, where: str) -> Design:
    _check_shape(operator.shape, where)
    dtype = getattr(operator, "dtype", None)
    if dtype is not None:
        _check_kind(np.dtype(dtype), where)
    return OperatorDesign(operator)


def _dense(matrix: Any, where: str) -> Design:
    if isinstance(matrix, str) and "~" in matrix:
        raise DataTypeError(
            f"{where} is the formula {matrix!r}, not numbers. Write `A, features = sm.encode(df, "
            "formula=...)`."
        )
    if isinstance(matrix, (str, os.PathLike)):
        raise DataTypeError(
            f"{where} is the path {str(matrix)!r}, which is not that of a Parquet file. Write "
            "numpy.load(path, mmap_mode='r') for a file of NumPy, numpy.load(path)['A'] for an "
            "array in an npz file, pandas.read_csv(path) for a table of text."
        )
    if isinstance(matrix, tuple) and any(isinstance(part, Design) for part in matrix):
        raise DataTypeError(
            f"{where} is all that encode() returns; write `A, features = sm.encode(df)`."
        )
    if isinstance(matrix, np.lib.npyio.NpzFile):
        raise DataTypeError(
            f"{where} is a file of the arrays {', '.join(matrix.files[:5])}; "
            f"take one of them, with A[{(matrix.files or ['A'])[0]!r}]."
        )
    names, labels = column_names(matrix), labels_of(matrix)
    if hasattr(matrix, "to_numpy"):
        matrix = frame_array(matrix, where)
    try:
        array = np.asarray(matrix)
    except ValueError as error:
        raise DataError(
            f"{where} is not a matrix: its rows have different lengths. {_ARRAY}"
        ) from error
    except ImportError as error:
        if type(matrix).__module__.partition(".")[0] != "dask":
            raise
        raise _dask_is_missing(where, error) from error
    if is_masked(matrix):
        raise DataTypeError(f"{where} is a masked array; fill or drop the missing entries first.")
    if array.ndim == 0:
        raise DataTypeError(f"{where} is {described(matrix)}, not a matrix. {_ARRAY}")
    _check_shape(array.shape, where)
    _check_kind(array.dtype, where)
    if array.dtype not in (np.float64, np.float32) or not array.dtype.isnative:
        with np.errstate(all="ignore"):  # longer floats may overflow: infinite entries are found
            array = array.astype(np.float64)
    return DenseDesign(array, names, labels=labels)


def _check_shape(shape: tuple[int, ...], where: str) -> None:
    if len(shape) != 2:
        raise DataError(
            f"{where} must have two dimensions (observations x features), not shape {shape}."
            + (" Use A.reshape(-1, 1) for a single feature." if len(shape) == 1 else "")
        )
    if shape[0] == 0 or shape[1] == 0:
        raise DataError(f"{where} is empty: its shape is {tuple(shape)}.")
    for size, (kind, advice) in zip(shape, _FEWER, strict=True):
        if size > LAPACK_LIMIT:
            raise DataError(
                f"{where} has {size:,} {kind}; at most 2^31 - 1 = {LAPACK_LIMIT:,} can be solved. "
                f"{advice}"
            )


def _check_indices(matrix: Any, where: str) -> None:
    lines, width = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    starts = matrix.indptr
    sound = starts.size == lines + 1 and starts[0] == 0 and not np.any(starts[1:] < starts[:-1])
    if sound:
        used = matrix.indices[: starts[-1]]
        sound = used.size == starts[-1] <= matrix.data.size
        sound = sound and (not used.size or (used.min() >= 0 and used.max() < width))
    if not sound:
        raise DataError(
            f"{where} is a damaged sparse matrix: its indices do not fit its shape {matrix.shape}. "
            "Make it again from rows, columns and values; from 2^31 entries on, "
            "indptr and indices must be int64."
        )


def _dask_is_missing(where: str, error: ImportError) -> MissingDependencyError:
    return MissingDependencyError(
        f"{where} is a Dask array, but Dask cannot be imported whole ({error}); "
        "pip install 'dask[array,distributed]', or pass the computed NumPy array."
    )


def _check_kind(dtype: Any, where: str) -> None:
    if dtype.kind == "c":
        raise DataTypeError(
            f"{where} is complex. For real unknowns stack its real and imaginary parts as rows of "
            "a real matrix, `np.vstack([A.real, A.imag])`. Complex unknowns are two columns of a "
            "real variable W of shape (p, 2), counted by rows: the real part of A @ w is "
            "`A.real @ W[:, 0] - A.imag @ W[:, 1]`, the imaginary `A.imag @ W[:, 0] + A.real @ "
            "W[:, 1]`."
        )
    if dtype.kind not in REAL_KINDS:
        raise DataTypeError(
            f"{where} has dtype {dtype}, which is not a real number type; "
            "convert it with A.astype(float) after encoding text or missing values."
        )
