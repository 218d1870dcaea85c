"""Paths on parts of the observations, for any ridge: what folds and halves are chosen by.

One sweep along k for each part and ridge, in what was computed once for all of them. No size is
searched on its own: what decides among sizes are held-out losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, final

import numpy as np

from sparsemodel.interfaces import FloatArray, SparseRegression
from sparsemodel.numerics import (
    CurvedPart,
    Quadratic,
    SquaredSums,
    dense_rows,
    has_squares,
    has_sweep,
)

BEYOND = 2
"""How many sizes larger than the largest a sweep goes to: what is best is also found from above."""


class Parts(Protocol):
    """A regression on any part of its observations."""

    def along_k(self, weights: Sequence[FloatArray], ridge: FloatArray, largest: int) -> FloatArray:
        """Return a point for each number of units from 0 to ``largest``.

        Parameters
        ----------
        weights
            Those of each term's observations, zero where one is left out.
        ridge
            Of each coordinate, shape ``(p,)``.

        Returns
        -------
        FloatArray
            Shape ``(largest + 1, p)``, ``(largest + 1, p, m)`` of a matrix variable. Points have
            fewer units where more cannot be told apart; there are fewer where time is up.
        """
        ...


def parts_of(form: SparseRegression) -> Parts | None:
    """Return the form on parts of its observations; None where no sweep along k knows it."""
    if not has_sweep(form):
        return None
    return SquaredParts(form) if has_squares(form) else CurvedParts(form)


@final
class SquaredParts:
    """Parts of squared losses, all by sums of squares and products."""

    def __init__(self, form: SparseRegression) -> None:
        self._form, self._sums = form, SquaredSums(form)
        self._last: tuple[Sequence[FloatArray], Quadratic] | None = None

    def along_k(self, weights: Sequence[FloatArray], ridge: FloatArray, largest: int) -> FloatArray:
        if self._last is None or not _same(self._last[0], weights):
            self._last = weights, self._sums.part(weights)
        whitened = self._last[1].whitened(self._form.sparsity, ridge)
        most = max(min(largest + BEYOND, whitened.size), largest)
        supports = whitened.sweep(np.arange(1, most + 1))[0][:largest]
        nothing = np.full((1, supports.shape[1]), -1)
        points = whitened.minimisers(np.vstack([nothing, supports]))
        points = self._sums.coordinates(points)
        return points if self._form.matrix else points[:, :, 0]


@final
class CurvedParts:
    """Parts of smooth losses: local models, and minimisers by the losses themselves."""

    def __init__(self, form: SparseRegression) -> None:
        self._form, self._rows = form, dense_rows(form)
        self._last: tuple[Sequence[FloatArray], CurvedPart] | None = None

    def along_k(self, weights: Sequence[FloatArray], ridge: FloatArray, largest: int) -> FloatArray:
        if self._last is None or not _same(self._last[0], weights):
            self._last = weights, CurvedPart(self._form, weights, self._rows)
        most = max(min(largest + BEYOND, self._form.sparsity.units), largest)
        return self._last[1].along_k(ridge, np.arange(most + 1))[0][: largest + 1]


def _same(last: Sequence[FloatArray], weights: Sequence[FloatArray]) -> bool:
    return all(a is b or np.array_equal(a, b) for a, b in zip(last, weights, strict=True))
