"""The quadratic model of a regression at a point, as a regression with squared losses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast, final

import numpy as np

from sparsemodel.interfaces import (
    Curved,
    FloatArray,
    Loss,
    Point,
    Quadratic,
    SparseRegression,
    Term,
)
from sparsemodel.numerics.objectives.regression import RegressionObjective, margins

_FLAT = 1e-8
"""Share of the largest second derivative below which an observation counts as that steep: a
flatter one has no say in the model beyond its gradient."""


@final
@dataclass(frozen=True, slots=True)
class _WorkingLoss(Quadratic, Loss):
    """Half the squared distance to the working response."""

    name: ClassVar[str] = "working_loss"

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return 0.5 * np.square(u - y)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return u - y

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.ones(u.shape[0])

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 1.0, 1.0


def quadratic_model(
    objective: RegressionObjective, at: Point
) -> tuple[RegressionObjective, Point] | None:
    r"""Return the second-order model at a point, and the point in it; None without curvature.

    With :math:`g_i` and :math:`h_i` the derivatives of observation ``i`` at its prediction
    :math:`z_i`, the model is :math:`\tfrac12 \sum_i h_i (z_i - t_i)^2` with the working response
    :math:`t_i = z_i - g_i / h_i`, plus the ridge. The gradient is carried over, not computed
    again. For vector variables and losses of single predictions (:class:`Curved`).
    """
    terms = []
    for term, z in zip(objective.form.terms, at.state, strict=True):
        u = margins(term, z)
        h = cast("Curved", term.loss).second_derivative(u, term.target)
        steepest = float(h.max(initial=0.0))
        if not (0.0 < steepest < np.inf):
            return None
        h = np.maximum(h, _FLAT * steepest)
        response = z - cast("Loss", term.loss).derivative(u, term.target) / h
        terms.append(Term(term.design, _WorkingLoss(), response, term.weights * h))
    form: SparseRegression = replace(objective.form, terms=tuple(terms))
    model = RegressionObjective(form)
    gradient = objective.gradient(at)
    return model, Point(at.x, at.support, at.value, at.state).with_gradient(gradient)
