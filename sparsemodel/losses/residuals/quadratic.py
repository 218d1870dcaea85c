r"""The squared loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    CvxModelled,
    DataError,
    FloatArray,
    IntervalConjugable,
    Likelihood,
    Loss,
    OfResidual,
    SquaredDistance,
)


@final
@dataclass(frozen=True, slots=True)
class SquaredLoss(SquaredDistance, OfResidual, IntervalConjugable, Likelihood, CvxModelled, Loss):
    r"""The squared loss :math:`\ell(u; y) = \tfrac12 (u - y)^2`.

    A target of shape ``(n, m)`` makes it the loss of a matrix variable (several responses that
    share one support), :math:`\tfrac12 \|u_i - y_i\|_2^2` per observation; a single column is
    taken as a vector.

    * Conjugate: :math:`\ell^*(a; y) = \tfrac12 a^2 + a y` on the whole line.
    * 1-smooth and 1-strongly convex.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(2, name="w")
    >>> sm.squared_loss(np.eye(2) @ w, [1.0, 2.0])
    squared_loss(A @ w)
    >>> problem = sm.Problem(sm.minimize(sm.squared_loss(np.eye(2) @ w - [1, 2])), sm.card(w) <= 1)
    >>> problem.solve().value
    0.25
    """

    name: ClassVar[str] = "squared_loss"
    even: ClassVar[bool] = True
    strictly_convex: ClassVar[bool] = True
    degree: ClassVar[float | None] = 2.0

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return 0.5 * _row_squares(u - y)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return u - y

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.ones(u.shape[0])

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 1.0, 1.0

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return 0.0

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        terms = a * (0.5 * a + y)
        return terms if terms.ndim == 1 else terms.sum(axis=1)

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(y.shape, -np.inf), np.full(y.shape, np.inf)

    def value_magnitude(self, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        return value  # a rounded difference, squared: the error is relative

    def conjugate_magnitude(self, a: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        terms: FloatArray = np.abs(a) * (np.abs(a) + np.abs(y))
        return terms if terms.ndim == 1 else terms.sum(axis=1)

    def sample_size(self, y: FloatArray, copies: FloatArray) -> float:
        return float(copies.sum()) * self.outputs(y)  # one scale for all responses

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        if y.ndim not in (1, 2):
            raise DataError(
                f"{where}: squared_loss needs one number per observation, or one row per "
                f"observation for a matrix variable; got an array of shape {y.shape}."
            )
        return y.ravel() if y.ndim == 2 and y.shape[1] == 1 else y

    def outputs(self, y: FloatArray) -> int:
        return 1 if y.ndim == 1 else int(y.shape[1])

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        squares = 0.5 * cp.square(u - y)
        return squares if y.ndim == 1 else cp.sum(squares, axis=1)


def _row_squares(r: FloatArray) -> FloatArray:
    return np.square(r) if r.ndim == 1 else np.einsum("ij,ij->i", r, r)
