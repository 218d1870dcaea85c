r"""The gamma loss with the log link."""

from __future__ import annotations

import math
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
from sparsemodel.losses.parts import LIMIT, amounts, entropy, exponential, exponential_slope


class OfAmounts(Likelihood):
    """What gamma losses of every link share: they are equal at equal means."""

    name: ClassVar[str]

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return float(np.dot(c, 1.0 + np.log(y)))

    def minus_twice_log(self, mean: float, y: FloatArray, c: FloatArray) -> float:
        r"""Return :math:`-2 \log L` with the shape :math:`\nu` of highest likelihood.

        With :math:`s = \bar F - 1 - \overline{\log y}` it solves
        :math:`\log \nu - \psi(\nu) = s`, and
        :math:`-\log L / n = \nu (1 + s) - \nu \log \nu + \log \Gamma(\nu) + \overline{\log y}`.
        """
        logs = float(np.dot(c, np.log(y))) / float(c.sum())
        s = max(mean - 1.0 - logs, 1e-15)
        if s < 1e-7:  # Stirling's formula: the terms above would cancel
            per_row = 0.5 * math.log(4.0 * math.pi * s) + 0.5
        else:
            from scipy.optimize import brentq
            from scipy.special import digamma

            # 1/2 < nu (log nu - psi(nu)) < 1 brackets the root.
            shape = float(brentq(lambda v: math.log(v) - digamma(v) - s, 0.5 / s, 1.0 / s))
            per_row = shape * (1.0 + s - math.log(shape)) + math.lgamma(shape)
        return 2.0 * float(c.sum()) * (per_row + logs)

    def dispersion(self, u: FloatArray, y: FloatArray, c: FloatArray, d: int) -> float:
        """Return Pearson's estimate (McCullagh and Nelder, Generalized Linear Models, 1989)."""
        ratios = y / self.mean(u) - 1.0  # type: ignore[attr-defined]
        return float(np.dot(c, np.square(ratios))) / (float(c.sum()) - d)

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        return amounts(y, where, self.name)


@final
@dataclass(frozen=True, slots=True)
class GammaLoss(OfAmounts, Curved, IntervalConjugable, CvxModelled, Loss):
    r"""The gamma loss :math:`\ell(u; y) = y e^{-u} + u` for :math:`y > 0`.

    For positive targets of mean :math:`\mu = e^u` and a standard deviation proportional to it. It
    is the negative log-likelihood of a gamma variable, divided by its shape parameter, without the
    terms that do not depend on ``u``.

    * Conjugate, with :math:`s = 1 - a`: :math:`\ell^*(a; y) = s \log s - s \log y - s` for
      :math:`s \ge 0`.
    * Neither smooth nor strongly convex (both on bounded sets only).
    * Infimum of one observation: :math:`1 + \log y`.
    * Below :math:`u = -300` the exponential goes on along its tangent, so that a bad step gives a
      huge number instead of an overflow.

    References
    ----------
    McCullagh and Nelder, *Generalized linear models* (1989).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.gamma_loss(np.eye(3) @ w, [1.2, 0.9, 7.0])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    >>> loss.loss.value(np.array([0.0, np.log(2.0)]), np.array([1.0, 2.0])).round(4)
    array([1.    , 1.6931])
    """

    name: ClassVar[str] = "gamma_loss"
    strictly_convex: ClassVar[bool] = True

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return y * exponential(-u) + u

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return 1.0 - y * exponential_slope(-u)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return y * exponential_slope(-u)

    def mean(self, u: FloatArray) -> FloatArray:
        return np.exp(u)

    def value_magnitude(self, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        # Where the tangent stands for the exponential, the value is below the true one.
        return np.where(-u > LIMIT, np.inf, Loss.value_magnitude(self, u, y, value))

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        s = 1.0 - a
        # inf outside the domain
        return np.negative(entropy(s) + s * (np.log(y) + 1.0))

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(y.shape, -np.inf), np.ones(y.shape)

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        return cp.multiply(y, cp.exp(-u)) + u
