r"""Squared losses as one quadratic: curvature, bounds on coefficients, all supports of a part.

.. math:: P(x) = \text{constant} - g'x + \tfrac12 x'(H + \Lambda) x, \qquad
          H = \sum_t A_t' \mathrm{diag}(c_t) A_t .

*Coefficient bounds.* Eliminate the free coordinates (Schur complement, ``S`` below). Let ``M > 0``.
Divide the supports of every counted ``j``: those with some ``i`` of ``N_j``, those without it, and
again, as often as you like. A part has some ``T`` in and some ``E`` out. If for every ``j`` and
every part with at most ``k - 1`` in there are numbers ``rho`` on ``I = {j} + T`` with

.. math:: |\rho' (S + \Lambda)_{I,j}| M_j > |\rho' g_I|
          + \sum_{i \in T} |\rho' (S + \Lambda)_{I,i}| M_i
          + \text{the } k - 1 - |T| \text{ largest } |\rho' S_{I,i}| M_i, \; i \notin I + E,

then on every support of at most ``k`` counted coordinates the minimiser is unique and ``|x_j| <
M_j``. Proof: let ``r = max |x_j| / M_j >= 1``, attained at ``j``, and take the part of ``j`` that
the support is in. The optimality conditions on ``I``, multiplied by ``rho`` and added up, give the
inequality with ``r`` on the left and at most ``r`` times the right side: a contradiction. A null
vector does the same with ``g = 0``. Rows whose ``M_j`` is no less than a bound known otherwise need
nothing: a declared bound, or with a ridge ``lambda_j M_j^2 / 2`` above what a better point than a
known one has to pay with.

Beside other constraints the bounds are on *all* points with an objective below a level, as far as
``E`` above the infimum of the losses, and what is proved is no higher than the level. Their
gradient ``r`` need not vanish, but a step along ``I`` lowers the objective by ``r_I' (S +
Lambda)_II^-1 r_I / 2``, which is at most ``E``: the right side is larger by ``sqrt(2 E rho' (S +
Lambda)_II rho)``.

*Equal columns*, but for the sign and beside an intercept for a constant, are worth no more together
than one of them where neither has a ridge or bounds, or both the same sign: coefficients add up,
and of two with one sign what they have in common cancels where columns are each other's negative
(not with least sizes). Supports that hold both need no bounds, and the entry between them is left
out of ``S``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from sparsemodel.checker.files import array, index, real, require
from sparsemodel.checker.proof.arithmetic import (
    UNIT,
    Ball,
    blocks,
    distinct,
    eliminated,
    high,
    less,
    low,
    middle,
    one_sum,
    put,
    total,
)
from sparsemodel.checker.proof.bound import dual, shifted, unbounded
from sparsemodel.checker.proof.problem import Problem

_PARTS = 8_000
"""Parts that the supports of one row may be divided into."""


def check_curvature(problem: Problem, taken: Any, member: Any) -> None:
    """Raise :class:`Refuted` unless ``diag(taken)`` can be taken out where others are zero.

    Of columns that are alike and from which nothing is taken one is as good as all.
    """
    fits = problem.squares and taken.shape == problem.shape[:1]
    if fits and taken.any():
        near, _ = shifted(problem, unbounded(problem, problem.ridge + taken))
        terms = [t for t in near.terms if t.loss.name == "squared_loss"]
        parts = [(t.A[:, member], t.c[:, None]) for t in terms]
        h = reduce(add, (A.T @ (c * A) for A, c in parts))
        fits = has_curvature(h, taken[member])
        if not fits:
            loose, on = np.flatnonzero(member & (taken == 0.0)), member & (taken != 0.0)
            on[loose[distinct([t.matrix[:, loose] for t in terms])]] = True
            some = on[member]
            fits = has_curvature(h[some][:, some], taken[on])
    require(fits, "the data do not have the curvature that is taken out")


def has_curvature(h: Ball, taken: Any) -> bool:
    """Return whether ``H - diag(taken)`` is proved to be positive semidefinite.

    With a factor ``L`` found in floats, ``H - diag(taken) - L L'`` must be diagonally dominant with
    a nonnegative diagonal, in units of the columns.
    """
    size = np.sqrt(np.maximum(np.diag(middle(h)), 0.0))
    if np.any(taken < 0.0) or not np.all(np.isfinite(taken)) or np.any((size == 0) & (taken > 0)):
        return False
    scale = np.exp2(-np.round(np.log2(np.where(size > 0.0, size, 1.0))))  # powers of two
    matrix, shift = middle(h) * np.outer(scale, scale), taken * scale * scale
    rows = np.abs(matrix).sum(axis=1)
    spread = (h.rad * np.outer(scale, scale)).sum(axis=1)
    # Several times what rounding does to the factor, of few columns too; any factor may be tried.
    margin = 1.1 * spread + (0.25 * (len(size) + 4) * np.sqrt(len(size)) + 8) * UNIT * (1.0 + rows)
    try:
        factor = np.linalg.cholesky(
            matrix - np.diag(shift + margin * (size > 0.0)) + np.diag(1.0 * (size == 0.0))
        )
    except np.linalg.LinAlgError:
        return False
    factor[size == 0.0] = 0.0
    found = h.like(factor)
    rest = h * np.outer(scale, scale) - np.diag(shift) - found @ found.T
    diagonal = low(rest[np.arange(len(size)), np.arange(len(size))])
    off = put(rest, np.diag_indices(len(size)), 0.0)
    return bool(np.all(diagonal >= high(abs(off) @ np.ones(len(size)))))


def reduced(problem: Problem, inside: Any) -> tuple[Ball, Ball, Ball]:
    """Return ``S + Lambda``, ``g`` and the value with the coordinates ``inside`` minimised out.

    ``S + Lambda`` has rows and columns for all coordinates; those of ``inside`` mean nothing.
    """
    p, value, aims = problem.shape[0], problem.constant, problem.number(np.zeros(problem.shape))
    s: Any = problem.number(np.zeros((p, p)))
    for term in shifted(problem, unbounded(problem, problem.ridge))[0].terms:
        A, y = term.A, term.y
        if term.loss.name == "squared_loss":
            y = y - term.o
            s, aims = s + A.T @ (term.c[:, None] * A), aims + A.T @ (term.c * y)
            value = value + total(term.c * y * y) / 2
        else:
            aims, value = aims - A.T @ (term.c * y), value + total(term.c * y * term.o)
    s = s + problem.ridge[:, None] * np.eye(p)
    found: Any = eliminated(blocks([[s, aims[:, None]], [aims[None, :], 2 * value]]), inside)
    require(found is not None, "columns that are always in may be linearly dependent")
    return found[:p, :p], found[:p, p], found[p, p] / 2


def within(
    whole: Problem, problem: Problem, held: dict[str, Any], upper: float, feasible: bool
) -> Problem:
    """Check coefficient bounds and return the problem in the box that they make.

    ``upper`` is the objective at the certificate's point. ``problem`` may have constraints of the
    ``whole`` one in its objective; bounds at a level are about that.
    """
    inner, everywhere = problem, held.get("room") is not None
    problem = whole if everywhere else problem
    m, p, level = array(held["radius"]), problem.shape[0], real(held["level"])
    starts, flat = np.array(held["starts"]), held["neighbours"]
    fits = m.shape == (p,) and starts.shape == (p + 1,) and starts[0] == 0
    fits = fits and starts[-1] == len(flat) and np.all(np.diff(starts) >= 0)
    require(fits and not np.any(np.isnan(m)), "the coefficient bounds do not fit the problem")
    near = {int(j): flat[starts[j] : starts[j + 1]] for j in np.flatnonzero(np.diff(starts))}
    for j, own in near.items():
        fits = j not in index(own, p) and np.all(problem.unit[[j, *own]] >= 0)
        require(fits, "a neighbour is the coordinate itself, or always in")
    counted = np.flatnonzero(problem.counted)
    sides = np.stack([problem.lower, problem.upper])
    beyond = (sides == 0.0) | np.isinf(sides) | (np.abs(sides) > m)  # such bounds hold no minimiser
    signs = everywhere or (np.all(beyond) and not np.any(problem.least))
    fits = problem.squares and len(problem.shape) == 1
    fits = fits and (everywhere or np.all(np.isinf(sides[:, problem.free])))
    require(fits, "coefficient bounds are for squared losses and vectors")
    fits = np.all((problem.lower[counted] <= 0.0) & (problem.upper[counted] >= 0.0))
    require(fits, "coefficient bounds where declared bounds keep coordinates from zero")
    fits = np.all(m[counted] > 0.0) and np.all(m[problem.free] == np.inf)
    require(fits, "a coefficient bound is not positive")
    require(signs or not near, "neighbours are eliminated although bounds may hold them")
    known, room = np.maximum(-problem.lower, problem.upper) <= m, problem.number(np.array(0.0))
    if everywhere or level < np.inf:
        fits = everywhere or (not problem.bounded and feasible and upper <= level)
        require(fits, "no point at the level that coefficient bounds start from is known")
        infimum = dual(problem, [None] * len(problem.terms))[0]
        reach = np.where(known | np.isinf(m), 0.0, m)
        paid = low(problem.ridge * reach * reach / 2)
        above = high(problem.number(level) - infimum)
        known |= paid >= above
        if everywhere:
            fits = above <= real(held["room"]) < np.inf
            require(fits, "the level of coefficient bounds is further above the infimum")
            room = problem.number(np.array(2.0 * real(held["room"])))
    s, g, _ = reduced(problem, problem.free)
    if not everywhere:
        first, second = _equal_columns(problem, s, counted)
        s = put(put(s, (first, second), 0.0), (second, first), 0.0)
    for j in np.setdiff1d(counted, np.flatnonzero(known)).tolist():
        holds = not everywhere and np.all(high(abs(s[j])) == 0) and high(abs(g[j])) == 0
        holds = holds or _row_holds(problem, s, g, m, j, near.get(j, []), counted, room)
        require(holds, f"the data do not bound coordinate {j} as the certificate says")
    return boxed(inner, m)


def boxed(problem: Problem, m: Any) -> Problem:
    """Return the problem with the box ``|x| <= m``."""
    box = np.maximum(problem.lower, -m), np.minimum(problem.upper, m)
    least = np.where(problem.least <= m, problem.least, 0.0)
    return replace(problem, lower=box[0], upper=box[1], least=least)


def _equal_columns(problem: Problem, s: Ball, counted: Any) -> Any:
    """Return pairs of coordinates whose columns agree as it says above, shape ``(2, m)``."""
    matrices = [term.matrix for term in problem.terms]
    plain = np.all(matrices[0] == 1.0, axis=0) & (middle(problem.ridge) == 0.0)
    shifted = len(matrices) == 1 and bool(np.any(plain[problem.free]))
    lower, upper = problem.lower, problem.upper
    signs_only = np.isin(lower, (-np.inf, 0.0)) & np.isin(upper, (0.0, np.inf)) & (lower < upper)
    loose = counted[((middle(problem.ridge) == 0.0) & signs_only)[counted]]
    size = np.sqrt(np.maximum(np.diag(middle(s)), 0.0))[loose]
    close = np.abs(middle(s)[np.ix_(loose, loose)]) >= (1.0 - 1e-6) * np.outer(size, size)
    found = []
    for i, j in loose[np.argwhere(np.triu(close, 1))]:
        alike = lower[i] == lower[j] and upper[i] == upper[j]
        least = problem.least[i] > 0.0 or problem.least[j] > 0.0
        for sign in ((-1.0,) if least else (1.0, -1.0)) if alike else ():
            sums = [(matrix[:, i], sign * matrix[:, j]) for matrix in matrices]
            if all(one_sum(a, b, zero=not shifted) for a, b in sums):
                found.append((i, j))
    return np.array(found, dtype=int).reshape(-1, 2).T


def _row_holds(
    problem: Problem,
    s: Ball,
    g: Ball,
    m: Any,
    j: int,
    near: list[int],
    counted: Any,
    room: Any,
) -> bool:
    """Return whether every part of a row's supports holds, divided only where one does not yet.

    ``room`` is twice what points may be above the infimum. Rows of zeros, which nothing depends on,
    are not asked.
    """
    weights = np.where(np.isfinite(m), m, 0.0)
    sizes = np.sort(np.bincount(problem.unit[counted]))[::-1]  # of the units, in coordinates
    most_of_all = int(sizes[: problem.supports.budget].sum())
    todo: list[tuple[list[int], list[int]]] = [([j], [])]
    for _ in range(_PARTS):
        if not todo:
            return True
        inside, out = todo.pop()
        first = np.zeros(len(inside))
        first[0] = 1.0  # the best rho is the first row of the inverse; any is allowed
        try:
            rho = np.linalg.solve(middle(s)[np.ix_(inside, inside)], first)
        except np.linalg.LinAlgError:
            return False
        row = abs(rho @ s[inside]) * weights
        own, most = low(row[j]), high(row)
        push = high(room * (abs(rho) @ abs(s[np.ix_(inside, inside)] @ rho)))
        fixed = high(abs(rho @ g[inside])) + most[inside[1:]].sum()
        others = np.setdiff1d(counted, [*inside, *out])
        others = others[np.argsort(-most[others], kind="stable")]
        while True:
            chosen = others[: most_of_all - len(inside)]
            right = fixed + most[chosen].sum()
            spare = own - (right if problem.exact else right * (1.0 + 1e-12))
            if spare > 0 and spare * spare > (push if problem.exact else push * (1.0 + 1e-12)):
                break
            split = next((int(i) for i in chosen if int(i) in near), None)
            if split is None:
                return False
            todo.append(([*inside, split], list(out)))
            out = [*out, split]
            others = others[others != split]
    return False


def least_of_all(problem: Problem, inside: Any, rest: Any, k: int) -> Any:
    """Return a bound on all supports with ``inside`` and at most ``k`` of the coordinates ``rest``.

    Every support is looked at, one more coordinate eliminated at a time.
    """
    s, g, value = reduced(problem, inside)
    gain = _largest(s[np.ix_(rest, rest)], s[rest, rest], g[rest], min(k, len(rest)))
    return less(low(value), [gain]) if gain < np.inf else -np.inf


def _largest(m: Ball, diagonal: Ball, g: Ball, k: int) -> Any:
    """Return the largest ``g_S' m_SS^-1 g_S / 2`` over supports of up to ``k``, rounded up.

    Of ``m`` only what is beside the diagonal is read, and for k = 1 nothing.
    """
    size = g.shape[0]
    if k == 0 or size == 0:
        return 0
    if not np.all(low(diagonal) > 0):
        return np.inf
    own = high(g * g / diagonal / 2)
    best = own.max()
    for i in range(size - 1 if k > 1 else 0):
        rows = np.arange(i + 1, size)
        ratio = m[i, rows] / diagonal[i]
        inner = m[np.ix_(rows, rows)] - ratio[:, None] * m[i, rows][None, :] if k > 2 else m
        left = diagonal[rows] - ratio * m[i, rows]
        more = own[i] + _largest(inner, left, g[rows] - ratio * g[i], k - 1)
        best = max(best, more if m.exact else float(np.nextafter(more, np.inf)))
    return best
