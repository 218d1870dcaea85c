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
"""Entries of columns with all of their weights up to which one product forms all blocks; above,
one by one is quicker."""


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

    Blocks of losses by observation are weighted Gram matrices, one for each pair of outputs; all
    of them one product of matrices where they are small.
    """
    loss, q = cast("TwiceDifferentiable", term.loss), design.shape[1]
    product = partial(loss.hessian_product, u, term.target, term.weights)
    out = np.zeros((q, m, q, m))
    if not term.traits.by_observation and u.ndim == 1:
        out[:, 0, :, 0] = design.rmatvec(product(design.to_array()))
        return out
    if term.traits.by_observation and u.size * q * m <= _AT_ONCE:
        blocks = loss.hessian_blocks(u, term.target, term.weights)
        columns = design.to_array()[:, :, None] * blocks.reshape(len(u), 1, -1)
        grams = design.rmatvec(columns.reshape(len(u), -1))
        return grams.reshape(q, q, m, m).transpose(0, 2, 1, 3)
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
