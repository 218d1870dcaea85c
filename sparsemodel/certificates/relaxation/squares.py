r"""Squared losses on a growing set of columns: Gram matrices computed once for every pair."""

from __future__ import annotations

from typing import cast, final

import numpy as np

from sparsemodel.certificates.relaxation.smooth import LossSmooth, QuadraticSmooth, Smooth, schur
from sparsemodel.interfaces import (
    Access,
    Curved,
    Design,
    FloatArray,
    IntArray,
    SparseRegression,
)
from sparsemodel.numerics.budget import Budget, inverse_cost
from sparsemodel.numerics.objectives.hessians import is_sparse, weighted_gram
from sparsemodel.threads import cross_product

LIMIT = 6000
"""Columns up to which the Gram matrix is formed."""


@final
class Squares:
    r"""A sum of quadratic losses, :math:`\frac12 \sum c_i (x_i^T w + o_i - y_i)^2` and linear ones.

    Columns once read are kept (``n |S|`` numbers), and so are their inner products. Columns that
    are in no set are not read.
    """

    def __init__(self, form: SparseRegression) -> None:
        self._set = np.empty(0, dtype=np.intp)
        self._matrix, self._linear = np.zeros((0, 0)), np.zeros((0, *form.shape[1:]))
        self._columns: tuple[FloatArray, ...] = ()
        self.constant: float = form.constant
        self._shape = form.shape
        # Terms without curvature (linear ones) have no share in the Gram matrix.
        self._curved: list[tuple[Design, FloatArray, FloatArray]] = []
        self._straight: list[tuple[Design, FloatArray]] = []
        for term in form.terms:
            start = np.zeros((term.design.shape[0], *form.shape[1:]))
            start = start if term.offset is None else start + term.offset
            gradient = term.loss.gradient(start, term.target, term.weights)
            self.constant += term.loss.total(start, term.target, term.weights)
            second = cast("Curved", term.loss).second_derivative(start, term.target)
            if second.any():
                self._curved.append((term.design, term.weights * second, gradient))
            else:
                self._straight.append((term.design, gradient))
        self._apart = any(is_sparse(d) or Access.DEVICE in d.access for d, *_ in self._curved)

    @property
    def linear(self) -> FloatArray:
        """Return minus the gradient at zero, :math:`A^T c (y - o)` for one squared loss."""
        terms = [(design, g) for design, _, g in self._curved] + self._straight
        return -sum((design.rmatvec(g) for design, g in terms), np.zeros(self._shape))

    def affordable(self, index: IntArray, deadline: float | None) -> bool:
        """Return whether columns can be read, and multiplied on ``index`` before the deadline."""
        if not all(Access.COLUMNS in design.access for design, *_ in self._curved):
            return False
        new = np.setdiff1d(index, self._set, assume_unique=True).size
        costs = [2.0 * design.shape[0] * index.size * new for design, *_ in self._curved]
        if self._apart:
            costs = [design.restrict(index).gram_operations for design, *_ in self._curved]
        return Budget(deadline).fits(*costs, inverse_cost(index.size))

    def on(self, index: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the Gram matrix and ``linear`` on ``index`` (sorted).

        Columns of the last set are reused.
        """
        if np.array_equal(index, self._set):
            return self._matrix, self._linear
        linear = np.zeros((index.size, *self._shape[1:]))
        for design, g in self._straight:
            linear -= design.restrict(index).rmatvec(g)
        if self._apart:  # columns are not kept: sums are quicker, or they stay where they are
            matrix = np.zeros((index.size, index.size))
            for design, c, g in self._curved:
                some = design.restrict(index)
                matrix += weighted_gram(some, c)
                linear -= some.rmatvec(g)
        else:
            matrix = self._extended(index)
            for rows, (_, _, g) in zip(self._columns, self._curved, strict=True):
                linear -= rows @ g
        self._set, self._matrix, self._linear = index.copy(), matrix, linear
        return matrix, linear

    def _extended(self, index: IntArray) -> FloatArray:
        """Return the Gram matrix on ``index``, and keep its columns."""
        common = np.isin(index, self._set, assume_unique=True)
        before = np.searchsorted(self._set, index[common])
        out = np.zeros((index.size, index.size))
        out[np.ix_(common, common)] = self._matrix[np.ix_(before, before)]
        columns = []
        for i, (design, c, _) in enumerate(self._curved):
            # Rows of the transpose are contiguous: cheap to gather, fast to multiply.
            rows = np.empty((index.size, design.shape[0]))
            if self._columns:
                rows[common] = self._columns[i][before]
            rows[~common] = design.restrict(index[~common]).to_array().T
            out[:, ~common] += cross_product(rows.T, (rows[~common] * c).T)
            columns.append(rows)
        out[np.ix_(~common, common)] = out[np.ix_(common, ~common)].T
        self._columns = tuple(columns)
        return out


def smooth_part(
    form: SparseRegression,
    work: IntArray,
    free: tuple[FloatArray, ...],
    b: FloatArray | None,
    at: FloatArray,
    squares: Squares | None,
    eliminated: IntArray,
    deadline: float | None,
) -> Smooth:
    """Return the losses on a working set: by Gram matrix where that is cheap, else by products.

    No Gram matrix is begun that would not be there before the deadline.
    """
    rows = sum(t.design.shape[0] for t in form.terms)
    if squares is None or work.size > max(4000, rows) or work.size > LIMIT:
        return LossSmooth(form, work, free if eliminated.size else (), b, at)
    index = np.union1d(work, eliminated)
    if not squares.affordable(index, deadline):
        return LossSmooth(form, work, free if eliminated.size else (), b, at)
    h, linear = squares.on(index)
    keep, out = np.searchsorted(index, work), np.searchsorted(index, eliminated)
    try:
        q, r, extra, _, _ = schur(h, linear, keep, out)
    except np.linalg.LinAlgError:
        return LossSmooth(form, work, free if eliminated.size else (), b, at)
    return QuadraticSmooth(q, r, squares.constant + float(extra[0]))
