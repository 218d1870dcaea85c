"""Centre the columns when there is a free intercept."""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from sparsemodel.compiler.reductions.shift_columns import ByIntercept, absorbing, beside
from sparsemodel.designs import DenseDesign, TransformedDesign
from sparsemodel.interfaces import Access, Design, FloatArray, IntArray, SparseRegression
from sparsemodel.numerics.objectives.columns import written_out


@final
class Center(ByIntercept):
    r"""Subtract the (weighted) mean from every column:
    :math:`A w + b = (A - 1 m^\top) w + (b + m^\top w)`.

    The intercept ``b`` absorbs the shift, so the problem is the same, and the columns no longer
    compete with the intercept. Applies to one-term problems whose intercept has neither ridge
    nor bounds. The data are not touched: the means stay implicit, but for a small array, which
    is copied.
    """

    @staticmethod
    def find(form: SparseRegression) -> int | None:
        """Return the coordinate of a free intercept, or None when there is none to use."""
        if len(form.terms) != 1 or form.region is not None:
            return None
        intercept = absorbing(form)
        found = None if intercept is None else beside(form.terms[0].design, intercept)
        return intercept if isinstance(found, tuple) else None

    @classmethod
    def from_form(cls, form: SparseRegression, intercept: int, sums: FloatArray | None) -> Center:
        """Return the reduction; without the ``sums``, ``A.T @ c``, it costs this product."""
        term, means = form.terms[0], np.zeros(form.sparsity.size)
        index, design = _features(form, intercept)
        found = design.rmatvec(term.weights) if sums is None else sums[index]
        means[index] = _exact_where_constant(design, term.weights, found / term.weights.sum())
        return cls(intercept, means)

    def apply(self, form: SparseRegression) -> SparseRegression:
        index, design = _features(form, self._intercept)
        centred: Design = self._stacked(index, TransformedDesign(design, means=self._t[index]))
        # The searches ask whether data are sparse, and how often files are read.
        if isinstance(design, DenseDesign) and not design.streamed:
            centred = written_out(centred)
        return replace(form, terms=(replace(form.terms[0], design=centred),))

    def carry_gradient(self, gradient: FloatArray) -> FloatArray:
        # The intercept's gradient is the sum of the residuals.
        total = gradient[self._intercept]
        return gradient - (self._t * total if gradient.ndim == 1 else np.outer(self._t, total))

    def describe(self) -> str:
        return "columns centred (the intercept absorbs their means)"


def _exact_where_constant(design: Design, weights: FloatArray, means: FloatArray) -> FloatArray:
    """Return the means, with those of constant columns as exact as their entries.

    Otherwise columns of rounding are left, and methods that bring columns to one size fit them.
    Means of data in single precision may be off by that; data in files or on workers are not read
    again. Of operators, see :func:`~sparsemodel.designs.remote.grams.centred`.
    """
    if Access.ROWS not in design.access:
        return means
    far = design.streamed or Access.DISTRIBUTED in design.access
    row = design.restrict_rows(np.array([int(np.argmax(weights))])).to_array()[0]
    unit = np.finfo(np.float64 if far else np.float32).eps
    near = np.flatnonzero(np.abs(row - means) <= 4.0 * unit * len(weights) * np.abs(means))
    if near.size and not far:
        columns = design.restrict(near).to_array()[weights > 0.0]
        near = near[np.all(columns == row[near], axis=0)]
    out = means.copy()
    out[near] = row[near]
    return out


def _features(form: SparseRegression, intercept: int) -> tuple[IntArray, Design]:
    """Return the columns beside the intercept, and their coordinates."""
    found = beside(form.terms[0].design, intercept)
    if not isinstance(found, tuple):  # guarded by find()
        raise TypeError("Center applies to a design stacked with an intercept.")
    return found
