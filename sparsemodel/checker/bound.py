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

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sparsemodel.checker.arithmetic import (
    TINY,
    UNIT,
    Ball,
    Number,
    gamma,
    high,
    less,
    low,
    middle,
    number,
    put,
    total,
    up,
)
from sparsemodel.checker.losses import Coupled, widened
from sparsemodel.checker.problem import Problem, Term, rows_of

Dual = tuple[Any, Any]
"""A bound before the counted units gain anything, and upper bounds on what each can gain."""


def predictions(problem: Problem, term: Term, x: Any) -> Number:
    """Return ``A x + o`` from the columns where ``x`` is not zero."""
    on = np.flatnonzero(rows_of(x))
    part, ones = term.matrix[:, on], np.flatnonzero(np.all(term.matrix[:, on] == 1.0, axis=0))
    t = far(part)
    if problem.exact or x.ndim > 1 or not ones.size or not t.any():
        return term.A[:, on] @ problem.number(x[on]) + term.o
    values, rounded = x[on], np.zeros(on.size)
    absorbed = sum((Fraction(a) * Fraction(b) for a, b in zip(t, values, strict=True)), Fraction())
    values[ones[0]] = float(absorbed + Fraction(values[ones[0]]))
    rounded[ones[0]] = 2.0 * UNIT * abs(values[ones[0]]) + TINY
    return problem.number(part - t) @ Ball(values, rounded) + term.o


def far(matrix: Any) -> Any:
    """Return an entry of columns that differ by a hundredth of it at most, else 0: no rounding."""
    low, high = matrix.min(axis=0, initial=np.inf), matrix.max(axis=0, initial=-np.inf)
    small = (high > low) & (high - low <= 0.01 * np.minimum(np.abs(low), np.abs(high)))
    return np.where(small, matrix[0] if len(matrix) else 0.0, 0.0)


def shifted(problem: Problem, zero: Any) -> Problem:
    """Return the problem with columns far from zero shifted, where ``zero`` has an intercept.

    A term has it as a column of ones, or not at all. With the slope of the intercept zero, slopes
    are as before where all terms that have it are shifted alike. The intercept is another.
    """
    ones = np.array([np.all(t.matrix[:, zero] == 1.0, axis=0) for t in problem.terms])
    none = np.array([~np.any(t.matrix[:, zero], axis=0) for t in problem.terms])
    proper = np.flatnonzero(ones.any(axis=0) & (ones | none).all(axis=0))
    if problem.exact or len(problem.shape) > 1 or not proper.size:
        return problem
    terms, own = list(problem.terms), np.flatnonzero(ones[:, proper[0]])
    aims = np.array([far(terms[i].matrix) for i in own])
    alike = (aims != 0.0) & (np.abs(aims - aims[0]) <= 0.01 * np.abs(aims[0]))
    t = np.where(alike.all(axis=0), aims[0], 0.0)
    for i in own if t.any() else []:
        matrix = terms[i].matrix - t
        terms[i] = replace(terms[i], matrix=matrix, A=problem.number(matrix))
    return replace(problem, terms=terms) if t.any() else problem


def _levelled(problem: Problem, near: Problem, duals: list[Number]) -> list[Number]:
    """Return gradients of squared losses at the intercept where they add up to nothing."""
    own = [i for i, t in enumerate(near.terms) if t is not problem.terms[i]]
    squares = [i for i in own if near.terms[i].loss.name != "linear_term"]
    weight = sum(middle(near.terms[i].c).sum() for i in squares)
    level = sum(middle(near.terms[i].c) @ middle(duals[i]) for i in own) / max(weight, 1e-300)
    return [a - problem.number(level) if i in squares else a for i, a in enumerate(duals)]


def weighted(term: Term, values: Number) -> Number:
    """Return ``c`` times values, which are one or several for each observation."""
    return (term.c if len(values.shape) == 1 else term.c[:, None]) * values


def objective(problem: Problem, x: Any) -> Number:
    """Return ``P(x)``."""
    at, ridge = problem.number(x), problem.ridge if x.ndim == 1 else problem.ridge[:, None]
    out = total(ridge * at * at) / 2 + problem.constant
    for term in problem.terms:
        out = out + total(weighted(term, term.loss.value(predictions(problem, term, x), term.y)))
    chosen = problem.units_of(x)
    return out + total(problem.prices[chosen]) if chosen.size else out


