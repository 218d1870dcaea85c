r"""What the papers' theorems say about a problem, with its own numbers in them.

A condition on restricted constants is decided with their enclosures: it *holds* when the numbers
that are valid for all supports satisfy it, it *fails* when the numbers that some supports attain
violate it, and it is *open* in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from sparsemodel.certificates.theory.constants import Constants

HOLDS, FAILS, OPEN = "holds", "fails", "open"

_SIGMA, _BETA = 5e-5, 0.5
"""Line-search constants of NHTP's experiments."""


@final
@dataclass(frozen=True, slots=True)
class Guarantee:
    """One theorem, its condition on this problem, and what follows."""

    source: str
    """Paper and theorem."""
    status: str
    """``"holds"``, ``"fails"`` or ``"open"``: the enclosures of the constants do not decide."""
    condition: str
    """What is asked for, and what it is here."""
    conclusion: str
    """What the theorem promises when the condition holds."""
    numbers: dict[str, float] = field(default_factory=dict)
    """The theorem's constants, computed on the safe side; empty where there are none."""


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """Everything that the theorems' conditions are made of."""

    k: int
    p: int
    constants: dict[int, Constants]
    """Of the objective, ridge included, for the levels of :func:`levels`."""
    data: dict[int, Constants]
    """Of the losses alone."""
    smooth: bool
    quadratic: bool
    loss_curvature: tuple[float, float]
    ridge: float
    """The one ridge of all counted coordinates; 0 where they differ or there is none."""
    free: int
    observations: int
    weight: float
    """``n c`` for equal observation weights ``c``; 0 where they differ."""
    row_smoothness: float
    """``L`` of TIGHT's assumption A2 at level ``4k``."""
    norm: float
    """Upper bound on the spectral norm of the design."""
    coefficients: tuple[float, float]
    """Smallest nonzero size and Euclidean norm of the point."""
    slopes: tuple[float, float]
    """Largest gradient of the losses anywhere, largest gradient of the objective."""
    stationary: bool

    def at(self, level: int) -> Constants:
        """Return the constants of a level; no support has more than ``p`` coordinates."""
        return self.constants[max(1, min(level, self.p))]


def levels(k: int, p: int) -> tuple[int, ...]:
    """Return the sparsity levels that the theorems speak of."""
    return tuple(sorted({max(1, min(s, p)) for s in (2, k, 2 * k, 2 * k + 1, 3 * k, 4 * k)}))


def guarantees(s: Setting) -> tuple[Guarantee, ...]:
    """Return what every theorem says, in the order of the papers."""
    if not s.smooth:
        text = "the loss has no second derivative, and every one of these theorems asks for it"
        return tuple(Guarantee(name, FAILS, text, "") for name in _NAMES)
    return (
        grahtp_2(s, 2.0 / math.sqrt(3.0), "GraHTP, Theorem 2(a)", "GraHTP"),
        grahtp_2(s, 1.26, "GraHTP, Theorem 2(b)", "IHT (FGraHTP)"),
        grahtp_5(s),
        nhtp_8(s),
        nhtp_9(s),
        arht_31(s),
        tight_rip(s, 3 * s.k, "TIGHT, Theorem 6", "IHT", lambda nu: 1.0 / math.sqrt(8.0 * nu)),
        tight_rip(s, 4 * s.k, "TIGHT, Theorem 7", "CoSaMP", _cosamp),
        tight_10(s),
        diht_13(s),
        diht_15(s),
        diht_17(s),
    )


_NAMES = (
    "GraHTP, Theorem 2(a)",
    "GraHTP, Theorem 2(b)",
    "GraHTP, Theorem 5(a)",
    "NHTP, Theorem 8",
    "NHTP, Theorem 9",
    "ARHT, Theorem 3.1",
    "TIGHT, Theorem 6",
    "TIGHT, Theorem 7",
    "TIGHT, Theorem 10",
    "DIHT, Theorem 13",
    "DIHT, Theorem 15",
    "DIHT, Theorem 17",
)


