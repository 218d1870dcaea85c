"""Likelihoods of several precision matrices with one pattern, added up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, NormBound, Objective, Point, Work
from sparsemodel.interfaces.precision import AnyPrecision, JointPrecision, SparsePrecision
from sparsemodel.numerics.precision.cholesky import Factor
from sparsemodel.numerics.precision.objective import (
    OfPrecision,
    PrecisionObjective,
    precision_state,
)
from sparsemodel.numerics.precision.restricted import minimise_precision_on_support


@final
class JointObjective(OfPrecision):
    """The sum of a :class:`PrecisionObjective` for each matrix.

    The state of a point holds those of the matrices; it is None where one of them is infeasible.
    """

    def __init__(self, form: JointPrecision, work: Work | None = None) -> None:
        super().__init__(work)
        self._form = form
        self.parts = tuple(PrecisionObjective(part, self.work) for part in form.parts)

    @property
    def form(self) -> JointPrecision:
        return self._form

    # ---- points ------------------------------------------------------------------------------

    def point(self, support: IntArray, values: FloatArray) -> Point:
        pairs = zip(self.parts, self._form.columns(values), strict=True)
        return self.joined(support, [part.point(support, v) for part, v in pairs])

    def origin(self) -> Point:
        points = [part.origin() for part in self.parts]
        return self.joined(points[0].support, points)

    def joined(self, support: IntArray, points: list[Point]) -> Point:
        """Return the point that is made of one for each matrix."""
        x = np.stack([point.x for point in points], axis=1)
        value = math.fsum([self._form.constant, *(point.value for point in points)])
        return Point(x, support, value, tuple(points) if math.isfinite(value) else None)

    def pieces(self, at: Point) -> tuple[Point, ...]:
        """Return the point of each matrix."""
        if at.state is not None:
            return cast("tuple[Point, ...]", at.state)
        return tuple(Point(x, at.support, np.inf) for x in self._form.columns(at.x))

    # ---- derivatives: the matrices have nothing to do with each other ------------------------

    def _each(
        self, at: Point, of: Callable[[PrecisionObjective, Point, int], FloatArray]
    ) -> FloatArray:
        pairs = enumerate(zip(self.parts, self.pieces(at), strict=True))
        return np.stack([of(part, piece, g) for g, (part, piece) in pairs], axis=1)

    def gradient(self, at: Point) -> FloatArray:
        if at.gradient is None:
            at.memo.gradient = self._each(at, lambda part, piece, _: part.gradient(piece))
        return cast("FloatArray", at.gradient)

    def restricted_gradient(self, at: Point, support: IntArray) -> FloatArray:
        return self._each(at, lambda part, piece, _: part.restricted_gradient(piece, support))

    def hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        return self._each(at, lambda part, piece, g: part.hessian_product(piece, support, v[:, g]))

    def full_hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        return self._each(
            at, lambda part, piece, g: part.full_hessian_product(piece, support, v[:, g])
        )

    def hessian_diagonal(self, at: Point, support: IntArray) -> FloatArray:
        return self._each(at, lambda part, piece, _: part.hessian_diagonal(piece, support))

    def hessian(self, at: Point, support: IntArray) -> FloatArray:
        m, size = len(self.parts), support.size
        out = np.zeros((size, m, size, m))
        for g, (part, piece) in enumerate(zip(self.parts, self.pieces(at), strict=True)):
            out[:, g, :, g] = part.hessian(piece, support)
        return out.reshape(size * m, size * m)

    # ---- constants ---------------------------------------------------------------------------

    def smoothness(self) -> NormBound:
        return NormBound(max(part.smoothness().value for part in self.parts), "upper")

    def strong_convexity(self) -> float:
        return min(part.strong_convexity() for part in self.parts)

    def infimum(self) -> float:
        return math.fsum([self._form.constant, *(part.infimum() for part in self.parts)])


def joint_objective(form: JointPrecision, work: Work | None = None) -> JointObjective:
    """Return the objective of a form with several matrices, as backends see it."""
    return JointObjective(form, work)


def minimise_joint_on_support(
    objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
) -> Point:
    """Return the minimiser of a :class:`JointObjective` over ``support``, matrix by matrix.

    As :func:`minimise_precision_on_support`, with the same parameters and errors.
    """
    goal = cast("JointObjective", objective)
    pairs = zip(goal.parts, goal.pieces(start), strict=True)
    found = [minimise_precision_on_support(part, support, piece, tol=tol) for part, piece in pairs]
    return goal.joined(support, found)


def precision_states(
    objective: Objective, at: Point
) -> list[tuple[float, SparsePrecision, Factor]]:
    """Return of each matrix its share in the weight, its form and the factorised matrix."""
    form = cast("AnyPrecision", objective.form)
    if isinstance(objective, JointObjective):
        pairs = zip(objective.parts, objective.pieces(at), strict=True)
        states = [precision_state(part, piece) for part, piece in pairs]
    else:
        states = [precision_state(objective, at)]
    return [(share, *state) for share, state in zip(form.shares, states, strict=True)]
