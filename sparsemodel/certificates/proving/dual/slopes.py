"""Slopes of linear constraints that go with one support."""

from __future__ import annotations

import numpy as np

from sparsemodel.certificates.arithmetic.dualised_rows import row_term, with_slopes
from sparsemodel.certificates.arithmetic.multipliers import refutation, slopes_at
from sparsemodel.certificates.dual_bounds.witness import derivatives, from_gradients, from_point
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.certificates.statements.numbers import Rows
from sparsemodel.interfaces import BoolArray, FloatArray, IntArray, Point, SparseRegression


def at_minimum(
    form: SparseRegression, rows: Rows, point: Point, x: FloatArray, on: BoolArray
) -> SparseRegression:
    """Return the form with the slopes that go with a minimum, whose coordinates here are ``x``.

    ``on`` are those that it was sought over.
    """
    first = form.terms[: row_term(form)]
    duals = derivatives(first, x)
    if point.duals is not None:
        for i, (term, g) in enumerate(zip(first, point.duals, strict=False)):
            if term.traits.conjugable:  # of others the predictions are asked for
                duals[i] = np.divide(g, term.weights, out=0.0 * g, where=term.weights > 0.0)
    return with_slopes(form, slopes_at(form, rows, x, tuple(duals), on)[0])


def refuting(
    form: SparseRegression, rows: Rows, support: IntArray, scale: float
) -> SparseRegression:
    """Return the form with slopes for which a support without a feasible point has a large bound.

    The form as it is where the rows can be satisfied there. ``scale`` is a size of objectives.
    """
    place, away = row_term(form), refutation(rows, form.box, support, scale)
    if place is None or away is None:
        return form
    try:
        return with_slopes(form, form.terms[place].target + away)
    except ValueError:  # towards an end that is not there
        return form


def witness_at(
    sloped: SparseRegression, point: Point, own: FloatArray, balanced: IntArray, *, ends: bool
) -> Witness | None:
    """Return the dual point of a minimum whose slopes ``balanced`` are to vanish.

    ``own`` are its coordinates here, and ``sloped`` has the slopes of linear constraints for it.
    ``ends`` is for :func:`~sparsemodel.certificates.dual_bounds.unpenalised.balanced`.
    """
    if sloped.traits.has_hessian:
        return from_point(sloped, own, balanced, ends=ends)
    known = (point.duals or ())[: row_term(sloped)]
    more = sloped.terms[len(known) :]  # slopes of linear constraints, and what they miss by
    rest = [t.weights * a for t, a in zip(more, derivatives(more, own), strict=True)]
    return from_gradients(sloped, (*known, *rest), balanced, ends=ends)
