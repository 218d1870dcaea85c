"""The Hessians behind restricted constants: at points, and bounds that hold everywhere."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sparsemodel.certificates.arithmetic.products import adjoint_product, matrix_free, predictions
from sparsemodel.certificates.dual_bounds.diagonal_shift import LIMIT
from sparsemodel.certificates.theory.constants import Curvatures
from sparsemodel.interfaces import Access, Curved, FloatArray, IntArray, SparseRegression
from sparsemodel.numerics import top_k
from sparsemodel.numerics.budget import budget, eigenvalue_cost, gram_cost
from sparsemodel.numerics.objectives.hessians import weighted_gram

_POOL = 1000
"""Columns that are looked at where there are too many for a Gram matrix of all."""


def objections(form: SparseRegression) -> tuple[str, ...]:
    """Return why restricted constants have no meaning for ``form``, or cannot be computed."""
    out = []
    if form.matrix:
        out.append("the variable is a matrix")
    if form.sparsity.groups is not None:
        out.append("groups are counted, not coordinates")
    sparsity = form.sparsity
    if sparsity.limits or not sparsity.greedy:
        out.append(
            "there are limits on parts of what is counted, costs or a hierarchy; the theorems are "
            "about one limit on all: declare `sm.card(w) <= k` alone, with the k of the solution, "
            "to see them"
        )
    if form.sparsity.priced:
        out.append("the cardinality has a price in the objective")
    if form.box is not None or form.region is not None:
        out.append("there are constraints beside the cardinality")
    if any(matrix_free(t.design) or Access.COLUMNS not in t.design.access for t in form.terms):
        out.append("the columns of a design cannot be read")
    coupled = sorted({t.loss.name for t in form.terms if not t.traits.by_observation})
    if coupled:
        out.append(f"{', '.join(coupled)} couples the observations")
    return tuple(out)


def smooth(form: SparseRegression) -> bool:
    """Return whether every loss has second derivatives (almost everywhere)."""
    return form.traits.curved


def curvatures(form: SparseRegression, x: FloatArray) -> Curvatures:
    """Return the Hessians at zero and at ``x``, and what bounds those at all other points.

    The free coordinates are minimised out: what is left are Schur complements.
    """
    counted = np.flatnonzero(form.sparsity.counted)
    size, rows = form.sparsity.size, sum(t.design.shape[0] for t in form.terms)
    whole = size <= LIMIT and budget().fits(4.0 * gram_cost(rows, size))
    pool = counted if whole else _pool(form, x, counted, rows)
    quadratic = form.traits.quadratic
    # With free coordinates only a point that is optimal in them has the Hessian computed here.
    alone = quadratic or form.sparsity.free.size > 0
    points = [x] if alone else [np.zeros(form.shape), x]
    bounds = [(t.traits.lower, t.traits.upper) for t in form.terms]
    attained = [_hessian(form, pool, _weights(form, point)) for point in points]
    lower = upper = None
    if whole and quadratic:
        lower = upper = attained[0]
    elif whole:
        lower = _hessian(form, pool, [low * t.weights for t, (low, _) in _with(form, bounds)])
        if all(np.isfinite(high) for _, high in bounds):
            upper = _hessian(form, pool, [high * t.weights for t, (_, high) in _with(form, bounds)])
    diagonal = form.ridge[counted].copy()
    for term, (_, high) in _with(form, bounds):
        squares = term.design.column_square_norms(term.weights)[counted]
        diagonal += np.where(squares > 0.0, high, 0.0) * np.where(squares > 0.0, squares, 1.0)
    ridge = form.ridge[counted]
    sizes = form.ridge[pool].copy()
    for term in form.terms:
        sizes += term.design.column_square_norms(term.weights)[pool]
    extremes = budget().fits(2.0 * eigenvalue_cost(pool.size))
    support = np.flatnonzero(np.isin(pool, np.flatnonzero(x)))
    return Curvatures(
        tuple(attained),
        lower,
        upper,
        diagonal,
        sizes * max(1.0, *(high if np.isfinite(high) else 1.0 for _, high in bounds)),
        float(ridge.min(initial=np.inf)) if ridge.size else 0.0,
        rows,
        (support,) if support.size else (),
        extremes,
    )


def row_smoothness(form: SparseRegression, level: int) -> float:
    r"""Return :math:`L = \max_i` of the restricted smoothness of ``f_i``, where f is their mean.

    :math:`f_i = n c_i \ell_i(x_i^T w) + \frac\lambda2 \|w\|^2`; the row's part is the curvature
    times the sum of its ``level`` largest squares.
    """
    rows = sum(t.design.shape[0] for t in form.terms)
    counted = form.sparsity.counted
    largest = 0.0
    for term in form.terms:
        high = term.traits.upper
        for index, block in term.design.row_blocks(max(1, 2**22 // max(term.design.shape[1], 1))):
            squares = np.square(np.asarray(block, dtype=np.float64)[:, counted])
            p = squares.shape[1]
            if level < p:
                squares = np.partition(squares, p - level, axis=1)[:, p - level :]
            sums = squares.sum(axis=1) * term.weights[index] * rows
            largest = max(largest, float(sums.max(initial=0.0)) * high if sums.any() else 0.0)
    return largest + float(form.ridge[counted].max(initial=0.0))


def _with(form: SparseRegression, bounds: list[tuple[float, float]]):  # type: ignore[no-untyped-def]
    return zip(form.terms, bounds, strict=True)


def _weights(form: SparseRegression, x: FloatArray) -> list[FloatArray]:
    """Return the weighted second derivatives of every term at ``x``."""
    support = np.flatnonzero(x)
    out = []
    for term in form.terms:
        z, _ = predictions(term.design, x, support)
        z = z if term.offset is None else z + term.offset
        loss = cast("Curved", term.loss)
        out.append(term.weights * loss.second_derivative(z, term.target))
    return out


def _hessian(form: SparseRegression, pool: IntArray, weights: list[FloatArray]) -> FloatArray:
    """Return the Hessian on ``pool`` for second derivatives ``weights``, the free ones out."""
    free = form.sparsity.free
    index = np.concatenate([pool, free])
    order = np.argsort(index)
    back = np.argsort(order)
    h = np.diag(form.ridge[index])
    for term, c in zip(form.terms, weights, strict=True):
        h += weighted_gram(term.design.restrict(index[order]), c)[np.ix_(back, back)]
    size = pool.size
    if not free.size:
        return h
    cross, own = h[size:, :size], h[size:, size:]
    try:
        return np.asarray(h[:size, :size] - cross.T @ cho_solve(cho_factor(own), cross))
    except np.linalg.LinAlgError:
        inverse = np.linalg.pinv(own, hermitian=True)
        return np.asarray(h[:size, :size] - cross.T @ (inverse @ cross))


def _pool(form: SparseRegression, x: FloatArray, counted: IntArray, rows: int) -> IntArray:
    """Return the columns worth looking at: the largest, the most correlated, and those in use.

    As many as fit into the time that is left.
    """
    number = _POOL
    while number > 2 and not budget().fits(4.0 * gram_cost(rows, number)):
        number //= 2
    size, slopes = np.zeros(form.sparsity.size), np.zeros(form.sparsity.size)
    for term in form.terms:
        size += term.design.column_square_norms(term.weights)
        gradient = term.loss.gradient(np.zeros(term.target.shape), term.target, term.weights)
        slopes += adjoint_product(term.design, gradient)
    parts = [
        counted[top_k(size[counted], number // 2)],
        counted[top_k(np.abs(slopes[counted]), number // 2)],
        counted[np.isin(counted, np.flatnonzero(x))],
    ]
    return np.unique(np.concatenate(parts))
