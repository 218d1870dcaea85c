"""What a certificate may claim, and the rule that decides it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import final

OPTIMAL_GAP = 1e-6
"""Relative gap up to which a point is called globally optimal."""

REPRODUCED = 1e-9
"""Relative difference of one number on two machines, which round differently."""


class Claim(Enum):
    """How much is proved about a point. Ordered from nothing to everything."""

    NONE = "none"
    """Nothing: the point is infeasible, or it has no bound and is not stationary."""
    STATIONARY = "stationary"
    """To first order it is the best one on its own support; there is no lower bound."""
    WITHIN_GAP = "within gap"
    """There is a lower bound, and no feasible point is better by more than the printed gap."""
    ZERO = "zero up to rounding"
    """Every residual vanishes up to rounding, and no feasible point has a negative objective."""
    OPTIMAL = "globally optimal"
    """No feasible point is better, up to a relative gap of ``OPTIMAL_GAP``."""

    @property
    def sentence(self) -> str:
        """Return the claim in a sentence."""
        return _SENTENCES[self]

    @property
    def optimal(self) -> bool:
        """Return whether the point is proved globally optimal."""
        return self is Claim.OPTIMAL


_SENTENCES = {
    Claim.NONE: "Nothing is proved about this point.",
    Claim.STATIONARY: "To first order the point is the best one on its own support; no lower "
    "bound is known.",
    Claim.WITHIN_GAP: "No feasible point is better than this one by more than the gap.",
    Claim.ZERO: "The objective is zero up to rounding: every residual is below 1024 units of "
    "rounding of its target, and no feasible point has an objective below 0.",
    Claim.OPTIMAL: "No feasible point is better than this one.",
}


@final
@dataclass(frozen=True, slots=True)
class Assumption:
    """Something a claim rests on, and whether it was checked."""

    text: str
    checked: bool
    holds: bool = True

    @property
    def word(self) -> str:
        """Return how it was established."""
        return "taken on trust" if not self.checked else "checked" if self.holds else "FAILS"

    def __str__(self) -> str:
        return f"{self.text} [{self.word}]"


def gap_of(upper: float, bound: float) -> float:
    """Return ``upper - bound``, rounded up, not below zero; infinite without a bound."""
    if not (math.isfinite(upper) and math.isfinite(bound)):
        return math.inf
    return max(0.0, math.nextafter(upper - bound, math.inf)) if upper > bound else 0.0


def relative_gap_of(upper: float, bound: float, constant: float = 0.0) -> float:
    """Return the gap divided by the size of the objective; infinite without a bound.

    The size is the larger of ``|P|`` and ``|D|``, without the objective's constant where that
    makes it smaller: adding a constant never makes the relative gap smaller.
    """
    gap = gap_of(upper, bound)
    if not math.isfinite(gap):
        return math.inf
    if gap == 0.0:
        return 0.0
    scale = max(abs(upper), abs(bound))
    if constant != 0.0:
        scale = min(scale, max(abs(upper - constant), abs(bound - constant)))
    return gap / scale if scale > 0.0 else math.inf


def strongest(
    *, feasible: bool, share: float, zero: bool = False, stationary: bool = False
) -> Claim:
    """Return the strongest claim that the numbers support: the one rule for all certificates.

    Parameters
    ----------
    feasible
        Whether the point keeps every constraint.
    share
        What is open, relative to the size of what is measured; infinite or NaN where no lower
        bound is known.
    zero
        Whether every residual vanishes up to rounding, and no objective is negative.
    stationary
        Whether the point is the best one on its own support, to first order.
    """
    return max(supported(feasible, share, zero, stationary), key=list(Claim).index)


def supported(feasible: bool, share: float, zero: bool, stationary: bool) -> set[Claim]:
    """Return every claim that holds, see :func:`strongest`."""
    found = {Claim.NONE}
    if not feasible:
        return found
    if stationary:
        found.add(Claim.STATIONARY)
    if math.isfinite(share):
        found.add(Claim.WITHIN_GAP)
        if zero:
            found.add(Claim.ZERO)
        if share <= OPTIMAL_GAP:
            found.add(Claim.OPTIMAL)
    return found


_RESUME = ".progress and .search tell of a proof; problem.prove(resume=certificate) goes on with it"
ELSEWHERE = {
    "verify": "write certificates.verify(certificate, problem.form)",
    **dict.fromkeys(("to_html", "to_json", "report"), "write .save('report.html'), .json or .md"),
    **dict.fromkeys(("objective", "fun", "upper_bound", "ObjVal"), "the objective is .value"),
    **dict.fromkeys(("lower_bound", "best_bound", "ObjBound"), "it is .bound"),
    **dict.fromkeys(("mip_gap", "MIPGap", "gap_percent"), "it is .relative_gap"),
    **dict.fromkeys(("optimal", "is_optimal", "status"), "write .claim.optimal"),
    **dict.fromkeys(("solution", "predict"), "the problem has it: problem.solution"),
    **dict.fromkeys(("nodes", "log", "history", "resume"), _RESUME),
}
"""What is written of a certificate, by the names that solvers have for it."""
