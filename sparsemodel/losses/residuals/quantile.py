r"""Piecewise linear losses of the residual: absolute, quantile, epsilon-insensitive.

All three, and their smoothed versions, are one family in the residual :math:`r = u - y`: slope
``above`` for residuals beyond ``epsilon``, slope ``-below`` for residuals under ``-epsilon``, zero
between. In dual words

.. math:: \ell(u; y) = \max_{-\mathrm{below} \le a \le \mathrm{above}}
          a r - \epsilon |a| - \tfrac{\mu}{2} a^2 ,

where :math:`\mu = 0` is the loss itself and :math:`\mu > 0` its smoothed version.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Curved,
    FloatArray,
    Likelihood,
    Loss,
    OfDifference,
    OfResidual,
    Piecewise,
    Smoothable,
)
from sparsemodel.losses.parts import OfNumbers, level, nonnegative, positive, within


class _Sloped(Piecewise, OfNumbers):
    """The family; the concrete losses give the two slopes and the dead zone."""

    __slots__ = ()

    @abstractmethod
    def _slopes(self) -> tuple[float, float]:
        """Return ``(below, above)``."""

    def _dead_zone(self) -> float:
        return 0.0

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        below, above = self._slopes()
        return np.full(y.shape, -below), np.full(y.shape, above)

    def pieces(self, y: FloatArray) -> Sequence[tuple[FloatArray, FloatArray, FloatArray]]:
        (lower, upper), epsilon = self.dual_interval(y), self._dead_zone()
        if epsilon == 0.0:
            return [(y, lower, upper)]
        level = np.zeros(y.shape)
        return [(y + epsilon, level, upper), (y - epsilon, lower, level)]

    def value_magnitude(self, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        return value + max(self._slopes()) * self._dead_zone()


class _Pinball(Smoothable, _Sloped):
    """The losses with a kink."""

    __slots__ = ()

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        below, above = self._slopes()
        epsilon = self._dead_zone()
        r = u - y
        if epsilon == 0.0:
            return np.maximum(above * r, -below * r)
        return np.maximum(np.maximum(above * (r - epsilon), -below * (r + epsilon)), 0.0)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        below, above = self._slopes()
        epsilon = self._dead_zone()
        r = u - y
        return np.where(r > epsilon, above, np.where(r < -epsilon, -below, 0.0))

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        return within(a, *self.dual_interval(y), a * y + self._dead_zone() * np.abs(a))

    def smoothed(self, mu: float) -> Loss:
        below, above = self._slopes()
        mu = positive(mu, "mu", f"{self.name}.smoothed")
        return SmoothedPinballLoss(below=below, above=above, epsilon=self._dead_zone(), mu=mu)

    def smoothing_error(self, mu: float) -> float:
        return 0.5 * mu * max(self._slopes()) ** 2

    def conjugate_magnitude(self, a: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        return np.abs(a) * (np.abs(y) + self._dead_zone())

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        below, above = self._slopes()
        epsilon = self._dead_zone()
        return above * cp.pos(u - y - epsilon) + below * cp.pos(y - u - epsilon)


@final
@dataclass(frozen=True, slots=True)
class AbsoluteLoss(OfResidual, Likelihood, _Pinball):
    r"""The absolute loss :math:`\ell(u; y) = |u - y|`, whose minimiser predicts a median.

    * Conjugate: :math:`\ell^*(a; y) = a y` for :math:`|a| \le 1`.
    * Neither smooth nor strongly convex: it is solved by a sequence of smoothed problems and
      exactly on the support, as ``explain()`` says. At the kink the subgradient is 0.
    * ``smoothed(mu)`` is at most ``mu / 2`` below.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.absolute_loss(np.eye(3) @ w, [3.0, 0.1, 90.0])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """

    name: ClassVar[str] = "absolute_loss"
    even: ClassVar[bool] = True
    degree: ClassVar[float | None] = 1.0

    def _slopes(self) -> tuple[float, float]:
        return 1.0, 1.0


@final
@dataclass(frozen=True, slots=True)
class QuantileLoss(OfResidual, Likelihood, _Pinball):
    r"""The quantile (pinball) loss,
    :math:`\ell(u; y) = \tau \max(y - u, 0) + (1 - \tau) \max(u - y, 0)`.

    Its minimiser predicts the quantile of level ``tau``.

    * Conjugate: :math:`\ell^*(a; y) = a y` for :math:`-\tau \le a \le 1 - \tau`.
    * Neither smooth nor strongly convex: it is solved by a sequence of smoothed problems and
      exactly on the support, as ``explain()`` says. At the kink the subgradient is 0.
    * ``smoothed(mu)`` is at most ``mu * max(tau, 1 - tau)**2 / 2`` below.

    Parameters
    ----------
    tau
        Level, strictly between 0 and 1; 0.5 is half the absolute loss.

    References
    ----------
    Koenker and Bassett, *Regression quantiles*, Econometrica 46 (1978).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.quantile_loss(np.eye(3) @ w, [3.0, 0.1, -90.0], tau=0.9)
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [0]
    >>> loss.loss.value(np.array([-1.0, 1.0]), np.zeros(2)).round(12)
    array([0.9, 0.1])
    """

    name: ClassVar[str] = "quantile_loss"
    degree: ClassVar[float | None] = 1.0
    tau: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "tau", level(self.tau, "tau", self.name, "quantile"))

    def _slopes(self) -> tuple[float, float]:
        return self.tau, 1.0 - self.tau


@final
@dataclass(frozen=True, slots=True)
class EpsilonInsensitiveLoss(OfDifference, _Pinball):
    r"""The epsilon-insensitive loss :math:`\ell(u; y) = \max(|u - y| - \epsilon, 0)`.

    * Conjugate: :math:`\ell^*(a; y) = a y + \epsilon |a|` for :math:`|a| \le 1`.
    * Neither smooth nor strongly convex: it is solved by a sequence of smoothed problems and
      exactly on the support, as ``explain()`` says. At the kinks the subgradient is 0.
    * ``smoothed(mu)`` is at most ``mu / 2`` below.

    Parameters
    ----------
    epsilon
        Residuals up to this size cost nothing; not negative, in the units of the target.

    References
    ----------
    Vapnik, *The Nature of Statistical Learning Theory* (1995), chapter 6.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.epsilon_insensitive_loss(np.eye(3) @ w, [3.0, 0.1, 90.0], epsilon=0.5)
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    >>> loss.loss.value(np.array([0.25, -2.0]), np.zeros(2))
    array([0. , 1.5])
    """

    name: ClassVar[str] = "epsilon_insensitive_loss"
    even: ClassVar[bool] = True
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        epsilon = nonnegative(self.epsilon, "epsilon", self.name)
        object.__setattr__(self, "epsilon", epsilon)

    def _slopes(self) -> tuple[float, float]:
        return 1.0, 1.0

    def _dead_zone(self) -> float:
        return self.epsilon


@final
@dataclass(frozen=True, slots=True)
class SmoothedPinballLoss(Curved, _Sloped):
    r"""Smoothed version of the piecewise linear losses of the residual :math:`r = u - y`,

    .. math:: \ell(u; y) = \max_{-\mathrm{below} \le a \le \mathrm{above}}
              a r - \epsilon |a| - \tfrac{\mu}{2} a^2 :

    zero up to ``epsilon``, then a parabola of curvature :math:`1/\mu` until the slope reaches
    ``above`` (or ``-below``), then a line.

    * Conjugate: :math:`\ell^*(a; y) = a y + \epsilon |a| + \tfrac{\mu}{2} a^2` for
      :math:`-\mathrm{below} \le a \le \mathrm{above}`.
    * :math:`1/\mu`-smooth, not strongly convex. The second derivative is the generalised one:
      :math:`1/\mu` on the parabolas, 0 elsewhere.
    * Between 0 and ``mu * max(below, above)**2 / 2`` below the loss with ``mu = 0``.

    Parameters
    ----------
    below, above
        Absolute slopes for very negative and very positive residuals; positive.
    epsilon
        Half the width of the dead zone; not negative.
    mu
        Smoothing, positive.

    References
    ----------
    Nesterov, *Smooth minimization of non-smooth functions*, Math. Program. 103 (2005).

    Examples
    --------
    >>> import numpy as np
    >>> SmoothedPinballLoss(mu=0.5).value(np.array([0.0, 0.5, 3.0]), np.zeros(3))
    array([0.  , 0.25, 2.75])
    """

    name: ClassVar[str] = "smoothed_pinball_loss"
    below: float = 1.0
    above: float = 1.0
    epsilon: float = 0.0
    mu: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "below", positive(self.below, "below", self.name))
        object.__setattr__(self, "above", positive(self.above, "above", self.name))
        object.__setattr__(self, "epsilon", nonnegative(self.epsilon, "epsilon", self.name))
        object.__setattr__(self, "mu", positive(self.mu, "mu", self.name))

    def _slopes(self) -> tuple[float, float]:
        return self.below, self.above

    def _dead_zone(self) -> float:
        return self.epsilon

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        r = u - y
        a = self._maximiser(r)
        return a * (r - (0.5 * self.mu) * a) - self.epsilon * np.abs(a)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return self._maximiser(u - y)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        r = u - y
        slope = (np.abs(r) - self.epsilon) / self.mu
        curved = (slope >= 0.0) & (slope <= np.where(r > 0.0, self.above, self.below))
        return np.where(curved, 1.0 / self.mu, 0.0)

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 1.0 / self.mu

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        values = a * (y + (0.5 * self.mu) * a) + self.epsilon * np.abs(a)
        return within(a, *self.dual_interval(y), values)

    @property
    def softness(self) -> float:
        return self.mu

    def conjugate_magnitude(self, a: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        return np.abs(a) * (np.abs(y) + self.epsilon + self.mu * np.abs(a))

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        # (mu/2) huber(t / mu, s) is the parabola t^2/(2 mu) up to slope s, then the line.
        half = 0.5 * self.mu
        over = cp.pos(u - y - self.epsilon) / self.mu
        under = cp.pos(y - u - self.epsilon) / self.mu
        return half * (cp.huber(over, self.above) + cp.huber(under, self.below))

    def _maximiser(self, r: FloatArray) -> FloatArray:
        reach = r - np.clip(r, -self.epsilon, self.epsilon)
        return np.clip(reach / self.mu, -self.below, self.above)
