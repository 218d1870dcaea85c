r"""Smooth approximations of losses with kinks and of constraints: envelopes with multipliers.

Each part is a convex function ``h`` of a linear image ``z`` of the unknowns, with a multiplier
``a``, and evaluates :math:`\max_b b z - h^*(b) - \frac{\mu}{2} (b - a)^2` up to a constant; see
:mod:`sparsemodel.numerics.minimisers.multipliers`, which uses them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast, final

import numpy as np

from sparsemodel.interfaces import (
    Curved,
    Design,
    FloatArray,
    IntArray,
    Linear,
    Loss,
    Smoothable,
    Term,
    TwiceDifferentiable,
)

LEAST_SMOOTHING = float(np.finfo(np.float64).tiny)
"""Its inverse, the curvature, is finite."""


class Envelope(ABC):
    """A part of the function that is minimised; mutable, the workspace of one solve."""

    @abstractmethod
    def evaluate(self, v: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient at ``v``, and stay there for the other methods."""

    @abstractmethod
    def hessian(self) -> FloatArray:
        """Return the (generalised) Hessian where :meth:`evaluate` was last."""

    @abstractmethod
    def update(self) -> None:
        """Move the multiplier to the maximiser."""


class TermEnvelope(Envelope):
    """A term of the objective on the support."""

    def __init__(self, term: Term, design: Design) -> None:
        self._term, self._design = term, design
        self._z: FloatArray = np.empty(0)

    def _predict(self, v: FloatArray) -> FloatArray:
        z = self._design.matvec(v)
        return z if self._term.offset is None else z + self._term.offset

    @property
    def bend(self) -> float:
        """Return the most that the loss is curved by at an observation; 0 where it is not known."""
        most = self._term.traits.upper
        return most if np.isfinite(most) else 0.0

    @property
    def endless(self) -> bool:
        """Return whether the loss itself is minimised, and may be curved by any amount."""
        return self._term.traits.has_hessian and bool(np.isinf(self._term.traits.upper))

    def reach(self) -> FloatArray:
        """Return the sizes of what adds up to the gradient where :meth:`evaluate` was last."""
        size = float(np.linalg.norm(self.dual()))
        return np.sqrt(self._design.column_square_norms()) * size

    def squares(self) -> FloatArray:
        """Return the weighted sums of the columns' squares."""
        return self._design.column_square_norms(self._term.weights)

    def sharpen(self, factor: float) -> None:
        """Come closer to the kinks, where there are any."""

    def gap(self) -> float:
        """Return what the kinks still cost: the term's value above its dual one."""
        return 0.0

    def size(self) -> float:
        """Return what the gap is measured against."""
        return 0.0

    @abstractmethod
    def dual(self) -> FloatArray:
        """Return the gradient in the predictions, weights inside."""


@final
class SmoothTerm(TermEnvelope):
    """A smooth term, which needs no approximation."""

    def evaluate(self, v: FloatArray) -> tuple[float, FloatArray]:
        term = self._term
        self._z = self._predict(v)
        value = term.loss.total(self._z, term.target, term.weights)
        return value, self._design.rmatvec(self.dual())

    def hessian(self) -> FloatArray:
        term, z = self._term, self._z
        if term.traits.curved:
            h = cast("Curved", term.loss).second_derivative(z, term.target)
            return self._design.gram(term.weights * h)
        loss = cast("TwiceDifferentiable", term.loss)
        columns = self._design.to_array()
        product = columns.T @ loss.hessian_product(z, term.target, term.weights, columns)
        return np.asarray((product + product.T) / 2.0)

    def update(self) -> None:
        pass

    def dual(self) -> FloatArray:
        term = self._term
        return term.loss.gradient(self._z, term.target, term.weights)


