"""Random predictions for the checks of losses, and the comparisons they are made of."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import DataFit, FloatArray
from sparsemodel.testing.report import CheckFailure

SCALES = (0.3, 2.0, 8.0)
"""Standard deviations of the predictions that laws are checked at."""


def predictions(
    loss: DataFit, y: FloatArray, rng: np.random.Generator, scale: float = 2.0
) -> FloatArray:
    """Return normal predictions in the shape that the target asks for."""
    outputs = loss.outputs(y)
    shape: tuple[int, ...] = (y.shape[0],) if outputs == 1 else (y.shape[0], outputs)
    return scale * rng.standard_normal(size=shape)


def weights(y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return unequal positive weights."""
    return 0.2 + 1.8 * rng.random(size=(y.shape[0],))


def row_sums(v: FloatArray) -> FloatArray:
    """Return one number per observation."""
    return v if v.ndim == 1 else np.asarray(v.sum(axis=1))


def expect(condition: object, message: str) -> None:
    """Raise :class:`CheckFailure` unless ``condition`` holds in every entry."""
    holds = np.atleast_1d(np.asarray(condition))
    if not holds.all():
        where = np.argwhere(~holds)[0].tolist()
        place = f" (first at index {where}, {int((~holds).sum())} in all)" if holds.size > 1 else ""
        raise CheckFailure(message + place)


def near(
    actual: FloatArray | float, expected: FloatArray | float, message: str, tol: float = 1e-12
) -> None:
    """Raise :class:`CheckFailure` where entries differ by ``tol * (1 + max|expected|)``."""
    actual, expected = np.atleast_1d(actual), np.atleast_1d(expected)
    expect(actual.shape == expected.shape, f"{message}: shapes {actual.shape}, {expected.shape}")
    error = np.abs(actual - expected)
    size = 1.0 + float(np.max(np.abs(expected), initial=0.0))
    expect(error <= tol * size, f"{message}: off by {error.max(initial=0.0):.3g}")
