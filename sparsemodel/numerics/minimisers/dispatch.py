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
from sparsemodel.numerics.linear_programs.minimiser import (
    is_linear_program,
    minimise_linear_program,
)
from sparsemodel.numerics.minimisers.boxed import minimise_in_box
from sparsemodel.numerics.minimisers.equations import minimise_with_equations
from sparsemodel.numerics.minimisers.feasible import satisfied
from sparsemodel.numerics.minimisers.multipliers import Solved, minimise_with_multipliers
from sparsemodel.numerics.minimisers.newton import FAR, minimise_on_support
from sparsemodel.numerics.minimisers.piecewise.scaled import minimise_pieces, settled
from sparsemodel.numerics.objectives.regression import RegressionObjective

_CURVED = 1.0
"""Observations for each unknown whose curvature has to be felt for Newton's method to be quick: it
then takes a third to nine tenths of the time of the interior point method, else about as long (of
Huber losses of width .01 to 5 and smoothed hinges, 100 to 1000 rows)."""
_AGAIN, _GAIN = 5, 1e-9
"""How often the method of multipliers begins again, where that lowers the objective by a share."""


def minimise_restricted(
    objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
) -> Point:
    """Return ``argmin f(x)`` over the ``x`` on ``support`` that satisfy the form's constraints.

    A linear program where nothing has curvature and there are linear constraints. Else
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
    if form.region is not None and is_linear_program(form):
        vertex = minimise_linear_program(cast("RegressionObjective", objective), support, start)
        if vertex is not None and (np.isinf(vertex.value) or satisfied(form, vertex.x)):
            return vertex
    equal = minimise_with_equations(objective, support, start)
    if equal is not None:
        return equal
    if form.region is not None or not form.traits.has_hessian:
        solved = _minimise_constrained(objective, form, support, start)
        return replace(solved.point, duals=solved.duals)
    return _minimise_smooth(objective, support, start, tol)


def _minimise_constrained(
    objective: Objective, form: SparseRegression, support: IntArray, start: Point
) -> Solved:
    """Return what the method of multipliers finds, from where its curvatures are of use.

    Steps are as long as the curvature at the start allows. Where that has no limit, as far from
    the predictions that a link allows, the first start is the minimiser without the constraints.
    """
    if not any(np.isinf(term.traits.upper) for term in form.terms):
        return minimise_with_multipliers(objective, support, start)
    free = _minimise_smooth(objective, support, start, 1e-6) if form.traits.has_hessian else start
    usable = np.isfinite(free.value) and float(np.linalg.norm(free.x)) < FAR
    solved = minimise_with_multipliers(objective, support, start, free.x if usable else None)
    for _ in range(_AGAIN if solved.feasible else 0):
        again = minimise_with_multipliers(objective, support, solved.point)
        gained = solved.point.value - again.point.value
        solved = again if gained > 0.0 else solved
        if not gained > _GAIN * abs(solved.point.value):
            break
    return solved


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
    if _curved(objective, support, start):
        with np.errstate(all="ignore"):  # squares of units of any size may overflow
            start = _minimise_smooth(objective, support, start, tol)
        if settled(objective, support, start, tol):
            return start
    return minimise_pieces(objective, support, start, tol)


def _curved(objective: RegressionObjective, support: IntArray, start: Point) -> bool:
    """Return whether Newton's method sees enough curvature at the start."""
    form = objective.form
    if not form.traits.curved:
        return False
    felt, full, rows = 0.0, 0.0, 0
    for term, z in zip(form.terms, start.state, strict=True):
        u = z if term.offset is None else z + term.offset
        bend = cast("Curved", term.loss).second_derivative(u, term.target)
        felt += float(np.dot(term.weights, bend))
        full += float(term.weights.sum()) * term.traits.upper
        rows += term.target.shape[0]
    return felt * rows >= _CURVED * support.size * full
