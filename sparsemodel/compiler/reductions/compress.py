"""Replace many observations by few that have the same squared loss."""

from __future__ import annotations

from dataclasses import replace
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

TALL = 4
"""Observations per coordinate from which compressing is worth a thought."""

_SMALL = 2**17
"""Entries (1 MB) below which nothing is worth the trouble."""

_COORDINATES_PER_PASS = 20
"""Forming the Gram matrix of p columns takes the time of about p/38 passes (p = 170, float64, one
core; twice that against passes in float32), so it must save about p/20 of them."""

_EXPECTED_PASSES = 10
"""Passes that a solve takes at least, besides those that grow with k."""

_LARGEST = 4000
"""Coordinates up to which the square matrix is small (128 MB)."""

_BLOCK_ENTRIES = 2**20
"""Entries of a block of rows (8 MB)."""


@final
class Compress(Reduction):
    r"""Compress ``n`` observations of squared losses into at most ``p``, with the same objective.

    With :math:`G = A^\top C A`, :math:`q = A^\top C (y - o)`, summed over the terms in one reading
    of the data, and :math:`R^\top R = G` (Cholesky with pivoting, so ``G`` may be singular),

    .. math:: \tfrac12 \|A x + o - y\|_C^2
              = \tfrac12 \|R x - R^{-\top} q\|^2 + \mathrm{constant}.

    Later passes cost ``O(p^2)`` instead of ``O(n p)``. Applied last, to columns that are centred
    and scaled, so that the squares lose no digits to means. Predictions are no longer those of
    the data: dual points are computed afresh from coordinates (:attr:`keeps_predictions`).
    """

    keeps_predictions = False

    def __init__(self, rows: int, rank: int, term: Term, constant: float) -> None:
        self._rows = rows
        self._rank = rank
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
        if p > min(_LARGEST, _COORDINATES_PER_PASS * expected):
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
    def from_form(cls, form: SparseRegression) -> Compress:
        """Return the reduction; one reading of the data, ``n p^2`` operations."""
        p = form.sparsity.size
        if distributed(form):
            from sparsemodel.numerics.objectives.distributed import over_blocks

            sums = over_blocks(form, _products)
        else:
            sums = _products(form)
        gram, cross, square = sums[:p, :p], sums[:p, p:], float(np.trace(sums[p:, p:]))
        factor, target = _factor(gram, cross)
        constant = max(0.0, 0.5 * (square - float(np.vdot(target, target))))
        reduced = Term(
            DenseDesign(factor),
            SquaredLoss(),
            target if form.matrix else target[:, 0],
            np.ones(factor.shape[0]),
        )
        total = sum(term.design.shape[0] for term in form.terms)
        return cls(total, factor.shape[0], reduced, constant)

    def rescaled(self, factors: FloatArray) -> Compress:
        """Return the reduction for columns that were multiplied by ``factors`` before."""
        design = DenseDesign(self._term.design.to_array() * factors)
        return Compress(self._rows, self._rank, replace(self._term, design=design), self._constant)

    @property
    def shrinkage(self) -> float:
        return self._rank / self._rows

    def apply(self, form: SparseRegression) -> SparseRegression:
        return replace(form, terms=(self._term,), constant=form.constant + self._constant)

    def restore(self, x: FloatArray) -> FloatArray:
        return x

    def carry(self, x: FloatArray) -> FloatArray:
        return x

    def carry_gradient(self, gradient: FloatArray) -> FloatArray:
        return gradient

    def describe(self) -> str:
        return f"{self._rows} observations compressed to {self._rank} with the same squared loss"


def _products(form: SparseRegression) -> FloatArray:
    """Return sums of squares and products of all columns and targets, in one reading."""
    p, width = form.sparsity.size, form.outputs if form.matrix else 1
    out = np.zeros((p + width, p + width))
    for term in form.terms:
        centre, weights = term.squares()
        y = centre if term.offset is None else centre - term.offset
        root = np.sqrt(weights)
        for rows, block in term.design.row_blocks(max(1, _BLOCK_ENTRIES // p)):
            both = np.column_stack([block, y[rows].reshape(block.shape[0], -1)])
            both *= root[rows, None]
            out += both.T @ both
    return out


def _factor(gram: FloatArray, cross: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``R`` with ``R'R = gram`` (at least one row) and ``R^{-T} cross``."""
    from scipy.linalg import solve_triangular
    from scipy.linalg.lapack import dpstrf

    p = gram.shape[0]
    upper, pivots, rank, _ = dpstrf(gram, lower=0, tol=-1.0)
    rank = max(1, int(rank))
    upper = np.triu(upper)[:rank]
    order = pivots - 1
    factor = np.zeros((rank, p))
    factor[:, order] = upper
    if upper[0, 0] == 0.0:  # no data at all
        return factor, np.zeros((rank, cross.shape[1]))
    target = solve_triangular(upper[:, :rank], cross[order[:rank]], trans="T")
    return factor, np.asarray(target)


def _dense(design: Design) -> bool:
    """Return whether the entries are stored, dense, to be read in blocks of rows."""
    if isinstance(design, TransformedDesign):
        return _dense(design.inner)
    if isinstance(design, StackedDesign):
        return all(_dense(block) for _, block in design.blocks)
    return isinstance(design, (ChunkedDesign, DenseDesign, DistributedDesign, OnesDesign))


__all__ = ["TALL", "Compress"]
