"""Theorems of Yuan, Li and Zhang (2018) on GraHTP and its fast variant."""

from __future__ import annotations

import math

from sparsemodel.interfaces.self_description import (
    FAILS,
    HOLDS,
    OPEN,
    Guarantee,
    Setting,
    Theorem,
    at_the_most,
    between,
    decided_below,
)


def grahtp_2(s: Setting, limit: float, source: str, method: str) -> Guarantee:
    r"""GraHTP, Theorem 2: ``M_3k / m_3k`` below 1.1547 (GraHTP) or 1.26 (its fast variant)."""
    low, high = s.at(3 * s.k).condition
    status = decided_below(low, high, limit)
    numbers: dict[str, float] = {}
    if status == HOLDS:
        rho = math.sqrt(max(0.0, 1.0 - 1.0 / high**2))
        step = s.at(3 * s.k).convexity[0] / s.at(3 * s.k).smoothness[1] ** 2
        rate = rho / (1.0 - rho) if limit < 1.2 else 1.62 * rho
        numbers = {"step eta": step, "contraction of the error an iteration": rate}
    return Guarantee(
        source,
        status,
        f"M_3k/m_3k < {limit:.4g}; it is {between(low, high)}",
        f"{method} converges linearly towards every k-sparse target, to within a multiple of "
        "sqrt(k) times the largest gradient there",
        numbers,
    )


def grahtp_5(s: Setting) -> Guarantee:
    r"""GraHTP, Theorem 5(a), step ``1/(2 M_2k)``: ``k >= (2 + 16 M^2/m^2) kbar``."""
    low, high = s.at(2 * s.k).condition
    sure = math.floor(s.k / (2.0 + 16.0 * high**2)) if math.isfinite(high) else 0
    perhaps = math.floor(s.k / (2.0 + 16.0 * low**2)) if math.isfinite(low) else 0
    room = max(0, s.p - 2 * s.k - 1)  # the theorem asks for 2k + kbar < p
    sure, perhaps = min(sure, room), min(perhaps, room)
    status = HOLDS if sure >= 1 else OPEN if perhaps >= 1 else FAILS
    numbers = {"targets up to this sparsity": float(sure)}
    if status == HOLDS:
        c = s.at(2 * s.k)
        step = 0.5 / c.smoothness[1]
        numbers |= {
            "step eta": step,
            "contraction of the objective an iteration": 1.0 - step * c.convexity[0] / 4.0,
            "error per unit of the gradient": 2.83 * math.sqrt(s.k) / c.convexity[0],
        }
    return Guarantee(
        "GraHTP, Theorem 5(a)",
        status,
        f"k >= (2 + 16 (M_2k/m_2k)^2) kbar for a target of kbar >= 1 nonzeros; M_2k/m_2k is "
        f"{between(low, high)}, so kbar <= {sure}" + at_the_most(sure, perhaps),
        "GraHTP converges linearly towards every kbar-sparse target",
        numbers,
    )


THEOREM_2A = Theorem(
    "GraHTP, Theorem 2(a)",
    lambda s: grahtp_2(s, 2.0 / math.sqrt(3.0), "GraHTP, Theorem 2(a)", "GraHTP"),
)
THEOREM_2B = Theorem(
    "GraHTP, Theorem 2(b)",
    lambda s: grahtp_2(s, 1.26, "GraHTP, Theorem 2(b)", "IHT (FGraHTP)"),
)
THEOREM_5A = Theorem("GraHTP, Theorem 5(a)", grahtp_5)


__all__ = ["THEOREM_2A", "THEOREM_2B", "THEOREM_5A"]
