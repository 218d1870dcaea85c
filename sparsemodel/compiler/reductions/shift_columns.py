r"""Shift columns far from zero where there is a free intercept.

Products of a column whose mean is :math:`10^7` of its deviations cancel but for nine digits. Where
an intercept absorbs the shift, :math:`A w + b = (A - 1 t^\top) w + (b + t^\top w)`, the entries
:math:`a_{ij} - t_j` are multiplied instead. Entries within a factor of two of ``t_j`` are shifted
without any rounding (Sterbenz), others with one rounding of the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, cast, final

import numpy as np

from sparsemodel.compiler.reductions.base import Reduction
from sparsemodel.designs import (
    ChunkedDesign,
    DenseDesign,
    OnesDesign,
    SparseDesign,
    StackedDesign,
    TransformedDesign,
)
from sparsemodel.designs.dense import DenseColumns
from sparsemodel.designs.remote.distributed import DistributedDesign
from sparsemodel.interfaces import (
    Access,
    Design,
    FloatArray,
    IntArray,
    SparseRegression,
    Term,
)
from sparsemodel.losses.residuals.quadratic import SquaredLoss

Part: TypeAlias = tuple[IntArray, Design]

_FAR = 0.01
"""Range of a column, as a share of its entries, up to which it is far from zero."""
_ROWS = 32
"""Rows that show whether a column is far from zero."""
_COPIED = 2**28
"""Bytes up to which what workers hold is copied to be shifted (256 MB)."""
_FEW = 6
"""Digits of a column below which the user is warned."""


class ByIntercept(Reduction):
    r"""Columns less ``t``, which an intercept absorbs:
    :math:`A w + b = (A - 1 t^\top) w + (b + t^\top w)`.
    """

    def __init__(self, intercept: int, t: FloatArray) -> None:
        self._intercept, self._t = intercept, t

    def _stacked(self, index: IntArray, design: Design) -> StackedDesign:
        """Return columns beside the intercept."""
        n = design.shape[0]
        ones = (np.array([self._intercept]), OnesDesign(n))
        return StackedDesign(n, self._t.size, ((index, design), ones))

    def restore(self, x: FloatArray) -> FloatArray:
        out = x.copy()
        out[self._intercept] -= self._t @ x
        return out

    def carry(self, x: FloatArray) -> FloatArray:
        out = x.copy()
        out[self._intercept] += self._t @ x
        return out


@final
class ShiftColumns(ByIntercept):
    r"""Take one of its entries off every column that is far from zero, before anything is added up:
    :math:`A w + b = (A - 1 t^\top) w + (b + t^\top w)`.

    What :class:`Center` then subtracts is no larger than what the entries differ by. Applies where
    the intercept has neither ridge nor bounds, no constraint is about it, and every loss has it
    beside columns that are alike, or not at all. Targets of squared losses may be shifted, too.
    """

    def __init__(
        self,
        intercept: int,
        parts: tuple[Part | None, ...],
        t: FloatArray,
        digits: int,
        level: float = 0.0,
    ) -> None:
        super().__init__(intercept, t)
        self._parts, self._digits, self._level = parts, digits, level

    @classmethod
    def find(cls, form: SparseRegression, *, targets: bool = False) -> ShiftColumns | None:
        """Return the reduction, or None where no column is far from zero or nothing absorbs it.

        With ``targets`` also where those of squared losses are.
        """
        intercept = absorbing(form)
        if intercept is None:
            return None
        parts = list[Part | None]()
        for term in form.terms:
            part = beside(term.design, intercept)
            if isinstance(part, str):
                return None
            parts.append(part)
        t, digits = np.zeros(form.sparsity.size), 99
        for number, (index, design) in enumerate(part for part in parts if part is not None):
            found = shifts(design)
            if found is None:
                t[:] = 0.0
                break
            own = np.zeros_like(t)
            own[index] = found[0]
            alike = (own != 0.0) & (np.abs(own - t) <= _FAR * np.abs(t))
            t = np.where(alike, t, 0.0) if number else own
            digits = min(digits, found[1])
        having = [term for term, part in zip(form.terms, parts, strict=True) if part is not None]
        level = _level(having) if targets else 0.0
        return cls(intercept, tuple(parts), t, digits, level) if t.any() or level != 0.0 else None

    @property
    def intercept(self) -> int:
        """Return the coordinate that absorbs the shifts."""
        return self._intercept

    @property
    def having(self) -> tuple[bool, ...]:
        """Return which terms have the intercept."""
        return tuple(part is not None for part in self._parts)

    def apply(self, form: SparseRegression) -> SparseRegression:
        terms = list(form.terms)
        for i, (term, part) in enumerate(zip(form.terms, self._parts, strict=True)):
            if part is not None:
                index, design = part
                if self._t.any():
                    near = self._stacked(index, shifted(design, self._t[index]))
                    term = replace(term, design=near)
                if self._level != 0.0:
                    centre, weights = term.squares()
                    term = Term(term.design, SquaredLoss(), centre - self._level, weights)
                terms[i] = term
        return replace(form, terms=tuple(terms))

    def restore(self, x: FloatArray) -> FloatArray:
        out = super().restore(x)
        out[self._intercept] += self._level
        return out

    def carry(self, x: FloatArray) -> FloatArray:
        out = super().carry(x)
        out[self._intercept] -= self._level
        return out

    def carry_gradient(self, gradient: FloatArray) -> None:
        """Return None: the original's has lost the digits that this is for."""

    def describe(self) -> str:
        said = f"{np.count_nonzero(self._t)} columns far from zero shifted (by the intercept)"
        if self._digits >= _FEW:
            return said
        return f"{said}; float64 holds {self._digits} digits of how they differ: shift the data"


