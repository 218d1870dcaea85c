"""What the numbers of a regression's certificate prove, and whether its point is feasible."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from sparsemodel.checker.files import NotChecked, Refuted, array, index, real
from sparsemodel.checker.proof.arithmetic import TINY, UNIT
from sparsemodel.checker.proof.bound import dual
from sparsemodel.checker.proof.limits import FEASIBLE, Eigenvalues
from sparsemodel.checker.proof.losses import loss_of
from sparsemodel.checker.proof.problem import Problem, Term
from sparsemodel.checker.proof.quadratic import check_coefficients, check_curvature
from sparsemodel.checker.proof.tree import RegressionTree, fitting


def violations(problem: Problem, x: Any) -> list[str]:
    """Return what keeps a point from being feasible, in words."""
    out = problem.supports.broken(problem.units_of(x))
    if problem.rows is not None:
        matrix, least, most = problem.rows
        value, reach = matrix @ x, np.abs(matrix) @ np.abs(x)
        over = np.maximum(np.maximum(value - most, least - value), 0.0)
        ends_size = [np.where(np.isfinite(e), np.abs(e), 0.0) for e in (least, most)]
        size = np.minimum(reach, 1.0) + np.abs(value) + np.maximum(*ends_size)
        rounding = (np.count_nonzero(x) + 1) * 2.0**-53 * reach
        if np.any(over - rounding > FEASIBLE * size):
            out.append("a linear constraint does not hold")
    out += [norm.broken(x) for norm in problem.norms if norm.broken(x)]
    if np.any((x != 0.0) & (np.abs(x) < problem.least * (1.0 - FEASIBLE))):
        out.append("a coordinate is nearer to zero than it may be")
    largest = min(float(np.abs(x).max(initial=0.0)), 1.0)
    for side, ends in ((1.0, problem.lower), (-1.0, problem.upper)):
        size = np.where(ends == 0.0, largest, np.where(np.isfinite(ends), np.abs(ends), 0.0))
        slack = FEASIBLE * size
        if np.any(side * (x - ends) < -slack):
            out.append("a coordinate is outside of its bounds")
    return out


def proved(body: dict[str, Any], problem: Problem, upper: float, feasible: bool) -> Any:
    """Return the best bound that the numbers of the file prove."""
    witness, proof = body["witness"], body["proof"]
    whole, held = problem, witness.get("multipliers")
    if held is not None:
        problem = _without_rows(whole, held, array(held["slopes"]))
    if witness["bounds"] is not None:
        problem = _within(problem, witness["bounds"], upper, feasible)
    taken, at = array(witness["extraction"]), array(witness["at"])
    points = [array(a) for a in witness["duals"]]
    tangent = taken is not None or any(a is None for a in points)
    fits = at is not None and at.shape == problem.shape and bool(np.all(np.isfinite(at)))
    if tangent and not (problem.squares and fits):
        raise NotChecked("a loss that is bounded by a tangent, as its conjugate is not known")
    found = -math.inf
    if proof is not None or not points:
        found = problem.supports.bound(*dual(problem, [None] * len(problem.terms)))
    if taken is not None:
        check_curvature(problem, taken, np.ones(problem.shape[0], dtype=bool))
    if tangent:
        found = max(found, problem.supports.bound(*dual(problem, None, at, taken)))
    elif points:
        found = max(found, problem.supports.bound(*dual(problem, fitting(problem, points))))
    if proof is not None and proof["tree"] is not None:
        try:
            tree = RegressionTree(problem, proof["tree"])
            if held is not None:  # bounds on the coefficients hold for one choice of the slopes
                tree.at = lambda y: _without_rows(whole, held, y)
                names = [t.loss.name for t in problem.terms]
                own = held.get("own")
                tree.priced = names.index("linear_term", len(whole.terms)) if own else None
            found = max(found, tree.bound())
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise Refuted(f"the tree is malformed: {error!r}.") from None
    elif proof is not None and real(body["bound"]) > found:
        raise NotChecked(f"a search without its tree: the file proves only {float(found)!r}")
    return found


def _without_rows(problem: Problem, held: dict[str, Any], y: Any) -> Problem:
    r"""Return the problem with :math:`y'(Cx - b) + \tfrac12 \sum_i \rho_i (Cx - b)_i^2` in place of
    its constraints: nowhere above it, with ``b`` an end where :math:`y'Cx` is largest. Of limits on
    norms ``y`` has further entries, or for all parts it is :math:`\tfrac\mu2(\|Cx + s\|_2^2 - r^2)`
    or :math:`\mu(\|Cx + s\|_1 - r)`.
    """
    if (problem.rows is None and not problem.norms) or len(problem.shape) > 1:
        raise Refuted("multipliers without linear constraints.")
    matrix, low, high = problem.rows or (np.zeros((0, problem.shape[0])), np.zeros(0), np.zeros(0))
    stiff, mu, own = array(held["stiffness"]), array(held.get("norms")), held.get("own", False)
    sloped = problem.norms if y.size > low.size else ()
    mu = np.zeros(len(problem.norms)) if mu is None else mu
    sizes = [low.size, *(norm.shift.size for norm in sloped)]
    if (y.shape, stiff.shape, mu.shape) != ((sum(sizes),), low.shape, (len(problem.norms),)):
        raise Refuted("the multipliers do not fit the constraints.")
    first, *others = np.split(y, np.cumsum(sizes)[:-1])
    ends = [np.where(first > 0.0, high, np.where(first < 0.0, low, 0.0))]
    ends += [norm.end(part) for norm, part in zip(sloped, others, strict=True)]
    if not np.all(np.isfinite([*y, *stiff, *np.concatenate(ends), *mu])):
        raise Refuted("the multipliers do not fit the constraints.")
    if np.any(stiff < 0.0) or np.any(stiff[low < high]) or np.any(mu < 0.0):
        raise Refuted("a multiplier has the wrong sign.")
    if not isinstance(own, bool):
        raise Refuted("line 'witness.multipliers.own' says neither yes nor no.")
    made, constant = list[tuple[str, Any, Any, Any, Any]](), problem.constant
    for norm, m in zip(problem.norms, mu.tolist(), strict=True):
        if m > 0.0:
            if isinstance(norm, Eigenvalues):
                raise Refuted("bounds on eigenvalues have slopes alone.")
            name = "squared_loss" if norm.order == 2 else "absolute_loss"
            made.append((name, norm.matrix, -norm.shift, np.full(norm.shift.size, m), 0.0))
            reach = problem.number(np.array(norm.radius))
            most = reach * reach / 2 if norm.order == 2 else reach
            constant = constant - problem.number(np.array(m)) * most
    if own or np.any(y):  # parts have others, though all of them are zero here
        every = np.concatenate([matrix, *(norm.matrix for norm in sloped)])
        made.append(("linear_term", every, y, np.ones(y.size), -np.concatenate(ends)))
    if np.any(stiff):
        made.append(("squared_loss", matrix, np.where(stiff > 0.0, low, 0.0), stiff, 0.0))
    terms = list(problem.terms)
    for name, entries, aim, c, o in made:
        A, weights, offset = (problem.number(v) for v in (entries, c, o + np.zeros(aim.shape)))
        loss = loss_of(name, {}, aim, aim.shape)
        if name == "linear_term":  # another slope of the same sign, or of an equation, is as good
            equal = np.append(low == high, np.zeros(y.size - low.size, dtype=bool)) & (y != 0.0)
            rows = np.arange(y.size) < low.size
            below, above = rows & ((y < 0.0) | equal), rows & ((y > 0.0) | equal)
            loss.lower = np.where(below, -np.inf, np.where(rows, 0.0, y))
            loss.upper = np.where(above, np.inf, np.where(rows, 0.0, y))
        terms.append(Term(entries, A, loss, aim, weights, offset))
    squares = problem.squares and all(t.loss.name != "absolute_loss" for t in terms)
    whole = replace(problem, terms=terms, constant=constant, squares=squares)
    lower, upper = _implied(problem, matrix, low, high)
    return replace(whole, lower=lower, upper=upper, rows=None, norms=())


def _implied(problem: Problem, matrix: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return bounds with what constraints imply where there is none, rounded outwards."""
    lower, upper, counted = problem.lower.copy(), problem.upper.copy(), problem.unit >= 0
    for norm in problem.norms:
        if isinstance(norm, Eigenvalues) or norm.index is None:
            continue
        inside = counted[norm.index]
        on, shift = norm.index[inside], norm.shift[inside]
        slack = 16.0 * UNIT * (norm.radius + np.abs(shift)) + TINY
        far = np.maximum(norm.radius - shift + slack, 0.0)
        near = np.minimum(-norm.radius - shift - slack, 0.0)
        upper[on] = np.where(upper[on] == np.inf, far, upper[on])
        lower[on] = np.where(lower[on] == -np.inf, near, lower[on])
    for row, end in (*zip(matrix, high, strict=True), *zip(-matrix, -low, strict=True)):
        on = np.flatnonzero(row)
        c = row[on]
        least = np.where(c > 0.0, c * lower[on], c * upper[on])
        if not np.isfinite(end) or np.isinf(least).sum() > 1:
            continue
        known = np.where(np.isinf(least), 0.0, least)
        rest = known.sum() - known  # of the others; where one of them has no end, this is for it
        rest = np.where(np.any(np.isinf(least)) & ~np.isinf(least), -np.inf, rest)
        slack = 16.0 * UNIT * (on.size + 8) * (abs(end) + np.abs(known).sum())
        reach = np.maximum((end - rest + slack) / np.abs(c), 0.0)
        more, less = on[counted[on] & (c > 0.0)], on[counted[on] & (c < 0.0)]
        far, near = reach[counted[on] & (c > 0.0)], -reach[counted[on] & (c < 0.0)]
        upper[more] = np.where(upper[more] == np.inf, far, upper[more])
        lower[less] = np.where(lower[less] == -np.inf, near, lower[less])
    return lower, upper


def _within(problem: Problem, held: dict[str, Any], upper: float, feasible: bool) -> Problem:
    """Check coefficient bounds and return the problem in the box that they make."""
    m, p = array(held["radius"]), problem.shape[0]
    starts, flat = np.array(held["starts"]), held["neighbours"]
    fits = (
        m.shape == (p,) and starts.shape == (p + 1,) and starts[0] == 0 and starts[-1] == len(flat)
    )
    if not fits or np.any(np.diff(starts) < 0) or np.any(np.isnan(m)):
        raise Refuted("the coefficient bounds do not fit the problem.")
    near_by = {}
    for j in np.flatnonzero(np.diff(starts)):
        near_by[int(j)] = index(flat[starts[j] : starts[j + 1]], p).tolist()
        if j in near_by[int(j)] or np.any(problem.unit[[j, *near_by[int(j)]]] < 0):
            raise Refuted("a neighbour is the coordinate itself, or always in.")
    check_coefficients(problem, (m, near_by, real(held["level"])), upper, feasible)
    box = np.maximum(problem.lower, -m), np.minimum(problem.upper, m)
    least = np.where(problem.least <= m, problem.least, 0.0)
    return replace(problem, lower=box[0], upper=box[1], least=least)
