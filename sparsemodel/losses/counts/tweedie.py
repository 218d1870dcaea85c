r"""The Tweedie loss with the log link, for powers between Poisson's and gamma's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Curved,
    CvxModelled,
    DataError,
    FloatArray,
    IntervalConjugable,
    Loss,
)
from sparsemodel.losses.parts import LIMIT, counts, entropy, exponential, exponential_slope, real


@final
@dataclass(frozen=True, slots=True)
class TweedieLoss(Curved, IntervalConjugable, CvxModelled, Loss):
    r"""The Tweedie loss with the log link,

    .. math:: \ell(u; y) = \frac{y\, e^{-(p - 1) u}}{p - 1} + \frac{e^{(2 - p) u}}{2 - p},
              \qquad y \ge 0,\ 1 < p < 2 .

    For amounts of mean :math:`\mu = e^u` and a variance proportional to :math:`\mu^p`, with many
    zeros and a wide spread of positive values: rainfall, insurance claims. It is half the deviance,
    without the terms that do not depend on ``u``. The density itself has no closed form: there are
    no information criteria.

    * Conjugate: :math:`\ell^*(a; y) = a v - \ell(v; y)` at the root ``v`` of
      :math:`e^{(2 - p) v} - y\, e^{-(p - 1) v} = a`, for every ``a`` where :math:`y > 0` and for
      :math:`a \ge 0` where :math:`y = 0`. Newton's method finds the root from one side, and an
      error of it enters squared.
    * Neither smooth nor strongly convex (both on bounded sets only).
    * Infimum of one observation: :math:`y^{2 - p} / ((p - 1)(2 - p))`.
    * Exponentials go on along their tangents where they exceed :math:`e^{300}`, so that a bad step
      gives a huge number instead of an overflow.

    Parameters
    ----------
    power
        The power ``p`` of the mean, strictly between 1 (the Poisson loss) and 2 (the gamma loss).

    References
    ----------
    Jørgensen, *Exponential dispersion models*, JRSS B 49 (1987).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.tweedie_loss(np.eye(3) @ w, [1.2, 0.9, 7.0], power=1.5)
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    >>> loss.loss.value(np.array([0.0, np.log(4.0)]), np.array([0.0, 4.0]))
    array([2., 8.])
    """

    name: ClassVar[str] = "tweedie_loss"
    strictly_convex: ClassVar[bool] = True
    power: float = 1.5

    def __post_init__(self) -> None:
        power = real(self.power, "power", self.name)
        if not 1.0 < power < 2.0:
            ends = {1.0: "poisson_loss", 2.0: "gamma_loss", 0.0: "squared_loss"}
            hint = f"; use {ends[power]} for it" if power in ends else ""
            if power > 2.0:  # the inverse Gaussian distribution has 3
                hint = "; beyond 2 the loss is not convex with a mean of exp(u), up to 2 it is"
            raise DataError(
                f"{self.name}: power must lie strictly between 1 and 2, got {power:g}{hint}."
            )
        object.__setattr__(self, "power", power)

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        fall, rise = self._rates()
        return y * exponential(-fall * u) / fall + exponential(rise * u) / rise

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        fall, rise = self._rates()
        return exponential_slope(rise * u) - y * exponential_slope(-fall * u)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        fall, rise = self._rates()
        return rise * exponential_slope(rise * u) + fall * y * exponential_slope(-fall * u)

    def mean(self, u: FloatArray) -> FloatArray:
        return np.exp(u)

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        fall, rise = self._rates()
        return float(np.dot(c, y**rise)) / (fall * rise)

    def value_magnitude(self, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        # Where a tangent stands for an exponential, the value is below the true one.
        fall, rise = self._rates()
        beyond = np.maximum(rise * u, np.where(y > 0.0, -fall * u, 0.0)) > LIMIT
        return np.where(beyond, np.inf, value * (1.0 + np.abs(u)))

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        v, rise = self._root(a, y), self._rates()[1]
        # Without a falling part there is a formula; inf outside the domain.
        return np.where(y > 0.0, a * v - self.value(v, y), np.negative(entropy(a) + a) / rise)

    def conjugate_magnitude(self, a: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        v = self._root(a, y)
        sizes = np.abs(a * v) + self.value_magnitude(v, y, self.value(v, y))
        return np.where((a == 0.0) & (y == 0.0), 0.0, sizes)

    def _root(self, a: FloatArray, y: FloatArray) -> FloatArray:
        r"""Return the ``v`` whose derivative is ``a``, and zero where there is none.

        For :math:`a \ge 0` it is where :math:`f(v) = (2 - p) v - \log(a + y e^{-(p - 1) v})` is
        zero, which is concave and rises: Newton's method stays below the root from the first step
        on. For :math:`a < 0` the same holds for ``-v``, with the exponents exchanged.
        """
        rises = a >= 0.0
        fall, rise = self._rates()
        own, other = np.where(rises, rise, fall), np.where(rises, fall, rise)
        with np.errstate(divide="ignore"):
            log_y, log_a = np.log(y), np.log(np.abs(a))
        known = (a > 0.0) | (y > 0.0)
        log_y, log_a = np.where(known, log_y, 0.0), np.where(known, log_a, 0.0)
        start = np.where(rises, log_y, -log_y)
        shift = np.where(rises, log_a, log_a - log_y)
        v = np.maximum(shift / own, start)
        for _ in range(_STEPS):
            tail = start - other * v
            logs = np.logaddexp(shift, tail)
            step = (logs - own * v) / (own + other * np.exp(tail - logs))
            v = v + step
            if np.all(np.abs(step) <= 1e-12 * (1.0 + np.abs(v))):
                break
        return np.where(known, np.where(rises, v, -v), 0.0)

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(y > 0.0, -np.inf, 0.0), np.full(y.shape, np.inf)

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        return counts(y, where, self.name)

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        fall, rise = self._rates()
        return cp.multiply(y / fall, cp.exp(-fall * u)) + cp.exp(rise * u) / rise

    def _rates(self) -> tuple[float, float]:
        """Return ``p - 1`` and ``2 - p``."""
        return self.power - 1.0, 2.0 - self.power


_STEPS = 40
"""Newton's method needs five or six; the root is within log(2) / min(p - 1, 2 - p) at the start."""
