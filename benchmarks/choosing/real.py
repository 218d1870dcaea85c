"""Slices of the real data sets, small enough for every backend."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.data.load import load

_SHIPPED = ("golub", "khan", "lucas")


@cache
def table(name: str, rows: int = 0, columns: int = 0) -> tuple[Any, Any]:
    """Return standardised ``(X, y)``: every so-many-th row, the columns that vary most.

    Sparse data keep their zeros and are only scaled.
    """
    data = getattr(sm.datasets, f"load_{name}")() if name in _SHIPPED else load(name)
    X, y = data.X, np.asarray(data.y)
    if rows and rows < X.shape[0]:
        kept = np.sort(np.random.default_rng(0).choice(X.shape[0], rows, replace=False))
        X, y = X[kept], y[kept]
    return (_dense if isinstance(X, np.ndarray) else _sparse)(X, columns), y


@cache
def bare(name: str, rows: int) -> tuple[Any, Any]:
    """Return ``(X, y)`` with dense unit columns, one of ones among them, not centred."""
    data = load(name)
    kept = np.sort(np.random.default_rng(0).choice(data.X.shape[0], rows, replace=False))
    X = np.asarray(data.X[kept].todense() if hasattr(data.X, "todense") else data.X[kept], float)
    X = np.column_stack([X, np.ones(rows)])
    size = np.linalg.norm(X, axis=0)
    return X[:, size > 0.0] / size[size > 0.0], np.asarray(data.y)[kept]


def _dense(X: Any, columns: int) -> Any:
    X = np.asarray(X, dtype=np.float64)
    spread = X.std(axis=0)
    kept = np.flatnonzero(spread > 1e-9)
    if columns and columns < kept.size:
        kept = np.sort(kept[np.argsort(-spread[kept], kind="stable")[:columns]])
    return (X[:, kept] - X[:, kept].mean(axis=0)) / spread[kept]


def _sparse(X: Any, columns: int) -> Any:
    X = X.tocsc()
    common = np.diff(X.indptr)
    kept = np.sort(np.argsort(-common, kind="stable")[: columns or X.shape[1]])
    return X[:, kept].tocsr()


def signs(y: Any, positive: int) -> Any:
    """Return 1 for a class and -1 for the others."""
    return np.where(y == positive, 1.0, -1.0)


def standard(y: Any) -> Any:
    """Return ``y`` with mean zero and variance one."""
    return (y - y.mean()) / y.std()
