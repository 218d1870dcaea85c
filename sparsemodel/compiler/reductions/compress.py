"""Replace many observations by few that have the same squared loss."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import final

import numpy as np

from sparsemodel.compiler.reductions.base import Reduction
from sparsemodel.compiler.services import distributed
from sparsemodel.designs import (
    ChunkedDesign,
    DenseDesign,
    OnesDesign,
    StackedDesign,
    TransformedDesign,
)
from sparsemodel.designs.elsewhere.distributed import DistributedDesign
from sparsemodel.interfaces import Design, FloatArray, SparseRegression, Term
from sparsemodel.losses import SquaredLoss
from sparsemodel.numerics.budget import cholesky_cost, gram_cost
from sparsemodel.numerics.moments import Moments

TALL = 4
"""Observations per coordinate from which compressing is worth a thought."""

_SMALL = 2**17
"""Entries (1 MB) below which nothing is worth the trouble."""

_COORDINATES_PER_PASS = 12
"""Forming the Gram matrix of p columns takes the time of about p/38 passes (p = 170, float64, one
core; twice that against passes in float32), and a search reads several rows of it in the time of
one. With 300 columns and up to 14 units problems that end soon take 0.4 times as long without, and
those that do not 1.15 times."""
_OF_FILES = 20
"""The same of files and workers, which are read as a whole again and again."""

_EXPECTED_PASSES = 10
"""Passes that a solve takes at least, besides those that grow with k."""

LARGEST = 4000
"""Coordinates up to which the square matrix is small (128 MB)."""


@final
class Compress(Reduction):
    r"""Compress ``n`` observations of squared losses into at most ``p + 1``, one reading of all.

    The rows have the same sums of squares and products, weights included
    (:class:`~sparsemodel.numerics.moments.Moments`), and so the same objective up to a constant:

    .. math:: \tfrac12 \|A x + o - y\|_C^2 = \tfrac12 \|B x - z\|_D^2 + \mathrm{constant}.

    A column of ones stays one, so that what holds for data with an intercept holds for them.
    Later passes cost ``O(p^2)`` instead of ``O(n p)``. Predictions are no longer those of
    the data: dual points are computed again from coordinates (:attr:`keeps_predictions`).
    """

    keeps_predictions = False

    def __init__(self, rows: int, term: Term, constant: float) -> None:
        self._rows = rows
        self._term = term
        self._constant = constant

    @staticmethod
    def pays(form: SparseRegression) -> bool:
        """Return whether the losses allow it and it saves more passes than it costs."""
        p = form.sparsity.size
        rows = sum(term.design.shape[0] for term in form.terms)
        expected = _EXPECTED_PASSES + min(form.sparsity.budget, p)
        if rows * p < _SMALL or rows < TALL * p:
            return False
        far = distributed(form) or any(term.design.streamed for term in form.terms)
        if p > min(LARGEST, (_OF_FILES if far else _COORDINATES_PER_PASS) * expected):
            return False
        if not (form.traits.square and all(_dense(term.design) for term in form.terms)):
            return False
        if not distributed(form):
            return True
        from sparsemodel.numerics.objectives.distributed import DistributedObjective

        return DistributedObjective.fits(form)

    @staticmethod
    def cost(form: SparseRegression) -> float:
        """Return the operations of :meth:`from_form`."""
        p = form.sparsity.size
        rows = sum(term.design.shape[0] for term in form.terms)
        return gram_cost(rows, p) + cholesky_cost(p)

    @classmethod
    def from_form(cls, form: SparseRegression) -> Compress | None:
        """Return the reduction, None where data are not finite or their squares overflow."""
        over = None
        if distributed(form):
            from sparsemodel.numerics.objectives.distributed import over_blocks

            over = partial(over_blocks, form)
        moments = Moments.of(form.terms, over=over)
        if not moments.finite:
            return None
        entries, targets, weights, constant = moments.rows(residual=False)
        target = targets if form.matrix else targets[:, 0]
        rows = sum(term.design.shape[0] for term in form.terms)
        design = small_design(entries, moments.intercept)
        term = Term(design, SquaredLoss(), target, weights, stands_for=rows)
        return cls(rows, term, constant)

    @property
    def shrinkage(self) -> float:
        return self._term.design.shape[0] / self._rows

    def apply(self, form: SparseRegression) -> SparseRegression:
        return replace(form, terms=(self._term,), constant=form.constant + self._constant)

    def restore(self, x: FloatArray) -> FloatArray:
        return x

    def carry(self, x: FloatArray) -> FloatArray:
        return x

    def carry_gradient(self, gradient: FloatArray) -> FloatArray:
        return gradient

    def describe(self) -> str:
        few = self._term.design.shape[0]
        return f"{self._rows} observations compressed to {few} with the same squared loss"


def small_design(entries: FloatArray, intercept: int | None, sums: int | None = None) -> Design:
    """Return the design of compressed rows, their column of ones apart, that stand for ``sums``."""
    n, p = entries.shape
    if intercept is None:
        return DenseDesign(entries, sums=sums)
    others = np.delete(np.arange(p), intercept)
    features = DenseDesign(np.ascontiguousarray(entries[:, others]), sums=sums)
    return StackedDesign(n, p, ((others, features), (np.array([intercept]), OnesDesign(n))))


def _dense(design: Design) -> bool:
    """Return whether the entries are stored, dense, to be read in blocks of rows."""
    if isinstance(design, TransformedDesign):
        return _dense(design.inner)
    if isinstance(design, StackedDesign):
        return all(_dense(block) for _, block in design.blocks)
    return isinstance(design, (ChunkedDesign, DenseDesign, DistributedDesign, OnesDesign))
