r"""Coordinates without ridge or bounds demand :math:`v_j = 0` exactly, and floats cannot give it.

An unpenalised intercept makes a dual bound finite only where :math:`\sum_i c_i a_i = 0`. Two
steps make that rigorous. :func:`balanced` moves a dual point until the sums vanish up to
rounding, inside the conjugates' domains. :func:`exact_neighbour` then proves that a dual point
with sums that vanish *exactly* lies within a computed distance, so that the bound can be taken
there: with :math:`B = A_F^T \mathrm{diag}(c)` and ``R`` the observations that have room to move,
:math:`\delta = R A_F y` solves :math:`B (a + \delta) = 0` for the ``y`` with
:math:`(A_F^T \mathrm{diag}(c R) A_F) y = -B a`, and a bound from below on the smallest eigenvalue
of that matrix bounds ``y``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparsemodel.certificates.arithmetic.dualised_rows import row_term
from sparsemodel.certificates.arithmetic.independent import independent
from sparsemodel.certificates.arithmetic.rounding import TINY, U, add_up, gamma, norm_up
from sparsemodel.certificates.dual_bounds.conjugates import domain_slack
from sparsemodel.interfaces import (
    BoolArray,
    FloatArray,
    IntArray,
    SparseRegression,
    Term,
)
from sparsemodel.interfaces.numeric import least_squares
from sparsemodel.numerics.budget import budget, gram_cost, inverse_cost

_SHARES = (0.1, 1e-3, 1e-6, 1e-9, 1e-12)
_NEWTON_STEPS = 60
_IDLE = 8
"""Of them without less of a residual, once values differ by rounding alone."""
_LEAST_SQUARES = 3.0
"""What solving by singular values costs, in inverses."""
_ROOM, _MORE = 1e-12, 1e-9
"""Share of its domain that a dual variable keeps away from the ends, so that it can still move;
where that is too little."""
_SMALL = 1e-6
"""Share of its domain below which a dual variable is taken for one that is zero."""
_LARGEST = 2.0**400
"""Entries whose squares and sums of squares do not overflow."""
_SURE = 1e-11
"""Share of its summands beyond which a slope has the sign that was computed."""


def unbounded_coordinates(form: SparseRegression, delta: FloatArray | None = None) -> IntArray:
    """Return the free coordinates with neither curvature nor bounds, where ``v`` must vanish."""
    free = form.sparsity.free
    curvature = form.ridge if delta is None else form.ridge + delta
    loose = curvature[free] == 0.0
    if form.box is not None:
        low, high = form.box.lower[free], form.box.upper[free]
        inside = np.isinf(low) & np.isinf(high)
        loose &= inside if inside.ndim == 1 else inside.any(axis=1)
    return np.asarray(free[loose])


def one_sided_coordinates(form: SparseRegression, delta: FloatArray | None = None) -> IntArray:
    """Return the free coordinates without curvature that are bounded on one side alone."""
    if form.box is None or form.matrix:
        return np.empty(0, dtype=np.intp)
    free = form.sparsity.free
    curvature = form.ridge if delta is None else form.ridge + delta
    endless = np.isinf(form.box.lower[free]) != np.isinf(form.box.upper[free])
    return np.asarray(free[(curvature[free] == 0.0) & endless])


def endless_coordinates(
    form: SparseRegression,
    duals: tuple[FloatArray, ...],
    distances: tuple[FloatArray, ...],
    delta: FloatArray | None,
) -> IntArray:
    """Return those bounded on one side whose slope may lead to infinity on the other.

    It has to vanish there, as where there is no bound at all: it nearly does where the bound is
    not active at the minimum, and rounding decides on which side of zero it lies. The dual point
    is known within ``distances``.
    """
    index = one_sided_coordinates(form, delta)
    if form.box is None or not index.size:
        return index
    v, size = np.zeros(index.size), np.zeros(index.size)
    columns = free_columns(form, index)
    for term, a, near, c in zip(form.terms, duals, distances, columns, strict=True):
        v += c.T @ (term.weights * a)
        size += np.abs(c.T) @ (term.weights * (_SURE * np.abs(a) + 2.0 * near))
    upwards = np.isinf(form.box.upper[index])
    return np.asarray(index[np.where(upwards, v, -v) <= size])


def free_columns(form: SparseRegression, index: IntArray) -> tuple[FloatArray, ...]:
    """Return the entries of every term's columns in ``index``."""
    return tuple(term.design.restrict(index).to_array() for term in form.terms)


