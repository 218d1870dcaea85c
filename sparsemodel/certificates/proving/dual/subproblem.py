"""A part of the search: some coordinates deleted, some units in for good."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparsemodel.certificates.dual_bounds.diagonal_shift import LIMIT
from sparsemodel.designs import DenseDesign, StackedDesign
from sparsemodel.designs.dense import DenseColumns
from sparsemodel.interfaces import (
    Access,
    BoolArray,
    Box,
    Design,
    FloatArray,
    IntArray,
    SparseRegression,
    Term,
)
from sparsemodel.numerics.budget import budget

_BYTES = 1e8
"""Bytes of columns that are sure to be gathered from a file in a second."""

_MOST = 0.2
"""Share of the columns from which on products with all cost less than a copy."""


def restricted(form: SparseRegression, coordinates: IntArray, inside: IntArray) -> SparseRegression:
    """Return ``form`` on ``coordinates`` alone, where the units of ``inside`` are not counted.

    ``coordinates`` is sorted and holds all free coordinates and whole units; the ``inside`` ones
    are paid for in the constant, have at least their least sizes, and ``k`` is what they leave.
    """
    sparsity = form.sparsity
    every = sparsity.unit_of
    unit, taken = every[coordinates], np.unique(every[inside])
    # By marks, as sorting all columns takes longer than a product with them; -1 has the last one.
    paid, present = np.zeros((2, sparsity.units + 1), dtype=bool)
    paid[taken] = present[unit] = True
    paid[-1] = present[-1] = False
    free = np.flatnonzero((unit < 0) | paid[unit])
    counted = np.flatnonzero(present & ~paid)
    groups = None
    if sparsity.groups is not None:
        groups = np.full(unit.size, -1, dtype=np.intp)
        kept = (unit >= 0) & ~paid[unit]
        groups[kept] = np.searchsorted(counted, unit[kept])
    box = None
    if form.box is not None:
        inner = Box(
            form.box.lower[coordinates],
            form.box.upper[coordinates],
            None if form.box.least is None else form.box.least[coordinates],
        )
        box = held(inner, paid[unit])
    terms = tuple(
        Term(columns_of(t.design, coordinates), t.loss, t.target, t.weights, t.offset)
        for t in form.terms
    )
    return SparseRegression(
        terms=terms,
        ridge=form.ridge[coordinates],
        sparsity=replace(
            sparsity.after(taken, counted), size=int(coordinates.size), free=free, groups=groups
        ),
        outputs=form.outputs,
        matrix=form.matrix,
        box=box,
        constant=form.constant + sparsity.charge(taken),
    )


def held(box: Box, inside: BoolArray) -> Box:
    """Return bounds where coordinates ``inside`` have at least their least sizes."""
    if box.least is None:
        return box
    ends, least = box.chosen, np.where(inside, 0.0, box.least)
    sides = ((ends.lower, box.lower), (ends.upper, box.upper))
    low, high = (np.where(inside, end, side) for end, side in sides)
    return Box(low, high, least if least.any() else None)


def columns_of(design: Design, columns: IntArray) -> Design:
    """Return some columns (sorted); many of a dense matrix stay where they are.

    In single precision, too: a copy would have twice its size.
    """
    if columns.size == design.shape[1]:
        return design
    if columns.size > LIMIT:
        if isinstance(design, DenseColumns):
            return columns_of(design.inner, design.columns[columns])
        if isinstance(design, DenseDesign) and columns.size > _MOST * design.shape[1]:
            return DenseColumns(design, columns)
        if isinstance(design, StackedDesign):
            blocks = []
            for index, block in design.blocks:
                _, inner, outer = np.intersect1d(
                    index, columns, assume_unique=True, return_indices=True
                )
                if inner.size:
                    blocks.append((outer, columns_of(block, inner)))
            return StackedDesign(design.shape[0], int(columns.size), tuple(blocks))
    return design.restrict(columns)


def in_memory(form: SparseRegression) -> SparseRegression:
    """Return the same problem with what it reads from files in memory, where that is allowed.

    As large as the columns of a support may be: a proof then reads a file once for all its parts.
    Files stay where they are when the time that is left would pass with reading them.
    """

    def held(term: Term) -> Term:
        design = term.design
        if not design.streamed or (design.nbytes or 0) > _BYTES * budget().left:
            return term
        columns = design.restrict(np.arange(design.shape[1]))
        return replace(term, design=columns) if Access.COLUMNS in columns.access else term

    return replace(form, terms=tuple(map(held, form.terms)))


def scattered(x: FloatArray, coordinates: IntArray, size: int) -> FloatArray:
    """Return ``x`` on ``coordinates``, zero elsewhere."""
    out = np.zeros((size, *x.shape[1:]))
    out[coordinates] = x
    return out


def sizes_of_rows(x: Any) -> Any:
    """Return the norms of the rows of a matrix, a vector as it is."""
    return x if x.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", x, x))
