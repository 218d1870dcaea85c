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
        "NHTP converges to one point, quadratically"
        + (" (for a quadratic: it ends after finitely many steps)" if s.quadratic else ""),
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
        Theorem("NHTP, Theorem 8", lambda s: nhtp_8(s, sigma, beta)),
        Theorem("NHTP, Theorem 9", lambda s: nhtp_9(s, sigma, beta)),
    )


__all__ = ["theorems"]