def grahtp_2(s: Setting, limit: float, source: str, method: str) -> Guarantee:
    r"""GraHTP, Theorem 2: ``M_3k / m_3k`` below 1.1547 (GraHTP) or 1.26 (its fast variant)."""
    low, high = s.at(3 * s.k).condition
    status = _below(low, high, limit)
    numbers: dict[str, float] = {}
    if status == HOLDS:
        rho = math.sqrt(max(0.0, 1.0 - 1.0 / high**2))
        step = s.at(3 * s.k).convexity[0] / s.at(3 * s.k).smoothness[1] ** 2
        rate = rho / (1.0 - rho) if limit < 1.2 else 1.62 * rho
        numbers = {"step eta": step, "contraction of the error an iteration": rate}
    return Guarantee(
        source,
        status,
        f"M_3k/m_3k < {limit:.4g}; it is {_between(low, high)}",
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
        f"{_between(low, high)}, so kbar <= {sure}" + _perhaps(sure, perhaps),
        "GraHTP converges linearly towards every kbar-sparse target",
        numbers,
    )


def nhtp_8(s: Setting) -> Guarantee:
    r"""NHTP, Theorem 8: restricted smoothness and a step up to the :math:`\bar\eta` of (24)."""
    low, high = s.at(2 * s.k).smoothness
    holds = math.isfinite(high)
    numbers: dict[str, float] = {}
    if holds and low > 0.0:
        numbers = {"largest step eta": _nhtp_step(high, min(1.0, 2.0 * low))}
    return Guarantee(
        "NHTP, Theorem 8",
        HOLDS if holds else OPEN,
        f"M_2k is finite; it is {_between(low, high)}"
        + ("" if holds else " (no bound is known that holds everywhere)"),
        "every limit of NHTP is eta-stationary; an isolated one is the limit of the whole run",
        numbers,
    )


def nhtp_9(s: Setting) -> Guarantee:
    r"""NHTP, Theorem 9: restricted strong convexity in addition."""
    convex, smooth = s.at(2 * s.k).convexity, s.at(2 * s.k).smoothness[1]
    # Zero up to rounding is attained by a support of dependent columns.
    zero = convex[1] <= 1e-12 * max(s.at(2 * s.k).smoothness[0], 1e-300)
    status = FAILS if zero else HOLDS if convex[0] > 0.0 and math.isfinite(smooth) else OPEN
    numbers: dict[str, float] = {}
    if status == HOLDS:
        gamma = min(1.0, convex[0])
        numbers = {"gamma": gamma, "largest step eta": _nhtp_step(smooth, gamma)}
    return Guarantee(
        "NHTP, Theorem 9",
        status,
        f"m_2k > 0 and M_2k finite; m_2k is {_between(*convex)}",
        "NHTP converges to one point, quadratically"
        + (" (for a quadratic: it ends after finitely many steps)" if s.quadratic else ""),
        numbers,
    )


def _nhtp_step(smooth: float, gamma: float) -> float:
    alpha = min((1.0 - 2.0 * _SIGMA) / (smooth / gamma - _SIGMA), 1.0)
    step = min(gamma * alpha * _BETA / smooth**2, alpha * _BETA, 0.25 / smooth)
    return step * (1.0 - 1e-12)


def arht_31(s: Setting) -> Guarantee:
    r"""ARHT, Theorem 3.1: ``k >= s* max(4 kappa + 7, 12 kappa + 6)``, kappa of levels 2, k + s*."""
    two, wide, own = s.at(2), s.at(2 * s.k), s.at(s.k)
    high = two.smoothness[1] / wide.convexity[0] if wide.convexity[0] > 0.0 else math.inf
    low = two.smoothness[0] / own.convexity[1] if own.convexity[1] > 0.0 else math.inf

    def most(kappa: float) -> int:
        if not math.isfinite(kappa):
            return 0
        return math.floor(s.k / max(4.0 * kappa + 7.0, 12.0 * kappa + 6.0))

    sure, perhaps = most(high), most(low)
    return Guarantee(
        "ARHT, Theorem 3.1",
        HOLDS if sure >= 1 else OPEN if perhaps >= 1 else FAILS,
        f"k >= s* max(4 kappa + 7, 12 kappa + 6) for a target of s* >= 1 nonzeros; kappa = "
        f"M_2/m_(k+s*) is {_between(low, high)}, so s* <= {sure}" + _perhaps(sure, perhaps),
        "ARHT finds an objective within epsilon of every s*-sparse one, with probability 1 - 1/p",
        {"targets up to this sparsity": float(sure)},
    )


