"""Leave out columns that cannot help: zero columns, and copies of other columns."""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from sparsemodel.compiler.reductions.base import Reduction
from sparsemodel.designs import TransformedDesign
from sparsemodel.interfaces import Box, Cardinality, FloatArray, IntArray, SparseRegression

_MAX_CANDIDATES = 2000


@final
class DropColumns(Reduction):
    """Fix some coordinates at zero and leave them out.

    A zero column cannot lower the objective. A copy of another column cannot either, where
    neither has a ridge (with one, sharing a coefficient between the copies would be cheaper).
    Counted units must keep a coordinate each, so only ungrouped problems lose columns, and only
    where there is one limit.
    """

    def __init__(self, keep: IntArray, size: int, reason: str) -> None:
        self._keep = keep
        self._size = size
        self._reason = reason

    def apply(self, form: SparseRegression) -> SparseRegression:
        keep = self._keep
        sparsity = form.sparsity
        position = np.full(self._size, -1, dtype=np.intp)
        position[keep] = np.arange(keep.size)
        free = position[sparsity.free]
        counted = keep.size - free.size
        reduced = Cardinality(
            size=int(keep.size),
            k=min(sparsity.budget, counted) + sparsity.forced_units,
            free=free,
            price=sparsity.price,
            forced=position[sparsity.forced],
            forced_units=sparsity.forced_units,
        )
        terms = tuple(
            replace(term, design=TransformedDesign(term.design, select=keep)) for term in form.terms
        )
        box = form.box
        if box is not None:
            least = None if box.least is None else box.least[keep]
            box = Box(box.lower[keep], box.upper[keep], least)
        return replace(form, terms=terms, ridge=form.ridge[keep], sparsity=reduced, box=box)

    def restore(self, x: FloatArray) -> FloatArray:
        out = np.zeros((self._size, *x.shape[1:]))
        out[self._keep] = x
        return out

    def carry(self, x: FloatArray) -> FloatArray:
        return x[self._keep]

    def carry_gradient(self, gradient: FloatArray) -> FloatArray:
        return gradient[self._keep]

    def describe(self) -> str:
        dropped = self._size - self._keep.size
        return f"{dropped} {self._reason} left out"


def droppable(form: SparseRegression) -> np.ndarray:
    """Return the mask of coordinates that may be fixed at zero if their column is useless."""
    mask = form.sparsity.counted
    sparsity = form.sparsity
    if sparsity.groups is not None or not sparsity.plain or form.region is not None:
        # A group keeps its coordinates; a constraint may need any of them, and where there are
        # limits on parts or costs, a copy may stand where the column itself may not.
        mask[:] = False
    if form.box is not None:
        low, high = form.box.lower, form.box.upper
        inside = (low <= 0.0) & (high >= 0.0)
        mask &= inside if inside.ndim == 1 else inside.all(axis=1)
    return mask


def duplicate_columns(form: SparseRegression, gradient: FloatArray) -> IntArray:
    """Return the coordinates whose column is an exact copy of an earlier one.

    Copies have equal entries in the gradient at zero, which is known anyway; only columns that
    tie there are compared entry by entry (at most 2000 of them).
    """
    allowed = droppable(form) & (form.ridge == 0.0)
    if form.box is not None:
        allowed[:] = False  # the copies' bounds would have to be merged
    if not allowed.any():
        return np.empty(0, dtype=np.intp)
    key = np.abs(gradient) if gradient.ndim == 1 else np.abs(gradient).sum(axis=1)
    index = np.flatnonzero(allowed & (key > 0.0))
    order = index[np.argsort(key[index], kind="stable")]
    close = np.diff(key[order]) <= 1e-12 * key[order][1:]
    candidates = np.zeros(order.size, dtype=bool)
    candidates[:-1] |= close
    candidates[1:] |= close
    tied = np.sort(order[candidates])
    if not 2 <= tied.size <= _MAX_CANDIDATES:
        return np.empty(0, dtype=np.intp)
    columns = np.concatenate([term.design.restrict(tied).to_array() for term in form.terms], axis=0)
    first = np.unique(columns, axis=1, return_index=True)[1]
    return np.setdiff1d(tied, tied[first])
