"""Conjugates whose domain is an interval."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import FloatArray


def within(a: FloatArray, lower: FloatArray, upper: FloatArray, values: FloatArray) -> FloatArray:
    """Return ``values`` where ``lower <= a <= upper`` and infinity elsewhere."""
    return np.where((lower <= a) & (a <= upper), values, np.inf)
