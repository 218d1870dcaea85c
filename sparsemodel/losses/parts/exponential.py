r"""The exponential function, continued so that nothing overflows.

Losses with :math:`e^u` in them leave the range of floating point within reach of a bad step.
Beyond ``LIMIT`` they go on along the tangent: still convex, still once differentiable, below the
true function, with the same conjugate at every slope met before; and values, gradients and the
squares of gradients stay finite. ``exp(LIMIT)`` is about 2e130, so that no fit comes near.
"""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import FloatArray

LIMIT = 300.0


def exponential(u: FloatArray) -> FloatArray:
    """Return ``exp(u)``, along its tangent beyond ``LIMIT``."""
    capped = np.minimum(u, LIMIT)
    return np.exp(capped) * (1.0 + (u - capped))


def exponential_slope(u: FloatArray) -> FloatArray:
    """Return the derivative of :func:`exponential`.

    It also serves as the second derivative, which is zero beyond ``LIMIT``; there the value kept
    is what brings a Newton step back.
    """
    return np.exp(np.minimum(u, LIMIT))


def chance(v: FloatArray) -> FloatArray:
    """Return ``1 / (1 + exp(-v))``, to full relative precision at both ends."""
    small: FloatArray = np.exp(-np.abs(v))
    return np.where(v >= 0.0, 1.0, small) / (1.0 + small)
