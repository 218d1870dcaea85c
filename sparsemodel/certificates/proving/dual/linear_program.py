"""Dual points of nodes without curvature: multipliers of a linear program.

The relaxation of a node is a linear program with a share between 0 and 1 of every unit that is not
decided. The multipliers of its rows are a dual point whose bound is its value: a coordinate gains
its slope times the farther of its bounds, and the best selection of these gains is what the shares
are worth. They come from floating point, and prove whatever they prove once they are evaluated.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsemodel.certificates.arithmetic.dualised_rows import DualisedRows
from sparsemodel.certificates.arithmetic.limits import NormLimit
from sparsemodel.certificates.proving.dual.shared import is_left_out
from sparsemodel.certificates.statements.numbers import Rows
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import FloatArray, SparseRegression
from sparsemodel.interfaces.region import ImageBall, Linear, Region
from sparsemodel.numerics.linear_programs.formulation import Choice, Relaxation

_MUCH = 1e3
"""By how much points of an infeasible node are out of reach, in sizes of the objective."""


def dual_point(
    form: SparseRegression, rows: Rows | None, deadline: float | None
) -> tuple[FloatArray, tuple[FloatArray, ...]] | None:
    """Return a minimiser of a node's relaxation, and the dual point of its terms.

    ``rows`` are the constraints of the term whose slopes the node may choose. None where the
    program has no solution in time.
    """
    straight = tuple(t for t in form.terms if not is_left_out(t))
    inner = replace(form, terms=straight, region=_region(rows))
    relaxed = Relaxation.of(inner)
    program = Choice(relaxed, relaxed.lower, relaxed.upper)
    found = program.relaxation(deadline)
    if found is None:
        return None
    x, slopes, infeasible = found
    if infeasible:
        # Slopes along which what is violated grows without end, far enough.
        slopes = _MUCH * (1.0 + abs(program.scale)) * slopes
    duals: list[FloatArray] = []
    places = iter(relaxed.term_rows)
    for term in form.terms:
        if isinstance(term.loss, DualisedRows):
            duals.append(_slopes_of(rows, relaxed, slopes, term.target))
        elif is_left_out(term):
            duals.append(np.zeros(term.target.shape))
        elif term.traits.affine:
            next(places)
            duals.append(np.asarray(term.slopes() / np.where(term.weights > 0, term.weights, 1.0)))
        else:
            pulls = [slopes[each] for each in next(places)]
            pull = np.sum(pulls, axis=0)
            a = np.divide(pull, term.weights, out=np.zeros(pull.size), where=term.weights > 0.0)
            duals.append(term.loss.project_dual(a, term.target))  # type: ignore[attr-defined]
    return x, tuple(duals)


def _region(rows: Rows | None) -> Region | None:
    """Return linear rows and 1-norms as constraints."""
    if rows is None:
        return None
    linear = Linear(DenseDesign(rows.matrix), rows.lower, rows.upper)
    images = tuple(
        ImageBall(norm.design, norm.shift, norm.radius, 1)
        for norm in rows.norms
        if isinstance(norm, NormLimit) and norm.order == 1
    )
    return Region(linear=(linear,), images=images)


def _slopes_of(
    rows: Rows | None, relaxed: Relaxation, slopes: FloatArray, known: FloatArray
) -> FloatArray:
    """Return the slopes of the rows; those of round norms as they are known."""
    if rows is None:
        return known
    _, others = rows.divided(known)
    first = slopes[relaxed.linear_rows]
    outside = ((first > 0.0) & np.isinf(rows.upper)) | ((first < 0.0) & np.isinf(rows.lower))
    first = np.where(outside, 0.0, first)
    parts, found = [first], iter(relaxed.norm_rows)
    for norm, part in zip(rows.norms, others, strict=True):
        one = isinstance(norm, NormLimit) and norm.order == 1
        parts.append(slopes[next(found)[0]] if one else part)
    return np.concatenate(parts)
