"""Read the data sets of this folder; each file is packed in the way that makes it small."""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsemodel.datasets import Dataset
from sparsemodel.datasets.archive import describe, read_entry, read_sheet

FOLDER = Path(__file__).parent
Arrays = dict[str, NDArray[Any]]


def names() -> tuple[str, ...]:
    """Return the names :func:`load` knows, sorted."""
    return tuple(sorted(read_sheet(FOLDER)))


def load(name: str) -> Dataset:
    """Return a data set by name.

    ``X`` is float64, except ``flights`` (float32, 221 MB) and ``spam_text`` (a CSR array).
    """
    entry, arrays = read_entry(FOLDER, name)
    X, features = _UNPACK[name](arrays)
    y, classes = _target(name, arrays.pop("y"), arrays.pop("classes", None))
    return Dataset(
        name=name,
        X=X,
        y=y,
        feature_names=features,
        target_names=classes,
        description=describe(entry),
        source=entry["source"],
        licence=entry["licence"],
        sha256=entry["sha256"],
        extra=MappingProxyType(arrays),
    )


def _target(
    name: str, y: NDArray[Any], classes: NDArray[Any] | None
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Return a float target, or labels from zero and the names of the classes."""
    if name in ("flights", "lucas_house"):
        return y.astype(np.float64), ()
    labels = y.astype(np.intp)
    labels -= labels.min()
    if classes is not None:
        return labels, tuple(classes.tolist())
    return labels, _CLASSES[name]


def _numbered(prefix: str, p: int) -> tuple[str, ...]:
    return tuple(f"{prefix}_{j}" for j in range(p))


def _plain(prefix: str) -> Callable[[Arrays], tuple[Any, tuple[str, ...]]]:
    def unpack(arrays: Arrays) -> tuple[Any, tuple[str, ...]]:
        X = arrays.pop("X").astype(np.float64)
        features = arrays.pop("names", None)
        named = _numbered(prefix, X.shape[1]) if features is None else tuple(features.tolist())
        return X, named

    return unpack


def _fixed_point(arrays: Arrays) -> tuple[Any, tuple[str, ...]]:
    X = arrays.pop("X_q") / float(arrays.pop("scale"))
    return X, _numbered("probe", X.shape[1])


def _bits(arrays: Arrays) -> tuple[Any, tuple[str, ...]]:
    """Numeric columns, then zero-one columns stored eight to a byte."""
    flags = np.unpackbits(arrays.pop("bits"), axis=1, count=int(arrays.pop("n_bits")))
    X = np.concatenate([arrays.pop("num").astype(np.float64), flags], axis=1)
    return X, tuple(arrays.pop("names").tolist())


def _counts(arrays: Arrays) -> tuple[Any, tuple[str, ...]]:
    """A sparse matrix by columns, with the number of entries of each instead of offsets."""
    n, p = arrays.pop("shape").tolist()
    indptr = np.concatenate([[0], np.cumsum(arrays.pop("csc_colcount"), dtype=np.int32)])
    entries = arrays.pop("csc_data").astype(np.float64)
    rows = arrays.pop("csc_rows").astype(np.int32)
    X = sp.csc_array((entries, rows, indptr), shape=(n, p)).tocsr()
    return X, _numbered("term", p)


def _categories(arrays: Arrays) -> tuple[Any, tuple[str, ...]]:
    """One-hot columns from codes, one block per categorical variable, then numeric columns."""
    codes, levels = arrays.pop("cat").astype(np.intp), arrays.pop("card")
    numeric = arrays.pop("num")
    first = np.cumsum(levels) - levels
    X = np.zeros((codes.shape[0], int(levels.sum()) + numeric.shape[1]), dtype=np.float32)
    np.put_along_axis(X, codes + first, np.float32(1.0), axis=1)
    X[:, -numeric.shape[1] :] = numeric
    return X, (*arrays.pop("cat_names").tolist(), *arrays.pop("num_names").tolist())


_CLASSES = {
    "letter": tuple(string.ascii_uppercase),
    "mnist5k": tuple(string.digits),
    "spam_text": ("ham", "spam"),
}
_UNPACK: dict[str, Callable[[Arrays], tuple[Any, tuple[str, ...]]]] = {
    "adult": _bits,
    "bladder22k": _fixed_point,
    "flights": _categories,
    "glioma_meth": _fixed_point,
    "letter": _plain("feature"),
    "lucas_house": _plain("feature"),
    "mnist5k": _plain("pixel"),
    "spam_text": _counts,
}

__all__ = ["FOLDER", "load", "names"]
