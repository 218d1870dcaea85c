"""What a point says about the infimum: a lower bound that comes with its gradient, and rounding."""

from __future__ import annotations

import math
from functools import cached_property
from typing import final

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Point,
    SparseRegression,
    coordinate_scores,
)
from sparsemodel.interfaces.numeric import UNIT_ROUNDOFF
from sparsemodel.numerics.support.selection import highest

_SINGLE = 16.0 * UNIT_ROUNDOFF
"""Relative error of a prediction that is taken for granted."""
_AS_GOOD = 1e-6
"""Relative difference up to which points are as good for a bound."""
_RESIDUAL = 256.0 * UNIT_ROUNDOFF
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
        self._lowest: float = math.inf  # value of the best point that was looked at

    def no_better(self, at: Point, merit: float) -> bool:
        """Return whether as much is proved already as a point promises, which is looked at."""
        self._lowest = min(self._lowest, at.value)
        return merit <= self.value

    def looked_at(self, point: Point) -> bool:
        """Return whether a point as good was looked at."""
        return self._lowest - point.value <= _AS_GOOD * abs(point.value)

    def offer(self, point: Point, merit: float, *, proved: bool) -> None:
        """Keep what a point promises if that is more than before."""
        if merit > self.merit:
            self.merit, self.point = merit, point
        if proved:
            self.value = max(self.value, merit)


@final
class StrongConvexityBound:
    r"""What the ridge and one gradient say of the optimum.

    With :math:`q_j = \lambda_j x_j - g_j`, minimising the quadratic minorant of ``f`` at ``x`` over
    the sparse set leaves :math:`f - g^\top x + \frac12\sum\lambda_j x_j^2` minus the ``k`` largest
    :math:`q_j^2/(2\lambda_j)`. Coordinates without ridge are left out: it is a bound only where
    their gradient is exactly zero. A certificate recomputes it with care.
    """

    def __init__(self, form: SparseRegression) -> None:
        self._sparsity, self._terms = form.sparsity, form.terms
        free = form.sparsity.free
        self.unpenalised: IntArray = free[form.ridge[free] <= 0.0]
        root = np.sqrt(form.ridge)
        self._root = root[:, None] if form.matrix else root
        self._divisor = np.where(self._root > 0.0, self._root, np.inf)

    def __call__(self, at: Point, gradient: FloatArray) -> float:
        """Return what bounds the optimum from below, up to rounding."""
        sparsity, support = self._sparsity, at.support
        x, rooted = at.x[support], self._root[support] * at.x[support]
        # Divided before it is squared: squares of small numbers vanish, their quotients do not.
        left = gradient / self._divisor
        left[support] -= rooted
        scores = coordinate_scores(left)
        value = (
            at.value - float(np.vdot(gradient[support], x)) + 0.5 * float(np.vdot(rooted, rooted))
        )
        if sparsity.free.size:
            value -= 0.5 * float(scores[sparsity.free].sum())
        units = sparsity.unit_scores(scores)
        best = 0.5 * highest(units, sparsity.budget)
        return value - float(np.maximum(best - sparsity.price, 0.0).sum())

    def pull(self, pulls: tuple[FloatArray, ...]) -> float:
        """Return what the gradient in an unpenalised coordinate would be without cancellation.

        ``pulls`` are the gradients in the predictions.
        """
        if not self.unpenalised.size:
            return 0.0
        return math.fsum(
            norm * float(np.linalg.norm(r)) for norm, r in zip(self._norms, pulls, strict=True)
        )

    @cached_property
    def _norms(self) -> tuple[float, ...]:
        free = (term.design.restrict(self.unpenalised) for term in self._terms)
        return tuple(float(np.linalg.norm(columns.to_array())) for columns in free)


def rounding_of_value(
    form: SparseRegression, predictions: tuple[FloatArray, ...], pulls: tuple[FloatArray, ...]
) -> float:
    """Return how much of a value may be rounding, or what a fit without noise leaves.

    ``pulls`` are the gradients in the predictions. O(n).
    """
    total = [4.0 * UNIT_ROUNDOFF * abs(form.constant)]
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
