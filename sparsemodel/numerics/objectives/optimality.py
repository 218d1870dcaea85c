"""Whether a point is proved optimal, so that the rest of a plan can be left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

import numpy as np

from sparsemodel.interfaces import (
    BoundError,
    FloatArray,
    Objective,
    Point,
    SparseRegression,
    priced,
)
from sparsemodel.numerics.objectives.lower_bounds import rounding_of_value
from sparsemodel.numerics.objectives.regression import RegressionObjective

Enclosure: TypeAlias = Callable[
    [SparseRegression, FloatArray, tuple[FloatArray, ...]], tuple[float, float]
]
"""Bounds on the optimum from both sides, rounded outwards: from a form, a point, and the gradients
of the terms in their predictions."""

_EVALUATED = 1e-8
"""Relative gap of a bound in plain arithmetic from which it is worth evaluating with care."""

_CLOSED = 1e-9
"""Relative gap, proved, at which nothing is left to gain."""


@final
class OptimalityTest:
    """Whether a point is optimal, decided on proved bounds only."""

    def __init__(self, objective: Objective, enclosure: Enclosure | None) -> None:
        self._objective = objective
        self._enclosure = enclosure
        self._asked: tuple[Point, Point] | None = None

    def passed(self, point: Point, finder: str) -> bool:
        """Return whether no feasible point is better than ``point``, which ``finder`` found.

        Raises
        ------
        BoundError
            When the bound lies above the value of the point.
        """
        objective = self._objective
        value, floor = priced(objective, point), objective.infimum()
        if not isinstance(objective, RegressionObjective):
            scale = max(abs(objective.origin().value - floor), abs(floor))
            return bool(np.isfinite(floor) and value - floor <= 1e-14 * scale)
        if np.isfinite(floor):
            pulls = objective.prediction_gradients(point)
            if value - floor <= rounding_of_value(objective.form, point.state, pulls):
                return True
        return self._proved(objective, point, value, finder)

    def _proved(
        self, objective: RegressionObjective, point: Point, value: float, finder: str
    ) -> bool:
        """Ask for proved bounds where those in plain arithmetic leave next to nothing."""
        at, merit = objective.bounds.point, objective.bounds.merit
        if at is None or self._enclosure is None:
            return False
        if value - merit > _EVALUATED * max(abs(value), abs(merit)):
            return False
        if self._asked is not None and self._asked[0] is at and self._asked[1] is point:
            return False
        self._asked = (at, point)
        form = objective.form
        gradients = objective.prediction_gradients(at)
        lower, upper = self._enclosure(form, point.x, gradients)
        objective.work.passes += 2.0
        if lower > upper:
            raise contradiction(form, lower, upper, finder)
        return bool(upper - lower <= _CLOSED * max(abs(upper), abs(lower)))


def contradiction(form: SparseRegression, lower: float, upper: float, finder: str) -> BoundError:
    """Return the error for a bound above the value of a feasible point."""
    losses = ", ".join(sorted({str(term.loss.name) for term in form.terms}))
    return BoundError(
        f"The lower bound {lower!r} lies above {upper!r}, the objective at a feasible point that "
        f"{finder} found. One of the losses ({losses}) is not what it says: not convex, or with a "
        "wrong gradient, conjugate or lower bound. Correct it if it is one of your own; otherwise "
        "this is a bug in the bound, please report it with the data."
    )
