"""Slopes of linear constraints that go with one support."""

from __future__ import annotations

import numpy as np

from sparsemodel.certificates.arithmetic.multipliers import slopes_at, violation
from sparsemodel.certificates.arithmetic.row_prices import row_term, with_slopes
from sparsemodel.certificates.dual_bounds.witness import derivatives
from sparsemodel.certificates.statements.numbers import Rows
from sparsemodel.interfaces import FloatArray, IntArray, Point, SparseRegression

_MUCH = 1e3
"""By how much points on an infeasible support are out of reach, in objectives at zero."""


def at_minimum(form: SparseRegression, rows: Rows, point: Point, x: FloatArray) -> SparseRegression:
    """Return the form with the slopes that go with a minimum, whose coordinates here are ``x``."""
    first = form.terms[: row_term(form)]
    duals = derivatives(first, x)
    if point.duals is not None:
        pairs = zip(first, point.duals, strict=False)
        known = [np.divide(g, t.weights, out=0.0 * g, where=t.weights > 0.0) for t, g in pairs]
        duals = [*known, *duals[len(known) :]]
    return with_slopes(form, slopes_at(form, rows, x, tuple(duals))[0])


def refuting(
    form: SparseRegression, rows: Rows, support: IntArray, scale: float
) -> SparseRegression:
    """Return the form with slopes for which a support without a feasible point has a large bound.

    The form as it is where the rows can be satisfied there. ``scale`` is a size of objectives.
    """
    place, r = row_term(form), violation(rows, form.box, support)
    size = float(r @ r)
    if place is None or not size > 0.0:
        return form
    try:
        return with_slopes(form, form.terms[place].target + _MUCH * (1.0 + abs(scale)) / size * r)
    except ValueError:  # towards an end that is not there
        return form
