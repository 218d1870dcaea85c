"""Theorems of Zhou, Xiu and Qi (2021) on Newton hard thresholding pursuit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from sparsemodel.interfaces.self_description import (
    FAILS,
    HOLDS,
    OPEN,
    Guarantee,
    Setting,
    Theorem,
    between,
    decided_below,
    in_units,
    run_otherwise,
    without_free,
)


@final
@dataclass(frozen=True, slots=True)
class Chosen:
    """The constants of a run; None for those that are chosen as the theorems have them."""

    sigma: float = 5e-5
    beta: float = 0.5
    gamma: float | None = None
    eta: float | None = None

    def status(self, smooth: tuple[float, float], gamma: tuple[float, float]) -> str:
        """Return whether ``gamma`` and ``eta`` are as (23) and (24) have them.

        ``smooth`` has bounds on ``M_2k``, ``gamma`` on what it may be at most.
        """
        mine = gamma if self.gamma is None else (self.gamma, self.gamma)
        if not mine[0] <= gamma[0]:
            return OPEN if mine[0] <= gamma[1] else FAILS
        if self.eta is None or self.eta <= self.largest_step(smooth[1], mine[0]):
            return HOLDS
        return OPEN if self.eta <= self.largest_step(smooth[0], mine[1]) else FAILS

    def largest_step(self, smooth: float, gamma: float) -> float:
        r"""Return :math:`\bar\eta` of (24), rounded down."""
        if not (gamma > 0.0 and math.isfinite(smooth)):
            return 0.0
        alpha = min((1.0 - 2.0 * self.sigma) / (smooth / gamma - self.sigma), 1.0)
        step = min(gamma * alpha * self.beta / smooth**2, alpha * self.beta, 0.25 / smooth)
        return step * (1.0 - 1e-12)

    @property
    def words(self) -> str:
        """Return the condition on the constants that were given."""
        given = {"gamma": self.gamma, "eta": self.eta}
        named = [f"{name} = {value:.4g}" for name, value in given.items() if value is not None]
        return f", and (23), (24) hold for {', '.join(named)}" if named else ""


def nhtp_8(s: Setting, chosen: Chosen) -> Guarantee:
    r"""NHTP, Theorem 8: restricted smoothness and a step up to the :math:`\bar\eta` of (24)."""
    low, high = s.at(2 * s.k).smoothness
    holds = math.isfinite(high)
    status, numbers = HOLDS if holds else OPEN, {}
    most = min(1.0, 2.0 * low), min(1.0, 2.0 * high)
    if holds and low > 0.0:
        status = chosen.status((low, high), most)
        gamma = most[0] if chosen.gamma is None else chosen.gamma
        numbers = {"gamma": gamma, "largest step eta": chosen.largest_step(high, gamma)}
    return Guarantee(
        "NHTP, Theorem 8",
        status,
        f"M_2k is finite; it is {between(low, high)}"
        + ("" if holds else " (no bound is known that holds everywhere)")
        + chosen.words,
        "NHTP, as published with a constant eta up to that: every limit is eta-stationary, an "
        "isolated one is the limit of the whole run",
        numbers if status == HOLDS else {},
    )


def nhtp_9(s: Setting, chosen: Chosen) -> Guarantee:
    r"""NHTP, Theorem 9: restricted strong convexity in addition."""
    convex, smooth = s.at(2 * s.k).convexity, s.at(2 * s.k).smoothness[1]
    # Zero up to rounding is attained by a support of dependent columns.
    zero = convex[1] <= 1e-12 * max(s.at(2 * s.k).smoothness[0], 1e-300)
    status = FAILS if zero else HOLDS if convex[0] > 0.0 and math.isfinite(smooth) else OPEN
    numbers: dict[str, float] = {}
    if status == HOLDS:
        most = min(1.0, convex[0]), min(1.0, convex[1])
        status = chosen.status(s.at(2 * s.k).smoothness, most)
    if status == HOLDS:
        gamma = min(1.0, convex[0]) if chosen.gamma is None else chosen.gamma
        numbers = {"gamma": gamma, "largest step eta": chosen.largest_step(smooth, gamma)}
    return Guarantee(
        "NHTP, Theorem 9",
        status,
        f"m_2k > 0 and M_2k finite; m_2k is {between(*convex)}{chosen.words}",
        "NHTP, as published with a constant eta up to that: it converges to one point, "
        + (
            "and ends after finitely many steps"
            if s.quadratic
            else "quadratically where the second derivative is Lipschitz continuous around it"
        ),
        numbers,
        () if s.quadratic or status == FAILS else (LIPSCHITZ_HESSIAN,),
    )


def nhtp_29(s: Setting) -> Guarantee:
    r"""NHTP, (29): :math:`f(x^*) \le f(x) + (x^*_{(k)}/\eta) \|x_{off}\|_1` at the solution.

    With the largest :math:`\eta` that it is stationary for, :math:`x^*_{(k)}/\eta` is the largest
    gradient off its support.
    """
    smallest, slope = s.coefficients[0], s.slopes[1]
    full = 0.0 < smallest < math.inf  # k nonzeros; with fewer the gradient has to vanish
    stationary = s.stationary and (full or slope == 0.0)
    numbers = {"largest excess per unit of the l1 norm off the support": slope}
    if full and slope > 0.0:
        numbers = {"stationary up to eta": smallest / slope} | numbers
    condition = "the solution is eta-stationary, and minimises over its own support to first order"
    return Guarantee(
        "NHTP, Theorem 8, (29)",
        HOLDS if stationary else FAILS,
        condition if stationary else f"{condition}; it is not",
        "its objective exceeds that of any point, sparse or not, by no more than a multiple of the "
        "sum of that point's sizes off its support",
        numbers if stationary else {},
    )


def nhtp_c10(s: Setting) -> Guarantee:
    r"""NHTP, Corollary 10: the constants (31) for a squared loss, with ``w = 1/2``.

    Every bound on :math:`\delta_{2k}` does (Remark 7); ``M <= 2`` is used in (31), so that
    ``delta < 1`` has to hold as the design is scaled.
    """
    source, c = "NHTP, Corollary 10", s.at(2 * s.k)
    if not s.quadratic:
        return Guarantee(source, FAILS, "it is about squared losses", "")
    low = max(c.smoothness[0] - 1.0, 1.0 - c.convexity[1], 0.0)
    high = max(c.smoothness[1] - 1.0, 1.0 - c.convexity[0], 0.0)
    status = decided_below(low, high, 1.0)
    numbers: dict[str, float] = {}
    if status == HOLDS:
        mu = (1.0 + high) / (1.0 - high)
        sigma = 0.5 / (2.0 * mu - 0.5) * mu
        numbers = {"beta": 0.25, "sigma": sigma, "gamma": 1.0 - high}
        numbers["largest step eta"] = 0.0625 / mu**2 * (1.0 - 1e-12)
    return Guarantee(
        source,
        status,
        f"delta_2k < 1, as the design is scaled; it is {between(low, high)}",
        "with these constants NHTP takes Newton's direction always and ends after finitely many "
        "steps",
        numbers,
    )


LIPSCHITZ_HESSIAN = "for the quadratic rate, that the Hessian is Lipschitz around the limit"


def theorems(chosen: Chosen, units: str = "declared", otherwise: str = "") -> tuple[Theorem, ...]:
    """Return the theorems for the constants of a run, which are in ``units``.

    ``otherwise`` is why Theorems 8 and 9 are not about it.
    """
    about: tuple[Theorem, ...] = (
        Theorem("NHTP, Theorem 8", lambda s: nhtp_8(s, chosen)),
        Theorem("NHTP, Theorem 9", lambda s: nhtp_9(s, chosen)),
    )
    if otherwise:
        about = tuple(run_otherwise(theorem, otherwise) for theorem in about)
    elif units != "declared" or chosen.eta is not None or chosen.gamma is not None:
        about = tuple(in_units(theorem, units) for theorem in about)
    eight, nine = (without_free(theorem) for theorem in about)
    bound = Theorem("NHTP, Theorem 8, (29)", nhtp_29)
    tenth = Theorem("NHTP, Corollary 10", lambda s: nhtp_c10(s.in_units(units)))
    return eight, bound, nine, without_free(tenth)
