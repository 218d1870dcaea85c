"""Apply the reductions that are worth it, in order."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np

from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.reductions.base import Reduced, Reduction
from sparsemodel.compiler.reductions.center import Center
from sparsemodel.compiler.reductions.compress import Compress
from sparsemodel.compiler.reductions.drop_columns import (
    DropColumns,
    droppable,
    duplicate_columns,
)
from sparsemodel.compiler.reductions.scale import Scale
from sparsemodel.compiler.reductions.shift import Shift
from sparsemodel.compiler.reductions.shift_columns import ShiftColumns
from sparsemodel.interfaces import FloatArray, SparseRegression
from sparsemodel.numerics.budget import budget

HETEROGENEOUS = 3.0
"""Columns whose sizes differ by more than this factor are scaled."""


def reduce_form(form: SparseRegression, facts: Facts) -> Reduced:
    """Return the reduced form a backend will see.

    Order: columns far from zero shifted, compress, offsets taken back, copies out, centre, zero
    columns out, scale: what comes after compressing costs next to nothing. Nothing that the
    sampled column sizes show to be needless is computed exactly, and nothing that ``facts`` know
    of the same data. Nothing is compressed that would take longer than the time that is left.
    """
    reductions: list[Reduction] = []
    shifts = facts.recall("shifts", 0.0, partial(ShiftColumns.find, form))
    if shifts is not None:
        form = shifts.apply(form)
        reductions.append(shifts)
    pays = Compress.pays(form)
    hurried = pays and not budget().allows(Compress.cost(form))
    compressed = None
    if pays and not hurried:
        compressed = facts.recall("compressed", 0.5, partial(Compress.from_form, form))
    if compressed is not None:
        form = compressed.apply(form)
        reductions.append(compressed)
    share = 0.5 if compressed is None else 0.5 * compressed.shrinkage
    gradient: FloatArray | None = facts.gradient_at_zero(form, share)
    sums = facts.sums
    changes: tuple[Hashable, ...] = (compressed is not None,)

    def apply(reduction: Reduction) -> None:
        nonlocal form, gradient
        form = reduction.apply(form)
        gradient = None if gradient is None else reduction.carry_gradient(gradient)
        reductions.append(reduction)

    shift = Shift.find(form)
    if shift is not None:
        facts.spend(0.5)
        apply(shift)
    if gradient is not None:
        copies = duplicate_columns(form, gradient)
        if copies.size:
            keep = np.setdiff1d(np.arange(form.sparsity.size), copies)
            apply(DropColumns(keep, form.sparsity.size, "columns that copy others"))
            sums = None if sums is None else sums[keep]
            changes += (keep.tobytes(),)
    intercept = Center.find(form)
    if intercept is not None:
        changes += (("centred", intercept),)
        price = share if sums is None else 0.0
        apply(facts.recall(changes, price, partial(Center.from_form, form, intercept, sums)))
    centred = intercept is not None
    squares = facts.column_squares(form, centred=centred, changes=changes, passes=share)
    if squares is not None:
        useless = droppable(form) & (squares == 0.0)
        if useless.any() and not useless.all():
            keep = np.flatnonzero(~useless)
            apply(DropColumns(keep, useless.size, "columns that are constant"))
            squares = squares[keep]
        # A ridge is curvature too: without it, rare columns would be blown up against it.
        squares = squares + np.where(squares > 0.0, form.ridge / _steepest(form), 0.0)
        positive = squares[squares > 0.0]
        spread = positive.size > 0 and positive.max() > HETEROGENEOUS**2 * positive.min()
        if spread and form.region is None:
            apply(Scale.from_squares(squares, form))
    return Reduced(form, tuple(reductions), gradient, hurried)


def _steepest(form: SparseRegression) -> float:
    """Return the largest second derivative of the losses; 1 where one has no bound."""
    upper = form.traits.upper
    return upper if np.isfinite(upper) and upper > 0.0 else 1.0