def dual(
    problem: Problem,
    points: list[Any] | None,
    at: Any = None,
    taken: Any = None,
    balanced: Any = (),
) -> Dual:
    """Return what dual points prove, or the tangent at ``at`` with the curvature ``taken`` out.

    Where observations are coupled, predictions stand for their gradient, and None for zero.
    That the curvature may be taken is for the caller to have shown. The bound is taken at a dual
    point nearby where also the slopes of the coordinates ``balanced`` are zero.
    """
    duals: list[Number] = []
    known = dict[int, Any]()
    for index, term in enumerate(problem.terms):
        if points is not None and isinstance(term.loss, Coupled):
            a, known[index] = term.loss.tangent(points[index], term.y)
            duals.append(a)
        elif points is not None:
            point = problem.number(points[index])
            duals.append(widened(term.loss, point, term.y) if isinstance(point, Ball) else point)
        elif term.loss.name == "linear_term":
            duals.append(problem.number(term.y))
        else:
            duals.append(predictions(problem, term, at) - problem.number(term.y))
    ridge = problem.ridge
    if taken is not None:
        ridge, point = ridge + problem.number(taken), problem.number(at)
        rows = problem.number(taken if at.ndim == 1 else taken[:, None])
    zero = np.union1d(unbounded(problem, ridge), balanced).astype(np.intp)
    near = shifted(problem, zero)  # at any intercept the tangent is as good
    duals, problem = _levelled(problem, near, duals) if points is None else duals, near
    if zero.size:
        balanced = None if known else _balanced(problem, duals, zero)
        if balanced is None:
            return -np.inf, np.full(problem.units, np.inf)
        duals = balanced
    base, v = problem.constant, problem.number(np.zeros(problem.shape))
    for index, (term, a) in enumerate(zip(problem.terms, duals, strict=True)):
        conjugate = known[index] if index in known else term.loss.conjugate(a, term.y)
        if not np.all(conjugate < np.inf):
            return -np.inf, np.full(problem.units, np.inf)
        base = base + total(weighted(term, a * term.o)) - total(weighted(term, conjugate))
        v = v + term.A.T @ weighted(term, a)
    if taken is not None:
        base, v = base + total(rows * point * point) / 2, v - rows * point
    v = put(v, zero, 0.0)
    gains = _gains(problem, v, ridge)
    free = gains[problem.free]
    return less(low(base), free.ravel().tolist()), problem.per_unit(gains)


def region_bound(problem: Problem, found: Dual, inside: Any, out: Any) -> Any:
    """Return the bound where some units are in for good and some are zero."""
    base, gains = found
    must = inside.copy()
    must[problem.unit[rows_of((problem.lower > 0.0) | (problem.upper < 0.0)) & problem.counted]] = 1
    crowded = any(must[among].sum() > most for among, most in problem.limits)
    left = ~must & ~out
    if problem.knapsack is not None:
        costs, budget = problem.knapsack
        room = math.fsum([budget, *(-costs[must]).tolist()])
        crowded = crowded or room < 0.0
        left &= costs <= np.nextafter(room, np.inf)
    if np.any(must & out) or must.sum() > problem.budget or crowded:
        return np.inf  # nothing is feasible there
    prices = high(problem.prices)
    found = _priced(problem, base, gains, prices, must, left)
    if problem.knapsack is None:
        return found
    return max(found, _budgeted(problem, base, gains, prices, must, left, problem.knapsack))


def _priced(problem: Problem, base: Any, gains: Any, prices: Any, must: Any, left: Any) -> Any:
    """Return the bound where units of ``must`` are in and others may be, at these prices."""
    profits = gains - prices
    if not problem.exact:
        profits = profits + 2.0 * UNIT * (np.abs(gains) + np.abs(prices))
    return less(base, [*profits[must], *_best(problem, profits, must, left)])


def _budgeted(
    problem: Problem,
    base: Any,
    gains: Any,
    prices: Any,
    must: Any,
    left: Any,
    knapsack: tuple[Any, float],
) -> Any:
    r"""Return the best bound with :math:`\mu (c(S) - B) \le 0`, :math:`\mu \ge 0`, added.

    It is concave in :math:`\mu`: a search in thirds, from zero to the largest profit per cost. The
    budget is what ``must`` leaves of it.
    """
    costs, budget = knapsack
    profits = np.asarray(gains, dtype=np.float64) - np.asarray(prices, dtype=np.float64)
    on = left & (profits > 0.0) & (costs > 0.0)
    worth = profits[on] / costs[on]
    room = math.fsum([budget, *(-costs[must]).tolist()])
    if costs[on].sum() <= room or not np.all(np.isfinite(worth)):
        return -np.inf  # all fit

    def at(mu: float) -> Any:
        if problem.exact:
            share, most = Fraction(mu) * problem.number(costs), Fraction(mu) * Fraction(budget)
        else:
            share = np.maximum(mu * costs * (1.0 - 4.0 * UNIT), 0.0)
            most = np.nextafter(mu * budget, np.inf)
        dearer = prices + share
        if not problem.exact:
            dearer = dearer * (1.0 - 4.0 * UNIT)
        return _priced(problem, less(base, [most]), gains, dearer, must, left)

    low, high_ = 0.0, float(worth.max())
    best = -np.inf
    for _ in range(80):
        third = (high_ - low) / 3.0
        one, two = at(low + third), at(high_ - third)
        best = max(best, one, two)
        low, high_ = (low + third, high_) if one < two else (low, high_ - third)
    order = np.argsort(-worth, kind="stable")
    over = np.flatnonzero(np.cumsum(costs[on][order]) > room)
    return max(best, at(float(worth[order[over[0]]]))) if over.size else best