def absorbing(form: SparseRegression) -> int | None:
    """Return the one intercept that is free to move, None if there is none."""
    blocks = [b for t in form.terms if isinstance(t.design, StackedDesign) for b in t.design.blocks]
    found = {int(index[0]) for index, block in blocks if isinstance(block, OnesDesign)}
    c = min(found, default=-1)
    if len(found) != 1 or c not in form.sparsity.free or form.ridge[c] > 0.0:
        return None
    box, region, at = form.box, form.region, np.array([c])
    if box is not None and np.any(np.isfinite(box.lower[c]) | np.isfinite(box.upper[c])):
        return None
    if region is not None:
        designs = [*(one.design for one in region.linear), *(one.design for one in region.images)]
        rows = (design.restrict(at).to_array() for design in designs)
        others = (*region.every_ball, *region.spectra)
        if any(map(np.any, rows)) or any(c in part.index for part in others):
            return None
    return c


def beside(design: Design, intercept: int) -> Part | Literal["mixed"] | None:
    """Return the columns beside an intercept; None where a design has no intercept."""
    if isinstance(design, DenseDesign) and not np.any(design.to_array()[:, intercept]):
        return None
    if not isinstance(design, StackedDesign):
        return "mixed"
    others = [b for b in design.blocks if not isinstance(b[1], OnesDesign)]
    inside = any(intercept in index for index, _ in others)
    if len(others) == len(design.blocks):
        return "mixed" if inside else None
    return "mixed" if inside or len(others) != 1 or len(design.blocks) != 2 else others[0]


def _level(terms: Sequence[Term]) -> float:
    """Return the mean of the targets of squared losses that are far from zero, 0 for others.

    A difference from an offset is rounded before.
    """
    if not all(term.traits.square and term.offset is None for term in terms):
        return 0.0
    pairs = [term.squares() for term in terms]
    weight = sum(float(c.sum()) for _, c in pairs)
    if not weight > 0.0:
        return 0.0
    mean = sum(float(c @ centre) for centre, c in pairs) / weight
    left = sum(float(c @ np.square(centre - mean)) for centre, c in pairs)
    whole = sum(float(c @ np.square(centre)) for centre, c in pairs)
    return mean if left <= _FAR * whole and np.isfinite(mean) else 0.0


def shifts(design: Design) -> tuple[FloatArray, int] | None:
    """Return ``t``, an entry of every column that is far from zero, 0 for others; None if none is.

    Beside it is how many digits float64 holds of what the entries of such a column differ by, at
    least. A sample of the rows decides. Of constant columns nothing would be left: they stay.
    """
    n, p = design.shape
    if n < 2 or not shiftable(design):
        return None
    many = min(n, _ROWS)
    rows = np.arange(many) * (n - 1) // (many - 1)
    seen, full = design.restrict_rows(rows), np.arange(p)
    if isinstance(seen, SparseDesign):  # a column that is far from zero has no zeros
        stored = np.bincount(seen.array.tocoo().col, minlength=p)
        full = np.flatnonzero(stored == rows.size)
        seen = seen.restrict(full)
    sample = np.asarray(seen.to_array(), dtype=np.float64)
    low, high = sample.min(axis=0), sample.max(axis=0)
    apart = high - low  # infinite or NaN where the data are, which is found and said later
    far = (apart > 0.0) & np.isfinite(apart)
    far &= apart <= _FAR * np.minimum(np.abs(low), np.abs(high))
    if isinstance(design, SparseDesign):
        held = cast("SparseDesign", design.restrict(full[far]))
        far[far] = np.diff(held.array.tocsc().indptr) == n
    if not far.any():
        return None
    steps = apart[far] / np.spacing(np.maximum(np.abs(low), np.abs(high)))[far]
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
