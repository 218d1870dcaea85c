"""Second derivatives of losses with several outputs, or that couple observations."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np

from sparsemodel.interfaces import (
    Design,
    FloatArray,
    IntArray,
    SparseRegression,
    Term,
    TwiceDifferentiable,
)

_AT_ONCE = 2**17
"""Entries of columns times outputs in one product of matrices: as many as stay in the cache."""
_SPARSE = 0.25
"""Share of stored entries below which products of sparse columns are quicker."""


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
