"""What the numbers of an answer must be among themselves, whatever the problem."""

from __future__ import annotations

import math
from typing import Any

from sparsemodel.certificates import Certificate, PrecisionCertificate
from sparsemodel.certificates.claims import Claim
from sparsemodel.modelling.solution import Solution
from sparsemodel.testing.referee.objective import ROOM

OPTIMAL = 1e-6
"""Relative gap up to which "globally optimal" may be said."""

NATS = 1e-9
"""For precision matrices: nats per sample that are rounding."""

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
    if solution.status != ("solved" if ended else "stopped early"):
        faults.append(f"the status is {solution.status!r} and the stop {solution.stop.name}")
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


def certificate_rules(certificate: Any, rounding: float) -> list[str]:
    """Return which statements of a certificate contradict each other.

    ``rounding`` is what an evaluation of the objective in float64 may be off by: a gap below it
    counts as none.
    """
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
        if not close(c.relative_gap, relative, 1e-6):
            faults.append(f"the relative gap says {c.relative_gap!r}, and it is {relative!r}")
        return faults + _claim_rules(c, gap, relative, rounding)
    return faults


def _claim_rules(c: Certificate, gap: float, relative: float, rounding: float) -> list[str]:
    said = f'"{c.claim.value}" with bound {c.bound!r}, value {c.value!r}'
    if c.claim is not Claim.NONE and c.violations:
        return [f"{said} of a point that is not feasible: {c.violations}"]
    if c.claim is Claim.OPTIMAL and not (relative <= OPTIMAL or gap <= _share(c, rounding)):
        return [f"{said}: the relative gap is {relative:.3g}"]
    if c.claim is Claim.WITHIN_GAP and not relative <= c.target:
        return [f"{said}: the relative gap {relative:.3g} exceeds the target {c.target:g}"]
    failed = [a.text for a in c.assumptions if a.checked and not a.holds]
    if c.claim in (Claim.OPTIMAL, Claim.WITHIN_GAP) and failed:
        return [f"{said}, and it rests on what fails: {failed}"]
    return []


def _share(c: Certificate, rounding: float) -> float:
    """Return the gap that is rounding: what both sides gave away, or what float64 leaves."""
    return max(4.0 * c.allowance, ROOM * rounding)


def _precision_rules(c: PrecisionCertificate, gap: float) -> list[str]:
    said = f'"{c.claim.value}" with bound {c.bound!r}, value {c.value!r}'
    reach, nats = c.null_value - c.bound, 0.5 * gap / c.weight
    faults = []
    if not close(c.nats_per_sample, nats, 1e-6):
        faults.append(f"the nats say {c.nats_per_sample!r}, and they are {nats!r}")
    finite = math.isfinite(c.bound)
    if c.claim is Claim.OPTIMAL and not (finite and (nats <= NATS or gap <= OPTIMAL * reach)):
        faults.append(f"{said}: the gap is {gap:.3g}")
    if c.claim is Claim.WITHIN_GAP and not (finite and gap <= c.target * reach):
        faults.append(f"{said}: the gap {gap:.3g} exceeds the target {c.target:g} of {reach:.3g}")
    return faults


__all__ = [
    "OPTIMAL",
    "certificate_rules",
    "close",
    "gap_of",
    "relative_gap_of",
    "solution_rules",
]