def exact_neighbour(
    form: SparseRegression,
    columns: tuple[FloatArray, ...],
    duals: tuple[FloatArray, ...],
    already: tuple[FloatArray, ...],
) -> tuple[FloatArray, ...] | str:
    """Return distances within which a dual point with ``A_F^T (c a) = 0`` exists, or why not.

    ``already`` are the distances within which the dual point is known so far.
    """
    # Zero balances everything.
    if not any(a.any() or near.any() for a, near in zip(duals, already, strict=True)):
        return already
    if not budget().fits(gram_cost(sum(len(c) for c in columns), columns[0].shape[1])):
        return "there is no time to balance so many coordinates without ridge"
    each = zip(form.terms, columns, duals, already, strict=True)
    scaled = independent([np.where(_idle(term, a, d)[:, None], 0.0, c) for term, c, a, d in each])
    if any(np.any(np.abs(c) > _LARGEST) for c in scaled):
        return "a column without ridge has entries of too many orders of magnitude"
    residual = _residuals(form, scaled, duals, already)
    if not residual.any():
        return already
    slacks = [
        np.where(np.any(c, axis=1), _rowwise_min(domain_slack(term, a)), 0.0)
        for term, a, c in zip(form.terms, duals, scaled, strict=True)
    ]
    scale, shares = _units(form, scaled, slacks)
    scaled, residual = [c * scale for c in scaled], residual * scale[:, None]
    largest = max((float(s.max(initial=0.0)) for s in slacks), default=0.0)
    if not largest > 0.0:
        return "every dual variable is at the end of its domain"
    finite = max(float(s.max(initial=0.0, where=np.isfinite(s))) for s in slacks)
    limits = [math.inf] if math.isinf(largest) else []
    for limit in [*limits, *(share * finite for share in _SHARES if finite > 0.0)]:
        moving = [slack >= limit for slack in slacks]
        stretch = _stretch(form, scaled, moving, shares, residual)
        if stretch is None:
            continue
        moved = tuple(
            move * share * norm_up(c, axis=1) * stretch + before_row
            for move, share, c, before_row in zip(
                moving, shares, scaled, (_rowwise_max(b) for b in already), strict=True
            )
        )
        if all(np.all(m[on] <= s[on]) for m, s, on in zip(moved, slacks, moving, strict=True)):
            return tuple(
                np.maximum(
                    before, np.broadcast_to(m if before.ndim == 1 else m[:, None], before.shape)
                )
                for before, m in zip(already, moved, strict=True)
            )
    return (
        "no dual point nearby balances the coordinates without ridge "
        "(their columns may be linearly dependent)"
    )


def _idle(term: Term, a: FloatArray, near: FloatArray) -> BoolArray:
    """Return the observations whose dual variable is zero and stays so, as if they were not there.

    Such are inactive linear constraints, beside which equal columns of the data are equal.
    """
    zero = _rowwise_max(np.abs(a)) + _rowwise_max(near) == 0.0
    return np.asarray(zero & (_rowwise_min(domain_slack(term, a)) <= 0.0))


def _units(
    form: SparseRegression, columns: list[FloatArray], slacks: list[FloatArray]
) -> tuple[FloatArray, list[FloatArray]]:
    """Return powers of two that bring columns to one, by what can move of the data, and how much
    each observation moves beside the others: linear constraints have units of their own.
    """
    rows, squares = row_term(form), np.zeros(columns[0].shape[1])
    for i, (term, c, slack) in enumerate(zip(form.terms, columns, slacks, strict=True)):
        squares += (term.weights * (slack > 0.0) * (i != rows)) @ np.square(c)
    scale = np.exp2(-np.round(np.log2(_positive(np.sqrt(squares)))))
    shares = [np.ones(s.shape) for s in slacks]
    if rows is not None:
        sizes = np.sum(np.square(columns[rows] * scale), axis=1)
        shares[rows] = np.exp2(-np.round(np.log2(_positive(sizes))))
    return scale, shares


def _positive(sizes: FloatArray) -> FloatArray:
    return np.where(sizes > 0.0, sizes, 1.0)


