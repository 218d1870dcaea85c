"""The restricted minimisation of any sparse regression: which kernel does it."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from sparsemodel.interfaces import (
    Curved,
    IntArray,
    Objective,
    Point,
    SparseRegression,
)
from sparsemodel.numerics.minimisers.boxed import minimise_in_box
from sparsemodel.numerics.minimisers.equations import minimise_with_equations
from sparsemodel.numerics.minimisers.multipliers import minimise_with_multipliers
from sparsemodel.numerics.minimisers.newton import minimise_on_support
from sparsemodel.numerics.minimisers.piecewise.scaled import minimise_pieces, settled
from sparsemodel.numerics.objectives.regression import RegressionObjective

_CURVED = 0.75
"""Share of the observations whose curvature has to be felt for Newton's method to be quick."""


def minimise_restricted(
    objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
) -> Point:
    """Return ``argmin f(x)`` over the ``x`` on ``support`` that satisfy the form's constraints.

    Newton's method where the losses are smooth, projected Newton with bounds, an interior point
    method where they have kinks, or are next to having them, the method of multipliers with
    constraints beside bounds; a few solves where losses are quadratic and nothing is active but
    linear constraints and bounds. A support that admits no feasible point gives a point of value
    ``inf``.
    """
    form = objective.form
    if not isinstance(form, SparseRegression):
        return minimise_on_support(objective, support, start, tol=tol)
    if form.region is None and form.traits.piecewise:
        found = _minimise_piecewise(objective, support, start, tol)
        if found is not None:
            return found
    equal = minimise_with_equations(objective, support, start)
    if equal is not None:
        return equal
    if form.region is not None or not form.traits.has_hessian:
        solved = minimise_with_multipliers(objective, support, start)
        if any(np.isinf(term.traits.upper) for term in form.terms) and solved.feasible:
            # Steps are as long as the curvature at the start allows, however much there is.
            again = minimise_with_multipliers(objective, support, solved.point)
            solved = again if again.point.value < solved.point.value else solved
        return replace(solved.point, duals=solved.duals)
    return _minimise_smooth(objective, support, start, tol)


def _minimise_smooth(
    objective: Objective, support: IntArray, start: Point, tol: float | None
) -> Point:
    form = objective.form
    if form.box is not None:
        return minimise_in_box(objective, support, start, tol=tol)
    return minimise_on_support(objective, support, start, tol=tol)


def _minimise_piecewise(
    objective: Objective, support: IntArray, start: Point, tol: float | None
) -> Point | None:
    """Return the minimiser; None where that is left to the general methods.

    Newton's method is quickest for a loss whose parabolas are wide (Huber's). From far away, and
    with narrow ones, it may end anywhere between the kinks: what it finds is looked at.
    """
    if not isinstance(objective, RegressionObjective) or len(objective.shape) > 1:
        return None
    if _curved(objective, start):
        start = _minimise_smooth(objective, support, start, tol)
        if settled(objective, support, start, tol):
            return start
    return minimise_pieces(objective, support, start, tol)


def _curved(objective: RegressionObjective, start: Point) -> bool:
    """Return whether Newton's method sees curvature at the start."""
    form = objective.form
    if not form.traits.curved:
        return False
    felt = full = 0.0
    for term, z in zip(form.terms, start.state, strict=True):
        u = z if term.offset is None else z + term.offset
        bend = cast("Curved", term.loss).second_derivative(u, term.target)
        felt += float(np.dot(term.weights, bend))
        full += float(term.weights.sum()) * term.traits.upper
    return felt >= _CURVED * full
