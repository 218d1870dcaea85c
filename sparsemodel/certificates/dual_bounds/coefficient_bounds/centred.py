r"""Columns shifted by an intercept: the same problem, with products that lose no digits to means.

Adding :math:`m_j` times the column of ones to column ``j`` only moves the intercept. Products of
columns far from zero cancel when the intercept is minimised out; those of shifted columns hardly
do. A float shifted by a float is exact up to one rounding of the *shifted* entry.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsemodel.designs import DenseDesign, SparseDesign, StackedDesign
from sparsemodel.interfaces import (
    Access,
    Design,
    FloatArray,
    SparseRegression,
    Term,
)
from sparsemodel.losses.residuals.quadratic import SquaredLoss

_LARGEST = 2**26
"""Entries up to which a shifted copy is made (512 MB)."""

_ROWS = 2**12
"""Rows that are copied at a time."""


def centred(form: SparseRegression, *, thorough: bool = False) -> SparseRegression:
    """Return ``form`` with counted columns and targets shifted, where an intercept allows it.

    Restricted minimisers have the same counted coefficients. Every entry of the new data is within
    two units in the last place of an exact shift. Data that are mostly zeros stay as they are in
    sparse storage, unless ``thorough``: a check must not lose digits that the writer kept.
    """
    found = intercept(form)
    entries = sum(t.design.shape[0] * t.design.shape[1] for t in form.terms)
    if found is None or entries > _LARGEST:
        return form
    if not all(_alone(t.design, thorough) for t in form.terms):
        return form
    index, marks = found
    arrays = [_entries(t.design) for t in form.terms]
    means = np.zeros(form.sparsity.size)
    weight, middle = 0.0, 0.0
    for term, array, on in zip(form.terms, arrays, marks, strict=True):
        if not term.traits.square:
            continue
        centre, c = term.squares()
        c = c * on
        means += c @ array
        middle += float(c @ centre)
        weight += float(c.sum())
    if not weight > 0.0:
        return form
    means, middle = means / weight, middle / weight
    if any(t.offset is not None for t in form.terms if t.traits.square):
        middle = 0.0  # the difference of target and offset is one rounding as it is
    means[index] = 0.0
    _keep_constants(means, arrays, marks)
    if not (np.all(np.isfinite(means)) and np.isfinite(middle)):
        return form
    terms = []
    for term, array, on in zip(form.terms, arrays, marks, strict=True):
        moved = np.array(array, dtype=np.float64)
        np.subtract(moved, means, out=moved, where=(on > 0.0)[:, None])
        if term.traits.square:
            centre, c = term.squares()
            target = centre if middle == 0.0 else centre - middle * on
            term = Term(term.design, SquaredLoss(), target, c, term.offset)
        terms.append(replace(term, design=DenseDesign(moved)))
    return replace(form, terms=tuple(terms))


def _keep_constants(means: FloatArray, arrays: list[FloatArray], marks: list[FloatArray]) -> None:
    """Use the value itself of a constant column, so that the shifted one is zero exactly."""
    low, high = np.full(means.size, np.inf), np.full(means.size, -np.inf)
    for array, on in zip(arrays, marks, strict=True):
        if on.any():
            rows = array[on > 0.0]
            low, high = np.minimum(low, rows.min(axis=0)), np.maximum(high, rows.max(axis=0))
    constant = (low == high) & (means != 0.0)
    means[constant] = low[constant]


def intercept(form: SparseRegression) -> tuple[int, list[FloatArray]] | None:
    """Return a free coordinate without ridge whose column holds zeros and ones, and the column."""
    for j in form.sparsity.free:
        if form.ridge[j] != 0.0:
            continue
        one = np.array([j], dtype=np.intp)
        columns = [t.design.restrict(one).to_array()[:, 0] for t in form.terms]
        if all(np.all((z == 0.0) | (z == 1.0)) for z in columns):
            return int(j), columns
    return None


def _alone(design: Design, thorough: bool) -> bool:
    """Return whether entries are worth a dense copy, and none is a sum of several blocks'."""
    if isinstance(design, StackedDesign):
        return not design.overlapping and all(_alone(block, thorough) for _, block in design.blocks)
    n, p = design.shape
    apart = isinstance(design, SparseDesign) and 2 * design.entries <= n * p
    return thorough or not (apart or Access.DEVICE in design.access)


def _entries(design: Design) -> FloatArray:
    if isinstance(design, DenseDesign):
        return design.to_array()
    out = np.empty(design.shape)
    for rows, entries in design.row_blocks(_ROWS):
        out[rows] = entries
    return out
