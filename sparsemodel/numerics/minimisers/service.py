"""The restricted minimisation of any sparse regression: which kernel does it."""

from __future__ import annotations

from dataclasses import replace

from sparsemodel.interfaces import (
    IntArray,
    Objective,
    Point,
    SparseRegression,
)
from sparsemodel.numerics.minimisers.boxed import minimise_in_box
from sparsemodel.numerics.minimisers.equations import minimise_with_equations
from sparsemodel.numerics.minimisers.multipliers import minimise_with_multipliers
from sparsemodel.numerics.minimisers.newton import minimise_on_support


def minimise_restricted(
    objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
) -> Point:
    """Return ``argmin f(x)`` over the ``x`` on ``support`` that satisfy the form's constraints.

    Newton's method where the losses are smooth, projected Newton with bounds, the method of
    multipliers with kinks or constraints beside bounds; one solve where losses are quadratic and no
    other constraints are active than linear equations. A support that admits no feasible point
    gives a point of value ``inf``.
    """
    form = objective.form
    if not isinstance(form, SparseRegression):
        return minimise_on_support(objective, support, start, tol=tol)
    equal = minimise_with_equations(objective, support, start)
    if equal is not None:
        return equal
    if form.region is not None or not form.traits.has_hessian:
        solved = minimise_with_multipliers(objective, support, start)
        return replace(solved.point, duals=solved.duals)
    if form.box is not None:
        return minimise_in_box(objective, support, start, tol=tol)
    return minimise_on_support(objective, support, start, tol=tol)


__all__ = ["minimise_restricted"]
