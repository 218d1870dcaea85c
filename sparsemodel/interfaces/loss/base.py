"""What a loss is: a convex function of the predictions, by observation or of all together.

A loss is a small immutable value. It never holds data: targets ``y`` and weights ``c`` are
handed to each call, so that one loss serves every term, fold and resample.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import ClassVar, final

import numpy as np

from sparsemodel.interfaces.errors import DataError
from sparsemodel.interfaces.numeric import FloatArray, rowwise


@final
class TargetKind(Enum):
    """What a target holds, so that it can be read from a table."""

    NUMBERS = "numbers"
    TWO_CLASSES = "labels of two classes"
    CLASSES = "labels of two or more classes"
    TIMES = "times and events"


class DataFit(ABC):
    r"""A convex function :math:`F(u; y, c)` of all predictions ``u`` together.

    Most losses are sums over observations and derive from :class:`Loss`; this base is for the
    ones that couple observations (the Cox partial likelihood, say).

    ``u`` has shape ``(n,)``, or ``(n, m)`` when the variable is a matrix with ``m`` columns.
    ``c`` holds the positive observation weights, shape ``(n,)``; the language's choice between
    mean and sum is already inside them.
    """

    name: ClassVar[str]
    """Name in the language and in every output, for example ``"squared_loss"``."""

    strictly_convex: ClassVar[bool] = False
    """Whether ``F`` is strictly convex, or affine, along every line of predictions.

    Where such a function falls and then stays level to all digits, it has no minimiser (the
    logistic loss of separable data, say). Piecewise linear or quadratic losses may well be level
    at their minimum."""

    everywhere: ClassVar[bool] = True
    """Whether the loss is defined for all predictions. One that is not overrides :meth:`inside` and
    :meth:`misplaced`, and is continued, so that every step on the way has a value."""

    target_kind: ClassVar[TargetKind] = TargetKind.NUMBERS
    """What the target holds. Labels may be separable, and the command line recodes them."""

    @abstractmethod
    def total(self, u: FloatArray, y: FloatArray, c: FloatArray) -> float:
        """Return ``F(u; y, c)``."""

    @abstractmethod
    def gradient(self, u: FloatArray, y: FloatArray, c: FloatArray) -> FloatArray:
        """Return the gradient (or one subgradient) of ``F`` in ``u``, in the shape of ``u``."""

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        """Return bounds ``(lower, upper)`` on the second derivative for unit weights.

        They hold for the observations of the target ``y``, in the loss's own coding, and may depend
        on it: the negative binomial loss of counts is ``(max(y) + r)/4``-smooth. O(n).
        ``upper = inf`` says "not smooth" (or only locally); ``lower > 0`` says "strongly convex".
        For weighted sums the Hessian in ``u`` lies between ``min(c) * lower`` and
        ``max(c) * upper``.
        """
        return 0.0, np.inf

    def magnitudes(self, u: FloatArray, y: FloatArray, c: FloatArray) -> tuple[float, FloatArray]:
        """Return what rounding errors of :meth:`total` and :meth:`gradient` are small relative to.

        A number, and an array in the shape of ``u``. Where observations are coupled, or no
        conjugate is known, certificates take what is computed to be within 64 units in the last
        place of these. The default suits sums without long chains of operations.
        """
        size = float(np.sum(c)) * (1.0 + 2.0 * float(np.abs(u).max(initial=0.0)))
        return 4.0 * (abs(self.total(u, y, c)) + size), np.abs(self.gradient(u, y, c))

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        """Return a valid lower bound on ``F(.; y, c)``; ``-inf`` when none is known."""
        return -np.inf

    def constant_of(self, y: FloatArray, c: FloatArray) -> float:
        r"""Return what weights add to the loss, whatever the predictions.

        ``F(.; y, c)`` is of degree one in the weights. A loss of which this is not true, and in
        which a weight of two is to be the same as two observations, has the difference here: the
        Cox model :math:`\sum_i c_i \delta_i \log \bar c`, with the mean :math:`\bar c`.
        """
        return 0.0

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        """Return the target in the loss's own coding, or raise :class:`DataError`.

        ``where`` names the argument in the user's words. Called once, when a term is declared,
        with a finite float64 array.
        """
        return y

    def inside(self, y: FloatArray) -> FloatArray:
        """Return ordinary predictions at which the loss is defined."""
        return np.zeros(y.shape[0])

    def misplaced(self, u: FloatArray, y: FloatArray) -> str:
        """Return what is wrong with final predictions where the loss is not defined, or nothing."""
        return ""

    def outputs(self, y: FloatArray) -> int:
        """Return how many columns a prediction has (1 for vector variables)."""
        return 1

    def mean(self, u: FloatArray) -> FloatArray:
        """Return what is expected of targets at the predictions: these themselves by default.

        Losses with a link function undo it; likelihoods of classes give probabilities,
        of two classes that of the second.
        """
        return u


class Loss(DataFit):
    r"""A weighted sum of convex functions of one prediction each,
    :math:`F(u; y, c) = \sum_i c_i\, \ell(u_i; y_i)`.

    Subclass it with :meth:`value` and :meth:`derivative`, and inherit facets for what else is
    known, such as :class:`Curved`, :class:`IntervalConjugable` and :class:`CvxModelled`. All
    methods are elementwise and must not overflow at ``|u| = 1e3``.
    """

    @abstractmethod
    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the losses of the individual observations, shape ``(n,)``."""

    @abstractmethod
    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the derivatives (or one subgradient) in ``u``, in the shape of ``u``."""

    def total(self, u: FloatArray, y: FloatArray, c: FloatArray) -> float:
        return float(np.dot(c, self.value(u, y)))

    def gradient(self, u: FloatArray, y: FloatArray, c: FloatArray) -> FloatArray:
        return rowwise(c, self.derivative(u, y))

    def value_magnitude(self, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        """Return what rounding errors of :meth:`value` are small relative to, shape ``(n,)``.

        ``value`` is what :meth:`value` returned. Certificates take the computed value to be
        within a few units in the last place of this number. The default suits losses whose
        natural scale is one; a loss that is homogeneous in its residual overrides it.
        """
        slope = row_norms(self.derivative(u, y))
        size, target = row_norms(u), row_norms(y)
        return 1.0 + np.abs(value) + (1.0 + size + target) * (1.0 + slope) + target * size


def require(condition: bool, message: str) -> None:
    """Raise :class:`DataError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise DataError(message)


def row_norms(v: FloatArray) -> FloatArray:
    """Return the size of each row: absolute values, summed over columns."""
    return np.abs(v) if v.ndim == 1 else np.abs(v).sum(axis=1)
