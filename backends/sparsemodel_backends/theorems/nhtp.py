"""Theorems of Zhou, Xiu and Qi (2021) on Newton hard thresholding pursuit."""

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
    without_free,
)


def nhtp_8(s: Setting, sigma: float, beta: float) -> Guarantee:
    r"""NHTP, Theorem 8: restricted smoothness and a step up to the :math:`\bar\eta` of (24)."""
    low, high = s.at(2 * s.k).smoothness
    holds = math.isfinite(high)
    numbers: dict[str, float] = {}
    if holds and low > 0.0:
        numbers = {"largest step eta": _largest_step(high, min(1.0, 2.0 * low), sigma, beta)}
    return Guarantee(
        "NHTP, Theorem 8",
        HOLDS if holds else OPEN,
        f"M_2k is finite; it is {between(low, high)}"
        + ("" if holds else " (no bound is known that holds everywhere)"),
        "every limit of NHTP is eta-stationary; an isolated one is the limit of the whole run",
        numbers,
    )


def nhtp_9(s: Setting, sigma: float, beta: float) -> Guarantee:
    r"""NHTP, Theorem 9: restricted strong convexity in addition."""
    convex, smooth = s.at(2 * s.k).convexity, s.at(2 * s.k).smoothness[1]
    # Zero up to rounding is attained by a support of dependent columns.
    zero = convex[1] <= 1e-12 * max(s.at(2 * s.k).smoothness[0], 1e-300)
    status = FAILS if zero else HOLDS if convex[0] > 0.0 and math.isfinite(smooth) else OPEN
    numbers: dict[str, float] = {}
    if status == HOLDS:
        gamma = min(1.0, convex[0])
        numbers = {"gamma": gamma, "largest step eta": _largest_step(smooth, gamma, sigma, beta)}
    return Guarantee(
        "NHTP, Theorem 9",
        status,
        f"m_2k > 0 and M_2k finite; m_2k is {between(*convex)}",
        "NHTP converges to one point, "
        + (
            "and ends after finitely many steps"
            if s.quadratic
            else "quadratically where the second derivative is Lipschitz continuous around it"
        ),
        numbers,
    )


def nhtp_29(s: Setting) -> Guarantee:
    r"""NHTP, (29): :math:`f(x^*) \le f(x) + (x^*_{(k)}/\eta) \|x_{off}\|_1` at the solution.

    With the largest :math:`\eta` that it is stationary for, :math:`x^*_{(k)}/\eta` is the largest
    gradient off its support.
    """
    smallest, slope = s.coefficients[0], s.slopes[1]
    full = math.isfinite(smallest)  # k nonzeros; with fewer the gradient has to vanish
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


def _largest_step(smooth: float, gamma: float, sigma: float, beta: float) -> float:
    r"""Return :math:`\bar\eta` of (24), rounded down."""
    alpha = min((1.0 - 2.0 * sigma) / (smooth / gamma - sigma), 1.0)
    step = min(gamma * alpha * beta / smooth**2, alpha * beta, 0.25 / smooth)
    return step * (1.0 - 1e-12)


def theorems(sigma: float, beta: float) -> tuple[Theorem, ...]:
    """Return the theorems for the constants of a line search."""
    return (
        without_free(Theorem("NHTP, Theorem 8", lambda s: nhtp_8(s, sigma, beta))),
        Theorem("NHTP, Theorem 8, (29)", nhtp_29),
        without_free(Theorem("NHTP, Theorem 9", lambda s: nhtp_9(s, sigma, beta))),
        without_free(Theorem("NHTP, Corollary 10", nhtp_c10)),
    )
