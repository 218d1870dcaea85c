"""Theorems of Axiotis and Sviridenko (2020) on ARHT and OMPR."""

from __future__ import annotations

import math
from dataclasses import replace

from sparsemodel.interfaces.self_description import (
    FAILS,
    HOLDS,
    OPEN,
    Guarantee,
    Setting,
    Theorem,
    between,
    for_targets,
)

ENOUGH_RUNS = (
    "the core is run 5 ln(6 p ln((f(0) - B) / epsilon)) times a guess (repeats, patience), with "
    "rho at least M_2 (smoothness)"
)
STATIONARY_TARGET = (
    "for the two numbers, which are Corollaries 3.11 and 3.12, that the target minimises f on its "
    "own support (their proofs use it; else zeta is of the k + s* largest entries, and twice as "
    "large a coefficient is found)"
)
"""The first corollary bounds <grad f(x*), x - x*>, whose direction has k + s* entries, by zeta; the
second has grad f(x*) = 0 on the support of x*."""


def arht_31(s: Setting) -> Guarantee:
    r"""ARHT, Theorem 3.1: ``k >= s* max(4 kappa + 7, 12 kappa + 6)``, kappa of levels 2, k + s*."""
    low, high = _condition(s)

    def most(kappa: float) -> int:
        if not math.isfinite(kappa):
            return 0
        return math.floor(s.k / max(4.0 * kappa + 7.0, 12.0 * kappa + 6.0))

    sure, numbers = most(high), {}
    unchecked: tuple[str, ...] = (ENOUGH_RUNS,)
    if sure:  # zeta is the norm of the gradient's k largest entries at the target
        unit = 1.0 / s.at(2 * s.k).convexity[0]
        unchecked = ENOUGH_RUNS, STATIONARY_TARGET
        numbers = {
            "error per unit of zeta, for a small epsilon": 2.0 * unit,  # Corollary 3.11
            "smallest coefficient found per unit of zeta": unit,  # Corollary 3.12
        }
    verdict = for_targets(
        "ARHT, Theorem 3.1",
        (sure, most(low)),
        f"k >= s* max(4 kappa + 7, 12 kappa + 6) for a target of s* >= 1 nonzeros; kappa = "
        f"M_2/m_(k+s*) is {between(low, high)}, so s*",
        "ARHT, as published with progress=1, finds an objective within epsilon of every s*-sparse "
        "one, with probability 1 - 1/p",
        numbers,
    )
    return replace(verdict, unchecked=unchecked if sure else ())


def ompr_42(s: Setting) -> Guarantee:
    r"""ARHT, Theorem 4.2, for OMPR: ``kappa sqrt(s* / k) <= 1``; below 2 without noise (4.4)."""
    low, high = _condition(s)

    def most(kappa: float, limit: float) -> int:
        fits = (t for t in range(1, s.k + 1) if kappa * math.sqrt(t / s.k) <= limit)
        return max(fits, default=0)

    below = math.nextafter(2.0, 0.0)
    wider = most(high, below)
    numbers = {"targets that minimise f without a limit": float(wider)}
    if wider:
        q = max(1.0, high * math.sqrt(wider / s.k))
        # B of the second part, at theta = 0, where it is smallest (with the most iterations).
        numbers["excess over such a target per unit of its own over min f"] = (
            4.0 * (q - 1.0) / (2.0 - q) ** 2
        )
    return for_targets(
        "ARHT, Theorem 4.2",
        (most(high, 1.0), most(low, 1.0)),
        f"kappa sqrt(s*/k) <= 1 for a target of s* >= 1 nonzeros; kappa = M_2/m_(k+s*) is "
        f"{between(low, high)}, so s*",
        "OMPR, as published, finds an objective within epsilon of every s*-sparse one",
        numbers,
    )


def ompr_45(s: Setting) -> Guarantee:
    r"""ARHT, Corollary 4.5 (and Table 1): restricted isometry for the distance OMPR ends at."""
    low, high = s.at(s.k).isometry[0], s.at(2 * s.k).isometry[1]
    sure = max((t for t in range(1, s.k + 1) if high < ompr_isometry(s.k / t)), default=0)
    return Guarantee(
        "ARHT, Corollary 4.5",
        HOLDS if sure else OPEN if low < ompr_isometry(s.k) else FAILS,
        f"delta_(k+s*) < {ompr_isometry(s.k / max(sure, 1)):.4g} for a target of "
        f"s* = {max(sure, 1)} nonzeros; it is {between(low, high)}",
        "OMPR, as published: its squared distance to every s*-sparse target is at most epsilon "
        "and a multiple of how far the target is from the minimum without a limit",
        {"targets up to this sparsity": float(sure)},
    )


def ompr_isometry(ratio: float) -> float:
    """Return what delta_(s+s*) has to be below for ``s / s*``: 1/3 for 1, 0.83 for 30."""
    return (2.0 * math.sqrt(ratio) - 1.0) / (2.0 * math.sqrt(ratio) + 1.0)


def _condition(s: Setting) -> tuple[float, float]:
    """Return bounds on ``kappa``, of levels 2 above and k + s* below."""
    two, wide, own = s.at(2), s.at(2 * s.k), s.at(s.k)
    high = two.smoothness[1] / wide.convexity[0] if wide.convexity[0] > 0.0 else math.inf
    low = two.smoothness[0] / own.convexity[1] if own.convexity[1] > 0.0 else math.inf
    return low, high


THEOREM_3_1 = Theorem("ARHT, Theorem 3.1", arht_31)
THEOREM_4_2 = Theorem("ARHT, Theorem 4.2", ompr_42)
COROLLARY_4_5 = Theorem("ARHT, Corollary 4.5", ompr_45)
