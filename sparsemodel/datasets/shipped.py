"""The data sets that are installed with the package: small, real, no download."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.datasets.dataset import Dataset


@rejects_unknown_arguments
def load_golub() -> Dataset:
    """Return gene expression of 38 leukaemia patients, ALL (0) against AML (1), 38 x 3051.

    The training samples of Golub et al. (1999): far more features than observations, and a few
    genes that tell the classes apart.

    Examples
    --------
    >>> from sparsemodel.datasets import load_golub
    >>> load_golub()
    <Dataset golub: 38 x 3051, classes ALL, AML>
    """
    entry, arrays = _read("golub")
    X = arrays["X"].astype(np.float64)
    return _dataset("golub", entry, X, arrays["y"].astype(np.intp), _genes(X.shape[1]))


@rejects_unknown_arguments
def load_khan() -> Dataset:
    """Return gene expression of 83 tumours of four types, 83 x 2308.

    ``extra["is_test"]`` marks the 20 test samples of Khan et al. (2001).

    Examples
    --------
    >>> from sparsemodel.datasets import load_khan
    >>> data = load_khan()
    >>> data
    <Dataset khan: 83 x 2308, classes BL, EWS, NB, RMS>
    >>> int(data.extra["is_test"].sum())
    20
    """
    entry, arrays = _read("khan")
    X, labels = arrays["X"].astype(np.float64), arrays["y"].astype(np.intp) - 1
    extra = {"is_test": arrays["is_test"]}
    return _dataset("khan", entry, X, labels, _genes(X.shape[1]), extra)


@rejects_unknown_arguments
def load_ecg() -> Dataset:
    """Return an electrocardiogram ``y`` of 1024 samples and the cosine basis ``X``.

    ``X`` is orthonormal and ``X @ w`` is the signal with cosine coefficients ``w``, so taking
    some rows of ``X`` and ``y`` gives a compressed-sensing problem with a real signal. O(p^2)
    memory, 8 MB.

    Examples
    --------
    >>> from sparsemodel.datasets import load_ecg
    >>> load_ecg()
    <Dataset ecg: 1024 x 1024>
    """
    from scipy.fft import idct  # only this loader needs it

    entry, arrays = _read("ecg")
    y = arrays["y"].astype(np.float64)
    X = np.ascontiguousarray(idct(np.eye(y.size), norm="ortho", axis=0))
    return _dataset("ecg", entry, X, y, (f"cosine_{j}" for j in range(y.size)))


@rejects_unknown_arguments
def load_lucas() -> Dataset:
    """Return 6340 house sales with 36 features; the target is the logarithm of the price.

    More observations than features, columns on scales from 1 to 1e5, rare categories.

    Examples
    --------
    >>> from sparsemodel.datasets import load_lucas
    >>> data = load_lucas()
    >>> data
    <Dataset lucas: 6340 x 36>
    >>> data.feature_names[:3]
    ('yrbuilt', 'TLA', 'beds')
    """
    entry, arrays = _read("lucas")
    X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.float64)
    return _dataset("lucas", entry, X, y, arrays["names"].tolist())


def _read(name: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    # Imported here: reading files takes modules that importing the package need not load.
    from importlib.resources import files

    from sparsemodel.datasets.archive import read_entry

    return read_entry(files("sparsemodel.datasets") / "data", name)


def _dataset(
    name: str,
    entry: dict[str, Any],
    X: NDArray[np.float64],
    y: NDArray[Any],
    feature_names: Iterable[str],
    extra: Mapping[str, NDArray[Any]] = MappingProxyType({}),
) -> Dataset:
    from sparsemodel.datasets.archive import describe

    return Dataset(
        name=name,
        X=X,
        y=y,
        feature_names=tuple(feature_names),
        target_names=tuple(entry["target_names"]),
        description=describe(entry),
        source=entry["source"],
        licence=entry["licence"],
        sha256=entry["sha256"],
        extra=MappingProxyType(dict(extra)),
    )


def _genes(p: int) -> Iterable[str]:
    return (f"gene_{j + 1}" for j in range(p))
