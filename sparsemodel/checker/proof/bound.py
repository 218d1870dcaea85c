r"""The objective at a point, and the lower bound that a dual point proves.

For any ``a`` in the domains of the conjugates and ``v = sum_t A_t' (c_t a_t)``

.. math:: P(x) \ge \text{constant} + \sum_i c_i (a_i o_i - \ell_i^*(a_i))
          - \sum_{j \text{ free}} h_j(v_j) - \text{the } k \text{ largest of } h_g(v_g) - \gamma,

    h_j(v) = \max_{l_j \le x \le u_j} -v x - \tfrac{\lambda_j}{2} x^2 ,

because ``l(u) >= a u - l*(a)`` and the rest is minimised coordinate by coordinate. Without ridge
and bounds ``h_j`` is infinite unless ``v_j = 0``. Where all losses are squares and the Hessian of
their sum less a diagonal ``D >= 0`` is positive semidefinite, the tangent at a point ``w`` of the
losses less ``x'Dx/2`` gives the same with ``a`` the gradient at ``w``, ``v - D w``, the ridges
``lambda + D`` and ``w'Dw/2`` added.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, cast

import numpy as np

from sparsemodel.checker.proof.arithmetic import (
    TINY,
    UNIT,
    Ball,
    high,
    less,
    low,
    middle,
    put,
    solution,
    total,
)
from sparsemodel.checker.proof.columns import independent
from sparsemodel.checker.proof.losses import Term
from sparsemodel.checker.proof.problem import Problem, rows_of


def predictions(term: Term, x: Any) -> Any:
    """Return ``A x + o`` from the columns where ``x`` is not zero."""
    on = np.flatnonzero(rows_of(x))
    return term.A[:, on] @ x[on] + term.o


def _far(matrix: Any) -> Any:
    """Return an entry of columns that differ by a hundredth of it at most, else 0: no rounding."""
    low, high = matrix.min(axis=0, initial=np.inf), matrix.max(axis=0, initial=-np.inf)
    small = (high > low) & (high - low <= 0.01 * np.minimum(np.abs(low), np.abs(high)))
    return np.where(small, matrix[0] if len(matrix) else 0.0, 0.0)


def shifted(problem: Problem, zero: Any, at: Any = None) -> tuple[Problem, Any]:
    """Return the problem with columns and targets nearer to zero, where ``zero`` has an intercept.

    A term has it as a column of ones, or not at all. With the slope of the intercept zero, slopes
    and bounds are as before where all terms that have it are shifted alike. The intercept is
    another, also in the point ``at``, which is returned as it is there but for rounding.
    """
    ones = np.array([np.all(t.matrix[:, zero] == 1.0, axis=0) for t in problem.terms])
    none = np.array([~np.any(t.matrix[:, zero], axis=0) for t in problem.terms])
    proper = np.flatnonzero(ones.any(axis=0) & (ones | none).all(axis=0))
    if problem.exact or not proper.size:
        return problem, at
    terms, own = list(problem.terms), np.flatnonzero(ones[:, proper[0]])
    aims = np.array([_far(terms[i].matrix) for i in own])
    alike = (aims != 0.0) & (np.abs(aims - aims[0]) <= 0.01 * np.abs(aims[0]))
    t = np.where(alike.all(axis=0), aims[0], 0.0)
    for i in own if t.any() else []:
        matrix = terms[i].matrix - t
        terms[i] = replace(terms[i], matrix=matrix, A=problem.number(matrix))
    level = _level([terms[i].loss for i in own])
    for i in own if np.any(level) else []:
        near, loss = problem.number(terms[i].y) - level, cast("Any", terms[i].loss)
        terms[i] = replace(terms[i], y=near, loss=replace(loss, centre=near))
    if at is not None:
        at, one = at.copy(), zero[proper[0]]
        at[one] += t @ at - level
    return replace(problem, terms=terms), at


def _level(losses: list[Any]) -> Any:
    """Return the mean of the targets where all losses are of differences from them, else 0."""
    centres = [loss.centre for loss in losses if loss.piecewise and np.ndim(loss.centre)]
    mean = np.concatenate(centres).mean(axis=0) if len(centres) == len(losses) else 0.0
    return mean if np.all(np.isfinite(mean)) else 0.0


def _tangent(problem: Problem, term: Term, at: Any) -> Ball:
    line = term.loss.name == "linear_term"
    return problem.number(term.y) if line else predictions(term, at) - term.y


def objective(problem: Problem, x: Any) -> Ball:
    """Return ``P(x)``."""
    ridge = problem.ridge if x.ndim == 1 else problem.ridge[:, None]
    out = total(ridge * x * x) / 2 + problem.constant
    for term in problem.terms:
        out = out + total(term.weighted(term.loss.value(predictions(term, x))))
    chosen = problem.units_of(x)
    return out + total(problem.supports.prices[chosen]) if chosen.size else out


def dual(
    problem: Problem,
    points: list[Any] | None,
    at: Any = None,
    taken: Any = None,
    balanced: Any = (),
) -> tuple[Any, Any]:
    """Return a bound before the counted units gain anything, and the most that each can gain.

    It is what dual points prove, or the tangent at ``at`` with the curvature ``taken`` out. Where
    observations are coupled, predictions stand for their gradient, and None for zero. That the
    curvature may be taken is for the caller to have shown. The bound is taken at a dual point
    nearby where also the slopes of the coordinates ``balanced`` are zero.
    """
    nothing = -np.inf, np.full(problem.units, np.inf)
    ridge, square = problem.ridge, None
    if taken is not None:
        ridge, point = ridge + taken, problem.number(at)
        square = (taken if at.ndim == 1 else taken[:, None]) * point
    zero = np.union1d(unbounded(problem, ridge), balanced).astype(np.intp)
    free = zero if taken is None else zero[taken[zero] == 0.0]
    problem, at = shifted(problem, free, at)  # at any intercept the tangent is as good
    known: list[Any] = [None] * len(problem.terms)
    if points is not None:
        made = [t.loss.point(a, problem.exact) for t, a in zip(problem.terms, points, strict=True)]
        duals, known = [a for a, _ in made], [own for _, own in made]
    else:
        duals = [_tangent(problem, term, at) for term in problem.terms]
    while True:
        coupled = zero.size and any(own is not None for own in known)
        found = None if coupled else _balanced(problem, duals, zero) if zero.size else duals
        if found is None:
            return nothing
        pairs = list(zip(problem.terms, found, strict=True))
        v = reduce(add, (t.A.T @ t.weighted(a) for t, a in pairs))
        # To balance some moves the slopes of others, so that more may have to vanish.
        more = np.setdiff1d(_endless(problem, v, ridge), zero)
        if not more.size:
            break
        zero = np.union1d(zero, more).astype(np.intp)
    base = problem.constant
    for (term, a), own in zip(pairs, known, strict=True):
        conjugate = term.loss.conjugate(a) if own is None else own
        if not np.all(conjugate < np.inf):
            return nothing
        base = base + total(term.weighted(a * term.o)) - total(term.weighted(conjugate))
    if square is not None:
        base, v = base + total(square * point) / 2, v - square
    gains = _gains(problem, put(v, zero, 0.0), ridge)
    return less(low(base), gains[problem.free].ravel().tolist()), problem.per_unit(gains)


def _gains(problem: Problem, v: Ball, ridge: Ball) -> Any:
    """Return upper bounds on ``h``, in the shape of ``x``; convex in ``v``."""
    d = np.maximum(low(ridge), 0)
    d = np.broadcast_to(d if len(v.shape) == 1 else d[:, None], v.shape)
    return np.maximum(*(_gain_at(problem, end, d) for end in (low(v), high(v))))


def _gain_at(problem: Problem, v: Any, d: Any) -> Any:
    """Return ``h`` at exact slopes and curvatures, rounded up."""
    some = d > 0
    peak = np.where(some, -v / np.where(some, d, 1), np.where(v > 0, -np.inf, np.inf))
    peak = np.where(~some & (v == 0), 0, peak)
    ends = [problem.number(end).mid for end in problem.chosen]
    x = np.minimum(np.maximum(peak, ends[0]), ends[1])
    endless = np.abs(x) == np.inf
    x = np.where(endless, 0, x)
    slope, curve = problem.number(v), problem.number(d)
    gain = high(-(slope * x) - curve * x * x / 2)
    if not problem.exact:  # the peak is rounded itself, which changes this by far less than once
        gain = gain + 2.0 * UNIT * np.abs(v * x) + TINY * ((x != 0.0) & ((v != 0.0) | (d != 0.0)))
    return np.where(endless, np.inf, gain)


def unbounded(problem: Problem, ridge: Ball) -> Any:
    """Return the free coordinates with neither curvature nor bounds, where ``v`` must vanish."""
    endless = rows_of(np.isinf(problem.lower) & np.isinf(problem.upper))
    return problem.free[(middle(ridge)[problem.free] == 0.0) & endless[problem.free]]


def _endless(problem: Problem, v: Ball, ridge: Ball) -> Any:
    """Return free coordinates bounded on one side, of slopes that may lead on without end."""
    if len(problem.shape) > 1:
        return problem.free[:0]
    up, down = (np.isinf(end) for end in (problem.upper, problem.lower))
    on = problem.free[((middle(ridge) == 0.0) & (up != down))[problem.free]]
    return on[np.where(up[on], low(v[on]) <= 0, high(v[on]) >= 0)]


def _balanced(problem: Problem, duals: list[Ball], zero: Any) -> list[Ball] | None:
    """Return a dual point, or where there is one, with exactly ``sum_t A_tj' (c_t a_t) = 0``.

    With ``B`` the columns ``zero``, made orthonormal but for rounding, and ``R`` the observations
    with room in their domain, ``a - R B y`` with ``(B' C R B) y = B' C a`` is one.
    """
    pairs = list(zip(problem.terms, duals, strict=True))
    if all(np.all(_sizes(a) == 0) for a in duals):
        return duals
    # Rows that are zero and stay so are as if they were not there.
    seen = [~((_sizes(a) == 0.0) & (_room(t, a) <= 0.0)) for t, a in pairs]
    seeing = [on[:, None] * t.matrix[:, zero] for (t, _), on in zip(pairs, seen, strict=True)]
    columns = independent(seeing, problem.exact)
    sums = reduce(add, (b.T @ t.weighted(a) for (t, a), b in zip(pairs, columns, strict=True)))
    if np.all(high(abs(sums)) == 0):
        return duals
    # Rows that see none of these columns have nothing to move.
    each_row = zip(pairs, columns, strict=True)
    rooms = [np.where(np.any(middle(b), axis=1), _room(t, a), 0.0) for (t, a), b in each_row]
    most = max((float(r.max(initial=0.0, where=r < np.inf)) for r in rooms), default=0.0)
    for level in (np.inf, *(share * most for share in (0.1, 1e-3, 1e-6, 1e-9, 1e-12))):
        moving = [r >= level if level > 0.0 else r > 0.0 for r in rooms]
        rows = [(*pair, b, on) for pair, b, on in zip(pairs, columns, moving, strict=True)]
        weighed = [(on * np.sqrt(middle(t.c)))[:, None] * middle(b) for t, _, b, on in rows]
        R: Any = np.linalg.qr(np.concatenate(weighed), mode="r")
        if R.shape[0] < R.shape[1] or not np.all(np.diag(R) != 0.0):
            continue
        inverse = np.linalg.inv(R)  # any regular matrix will do
        each = [(t, a, b @ inverse, on) for t, a, b, on in rows]
        gram = reduce(add, (q[on].T @ (t.c[on][:, None] * q[on]) for t, _, q, on in each))
        y = solution(gram, reduce(add, (q.T @ t.weighted(a) for t, a, q, _ in each)))
        if y is None:
            continue
        found = [put(a, on, a[on] - q[on] @ y) for _, a, q, on in each]
        if all(np.all(_room(t, a)[on] >= 0) for (t, *_, on), a in zip(each, found, strict=True)):
            return found
    return None


def _sizes(a: Ball) -> Any:
    """Return the largest sizes of the entries of rows."""
    size = high(abs(a))
    return size if size.ndim == 1 else size.max(axis=1)


def _room(term: Term, a: Ball) -> Any:
    """Return how far each row can move inside the domain of the conjugate; negative if outside."""
    room = np.minimum(low(a) - term.loss.lower, term.loss.upper - high(a))
    return room if room.ndim == 1 else room.min(axis=1)
