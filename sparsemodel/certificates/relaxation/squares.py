r"""Squared losses on a growing set of columns: Gram matrices computed once for every pair."""

from __future__ import annotations

from typing import final

import numpy as np

from sparsemodel.certificates.extraction import weighted_gram
from sparsemodel.certificates.relaxation.smooth import LossSmooth, QuadraticSmooth, Smooth, schur
from sparsemodel.designs import SparseDesign
from sparsemodel.interfaces import FloatArray, IntArray, SparseRegression

LIMIT = 6000
"""Columns up to which the Gram matrix is formed."""


@final
class Squares:
    r"""The quadratic :math:`\frac12 \sum c_i (x_i^T w + o_i - y_i)^2` on the columns asked for.

    Columns once read are kept (``n |S|`` numbers), and so are their inner products.
    """

    def __init__(self, form: SparseRegression) -> None:
        self._form = form
        self._set = np.empty(0, dtype=np.intp)
        self._matrix = np.zeros((0, 0))
        self._columns: tuple[FloatArray, ...] = ()
        self.linear: FloatArray = np.zeros(form.shape)
        """:math:`A^T c (y - o)`."""
        self.constant: float = form.constant
        for term in form.terms:
            aim = term.target if term.offset is None else term.target - term.offset
            weighted = aim * (term.weights if aim.ndim == 1 else term.weights[:, None])
            self.linear += term.design.rmatvec(weighted)
            self.constant += 0.5 * float(np.vdot(weighted, aim))

    def gram(self, index: IntArray) -> FloatArray:
        """Return the Gram matrix on ``index`` (sorted); columns of the last set are reused."""
        if np.array_equal(index, self._set):
            return self._matrix
        form = self._form
        if any(isinstance(t.design, SparseDesign) for t in form.terms):
            parts = [weighted_gram(t.design.restrict(index), t.weights) for t in form.terms]
            self._matrix, self._set = np.sum(parts, axis=0), index.copy()
            return self._matrix
        common = np.isin(index, self._set, assume_unique=True)
        before = np.searchsorted(self._set, index[common])
        out = np.zeros((index.size, index.size))
        out[np.ix_(common, common)] = self._matrix[np.ix_(before, before)]
        columns = []
        for i, term in enumerate(form.terms):
            # Rows of the transpose are contiguous: cheap to gather, fast to multiply.
            rows = np.empty((index.size, term.design.shape[0]))
            if self._columns:
                rows[common] = self._columns[i][before]
            rows[~common] = term.design.restrict(index[~common]).to_array().T
            block = rows @ (rows[~common] * term.weights).T
            out[:, ~common] += block
            columns.append(rows)
        out[np.ix_(~common, common)] = out[np.ix_(common, ~common)].T
        self._set, self._matrix, self._columns = index.copy(), out, tuple(columns)
        return out


def smooth_part(
    form: SparseRegression,
    work: IntArray,
    free: tuple[FloatArray, ...],
    b: FloatArray | None,
    squares: Squares | None,
    eliminated: IntArray,
) -> Smooth:
    """Return the losses on a working set: by Gram matrix where that is cheap, else by products."""
    rows = sum(t.design.shape[0] for t in form.terms)
    if squares is None or work.size > max(4000, rows) or work.size > LIMIT:
        return LossSmooth(form, work, free if eliminated.size else (), b)
    index = np.union1d(work, eliminated)
    h = squares.gram(index)
    keep, out = np.searchsorted(index, work), np.searchsorted(index, eliminated)
    try:
        q, r, extra, _, _ = schur(h, squares.linear[index], keep, out)
    except np.linalg.LinAlgError:
        return LossSmooth(form, work, free if eliminated.size else (), b)
    return QuadraticSmooth(q, r, squares.constant + float(extra[0]))


__all__ = ["LIMIT", "Squares", "smooth_part"]
