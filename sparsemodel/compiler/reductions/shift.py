"""Take large offsets back where an intercept can."""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from sparsemodel.compiler.reductions.base import Reduction
from sparsemodel.interfaces import FloatArray, SparseRegression, Term

_LARGE = 20.0
"""Offsets from which exponentials at zero coefficients are no guide: exp(20) is 5e8."""


@final
class Shift(Reduction):
    r"""Write the free coordinates as :math:`b = b_0 + b'` so that ``A b_0`` cancels the offsets.

    From zero, Newton's method on an exponential of 700 leads nowhere: its steps are of length
    one, or the values overflow; and tolerances relative to the gradient at zero mean nothing.
    Applies to losses other than quadratics whose free coordinates have neither ridge nor bounds.
    """

    def __init__(self, shift: FloatArray) -> None:
        self._shift = shift

    @staticmethod
    def find(form: SparseRegression) -> Shift | None:
        """Return the reduction, or None where the offsets are small or nothing cancels them."""
        free = form.sparsity.free
        offsets = [term.offset for term in form.terms if term.offset is not None]
        largest = max((float(np.abs(o).max(initial=0.0)) for o in offsets), default=0.0)
        bounded = form.box is not None and np.any(
            np.isfinite(form.box.lower[free]) | np.isfinite(form.box.upper[free])
        )
        if not free.size or not largest > _LARGE or form.region is not None or bounded:
            return None
        if np.any(form.ridge[free] > 0.0) or form.traits.quadratic:
            return None
        columns = [term.design.restrict(free).to_array() for term in form.terms]
        wanted = [_cancelling(term, form.shape) for term in form.terms]
        shift = np.zeros(form.shape)
        shift[free] = np.linalg.lstsq(np.concatenate(columns), np.concatenate(wanted), rcond=None)[
            0
        ]
        left = [w - a @ shift[free] for a, w in zip(columns, wanted, strict=True)]
        smaller = max(float(np.abs(rest).max(initial=0.0)) for rest in left) < 0.5 * largest
        return Shift(shift) if smaller else None

    def apply(self, form: SparseRegression) -> SparseRegression:
        terms = []
        for term in form.terms:
            moved = term.design.matvec(self._shift)
            offset = moved if term.offset is None else moved + term.offset
            terms.append(replace(term, offset=offset))
        return replace(form, terms=tuple(terms))

    def restore(self, x: FloatArray) -> FloatArray:
        return x + self._shift

    def carry(self, x: FloatArray) -> FloatArray:
        return x - self._shift

    def carry_gradient(self, gradient: FloatArray) -> None:
        """Return None: the gradient at another point says nothing about that at zero."""

    def describe(self) -> str:
        return "large offsets taken back (coordinates that are always in absorb them)"


def _cancelling(term: Term, shape: tuple[int, ...]) -> FloatArray:
    """Return the predictions that cancel the offset of a term."""
    target = np.zeros((term.design.shape[0], *shape[1:]))
    return target if term.offset is None else target - term.offset


__all__ = ["Shift"]
