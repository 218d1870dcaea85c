"""Theorems of Shen and Li (2018) on hard thresholding."""

from __future__ import annotations

import math
from collections.abc import Callable

from sparsemodel.interfaces.self_description import (
    FAILS,
    HOLDS,
    OPEN,
    Guarantee,
    Setting,
    Theorem,
    between,
    for_targets,
    without_free,
)
from sparsemodel.numerics import expansion


def tight_rip(
    s: Setting, level: int, source: str, method: str, limit: Callable[[float], float]
) -> Guarantee:
    r"""TIGHT, Theorems 6 and 7: restricted isometry of the design, at its best scaling."""
    if not s.quadratic or s.penalised:
        return Guarantee(source, FAILS, "it is about squared losses without ridge", "")
    wide = s.data[min(level, s.p)].isometry[1]
    own = (
        s.data[max(1, min(level - s.k + 1, s.p))]
        if level == 3 * s.k
        else s.data[max(1, min(3 * s.k, s.p))]
    )
    sure = max((t for t in range(1, s.k + 1) if wide <= limit(expansion(s.p, s.k, t))), default=0)
    perhaps = own.isometry[0] <= limit(expansion(s.p, s.k, 1))
    name = "2k+K" if level == 3 * s.k else "3k+K"
    return Guarantee(
        source,
        HOLDS if sure else OPEN if perhaps else FAILS,
        f"delta_({name}) <= {limit(expansion(s.p, s.k, max(sure, 1))):.4g} for a target of "
        f"K = {max(sure, 1)} nonzeros; it is {between(own.isometry[0], wide)}",
        f"{method} halves its distance to every K-sparse target an iteration, down to the noise",
        {"targets up to this sparsity": float(sure)},
    )


def tight_10(s: Setting) -> Guarantee:
    r"""TIGHT, Theorem 10: the expansion ``nu`` of hard thresholding below ``4L/(4L - alpha)``."""
    smooth = s.row_smoothness
    counts = _targets(s, lambda alpha: 4.0 * smooth / (4.0 * smooth - alpha))
    alpha = s.at(2 * s.k).convexity[0]
    numbers = {"largest step eta": 0.25 / smooth, "alpha": alpha, "L": smooth}
    return for_targets(
        "TIGHT, Theorem 10",
        counts,
        "nu(k, K) < 4L/(4L - alpha) for a target of K >= 1 nonzeros; " + _curvature(s),
        "HT-SVRG converges linearly in expectation, given inner loops that are long enough",
        numbers if counts[0] else {},
    )


def tight_15(s: Setting) -> Guarantee:
    r"""TIGHT, Corollaries 15 and 16: Theorem 10 with the parameters of (4.5).

    That is ``k >= 8c (8c - 1) K`` for ``c = L/alpha``. The distance contracts by the root of what
    the objective does (Corollary 16).
    """
    smooth = s.row_smoothness
    # nu = 1 / (1 - eta alpha) at most
    sure, perhaps = _targets(s, lambda alpha: 1.0 / (1.0 - alpha / (8.0 * smooth)))
    numbers: dict[str, float] = {}
    if sure:
        alpha = min(s.at(2 * s.k).convexity[0], smooth)
        each = expansion(s.p, s.k, sure) * alpha / (8.0 * smooth)  # nu eta alpha
        steps = math.ceil(4.0 / each)
        rate = 1.0 / (0.75 * each * steps) + 1.0 / 3.0
        numbers = {
            "step eta": 0.125 / smooth,
            "inner steps m": float(steps),
            "contraction of the objective a stage": rate,
            "contraction of the distance a stage": math.sqrt(rate),
        }
    return for_targets(
        "TIGHT, Corollaries 15 and 16",
        (sure, perhaps),
        "k >= 8c (8c - 1) K for a target of K >= 1 nonzeros, c = L/alpha; " + _curvature(s),
        "HT-SVRG, as published, converges in expectation to the value of the best K-sparse point, "
        "and to every K-sparse target, up to the gradient there",
        numbers,
    )


def _curvature(s: Setting) -> str:
    """Return what is known of the two constants, and where the name of the count follows."""
    low, high = s.at(2 * s.k).convexity[0], s.at(s.k).convexity[1]
    return f"L = {s.row_smoothness:.4g}, alpha = m_(k+K) is {between(low, high)}, so K"


def _targets(s: Setting, limit: Callable[[float], float]) -> tuple[int, int]:
    """Return up to which K ``nu(k, K)`` is below ``limit(alpha)``: for certain, and perhaps."""
    smooth = s.row_smoothness

    def covers(alpha: float) -> int:
        if not (math.isfinite(smooth) and smooth > 0.0 and alpha > 0.0):
            return 0
        below = limit(min(alpha, smooth))
        return max((t for t in range(1, s.k + 1) if expansion(s.p, s.k, t) < below), default=0)

    # Assumption (A1) is about the level k + K.
    return covers(s.at(2 * s.k).convexity[0]), covers(s.at(s.k).convexity[1])


def _cosamp(nu: float) -> float:
    if nu <= 1.0:
        return 1.0 / 3.0  # the limit of the expression below
    return math.sqrt((math.sqrt(32.0 * nu + 49.0) - 9.0) / (16.0 * (nu - 1.0)))


THEOREM_06 = without_free(
    Theorem(
        "TIGHT, Theorem 6",
        lambda s: tight_rip(
            s, 3 * s.k, "TIGHT, Theorem 6", "IHT", lambda nu: 1.0 / math.sqrt(8.0 * nu)
        ),
    )
)
THEOREM_07 = without_free(
    Theorem(
        "TIGHT, Theorem 7", lambda s: tight_rip(s, 4 * s.k, "TIGHT, Theorem 7", "CoSaMP", _cosamp)
    )
)
THEOREM_10 = without_free(Theorem("TIGHT, Theorem 10", tight_10))
COROLLARY_15 = without_free(Theorem("TIGHT, Corollaries 15 and 16", tight_15))
