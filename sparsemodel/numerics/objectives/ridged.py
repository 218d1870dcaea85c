"""An objective with a further ridge, on coordinates of one's choice."""

from __future__ import annotations

from typing import cast, final

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    Form,
    IntArray,
    NormBound,
    Objective,
    Point,
    coordinate_scores,
)
from sparsemodel.interfaces.numeric import rowwise


@final
class RidgedObjective(Objective):
    r"""Evaluate :math:`f(x) + \frac12 \sum_j w_j x_j^2` for another objective ``f``.

    Nothing is copied: products, columns and the count of passes are those of ``f``, whose own
    point is the ``state`` of a point here (so that ``f`` at the same ``x`` comes for free).

    Parameters
    ----------
    base
        ``f``; its ``form`` is handed on unchanged.
    weights
        ``w >= 0``, shape ``(p,)``.
    """

    def __init__(self, base: Objective, weights: FloatArray) -> None:
        super().__init__(base.work)
        self._base = base
        self._weights = weights

    @property
    def form(self) -> Form:
        return self._base.form

    @property
    def quadratic(self) -> bool:
        return self._base.quadratic

    @property
    def smooth(self) -> bool:
        return self._base.smooth

    @property
    def twice_differentiable(self) -> bool:
        return self._base.twice_differentiable

    def point(self, support: IntArray, values: FloatArray) -> Point:
        return self.lift(self._base.point(support, values))

    def lift(self, inner: Point) -> Point:
        """Return the point of this objective at a point of the base."""
        squares = coordinate_scores(inner.x[inner.support])
        ridge = 0.5 * float(np.dot(self._weights[inner.support], squares))
        return Point(inner.x, inner.support, inner.value + ridge, inner)

    @staticmethod
    def lower(at: Point) -> Point:
        """Return the point of the base at a point of this objective."""
        return cast("Point", at.state)

    def gradient(self, at: Point) -> FloatArray:
        if at.gradient is None:
            inner = self._base.gradient(self.lower(at))
            at.memo.gradient = total = inner + rowwise(self._weights, at.x)
            return total
        return at.gradient

    def restricted_gradient(self, at: Point, support: IntArray) -> FloatArray:
        inner = self._base.restricted_gradient(self.lower(at), support)
        return inner + rowwise(self._weights[support], at.x[support])

    def hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        inner = self._base.hessian_product(self.lower(at), support, v)
        return inner + rowwise(self._weights[support], v)

    def hessian(self, at: Point, support: IntArray) -> FloatArray:
        hessian = self._base.hessian(self.lower(at), support).copy()
        each = hessian.shape[0] // max(support.size, 1)
        hessian[np.diag_indices_from(hessian)] += np.repeat(self._weights[support], each)
        return hessian

    def hessian_root(self, at: Point, support: IntArray) -> FloatArray | None:
        root = self._base.hessian_root(self.lower(at), support)
        if root is None:
            return None
        return np.concatenate([np.diag(np.sqrt(self._weights[support])), root])

    def full_hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        product = self._base.full_hessian_product(self.lower(at), support, v)
        product[support] += rowwise(self._weights[support], v)
        return product

    def hessian_diagonal(self, at: Point, support: IntArray) -> FloatArray:
        inner = self._base.hessian_diagonal(self.lower(at), support)
        return inner + rowwise(self._weights[support], np.ones_like(inner))

    def smoothness(self) -> NormBound:
        inner = self._base.smoothness()
        return NormBound(inner.value + float(self._weights.max(initial=0.0)), inner.kind)

    def strong_convexity(self) -> float:
        return self._base.strong_convexity() + float(self._weights.min(initial=np.inf))

    def infimum(self) -> float:
        return self._base.infimum()
