"""The pseudo-Huber loss."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sparsemodel.interfaces import Curved, FloatArray, IntervalConjugable, Loss


@final
@dataclass(frozen=True, slots=True)
class PseudoHuberLoss(Curved, IntervalConjugable, Loss):
    """``sqrt(1 + (u - y)**2) - 1``: quadratic near the target, linear far from it."""

    name: ClassVar[str] = "pseudo_huber_loss"

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.hypot(1.0, u - y) - 1.0

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return (u - y) / np.hypot(1.0, u - y)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.hypot(1.0, u - y) ** -3.0

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 1.0

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        root = np.sqrt(np.maximum((1.0 - a) * (1.0 + a), 0.0))
        return np.where(np.abs(a) <= 1.0, a * y + 1.0 - root, np.inf)

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(y.shape, -1.0), np.full(y.shape, 1.0)
