"""The certificate of a sparse regression, line by line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparsemodel.checker.files import Data, Refuted, array, real
from sparsemodel.checker.proof.arithmetic import high, low, middle
from sparsemodel.checker.proof.bound import objective
from sparsemodel.checker.proof.evidence import proved, violations
from sparsemodel.checker.proof.problem import Problem, build
from sparsemodel.checker.statements import (
    Report,
    check_first_order,
    check_point,
    claim_of,
    constant_part,
    exact_fit,
    gap_of,
    relative_gap_of,
    rounding,
)


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
    check_point(body, problem, x, report)
    null = float(middle(objective(problem, np.zeros(problem.shape))))
    report.same("null value", real(body["null_value"]), null)
    stated, constant = real(body["bound"]), constant_part(problem)
    report.same("constant", real(body["constant"]), constant)
    stationary = check_first_order(body, problem, x, report)
    share = relative_gap_of(upper, stated, constant)
    report.exactly("gap", real(body["gap"]), gap_of(upper, stated))
    report.exactly("relative gap", real(body["relative_gap"]), share)
    zero = 0.0 <= stated < math.inf and exact_fit(problem, x, real(body["value"]))
    claim = claim_of(not broken, share, zero, stationary)
    report.exactly("claim", body["claim"], claim)
    found = proved(body, problem, upper, not broken)
    if stated == -math.inf:
        weaker = body["bound_reason"] == "the bound contradicts the point"
        if body["proof"] is None and found > -math.inf and not weaker:
            raise Refuted(f"line 'bound' says that there is none, and it is {float(found)!r}.")
    elif not stated <= found:
        raise Refuted(f"line 'bound' says {stated!r}, and only {float(found)!r} is proved.")
    for line, words in (("multipliers", "fit"), ("bounds", "hold")):
        if body["witness"].get(line) is not None:
            report.line(f"{line} of the witness", words, words)
    report.line("bound D", stated, float(found))
    report.unknown("bound_method, bound_reason, assumptions (words), allowance (given away)")
    return claim


def _value(body: dict[str, Any], problem: Problem, x: Any, report: Report) -> float:
    value = objective(problem, x)
    stated, upper = real(body["value"]), real(body["upper"])
    # What the writer allowed for is not known here, but that is how far floats may be.
    error = min(upper - stated, rounding(problem, x)) + float(high(value) - low(value))
    if not abs(stated - float(middle(value))) <= error:
        raise Refuted(f"line 'value' says {stated!r}, and it is {float(middle(value))!r}.")
    report.line("objective P", stated, float(middle(value)))
    if not upper >= high(value):
        raise Refuted(f"line 'upper' says {upper!r}, and P may be {float(high(value))!r}.")
    report.line("P is at most", upper, float(high(value)))
    return upper
