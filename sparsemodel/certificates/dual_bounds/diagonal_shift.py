r"""Curvature taken out of squared losses: a larger ridge for the bound.

With :math:`H = \sum_t A_t^T \mathrm{diag}(c_t) A_t` and a diagonal :math:`\Delta \ge 0` such that
:math:`H - \Delta` is positive semidefinite, the losses minus :math:`\frac12 x^T \Delta x` are still
convex. Bounding them by their tangent at a point and leaving :math:`\lambda + \Delta` as the ridge
gives a valid bound, and where there are more observations than coefficients a far better one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast, final

import numpy as np

from sparsemodel.certificates.arithmetic.products import predictions
from sparsemodel.certificates.arithmetic.rounding import TINY, U, gamma
from sparsemodel.compiler.reductions.shift_columns import ShiftColumns
from sparsemodel.interfaces import (
    FloatArray,
    SparseRegression,
    SquaredDistance,
)
from sparsemodel.numerics.objectives.hessians import weighted_gram
from sparsemodel.progress import doing

LIMIT = 4000
"""Coefficients up to which the p x p matrix is formed (128 MB)."""

LARGE = 12_000
"""Those up to which a proof forms it (1.2 GB, and as much twice more beside it)."""

_FAINT = 1e-280
"""Squared norm of a column from which on its products may underflow noticeably."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Extraction:
    """A diagonal ``Delta >= 0``; whether ``H - Delta`` is PSD is for :func:`verified` to say."""

    diagonal: FloatArray


def applies(form: SparseRegression) -> bool:
    """Return whether curvature can be taken out at all: squared losses, few coefficients.

    Linear terms may stand beside them; they have none to give.
    """
    return (
        form.sparsity.size <= LIMIT
        and form.traits.gram
        and any(term.traits.square for term in form.terms)
    )


def squares_hold(form: SparseRegression) -> bool:
    """Return whether no square of a column overflows, or underflows where it is not zero.

    A column that is too small keeps its direction, and so the curvature it leaves to the others;
    a computed ``H`` has lost both. One pass, and the columns in doubt once more.
    """
    for term in form.terms:
        if not term.traits.square:
            continue
        design = term.design
        squares = design.column_square_norms(term.squares()[1])
        if not np.all(np.isfinite(squares)):
            return False
        doubtful = np.flatnonzero(squares < _FAINT)
        for start in range(0, doubtful.size, 256):
            if np.any(design.restrict(doubtful[start : start + 256]).to_array()):
                return False
    return True


def hessian(form: SparseRegression) -> FloatArray:
    """Return ``H`` computed in float64, O(n p^2).

    Where an intercept absorbs shifts, of columns that are shifted: ``H - Delta`` is positive
    semidefinite as before where ``Delta`` leaves the intercept alone.
    """
    shifts = ShiftColumns.find(form)
    form = form if shifts is None else shifts.apply(form)
    p = form.sparsity.size
    total = np.zeros((p, p))
    with doing("sums of products"):
        for term in form.terms:
            if term.traits.square:
                total += weighted_gram(term.design, term.squares()[1])
    return total


def verified(form: SparseRegression, extraction: Extraction, h: FloatArray | None = None) -> bool:
    r"""Return whether :math:`H - \Delta` is proved positive semidefinite in floating point.

    After scaling to a unit diagonal (by powers of two), Cholesky's factorisation of the matrix
    minus a margin must succeed. The margin covers the rounding of the products, at most
    :math:`\gamma_n \mathrm{tr}`, and of the factorisation, :math:`\gamma_{p+1} \mathrm{tr}`
    (Rump, *Verification of positive definiteness*, BIT 46, 2006, Theorem 2.3).
    """
    diagonal = extraction.diagonal
    if not np.all(np.isfinite(diagonal)) or np.any(diagonal < 0.0):
        return False
    if not np.any(diagonal > 0.0):
        return True
    if not squares_hold(form):
        return False
    if np.any(diagonal[form.sparsity.free] > 0.0) and ShiftColumns.find(form) is not None:
        return False
    matrix = hessian(form) if h is None else h.copy()
    return certainly_psd(matrix, diagonal, sum(t.design.sums for t in form.terms))


