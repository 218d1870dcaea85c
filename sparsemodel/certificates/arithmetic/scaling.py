r"""Search for bounds in coordinates of one size: :math:`x_j = d_j u_j`.

Columns of very different lengths make every first-order step of a search tiny, and nothing else:
a dual point lives in the predictions and proves the same bound whatever the columns were scaled by
while it was sought. So the search runs on the scaled form, and what it brings home is evaluated on
the original one. The factors are powers of two, by which floats are multiplied without rounding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.compiler.reductions.base import Reduction
from sparsemodel.compiler.reductions.scale import Scale
from sparsemodel.compiler.reductions.shift_columns import ShiftColumns
from sparsemodel.interfaces import Access, FloatArray, SparseRegression

_SPREAD = 16.0
"""Ratio of column sizes that is worth a scaling."""


@final
class Scaling:
    """A form in coordinates of one size, with no column far from zero, and the way back."""

    def __init__(
        self, form: SparseRegression, factors: FloatArray, shifts: ShiftColumns | None
    ) -> None:
        self._reductions: tuple[Reduction, ...] = (Scale(factors),)
        if shifts is not None:
            self._reductions = (shifts, *self._reductions)
        self._factors = factors
        self.form: SparseRegression = self.apply(form)

    def apply(self, form: SparseRegression) -> SparseRegression:
        """Return another form on the same coordinates and columns, scaled."""
        for reduction in self._reductions:
            form = reduction.apply(form)
        return form

    def start(self, x: FloatArray) -> FloatArray:
        """Return a point in the scaled coordinates."""
        for reduction in self._reductions:
            x = reduction.carry(x)
        return x

    def restore(self, u: FloatArray) -> FloatArray:
        """Return a scaled point in the original coordinates."""
        for reduction in reversed(self._reductions):
            u = reduction.restore(u)
        return u

    def witness(self, found: Witness) -> Witness:
        """Return a witness in the original coordinates: its dual points are the same."""
        at, extraction = found.at, found.extraction
        return replace(
            found,
            at=None if at is None else self.restore(at),
            extraction=None if extraction is None else extraction / np.square(self._factors),
        )


def scaling(form: SparseRegression) -> Scaling | None:
    """Return the scaling by what a coordinate's curvature is; None where it changes little.

    One pass over stored data. Groups share one factor, so that their ridges stay equal, and
    designs whose columns cannot be read stay as they are.
    """
    if not all(Access.COLUMNS in t.design.access for t in form.terms) or form.region is not None:
        return None
    shifts = ShiftColumns.find(form)
    moved = form if shifts is None else shifts.apply(form)
    squares = form.ridge.astype(np.float64, copy=True)
    for term in moved.terms:
        squares += term.design.column_square_norms(term.weights)
    if not (np.all(np.isfinite(squares)) and np.any(squares > 0.0)):
        return None
    groups = form.sparsity.groups
    if groups is not None:
        counted = groups >= 0
        total = np.bincount(groups[counted], weights=squares[counted])
        size = np.maximum(np.bincount(groups[counted]), 1)
        squares[counted] = (total / size)[groups[counted]]
    typical = float(np.median(squares[squares > 0.0]))
    ratio = np.where(squares > 0.0, squares / typical, 1.0)
    if shifts is None and float(ratio.max()) <= _SPREAD**2 * float(ratio.min()):
        return None
    return Scaling(form, np.exp2(-np.round(0.5 * np.log2(ratio))), shifts)