def tight_rip(
    s: Setting, level: int, source: str, method: str, limit: Callable[[float], float]
) -> Guarantee:
    r"""TIGHT, Theorems 6 and 7: restricted isometry of the design, at its best scaling."""
    if not s.quadratic:
        return Guarantee(source, FAILS, "it is about squared losses", "")
    wide = s.data[min(level, s.p)].isometry[1]
    own = (
        s.data[max(1, min(level - s.k + 1, s.p))]
        if level == 3 * s.k
        else s.data[max(1, min(3 * s.k, s.p))]
    )
    sure = max((t for t in range(1, s.k + 1) if wide <= limit(expansion(s.k, t, s.p))), default=0)
    perhaps = own.isometry[0] <= limit(expansion(s.k, 1, s.p))
    name = "2k+K" if level == 3 * s.k else "3k+K"
    return Guarantee(
        source,
        HOLDS if sure else OPEN if perhaps else FAILS,
        f"delta_({name}) <= {limit(expansion(s.k, max(sure, 1), s.p)):.4g} for a target of "
        f"K = {max(sure, 1)} nonzeros; it is {_between(own.isometry[0], wide)}",
        f"{method} halves its distance to every K-sparse target an iteration, down to the noise",
        {"targets up to this sparsity": float(sure)},
    )


def tight_10(s: Setting) -> Guarantee:
    r"""TIGHT, Theorem 10: the expansion ``nu`` of hard thresholding below ``4L/(4L - alpha)``."""
    wide, own = s.at(2 * s.k).convexity, s.at(s.k).convexity  # assumption (A1), of level k + K
    smooth = s.row_smoothness

    def covers(alpha: float) -> int:
        if not (math.isfinite(smooth) and smooth > 0.0 and alpha > 0.0):
            return 0
        limit = 4.0 * smooth / (4.0 * smooth - min(alpha, smooth))
        return max((t for t in range(1, s.k + 1) if expansion(s.k, t, s.p) < limit), default=0)

    sure, perhaps = covers(wide[0]), covers(own[1])
    numbers = {"targets up to this sparsity": float(sure)}
    if sure:
        numbers |= {"largest step eta": 0.25 / smooth, "alpha": wide[0], "L": smooth}
    return Guarantee(
        "TIGHT, Theorem 10",
        HOLDS if sure else OPEN if perhaps else FAILS,
        f"nu(k, K) < 4L/(4L - alpha) for a target of K >= 1 nonzeros; L = {smooth:.4g}, alpha = "
        f"m_(k+K) is {_between(wide[0], own[1])}, so K <= {sure}" + _perhaps(sure, perhaps),
        "HT-SVRG converges linearly in expectation, given inner loops that are long enough",
        numbers,
    )


def expansion(k: int, target: int, p: int) -> float:
    r"""Return ``nu`` of TIGHT, Theorem 1: how much thresholding to ``k`` can move a target away.

    ``nu = 1 + (rho + sqrt((4 + rho) rho)) / 2`` with ``rho = min(K, p-k) / (k - K + min(K, p-k))``.
    """
    few = min(target, p - k)
    if few <= 0:
        return 1.0
    rho = few / (k - target + few)
    return 1.0 + (rho + math.sqrt((4.0 + rho) * rho)) / 2.0


def _cosamp(nu: float) -> float:
    if nu <= 1.0:
        return 1.0 / 3.0  # the limit of the expression below
    return math.sqrt((math.sqrt(32.0 * nu + 49.0) - 9.0) / (16.0 * (nu - 1.0)))


