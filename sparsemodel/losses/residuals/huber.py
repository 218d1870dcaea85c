r"""The Huber loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Curved,
    FloatArray,
    OfResidual,
    Piecewise,
)
from sparsemodel.losses.parts import OfNumbers, positive, within


@final
@dataclass(frozen=True, slots=True)
class HuberLoss(OfResidual, Curved, Piecewise, OfNumbers):
    r"""The Huber loss: a parabola up to residuals of ``delta``, straight lines beyond,

    .. math:: \ell(u; y) = \begin{cases} \tfrac12 r^2 & |r| \le \delta \\
              \delta |r| - \tfrac12 \delta^2 & |r| \ge \delta \end{cases}
              \qquad r = u - y .

    Large residuals enter linearly, so that each outlier has a bounded influence.

    * Conjugate: :math:`\ell^*(a; y) = \tfrac12 a^2 + a y` for :math:`|a| \le \delta`.
    * 1-smooth, not strongly convex. The second derivative is the generalised one: 1 where
      :math:`|r| \le \delta`, 0 elsewhere.

    Parameters
    ----------
    delta
        Where the parabola ends: a positive number, in the units of the target.

    References
    ----------
    Huber, *Robust estimation of a location parameter*, Ann. Math. Statist. 35 (1964).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.huber_loss(np.eye(3) @ w, [3.0, 0.1, 90.0], delta=1.0)
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    >>> loss.loss.value(np.array([0.5, 3.0]), np.zeros(2))
    array([0.125, 2.5  ])
    """

    name: ClassVar[str] = "huber_loss"
    even: ClassVar[bool] = True
    delta: float = 1.0

    def __post_init__(self) -> None:
        delta = positive(
            self.delta, "delta", self.name, instead="; use absolute_loss for its limit"
        )
        object.__setattr__(self, "delta", delta)

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        r = u - y
        a = np.clip(r, -self.delta, self.delta)  # the maximiser of a r - a^2/2
        return a * (r - 0.5 * a)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.clip(u - y, -self.delta, self.delta)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(np.abs(u - y) <= self.delta, 1.0, 0.0)

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 1.0

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        return within(a, *self.dual_interval(y), a * (0.5 * a + y))

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(y.shape, -self.delta), np.full(y.shape, self.delta)

    @property
    def softness(self) -> float:
        return 1.0

    def pieces(self, y: FloatArray) -> Sequence[tuple[FloatArray, FloatArray, FloatArray]]:
        return [(y, *self.dual_interval(y))]

    def value_magnitude(self, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        return value  # nothing cancels after the residual is formed: the error is relative

    def conjugate_magnitude(self, a: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        terms: FloatArray = np.abs(a) * (np.abs(a) + np.abs(y))
        return terms

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        return 0.5 * cp.huber(u - y, self.delta)  # CVXPY's atom is twice the usual one
