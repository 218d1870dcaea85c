r"""The Poisson loss."""

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
from sparsemodel.losses.parts import LIMIT, counts, entropy, exponential, exponential_slope


@final
@dataclass(frozen=True, slots=True)
class PoissonLoss(Curved, IntervalConjugable, Likelihood, CvxModelled, Loss):
    r"""The Poisson loss :math:`\ell(u; y) = e^u - y u` for counts :math:`y \ge 0`.

    It is the negative log-likelihood of a count whose mean is :math:`e^u`, without
    :math:`\log y!`. The target need not be whole numbers. Exposures enter as an offset of the
    prediction, ``A @ w + c + np.log(exposure)``.

    * Conjugate: :math:`\ell^*(a; y) = (a + y) \log(a + y) - (a + y)` for :math:`a + y \ge 0`.
    * Neither smooth nor strongly convex (both on bounded sets only).
    * Infimum of one observation: :math:`y - y \log y`.
    * Beyond :math:`u = 300` the exponential goes on along its tangent, so that a bad step gives a
      huge number instead of an overflow.

    References
    ----------
    McCullagh and Nelder, *Generalized linear models* (1989).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.poisson_loss(np.eye(3) @ w, [1, 0, 7])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    >>> loss.loss.value(np.array([0.0, np.log(2.0)]), np.array([0.0, 2.0])).round(4)
    array([1.    , 0.6137])
    """

    name: ClassVar[str] = "poisson_loss"
    strictly_convex: ClassVar[bool] = True

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return exponential(u) - y * u

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return exponential_slope(u) - y

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return exponential_slope(u)

    def mean(self, u: FloatArray) -> FloatArray:
        return np.exp(u)

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return float(np.dot(c, y + entropy(y)))

    def value_magnitude(self, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        # Where the tangent stands for the exponential, the value is below the true one.
        return np.where(u > LIMIT, np.inf, Loss.value_magnitude(self, u, y, value))

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        s = a + y
        return np.negative(entropy(s) + s)  # inf outside the domain

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -y, np.full(y.shape, np.inf)

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        return counts(y, where, self.name)

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        return cp.exp(u) - cp.multiply(y, u)
