r"""Balls of the method of multipliers: the distances to them, and their second derivatives."""

from __future__ import annotations

from abc import abstractmethod
from typing import final

import numpy as np

from sparsemodel.interfaces import Ball, FloatArray, IntArray, OneNormBall
from sparsemodel.interfaces.region import ImageBall, relative_to_ball
from sparsemodel.numerics.minimisers.envelopes import ConstraintEnvelope


class NormBallEnvelope(ConstraintEnvelope):
    r"""``||v[inside] - center|| <= radius`` in some norm, as an augmented Lagrangian.

    With the projection :math:`P` onto the ball the envelope is
    :math:`\frac\sigma2 \|z - P(z)\|_2^2` at the shifted argument ``z``.
    """

    def __init__(self, ball: Ball | OneNormBall, support: IntArray, curvature: float) -> None:
        self._ball = ball
        _, places, self._inside = np.intersect1d(
            ball.index, support, assume_unique=True, return_indices=True
        )
        self._coordinates = ball.index[places]
        self._radius = ball.radius
        self.center: FloatArray = np.zeros(places.size)
        if ball.center is not None:  # what is zero outside the support is this far away
            self._radius = self._left(np.delete(ball.center, places))
            self.center = ball.center[places]
        self._size = support.size
        self._sigma = 10.0 * curvature
        self._y = np.zeros(places.size)
        self._part: FloatArray = self._y
        self._z: FloatArray = self._y
        self._excess: FloatArray = self._y

    @abstractmethod
    def _left(self, away: FloatArray) -> float:
        """Return the radius that entries this far from the centre leave; negative for none."""

    @abstractmethod
    def _norm(self, part: FloatArray) -> float:
        """Return the ball's norm."""

    @abstractmethod
    def _beyond(self, z: FloatArray) -> FloatArray:
        """Return ``z - P(z)``, and stay there for :meth:`_slope`."""

    @abstractmethod
    def _slope(self) -> FloatArray | None:
        """Return ``I - P'(z)``; ``None`` for zero, within the ball."""

    @abstractmethod
    def _pull(self, away: FloatArray) -> FloatArray:
        """Return the multiplier's part for entries outside the support, from their centre."""

    @property
    def possible(self) -> bool:
        return self._radius >= 0.0

    def evaluate(self, v: FloatArray) -> tuple[float, FloatArray]:
        self._part = v[self._inside] - self.center
        self._z = self._part + self._y / self._sigma
        self._excess = self._beyond(self._z)
        gradient = np.zeros(self._size)
        gradient[self._inside] = self._sigma * self._excess
        return 0.5 * self._sigma * float(np.dot(self._excess, self._excess)), gradient

    def hessian(self) -> FloatArray:
        total = np.zeros((self._size, self._size))
        slope = self._slope()
        if slope is not None:
            total[np.ix_(self._inside, self._inside)] = self._sigma * slope
        return total

    def violation(self) -> float:
        return self._relative(self._norm(self._part) - self._radius)

    def residual(self) -> float:
        return self._relative(float(np.linalg.norm(self._excess - self._y / self._sigma)))

    def _relative(self, over: float) -> float:
        return relative_to_ball(over, self._ball.radius, self._norm(self._part))

    def update(self) -> None:
        self._y = self._sigma * self._excess

    def stiffen(self, factor: float) -> None:
        self._sigma *= factor

    def normal(self, size: int) -> FloatArray:
        out = np.zeros(size)
        out[self._coordinates] = self._y
        if self._ball.center is not None and np.any(self._y):
            # Entries outside the support are pulled to the centre with the same force.
            outside = np.setdiff1d(self._ball.index, self._coordinates)
            away = self._ball.center[np.searchsorted(self._ball.index, outside)]
            out[outside] = self._pull(away)
        return out