@final
class NonsmoothTerm(TermEnvelope):
    """A loss with kinks as its smooth approximation around the multiplier ``a``."""

    def __init__(self, term: Term, design: Design, v: FloatArray) -> None:
        super().__init__(term, design)
        self._loss = cast("Loss", term.loss)
        self._mu = max(self._width(v), LEAST_SMOOTHING)
        self._smooth = self._smoothed()
        self._a: FloatArray = np.zeros(term.target.shape[0])
        self._u: FloatArray = self._a

    @property
    def bend(self) -> float:
        """Return an upper bound on the curvature of the approximation."""
        return float(cast("Loss", self._smooth).curvature(self._term.target)[1])

    def _smoothed(self) -> Curved:
        return cast("Curved", cast("Smoothable", self._term.loss).smoothed(self._mu))

    def sharpen(self, factor: float) -> None:
        """Come closer to the kinks: divide the smoothing by ``factor``."""
        self._mu = max(self._mu / factor, LEAST_SMOOTHING)
        self._smooth = self._smoothed()

    def _width(self, v: FloatArray) -> float:
        """Return a smoothing as wide as the typical distance from the kinks."""
        y, c = self._term.target, self._term.weights
        widths = []
        for point in (v, np.zeros_like(v)):
            u = self._predict(point)
            slope = float(np.dot(c, np.square(self._loss.derivative(u, y))))
            widths.append(float(np.dot(c, self._loss.value(u, y))) / slope if slope else 0.0)
        return max(widths) or 1.0

    def evaluate(self, v: FloatArray) -> tuple[float, FloatArray]:
        y, c = self._term.target, self._term.weights
        self._u = self._predict(v)
        self._z = self._u + self._mu * self._a
        loss = cast("Loss", self._smooth)
        return loss.total(self._z, y, c), self._design.rmatvec(loss.gradient(self._z, y, c))

    def hessian(self) -> FloatArray:
        term = self._term
        return self._design.gram(
            term.weights * self._smooth.second_derivative(self._z, term.target)
        )

    def _maximiser(self) -> FloatArray:
        return cast("Loss", self._smooth).derivative(self._z, self._term.target)

    def gap(self) -> float:
        # Fenchel's inequality at the maximiser b: l(u) + l*(b) - b u, with l*(b) from the envelope.
        y, c = self._term.target, self._term.weights
        a, b = self._a, self._maximiser()
        envelope = cast("Loss", self._smooth).value(self._z, y) - 0.5 * self._mu * np.square(a)
        below = envelope + 0.5 * self._mu * np.square(b - a)
        return float(np.dot(c, np.maximum(self._loss.value(self._u, y) - below, 0.0)))

    def size(self) -> float:
        y, c = self._term.target, self._term.weights
        return float(np.dot(c, self._loss.value(self._u, y) + np.abs(self._maximiser() * self._u)))

    def update(self) -> None:
        self._a = self._maximiser()

    def dual(self) -> FloatArray:
        return self._term.weights * self._a


class ConstraintEnvelope(Envelope):
    """A constraint as the squared distance of its shifted image."""

    @property
    def possible(self) -> bool:
        """Return whether the entries outside the support, which are zero, leave room."""
        return True

    @abstractmethod
    def violation(self) -> float:
        """Return the relative violation where :meth:`evaluate` was last."""

    @abstractmethod
    def residual(self) -> float:
        """Return the relative violation, or what a multiplier of a slack constraint still moves.

        It is zero where the constraint holds and its multiplier is complementary to it.
        """

    @abstractmethod
    def stiffen(self, factor: float) -> None:
        """Let violations cost ``factor`` times more."""

    @abstractmethod
    def normal(self, size: int) -> FloatArray:
        """Return the multiplier's part of the stationarity equation, over all coordinates."""


class DistanceEnvelope(ConstraintEnvelope):
    """Half the squared distance to a set, times ``sigma``, at an argument that ``y`` shifts."""

    _sigma: Any
    """The penalty: a number, or one for each row."""
    _y: FloatArray
    _excess: FloatArray
    """What the shifted argument has beyond the set, where :meth:`evaluate` was last."""

    def update(self) -> None:
        self._y = self._sigma * self._excess

    def stiffen(self, factor: float) -> None:
        self._sigma = factor * self._sigma


@final
class RowsEnvelope(DistanceEnvelope):
    """``lower <= C v <= upper`` as an augmented Lagrangian, one penalty a row."""

    def __init__(self, rows: Linear, support: IntArray, curvature: FloatArray) -> None:
        self._rows = rows
        self.lower: FloatArray = rows.lower
        self.upper: FloatArray = rows.upper
        self.matrix: FloatArray = rows.design.restrict(support).to_array()
        # What moving a row by one costs the objective, whatever the units of the unknowns.
        yields = np.square(self.matrix) @ (1.0 / curvature)
        self._sigma = 10.0 / np.where(yields > 0.0, yields, 1.0)
        self._y = np.zeros(rows.lower.size)
        self._v = np.zeros(support.size)
        self._value: FloatArray = self._y
        self._excess: FloatArray = self._y

    def evaluate(self, v: FloatArray) -> tuple[float, FloatArray]:
        self._v, self._value = v, self.matrix @ v
        z = self._value + self._y / self._sigma
        self._excess = z - np.clip(z, self._rows.lower, self._rows.upper)
        pull = self._sigma * self._excess
        return 0.5 * float(np.dot(pull, self._excess)), self.matrix.T @ pull

    def hessian(self) -> FloatArray:
        active = self._excess != 0.0
        active |= self._rows.lower == self._rows.upper
        rows = self.matrix[active]
        return np.asarray(rows.T @ (self._sigma[active, None] * rows))

    def violation(self) -> float:
        rows, value = self._rows, self._value
        return self._relative(np.abs(value - np.clip(value, rows.lower, rows.upper)))

    def residual(self) -> float:
        return self._relative(np.abs(self._excess - self._y / self._sigma))

    def _relative(self, over: FloatArray) -> float:
        reach = np.abs(self.matrix) @ np.abs(self._v)
        return self._rows.relative(over, self._value, reach, self._v.size)

    def normal(self, size: int) -> FloatArray:
        return self._rows.design.rmatvec(self._y)
