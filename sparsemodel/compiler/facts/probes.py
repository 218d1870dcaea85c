"""What a few columns tell: how correlated they are, and how much of the loss they explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    SparseRegression,
    coordinate_scores,
)
from sparsemodel.numerics import RegressionObjective, minimise_restricted, select, top_k

_PROBED = 24
"""Columns whose correlations are looked at, at most."""

_SHARE = 16
"""One in so many columns is looked at where there are few."""

_GUESSED = 128
"""Coordinates of the first guess, at most: a look must stay cheap beside a pass."""

_QUANTILE = 0.95
"""Of the correlations: a few close pairs are what misleads, and the largest is luck."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Screened:
    """What the columns with the largest gradients say of each other."""

    gram: FloatArray
    """Of those columns, weighted as the losses are."""
    passes: float
    """What reading them cost."""

    @classmethod
    def of(cls, form: SparseRegression, gradient: FloatArray) -> Screened:
        """Read at most 24 columns. Only for designs whose columns can be read."""
        scores = coordinate_scores(gradient)
        counted = np.flatnonzero(form.sparsity.counted)
        width = min(max(counted.size // _SHARE, 8), _PROBED, counted.size)
        chosen = np.sort(counted[top_k(scores[counted], width)])
        gram = np.zeros((chosen.size, chosen.size))
        for term in form.terms:
            gram += term.design.restrict(chosen).gram(term.weights)
        return cls(gram, 0.5 * width / max(form.sparsity.size, 1))

    @property
    def coherence(self) -> float:
        """Return the 95 % quantile of the absolute correlations."""
        size = np.sqrt(np.maximum(np.diagonal(self.gram), np.finfo(np.float64).tiny))
        above = np.triu_indices(size.size, 1)
        correlations = np.abs(self.gram / size[:, None] / size[None, :])[above]
        known = correlations[np.isfinite(correlations)]  # extreme scales overflow
        value = float(np.quantile(known, _QUANTILE)) if known.size else 0.0
        return min(value, 1.0)

    @property
    def eigenvalues(self) -> tuple[float, float] | None:
        """Return the least and the largest of the Gram matrix, None where it overflows.

        They lie within the restricted constants of as many coordinates: the condition number
        among all supports of that size is no smaller.
        """
        if not self.gram.size or not np.all(np.isfinite(self.gram)):
            return None
        values = np.linalg.eigvalsh(self.gram)
        return max(float(values[0]), 0.0), float(values[-1])


@final
@dataclass(frozen=True, slots=True)
class Guess:
    """What the minimiser on the largest gradients leaves of a squared loss."""

    left: float
    """Share of the loss; small where few columns explain the target and noise is low."""
    value: float
    """The losses and the form's constant there, without the ridge."""
    size: int
    """Coordinates that were fitted."""
    passes: float
    """What reading them cost."""

    @classmethod
    def of(cls, form: SparseRegression, gradient: FloatArray) -> Guess:
        """Minimise on the largest gradients, on at most 128 coordinates."""
        objective = RegressionObjective(form, gradient_at_zero=gradient)
        origin = objective.origin()
        support = select(form.sparsity, gradient)
        if support.size > _GUESSED:
            scores = coordinate_scores(gradient)[support]
            support = np.sort(support[top_k(scores, _GUESSED)])
        point = minimise_restricted(objective, support, origin)
        floor = objective.infimum()
        above = origin.value - floor
        left = (point.value - floor) / above if above > 0.0 else 0.0
        ridge = 0.5 * float(np.dot(form.ridge, coordinate_scores(point.x)))
        return cls(
            left=float(np.clip(left, 0.0, 1.0)) if np.isfinite(left) else 1.0,
            value=point.value - ridge,
            size=int(support.size),
            passes=0.5 * support.size / max(form.sparsity.size, 1),
        )
