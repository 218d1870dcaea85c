"""Curvature over all coordinates: blocks of Hessian columns, and the diagonal."""

from __future__ import annotations

from typing import cast

import numpy as np

from sparsemodel.interfaces import (
    Access,
    Curved,
    FloatArray,
    IntArray,
    Loss,
    Objective,
    Point,
    Term,
    TwiceDifferentiable,
)
from sparsemodel.numerics.objectives.hessians import BLOCK, CACHED
from sparsemodel.numerics.objectives.regression import (
    RegressionObjective,
    curvatures_of,
    margins,
    without_faint,
)

_STRAIGHT = 0.02
"""Share of the most that a loss can be curved by, below which its curvature says little."""


def cheap_columns(objective: Objective) -> bool:
    """Return whether a few columns of every design cost a few columns, not full products."""
    return isinstance(objective, RegressionObjective) and all(
        Access.COLUMNS in term.design.access for term in objective.form.terms
    )


def hessian_columns(
    objective: Objective,
    at: Point,
    support: IntArray,
    directions: FloatArray,
    rows: IntArray | None = None,
) -> FloatArray:
    """Return ``H @ V`` for ``V`` that is ``directions`` (one a column) on ``support``.

    Shape ``(p, q)`` for ``directions`` of shape ``(len(support), q)``; of a regression also only
    some ``rows`` of it. For a regression this is
    one product of matrices, which costs a fraction of ``q`` products with vectors. The Hessian
    of a matrix variable must be the same for all of its columns (squared losses): then this is
    that common ``p x p`` matrix applied to the directions, and never formed.
    """
    q = directions.shape[1]
    if not isinstance(objective, RegressionObjective):
        out = np.empty((objective.shape[0], q))
        for j in range(q):
            out[:, j] = objective.full_hessian_product(at, support, directions[:, j])
        return out if rows is None else out[rows]
    parts = _curved(objective, at, support, directions)
    objective.work.passes += 0.5 * q * (1.0 if rows is None else rows.size / objective.shape[0])
    return _rows_of(objective, parts, support, directions, rows)


