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
from sparsemodel.interfaces import FloatArray, SparseRegression
from sparsemodel.numerics.budget import budget

HETEROGENEOUS = 3.0
"""Columns whose sizes differ by more than this factor are scaled."""


def reduce_form(form: SparseRegression, facts: Facts) -> Reduced:
    """Return the reduced form a backend will see.

    Order: offsets taken back, copies out, centre, zero columns out, scale, compress. Nothing that
    the sampled column sizes show to be needless is computed exactly, and nothing that ``facts``
    know of the same data. Nothing is compressed that would take longer than the time that is left.
    """
    gradient: FloatArray | None = facts.gradient_at_zero()
    reductions: list[Reduction] = []
    changes: tuple[Hashable, ...] = ()

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
            changes += (keep.tobytes(),)
    intercept = Center.find(form)
    if intercept is not None:
        changes += (("centred", intercept),)
        apply(facts.recall(changes, 0.5, partial(Center.from_form, form, intercept)))
    squares = facts.column_squares(form, centred=intercept is not None, changes=changes)
    scale: Scale | None = None
    if squares is not None:
        useless = droppable(form) & (squares == 0.0)
        if useless.any() and not useless.all():
            keep = np.flatnonzero(~useless)
            apply(DropColumns(keep, useless.size, "columns that are constant"))
            squares = squares[keep]
            changes += (keep.tobytes(),)
        # A ridge is curvature too: without it, rare columns would be blown up against it.
        squares = squares + np.where(squares > 0.0, form.ridge / _steepest(form), 0.0)
        positive = squares[squares > 0.0]
        spread = positive.size > 0 and positive.max() > HETEROGENEOUS**2 * positive.min()
        if spread and form.region is None:
            scale = Scale.from_squares(squares, form)
            apply(scale)
    pays = Compress.pays(form)
    hurried = pays and not budget().allows(Compress.cost(form))
    if pays and not hurried:
        whole = form
        factors = np.ones(form.sparsity.size) if scale is None else scale.factors
        compressed, then = facts.recall(
            ("compressed", changes), 0.5, lambda: (Compress.from_form(whole), factors)
        )
        # The scale depends on the ridge, which may have changed since.
        same = np.array_equal(factors, then)
        apply(compressed if same else compressed.rescaled(factors / then))
    return Reduced(form, tuple(reductions), gradient, hurried)


def _steepest(form: SparseRegression) -> float:
    """Return the largest second derivative of the losses; 1 where one has no bound."""
    upper = form.traits.upper
    return upper if np.isfinite(upper) and upper > 0.0 else 1.0


__all__ = ["HETEROGENEOUS", "reduce_form"]
