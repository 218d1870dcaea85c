r"""The negative binomial loss with the log link."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Curved,
    CvxModelled,
    DataError,
    FloatArray,
    IntervalConjugable,
    Likelihood,
    Loss,
)
from sparsemodel.losses.parts import chance, counts, entropy, positive

_LARGEST = 1e100


@final
@dataclass(frozen=True, slots=True)
class NegativeBinomialLoss(Curved, IntervalConjugable, Likelihood, CvxModelled, Loss):
    r"""The negative binomial loss,

    .. math:: \ell(u; y) = (y + \theta) \log\left(1 + e^u/\theta\right) - y u , \qquad y \ge 0 .

    For counts of mean :math:`\mu = e^u` that vary more than Poisson's, with variance
    :math:`\mu + \mu^2/\theta`. It is the negative log-likelihood, without the terms that do not
    depend on ``u``; for :math:`\theta \to \infty` the Poisson loss. Exposures enter as an offset of
    the prediction, ``A @ w + c + np.log(exposure)``.

    * Conjugate, with :math:`s = a + y` and :math:`t = \theta - a`, both not negative:
      :math:`\ell^*(a; y) = s \log \frac{\theta s}{\theta + y} + t \log \frac{t}{\theta + y}`.
    * :math:`(\max y + \theta)/4`-smooth, not strongly convex.
    * Infimum of one observation: :math:`-\ell^*(0; y)`.

    Parameters
    ----------
    theta
        How closely counts keep to a Poisson distribution: a positive number, at most 1e100, which
        is not estimated. Its inverse is known as the dispersion :math:`\alpha`.

    References
    ----------
    Lawless, *Negative binomial and mixed Poisson regression*, Can. J. Statist. 15 (1987).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.negative_binomial_loss(np.eye(3) @ w, [1, 0, 7], theta=1.0)
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    >>> loss.loss.value(np.zeros(2), np.array([0.0, 2.0])).round(4)
    array([0.6931, 2.0794])
    """

    name: ClassVar[str] = "negative_binomial_loss"
    strictly_convex: ClassVar[bool] = True
    theta: float = 1.0

    def __post_init__(self) -> None:
        theta = positive(self.theta, "theta", self.name)
        if theta > _LARGEST:
            raise DataError(
                f"{self.name}: theta must be at most {_LARGEST:g}, got {theta:g}; use "
                "poisson_loss for its limit."
            )
        object.__setattr__(self, "theta", theta)

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return (y + self.theta) * np.logaddexp(0.0, u - math.log(self.theta)) - y * u

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        v = u - math.log(self.theta)
        return self.theta * chance(v) - y * chance(-v)  # in the interval, whatever the rounding

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        v = u - math.log(self.theta)
        return (y + self.theta) * (chance(v) * chance(-v))

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 0.25 * (float(np.max(y, initial=0.0)) + self.theta)

    def mean(self, u: FloatArray) -> FloatArray:
        return np.exp(u)

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return -float(np.dot(c, self.conjugate(np.zeros(y.shape), y)))

    def value_magnitude(self, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        size = np.abs(u)
        return 1.0 + (np.abs(value) + 2.0 * y * size) * (2.0 + size + abs(math.log(self.theta)))

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        s, rest = a + y, self._rest(a, y)
        return np.negative(entropy(s) + s * np.log1p(y / self.theta)) + rest  # inf outside

    def conjugate_magnitude(self, a: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        s = np.maximum(a + y, 0.0)
        sizes = s * (1.0 + np.log1p(y / self.theta)) + np.abs(entropy(s))
        return sizes + np.abs(self._rest(a, y))

    def _rest(self, a: FloatArray, y: FloatArray) -> FloatArray:
        """Return ``t log(t / (theta + y))`` for ``t = theta - a``; inf where t is negative."""
        t, size = self.theta - a, self.theta + y
        # The logarithm of what is close to one is that of what is missing.
        missing = np.minimum((a + y) / size, 0.5)
        near = np.log1p(np.negative(missing))
        logs = np.where(missing < 0.5, near, np.log(np.where(t > 0.0, t / size, 1.0)))
        return np.where(t < 0.0, np.inf, t * logs)

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -y, np.full(y.shape, self.theta)

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        return counts(y, where, self.name)

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        logs = cp.logistic(u - math.log(self.theta))
        return cp.multiply(y + self.theta, logs) - cp.multiply(y, u)
