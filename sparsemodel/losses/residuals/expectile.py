r"""The expectile loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Curved,
    FloatArray,
    Likelihood,
    OfResidual,
)
from sparsemodel.losses.parts import OfNumbers, level


@final
@dataclass(frozen=True, slots=True)
class ExpectileLoss(OfResidual, Curved, Likelihood, OfNumbers):
    r"""The expectile loss, squares that count differently on the two sides,

    .. math:: \ell(u; y) = \tau \max(y - u, 0)^2 + (1 - \tau) \max(u - y, 0)^2 .

    Its minimiser predicts the expectile of level ``tau``: a mean in which what lies above counts
    :math:`\tau / (1 - \tau)` times. It is to the mean what the quantile loss is to the median. As a
    likelihood it is that of an asymmetric normal variable whose scale is estimated.

    * Conjugate: :math:`\ell^*(a; y) = a y + a^2 / (4 \omega)` on the whole line, with
      :math:`\omega = \tau` for :math:`a < 0` and :math:`1 - \tau` for :math:`a > 0`.
    * :math:`2\max(\tau, 1 - \tau)`-smooth and :math:`2\min(\tau, 1 - \tau)`-strongly convex. The
      second derivative at the target itself is that of :math:`u < y`.

    Parameters
    ----------
    tau
        Level, strictly between 0 and 1; 0.5 is the squared loss.

    References
    ----------
    Newey and Powell, *Asymmetric least squares estimation and testing*, Econometrica 55 (1987);
    Aigner, Amemiya and Poirier, *On the estimation of production frontiers*, Int. Econ. Rev. 17
    (1976), for the likelihood.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.expectile_loss(np.eye(3) @ w, [-3.0, 0.1, 2.0], tau=0.9)
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    >>> loss.loss.value(np.array([-2.0, 2.0]), np.zeros(2)).round(12)
    array([3.6, 0.4])
    """

    name: ClassVar[str] = "expectile_loss"
    strictly_convex: ClassVar[bool] = True
    degree: ClassVar[float | None] = 2.0
    tau: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "tau", level(self.tau, "tau", self.name, "expectile"))

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        r = u - y
        return self._share(r) * (r * r)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        r = u - y
        return 2.0 * self._share(r) * r

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return 2.0 * self._share(u - y)

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 2.0 * min(self.tau, 1.0 - self.tau), 2.0 * max(self.tau, 1.0 - self.tau)

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        return a * (y + 0.25 * a / self._share(a))

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(y.shape, -np.inf), np.full(y.shape, np.inf)

    def value_magnitude(self, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        return value  # a rounded difference, squared: the error is relative

    def conjugate_magnitude(self, a: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        return np.abs(a) * (np.abs(y) + 0.25 * np.abs(a) / self._share(a))

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        under, over = cp.square(cp.pos(y - u)), cp.square(cp.pos(u - y))
        return self.tau * under + (1.0 - self.tau) * over

    def _share(self, side: FloatArray) -> FloatArray:
        return np.where(side > 0.0, 1.0 - self.tau, self.tau)
