"""Entropy by entry, without SciPy's special functions, which take longer to load than a fit."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import FloatArray


def entropy(s: FloatArray) -> FloatArray:
    """Return ``-s log(s)`` by entry: 0 at zero, -inf below."""
    logs = np.log(s, out=np.zeros_like(s), where=s > 0.0)
    return np.where(s < 0.0, -np.inf, 0.0 - s * logs)
