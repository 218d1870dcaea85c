r"""The hinge losses: hinge, smoothed hinge, squared hinge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import Curved, FloatArray, Loss, Piecewise, Smoothable
from sparsemodel.losses.parts import OfTwoClasses, positive, within


@final
@dataclass(frozen=True, slots=True)
class HingeLoss(Piecewise, Smoothable, OfTwoClasses):
    r"""The hinge loss :math:`\ell(u; y) = \max(0, 1 - y u)` for labels :math:`y = \pm 1`.

    With a ridge this is a support vector machine.

    * Conjugate: :math:`\ell^*(a; y) = a y` for :math:`a y \in [-1, 0]`.
    * Neither smooth nor strongly convex: it is solved by a sequence of smoothed problems and
      exactly on the support, as ``explain()`` says. At the kink the subgradient is 0.
    * ``smoothed(mu)`` is ``SmoothedHingeLoss(mu)``, at most ``mu / 2`` below.

    References
    ----------
    Cortes and Vapnik, *Support-vector networks*, Machine Learning 20 (1995).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> A = np.array([[2.0, 0.1], [-1.0, 0.2], [3.0, 0.3]])
    >>> w = sm.Variable(2, name="w")
    >>> loss = sm.hinge_loss(A @ w, ["ill", "well", "ill"])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [0]
    >>> loss.loss.value(np.array([0.0, 3.0, 3.0]), np.array([1.0, 1.0, -1.0]))
    array([1., 0., 4.])
    """

    name: ClassVar[str] = "hinge_loss"

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.maximum(1.0 - y * u, 0.0)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(y * u < 1.0, -y, 0.0)

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        return within(a, *self.dual_interval(y), a * y)

    def pieces(self, y: FloatArray) -> Sequence[tuple[FloatArray, FloatArray, FloatArray]]:
        return [(y, *self.dual_interval(y))]

    def smoothed(self, mu: float) -> Loss:
        return SmoothedHingeLoss(gamma=positive(mu, "mu", f"{self.name}.smoothed"))

    def smoothing_error(self, mu: float) -> float:
        return 0.5 * mu

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        return cp.pos(1.0 - cp.multiply(y, u))


@final
@dataclass(frozen=True, slots=True)
class SmoothedHingeLoss(Curved, Piecewise, OfTwoClasses):
    r"""The hinge loss of labels :math:`y = \pm 1` with a parabola of width ``gamma`` for its kink,

    .. math:: \ell(u; y) = \begin{cases} 0 & y u \ge 1 \\
              (1 - y u)^2 / (2 \gamma) & 1 - \gamma \le y u \le 1 \\
              1 - y u - \gamma / 2 & y u \le 1 - \gamma . \end{cases}

    * Conjugate: :math:`\ell^*(a; y) = a y + \tfrac{\gamma}{2} a^2` for :math:`a y \in [-1, 0]`.
    * :math:`1/\gamma`-smooth, not strongly convex. The second derivative is the generalised one:
      :math:`1/\gamma` on the parabola (its ends included), 0 elsewhere.

    Parameters
    ----------
    gamma
        Width of the parabola, positive.

    References
    ----------
    Shalev-Shwartz and Zhang, *Stochastic dual coordinate ascent methods for regularized loss
    minimization*, JMLR 14 (2013).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> A = np.array([[2.0, 0.1], [-1.0, 0.2], [3.0, 0.3]])
    >>> w = sm.Variable(2, name="w")
    >>> loss = sm.smoothed_hinge_loss(A @ w, ["ill", "well", "ill"])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [0]
    >>> loss.loss.value(np.array([2.0, 0.5, -1.0]), np.ones(3))
    array([0.   , 0.125, 1.5  ])
    """

    name: ClassVar[str] = "smoothed_hinge_loss"
    gamma: float = 1.0

    def __post_init__(self) -> None:
        gamma = positive(
            self.gamma, "gamma", self.name, instead="; use hinge_loss for no smoothing"
        )
        object.__setattr__(self, "gamma", gamma)

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        short = np.maximum(1.0 - y * u, 0.0)
        s = np.minimum(short / self.gamma, 1.0)  # the maximiser of s short - gamma s^2/2
        return s * (short - (0.5 * self.gamma) * s)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return -y * np.clip((1.0 - y * u) / self.gamma, 0.0, 1.0)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        short = 1.0 - y * u
        return np.where((short >= 0.0) & (short <= self.gamma), 1.0 / self.gamma, 0.0)

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 1.0 / self.gamma

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        return within(a, *self.dual_interval(y), a * (y + (0.5 * self.gamma) * a))

    @property
    def softness(self) -> float:
        return self.gamma

    def pieces(self, y: FloatArray) -> Sequence[tuple[FloatArray, FloatArray, FloatArray]]:
        return [(y, *self.dual_interval(y))]

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        # Half of huber(t, 1) is the smoothed absolute value; on the positive part it is ours.
        return (0.5 * self.gamma) * cp.huber(cp.pos(1.0 - cp.multiply(y, u)) / self.gamma, 1.0)


@final
@dataclass(frozen=True, slots=True)
class SquaredHingeLoss(Curved, OfTwoClasses):
    r"""The squared hinge loss :math:`\ell(u; y) = \tfrac12 \max(0, 1 - y u)^2`, :math:`y = \pm 1`.

    * Conjugate: :math:`\ell^*(a; y) = a y + \tfrac12 a^2` for :math:`a y \le 0`.
    * 1-smooth, not strongly convex. The second derivative is the generalised one: 1 where
      :math:`y u \le 1`, 0 elsewhere.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> A = np.array([[2.0, 0.1], [-1.0, 0.2], [3.0, 0.3]])
    >>> w = sm.Variable(2, name="w")
    >>> loss = sm.squared_hinge_loss(A @ w, ["ill", "well", "ill"])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [0]
    >>> loss.loss.value(np.array([2.0, 0.0, -1.0]), np.ones(3))
    array([0. , 0.5, 2. ])
    """

    name: ClassVar[str] = "squared_hinge_loss"

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return 0.5 * np.square(np.maximum(1.0 - y * u, 0.0))

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return -y * np.maximum(1.0 - y * u, 0.0)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(y * u <= 1.0, 1.0, 0.0)

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 1.0

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(a * y <= 0.0, a * (y + 0.5 * a), np.inf)

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(y > 0.0, -np.inf, 0.0), np.where(y > 0.0, 0.0, np.inf)

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        return 0.5 * cp.square(cp.pos(1.0 - cp.multiply(y, u)))
