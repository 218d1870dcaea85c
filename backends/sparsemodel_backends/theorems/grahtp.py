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
    between,
    decided_below,
    for_targets,
    without_free,
)


def grahtp_2(s: Setting, limit: float, source: str, method: str) -> Guarantee:
    r"""GraHTP, Theorem 2: ``M_3k / m_3k`` below 1.1547 (GraHTP) or 1.26 (its fast variant)."""
    low, high = s.at(3 * s.k).condition
    status = decided_below(low, high, limit)
    numbers: dict[str, float] = {}
    if status == HOLDS:
        rho = _contraction(high)
        step = s.at(3 * s.k).convexity[0] / s.at(3 * s.k).smoothness[1] ** 2
        exact = limit < 1.2
        rate = rho / (1.0 - rho) if exact else 1.62 * rho
        error = 2.83 / (1.0 - 2.0 * rho) if exact else 2.81 / (1.0 - 1.62 * rho)
        numbers = {"step eta": step, "contraction of the error an iteration": rate}
        numbers |= _errors(error * step * math.sqrt(s.k))
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
    numbers: dict[str, float] = {}
    if sure:
        c = s.at(2 * s.k)
        step = 0.5 / c.smoothness[1]
        numbers = {
            "step eta": step,
            "contraction of the objective an iteration": 1.0 - step * c.convexity[0] / 4.0,
        }
        numbers |= _errors(2.83 * math.sqrt(s.k) / c.convexity[0])
    return for_targets(
        "GraHTP, Theorem 5(a)",
        (sure, perhaps),
        f"k >= (2 + 16 (M_2k/m_2k)^2) kbar for a target of kbar >= 1 nonzeros; M_2k/m_2k is "
        f"{between(low, high)}, so kbar",
        "GraHTP converges linearly towards every kbar-sparse target",
        numbers,
    )


def grahtp_5b(s: Setting) -> Guarantee:
    r"""GraHTP, Theorem 5(b), step ``m/M^2``: ``k > rho kbar / (1 - rho)^2`` for FGraHTP."""
    c = s.at(3 * s.k)  # at least 2k + kbar
    low, high = s.at(2 * s.k + 1).condition[0], c.condition[1]
    room = min(s.k, s.p - 2 * s.k - 1)

    def most(condition: float) -> int:
        rho = _contraction(condition)
        fits = (t for t in range(1, room + 1) if rho * t < s.k * (1.0 - rho) ** 2)
        return max(fits, default=0)

    sure = most(high)
    numbers: dict[str, float] = {}
    if sure:
        step = c.convexity[0] / c.smoothness[1] ** 2
        share = sure / s.k
        gamma = math.sqrt(1.0 + (share + math.sqrt((4.0 + share) * share)) / 2.0)
        rate = _contraction(high) * gamma
        numbers = {"step eta": step, "contraction of the error an iteration": rate}
        numbers |= _errors(gamma * step * math.sqrt(2 * s.k + sure) / (1.0 - rate))
    return for_targets(
        "GraHTP, Theorem 5(b)",
        (sure, most(low)),
        f"k > rho kbar / (1 - rho)^2 for a target of kbar >= 1 nonzeros, rho^2 = 1 - (m/M)^2 of "
        f"level 2k + kbar; M/m is {between(low, high)}, so kbar",
        "IHT (FGraHTP) converges linearly towards every kbar-sparse target",
        numbers,
    )


def grahtp_8(s: Setting, source: str, factor: float, whose: str) -> Guarantee:
    r"""GraHTP, Theorems 8 (step ``1/(2 M_2k)``) and 10(2): ``k >= (1 + factor M^2/m^2) kbar``."""
    c = s.at(2 * s.k)
    low, high = c.condition
    sure, perhaps = (
        math.floor(s.k / (1.0 + factor * x**2)) if math.isfinite(x) else 0 for x in (high, low)
    )
    numbers: dict[str, float] = {}
    if sure:
        if factor == 16.0:
            numbers["step eta"] = 0.5 / c.smoothness[1]
        numbers["smallest coefficient per root of the excess"] = 2.3 / math.sqrt(c.convexity[0])
    return for_targets(
        source,
        (sure, perhaps),
        f"k >= (1 + {factor:g} (M_2k/m_2k)^2) kbar for a target of kbar >= 1 nonzeros; M_2k/m_2k "
        f"is {between(low, high)}, so kbar",
        f"the kbar largest entries of {whose} are the support of every kbar-sparse target "
        "whose smallest coefficient exceeds 2.3 sqrt(excess / m_2k), the excess being its "
        "objective less the minimum",
        numbers,
    )


def grahtp_10(s: Setting) -> Guarantee:
    r"""GraHTP, Theorem 10(1): the support of the minimiser, from the gradient at a sparse point."""
    source, (smallest, slope) = "GraHTP, Theorem 10(1)", s.target
    text = "the support of the solution is that of the largest entries of every best k-sparse point"
    if not math.isfinite(smallest):
        return Guarantee(source, FAILS, "the solution is zero", text)
    least, most = s.at(2 * s.k).convexity
    need, easiest = (
        4.59 * math.sqrt(s.k) * slope / m if m > 0.0 else math.inf for m in (least, most)
    )
    sure = smallest > need and not (s.free and not s.stationary)
    return Guarantee(
        source,
        HOLDS if sure else OPEN if smallest > easiest else FAILS,
        f"min |x_j| > 4.59 sqrt(k) g / m_2k, with g = {slope:.3g} the largest gradient at the "
        f"solution; it is {smallest:.4g}, the other side is {between(easiest, need)}",
        text,
        {"smallest coefficient that suffices": need} if sure else {},
    )


def _contraction(condition: float) -> float:
    """Return ``rho`` at the best step ``m / M^2``."""
    return math.sqrt(max(0.0, 1.0 - 1.0 / condition**2))


def _errors(error: float) -> dict[str, float]:
    """Return what a unit of the gradient costs, and the support recovered (Corollaries 3, 7)."""
    return {
        "error per unit of the gradient": error,
        "smallest coefficient found per unit of the gradient": 2.0 * error,
    }


THEOREM_02A = Theorem(
    "GraHTP, Theorem 2(a)",
    lambda s: grahtp_2(s, 2.0 / math.sqrt(3.0), "GraHTP, Theorem 2(a)", "GraHTP"),
)
THEOREM_02B = without_free(
    Theorem(
        "GraHTP, Theorem 2(b)",
        lambda s: grahtp_2(s, 1.26, "GraHTP, Theorem 2(b)", "IHT (FGraHTP)"),
    )
)
THEOREM_05A = Theorem("GraHTP, Theorem 5(a)", grahtp_5)
THEOREM_05B = without_free(Theorem("GraHTP, Theorem 5(b)", grahtp_5b))
THEOREM_08 = Theorem(
    "GraHTP, Theorem 8", lambda s: grahtp_8(s, "GraHTP, Theorem 8", 16.0, "GraHTP's result")
)
THEOREM_10 = (
    Theorem("GraHTP, Theorem 10(1)", grahtp_10),
    Theorem(
        "GraHTP, Theorem 10(2)",
        lambda s: grahtp_8(s, "GraHTP, Theorem 10(2)", 4.0, "every best k-sparse point"),
    ),
)
