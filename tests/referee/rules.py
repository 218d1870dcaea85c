"""What the numbers of an answer must be among themselves, whatever the problem."""

from __future__ import annotations

import math
from typing import Any

from sparsemodel.certificates import Certificate, PrecisionCertificate
from sparsemodel.certificates.statements.claims import Claim
from sparsemodel.modelling.results.solution import Solution

OPTIMAL = 1e-6
"""Relative gap up to which "globally optimal" may be said."""

NATS = 1e-9
"""For precision matrices: nats per sample that are rounding."""

_EXACT = 2.0**-40
"""Share of the objective at zero up to which a fit can be zero up to rounding, for any loss."""

PROVED = "optimal (proved)"
"""The status of a solution that a short proof found optimal."""
_LAST = 1e-9
"""Relative difference of a number that is stated and the same number worked out."""


def close(a: float, b: float, scale: float = 0.0) -> bool:
    """Return whether two numbers are the same up to their last digits."""
    return a == b or abs(a - b) <= _LAST * max(abs(a), abs(b), scale)


def solution_rules(solution: Solution) -> list[str]:
    """Return which statements of a solution contradict each other."""
    faults = []
    if not math.isfinite(solution.value):
        faults.append(f"the value is {solution.value!r}")
    if not solution.bound < math.inf:
        faults.append(f"the bound is {solution.bound!r}")
    ended = solution.stop.name == "CONVERGED"
    if solution.status not in (("solved", PROVED) if ended else ("stopped early",)):
        faults.append(f"the status is {solution.status!r} and the stop {solution.stop.name}")
    if solution.status == PROVED and not relative_gap_of(solution.value, solution.bound) <= 1e-6:
        faults.append(f"it is called proved with a bound of {solution.bound!r}")
    if math.isfinite(solution.bound) and not close(
        solution.gap, solution.value - solution.bound, abs(solution.value)
    ):
        faults.append(f"the gap {solution.gap!r} is not value - bound")
    return faults


def gap_of(upper: float, bound: float) -> float:
    """Return the gap, infinite without a bound."""
    return max(upper - bound, 0.0) if math.isfinite(upper) and math.isfinite(bound) else math.inf


def relative_gap_of(upper: float, bound: float) -> float:
    """Return the gap over the larger of the two sizes."""
    gap, size = gap_of(upper, bound), max(abs(upper), abs(bound))
    if gap == 0.0:
        return 0.0
    return gap / size if size > 0.0 and math.isfinite(gap) else math.inf


def certificate_rules(certificate: Any) -> list[str]:
    """Return which statements of a certificate contradict each other."""
    c, faults = certificate, []
    if not c.bound < math.inf or math.isnan(c.value) or not c.upper >= c.value:
        faults.append(f"bound {c.bound!r}, value {c.value!r}, upper {c.upper!r}")
    gap = gap_of(c.upper, c.bound)
    if not close(c.gap, gap, abs(c.upper)):
        faults.append(f"the gap says {c.gap!r}, and it is {gap!r}")
    if isinstance(c, PrecisionCertificate):
        return faults + _precision_rules(c, gap)
    if isinstance(c, Certificate):
        relative = relative_gap_of(c.upper, c.bound)
        constant = c.constant
        small = c.relative_gap < relative and not close(c.relative_gap, relative, 1e-6)
        if small or (constant == 0.0 and not close(c.relative_gap, relative, 1e-6)):
            faults.append(f"the relative gap says {c.relative_gap!r}, and it is {relative!r}")
        return faults + _claim_rules(c, relative)
    return faults


def _claim_rules(c: Certificate, relative: float) -> list[str]:
    said = f'"{c.claim.value}" with bound {c.bound!r}, value {c.value!r}'
    if c.claim is not Claim.NONE and c.violations:
        return [f"{said} of a point that is not feasible: {c.violations}"]
    if c.claim is Claim.OPTIMAL and not relative <= OPTIMAL:
        return [f"{said}: the relative gap is {relative:.3g}"]
    if c.claim is Claim.WITHIN_GAP and not math.isfinite(c.bound):
        return [f"{said}: there is no bound"]
    if c.claim is Claim.ZERO and not (c.bound >= 0.0 and c.value <= _EXACT * c.null_value):
        return [f"{said}: the objective at zero is {c.null_value!r}"]
    failed = [a.text for a in c.assumptions if a.checked and not a.holds]
    if c.claim in (Claim.OPTIMAL, Claim.ZERO, Claim.WITHIN_GAP) and failed:
        return [f"{said}, and it rests on what fails: {failed}"]
    return []


def _precision_rules(c: PrecisionCertificate, gap: float) -> list[str]:
    said = f'"{c.claim.value}" with bound {c.bound!r}, value {c.value!r}'
    reach, nats = c.null_value - c.bound, 0.5 * gap / c.weight
    faults = []
    if not close(c.nats_per_sample, nats, 1e-6):
        faults.append(f"the nats say {c.nats_per_sample!r}, and they are {nats!r}")
    finite = math.isfinite(c.bound)
    if c.claim is Claim.OPTIMAL and not (finite and (nats <= NATS or gap <= OPTIMAL * reach)):
        faults.append(f"{said}: the gap is {gap:.3g}")
    if c.claim is Claim.WITHIN_GAP and not finite:
        faults.append(f"{said}: there is no bound")
    return faults
