"""Centre the columns when there is a free intercept."""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from sparsemodel.compiler.reductions.base import Reduction
from sparsemodel.designs import OnesDesign, StackedDesign, TransformedDesign
from sparsemodel.interfaces import Design, FloatArray, IntArray, SparseRegression


@final
class Center(Reduction):
    r"""Subtract the (weighted) mean from every column:
    :math:`A w + b = (A - 1 m^\top) w + (b + m^\top w)`.

    The intercept ``b`` absorbs the shift, so the problem is the same, and the columns no longer
    compete with the intercept. Applies to one-term problems whose intercept has neither ridge
    nor bounds. The means stay implicit: the data are not touched.
    """

    def __init__(self, intercept: int, means: FloatArray, index: IntArray) -> None:
        self._intercept = intercept
        self._means = means
        self._index = index

    @staticmethod
    def find(form: SparseRegression) -> int | None:
        """Return the coordinate of a free intercept, or None when there is none to use."""
        if len(form.terms) != 1 or form.region is not None:
            return None
        design = form.terms[0].design
        if not isinstance(design, StackedDesign):
            return None
        found = [int(index[0]) for index, block in design.blocks if isinstance(block, OnesDesign)]
        others = [index for index, block in design.blocks if not isinstance(block, OnesDesign)]
        if len(found) != 1 or len(others) != 1 or found[0] in others[0]:
            return None
        intercept = found[0]
        if intercept not in form.sparsity.free or form.ridge[intercept] > 0.0:
            return None
        box = form.box
        if box is not None and np.any(
            np.isfinite(box.lower[intercept]) | np.isfinite(box.upper[intercept])
        ):
            return None
        return intercept

    @classmethod
    def from_form(
        cls, form: SparseRegression, intercept: int, sums: FloatArray | None = None
    ) -> Center:
        """Return the reduction; without the ``sums``, ``A.T @ c``, it costs this product."""
        term = form.terms[0]
        index, design = features(term.design)
        found = design.rmatvec(term.weights) if sums is None else sums[index]
        return cls(intercept, found / term.weights.sum(), index)

    def apply(self, form: SparseRegression) -> SparseRegression:
        term = form.terms[0]
        index, design = features(term.design)
        centred: tuple[IntArray, Design] = (index, TransformedDesign(design, means=self._means))
        ones = (np.array([self._intercept]), OnesDesign(design.shape[0]))
        stacked = StackedDesign(design.shape[0], form.sparsity.size, (centred, ones))
        return replace(form, terms=(replace(term, design=stacked),))

    def restore(self, x: FloatArray) -> FloatArray:
        out = x.copy()
        out[self._intercept] -= self._means @ x[self._index]
        return out

    def carry(self, x: FloatArray) -> FloatArray:
        out = x.copy()
        out[self._intercept] += self._means @ x[self._index]
        return out

    def carry_gradient(self, gradient: FloatArray) -> FloatArray:
        # The intercept's gradient is the sum of the residuals.
        out = gradient.copy()
        total = gradient[self._intercept]
        shift = self._means * total if gradient.ndim == 1 else np.outer(self._means, total)
        out[self._index] -= shift
        return out

    def describe(self) -> str:
        return "columns centred (the intercept absorbs their means)"


def features(design: Design) -> tuple[IntArray, Design]:
    """Return the columns beside an intercept, and their coordinates."""
    if not isinstance(design, StackedDesign):  # guarded by find()
        raise TypeError("Center applies to a design stacked with an intercept.")
    return next((i, block) for i, block in design.blocks if not isinstance(block, OnesDesign))
