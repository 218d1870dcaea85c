r"""The gamma loss with the log link."""

from __future__ import annotations

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

    @property
    def scales(self) -> int:
        return 1

    def minus_twice_log(
        self, mean: float, y: FloatArray, precision: FloatArray, copies: FloatArray
    ) -> float:
        r"""Return :math:`-2 \log L` with the shape :math:`\nu w_i` of highest likelihood.

        With the means over :math:`M = \sum_i m_i w_i` and
        :math:`s = \bar F - 1 - \overline{\log y}` it solves
        :math:`\sum_i m_i w_i (\log \nu w_i - \psi(\nu w_i)) = M s`, and
        :math:`-\log L = \nu M (1 + s) - \sum_i m_i (\nu w_i \log \nu w_i - \log \Gamma(\nu w_i)
        - \log y_i)`.
        """
        from scipy.optimize import brentq
        from scipy.special import digamma, gammaln

        there = precision * copies > 0.0
        w, m, log_y = precision[there], copies[there], np.log(y[there])
        n, total = float(m.sum()), float(m @ w)
        s = max(mean - 1.0 - float((m * w) @ log_y) / total, 1e-15)

        def slope(v: float) -> float:
            return float((m * w) @ (np.log(v * w) - digamma(v * w))) / total - s

        low = 0.5 * n / (total * s)  # 1/2 < x (log x - psi(x)) < 1 brackets the root
        if low * float(w.min()) > 5e6:  # Stirling's formula: the terms below would cancel
            shape = low
            minus_log = 0.5 * float(m @ np.log(2.0 * np.pi / (shape * w))) + 0.5 * n
        else:
            shape = float(brentq(slope, low, 2.0 * low))
            logs = shape * w * np.log(shape * w) - gammaln(shape * w)
            minus_log = shape * total * (1.0 + s) - float(m @ logs)
        return 2.0 * (minus_log + float(m @ log_y))

    def dispersion(self, u: FloatArray, y: FloatArray, c: FloatArray, degrees: float) -> float:
        """Return Pearson's estimate (McCullagh and Nelder, Generalized Linear Models, 1989)."""
        ratios = y / self.mean(u) - 1.0  # type: ignore[attr-defined]
        return float(np.dot(c, np.square(ratios))) / degrees

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
