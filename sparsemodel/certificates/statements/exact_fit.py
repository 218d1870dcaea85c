r"""Whether a fit is exact as far as float64 can tell: the objective is zero up to rounding.

An objective of 1e-30 where the bound is 0 has a relative gap of 100 %, and yet nothing is left to
gain. It is distinguished from a small objective by its residuals, observation by observation:

.. math:: |r_i| \le 1024\, \epsilon\, \max(|z_i|, q), \qquad \epsilon = 2^{-52},

where ``z`` is what a constant and the coordinates that are always in leave of the targets (least
squares, no penalty) and ``q`` is a size that nine tenths of its entries exceed. An offset of the
targets does not make ``z`` larger, whichever column it is that fits it, and neither do a few huge
targets make ``q`` larger. The price of that is small: data with an offset of ``1e9`` are themselves
rounded to ``1e-7``, an exact fit leaves residuals of that size, and this claim is not made.

Where a constant and those coordinates leave no more than 16 units of rounding of any target, ``z``
is rounding itself, and the targets take its place. The residual of a label is what its margin lacks
of where the loss is zero.
"""

from __future__ import annotations

import math

import numpy as np

from sparsemodel.certificates.arithmetic.products import predictions
from sparsemodel.interfaces import FloatArray, SparseRegression, TargetKind, Term
from sparsemodel.interfaces.numeric import least_squares

UNITS = 1024.0
"""Residuals of an exact fit, in units of rounding: solvers leave up to about a hundred."""

_RESIDUAL = UNITS * 2.0**-52
_ROUNDED = 16.0 * 2.0**-52
"""What of a target counts as its rounding: the mean of equal numbers is off by a few units."""
_SMALLEST_SHARE = 0.1
_FITS = 4
_MOST_FREE = 64
"""Always-in coordinates up to which their least-squares problem is solved."""


def exact_fit(form: SparseRegression, x: FloatArray, value: float) -> bool:
    """Return whether the objective ``value`` at ``x`` is zero up to rounding.

    Losses of labels must be zero once every margin is larger by rounding; others that are zero on a
    whole region, or are no sums over observations, as computed. Penalties count: they may not add
    more than residuals of that size do. Two passes over the columns in use, and one least-squares
    problem for the always-in coordinates.
    """
    if not math.isfinite(value):
        return False
    support = np.flatnonzero(x if x.ndim == 1 else np.any(x != 0.0, axis=1))
    judged: list[tuple[Term, FloatArray]] = []
    level = 0.0
    for term in form.terms:
        u, _ = predictions(term.design, x, support)
        u = u if term.offset is None else u + term.offset
        if not term.traits.by_observation:
            if term.loss.total(u, term.target, term.weights) != 0.0:
                return False
        elif term.traits.of_residual:
            judged.append((term, np.abs(u - term.target)))
        else:
            two = term.loss.target_kind is TargetKind.TWO_CLASSES
            step = _RESIDUAL * term.target if two else 0.0
            better, worse = (term.loss.value(v, term.target) for v in (u + step, u - step))  # type: ignore[attr-defined]
            if np.any(better[term.weights > 0.0] != 0.0):
                return False
            level += math.fsum(term.weights * worse)
    reach = _reach(form, [term for term, _ in judged]) if judged else []
    if reach is None:
        return False
    for (term, residual), most in zip(judged, reach, strict=True):
        if not np.all((residual <= most)[term.weights > 0.0]):
            return False
        level += math.fsum(term.weights * _largest(term, most))
    return value <= level


def _largest(term: Term, reach: FloatArray) -> FloatArray:
    """Return the losses of residuals as large as ``reach``."""
    loss, zero = term.loss, np.zeros_like(reach)
    ends = (loss.value(reach, zero), loss.value(-reach, zero))  # type: ignore[attr-defined]
    return np.asarray(np.maximum(*ends))


def _reach(form: SparseRegression, terms: list[Term]) -> list[FloatArray] | None:
    """Return the residuals that rounding explains, term by term; None where that is not known."""
    if form.sparsity.free.size > _MOST_FREE:
        return None
    aims = [t.target if t.offset is None else t.target - t.offset for t in terms]
    weights = np.concatenate([term.weights for term in terms])
    aim = np.concatenate(aims)
    if not (np.all(np.isfinite(aim)) and np.any(weights > 0.0)):
        return None
    try:
        sizes = _unexplained(form, terms, aim, weights)
    except np.linalg.LinAlgError:  # entries that are not finite
        return None
    if not np.all(np.isfinite(sizes)):
        return None
    typical = float(np.quantile(sizes[weights > 0.0], _SMALLEST_SHARE))
    sizes = np.maximum(sizes, typical)
    if np.all((sizes <= _ROUNDED * np.abs(aim))[weights > 0.0]):
        sizes = np.maximum(sizes, np.abs(aim))
    return np.split(_RESIDUAL * sizes, np.cumsum([aim.shape[0] for aim in aims])[:-1])


def _unexplained(
    form: SparseRegression, terms: list[Term], aim: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return the sizes of what a constant and the always-in coordinates leave of the targets.

    By least squares, again without the largest tenth of what is left: a few huge targets would
    draw the fit away from the others. The smallest size that any of the fits leaves counts.
    """
    columns = [np.ones(aim.shape[0])]
    for j in form.sparsity.free:
        unit, at = np.zeros(form.sparsity.size), np.array([j])
        unit[j] = 1.0
        columns.append(np.concatenate([predictions(t.design, unit, at)[0] for t in terms]))
    basis, roots = np.column_stack(columns), np.sqrt(weights)
    left, sizes, kept = aim, np.abs(aim), weights > 0.0
    for _ in range(_FITS):
        scaled = roots[kept] * left[kept].T  # an observation a column, for several outputs as well
        found = least_squares(roots[kept, None] * basis[kept], scaled.T)
        left = left - basis @ found
        sizes = np.minimum(sizes, np.abs(left))
        rows = np.abs(left) if left.ndim == 1 else np.abs(left).max(axis=1)
        most = np.quantile(rows[weights > 0.0], 1.0 - _SMALLEST_SHARE)
        kept = (weights > 0.0) & (rows <= most)
    return sizes
