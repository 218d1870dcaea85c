"""A linear function of the predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sparsemodel.interfaces import (
    Affine,
    CvxModelled,
    FloatArray,
    IntervalConjugable,
    Loss,
)


@dataclass(frozen=True, slots=True)
class LinearLoss(Affine, IntervalConjugable, CvxModelled, Loss):
    r"""The linear function :math:`\ell(u; y) = y u`: the target holds the coefficients.

    What an affine term of an objective becomes, an expected return for instance. It is bounded
    below only together with other terms or constraints.

    * Conjugate: :math:`\ell^*(a; y) = 0` at :math:`a = y`, infinite elsewhere.
    * 0-smooth, not strongly convex.
    """

    name: ClassVar[str] = "linear_term"
    strictly_convex: ClassVar[bool] = True

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return y * u

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.array(y, dtype=np.float64)

    def slope(self, y: FloatArray) -> FloatArray:
        return y

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.zeros(u.shape[0])

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 0.0

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return -np.inf if np.any(c * y) else 0.0

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(a == y, 0.0, np.inf)

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return y, y

    def value_magnitude(self, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        return np.abs(value)

    def conjugate_magnitude(self, a: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        return np.zeros_like(value)

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        return cp.multiply(y, u)