def _best(problem: Problem, profits: Any, must: Any, left: Any) -> list[Any]:
    """Return the profits of the units that are best beside those of ``must``.

    One after the other, the largest first, where limits leave room: the best choice, as their sets
    are disjoint or one within the other.
    """
    rooms = [(among, most - int(must[among].sum())) for among, most in problem.limits]
    chosen, candidates = list[int](), np.flatnonzero(left & (profits > 0))
    for unit in candidates[np.argsort(-profits[candidates], kind="stable")].tolist():
        if len(chosen) == problem.budget - int(must.sum()):
            break
        if all(
            np.isin([*chosen, unit], among).sum() <= room for among, room in rooms if unit in among
        ):
            chosen.append(unit)
    return [profits[unit] for unit in chosen]


def bound(problem: Problem, found: Dual) -> Any:
    """Return the bound over all feasible points."""
    nothing = np.zeros(problem.units, dtype=bool)
    return region_bound(problem, found, nothing, nothing)


def _gains(problem: Problem, v: Number, ridge: Number) -> Any:
    """Return upper bounds on ``h``, in the shape of ``x``; convex in ``v``."""
    ridge = ridge if len(v.shape) == 1 else ridge[:, None]
    if problem.exact:
        return _gain_at(problem, v, ridge + 0 * v)
    curvature = np.maximum(low(ridge), 0.0) + np.zeros(v.shape)
    return np.maximum(*(_gain_at(problem, end, curvature) for end in (low(v), high(v))))


def _gain_at(problem: Problem, v: Any, d: Any) -> Any:
    """Return ``h`` at exact slopes and curvatures, rounded up."""
    some = d > 0
    peak = np.where(some, -v / np.where(some, d, 1), np.where(v > 0, -np.inf, np.inf))
    peak = np.where(~some & (v == 0), 0, peak)
    ends = [number(end, True) if problem.exact else end for end in problem.chosen]
    x = np.minimum(np.maximum(peak, ends[0]), ends[1])
    endless = np.abs(x) == np.inf
    x = np.where(endless, 0, x)
    if problem.exact:
        gain = -v * x - d * x * x / 2
    else:  # the peak is rounded itself, which changes the gain by far less than one rounding
        gain = high(-(Ball(v) * x) - Ball(d) * x * Ball(x) / 2) + 2.0 * UNIT * np.abs(v * x)
        gain = np.where((v == 0.0) & (x == 0.0), 0.0, gain + TINY * (x != 0.0))
    return np.where(endless, np.inf, gain)


def unbounded(problem: Problem, ridge: Number) -> Any:
    """Return the free coordinates with neither curvature nor bounds, where ``v`` must vanish."""
    endless = rows_of(np.isinf(problem.lower) & np.isinf(problem.upper))
    return problem.free[(middle(ridge)[problem.free] == 0.0) & endless[problem.free]]


def _balanced(problem: Problem, duals: list[Number], zero: Any) -> list[Number] | None:
    """Return a dual point, or where there is one, with exactly ``sum_t A_tj' (c_t a_t) = 0``.

    With ``B`` the columns ``zero`` and ``R`` the observations with room in their domain, ``a - R B
    y`` with ``(B' C R B) y = B' C a`` is one. In floats ``y`` is not computed but bounded, by the
    residual over the least eigenvalue.
    """
    columns = [term.matrix[:, zero] for term in problem.terms]
    norms = np.sqrt(sum((b**2).sum(axis=0) for b in columns))
    scale = np.exp2(np.round(np.log2(np.where(norms > 0.0, norms, 1.0))))  # exact powers of two
    columns = [b / scale for b in columns]
    sums: Any = 0
    for b, term, a in zip(columns, problem.terms, duals, strict=True):
        sums = problem.number(b).T @ weighted(term, a) + sums
    if np.all(high(abs(sums)) == 0):
        return duals
    rooms = [_room(t, a) for t, a in zip(problem.terms, duals, strict=True)]
    most = min(max((float(r.max(initial=0.0)) for r in rooms), default=0.0), 1e300)
    move = _moved_exactly if problem.exact else _moved
    for share in (0.1, 1e-3, 1e-6, 1e-9):
        moving = [r >= share * most if most > 0.0 else r > 0.0 for r in rooms]
        found = move(problem, duals, columns, sums, moving, rooms)
        if found is not None:
            return found
    return None


