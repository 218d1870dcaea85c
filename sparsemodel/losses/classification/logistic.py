r"""The logistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import Curved, FloatArray, Likelihood
from sparsemodel.losses.parts import OfTwoClasses, chance, entropy


@final
@dataclass(frozen=True, slots=True)
class LogisticLoss(Curved, Likelihood, OfTwoClasses):
    r"""The logistic loss :math:`\ell(u; y) = \log(1 + e^{-y u})` for labels :math:`y = \pm 1`.

    It is the negative log-likelihood of a label whose log-odds are ``u``, in nats. Without a ridge
    the minimum is not attained on separable data.

    * Conjugate: :math:`\ell^*(a; y) = s \log s + (1 - s) \log(1 - s)` with :math:`s = -a y`,
      for :math:`s \in [0, 1]`.
    * 1/4-smooth; strongly convex on bounded sets only.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> A = np.array([[2.0, 0.1], [-1.0, 0.2], [3.0, 0.3]])
    >>> w = sm.Variable(2, name="w")
    >>> loss = sm.logistic_loss(A @ w, ["ill", "well", "ill"])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [0]
    >>> loss.loss.value(np.array([0.0, 1000.0]), np.array([1.0, -1.0])).round(4)
    array([6.931e-01, 1.000e+03])
    """

    name: ClassVar[str] = "logistic_loss"
    strictly_convex: ClassVar[bool] = True

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        # Written out instead of logaddexp, which is not vectorised.
        margin = y * u
        values: FloatArray = np.log1p(np.exp(-np.abs(margin)))
        values -= np.minimum(margin, 0.0)
        return values

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        # The logistic function from the small side; SciPy's takes longer to load than a fit.
        margin = y * u
        small = np.exp(-np.abs(margin))
        slope: FloatArray = np.where(margin > 0.0, small, 1.0)
        slope /= 1.0 + small
        slope *= -y
        return slope

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        # p (1 - p) from the small side: 1 - p would lose all digits where u is large.
        small: FloatArray = np.exp(-np.abs(u))
        small /= np.square(1.0 + small)
        np.minimum(small, 0.25, out=small)  # rounding near zero must not pass the bound
        return small

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 0.25

    def mean(self, u: FloatArray) -> FloatArray:
        """Return the probability of the second class, ``1 / (1 + exp(-u))``."""
        return chance(u)

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        s = -a * y
        return np.negative(entropy(s) + entropy(1.0 - s))  # inf outside the domain

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        return cp.logistic(cp.multiply(-y, u))
