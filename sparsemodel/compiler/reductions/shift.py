"""Take large offsets, and targets far from zero, back where an intercept can."""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from sparsemodel.compiler.reductions.base import Reduction
from sparsemodel.interfaces import FloatArray, SparseRegression, Term
from sparsemodel.interfaces.numeric import least_squares

_LARGE = 20.0
"""Offsets from which exponentials at zero coefficients are no guide: exp(20) is 5e8."""

_FAR = 100.0
"""Targets are far from zero at so many times their typical distance from the median."""


@final
class Shift(Reduction):
    r"""Write the free coordinates as :math:`b = b_0 + b'` so that ``A b_0`` cancels the offsets.

    From zero, Newton's method on an exponential of 700 leads nowhere: its steps are of length
    one, or the values overflow; and tolerances relative to the gradient at zero mean nothing.
    Nor do those relative to the size of the predictions where a loss of the residual,
    :math:`\rho(u - y)`, has targets around 1e12: ``A b_0`` is subtracted from these, and no digit
    of the residuals is lost. Applies to losses other than quadratics whose free coordinates have
    neither ridge nor bounds. Gradients in the predictions, and so dual points, stay the same.
    """

    def __init__(self, shift: FloatArray) -> None:
        self._shift = shift

    @staticmethod
    def find(form: SparseRegression) -> Shift | None:
        """Return the reduction, or None where nothing is large or nothing cancels it."""
        free = form.sparsity.free
        bounded = form.box is not None and np.any(
            np.isfinite(form.box.lower[free]) | np.isfinite(form.box.upper[free])
        )
        if not free.size or form.region is not None or bounded:
            return None
        if np.any(form.ridge[free] > 0.0) or form.traits.quadratic:
            return None
        if not any(_offset_is_large(term) or _target_is_far(term) for term in form.terms):
            return None
        columns, wanted = [], []
        for term in form.terms:
            counted = term.weights > 0.0
            columns.append(term.design.restrict(free).to_array()[counted])
            wanted.append(_cancelling(term, form.shape)[counted])
        matrix, sought = np.concatenate(columns), np.concatenate(wanted)
        found = _fitted(matrix, sought)
        left = np.abs(sought - matrix @ found)
        if not np.median(left) < 0.5 * np.median(np.abs(sought)):
            return None
        shift = np.zeros(form.shape)
        shift[free] = found
        return Shift(shift)

    def apply(self, form: SparseRegression) -> SparseRegression:
        return replace(form, terms=tuple(self._moved(term) for term in form.terms))

    def _moved(self, term: Term) -> Term:
        moved = term.design.matvec(self._shift)
        if term.traits.of_difference:
            target = term.target if term.offset is None else term.target - term.offset
            return replace(term, target=target - moved, offset=None)
        return replace(term, offset=moved if term.offset is None else moved + term.offset)

    def restore(self, x: FloatArray) -> FloatArray:
        return x + self._shift

    def carry(self, x: FloatArray) -> FloatArray:
        return x - self._shift

    def carry_gradient(self, gradient: FloatArray) -> None:
        """Return None: the gradient at another point says nothing about that at zero."""

    def describe(self) -> str:
        return "large offsets taken back (coordinates that are always in absorb them)"


def _offset_is_large(term: Term) -> bool:
    return term.offset is not None and float(np.abs(term.offset).max(initial=0.0)) > _LARGE


def _target_is_far(term: Term) -> bool:
    """Return whether the residuals at zero say little but where the targets are."""
    counted = term.weights > 0.0
    if not term.traits.of_difference or term.target.ndim > 1 or not counted.any():
        return False
    target = term.target[counted]
    middle = float(np.median(target))
    return abs(middle) > _FAR * float(np.median(np.abs(target - middle)))


def _cancelling(term: Term, shape: tuple[int, ...]) -> FloatArray:
    """Return the predictions that cancel the offset of a term, and reach the target it moves."""
    zero = np.zeros((term.design.shape[0], *shape[1:]))
    target = term.target if term.traits.of_difference else zero
    return target if term.offset is None else target - term.offset


def _fitted(matrix: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return coefficients that come near what is wanted: its median where a constant does.

    An outlier does not move that, and subtracting it from targets nearby is exact.
    """
    if matrix.shape[1] == 1 and wanted.ndim == 1 and np.all(matrix == 1.0):
        return np.array([np.median(wanted)])
    return np.asarray(least_squares(matrix, wanted))
