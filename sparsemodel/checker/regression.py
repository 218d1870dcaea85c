"""The certificate of a sparse regression, line by line."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from sparsemodel.checker.arithmetic import UNIT, Ball, gamma, high, low, middle
from sparsemodel.checker.bound import bound, dual, objective, predictions, weighted
from sparsemodel.checker.claims import (
    Report,
    claim_of,
    constant_part,
    exact_fit,
    first_order,
    gap_of,
    near,
    relative_gap_of,
    violations,
)
from sparsemodel.checker.files import Data, NotChecked, Refuted, array, index, real
from sparsemodel.checker.losses import Coupled, loss_of
from sparsemodel.checker.problem import Problem, Term, build, rows_of
from sparsemodel.checker.quadratic import check_coefficients, has_curvature, hessian
from sparsemodel.checker.tree import RegressionTree, fitting


def check(body: dict[str, Any], data: Data, exact: bool, report: Report) -> str:
    """Check everything and return the claim; what does not hold is raised as :class:`Refuted`."""
    problem = build(body["problem"], data, exact)
    report.problem(["minimise"] + ["  " + line for line in problem.words])
    report.line("data", "fingerprints", "the same")
    x = array(body["witness"]["x"])
    if x is None or x.shape != problem.shape or not np.all(np.isfinite(x)):
        raise Refuted("the point does not fit the problem, or is not finite.")
    broken = violations(problem, x)
    if bool(broken) != bool(body["violations"]):
        raise Refuted(f"line 'violations' says {body['violations']}, and found: {broken or 'none'}")
    report.line("feasible", not body["violations"], not broken)
    upper = _value(body, problem, x, report)
    _point(body, problem, x, report)
    found, taken = _bound(body, problem, real(body["upper"]), not broken, report)
    stated = real(body["bound"])
    if stated == -math.inf:
        weaker = body["bound_reason"] == "the bound contradicts the point"
        if body["proof"] is None and found > -math.inf and not weaker:
            raise Refuted(f"line 'bound' says that there is none, and it is {float(found)!r}.")
    elif not stated <= found:
        raise Refuted(f"line 'bound' says {stated!r}, and only {float(found)!r} is proved.")
    report.line("bound D", stated, float(found))
    null = float(middle(objective(problem, np.zeros(problem.shape))))
    report.same("null value", real(body["null_value"]), null)
    constant = constant_part(problem)
    report.same("constant", real(body["constant"]), constant)
    stationary = _first_order(body, problem, x, taken, report)
    share = relative_gap_of(upper, stated, constant)
    report.exactly("gap", real(body["gap"]), gap_of(upper, stated))
    report.exactly("relative gap", real(body["relative_gap"]), share)
    zero = 0.0 <= stated < math.inf and exact_fit(problem, x, real(body["value"]))
    claim = claim_of(not broken, share, zero, stationary)
    report.exactly("claim", body["claim"], claim)
    report.unknown("bound_method, bound_reason, assumptions (words), allowance (given away)")
    return claim


def _value(body: dict[str, Any], problem: Problem, x: Any, report: Report) -> float:
    value = objective(problem, x)
    stated, upper = real(body["value"]), real(body["upper"])
    # What the writer allowed for is not known here, but that is how far floats may be.
    error = min(upper - stated, _rounding(problem, x)) + float(high(value) - low(value))
    if not abs(stated - float(middle(value))) <= error:
        raise Refuted(f"line 'value' says {stated!r}, and it is {float(middle(value))!r}.")
    report.line("objective P", stated, float(middle(value)))
    if not upper >= high(value):
        raise Refuted(f"line 'upper' says {upper!r}, and P may be {float(high(value))!r}.")
    report.line("P is at most", upper, float(high(value)))
    return upper


def _rounding(problem: Problem, x: Any) -> float:
    """Return how far a value may be from P(x) that was computed with plain products of floats."""
    squares = np.square(x).reshape(len(x), -1).sum(axis=1)
    room = gamma(64 + len(x)) * float(middle(problem.ridge) @ squares)
    for t in problem.terms:
        reach = np.abs(t.matrix) @ np.abs(x) + np.abs(middle(t.o))
        wide = Ball(middle(predictions(problem, t, x)), gamma(64 + 4 * len(x)) * reach)
        v = weighted(replace(t, c=Ball(middle(t.c))), t.loss.value(wide, t.y))
        room += float(np.sum(v.rad + gamma(64 + v.mid.size) * np.abs(v.mid)))
    return room


def _point(body: dict[str, Any], problem: Problem, x: Any, report: Report) -> None:
    support = np.flatnonzero(rows_of(x) & problem.counted).tolist()
    report.exactly("support", body["support"], support)
    names = {int(j): name for j, name in body["names"].items()}
    if sorted(names) != sorted({*support, *(int(j) for j in problem.free)}):
        raise Refuted("line 'names' is not about the support and what is always in.")
    entries = {name: x[j].tolist() for j, name in sorted(names.items())}
    if entries != body["coefficients"]:
        raise Refuted("line 'coefficients' is not what the point and the names say.")
    known = {j: problem.columns[j] for j in names if j in problem.columns}
    for j, name in known.items():
        if name != names[j] and not names[j].endswith(f"[{name}]"):
            raise Refuted(f"line 'names' calls coordinate {j} {names[j]!r}; your data, {name!r}.")
    report.line("coefficients", f"{len(entries)} named", "those of the point")
    if len(known) < len(names):
        report.unknown("what columns are called, where your files have no header")


def _bound(
    body: dict[str, Any], problem: Problem, upper: float, feasible: bool, report: Report
) -> tuple[Any, Any]:
    """Return the best bound that the numbers of the file prove, and the curvature taken out."""
    witness, proof = body["witness"], body["proof"]
    whole, held = problem, witness.get("multipliers")
    if held is not None:
        problem = _without_rows(whole, held, array(held["slopes"]))
        report.line("multipliers of the constraints", "fit", "fit")
    if witness["bounds"] is not None:
        problem = _within(problem, witness["bounds"], upper, feasible)
        report.line("coefficient bounds", "hold", "hold")
    taken, at = array(witness["extraction"]), array(witness["at"])
    points = [array(a) for a in witness["duals"]]
    tangent = taken is not None or any(a is None for a in points)
    fits = at is not None and at.shape == problem.shape and bool(np.all(np.isfinite(at)))
    if tangent and not (problem.squares and fits):
        raise NotChecked("a loss that is bounded by a tangent, as its conjugate is not known")
    found = -math.inf
    if proof is not None or not points:
        shapes = [(t.matrix.shape[0], *problem.shape[1:]) for t in problem.terms]
        zeros = [
            None if isinstance(t.loss, Coupled) else np.zeros(shape)
            for t, shape in zip(problem.terms, shapes, strict=True)
        ]
        found = bound(problem, dual(problem, zeros))
    if taken is not None and (
        taken.shape != problem.shape[:1]
        or (taken.any() and not has_curvature(hessian(problem, taken), taken, problem.exact))
    ):
        raise Refuted("the data do not have the curvature that is taken out.")
    if tangent:
        found = max(found, bound(problem, dual(problem, None, at, taken)))
    elif points:
        found = max(found, bound(problem, dual(problem, fitting(problem, points))))
    if proof is not None and proof["tree"] is not None:
        try:
            tree = RegressionTree(problem, proof["tree"])
            if held is not None:  # bounds on the coefficients hold for one choice of the slopes
                tree.at = lambda y: _without_rows(whole, held, y)
            found = max(found, tree.bound())
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise Refuted(f"the tree is malformed: {error!r}.") from None
    elif proof is not None and real(body["bound"]) > found:
        raise NotChecked(f"a search without its tree: the file proves only {float(found)!r}")
    return found, taken


def _without_rows(problem: Problem, held: dict[str, Any], y: Any) -> Problem:
    r"""Return the problem with :math:`y'(Cx - b) + \tfrac12 \sum_i \rho_i (Cx - b)_i^2` in place of
    its linear constraints: nowhere above it, with ``b`` the end that a slope pushes away from.

    What the rows imply for coordinates without a bound becomes one, rounded outwards.
    """
    if problem.rows is None or len(problem.shape) > 1:
        raise Refuted("multipliers without linear constraints.")
    (matrix, low, high), stiff = problem.rows, array(held["stiffness"])
    ends, zero = np.where(y > 0.0, high, np.where(y < 0.0, low, 0.0)), np.zeros(low.shape)
    fits = y.shape == stiff.shape == low.shape and np.all(np.isfinite(y + stiff + ends))
    if not fits or np.any(stiff < 0.0) or np.any(stiff[low < high]):
        raise Refuted("the multipliers do not fit the linear constraints.")
    aims, terms = np.where(stiff > 0.0, low, 0.0), list(problem.terms)
    own = held.get("own", False)  # of parts: the slopes are a term though all of them are zero here
    if not isinstance(own, bool):
        raise Refuted("line 'witness.multipliers.own' says neither yes nor no.")
    for name, aim, c, o in (
        ("linear_term", y, zero + 1.0, -ends),
        ("squared_loss", aims, stiff, zero),
    ):
        loss = loss_of(name, {}, aim)
        there = own or np.any(y) if name == "linear_term" else np.any(stiff)
        if there and not isinstance(loss, str):
            A, weights, offset = (problem.number(values) for values in (matrix, c, o))
            terms.append(Term(matrix, A, loss, aim, weights, offset))
    lower, upper = problem.lower.copy(), problem.upper.copy()
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
        for j, size, positive in zip(on, reach, c > 0.0, strict=True):
            if positive and problem.unit[j] >= 0 and upper[j] == np.inf:
                upper[j] = size
            elif not positive and problem.unit[j] >= 0 and lower[j] == -np.inf:
                lower[j] = -size
    return replace(problem, terms=terms, lower=lower, upper=upper, rows=None)


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
    return replace(problem, lower=box[0], upper=box[1])


def _first_order(
    body: dict[str, Any], problem: Problem, x: Any, taken: Any, report: Report
) -> bool:
    """Compare what the file says of the gradient and return whether the point is stationary."""
    facts = first_order(problem, x, taken if math.isfinite(real(body["bound"])) else None)
    stated, noise = body["stationarity"], facts.get("noise", {})
    if stated["smooth"] is not facts["smooth"]:
        raise Refuted("line 'stationarity.smooth' is not so.")
    for name in ("residual", "smallest", "largest", "threshold"):
        one, two = real(stated[name]), facts[name]
        same = near(one, two, abs(two)) or abs(one - two) <= noise.get(name, 0.0)
        # Where its scale is rounding, a residual says on which side of the threshold it is.
        rough = name == "residual" and facts.get("doubtful") and (one <= 1e-6) == (two <= 1e-6)
        if not (same or rough):
            raise Refuted(f"line 'stationarity.{name}' says {one!r}, and it is {two!r}.")
    one, two = real(stated["smallest"]), real(stated["largest"])
    step = math.nan if not stated["smooth"] else one / two if two > 0.0 else math.inf
    report.exactly("longest step", real(stated["step"]), step)
    report.line("gradient on support", stated["residual"], facts["residual"])
    return stated["smooth"] and real(stated["residual"]) <= 1e-6
