"""Data whose truth is known, after Hastie, Tibshirani and Tibshirani (2017)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsemodel.interfaces import FloatArray

NONZEROS = 5


class Case(NamedTuple):
    """What data are drawn with."""

    n: int
    p: int
    correlation: float
    """Of neighbouring columns; ``correlation ** |i - j|`` of others."""
    snr: float
    """The variance of the signal divided by that of the noise; zero for noise alone."""


class Draw(NamedTuple):
    """One data set with its truth."""

    X: FloatArray
    y: FloatArray
    coefficients: FloatArray
    covariance: FloatArray

    def risk(self, found: FloatArray) -> float:
        """Return the expected squared error of the signal, that of no coefficients being one.

        For noise alone it is relative to the variance of the noise.
        """
        error, truth = found - self.coefficients, self.coefficients
        size = float(truth @ self.covariance @ truth)
        return float(error @ self.covariance @ error) / (size or 1.0)

    def exact(self, found: FloatArray) -> bool:
        """Return whether the support is that of the truth."""
        return bool(np.array_equal(found != 0.0, self.coefficients != 0.0))


def draw(case: Case, seed: int) -> Draw:
    """Return five equal coefficients at equal distances, and observations of them."""
    rng = np.random.default_rng([seed, case.n, case.p])
    places = np.arange(case.p)
    covariance = case.correlation ** np.abs(np.subtract.outer(places, places)).astype(float)
    X = rng.standard_normal((case.n, case.p)) @ np.linalg.cholesky(covariance).T
    truth = np.zeros(case.p)
    noise = rng.standard_normal(case.n)
    if case.snr == 0.0:
        return Draw(X, noise, truth, covariance)
    truth[(np.arange(NONZEROS) * case.p) // NONZEROS] = 1.0
    sigma = np.sqrt(truth @ covariance @ truth / case.snr)
    return Draw(X, X @ truth + sigma * noise, truth, covariance)


__all__ = ["NONZEROS", "Case", "Draw", "draw"]
