"""The certificate of a sparse regression, line by line."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from sparsemodel.checker.arithmetic import Ball, high, low, middle
from sparsemodel.checker.bound import bound, dual, objective
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
from sparsemodel.checker.problem import Problem, build, without_rows
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
    stated, null = real(body["bound"]), real(body["null_value"])
    _compare_bound(body, found, stated, report)
    report.same("null value", null, _float(objective(problem, np.zeros(problem.shape))))
    constant = constant_part(problem)
    report.same("constant", real(body["constant"]), constant)
    facts = _first_order(body, problem, x, taken, report)
    share = relative_gap_of(upper, stated, constant)
    report.exactly("gap", real(body["gap"]), gap_of(upper, stated))
    report.exactly("relative gap", real(body["relative_gap"]), share)
    zero = math.isfinite(stated) and stated >= 0.0 and exact_fit(problem, x, real(body["value"]))
    claim = claim_of(not broken, share, zero, facts["smooth"] and facts["residual"] <= 1e-6)
    report.exactly("claim", body["claim"], claim)
    report.unknown(
        "bound_method, bound_reason, assumptions (words), allowance (given away already)"
    )
    return claim


def _value(body: dict[str, Any], problem: Problem, x: Any, report: Report) -> float:
    value = objective(problem, x)
    stated, upper = real(body["value"]), real(body["upper"])
    least, most = _end(low(value)), _end(high(value))
    error = 2.0 * float(most - least) + 1e-15 * abs(stated)
    if problem.exact:  # the file's number was computed in floats, with the allowance that it states
        error = upper - stated
    if not abs(float(stated - _middle(value))) <= error:
        raise Refuted(f"line 'value' says {stated!r}, and it is {_float(value)!r}.")
    report.line("objective P", repr(stated), repr(_float(value)))
    if not upper >= most:
        raise Refuted(f"line 'upper' says {upper!r}, and P is only known to be <= {float(most)!r}.")
    report.line("P is at most", repr(upper), repr(float(most)))
    return upper


def _point(body: dict[str, Any], problem: Problem, x: Any, report: Report) -> None:
    nonzero = np.flatnonzero(x != 0.0 if x.ndim == 1 else np.any(x != 0.0, axis=1))
    support = [int(j) for j in nonzero if problem.unit[j] >= 0]
    report.exactly("support", body["support"], support)
    names = {int(j): name for j, name in body["names"].items()}
    if sorted(names) != sorted({*support, *(int(j) for j in problem.free)}):
        raise Refuted("line 'names' is not about the support and what is always in.")
    entries = {}
    for j, name in sorted(names.items()):
        entries[name] = float(x[j]) if x.ndim == 1 else [float(v) for v in x[j]]
    if entries != body["coefficients"]:
        raise Refuted("line 'coefficients' is not what the point and the names say.")
    known = {j: problem.columns[j] for j in names if j in problem.columns}
    for j, name in known.items():
        if name != names[j] and not names[j].endswith(f"[{name}]"):
            raise Refuted(f"line 'names' calls coordinate {j} {names[j]!r}; your data, {name!r}.")
    report.line("coefficients", f"{len(entries)} named", "those of the point")
    if len(known) < len(names):
        report.unknown(
            f"what columns are called ({len(names) - len(known)} names are not in your "
            "files: give a header)"
        )


def _bound(
    body: dict[str, Any], problem: Problem, upper: float, feasible: bool, report: Report
) -> tuple[Any, Any]:
    """Return the best bound that the numbers of the file prove, and the curvature taken out."""
    witness, proof = body["witness"], body["proof"]
    if witness.get("multipliers") is not None:
        problem = without_rows(problem, witness["multipliers"])
        report.line("multipliers of the constraints", "fit", "fit")
    held = witness["bounds"]
    if held is not None:
        problem = _within(problem, held, upper, feasible)
        report.line("coefficient bounds", "hold", "hold")
    taken, at = array(witness["extraction"]), array(witness["at"])
    points = [array(a) for a in witness["duals"]]
    zeros = [
        0.0 * t.y if t.loss.name != "multinomial_loss" else np.zeros((t.y.size, *problem.shape[1:]))
        for t in problem.terms
    ]
    tangent = any(a is None for a in points)
    fits = at is not None and at.shape == problem.shape and bool(np.all(np.isfinite(at)))
    if tangent and not (problem.squares and fits):
        raise NotChecked("a loss that is bounded by a tangent, for want of a conjugate")
    found = bound(problem, dual(problem, zeros)) if proof is not None or not points else -math.inf
    if taken is not None:
        if at is None or at.shape != problem.shape or taken.shape != problem.shape[:1]:
            raise Refuted("the curvature that is taken out does not fit the problem.")
        if not problem.squares or not np.all(np.isfinite(at)):
            raise Refuted("curvature is taken out of losses that are no squares of a vector.")
        if taken.any() and not has_curvature(hessian(problem), taken, problem.exact):
            raise Refuted("the data do not have the curvature that is taken out.")
        given = [] if tangent else zip(fitting(problem, points), problem.terms, strict=True)
        for a, term in given:
            gradient = middle(term.A) @ at + middle(term.o) - term.y
            expected = term.y if term.loss.name == "linear_term" else gradient
            if not np.allclose(
                a, expected, rtol=1e-9, atol=1e-9 * float(np.abs(term.y).max(initial=1))
            ):
                raise Refuted("the dual point is not the gradient at the witness's point.")
        found = max(found, bound(problem, dual(problem, None, at, taken)))
    elif tangent:
        found = max(found, bound(problem, dual(problem, None, at)))
    elif points:
        found = max(found, bound(problem, dual(problem, fitting(problem, points))))
    if proof is not None and proof["tree"] is not None:
        try:
            found = max(found, RegressionTree(problem, proof["tree"]).bound())
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise Refuted(f"the tree is malformed: {error!r}.") from None
    elif proof is not None and real(body["bound"]) > found:
        raise NotChecked(
            "the search over supports: its tree is not in the file; by itself the file "
            f"proves a bound of {float(found)!r}"
        )
    return found, taken


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


def _compare_bound(body: dict[str, Any], found: Any, stated: float, report: Report) -> None:
    """Compare the stated bound: it may be lower than what is proved."""
    if stated == -math.inf:
        weaker = body["bound_reason"] == "the bound contradicts the point"
        if body["proof"] is None and found > -math.inf and not weaker:
            raise Refuted(f"line 'bound' says that there is none, and it is {float(found)!r}.")
        report.line("bound D", "none", "none")
        return
    if math.isnan(stated) or not stated <= found:
        raise Refuted(f"line 'bound' says {stated!r}, and only {float(found)!r} is proved.")
    report.line("bound D", repr(stated), f"{float(found)!r}")


def _first_order(
    body: dict[str, Any], problem: Problem, x: Any, taken: Any, report: Report
) -> dict[str, Any]:
    facts = first_order(problem, x, taken if math.isfinite(real(body["bound"])) else None)
    stated = body["stationarity"]
    if stated["smooth"] is not facts["smooth"]:
        raise Refuted("line 'stationarity.smooth' is not so.")
    noise = facts.get("noise", {})
    for name in ("residual", "smallest", "largest", "threshold"):
        one, two = real(stated[name]), facts[name]
        if not (near(one, two, abs(two)) or abs(one - two) <= noise.get(name, 0.0)):
            raise Refuted(f"line 'stationarity.{name}' says {one!r}, and it is {two!r}.")
    one, two = real(stated["smallest"]), real(stated["largest"])
    step = math.nan if not stated["smooth"] else one / two if two > 0.0 else math.inf
    report.exactly("longest step", real(stated["step"]), step)
    report.line("gradient on support", stated["residual"], f"{facts['residual']:.2e}")
    return facts


def _end(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray) else value


def _middle(value: Any) -> Any:
    return float(value.mid) if isinstance(value, Ball) else value


def _float(value: Any) -> float:
    return float(value.mid) if isinstance(value, Ball) else float(value)


__all__ = ["check"]
