r"""The 1-norm ball of the method of multipliers: distances to it, and their second derivatives."""

from __future__ import annotations

from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, OneNormBall
from sparsemodel.numerics.minimisers.envelopes import ConstraintEnvelope


@final
class OneNormEnvelope(ConstraintEnvelope):
    r"""``||v[inside] - center||_1 <= radius`` as an augmented Lagrangian.

    With the projection :math:`P` onto the ball the envelope is
    :math:`\frac\sigma2 \|z - P(z)\|^2` at the shifted argument ``z``. Outside the ball ``P``
    subtracts a threshold from the sizes of the entries ``A`` above it, so that
    :math:`I - P'(z)` is :math:`s s^T / |A|` on ``A`` (``s``: the signs there) and the identity
    elsewhere.
    """

    def __init__(self, ball: OneNormBall, support: IntArray, curvature: float) -> None:
        self._ball = ball
        _, places, self._inside = np.intersect1d(
            ball.index, support, assume_unique=True, return_indices=True
        )
        self._coordinates = ball.index[places]
        self._radius = ball.radius
        self.center: FloatArray = np.zeros(places.size)
        if ball.center is not None:  # what is zero outside the support is this far away
            self._radius -= float(np.abs(np.delete(ball.center, places)).sum())
            self.center = ball.center[places]
        self._size = support.size
        self._sigma = 10.0 * curvature
        self._y = np.zeros(places.size)
        self._part: FloatArray = self._y
        self._z: FloatArray = self._y
        self._threshold = 0.0

    @property
    def possible(self) -> bool:
        return self._radius >= 0.0

    def evaluate(self, v: FloatArray) -> tuple[float, FloatArray]:
        self._part = v[self._inside] - self.center
        self._z = self._part + self._y / self._sigma
        self._threshold = threshold(np.abs(self._z), max(self._radius, 0.0))
        excess = self._excess()
        gradient = np.zeros(self._size)
        gradient[self._inside] = self._sigma * excess
        return 0.5 * self._sigma * float(np.dot(excess, excess)), gradient

    def _excess(self) -> FloatArray:
        """Return ``z - P(z)``: the threshold where an entry is above it, else the entry."""
        return np.clip(self._z, -self._threshold, self._threshold)

    def hessian(self) -> FloatArray:
        total = np.zeros((self._size, self._size))
        if self._threshold > 0.0:
            above = np.abs(self._z) > self._threshold
            block = np.diag(np.where(above, 0.0, 1.0))
            signs = np.where(above, np.sign(self._z), 0.0)
            block += np.outer(signs, signs) / max(int(above.sum()), 1)
            total[np.ix_(self._inside, self._inside)] = self._sigma * block
        return total

    def violation(self) -> float:
        over = float(np.abs(self._part).sum()) - self._radius
        return max(over, 0.0) / (1.0 + self._ball.radius)

    def residual(self) -> float:
        moved = float(np.linalg.norm(self._excess() - self._y / self._sigma))
        return moved / (1.0 + self._ball.radius)

    def update(self) -> None:
        self._y = self._sigma * self._excess()

    def stiffen(self, factor: float) -> None:
        self._sigma *= factor

    def normal(self, size: int) -> FloatArray:
        out = np.zeros(size)
        out[self._coordinates] = self._y
        if self._ball.center is not None:
            # Entries outside the support are pulled to the centre with the same force.
            force = float(np.abs(self._y).max(initial=0.0))
            outside = np.setdiff1d(self._ball.index, self._coordinates)
            where = np.searchsorted(self._ball.index, outside)
            out[outside] = -force * np.sign(self._ball.center[where])
        return out


def threshold(sizes: FloatArray, radius: float) -> float:
    r"""Return the ``t`` with :math:`\sum_j (s_j - t)_+` = ``radius``; 0 inside the ball.

    By sorting, O(q log q) (Duchi, Shalev-Shwartz, Singer and Chandra, Efficient projections onto
    the l1-ball for learning in high dimensions, ICML 2008).
    """
    if float(sizes.sum()) <= radius:
        return 0.0
    ordered = np.sort(sizes)[::-1]
    levels = (np.cumsum(ordered) - radius) / np.arange(1, ordered.size + 1)
    return float(levels[np.flatnonzero(ordered >= levels)[-1]])


__all__ = ["OneNormEnvelope", "threshold"]
