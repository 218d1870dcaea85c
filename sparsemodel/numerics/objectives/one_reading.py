"""What one reading of files brings: all derivatives at a point, many rows of a Hessian."""

from __future__ import annotations

from typing import cast

import numpy as np

from sparsemodel.designs import StackedDesign
from sparsemodel.designs.dense import DenseDesign
from sparsemodel.designs.elsewhere.foreign import is_elsewhere
from sparsemodel.interfaces import Curved, Design, FloatArray, IntArray, SparseRegression
from sparsemodel.threads import cross_product

_ENTRIES = 2**21
"""Entries of a file that are looked at together (16 MB)."""
_CACHED = 2**18
"""Entries of rows in memory that are multiplied together (2 MB): they are weighted, and put
together from parts, in the cache. Two thirds of the time with an intercept."""


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
        for rows, entries in term.design.row_blocks(max(1, _ENTRIES // gradient.size)):
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
        for rows, block in term.design.row_blocks(max(1, _ENTRIES // p)):
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
    if isinstance(design, StackedDesign) and is_elsewhere(design):
        return design.gram(h)  # where the entries are
    stacked, inner = isinstance(design, StackedDesign), getattr(design, "inner", design)
    if is_sparse(design) or not isinstance(inner, (DenseDesign, StackedDesign)):
        # Columns that are taken out are in float64; beside each other they are multiplied as they
        # are.
        return (design.restrict(np.arange(p)) if stacked else design).gram(h)
    out: FloatArray | None = None
    uniform = bool(h.size) and bool((h == h[0]).all())
    # As many rows as columns: the block is no larger than the result, which is added to less often.
    for rows, block in design.row_blocks(max(256, p, _CACHED // max(p, 1))):
        own = cross_product(block if uniform else np.sqrt(h[rows])[:, None] * block)
        out = own if out is None else np.add(out, own, out=out)
    if out is None:
        return np.zeros((p, p))
    return np.multiply(out, float(h[0]), out=out) if uniform else out
