r"""What squared losses of some of the observations need to know of the data, for all parts at once.

The sums of squares and products of all observations, less those of the ones that are left out, are
those of the others: all folds together cost one more reading of the data. With more columns than
rows the rows themselves are what is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from sparsemodel.interfaces import Access, FloatArray, IntArray, SparseRegression, Term
from sparsemodel.numerics.along_k.whitened import Quadratic
from sparsemodel.numerics.moments import ones_column

_WIDE = 1024
"""Columns from which rows are kept, where there are fewer of them, and no matrix is formed."""
_MOST = 2**27
"""Numbers of such rows and matrices at most (a gigabyte)."""
_DENSE = 1.0 / 3.0
"""Share of entries that are stored from which a block of rows is written out."""
_CANCELLED = 1e-3
"""Share of a column's square that has to be left for the difference of two sums to be taken."""


def has_squares(form: SparseRegression) -> bool:
    """Return whether the losses are squares, of data that are at hand."""
    square = form.traits.quadratic and not any(term.traits.affine for term in form.terms)
    return square and fits_in_memory(form)


def fits_in_memory(form: SparseRegression) -> bool:
    """Return whether rows and columns are read at their own cost, and what is kept of them fits."""
    if any(term.design.access != Access.MEMORY for term in form.terms):
        return False
    n, p = sum(term.target.shape[0] for term in form.terms), form.sparsity.size
    return (n if keeps_rows(form) else p) * p <= _MOST


def keeps_rows(form: SparseRegression) -> bool:
    """Return whether rows are kept in place of a matrix of all columns."""
    n, p = sum(term.target.shape[0] for term in form.terms), form.sparsity.size
    return n < p and p >= _WIDE and all(map(is_dense, form.terms))


def is_dense(term: Term) -> bool:
    """Return whether most entries of a term's rows are stored."""
    n, p = term.design.shape
    return bool(term.design.entries >= _DENSE * n * p)


@final
class SquaredSums:
    """The data of squared losses, for parts of the observations.

    Parameters
    ----------
    form
        With :func:`has_squares`; its ridge, limit and weights are not looked at.
    """

    def __init__(self, form: SparseRegression) -> None:
        self._terms = form.terms
        self._p = form.sparsity.size
        self._outputs = form.outputs if form.matrix else 1
        self._ones = ones_column(form.terms)
        if self._ones is not None and (
            self._ones not in form.sparsity.free or form.ridge[self._ones] != 0.0
        ):
            self._ones = None
        self._rows = keeps_rows(form)
        self._shift, self._level = self._means()
        self._blocks = [_rows_of(term, None) - self._shift for term in form.terms if self._rows]
        self._whole: list[tuple[FloatArray, FloatArray]] | None = None

    def part(self, weights: Sequence[FloatArray]) -> Quadratic:
        """Return the quadratic of observations that weigh ``weights``, one array a term."""
        if self._rows:
            return self._of_rows(weights)
        if self._whole is None:
            self._whole = [self._sums(term, term.weights, None) for term in self._terms]
        gram = np.zeros((self._p, self._p))
        linear = np.zeros((self._p, self._outputs))
        for term, c, whole in zip(self._terms, weights, self._whole, strict=True):
            H, b = self._of_term(term, c, whole)
            gram += H
            linear += b
        return Quadratic(linear, gram=gram)

    def coordinates(self, x: FloatArray) -> FloatArray:
        """Return points ``(K, p, m)`` of a part's quadratic in the coordinates of the form."""
        if self._ones is not None:
            x[:, self._ones] += self._level - self._shift @ x
        return x

    def _means(self) -> tuple[FloatArray, FloatArray]:
        """Return what is taken from columns and targets: weighted means beside a column of ones."""
        shift, level = np.zeros(self._p), np.zeros(self._outputs)
        if self._ones is None or (not self._rows and not is_dense(self._terms[0])):
            return shift, level
        term = self._terms[0]
        share = term.weights / term.weights.sum()
        shift = term.design.rmatvec(share)
        shift[self._ones] = 0.0
        return shift, np.asarray(share @ _aim(term)[0])

    def _of_term(
        self, term: Term, c: FloatArray, whole: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sums with weights ``c``: those of all less the others', or their own."""
        used, there = c > 0.0, term.weights > 0.0
        factor = c.sum() / term.weights[used].sum() if used.any() else 0.0
        left = np.flatnonzero(there & ~used)
        alike = np.allclose(c[used], factor * term.weights[used], rtol=1e-13, atol=0.0)
        if alike and left.size < np.count_nonzero(used):
            H, b = self._sums(term, term.weights, left)
            kept = whole[0] - H
            if np.all(kept.diagonal() >= _CANCELLED * whole[0].diagonal()):
                return factor * kept, factor * (whole[1] - b)
        return self._sums(term, c, None if used.all() else np.flatnonzero(used))

    def _sums(
        self, term: Term, c: FloatArray, rows: IntArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return ``A' C A`` and ``A' C y`` over some rows, both of shifted columns."""
        aim, steep = _aim(term)
        h = steep * c if rows is None else steep * c[rows]
        aim = (aim if rows is None else aim[rows]) - self._level
        if not is_dense(term):
            design = term.design if rows is None else term.design.restrict_rows(rows)
            return design.gram(h), design.rmatvec(h[:, None] * aim)
        block = _rows_of(term, rows)
        block -= self._shift
        b = block.T @ (h[:, None] * aim)
        block *= np.sqrt(h)[:, None]
        return block.T @ block, b

    def _of_rows(self, weights: Sequence[FloatArray]) -> Quadratic:
        rows, linear = [], np.zeros((self._p, self._outputs))
        for term, c, block in zip(self._terms, weights, self._blocks, strict=True):
            aim, steep = _aim(term)
            used = np.flatnonzero(c)
            h = steep * c[used]
            some = np.sqrt(h)[:, None] * block[used]
            linear += some.T @ (np.sqrt(h)[:, None] * (aim[used] - self._level))
            rows.append(some)
        return Quadratic(linear, rows=np.vstack(rows))


def _aim(term: Term) -> tuple[FloatArray, float]:
    """Return what products with the design are compared with, ``(n, m)``, and the curvature."""
    centre = term.squares()[0]
    aim = centre if term.offset is None else centre - term.offset
    steep = float(getattr(term.loss, "steepness", 1.0))
    return aim.reshape(aim.shape[0], -1), steep


def _rows_of(term: Term, rows: IntArray | None) -> FloatArray:
    """Return some rows written out, in memory of their own."""
    design = term.design if rows is None else term.design.restrict_rows(rows)
    return np.array(design.to_array(), dtype=np.float64)