@final
class BallEnvelope(NormBallEnvelope):
    """``||v[inside] - center||_2 <= radius`` as an augmented Lagrangian."""

    _length = 0.0

    def _left(self, away: FloatArray) -> float:
        rest = self._ball.radius**2 - float(np.dot(away, away))
        return float(np.sqrt(rest)) if rest >= 0.0 else -1.0

    def _norm(self, part: FloatArray) -> float:
        return float(np.linalg.norm(part))

    def _beyond(self, z: FloatArray) -> FloatArray:
        self._length = self._norm(z)
        if self._length <= self._radius:
            return np.zeros_like(z)
        return z * (1.0 - max(self._radius, 0.0) / self._length)

    def _slope(self) -> FloatArray | None:
        if self._length <= self._radius:
            return None
        share = max(self._radius, 0.0) / self._length
        unit = self._z / self._length
        return np.asarray((1.0 - share) * np.eye(unit.size) + share * np.outer(unit, unit))

    def _pull(self, away: FloatArray) -> FloatArray:
        return -(self._norm(self._y) / max(self._radius, 1e-300)) * away


@final
class OneNormEnvelope(NormBallEnvelope):
    r"""``||v[inside] - center||_1 <= radius`` as an augmented Lagrangian.

    Outside the ball ``P`` subtracts a threshold from the sizes of the entries ``A`` above it, so
    that :math:`I - P'(z)` is :math:`s s^T / |A|` on ``A`` (``s``: the signs there) and the
    identity elsewhere.
    """

    _threshold = 0.0

    def _left(self, away: FloatArray) -> float:
        return self._radius - self._norm(away)

    def _norm(self, part: FloatArray) -> float:
        return float(np.abs(part).sum())

    def _beyond(self, z: FloatArray) -> FloatArray:
        self._threshold = threshold(np.abs(z), max(self._radius, 0.0))
        return np.clip(z, -self._threshold, self._threshold)

    def _slope(self) -> FloatArray | None:
        if self._threshold <= 0.0:
            return None
        above = np.abs(self._z) > self._threshold
        block = np.diag(np.where(above, 0.0, 1.0))
        signs = np.where(above, np.sign(self._z), 0.0)
        return np.asarray(block + np.outer(signs, signs) / max(int(above.sum()), 1))

    def _pull(self, away: FloatArray) -> FloatArray:
        return -float(np.abs(self._y).max(initial=0.0)) * np.sign(away)


@final
class ImageEnvelope(ConstraintEnvelope):
    """``||C v + shift|| <= radius``: the ball around ``-shift`` for the image."""

    def __init__(self, part: ImageBall, support: IntArray, curvature: FloatArray) -> None:
        self._design = part.design
        self._matrix: FloatArray = part.design.restrict(support).to_array()
        rows = np.arange(part.shift.size)
        # What moving the image by one costs the objective, whatever the units of the unknowns.
        yields = float((np.square(self._matrix) @ (1.0 / curvature)).max(initial=0.0))
        kind, ball = (BallEnvelope, Ball) if part.order == 2 else (OneNormEnvelope, OneNormBall)
        cost = 1.0 / yields if yields > 0.0 else 1.0
        self._ball: NormBallEnvelope = kind(ball(rows, part.radius, -part.shift), rows, cost)

    def evaluate(self, v: FloatArray) -> tuple[float, FloatArray]:
        value, slopes = self._ball.evaluate(self._matrix @ v)
        return value, self._matrix.T @ slopes

    def hessian(self) -> FloatArray:
        return np.asarray(self._matrix.T @ self._ball.hessian() @ self._matrix)

    def violation(self) -> float:
        return self._ball.violation()

    def residual(self) -> float:
        return self._ball.residual()

    def update(self) -> None:
        self._ball.update()

    def stiffen(self, factor: float) -> None:
        self._ball.stiffen(factor)

    def normal(self, size: int) -> FloatArray:
        return self._design.rmatvec(self._ball.normal(self._matrix.shape[0]))


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
