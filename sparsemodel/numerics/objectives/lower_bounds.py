"""What a point says about the infimum: a lower bound that comes with its gradient, and rounding."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, Point, SparseRegression, coordinate_scores
from sparsemodel.numerics.support.hard_threshold import top_k

_UNIT = 2.0**-53
_SINGLE = 16.0 * _UNIT
"""Relative error of a prediction that is taken for granted."""
_RESIDUAL = 256.0 * _UNIT
"""Size of a residual, relative to its prediction, that a good fit without noise may leave."""


@final
class BestBound:
    """The best of the lower bounds that came with gradients."""

    def __init__(self) -> None:
        self.value: float = -math.inf
        """Valid up to rounding."""
        self.merit: float = -math.inf
        """What a certificate may find at :attr:`point`."""
        self.point: Point | None = None
        """Where a certificate should look for a bound."""

    def offer(self, point: Point, merit: float, *, proved: bool) -> None:
        """Keep what a point promises if that is more than before."""
        if merit > self.merit:
            self.merit, self.point = merit, point
        if proved:
            self.value = max(self.value, merit)


def strong_convexity_bound(form: SparseRegression, at: Point, gradient: FloatArray) -> float:
    r"""Return :math:`f(x) - \sum_j s_j`, which bounds the optimum from below up to rounding.

    With :math:`q_j = \lambda_j x_j - g_j`, minimising the quadratic minorant of ``f`` at ``x`` over
    the sparse set leaves :math:`f - g^\top x + \frac12\sum\lambda_j x_j^2` minus the ``k`` largest
    :math:`q_j^2/(2\lambda_j)`. Coordinates without ridge are left out: it is a bound only where
    their gradient is exactly zero. A certificate recomputes it with care.
    """
    sparsity, counted = form.sparsity, form.sparsity.counted
    root = np.sqrt(form.ridge)
    root = root if at.x.ndim == 1 else root[:, None]
    # Divided before it is squared: squares of small numbers vanish, their quotients do not.
    shares = gradient / np.where(root > 0.0, root, np.inf)
    scores = 0.5 * coordinate_scores(root * at.x - shares)
    value = at.value - float(np.vdot(gradient, at.x))
    value += 0.5 * float(coordinate_scores(root * at.x).sum())
    value -= float(scores[~counted].sum())
    units = sparsity.unit_scores(scores)
    best = units[top_k(units, sparsity.budget)]
    return value - float(np.maximum(best - sparsity.price, 0.0).sum())


def rounding_of_value(
    form: SparseRegression, predictions: tuple[FloatArray, ...], pulls: tuple[FloatArray, ...]
) -> float:
    """Return how much of a value may be rounding, or what a fit without noise leaves.

    ``pulls`` are the gradients in the predictions. O(n).
    """
    total = [4.0 * _UNIT * abs(form.constant)]
    for term, z, pull in zip(form.terms, predictions, pulls, strict=True):
        sizes = np.abs(z)
        if term.offset is not None:
            sizes = sizes + np.abs(term.offset)
        total.append(_SINGLE * float(np.vdot(np.abs(pull), sizes)))
        bend = term.traits.upper
        if math.isfinite(bend):
            squares = coordinate_scores(_RESIDUAL * sizes)
            total.append(0.5 * bend * float(np.dot(term.weights, squares)))
    return math.fsum(total)