def _stretch(
    form: SparseRegression,
    columns: list[FloatArray],
    moving: list[BoolArray],
    shares: list[FloatArray],
    residual: FloatArray,
) -> float | None:
    """Return an upper bound on ``||y||``, or None when the matrix may be singular."""
    size = columns[0].shape[1]
    matrix = np.zeros((size, size))
    total = 0
    for term, c, move, share in zip(form.terms, columns, moving, shares, strict=True):
        part = c[move]
        matrix += part.T @ ((share * term.weights)[move][:, None] * part)
        total += part.shape[0]
    error: float = (gamma(total + 16) + 64.0 * size * size * U) * float(np.trace(matrix)) + TINY
    lowest: float = float(np.linalg.eigvalsh(matrix)[0]) - 2.0 * error
    if not lowest > 0.0:
        return None
    return float(norm_up(residual)) / lowest * (1.0 + 16.0 * U)


def _residuals(
    form: SparseRegression,
    columns: list[FloatArray],
    duals: tuple[FloatArray, ...],
    already: tuple[FloatArray, ...],
) -> FloatArray:
    """Return upper bounds on ``|A_F^T (c a)|``, one per free coordinate and output."""
    outputs = 1 if duals[0].ndim == 1 else duals[0].shape[1]
    out = np.zeros((columns[0].shape[1], outputs))
    for j in range(out.shape[0]):
        for m in range(outputs):
            pieces, slack, exact = [], [], True
            for term, c, a, before in zip(form.terms, columns, duals, already, strict=True):
                column = a if a.ndim == 1 else a[:, m]
                near = before if before.ndim == 1 else before[:, m]
                product = term.weights * column * c[:, j]
                pieces.append(product)
                # A product that underflowed is not zero.
                exact &= not np.any((c[:, j] != 0.0) & ((column != 0.0) | (near != 0.0)))
                slack.append(term.weights * near * np.abs(c[:, j]) + 4.0 * U * np.abs(product))
            total = abs(math.fsum(np.concatenate(pieces)))
            size = total * (1.0 + 2.0 * U) + add_up(np.concatenate(slack)) * (1.0 + 8.0 * U)
            out[j, m] = 0.0 if exact else size + TINY * (1.0 + len(slack))
    return out


def _rowwise_min(v: FloatArray) -> FloatArray:
    return v if v.ndim == 1 else v.min(axis=1)


def _rowwise_max(v: FloatArray) -> FloatArray:
    return v if v.ndim == 1 else v.max(axis=1)


def balanced(
    form: SparseRegression,
    duals: tuple[FloatArray, ...],
    more: IntArray | None = None,
    *,
    ends: bool = False,
) -> tuple[FloatArray, ...]:
    """Return a dual point near ``duals`` that balances the unbounded coordinates up to rounding.

    Those of ``more`` as well. In the domains of the conjugates throughout. Where neither way of
    moving applies the dual point is returned as it is.

    With ``ends`` dual variables that are nearly zero at an end of their domain are zero, and stay
    so: no dual point that balances is inside all domains where some of the data are separable.
    """
    index = unbounded_coordinates(form)
    if more is not None:
        index = np.union1d(index, more)
    if not index.size:
        return duals
    columns = independent(free_columns(form, index))
    if form.traits.interval:
        return _shifted(form, columns, duals, ends)
    if len(form.terms) == 1 and form.traits.simplex and form.traits.has_hessian:
        return (_tilted(form, columns[0], duals[0], _MORE if ends else _ROOM),)
    return duals


def _shifted(
    form: SparseRegression, columns: list[FloatArray], duals: tuple[FloatArray, ...], fixed: bool
) -> tuple[FloatArray, ...]:
    """Solve ``A_F^T c clip(a + A_F theta) = 0`` by a damped semismooth Newton method.

    The left-hand side is the gradient of a convex function, whose decrease guards the steps.
    """
    ends = [term.loss.dual_interval(term.target) for term in form.terms]  # type: ignore[attr-defined]
    stacked = np.concatenate(columns)
    weights = np.concatenate([term.weights for term in form.terms])
    stacked = _of_unit_size(stacked, weights)
    many = duals[0].ndim > 1
    outputs = duals[0].shape[1] if many else 1
    sizes = np.cumsum([c.shape[0] for c in columns])[:-1]
    out = np.empty((stacked.shape[0], outputs))
    for m in range(outputs):
        a = np.concatenate([_column(d, m) for d in duals])
        lower = np.concatenate([_column(low, m) for low, _ in ends])
        upper = np.concatenate([_column(high, m) for _, high in ends])
        width = np.where(np.isfinite(upper - lower), upper - lower, np.abs(a).max(initial=0.0))
        room = (_MORE if fixed else _ROOM) * width
        zero = fixed & (np.abs(a) <= _SMALL * width) & ((lower == 0.0) | (upper == 0.0))
        lower = np.where(zero, 0.0, lower + room)
        upper = np.where(zero, 0.0, upper - room)
        theta = _balance_newton(stacked, weights, a, lower, upper)
        out[:, m] = np.clip(a + stacked @ theta, lower, upper)
    parts = np.split(out, sizes)
    return tuple(np.ascontiguousarray(part if many else part[:, 0]) for part in parts)


