"""Hessians of regressions: in one reading of files, by rows, and of losses with several outputs."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np

from sparsemodel.designs import StackedDesign
from sparsemodel.designs.dense import DenseDesign
from sparsemodel.designs.remote.foreign import is_remote
from sparsemodel.interfaces import (
    Curved,
    Design,
    FloatArray,
    IntArray,
    SparseRegression,
    Term,
    TwiceDifferentiable,
)
from sparsemodel.threads import cross_product

BLOCK = 2**21
"""Entries of a file, or of rows or columns of a product, that are computed together (16 MB)."""
CACHED = 2**18
"""Entries of rows in memory that are multiplied together (2 MB): they are weighted, and put
together from parts, in the cache. Two thirds of the time with an intercept."""
_AT_ONCE = 2**17
"""Entries of columns times outputs in one product of matrices: as many as stay in the cache."""
_SPARSE = 0.25
"""Share of stored entries below which products of sparse columns are quicker."""


def derivatives(
    form: SparseRegression, support: IntArray, values: FloatArray, *, hessian: bool
) -> tuple[tuple[FloatArray, ...], FloatArray, FloatArray | None]:
    """Return predictions, gradient and, if asked for, the Hessian on a support.

    For vectors of coordinates and losses that act on observations one by one.
    """
    found = tuple(np.empty(term.design.shape[0]) for term in form.terms)
    gradient = np.zeros(form.ridge.size)
    gradient[support] = form.ridge[support] * values
    own = np.diag(form.ridge[support])
    for term, z in zip(form.terms, found, strict=True):
        for rows, entries in term.design.row_blocks(max(1, BLOCK // gradient.size)):
            chosen = np.ascontiguousarray(entries[:, support])
            z[rows] = chosen @ values
            u = z[rows] if term.offset is None else z[rows] + term.offset[rows]
            target, weights = term.target[rows], term.weights[rows]
            gradient += entries.T @ term.loss.gradient(u, target, weights)
            if hessian:
                h = weights * cast("Curved", term.loss).second_derivative(u, target)
                own += chosen.T @ (h[:, None] * chosen)
    return found, gradient, own if hessian else None


def hessian_rows(
    form: SparseRegression, curvatures: tuple[FloatArray, ...], coordinates: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return rows of the Hessian with these weights of the observations, and its diagonal."""
    p = form.ridge.size
    out, diagonal = np.zeros((coordinates.size, p)), form.ridge.copy()
    for term, h in zip(form.terms, curvatures, strict=True):
        for rows, block in term.design.row_blocks(max(1, BLOCK // p)):
            out += cross_product(h[rows, None] * block[:, coordinates], block)
            diagonal += h[rows] @ np.square(block)
    out[np.arange(coordinates.size), coordinates] += form.ridge[coordinates]
    return out, diagonal


def is_sparse(design: Design) -> bool:
    """Return whether stored entries are so few that sums of products of dense rows take longer.

    Not where columns are sums of several blocks' first: products of these would cancel.
    """
    n, p = design.shape
    apart = not (isinstance(design, StackedDesign) and design.overlapping)
    return apart and design.gram_operations < 1.0 * n * p * p


def weighted_gram(design: Design, h: FloatArray) -> FloatArray:
    """Return ``A.T @ diag(h) @ A`` in float64, for weights of at least 0."""
    p = design.shape[1]
    if isinstance(design, StackedDesign) and is_remote(design):
        return design.gram(h)  # where the entries are
    stacked, inner = isinstance(design, StackedDesign), getattr(design, "inner", design)
    if is_sparse(design) or not isinstance(inner, (DenseDesign, StackedDesign)):
        # Columns that are taken out are in float64; beside each other they are multiplied as they
        # are.
        return (design.restrict(np.arange(p)) if stacked else design).gram(h)
    out: FloatArray | None = None
    uniform = bool(h.size) and bool((h == h[0]).all())
    # As many rows as columns: the block is no larger than the result, which is added to less often.
    for rows, block in design.row_blocks(max(256, p, CACHED // max(p, 1))):
        own = cross_product(block if uniform else np.sqrt(h[rows])[:, None] * block)
        out = own if out is None else np.add(out, own, out=out)
    if out is None:
        return np.zeros((p, p))
    return np.multiply(out, float(h[0]), out=out) if uniform else out


def hessian_of_outputs(
    form: SparseRegression,
    margins: tuple[FloatArray, ...],
    columns: tuple[Design, ...],
    support: IntArray,
) -> FloatArray:
    """Return the Hessian over ``x[support].ravel()``, given each term's columns there."""
    m = form.outputs
    out = np.zeros((support.size, m, support.size, m))
    for term, u, design in zip(form.terms, margins, columns, strict=True):
        out += _hessian_of_term(term, u, design, m)
    total = out.reshape(support.size * m, -1)
    total = (total + total.T) / 2.0
    total[np.diag_indices_from(total)] += np.repeat(form.ridge[support], m)
    return total


def _hessian_of_term(term: Term, u: FloatArray, design: Design, m: int) -> FloatArray:
    """Return the Hessian of a term in ``q`` columns with ``m`` outputs, ``(q, m, q, m)``.

    Blocks of losses by observation are weighted Gram matrices, one for each pair of outputs, or
    all of them two products of matrices.
    """
    loss, q = cast("TwiceDifferentiable", term.loss), design.shape[1]
    product = partial(loss.hessian_product, u, term.target, term.weights)
    out = np.zeros((q, m, q, m))
    if not term.traits.by_observation and u.ndim == 1:
        out[:, 0, :, 0] = design.rmatvec(product(design.to_array()))
        return out
    shares = loss.hessian_shares(u, term.target, term.weights) if u.ndim == 2 else None
    dense = design.entries >= _SPARSE * u.shape[0] * q
    if shares is not None and (dense or u.size * q <= _AT_ONCE):
        return _hessian_of_shares(shares, design)
    for b in range(m):
        unit = np.zeros((u.shape[0], m))
        unit[:, b] = 1.0
        if term.traits.by_observation:
            weights = product(unit.reshape(u.shape)).reshape(-1, m)
            for a in np.flatnonzero(weights[:, : b + 1].any(axis=0)):
                out[:, a, :, b] = design.gram(np.ascontiguousarray(weights[:, a]))
                out[:, b, :, a] = out[:, a, :, b]
            continue
        for j, column in enumerate(design.to_array().T):
            out[:, :, j, b] = design.rmatvec(product(column[:, None] * unit))
    return out


def _hessian_of_shares(d: FloatArray, design: Design) -> FloatArray:
    """Return the Hessian from blocks ``diag(d[i]) - outer(d[i], d[i]) / d[i].sum()``."""
    m, q = d.shape[1], design.shape[1]
    root = np.sqrt(d.sum(axis=1))
    split = np.ascontiguousarray((d / np.where(root > 0.0, root, 1.0)[:, None]).T)
    coupled, own = np.zeros((m * q, m * q)), np.zeros((m * q, q))
    for rows, block in design.row_blocks(max(_AT_ONCE // max(q * m, 1), 1)):
        scaled = (split[:, None, rows] * np.ascontiguousarray(block.T)).reshape(m * q, -1)
        coupled -= scaled @ scaled.T
        own += scaled @ (root[rows, None] * block)
    out, every = coupled.reshape(m, q, m, q), np.arange(m)
    out[every, :, every, :] += own.reshape(m, q, q)
    return out.transpose(1, 0, 3, 2)