def _room(term: Term, a: Number) -> Any:
    """Return how far each row can move inside the domain of the conjugate."""
    at = middle(a)
    if term.loss.name == "multinomial_loss":
        s = at.copy()
        s[np.arange(s.shape[0]), term.y.astype(int)] += 1.0
        return s.min(axis=1)
    room = np.minimum(at - term.loss.lower, term.loss.upper - at)
    return room if room.ndim == 1 else room.min(axis=1)


def _moved(
    problem: Problem, duals: list[Number], columns: list[Any], sums: Any, moving: Any, rooms: Any
) -> list[Number] | None:
    terms, size = problem.terms, columns[0].shape[1]
    roots = [on * np.sqrt(t.c.mid) for t, on in zip(terms, moving, strict=True)]
    R: Any = np.linalg.qr(
        np.concatenate([r[:, None] * b for r, b in zip(roots, columns, strict=True)]), mode="r"
    )
    if R.shape[0] < size or not np.all(np.diag(R) != 0.0):
        return None
    inverse = np.linalg.inv(R)  # the columns as good as orthonormal: as good, if it is regular
    bases = [Ball(b) @ inverse for b in columns]
    gram, sums, error = np.zeros((size, size)), 0, TINY
    for t, q, root, a in zip(terms, bases, roots, duals, strict=True):
        scaled = root[:, None] * q.mid
        gram, sums = gram + scaled.T @ scaled, q.T @ weighted(t, a) + sums
        off = (root[:, None] * q.rad).sum(axis=1)
        error += 2.0 * float(off @ (np.abs(scaled).sum(axis=1) + off))
        error += (gamma(root.size + 16) + 64.0 * size**2 * UNIT) * float(np.square(scaled).sum())
    least = float(np.linalg.eigvalsh(gram)[0]) - 2.0 * error
    if not least > 0.0:
        return None
    reach = float(np.sqrt(np.square(high(abs(sums))).sum())) / least * (1.0 + gamma(100))
    out = []
    for a, q, on, room in zip(duals, bases, moving, rooms, strict=True):
        length = np.sqrt(np.square(high(abs(q))).sum(axis=1))
        rad = on * length * reach * (1.0 + gamma(size + 100))
        before = a.rad if a.rad.ndim == 1 else a.rad.max(axis=1)
        if not np.all((rad + before)[on] <= room[on]):
            return None
        out.append(Ball(a.mid, up(a.rad + (rad if a.mid.ndim == 1 else rad[:, None]))))
    return out


def _moved_exactly(
    problem: Problem, duals: list[Number], columns: list[Any], sums: Any, moving: Any, rooms: Any
) -> list[Number] | None:
    size = columns[0].shape[1]
    gram: Any = problem.number(np.zeros((size, size)))
    for term, b, on in zip(problem.terms, columns, moving, strict=True):
        exact = problem.number(b[on])
        gram = gram + exact.T @ (term.c[on][:, None] * exact)
    y = _solution(gram, sums)
    if y is None:
        return None
    out = []
    for a, b, on in zip(duals, columns, moving, strict=True):
        moved = a.copy()
        moved[on] = a[on] - problem.number(b[on]) @ y
        out.append(moved)
    return out


def _solution(matrix: Any, right: Any) -> Any:
    """Return the solution of equations in Fractions by elimination; None where there is none."""
    m, r = matrix.copy(), right.copy()
    for i in range(m.shape[0]):
        pivots = [j for j in range(i, m.shape[0]) if m[j, i] != 0]
        if not pivots:
            return None
        m[[i, pivots[0]]], r[[i, pivots[0]]] = m[[pivots[0], i]], r[[pivots[0], i]]
        r[i], m[i] = r[i] / m[i, i], m[i] / m[i, i]
        for j in range(m.shape[0]):
            if j != i:
                r[j], m[j] = r[j] - m[j, i] * r[i], m[j] - m[j, i] * m[i]
    return r
