"""What a certificate may claim, and the rule that decides it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import final

OPTIMAL_GAP = 1e-6
"""Relative gap up to which a point is called globally optimal."""

ROUNDING_SHARE = 1e-12
"""A gap below this share of what the coefficients explain is rounding: globally optimal too."""

DEFAULT_TARGET = 0.1
"""Relative gap up to which a point is called "within gap" unless the caller says otherwise."""


class Claim(Enum):
    """How much is proved about a point. Ordered from nothing to everything."""

    NONE = "none"
    """Nothing: the point is infeasible, or neither stationary nor near a known bound."""
    STATIONARY = "stationary"
    """It minimises the objective over its own support; other supports may be better."""
    WITHIN_GAP = "within gap"
    """No feasible point is better by more than the printed gap."""
    OPTIMAL = "globally optimal"
    """No feasible point is better, up to a relative gap of ``OPTIMAL_GAP`` or to rounding."""

    @property
    def sentence(self) -> str:
        """Return the claim in a sentence."""
        return _SENTENCES[self]


_SENTENCES = {
    Claim.NONE: "Nothing is proved about this point.",
    Claim.STATIONARY: "The point is the best one on its own support; no useful bound is known "
    "on what other supports could reach.",
    Claim.WITHIN_GAP: "No feasible point is better than this one by more than the gap.",
    Claim.OPTIMAL: "No feasible point is better than this one.",
}


@final
@dataclass(frozen=True, slots=True)
class Assumption:
    """Something a claim rests on, and whether it was checked."""

    text: str
    checked: bool
    holds: bool = True

    def __str__(self) -> str:
        word = "taken on trust" if not self.checked else "checked" if self.holds else "FAILS"
        return f"{self.text} [{word}]"


def gap_of(upper: float, bound: float) -> float:
    """Return ``upper - bound``, rounded up, not below zero; infinite without a bound."""
    if not (math.isfinite(upper) and math.isfinite(bound)):
        return math.inf
    return max(0.0, math.nextafter(upper - bound, math.inf)) if upper > bound else 0.0


def relative_gap_of(upper: float, bound: float) -> float:
    """Return the gap divided by the larger of ``|P|`` and ``|D|``."""
    gap = gap_of(upper, bound)
    scale = max(abs(upper), abs(bound))
    if gap == 0.0:
        return 0.0
    return gap / scale if math.isfinite(gap) and scale > 0.0 else math.inf


def decide(
    *,
    feasible: bool,
    stationary: bool,
    upper: float,
    bound: float,
    null_value: float,
    target: float,
) -> Claim:
    """Return the strongest claim that the numbers support.

    Parameters
    ----------
    feasible, stationary
        Facts about the point, recomputed on the original data.
    upper, bound
        The objective rounded up, the lower bound rounded down.
    null_value
        The objective at zero; the scale for "nothing but rounding is left".
    target
        Relative gap up to which the claim is ``WITHIN_GAP``.
    """
    if not feasible:
        return Claim.NONE
    gap, relative = gap_of(upper, bound), relative_gap_of(upper, bound)
    if relative <= OPTIMAL_GAP or gap <= ROUNDING_SHARE * max(0.0, null_value - bound):
        return Claim.OPTIMAL
    if relative <= target:
        return Claim.WITHIN_GAP
    return Claim.STATIONARY if stationary else Claim.NONE


__all__ = [
    "DEFAULT_TARGET",
    "OPTIMAL_GAP",
    "ROUNDING_SHARE",
    "Assumption",
    "Claim",
    "decide",
    "gap_of",
    "relative_gap_of",
]
