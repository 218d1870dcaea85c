"""Entropy, from SciPy's special functions, which take longer to load than a squared loss to fit."""

from __future__ import annotations

from sparsemodel.interfaces import FloatArray


def entropy(s: FloatArray) -> FloatArray:
    """Return ``-s log(s)`` by entry: 0 at zero, -inf below."""
    from scipy.special import entr

    values: FloatArray = entr(s)
    return values


__all__ = ["entropy"]
