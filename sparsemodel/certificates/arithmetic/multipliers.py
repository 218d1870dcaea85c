r"""Linear constraints in the objective: a problem without them whose value is nowhere above.

Where :math:`l \le C x \le u` holds, every :math:`y` and every :math:`\rho \ge 0` give

.. math:: P(x) + y^T (C x - b) + \tfrac12 \sum_i \rho_i (C x - b)_i^2 \;\le\; P(x), \qquad
          b_i = u_i \text{ for } y_i > 0, \quad b_i = l_i \text{ for } y_i < 0,

with :math:`\rho_i > 0` for equations alone. So whatever bounds the left side over sparse points
bounds the problem. The rows also imply bounds on single coordinates (nonnegative weights that add
up to one are at most one); those that no declared bound gives are kept as a box.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U
from sparsemodel.certificates.arithmetic.row_prices import RowPrices
from sparsemodel.certificates.arithmetic.tall import Survey
from sparsemodel.certificates.dual_bounds.witness import from_point
from sparsemodel.certificates.statements.certificate import Multipliers
from sparsemodel.certificates.statements.numbers import Rows, rows_of
from sparsemodel.compiler.reductions.near import Near
from sparsemodel.interfaces import (
    BoolArray,
    Box,
    CertificateError,
    FloatArray,
    IntArray,
    SparseRegression,
    Term,
)
from sparsemodel.losses import LinearLoss, SquaredLoss

MILD, STIFF = 1.0, 30.0
"""Curvature that an equation adds to a coordinate, in units of what the losses have on average: one
relaxation is solved soon with the first, a search closes with the second."""

_ACTIVE = 1e-7
"""Distance to a bound of a row, relative to its size, from which on a multiplier may be sought."""


def priced(seen: Survey, held: Multipliers | None) -> Survey:
    """Return a survey whose bounds are sought without the linear constraints, priced instead."""
    if held is None:
        return seen
    return replace(seen, below=without_rows(seen.form, held), multipliers=held)


def without_rows(form: SparseRegression, held: Multipliers) -> SparseRegression:
    """Return the problem with its linear constraints in the objective, nowhere above it.

    Raises
    ------
    CertificateError
        When the multipliers do not fit the constraints.
    """
    rows = rows_of(form)
    if rows is None or form.region is None:
        raise CertificateError("line 'witness.multipliers' is there without linear constraints.")
    stiff, equal, terms = held.stiffness, rows.lower == rows.upper, list(form.terms)
    fits = stiff.shape == equal.shape and np.all(np.isfinite(stiff)) and np.all(stiff >= 0.0)
    try:
        slopes = RowPrices(rows).term(held.slopes)
    except ValueError:
        fits = False
    if not fits or np.any(stiff[~equal]):
        raise CertificateError("line 'witness.multipliers' does not fit the linear constraints.")
    if held.own:
        terms.append(slopes)
    elif np.any(held.slopes):
        terms.append(replace(slopes, loss=LinearLoss()))
    if np.any(stiff):
        aims = np.where(equal, rows.lower, 0.0)
        terms.append(Term(rows.design, SquaredLoss(), aims, stiff))
    box = _implied(form, rows)
    return replace(form, terms=tuple(terms), region=None, box=box)


def no_multipliers(seen: Survey) -> Survey:
    """Return a survey whose bounds are sought without the linear constraints."""
    held = seen.multipliers
    if held is None:
        return seen
    zero = np.zeros(held.slopes.size)
    return priced(seen, Multipliers(zero, zero))


def multipliers_at(
    form: SparseRegression, x: FloatArray, stiffness: float = MILD
) -> Multipliers | None:
    """Return the multipliers with which ``x`` is nearly stationary on its support.

    None where there are no linear constraints whose entries can be read, or the gradient of a loss
    says nothing of its bounds. A product with the data and one with its transpose.
    """
    rows = None if form.matrix else rows_of(form)
    if rows is None or not form.traits.conjugable:
        return None
    near = Near.find(form)
    if near is not None:
        form, x = near.apply(form), near.carry(x)
    sizes = form.ridge.astype(np.float64, copy=True)
    for term in form.terms:
        if term.traits.square:
            sizes += term.design.column_square_norms(term.squares()[1])
    y = slopes_at(form, rows, x, from_point(form, x).duals)
    stiff, equal = np.zeros(y.size), rows.lower == rows.upper
    squares = np.square(rows.matrix)
    entries = squares.sum(axis=1) / np.maximum((squares > 0.0).sum(axis=1), 1)
    if form.traits.gram:
        np.divide(
            stiffness * float(sizes.mean()), entries, out=stiff, where=equal & (entries > 0.0)
        )
    return Multipliers(y, stiff) if np.all(np.isfinite(y + stiff)) else None


def slopes_at(
    form: SparseRegression, rows: Rows, x: FloatArray, duals: tuple[FloatArray | None, ...]
) -> FloatArray:
    """Return the slopes of the rows that balance the gradient where ``x`` may move.

    ``duals`` are those of the first terms; a product with the transpose of each.
    """
    gradient = form.ridge * x
    for term, a in zip(form.terms, duals, strict=False):
        gradient = gradient + term.design.rmatvec(term.weights * np.asarray(a))
    box = form.box or Box(np.full(x.shape, -np.inf), np.full(x.shape, np.inf))
    return _slopes(rows, x, gradient, (x <= box.lower, x >= box.upper))


def _slopes(
    rows: Rows, x: FloatArray, gradient: FloatArray, ends: tuple[BoolArray, BoolArray]
) -> FloatArray:
    """Return ``y`` of the right signs with which ``gradient + C' y`` pushes the nonzeros nowhere.

    Those at their lower or upper ``ends`` may be pushed against them. Least squares.
    """
    from scipy.optimize import lsq_linear

    y, value = np.zeros(rows.lower.size), rows.matrix @ x
    size = _ACTIVE * (np.abs(rows.matrix) @ np.abs(x))
    at_lower, at_upper = value <= rows.lower + size, value >= rows.upper - size
    active, nonzero = at_lower | at_upper, x != 0.0
    if not active.any() or not nonzero.any():
        return y
    low = np.where(at_lower[active], -np.inf, -np.finfo(np.float64).tiny)
    high = np.where(at_upper[active], np.inf, np.finfo(np.float64).tiny)
    part = [rows.matrix[np.ix_(active, nonzero)].T]
    for end, sign in zip(ends, (-1.0, 1.0), strict=True):
        pushes = sign * np.eye(part[0].shape[0])[:, end[nonzero]]
        part.append(pushes)
        low, high = (
            np.append(low, np.zeros(pushes.shape[1])),
            np.append(high, np.full(pushes.shape[1], np.inf)),
        )
    found = lsq_linear(np.hstack(part), -gradient[nonzero], (low, high), method="bvls").x
    found = found[: np.count_nonzero(active)]
    y[active] = np.where(found > 0.0, at_upper[active], at_lower[active]) * found
    return y


def violation(rows: Rows, box: Box | None, on: IntArray) -> FloatArray:
    """Return by how much the rows are violated at least, in the bounds and zero but for ``on``.

    As slopes these are a proof: ``r' (C x - b) >= r' r`` at every such point.
    """
    from scipy.optimize import lsq_linear

    m, low, high = rows.lower.size, np.full(on.size, -np.inf), np.full(on.size, np.inf)
    if box is not None:
        low, high = box.lower[on], box.upper[on]
    ends = np.append(low, rows.lower), np.append(high, rows.upper)
    fixed = ends[0] == ends[1]  # the least squares need room
    parts = np.hstack([rows.matrix[:, on], -np.eye(m)])
    right = -parts[:, fixed] @ ends[0][fixed]
    if fixed.all():
        return np.asarray(-right)
    free = lsq_linear(parts[:, ~fixed], right, (ends[0][~fixed], ends[1][~fixed]), method="bvls")
    return np.asarray(parts[:, ~fixed] @ free.x - right)


def _implied(form: SparseRegression, rows: Rows) -> Box | None:
    """Return the bounds with those that the rows imply for counted coordinates without one.

    Zero stays inside of them, and they are rounded outwards.
    """
    low, high = np.full(form.shape, -np.inf), np.full(form.shape, np.inf)
    if form.box is not None:
        low[:], high[:] = form.box.lower, form.box.upper
    counted = form.sparsity.counted
    for side, ends in ((1.0, rows.upper), (-1.0, -rows.lower)):
        for row, end in zip(side * rows.matrix, ends, strict=True):
            on = np.flatnonzero(row)
            c = row[on]
            least = np.where(c > 0.0, c * low[on], c * high[on])
            loose = np.isinf(least)
            if not np.isfinite(end) or loose.sum() > 1:
                continue
            total = np.where(loose, 0.0, least).sum()
            rest = np.where(loose, total, -np.inf) if loose.any() else total - least
            slack = 8.0 * U * (on.size + 8) * (abs(end) + np.abs(least[~loose]).sum())
            reach = np.maximum((end - rest + slack) / np.abs(c), 0.0)
            known = np.where(c > 0.0, high[on], -low[on])
            found = np.where(np.isinf(known) & counted[on], reach, known)
            high[on[c > 0.0]], low[on[c < 0.0]] = found[c > 0.0], -found[c < 0.0]
    least = None if form.box is None else form.box.least
    return Box(low, high, least) if np.any(np.isfinite(low) | np.isfinite(high)) else None
