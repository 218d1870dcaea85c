"""Leaving observations out: folds and halves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from sparsemodel.interfaces import BoolArray, DataError, FloatArray, IntArray
from sparsemodel.interfaces.numeric import plain_array, shown
from sparsemodel.selection.path import PathPoint, PathResult, Search

_FROM_SPLITTER = (
    "Labels from a splitter `cv`: labels = np.empty(n, int); "
    "for fold, (_, test) in enumerate(cv.split(X)): labels[test] = fold"
)


class Observed(ABC):
    """A problem of whose observations some can be left out; every form says how.

    Observations lie in one data set or in several (the terms of a regression). What is kept of
    them is a mask for each data set.
    """

    least: ClassVar[int] = 1
    """How many observations of each data set a part must hold."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """Return the number of observations of each data set."""

    def classes(self, number: int) -> FloatArray | None:
        """Return numbers for the observations of a data set whose values are spread evenly."""
        return None

    @abstractmethod
    def solutions(self, kept: Sequence[BoolArray], ks: Sequence[int], how: Search) -> PathResult:
        """Return the path along the sorted ``ks``, from the observations ``kept`` alone."""

    @abstractmethod
    def held_out_losses(
        self, kept: Sequence[BoolArray], points: Sequence[PathPoint]
    ) -> list[float]:
        """Return each point's mean loss on the observations that are not ``kept``."""

    def held_out_falls(
        self, kept: Sequence[BoolArray], points: Sequence[PathPoint]
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return how fast losses fall there from the first point towards the sum of the others.

        Of all observations, and their weights, zero where they are kept. None where individual
        observations have no losses of their own.
        """
        return None

    @property
    def count(self) -> float:
        """Return how many observations there are, by their weights."""
        return float(sum(self.sizes))


def fold_labels(observed: Observed, folds: int | Any, rng: np.random.Generator) -> list[IntArray]:
    """Return the number of the fold, from 0 on, of each observation of each data set.

    Parameters
    ----------
    folds
        How many, at least 2, or an array with a label for each observation.

    Raises
    ------
    DataError
        When the data do not allow as many folds, or the labels are not one for each observation.
    """
    sizes = _sizes(observed)
    if isinstance(folds, (int, np.integer)) and not isinstance(folds, bool):
        most = min(sizes) // observed.least
        if not 2 <= folds <= most:
            each = f", for {observed.least} observations in each" if observed.least > 1 else ""
            raise DataError(f"folds must be between 2 and {most}{each}, not {shown(folds)}.")
        return [
            _dealt_out(size, observed.classes(number), int(folds), rng)
            for number, size in enumerate(sizes)
        ]
    if hasattr(folds, "split"):  # of scikit-learn
        raise DataError(f"folds must be a number or labels. {_FROM_SPLITTER}")
    labels = plain_array(folds, "folds")
    if len(sizes) != 1 or labels.shape != (sizes[0],):
        raise DataError(
            f"folds must be a whole number, or one label for each of the {sizes[0]} observations. "
            f"{_FROM_SPLITTER}"
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        missing = int(np.flatnonzero(np.isnan(labels))[0])
        raise DataError(f"folds needs a label for each observation; that of {missing} is NaN.")
    codes = np.unique(labels, return_inverse=True)[1].reshape(-1)
    if codes.max() < 1:
        raise DataError("folds puts all observations into one fold; there must be two or more.")
    return [codes]


def halves(observed: Observed, count: int, rng: np.random.Generator) -> Iterator[list[BoolArray]]:
    """Yield ``count`` random halves of the observations, each followed by its complement."""
    sizes = _sizes(observed)
    if min(sizes) < 2 * observed.least:
        raise DataError(
            f"Halves of {min(sizes)} observations are too small: each needs {observed.least}."
        )
    for number in range(count):
        if number % 2 == 0:
            masks = [_half(size, rng) for size in sizes]
        else:
            masks = [~mask for mask in masks]
        yield masks


def _sizes(observed: Observed) -> tuple[int, ...]:
    sizes = observed.sizes
    if not sizes:
        raise DataError("Every term has a single row, so that no observations can be left out.")
    return sizes


def _half(size: int, rng: np.random.Generator) -> BoolArray:
    mask = np.zeros(size, dtype=bool)
    mask[rng.permutation(size)[: size // 2]] = True
    return mask


def _dealt_out(
    size: int, classes: FloatArray | None, folds: int, rng: np.random.Generator
) -> IntArray:
    """Deal the observations out to the folds in random order, class by class."""
    order = rng.permutation(size)
    if classes is not None and np.unique(classes).size <= 20:  # else their order means nothing
        order = order[np.argsort(classes[order], kind="stable")]
    labels = np.empty(size, dtype=np.intp)
    labels[order] = np.arange(size) % folds
    return labels
