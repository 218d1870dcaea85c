r"""What squared losses need to know of their data, from one reading: sums of squares and products.

With the columns :math:`Z = (A - 1 s^\top, Y - 1 t^\top)` of all terms and the weights ``c``,

.. math:: M = \sum_i c_i z_i z_i^\top

decides the losses of every ``x``. The shifts ``s, t`` are entries of the data, and zero unless a
column of ones can take them up: squares then lose no digits to means, and constant columns vanish.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np

from sparsemodel.designs import OnesDesign, StackedDesign
from sparsemodel.interfaces import BoolArray, Design, FloatArray, IntArray, SparseRegression, Term
from sparsemodel.numerics.budget import gram_cost
from sparsemodel.threads import cross_product, each, keep_to_one

_ROWS = 1024
"""Rows that are multiplied together; sums of sums keep rounding errors small."""

_SUMS = 64
"""Products that are added up before their sum is added to the total."""

_BLOCK_ENTRIES, _CACHED, _NARROW = 2**20, 2**16, 128
"""Entries that are read at a time (8 MB), and of memory those that stay in the cache, up to so many
columns: of more, threads share the parts."""

_SAMPLE = 31
"""Rows of which the medians are the shifts; an odd number, so that they are entries."""

_ROUNDING = 64.0 * np.finfo(np.float64).eps
"""Share of a square that is left when a mean is taken out, up to which nothing is left."""

Watch = Callable[[int, slice, FloatArray], object]
"""Called with the term, the rows and their entries (all columns, float64) as they are read."""

Over = Callable[[Callable[[SparseRegression], FloatArray]], FloatArray]
"""Adds up what a function finds in parts of the rows."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums of squares and products of the columns of squared losses and of their targets."""

    products: FloatArray
    """``M``, shape ``(p + q, p + q)`` for ``q`` targets."""
    shift: FloatArray
    """``(s, t)``."""
    intercept: int | None
    """The column of ones, which is in ``M`` as it is; None where there is none."""
    targets: int
    depth: int
    """Roundings that an entry of ``M`` has gone through, relative to the sizes of its columns."""
    aim: float
    """Largest share of a column of targets that taking offsets from it may have rounded."""
    constant: BoolArray
    """Columns with nothing but their shift."""

    @classmethod
    def of(
        cls, terms: tuple[Term, ...], watch: Watch | None = None, *, over: Over | None = None
    ) -> Moments:
        """Read the data of squared losses once: ``n (p + q)^2`` operations.

        ``over`` adds up a function of forms with these terms wherever their rows are.
        """
        p = terms[0].design.shape[1]
        intercept = ones_column(terms)
        aims = [_aim(term) for term in terms]
        q = aims[0].shape[1]
        shift = np.zeros(p + q)
        if intercept is not None:
            shift[:p] = _typical(terms[0].design)
            shift[p:] = np.quantile(aims[0], 0.5, axis=0, method="lower")
            shift[intercept] = 0.0
        total, depth = np.zeros((p + q, p + q)), _ROWS + _SUMS + len(terms) + 16
        constant = np.ones(p + q, dtype=bool)
        if over is not None:
            total, constant[:] = over(partial(_products, shift=shift)), False
        for number, (term, aim) in enumerate(zip(terms, aims, strict=True) if over is None else ()):
            depth += -(-aim.shape[0] // (_ROWS * _SUMS))
            _add(total, constant, number, term, aim, shift, watch)
        moved = any(t.offset is not None or t.squares()[0] is not t.target for t in terms)
        share = _share(total, aims, terms) if moved else 0.0
        return cls(total, shift, intercept, q, depth, share, constant)

    @property
    def size(self) -> int:
        """Return ``p``."""
        return int(self.shift.size) - self.targets

    @property
    def finite(self) -> bool:
        """Return whether the data are finite and no square overflows."""
        return bool(np.all(np.isfinite(self.products)))

    def rows(
        self, *, less: float = 0.0, residual: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        r"""Return ``(A, Y, c, constant)`` of at most ``p + q + 1`` rows with these moments.

        Parameters
        ----------
        less
            Share of every square that is left out: the loss of these rows is then smaller.
        residual
            Whether rows stand for what no ``x`` explains; else that is the ``constant``.
        """
        gram = self.products.copy()
        gram[np.diag_indices_from(gram)] *= 1.0 - less
        means, weight, j = np.zeros(self.shift.size), 0.0, self.intercept
        if j is not None and gram[j, j] > 0.0:
            weight = float(gram[j, j])
            means = gram[j] / weight
            whole = np.diag(gram).copy()
            gram -= weight * np.outer(means, means)
            left = np.diag(gram) <= _ROUNDING * whole
            gram[left], gram[:, left] = 0.0, 0.0
        body, constant = _factor(gram, self.size, residual=residual)
        if not weight:
            return *self._split(body), np.ones(body.shape[0]), constant
        body = _away_from_ones(np.vstack([np.zeros(self.shift.size), body]))
        body *= np.sqrt(body.shape[0] / weight)
        body += means + self.shift
        if j is not None:
            body[:, j] = 1.0
        return *self._split(body), np.full(body.shape[0], weight / body.shape[0]), constant

    def _split(self, body: FloatArray) -> tuple[FloatArray, FloatArray]:
        return body[:, : self.size], body[:, self.size :]


def ones_column(terms: tuple[Term, ...]) -> int | None:
    """Return the column of ones beside the features of a single term, None where there is none."""
    design = terms[0].design
    if len(terms) != 1 or not isinstance(design, StackedDesign):
        return None
    ones = [index for index, block in design.blocks if isinstance(block, OnesDesign)]
    others = [index for index, block in design.blocks if not isinstance(block, OnesDesign)]
    if len(ones) != 1 or any(ones[0][0] in index for index in others):
        return None
    return int(ones[0][0])


def _aim(term: Term) -> FloatArray:
    """Return what the products with the design are compared with, one column a target."""
    centre = term.squares()[0]
    aim = centre if term.offset is None else centre - term.offset
    return aim.reshape(aim.shape[0], -1)


def _share(total: FloatArray, aims: list[FloatArray], terms: tuple[Term, ...]) -> float:
    """Return how much rounding a target by a unit changes it, as a share of its shifted size."""
    sizes = sum(term.squares()[1] @ np.square(aim) for term, aim in zip(terms, aims, strict=True))
    left = np.diag(total)[-aims[0].shape[1] :]
    shares = np.sqrt(np.divide(sizes, left, out=np.zeros_like(left), where=left > 0.0))
    return float(shares.max(initial=0.0)) * float(np.finfo(np.float64).eps)


def _typical(design: Design) -> FloatArray:
    """Return the medians of a few rows."""
    places = np.unique(np.linspace(0, design.shape[0] - 1, _SAMPLE).astype(np.intp))
    sample = design.restrict_rows(places).to_array()
    found = np.quantile(sample, 0.5, axis=0, method="lower")
    return np.where(np.isfinite(found), found, 0.0)


def _products(form: SparseRegression, shift: FloatArray) -> FloatArray:
    """Return the sums of squares and products of a form's rows."""
    total, constant = np.zeros((shift.size, shift.size)), np.ones(shift.size, dtype=bool)
    for number, term in enumerate(form.terms):
        _add(total, constant, number, term, _aim(term), shift, None)
    return total


def _add(
    total: FloatArray,
    constant: BoolArray,
    number: int,
    term: Term,
    aim: FloatArray,
    shift: FloatArray,
    watch: Watch | None,
) -> None:
    """Add a term's sums of squares and products to ``total``, and strike what is not constant."""
    weights = term.squares()[1]
    width, even = shift.size, bool(weights.size and np.all(weights == weights[0]))
    near = width <= _NARROW and not term.design.streamed
    step = _ROWS * max(1, (_CACHED if near else _BLOCK_ENTRIES) // (_ROWS * width))
    some, count = np.zeros_like(total), 0
    for rows, entries in term.design.row_blocks(step):
        if watch is not None:
            watch(number, rows, entries)
        quiet = np.flatnonzero(constant)
        there = aim[rows], None if even else np.sqrt(weights[rows])
        part = partial(_part, entries, *there, shift, quiet)
        starts = range(0, entries.shape[0], _ROWS)
        for found, moving in each(part, starts, operations=gram_cost(entries.shape[0], width)):
            constant[quiet] &= ~moving
            some += found
            count += 1
            if count % _SUMS == 0:
                total += weights[0] * some if even else some
                some[:] = 0.0
    total += weights[0] * some if even else some


def _part(
    entries: FloatArray,
    aim: FloatArray,
    roots: FloatArray | None,
    shift: FloatArray,
    quiet: IntArray,
    start: int,
) -> tuple[FloatArray, BoolArray]:
    """Return a part's sums of squares and products, and which columns ``quiet`` are not shifts."""
    rows, p = slice(start, start + _ROWS), entries.shape[1]
    block = np.empty((entries[rows].shape[0], shift.size))
    np.subtract(entries[rows], shift[:p], out=block[:, :p])
    np.subtract(aim[rows], shift[p:], out=block[:, p:])
    moving = block[0, quiet] != 0.0
    rest = np.flatnonzero(~moving)
    moving[rest] = np.any(block[:, quiet[rest]], axis=0)
    if roots is not None:
        block *= roots[rows, None]
    return cross_product(block), moving


def _factor(gram: FloatArray, p: int, *, residual: bool) -> tuple[FloatArray, float]:
    """Return rows with these products, at least one, and half of what they leave of the targets.

    Cholesky with pivoting on the first ``p`` columns, scaled to one, so that they may be singular.
    """
    from scipy.linalg import solve_triangular
    from scipy.linalg.lapack import dpstrf

    keep_to_one()
    sizes = np.sqrt(np.maximum(np.diag(gram), 0.0))
    sizes[sizes == 0.0] = 1.0
    scaled = gram / np.outer(sizes, sizes)
    upper, pivots, rank, _ = dpstrf(scaled[:p, :p], lower=0, tol=-1.0)
    rank = max(1, int(rank))
    order = pivots - 1
    body = np.zeros((rank, gram.shape[0]))
    body[:, order] = np.triu(upper)[:rank]
    if upper[0, 0] > 0.0:  # else there are no data at all
        cross = scaled[order[:rank], p:]
        body[:, p:] = solve_triangular(upper[:rank, :rank], cross, trans="T")
    left = scaled[p:, p:] - body[:, p:].T @ body[:, p:]
    own = np.maximum(np.diag(left), 0.0) * np.square(sizes[p:])
    body *= sizes
    if not residual:
        return body, 0.5 * float(own.sum())
    values, vectors = np.linalg.eigh(left)
    more = np.zeros((left.shape[0], gram.shape[0]))
    more[:, p:] = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * sizes[p:]
    return np.vstack([body, more]), 0.0


def _away_from_ones(body: FloatArray) -> FloatArray:
    """Return rows with the same products and columns that sum to zero; the first row is zero.

    A reflection that takes the first unit vector to a multiple of ones.
    """
    n = body.shape[0]
    if n == 1:
        return body
    v = np.full(n, -1.0 / np.sqrt(n))
    v[0] += 1.0
    v /= np.linalg.norm(v)
    return np.asarray(body - 2.0 * np.outer(v, v @ body))