def _of_unit_size(columns: FloatArray, weights: FloatArray) -> FloatArray:
    columns = columns / _positive(np.abs(columns).max(axis=0, initial=0.0))
    return columns / _positive(np.sqrt(weights @ np.square(columns)))


def _column(v: FloatArray, m: int) -> FloatArray:
    return v if v.ndim == 1 else v[:, m]


def _balance_newton(
    columns: FloatArray, c: FloatArray, a: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    theta = np.zeros(columns.shape[1])
    t = a.copy()
    clipped = np.clip(t, lower, upper)
    value, rounding = _potential(c, t, clipped), 4.0 * U * math.sqrt(t.size)
    last, idle = math.inf, 0
    for _ in range(_NEWTON_STEPS):
        residual = columns.T @ (c * clipped)
        left = float(np.linalg.norm(residual))
        idle += left >= last
        if left <= 4.0 * U * float(c @ np.abs(clipped)) or idle > _IDLE:
            break
        inside = (t > lower) & (t < upper)
        rows, q = int(np.count_nonzero(inside)), theta.size
        if not budget().fits(gram_cost(rows, q), _LEAST_SQUARES * inverse_cost(q)):
            break  # what is left over is part of the bound
        hessian = columns[inside].T @ (c[inside][:, None] * columns[inside])
        hessian += 1e-12 * np.eye(theta.size) * (1.0 if inside.any() else 1e12)
        step = -least_squares(hessian, residual)
        slope, length = float(residual @ step), 1.0
        # Values that differ by their rounding decide nothing: what is left of the residual does.
        noise = rounding * abs(value)
        last = left if -slope <= noise else math.inf
        for _ in range(50):
            ahead = t + length * (columns @ step)
            reach = np.clip(ahead, lower, upper)
            following = _potential(c, ahead, reach)
            if following <= value + 1e-4 * length * slope + noise:
                break
            length *= 0.5
        theta, t, clipped, value = theta + length * step, ahead, reach, following
    return theta


def _potential(c: FloatArray, t: FloatArray, clipped: FloatArray) -> float:
    return float(c @ (clipped * (t - 0.5 * clipped)))


def _tilted(form: SparseRegression, columns: FloatArray, a: FloatArray, room: float) -> FloatArray:
    """Balance duals of classes by refitting the free coordinates around their predictions."""
    term = form.terms[0]
    loss: Any = term.loss
    y, c = term.target, term.weights
    columns = _of_unit_size(columns, c)
    start = loss.link(np.maximum(loss.chances(a, y), room))
    b = np.zeros((columns.shape[1], a.shape[1]))
    z = start
    value, last, idle = loss.total(z, y, c), math.inf, 0
    for _ in range(_NEWTON_STEPS):
        g = loss.gradient(z, y, c)
        residual = columns.T @ g
        left = float(np.linalg.norm(residual))
        idle += left >= last
        if np.abs(residual).max() <= 4.0 * U * float(np.abs(g).sum()) or idle > _IDLE:
            break
        hessian = np.empty((b.size, b.size))
        unit = np.zeros(b.size)
        for j in range(b.size):
            unit[j] = 1.0
            direction = columns @ unit.reshape(b.shape)
            hessian[:, j] = (columns.T @ loss.hessian_product(z, y, c, direction)).ravel()
            unit[j] = 0.0
        step = -least_squares(hessian, residual.ravel(), rcond=1e-13).reshape(b.shape)
        slope, length = float(np.vdot(residual, step)), 1.0
        # As in _balance_newton: values that differ by their rounding decide nothing.
        noise = 4.0 * U * math.sqrt(z.size) * abs(value)
        last = left if -slope <= noise else math.inf
        for _ in range(50):
            ahead = z + length * (columns @ step)
            following = loss.total(ahead, y, c)
            if following <= value + 1e-4 * length * slope + noise:
                break
            length *= 0.5
        z, value = ahead, following
    return np.asarray(loss.derivative(z, y))