def diht_13(s: Setting) -> Guarantee:
    r"""DIHT, Theorem 13: the duality gap at the best dual point, from a nominal vector."""
    source, text = "DIHT, Theorem 13", "the best dual bound is within the printed gap of the best P"
    low, high = s.loss_curvature
    if not (low > 0.0 and math.isfinite(high)):
        return Guarantee(source, FAILS, "the loss is not strongly convex and smooth", text)
    if not s.ridge > 0.0 or s.free:
        return Guarantee(source, FAILS, "it asks for one ridge, and no free coordinates", text)
    c, root = s.data[max(1, min(s.k, s.p))], math.sqrt(s.k)
    smallest, norm = s.coefficients
    slope = s.slopes[0]

    # `holds` with the side of each constant that makes it hardest, `fails` with the easiest.
    def applies(above: float, below: float, largest: float) -> bool:
        margin = above * norm - root * slope
        if not (smallest * above > slope and margin > 0.0):
            return False
        return s.ridge * (largest * norm - root * slope) <= below * root * slope

    above, below = c.smoothness, c.convexity
    sure = applies(above[0], below[0], above[1])
    perhaps = applies(above[1], below[1], above[0])
    bound = s.k / s.ridge * (2.0 + above[1] / (below[0] + s.ridge)) ** 2 * slope**2
    return Guarantee(
        source,
        HOLDS if sure else OPEN if perhaps else FAILS,
        "the ridge is at most m sqrt(k) g / (M ||w|| - sqrt(k) g) and min |w_j| > g / M, with m "
        f"and M of level k and g = {slope:.3g} the largest gradient of the loss at the solution",
        text,
        {"gap at most": bound} if sure else {},
    )


def diht_15(s: Setting) -> Guarantee:
    r"""DIHT, Theorem 15: smooth losses and a strict saddle point."""
    return _saddle(s, "DIHT, Theorem 15", strongly=False)


def diht_17(s: Setting) -> Guarantee:
    r"""DIHT, Theorem 17: smooth and strongly convex losses, a strict saddle point."""
    return _saddle(s, "DIHT, Theorem 17", strongly=True)


def _saddle(s: Setting, source: str, *, strongly: bool) -> Guarantee:
    low, high = s.loss_curvature
    rate = "linearly" if strongly else "like 1/t in the squared dual error"
    text = f"DIHT's dual points converge {rate}, and its support becomes that of the solution"
    if not math.isfinite(high) or (strongly and not low > 0.0):
        need = "smooth and strongly convex" if strongly else "smooth"
        return Guarantee(source, FAILS, f"the loss is not {need}", text)
    if not s.ridge > 0.0 or s.free:
        return Guarantee(source, FAILS, "it asks for one ridge, and no free coordinates", text)
    if not s.weight > 0.0:
        return Guarantee(source, FAILS, "it asks for equal observation weights", text)
    margin = s.coefficients[0] - s.slopes[1] / s.ridge
    numbers = {"epsilon": margin}
    if margin > 0.0 and strongly:
        n, ridge = s.observations, s.ridge / s.weight
        mu, ell = (1.0 / high) / n, (1.0 / low) / n + s.norm**2 / (ridge * n**2)
        numbers |= {"step eta": mu / ell**2, "contraction an iteration": 1.0 - (mu / ell) ** 2}
    condition = (
        f"epsilon = min |w_j| - max |gradient| / lambda > 0; at the solution it is {margin:.4g}"
    )
    if not s.stationary:
        return Guarantee(source, OPEN, condition + ", which is not a minimiser there", text)
    return Guarantee(source, HOLDS if margin > 0.0 else OPEN, condition, text, numbers)


def _below(low: float, high: float, limit: float) -> str:
    return HOLDS if high < limit else FAILS if low >= limit else OPEN


def _between(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "infinite"
    if high - low <= 1e-6 * max(abs(high), 1e-300):
        return f"{high:.4g}"
    if math.isinf(high):
        return f"at least {low:.4g}"
    return f"between {low:.4g} and {high:.4g}"


def _perhaps(sure: int, perhaps: int) -> str:
    return "" if perhaps <= sure else f" for certain, {perhaps} at the most"


__all__ = ["FAILS", "HOLDS", "OPEN", "Guarantee", "Setting", "expansion", "guarantees", "levels"]
