"""NumPy archives (``.npz``): nothing is unpickled, and nothing is larger than it says."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from sparsemodel.cli.exits import UsageError
from sparsemodel.cli.reading.table import Columns, Table
from sparsemodel.interfaces import DataError

_MATRIX = ("X", "A", "data")
_TARGET = ("y", "b", "target")
_NAMES = ("names", "feature_names")
_SPARSE = frozenset({"indices", "indptr", "format", "shape", "data"})


def read_archive(file: Path, columns: Columns) -> Table:
    """Read features ``X`` (or ``A``, ``data``), target ``y`` (``b``, ``target``) and ``names``.

    A matrix written by :func:`scipy.sparse.save_npz` into a file of its own is understood too;
    other arrays are chosen with ``columns.matrix``, ``columns.target`` and ``columns.weights``.
    """
    arrays = _load(file, columns.max_bytes)
    if set(arrays) >= _SPARSE:
        matrix: Any = _sparse(arrays, file)
    else:
        matrix = _named(arrays, columns.matrix, _MATRIX, "--matrix", file)
    if matrix is None:
        raise UsageError(
            f"{file} has no array {' or '.join(map(repr, _MATRIX))}; name the features with "
            f"--matrix ({', '.join(arrays)})."
        )
    if matrix.ndim != 2:
        raise DataError(f"{file}: the features must be a matrix, not of shape {matrix.shape}.")
    names = _named(arrays, None, _NAMES, "", file)
    table = Table(
        X=matrix,
        names=None if names is None or names.ndim != 1 else tuple(str(n) for n in names),
        target=_named(arrays, columns.target, _TARGET, "--target", file),
        weights=_named(arrays, columns.weights, (), "--weights", file),
    )
    if table.names is not None and len(table.names) != matrix.shape[1]:
        raise DataError(f"{file}: {len(table.names)} names for {matrix.shape[1]} columns.")
    if columns.drop or columns.keep is not None:
        table = _columns_of(table, columns, file)
    return table


def _columns_of(table: Table, columns: Columns, file: Path) -> Table:
    count = table.X.shape[1]
    names = table.names or tuple(f"column_{j}" for j in range(1, count + 1))
    chosen = Columns(drop=columns.drop, keep=columns.keep).select(names, str(file)).features
    return Table(
        X=table.X[:, list(chosen)],
        names=None if table.names is None else tuple(names[j] for j in chosen),
        target=table.target,
        weights=table.weights,
    )


def _named(
    arrays: dict[str, Any],
    wanted: str | None,
    usual: tuple[str, ...],
    option: str,
    file: Path,
) -> Any:
    if wanted is None:
        return next((arrays[name] for name in usual if name in arrays), None)
    if wanted not in arrays:
        raise UsageError(
            f"{file} has no array {wanted!r} for {option}; it has {', '.join(arrays)}."
        )
    return arrays[wanted]


def _load(file: Path, limit: int) -> dict[str, Any]:
    """Return every array, after comparing what its header claims with what is there."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            if total > limit:
                raise DataError(
                    f"{file} unpacks to {total / 1e9:.3g} GB, more than the limit of "
                    f"{limit / 1e9:.3g} GB; raise it with --max-gigabytes."
                )
            for member in members:
                if member.filename.endswith(".npy"):
                    _check_header(archive, member, file)
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except zipfile.BadZipFile as error:
        raise DataError(f"{file} is not a NumPy archive (.npz): {error}.") from error
    # zlib: damaged content; NotImplementedError, RuntimeError: an unknown method, a password.
    except (ValueError, EOFError, RuntimeError, zlib.error) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{file}: an array cannot be read: {error}") from error


def _check_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: Path) -> None:
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
        body = member.file_size - stream.tell()
    if dtype.hasobject:
        raise DataError(
            f"{file}: the array {name!r} holds Python objects, which are not unpickled; save "
            "numbers, or text as arrays of strings."
        )
    if math.prod(shape) * dtype.itemsize != body:
        raise DataError(f"{file}: the array {name!r} is damaged: its header and size disagree.")


def _sparse(arrays: dict[str, Any], file: Path) -> Any:
    from scipy.sparse import csc_array, csr_array

    kind = arrays["format"].item()
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    makers = {"csr": csr_array, "csc": csc_array}
    if kind not in makers:
        raise DataError(f"{file}: the sparse format {kind!r} is not csr or csc.")
    try:
        matrix = makers[kind](
            (arrays["data"], arrays["indices"], arrays["indptr"]),
            shape=tuple(int(s) for s in arrays["shape"]),
        )
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataError(f"{file}: the sparse matrix is inconsistent: {error}.") from error
    return matrix
