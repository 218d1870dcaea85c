"""A bound on a sum of absolute values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import ConvexConstraint, FloatArray, IntArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class OneNormBall(ConvexConstraint):
    """``||x[index] - center||_1 <= radius``."""

    index: IntArray
    radius: float
    center: FloatArray | None = None

    def describe(self) -> str:
        return "a bound on a 1-norm"

    def violation(self, x: FloatArray) -> float:
        part = x[self.index] if self.center is None else x[self.index] - self.center
        return max(float(np.abs(part).sum()) - self.radius, 0.0) / (1.0 + self.radius)

    def cvxpy(self, cp: Any, x: Any, support: IntArray) -> list[Any]:
        _, inside, outside = np.intersect1d(
            self.index, support, assume_unique=True, return_indices=True
        )
        left = self.radius
        part = x[outside]
        if self.center is not None:  # the entries that are zero are this far from the centre
            gone = np.ones(self.index.size, dtype=bool)
            gone[inside] = False
            left -= float(np.abs(self.center[gone]).sum())
            part = part - self.center[inside]
        return [cp.sum(cp.abs(part)) <= left] if outside.size else [cp.Constant(0.0) <= left]


__all__ = ["OneNormBall"]
