"""Minimisers for every k of any regression, losses with kinks included."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from sparsemodel.compiler.adapters.smoothing import smoothed_form, typical_widths
from sparsemodel.interfaces import (
    IntArray,
    Objective,
    Point,
    RestrictedSolver,
    SparseRegression,
)
from sparsemodel.numerics import (
    RegressionObjective,
    cheap_columns,
    forward_backward_path,
)

_MODEL = 0.1
"""Smoothing of losses with kinks, in units of the typical distance from them at zero, for the
curvature that steps and removals are judged by."""


def path_of_form(
    form: SparseRegression,
    objective: Objective,
    restricted: RestrictedSolver,
    most: int,
    *,
    sweeps: int = 1,
    enough: Callable[[list[Point]], bool] | None = None,
) -> list[Point]:
    """Return the forward-backward path of ``form``, whose objective may be nonsmooth.

    With kinks every point is an exact minimiser on its support; the multipliers there are the
    gradient that the next unit is chosen by. Passes are counted in ``objective``.
    """
    if form.traits.has_hessian:
        return forward_backward_path(objective, restricted, most, sweeps=sweeps, enough=enough)
    exact = cast("RegressionObjective", objective)
    easier = smoothed_form(form, _MODEL * typical_widths(form))
    model = RegressionObjective(easier, work=objective.work)

    def exactly(
        objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
    ) -> Point:
        return restricted(exact, support, start, tol=tol)

    def prepare(point: Point) -> Point:
        if point.duals is None or point.gradient is not None:
            return point
        gradient = form.ridge * point.x
        for term, dual in zip(form.terms, point.duals, strict=True):
            gradient += term.design.rmatvec(dual)
        exact.work.passes += 0.5
        return point.with_gradient(gradient)

    scale = form.ridge.copy()  # curvature at zero says little about losses that are flat there
    if cheap_columns(model):
        for term in form.terms:
            scale += term.design.column_square_norms(term.weights)
        exact.work.passes += 0.5
    else:
        scale = np.ones_like(scale)
    return forward_backward_path(
        model, exactly, most, sweeps=sweeps, enough=enough, prepare=prepare, scale=scale
    )
