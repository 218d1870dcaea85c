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
from sparsemodel.certificates.statements.numbers import constraints_of
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
        self,
        form: SparseRegression,
        factors: FloatArray,
        shifts: ShiftColumns | None,
        points: SparseRegression | None = None,
    ) -> None:
        scale = Scale(factors) if np.any(factors != 1.0) else None
        self._reductions: tuple[Reduction, ...] = tuple(filter(None, (shifts, scale)))
        self._factors = factors
        self.form: SparseRegression = _reduced(form, self._reductions)
        self.points: SparseRegression = self.form
        """``points``, which have the same columns, and constraints of their own."""
        if points is not None and points is not form:
            mine = None if shifts is None else ShiftColumns.find(points)
            self.points = _reduced(points, tuple(filter(None, (mine, scale))))

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


def _reduced(form: SparseRegression, reductions: tuple[Reduction, ...]) -> SparseRegression:
    for reduction in reductions:
        form = reduction.apply(form)
    return form


def scaling(form: SparseRegression, points: SparseRegression | None = None) -> Scaling | None:
    """Return the scaling by what a coordinate's curvature is; None where it changes little.

    One pass over stored data. Groups share one factor, so that their ridges stay equal, and
    designs whose columns cannot be read stay as they are. Columns are no more than shifted where
    constraints are about a matrix or have too many entries. ``points`` are a form of the same
    columns that is scaled as well.
    """
    if not all(Access.COLUMNS in t.design.access for t in form.terms):
        return None
    shifts = ShiftColumns.find(form)
    if points is not None and points is not form and ShiftColumns.find(points) is None:
        shifts = None
    moved = form if shifts is None else shifts.apply(form)
    ratio = np.ones(form.sparsity.size) if _of_one_scale(points or form) else _ratios(moved)
    if ratio is None or (shifts is None and float(ratio.max()) <= _SPREAD**2 * float(ratio.min())):
        return None
    return Scaling(form, np.exp2(-np.round(0.5 * np.log2(ratio))), shifts, points)


def _of_one_scale(form: SparseRegression) -> bool:
    region = form.region
    return region is not None and (
        form.matrix or bool(region.spectra) or constraints_of(form) is None
    )


def _ratios(form: SparseRegression) -> FloatArray | None:
    """Return the coordinates' curvatures in units of a typical one; None where one is not known."""
    squares = form.ridge.astype(np.float64, copy=True)
    for term in form.terms:
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
    return np.where(squares > 0.0, squares / typical, 1.0)
