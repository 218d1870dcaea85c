"""What losses of labels, and losses of numbers, have in common."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparsemodel.interfaces import CvxModelled, FloatArray, IntervalConjugable, Loss, TargetKind
from sparsemodel.losses.parts.targets import signs, vector


class _Nonnegative(IntervalConjugable, CvxModelled, Loss):
    """A loss with a bounded or unbounded interval of slopes that is zero at its best."""

    __slots__ = ()

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return 0.0


class OfTwoClasses(_Nonnegative):
    """A loss of labels -1 and +1, of slopes ``a`` with ``-1 <= a y <= 0`` by default."""

    __slots__ = ()
    target_kind: ClassVar[TargetKind] = TargetKind.TWO_CLASSES

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        return signs(y, where, self.name)


class OfNumbers(_Nonnegative):
    """A loss of one number per observation."""

    __slots__ = ()

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        return vector(y, where, self.name)
