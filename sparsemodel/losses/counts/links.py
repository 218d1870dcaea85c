r"""Losses of counts and amounts whose mean is no exponential: links that keep the loss convex.

All are :math:`q u^2 + s u - b \log u`, or :math:`s u - b \sqrt u`, of positive predictions ``u``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Curved,
    CvxModelled,
    FloatArray,
    IntervalConjugable,
    Likelihood,
    Loss,
)
from sparsemodel.losses.counts.gamma import OfAmounts
from sparsemodel.losses.parts import amounts, counts


@dataclass(frozen=True, slots=True)
class _Linked(Curved, IntervalConjugable, CvxModelled, Loss):
    r"""The loss :math:`\ell(u) = q u^2 + s u - b \log u` (or another barrier) for :math:`u \ge e`.

    ``e`` is a millionth of the prediction where it is least, or less. Below, and on the
    negative side, it goes on along the parabola :math:`\ell(e) + \ell'(e) (u - e) +
    \tfrac12 \ell''(e) (u - e)^2`, which lies below the logarithm: twice differentiable and convex
    everywhere, and where a solution has predictions above ``e`` alone, it is one of the loss
    itself. Solutions with others are refused.
    """

    strictly_convex: ClassVar[bool] = True
    everywhere: ClassVar[bool] = False
    square: ClassVar[float] = 0.0
    """``q``."""
    edge: ClassVar[float] = 1e-6
    """What ``e`` is of the prediction where the loss is least."""
    otherwise: ClassVar[str] = "take the log link"
    """What to do where predictions cannot be positive."""

    @abstractmethod
    def parts(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``s`` and ``b``, neither negative."""

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        v = np.maximum(u, self._edge(y))
        at, slope, curve = self._expanded(v, y)
        return at + (u - v) * (slope + 0.5 * curve * (u - v))

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        v = np.maximum(u, self._edge(y))
        _, slope, curve = self._expanded(v, y)
        return slope + curve * (u - v)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return self._expanded(np.maximum(u, self._edge(y)), y)[2]

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        if not self.square and np.any(self.parts(y)[1] == 0.0):
            return -np.inf
        return float(np.dot(c, self._expanded(self._best(y), y)[0]))

    def inside(self, y: FloatArray) -> FloatArray:
        return 2.0 * self._best(y)

    def misplaced(self, u: FloatArray, y: FloatArray) -> str:
        logs = self.parts(y)[1] > 0.0
        wrong = logs & (u < self._edge(y))
        if np.any(wrong) and np.all(u[wrong] > 0.0):
            row = int(np.argmax(wrong))
            return (
                f"{self.name} is computed for predictions of at least {self.edge:g} times the best "
                f"one of their target, and {int(wrong.sum())} are below: {u[row]:.3g} for a target "
                f"of {y[row]:.3g}. Leave out targets as small, or {self.otherwise}."
            )
        if np.any(wrong):
            return (
                f"{self.name} needs positive predictions, and no coefficients were found that "
                f"make them so ({int(wrong.sum())} of {u.size} are not). Add a constant, "
                f"`A @ w + c` with c = sm.Variable(), allow more nonzeros, or {self.otherwise}."
            )
        least = float(np.min(u, initial=0.0, where=~logs))
        if self.square or least >= -1e-9 * float(np.abs(u).max()):
            return ""
        return (
            f"With {self.name} counts of zero get a negative mean here ({least:g}). Add the "
            "constraint `A[y == 0] @ w >= 0`, with the constant if there is one."
        )

    def value_magnitude(self, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        # Where the parabola stands for the logarithm, the value is below the true one.
        s, b = self.parts(y)
        barrier = self._barrier_size(np.abs(u), b)
        sizes = 4.0 * (self.square * u * u + s * np.abs(u) + barrier)
        return np.where(u < self._edge(y), np.where(b > 0.0, np.inf, sizes), sizes)

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        v = self._attained(a, y)
        at, slope, curve = self._expanded(v, y)
        beyond = np.minimum(a - slope, 0.0)  # rounding, but below the edge
        moved = np.divide(beyond**2, curve, out=np.zeros_like(curve), where=curve > 0.0)
        lower, upper = self.dual_interval(y)
        inside = (lower <= a) & (a <= upper)
        return np.where(inside, a * v - at + 0.5 * moved, np.inf)

    def conjugate_magnitude(self, a: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        v = self._attained(a, y)
        s, b = self.parts(y)
        sizes = (np.abs(a) + s) * v + self.square * v * v + self._barrier_size(v, b)
        return sizes + 2.0 * np.abs(value)

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        s, b = self.parts(y)
        if self.square > 0.0:
            return np.full(y.shape, -np.inf), np.full(y.shape, np.inf)
        # The end itself does not belong to it where there is a logarithm.
        return np.where(b > 0.0, -np.inf, s), np.where(b > 0.0, np.nextafter(s, -np.inf), s)

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        s, b = self.parts(y)
        on = 1.0 * (b > 0.0)
        logs = cp.multiply(b, cp.log(cp.multiply(on, u) + (1.0 - on)))
        return self.square * cp.square(u) + cp.multiply(s, u) - logs

    def _barrier(self, v: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ``-b log v``, its slope and its curvature; zeros where ``b`` is zero."""
        inverse = np.divide(1.0, v, out=np.zeros_like(v), where=b > 0.0)
        return -b * _log(v, b), -b * inverse, b * inverse * inverse

    def _barrier_size(self, v: FloatArray, b: FloatArray) -> FloatArray:
        """Return what the error of the barrier is as large as."""
        return b * (1.0 + np.abs(_log(v, b)))

    def _best(self, y: FloatArray) -> FloatArray:
        s, b = self.parts(y)
        return np.sqrt(b / (2.0 * self.square)) if self.square else np.where(b > 0.0, b / s, 0.0)

    def _edge(self, y: FloatArray) -> FloatArray:
        return self.edge * self._best(y)

    def _expanded(self, v: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value, slope and curvature at predictions above the edge."""
        s, b = self.parts(y)
        value, slope, curve = self._barrier(v, b)
        value = self.square * v * v + s * v + value
        return value, 2.0 * self.square * v + s + slope, 2.0 * self.square + curve

    def _attained(self, a: FloatArray, y: FloatArray) -> FloatArray:
        """Return the predictions of slope ``a``, the edge where they are below it."""
        s, b = self.parts(y)
        t = a - s
        root = np.sqrt(t * t + 8.0 * self.square * b)
        down = np.divide(2.0 * b, root - t, out=np.zeros_like(t), where=root > t)
        up = (t + root) / (4.0 * self.square) if self.square else np.zeros_like(t)
        return np.maximum(np.where(t > 0.0, up, down), self._edge(y))


def _log(v: FloatArray, b: FloatArray) -> FloatArray:
    """Return ``log(v)`` where there is a ``b`` that multiplies it."""
    return np.log(v, out=np.zeros_like(v), where=(b > 0.0) & (v > 0.0))


@dataclass(frozen=True, slots=True)
class _OfCounts(_Linked, Likelihood):
    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        return counts(y, where, self.name)


@final
@dataclass(frozen=True, slots=True)
class PoissonIdentityLoss(_OfCounts):
    r"""The Poisson loss with identity link, :math:`\ell(u; y) = u - y \log u` for :math:`u > 0`.

    It is the negative log-likelihood of a count :math:`y \ge 0` whose mean is ``u``, without
    :math:`\log y!`: what is counted adds up (channels, sources, background). Predictions must be
    positive; include a constant, or coefficients that make them so. The loss does not enforce this
    at counts of zero, where it is ``u`` for every ``u``; if necessary add the constraint
    ``A[y == 0] @ w >= 0``.

    * Conjugate: :math:`\ell^*(a; y) = y \log \frac{y}{1 - a} - y` for :math:`a < 1`.
    * Neither smooth nor strongly convex (both on bounded sets only).
    * Infimum of one observation: :math:`y - y \log y`.
    * Below :math:`u = 10^{-6} y` it goes on along its parabola, so that a bad step gives a huge
      number; solutions there are refused.

    Examples
    --------
    >>> import numpy as np
    >>> PoissonIdentityLoss().value(np.array([0.5, 1.0]), np.array([0.0, 2.0])).round(4)
    array([0.5, 1. ])
    """

    name: ClassVar[str] = "poisson_identity_loss"

    def parts(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(y), y


@final
@dataclass(frozen=True, slots=True)
class PoissonSqrtLoss(_OfCounts):
    r"""The Poisson loss with root link, :math:`\ell(u; y) = u^2 - 2 y \log u` for :math:`u > 0`.

    It is the negative log-likelihood of a count :math:`y \ge 0` whose mean is :math:`u^2`, without
    :math:`\log y!`. Predictions must be positive; include a constant, or coefficients that make
    them so. The loss does not enforce this at counts of zero, where it is :math:`u^2` for every
    ``u``; if necessary add the constraint ``A[y == 0] @ w >= 0``.

    * Conjugate: :math:`\ell^*(a; y) = a v - \ell(v; y)` with
      :math:`v = \tfrac14 (a + \sqrt{a^2 + 16 y})`, for every ``a``.
    * Not smooth; 2-strongly convex.
    * Infimum of one observation: :math:`y - y \log y`.
    * Below :math:`u = 10^{-6} \sqrt y` it goes on along its parabola, so that a bad step gives a
      huge number; solutions there are refused.

    Examples
    --------
    >>> import numpy as np
    >>> PoissonSqrtLoss().value(np.array([0.5, 1.0]), np.array([0.0, 2.0])).round(4)
    array([0.25, 1.  ])
    """

    name: ClassVar[str] = "poisson_sqrt_loss"
    square: ClassVar[float] = 1.0

    def parts(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros_like(y), 2.0 * y

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 2.0, np.inf

    def mean(self, u: FloatArray) -> FloatArray:
        return np.square(u)


@final
@dataclass(frozen=True, slots=True)
class GammaInverseLoss(OfAmounts, _Linked):
    r"""The gamma loss with the inverse link, :math:`\ell(u; y) = y u - \log u` for :math:`u > 0`.

    It is the negative log-likelihood of a gamma variable with mean :math:`1 / u` (its canonical
    link), divided by its shape parameter, without the terms that do not depend on ``u``: for
    :math:`y > 0` that are times or costs of something whose rates add up. Predictions must be
    positive; include a constant, or coefficients that make them so.

    * Conjugate: :math:`\ell^*(a; y) = -1 - \log(y - a)` for :math:`a < y`.
    * Neither smooth nor strongly convex (both on bounded sets only).
    * Infimum of one observation: :math:`1 + \log y`.
    * Below :math:`u = 10^{-9} / y` it goes on along its parabola, so that a bad step gives a huge
      number; solutions there are refused.

    Examples
    --------
    >>> import numpy as np
    >>> GammaInverseLoss().value(np.array([1.0, 0.5]), np.array([1.0, 2.0])).round(4)
    array([1.    , 1.6931])
    """

    name: ClassVar[str] = "gamma_inverse_loss"
    edge: ClassVar[float] = 1e-9  # amounts may be that far below their mean, unlike counts

    def parts(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return y, np.ones_like(y)

    def mean(self, u: FloatArray) -> FloatArray:
        return 1.0 / u


@final
@dataclass(frozen=True, slots=True)
class InverseGaussianLoss(_Linked, Likelihood):
    r"""The inverse Gaussian loss, :math:`\ell(u; y) = \frac12 y u - \sqrt u` for :math:`u > 0`.

    For positive targets of mean :math:`\mu = 1/\sqrt u` (the canonical link, :math:`u = 1/\mu^2`)
    and a variance proportional to :math:`\mu^3`, for example first passage times. It is the
    negative log-likelihood, divided by the shape parameter, without the terms that do not depend on
    ``u``. Predictions must be positive; include a constant, or coefficients that make them so. With
    :math:`\mu = e^u` the loss is not convex. With :math:`\mu = 1/u` it is, up to a constant, a
    weighted squared loss, ``sm.squared_loss(A @ w + c, 1 / y, weights=y)``.

    * Conjugate: :math:`\ell^*(a; y) = \frac{1}{2 y - 4 a}` for :math:`a < y / 2`.
    * Neither smooth nor strongly convex (both on bounded sets only).
    * Infimum of one observation: :math:`-1 / (2 y)`.
    * Below :math:`u = 10^{-12} / y^2` it goes on along its parabola, so that a bad step gives a
      huge number; solutions there are refused.

    References
    ----------
    McCullagh and Nelder, *Generalized linear models* (1989).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w, c = sm.Variable(3, name="w"), sm.Variable(name="c")
    >>> loss = sm.inverse_gaussian_loss(np.eye(3) @ w + c, [1.2, 0.9, 0.3])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    >>> loss.loss.value(np.array([1.0, 0.25]), np.array([1.0, 2.0]))
    array([-0.5 , -0.25])
    """

    name: ClassVar[str] = "inverse_gaussian_loss"
    edge: ClassVar[float] = 1e-12  # its root is what a target is of the mean
    otherwise: ClassVar[str] = "take sm.gamma_loss(A @ w, y), whose predictions may be any"

    def parts(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return 0.5 * y, np.ones_like(y)

    def mean(self, u: FloatArray) -> FloatArray:
        return 1.0 / np.sqrt(u)

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        return amounts(y, where, self.name)

    @property
    def scales(self) -> int:
        return 1

    def minus_twice_log(
        self, mean: float, y: FloatArray, precision: FloatArray, copies: FloatArray
    ) -> float:
        r"""Return :math:`-2 \log L` with the shape :math:`\lambda w_i` of highest likelihood.

        With :math:`M = \sum_i m_i w_i` and :math:`s = \bar F + \overline{1 / (2 y)}` it is
        :math:`\lambda = n / (2 M s)`, and :math:`-2 \log L = n (1 + \log(4 \pi M s / n)) +
        \sum_i m_i (3 \log y_i - \log w_i)`.
        """
        there = precision * copies > 0.0
        w, m, b = precision[there], copies[there], y[there]
        n, total = float(m.sum()), float(m @ w)
        s = max(mean + float((m * w) @ (0.5 / b)) / total, 1e-15 * abs(mean))
        rest = float(m @ (3.0 * np.log(b) - np.log(w)))
        return n * (1.0 + float(np.log(4.0 * np.pi * total * s / n))) + rest

    def dispersion(self, u: FloatArray, y: FloatArray, c: FloatArray, degrees: float) -> float:
        """Return Pearson's estimate of the inverse of the shape."""
        mean = self.mean(u)
        return float(np.dot(c, np.square(y - mean) / mean**3)) / degrees

    def _barrier(self, v: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        root = np.sqrt(v)
        return -root, -0.5 / root, 0.25 / (v * root)

    def _barrier_size(self, v: FloatArray, b: FloatArray) -> FloatArray:
        return np.sqrt(v)

    def _best(self, y: FloatArray) -> FloatArray:
        return 1.0 / np.square(y)

    def _attained(self, a: FloatArray, y: FloatArray) -> FloatArray:
        t = 0.5 * y - a
        peak = np.divide(0.5, t, out=np.zeros_like(t), where=t > 0.0)
        return np.maximum(np.square(peak), self._edge(y))

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        return cp.multiply(0.5 * y, u) - cp.sqrt(u)
