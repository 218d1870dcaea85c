"""Conjugates whose domain is an interval."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import FloatArray


def within(a: FloatArray, lower: FloatArray, upper: FloatArray, values: FloatArray) -> FloatArray:
    """Return ``values`` where ``lower <= a <= upper`` and infinity elsewhere."""
    return np.where((lower <= a) & (a <= upper), values, np.inf)


def toward_label(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the interval of ``a`` with ``-1 <= a y <= 0`` for labels ``y`` of -1 and +1."""
    return np.minimum(-y, 0.0), np.maximum(-y, 0.0)