def certainly_psd(h: FloatArray, diagonal: FloatArray, n: int) -> bool:
    """Return whether ``H - diag(diagonal)`` is proved PSD; ``h`` is overwritten.

    ``h`` is a computed Gram matrix of ``n`` rows.
    """
    size = h.shape[0]
    if not np.all(np.isfinite(h)):
        return False
    entries = np.diag(h).copy()
    # A zero column has no curvature to give; the others are scaled to diagonals in [1/2, 2].
    if np.any((entries <= 0.0) & (diagonal > 0.0)):
        return False
    keep = np.flatnonzero((entries > 0.0) | (diagonal > 0.0))
    scale = np.exp2(-np.round(0.5 * np.log2(entries[keep])))
    matrix = h[np.ix_(keep, keep)] * np.outer(scale, scale)
    trace = float(np.trace(matrix))
    shift = diagonal[keep] * np.square(scale)
    margin = 2.0 * (gamma(n + size + 32) + 8.0 * U * size) * trace + TINY
    matrix[np.diag_indices_from(matrix)] -= shift + margin
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def gradient_distance(
    form: SparseRegression,
    duals: tuple[FloatArray, ...],
    at: FloatArray,
    *,
    having: tuple[bool, ...],
) -> tuple[FloatArray, ...]:
    """Return how far ``duals`` can be from the exact gradients of the squared losses at ``at``.

    The gradient of a linear term is its slope, and its conjugate admits no other dual point. With
    terms ``having`` an intercept without curvature from those at its nearest value, where the bound
    is as good: beside columns far from zero it takes more digits than floats have.
    """
    support = np.flatnonzero(at if at.ndim == 1 else np.any(at != 0.0, axis=1))
    gradients, errors = [], []
    for term, a in zip(form.terms, duals, strict=True):
        if term.traits.affine:
            gradients.append(a)
            errors.append(np.zeros(a.shape))
            continue
        u, error = predictions(term.design, at, support)
        if term.offset is not None:
            u = u + term.offset
            error = error + 2.0 * U * np.abs(u)
        residual = u - term.squares()[0]
        error = error + 2.0 * U * np.abs(residual)
        steep = cast("SquaredDistance", term.loss).steepness
        if steep != 1.0:
            residual = steep * residual
            error = steep * error + 2.0 * U * np.abs(residual)
        gradients.append(residual)
        errors.append(error)
    if any(having):
        off = [g - a for g, a in zip(gradients, duals, strict=True)]
        moved = levelled(form, gradients, off, having)
        for i, (g, m) in enumerate(zip(gradients, moved, strict=True)):
            errors[i] = errors[i] + 2.0 * U * (np.abs(m) + np.abs(m - g)) * (m is not g)
        gradients = moved
    return tuple(
        np.zeros(a.shape)
        if term.traits.affine
        else (np.abs(a - g) + error) * (1.0 + 8.0 * U) + TINY
        for term, a, g, error in zip(form.terms, duals, gradients, errors, strict=True)
    )


def levelled(
    form: SparseRegression,
    gradients: Sequence[FloatArray],
    off: Sequence[FloatArray],
    having: tuple[bool, ...],
) -> list[FloatArray]:
    """Return the gradients of squared losses at another value of the intercept.

    One number is taken from the predictions of all terms ``having`` it, so that what gradients are
    ``off`` by adds up to nothing over these.
    """
    total, weight = np.zeros(()), 0.0
    for term, part, has in zip(form.terms, off, having, strict=True):
        if has:
            total = np.asarray(total + term.weights @ part)
            steep = 0.0 if term.traits.affine else cast("SquaredDistance", term.loss).steepness
            weight += steep * float(term.weights.sum())
    out = list(gradients)
    for i, (term, has) in enumerate(zip(form.terms, having, strict=True)):
        if has and weight > 0.0 and not term.traits.affine:
            out[i] = out[i] - cast("SquaredDistance", term.loss).steepness * (total / weight)
    return out
