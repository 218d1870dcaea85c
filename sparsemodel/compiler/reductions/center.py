"""Centre the columns when there is a free intercept."""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from sparsemodel.compiler.reductions.near import ByIntercept, absorbing, beside
from sparsemodel.designs import TransformedDesign
from sparsemodel.interfaces import Design, FloatArray, IntArray, SparseRegression


@final
class Center(ByIntercept):
    r"""Subtract the (weighted) mean from every column:
    :math:`A w + b = (A - 1 m^\top) w + (b + m^\top w)`.

    The intercept ``b`` absorbs the shift, so the problem is the same, and the columns no longer
    compete with the intercept. Applies to one-term problems whose intercept has neither ridge
    nor bounds. The means stay implicit: the data are not touched.
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
        means[index] = found / term.weights.sum()
        return cls(intercept, means)

    def apply(self, form: SparseRegression) -> SparseRegression:
        index, design = _features(form, self._intercept)
        centred = self._stacked(index, TransformedDesign(design, means=self._t[index]))
        return replace(form, terms=(replace(form.terms[0], design=centred),))

    def carry_gradient(self, gradient: FloatArray) -> FloatArray:
        # The intercept's gradient is the sum of the residuals.
        total = gradient[self._intercept]
        return gradient - (self._t * total if gradient.ndim == 1 else np.outer(self._t, total))

    def describe(self) -> str:
        return "columns centred (the intercept absorbs their means)"


def _features(form: SparseRegression, intercept: int) -> tuple[IntArray, Design]:
    """Return the columns beside the intercept, and their coordinates."""
    found = beside(form.terms[0].design, intercept)
    if not isinstance(found, tuple):  # guarded by find()
        raise TypeError("Center applies to a design stacked with an intercept.")
    return found