def hessian_square_norms(
    objective: Objective, at: Point, support: IntArray, directions: FloatArray
) -> FloatArray:
    """Return the square norms of the rows of ``H @ V``, shape ``(p,)``.

    See :func:`hessian_columns`. Where the columns of the data have fewer entries than ``H @ V``,
    as those of texts, blocks of coordinates are multiplied: with 50,000 words and a support of
    100, writing to large new arrays took four times as long as the products.
    """
    p, q = objective.shape[0], directions.shape[1]
    if isinstance(objective, RegressionObjective):
        designs = [term.design for term in objective.form.terms]
        if not any(d.streamed for d in designs) and sum(d.entries for d in designs) <= p * q:
            parts, step = _curved(objective, at, support, directions), max(1, CACHED // max(q, 1))
            objective.work.passes += 0.5 * q
            blocks = [np.arange(first, min(first + step, p)) for first in range(0, p, step)]
            found = (_rows_of(objective, parts, support, directions, rows) for rows in blocks)
            return np.concatenate([np.einsum("ij,ij->i", block, block) for block in found])
    out, width = np.zeros(p), max(1, BLOCK // max(p, 1))
    for first in range(0, q, width):
        block = hessian_columns(objective, at, support, directions[:, first : first + width])
        out += np.einsum("ij,ij->i", block, block)
    return out


def _curved(
    objective: RegressionObjective, at: Point, support: IntArray, directions: FloatArray
) -> list[FloatArray]:
    """Return the curvatures of each term's observations times ``A @ V``."""
    out = []
    for term, z, design in zip(
        objective.form.terms, at.state, objective.columns(support), strict=True
    ):
        products = design.matvec(directions)
        if z.ndim == 1:
            loss = cast("TwiceDifferentiable", term.loss)
            products = loss.hessian_product(margins(term, z), term.target, term.weights, products)
        else:
            curved = cast("Curved", term.loss)
            h = term.weights * curved.second_derivative(margins(term, z), term.target)
            products *= h[:, None]
        out.append(products)
    return out


def _rows_of(
    objective: RegressionObjective,
    parts: list[FloatArray],
    support: IntArray,
    directions: FloatArray,
    rows: IntArray | None,
) -> FloatArray:
    """Return some rows of ``H @ V``, None for all, from what :func:`_curved` returns."""
    form, q = objective.form, directions.shape[1]
    every = np.arange(objective.shape[0]) if rows is None else rows
    inside = np.isin(support, every, assume_unique=True)
    own = support[inside]
    out = np.zeros((every.size, q))
    out[np.searchsorted(every, own)] = form.ridge[own, None] * directions[inside]
    for term, products in zip(form.terms, parts, strict=True):
        columns = term.design if rows is None else term.design.restrict(rows)
        # A product of matrices with a single column is slower than one with a vector.
        out += columns.rmatvec(products[:, 0])[:, None] if q == 1 else columns.rmatvec(products)
    return out


def secants_of(term: Term, z: FloatArray) -> FloatArray:
    """Return the weights of observations in the Hessian; secants where losses are nearly straight.

    :math:`|l'(u)| / |u - y|` is the curvature of the parabola above the loss that touches it and
    has its minimum at the target. Without it outliers of a Huber loss, and what lies on the wrong
    side of a smoothed hinge, say nothing of how far a step leads.
    """
    h, most = curvatures_of(term, z), term.traits.upper
    if term.traits.lower > _STRAIGHT * most:
        return h
    if not 0.0 < most < np.inf or np.sum(h) > _STRAIGHT * most * np.sum(term.weights):
        return h  # linear terms have no minimum
    u, y = margins(term, z), term.target
    pull, away = np.abs(cast("Loss", term.loss).derivative(u, y)), np.abs(u - y)
    np.divide(term.weights * pull, away, out=h, where=(away > 0.0) & (h == 0.0))
    return h


def curvatures_at(objective: RegressionObjective, at: Point) -> tuple[FloatArray | None, ...]:
    """Return :func:`secants_of` each term, None where it has no curvature by observation.

    Kept in the memory of the point.
    """
    if at.memo.curvatures is None:
        at.memo.curvatures = tuple(
            secants_of(term, z) if term.traits.curved else None
            for term, z in zip(objective.form.terms, at.state, strict=True)
        )
    return at.memo.curvatures


def full_diagonal(
    objective: Objective, at: Point, *, for_ranking: bool = False
) -> FloatArray | None:
    """Return the diagonal of the Hessian over all coordinates, or None where that is expensive.

    Shape ``(p,)``; for a matrix variable, that of one column of it. One pass over a stored
    design; None for designs that only have products and for losses that couple observations.
    ``for_ranking`` leaves out observations whose curvature is negligible beside the largest, and
    does not read their rows.
    """
    if not cheap_columns(objective):
        return None
    form = cast("RegressionObjective", objective).form
    out = form.ridge.copy()
    for term, z in zip(form.terms, at.state, strict=True):
        if not term.traits.curved:
            return None
        weights = secants_of(term, z)
        out += term.design.column_square_norms(without_faint(weights) if for_ranking else weights)
    objective.work.passes += 0.5
    return out


def drifted(objective: Objective, rows_at: Point, point: Point, most: float) -> bool:
    """Return whether curvatures at ``point`` differ from those of ``rows_at`` by more than a share.

    The differences of all observations together, relative to all curvatures together.
    """
    if objective.quadratic:
        return False
    if not isinstance(objective, RegressionObjective):
        return True
    both = curvatures_at(objective, rows_at), curvatures_at(objective, point)
    for term, old, new in zip(objective.form.terms, *both, strict=True):
        if term.traits.quadratic:
            continue
        if old is None or new is None:
            return True
        if float(np.abs(new - old).sum()) > most * float(np.abs(old).sum()):
            return True
    return False
