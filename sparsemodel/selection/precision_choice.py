r"""Choosing the number of edges of a precision matrix.

With :math:`n` observations of covariance ``S`` and a matrix of ``k`` counted edges and ``d`` free
entries (the diagonal included), the information criteria are those of
:mod:`sparsemodel.selection.criteria` with
:math:`2\ell = n(-\log\det\Omega + \langle S,\Omega\rangle)`, but for EBIC, which is that of Foygel
and Drton (NIPS 2010) with :math:`\gamma = 1/2`:
:math:`2\ell + d \log n + 4 \gamma k \log p`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import BoolArray, DataError, FloatArray, IntArray, ModelError
from sparsemodel.interfaces.numeric import random_numbers, shown, whole_number
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.selection.criteria import CRITERIA
from sparsemodel.selection.cross_validation import CrossValidation
from sparsemodel.selection.path import PathPoint
from sparsemodel.selection.precision_path import solve_precision_path

GAMMA = 0.5
"""The constant of EBIC, as in the simulations of Foygel and Drton (2010)."""


@final
class Observations:
    """The rows behind a covariance matrix, and the problem on some of them.

    Parameters
    ----------
    X
        Observations in rows; held by reference.
    form_on
        The problem on the rows of a mask, everything estimated from them.
    """

    def __init__(self, X: FloatArray, form_on: Callable[[BoolArray], SparsePrecision]) -> None:
        self.X = X
        self.form_on = form_on

    def held_out(self, kept: BoolArray) -> FloatArray:
        """Return the covariance of the rows that are not kept, about the mean of the kept ones."""
        deviations = self.X[~kept] - self.X[kept].mean(axis=0)
        out: FloatArray = deviations.T @ deviations / deviations.shape[0]
        return out


def precision_criterion_values(
    form: SparsePrecision,
    points: Sequence[PathPoint],
    criterion: str,
    *,
    covariance: FloatArray,
    samples: int | None,
) -> FloatArray:
    """Return the criterion for each point of a path; smaller is better.

    Parameters
    ----------
    covariance
        The empirical covariance alone, without what else the objective may hold.
    samples
        How many observations it was computed from.

    Raises
    ------
    ModelError
        For an unknown criterion, and when the number of observations is not known.
    """
    if criterion not in CRITERIA:
        raise ModelError(f"There is no criterion {criterion!r}; known: {', '.join(CRITERIA)}.")
    if samples is None:
        raise ModelError(
            f"{criterion} needs the number of observations behind S: say "
            "sm.gaussian_nll(Omega, S, samples=n), or give the observations as data=X."
        )
    p, n = form.order, float(samples)
    out = []
    for point in points:
        k = form.sparsity.count(point.x)
        d = k + int(form.sparsity.free.size)
        if criterion == "ebic":
            penalty = d * float(np.log(n)) + 4.0 * GAMMA * k * float(np.log(p))
        else:
            penalty = CRITERIA[criterion](n, form.sparsity.units, k, d)
        out.append(n * likelihood(form.matrix(point.x), covariance) + penalty)
    return np.array(out)


def likelihood(omega: FloatArray, covariance: FloatArray) -> float:
    """Return ``-log det Omega + <S, Omega>``, twice the mean negative log-likelihood."""
    return float(np.vdot(covariance, omega)) - float(np.linalg.slogdet(omega)[1])


def cross_validate_precision(
    observations: Observations,
    ks: Sequence[int],
    *,
    folds: int | Any = 5,
    one_standard_error: bool = True,
    seed: int = 0,
) -> CrossValidation:
    """Return held-out likelihoods of paths that never saw the rows they are tested on.

    The loss of a fold is :math:`-\\log\\det\\Omega + \\langle S',\\Omega\\rangle` with ``S'`` the
    covariance of its rows about the mean of the others, and without what else the objective may
    hold. With ``one_standard_error`` the smallest k within one standard error of the best mean is
    chosen.

    Parameters
    ----------
    folds
        How many, at least 2, or an array with the number of the fold of each observation.
    """
    labels = _fold_labels(observations.X.shape[0], folds, seed)
    numbers = np.unique(labels)
    losses = np.empty((numbers.size, len(ks)))
    for row, number in enumerate(numbers):
        kept = labels != number
        form = observations.form_on(kept)
        points = solve_precision_path(form, ks).uninterrupted()
        S = observations.held_out(kept)
        losses[row] = [likelihood(form.matrix(point.x), S) for point in points]
    mean = losses.mean(axis=0)
    best = int(np.argmin(mean))
    if one_standard_error:
        error = float(losses[:, best].std(ddof=1) / np.sqrt(numbers.size))
        best = int(np.flatnonzero(mean <= mean[best] + error)[0])
    return CrossValidation(np.array(ks), losses, int(ks[best]))


def edge_frequencies(
    observations: Observations, ks: Sequence[int], *, resamples: int = 50, seed: int = 0
) -> FloatArray:
    """Return how often each entry is chosen for each k, shape ``(len(ks), coordinates)``.

    On random halves of the observations and their complements (complementary pairs: Shah and
    Samworth, JRSS B 2013).
    """
    resamples = whole_number(resamples, where="resamples", minimum=2)
    n = observations.X.shape[0]
    if n < 4:
        raise DataError(f"Halves of {n} observations are too small to estimate a covariance.")
    rng = random_numbers(seed)
    chosen: FloatArray | None = None
    for number in range(resamples):
        if number % 2 == 0:
            half = np.zeros(n, dtype=bool)
            half[rng.permutation(n)[: n // 2]] = True
        form = observations.form_on(half if number % 2 == 0 else ~half)
        points = solve_precision_path(form, ks).uninterrupted()
        found = np.array([point.x != 0.0 for point in points], dtype=np.float64)
        chosen = found if chosen is None else chosen + found
    assert chosen is not None  # noqa: S101  (resamples is at least 2)
    return chosen / resamples


def _fold_labels(n: int, folds: int | Any, seed: int) -> IntArray:
    if isinstance(folds, (int, np.integer)) and not isinstance(folds, bool):
        if not 2 <= folds <= n // 2:
            raise DataError(
                f"folds must be between 2 and {n // 2}, half of the observations, "
                f"not {shown(folds)}."
            )
        labels = np.empty(n, dtype=np.intp)
        labels[random_numbers(seed).permutation(n)] = np.arange(n) % int(folds)
        return labels
    given = np.asarray(folds)
    if given.shape != (n,):
        raise DataError(
            f"folds must be a whole number, or one label for each of the {n} observations."
        )
    codes = np.unique(given, return_inverse=True)[1].reshape(-1)
    if codes.max() < 1:
        raise DataError("folds puts all observations into one fold; there must be two or more.")
    return np.asarray(codes, dtype=np.intp)


__all__ = [
    "GAMMA",
    "Observations",
    "cross_validate_precision",
    "edge_frequencies",
    "likelihood",
    "precision_criterion_values",
]
