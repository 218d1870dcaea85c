"""The ways in which a matrix may be handed over."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from sparsemodel.interfaces import FloatArray
from sparsemodel.testing.designs import read_only
from tests.referee.textbook_losses import Long, long


def parts(matrix: Any) -> list[Any]:
    """Return the arrays a matrix is stored in."""
    names = ("data", "indices", "indptr", "row", "col")
    if isinstance(matrix, np.ndarray):
        return [matrix]
    if sparse.issparse(matrix):
        return [getattr(matrix, name) for name in names if hasattr(matrix, name)]
    return []


def multiplies(matrix: Any) -> bool:
    """Return whether ``matrix @ w`` is left to the variable, as arrays do."""
    return isinstance(matrix, np.ndarray) or sparse.issparse(matrix)


def stored(kind: str, a: FloatArray) -> tuple[Any, Long]:
    """Return an array in a storage, and the entries that the storage holds."""
    if kind == "float32":
        a = a.astype(np.float32).astype(np.float64)
        return a.astype(np.float32), long(a)
    if kind == "integers":
        whole = np.clip(np.round(a), -(2.0**62), 2.0**62).astype(np.int64)
        return whole, long(whole.astype(np.float64))
    if kind == "repeated entries":
        a = 2.0 * (0.5 * a)  # half of the smallest numbers is rounded
    makers: dict[str, Callable[[FloatArray], Any]] = {
        "C order": np.ascontiguousarray,
        "F order": np.asfortranarray,
        "strided": lambda b: np.repeat(np.repeat(b, 2, axis=1), 3, axis=0)[::3, ::2],
        "reversed": lambda b: np.ascontiguousarray(b[::-1, ::-1])[::-1, ::-1],
        "read-only": read_only,
        "big-endian": lambda b: b.astype(">f8"),
        "nested list": lambda b: b.tolist(),
        "CSC": sparse.csc_array,
        "CSR": sparse.csr_array,
        "COO": sparse.coo_array,
        "explicit zeros": _with_zeros,
        "unsorted": _unsorted,
        "repeated entries": _repeated,
        "operator": aslinearoperator,
        "data frame": _frame,
        "nullable data frame": lambda b: _frame(b).astype("Float64"),
    }
    return makers[kind](a), long(a)


def _frame(a: FloatArray) -> Any:
    """Return a data frame in which every name stands for two columns."""
    frames = import_module("pandas")
    return frames.DataFrame(a, columns=[f"x{j // 2}" for j in range(a.shape[1])])


def _with_zeros(a: FloatArray) -> Any:
    n, p = a.shape
    indices, indptr = np.tile(np.arange(p), n), np.arange(n + 1) * p
    return sparse.csr_array((a.ravel(), indices, indptr), shape=a.shape)


def _unsorted(a: FloatArray) -> Any:
    b = sparse.csr_array(a)
    for i in range(a.shape[0]):
        row = slice(b.indptr[i], b.indptr[i + 1])
        b.indices[row], b.data[row] = b.indices[row][::-1].copy(), b.data[row][::-1].copy()
    b.has_sorted_indices = False
    return b


def _repeated(a: FloatArray) -> Any:
    # Every entry stored as two halves: exact, and equal to the entry when they are added.
    half = sparse.csr_array(a)
    indices, data = np.repeat(half.indices, 2), np.repeat(half.data * 0.5, 2)
    b = sparse.csr_array((data, indices, half.indptr * 2), shape=a.shape)
    b.has_canonical_format = False
    return b
