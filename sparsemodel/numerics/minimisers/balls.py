r"""Balls and spectra of the method of multipliers: distances to them, and second derivatives."""

from __future__ import annotations

from abc import abstractmethod
from typing import final

import numpy as np

from sparsemodel.interfaces import Ball, FloatArray, IntArray, OneNormBall, Spectrum
from sparsemodel.interfaces.region import ImageBall, relative_to_ball
from sparsemodel.numerics.minimisers.envelopes import ConstraintEnvelope, DistanceEnvelope


class NormBallEnvelope(DistanceEnvelope):
    r"""``||v[inside] - center|| <= radius`` in some norm, as an augmented Lagrangian.

    With the projection :math:`P` onto the ball the envelope is
    :math:`\frac\sigma2 \|z - P(z)\|_2^2` at the shifted argument ``z``.
    """

    def __init__(self, ball: Ball | OneNormBall, support: IntArray, curvature: FloatArray) -> None:
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
        # The other unknowns, an intercept for one, may have other units.
        self._sigma = 10.0 * (float(curvature[self._inside].mean()) if places.size else 1.0)
        self._y = self._excess = np.zeros(places.size)
        self._part: FloatArray = self._y
        self._z: FloatArray = self._y

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
        cost = np.full(rows.size, 1.0 / yields if yields > 0.0 else 1.0)
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


@final
class SpectrumEnvelope(DistanceEnvelope):
    r"""Bounds on eigenvalues as an augmented Lagrangian.

    With :math:`Z = \sum_k \lambda_k q_k q_k^T` and the part :math:`b_k` of :math:`\lambda_k`
    beyond its bound the distance is :math:`\|b\|`; the gradient of half its square is
    :math:`\sum_k b_k q_k q_k^T`, and the derivative of that in a direction ``H`` is
    :math:`Q (\Omega \circ Q^T H Q) Q^T` with :math:`\Omega_{kl} = (b_k - b_l) / (\lambda_k -
    \lambda_l)` (Zhao, Sun and Toh, A Newton-CG augmented Lagrangian method for semidefinite
    programming, SIAM J. Optim. 2010).
    """

    def __init__(self, part: Spectrum, support: IntArray, curvature: FloatArray) -> None:
        self._part, self._support = part, support
        _, places, self._inside = np.intersect1d(
            part.index, support, assume_unique=True, return_indices=True
        )
        i, j = part.entries
        self._twice = np.where(i == j, 1.0, 2.0)
        self._places = i[places], j[places]
        self._weights = self._twice[places]
        own = curvature[self._inside] / self._weights
        self._sigma = self._first = 10.0 * (float(own.mean()) if own.size else 1.0)
        self._point = self._square(np.zeros(support.size))
        self._y, self._excess = 0.0 * self._point, 0.0 * self._point
        self._values = self._beyond = np.zeros(len(self._point))
        self._vectors = np.eye(len(self._point))

    def _square(self, v: FloatArray) -> FloatArray:
        x = np.zeros(int(max(self._part.index[-1], self._support.max(initial=0))) + 1)
        x[self._support] = v
        return self._part.matrix(x)

    def evaluate(self, v: FloatArray) -> tuple[float, FloatArray]:
        self._point = self._square(v)
        self._values, q = np.linalg.eigh(self._point + self._y / self._sigma)
        self._beyond = self._values - np.clip(self._values, self._part.lower, self._part.upper)
        out = self._beyond != 0.0
        self._excess, self._vectors = (q[:, out] * self._beyond[out]) @ q[:, out].T, q
        gradient = np.zeros(v.size)
        gradient[self._inside] = self._sigma * self._weights * self._excess[self._places]
        return 0.5 * self._sigma * float(self._beyond @ self._beyond), gradient

    def hessian(self) -> FloatArray:
        total = np.zeros((self._support.size, self._support.size))
        out, (i, j), q = np.flatnonzero(self._beyond), self._places, self._vectors
        if out.size:
            b, values = self._beyond, self._values
            apart = values[out, None] - values
            same = (b[out, None] != 0.0) & (np.sign(b[out, None]) == np.sign(b))
            slopes = np.divide(b[out, None] - b, apart, out=np.ones_like(apart), where=~same)
            slopes = np.where(b == 0.0, 2.0, 1.0) * slopes  # pairs with one within come once
            parts = q[i][:, out, None] * q[j][:, None, :]
            mirrored = q[j][:, out, None] * q[i][:, None, :]
            parts = np.where((i == j)[:, None, None], parts, parts + mirrored)
            rows = (parts * np.sqrt(self._sigma * slopes)).reshape(i.size, -1)
            total[np.ix_(self._inside, self._inside)] = rows @ rows.T
        return total

    def violation(self) -> float:
        return self._part.relative(np.asarray(np.linalg.eigvalsh(self._point)))

    def residual(self) -> float:
        ends = [abs(end) for end in (self._part.lower, self._part.upper) if np.isfinite(end)]
        size = max(float(np.abs(self._point).max()), *ends)
        return float(np.linalg.norm(self._excess - self._y / self._sigma)) / (size or 1.0)

    def normal(self, size: int) -> FloatArray:
        out = np.zeros(size)
        out[self._part.index] = self._twice * self._y[self._part.entries]
        return out

    def drawn_in(self, x: FloatArray) -> FloatArray:
        """Return a point nearby within the bounds; its unit is that of what they move it by."""
        return self._part.drawn_in(x, float(np.linalg.norm(self._y)) / self._first)


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
