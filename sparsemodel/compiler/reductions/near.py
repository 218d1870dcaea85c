r"""Shift columns far from zero where there is a free intercept.

Products of a column whose mean is :math:`10^7` of its deviations cancel but for nine digits. Where
an intercept absorbs the shift, :math:`A w + b = (A - 1 t^\top) w + (b + t^\top w)`, the entries
:math:`a_{ij} - t_j` are multiplied instead. Entries within a factor of two of ``t_j`` are shifted
without any rounding (Sterbenz), others with one rounding of the difference.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast, final

import numpy as np

from sparsemodel.compiler.reductions.base import Reduction
from sparsemodel.compiler.reductions.center import Center, features
from sparsemodel.designs import (
    ChunkedDesign,
    DenseDesign,
    OnesDesign,
    SparseDesign,
    StackedDesign,
    TransformedDesign,
)
from sparsemodel.designs.dense import DenseColumns
from sparsemodel.designs.elsewhere.distributed import DistributedDesign
from sparsemodel.interfaces import (
    Access,
    Design,
    FloatArray,
    IntArray,
    Region,
    SparseRegression,
)

_FAR = 0.01
"""Range of a column, as a share of its entries, up to which it is far from zero."""
_ROWS = 32
"""Rows that show whether a column is far from zero."""
_COPIED = 2**28
"""Bytes up to which what workers hold is copied to be shifted (256 MB)."""
_FEW = 6
"""Digits of a column below which the user is warned."""


@final
class Near(Reduction):
    r"""Take one of its entries off every column that is far from zero, before anything is added up:
    :math:`A w + b = (A - 1 t^\top) w + (b + t^\top w)`.

    What :class:`Center` then subtracts is no larger than what the entries differ by. Applies where
    that one does, and beside constraints that say nothing of the intercept.
    """

    def __init__(
        self, intercept: int, index: IntArray, design: Design, t: FloatArray, digits: int
    ) -> None:
        self._intercept, self._index, self._design = intercept, index, design
        self._t, self._digits = t, digits

    @classmethod
    def find(cls, form: SparseRegression) -> Near | None:
        """Return the reduction, or None where no column is far from zero or nothing absorbs it."""
        intercept = Center.find(replace(form, region=None))
        if intercept is None or _constrains(form.region, intercept):
            return None
        index, design = features(form.terms[0].design)
        found = shifts(design)
        return None if found is None else cls(intercept, index, design, *found)

    @property
    def intercept(self) -> int:
        """Return the coordinate that absorbs the shifts."""
        return self._intercept

    def apply(self, form: SparseRegression) -> SparseRegression:
        n = self._design.shape[0]
        ones = (np.array([self._intercept]), OnesDesign(n))
        stacked = StackedDesign(
            n, form.sparsity.size, ((self._index, shifted(self._design, self._t)), ones)
        )
        return replace(form, terms=(replace(form.terms[0], design=stacked),))

    def restore(self, x: FloatArray) -> FloatArray:
        out = x.copy()
        out[self._intercept] -= self._t @ x[self._index]
        return out

    def carry(self, x: FloatArray) -> FloatArray:
        out = x.copy()
        out[self._intercept] += self._t @ x[self._index]
        return out

    def carry_gradient(self, gradient: FloatArray) -> None:
        """Return None: the original's has lost the digits that this is for."""

    def describe(self) -> str:
        said = f"{np.count_nonzero(self._t)} columns far from zero shifted (by the intercept)"
        if self._digits >= _FEW:
            return said
        return f"{said}; float64 holds {self._digits} digits of how they differ: shift the data"


def _constrains(region: Region | None, coordinate: int) -> bool:
    """Return whether a constraint is about a coordinate."""
    if region is None:
        return False
    at = np.array([coordinate])
    rows = (part.design.restrict(at).to_array() for part in (*region.linear, *region.images))
    return any(map(np.any, rows)) or any(coordinate in ball.index for ball in region.every_ball)


def shifts(design: Design) -> tuple[FloatArray, int] | None:
    """Return ``t``, an entry of every column that is far from zero, 0 for others; None if none is.

    Beside it is how many digits float64 holds of what the entries of such a column differ by, at
    least. A sample of the rows decides. Of constant columns nothing would be left: they stay.
    """
    n, p = design.shape
    if n < 2 or not shiftable(design):
        return None
    rows = np.unique(np.linspace(0, n - 1, _ROWS).astype(np.intp))
    seen, full = design.restrict_rows(rows), np.arange(p)
    if isinstance(seen, SparseDesign):  # a column that is far from zero has no zeros
        stored = np.bincount(seen.array.tocoo().col, minlength=p)
        full = np.flatnonzero(stored == rows.size)
        seen = seen.restrict(full)
    sample = np.asarray(seen.to_array(), dtype=np.float64)
    low, high = sample.min(axis=0), sample.max(axis=0)
    far = (high > low) & (high - low <= _FAR * np.minimum(np.abs(low), np.abs(high)))
    if isinstance(design, SparseDesign):
        held = cast("SparseDesign", design.restrict(full[far]))
        far[far] = np.diff(held.array.tocsc().indptr) == n
    if not far.any():
        return None
    steps = (high - low)[far] / np.spacing(np.maximum(np.abs(low), np.abs(high)))[far]
    t = np.zeros(p)
    t[full[far]] = sample[0, far]
    return t, int(np.log10(steps.min()))


def shiftable(design: Design) -> bool:
    """Return whether the entries of a design can be shifted: they are not many on workers."""
    if isinstance(design, DistributedDesign):
        return (design.nbytes or 0) <= _COPIED
    return isinstance(design, DenseDesign | DenseColumns | SparseDesign) or (
        isinstance(design, ChunkedDesign) and Access.ROWS in design.access
    )


def shifted(design: Design, t: FloatArray) -> Design:
    """Return ``A - 1 t^T`` with its entries, in memory unless the data are read from a file."""
    n, p = design.shape
    if isinstance(design, DenseDesign | DenseColumns):
        return DenseDesign(design.to_array() - t)
    if isinstance(design, DistributedDesign):
        return DistributedDesign(design.array.astype(np.float64) - t)  # where the rows are
    if not isinstance(design, SparseDesign):
        return TransformedDesign(design, means=t, explicit=True)
    far, near = np.flatnonzero(t), np.flatnonzero(t == 0.0)
    moved = DenseDesign(design.restrict(far).to_array() - t[far])
    if not near.size:
        return moved
    return StackedDesign(n, p, ((far, moved), (near, design.restrict(near))))
