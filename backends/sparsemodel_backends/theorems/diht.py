"""Theorems of Yuan, Liu, Wang, Liu and Metaxas (2020) on dual iterative hard thresholding."""

from __future__ import annotations

import math

from sparsemodel.interfaces.self_description import (
    FAILS,
    HOLDS,
    OPEN,
    Guarantee,
    Setting,
    Theorem,
    run_otherwise,
)

_ONE_RIDGE = "it requires one ridge for all coordinates, and no free coordinates"


def diht_9(s: Setting) -> Guarantee:
    r"""DIHT, Theorem 9: the truncation is unique at the dual maximiser.

    Where it is unique at the slopes of the solution, which is a minimiser on its support, the two
    are a saddle point (Theorem 2), and the slopes are the maximiser (Theorem 8). Where it is not,
    there is a gap or a better solution, and nothing is said of the maximiser.
    """
    source = "DIHT, Theorem 9"
    text = "the solution is a global minimiser, and the best dual bound is its objective"
    if not math.isfinite(s.loss_curvature[1]):
        return Guarantee(source, FAILS, "the loss is not smooth", text)
    if not s.ridge > 0.0 or s.free:
        return Guarantee(source, FAILS, _ONE_RIDGE, text)
    smallest, following = _kth(s), s.slopes[1] / s.ridge
    condition = (
        "w(alpha) is unique at the dual maximiser alpha: of the entries that are truncated the "
        "k-th largest exceeds the next. The slopes of the losses at the solution are a maximiser "
        f"if they do so there; they are {smallest:.4g} and {following:.4g}"
    )
    if not s.stationary:
        condition += ", but the solution is not a minimiser on its support"
    holds = s.stationary and smallest > following
    numbers = {"distance of the two": smallest - following} if holds else {}
    return Guarantee(source, HOLDS if holds else OPEN, condition, text, numbers)


def _kth(s: Setting) -> float:
    """Return the ``k``-th largest size, which is zero with fewer nonzeros."""
    return s.coefficients[0] if math.isfinite(s.coefficients[0]) else 0.0


def diht_13(s: Setting) -> Guarantee:
    r"""DIHT, Theorem 13: the duality gap at the best dual point, from a nominal vector."""
    source, text = "DIHT, Theorem 13", "the best dual bound is within the printed gap of the best P"
    low, high = s.loss_curvature
    if not s.ridge > 0.0 or s.free:
        return Guarantee(source, FAILS, _ONE_RIDGE, text)
    if not (low > 0.0 and math.isfinite(high)):
        return _gap_at_a_minimiser(s, source, text)
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


def _gap_at_a_minimiser(s: Setting, source: str, text: str) -> Guarantee:
    r"""Return Lemma 24's gap for a loss that is strongly convex on bounded ranges at most.

    The curvature over the range bounds how far the nominal vector is from the minimiser on its
    support. A solution is that minimiser itself, so that :math:`\|H_k(\nabla f)\|^2/\lambda`
    is left of the printed gap, and no curvature is asked for.
    """
    return Guarantee(
        source,
        HOLDS if s.stationary else OPEN,
        "the loss is not strongly convex and smooth, but the nominal vector minimises P on its own "
        "support, where the proof (Lemma 24) does without"
        + ("" if s.stationary else "; the solution does not"),
        text,
        {"gap at most": s.k / s.ridge * s.slopes[0] ** 2} if s.stationary else {},
    )


def diht_15(s: Setting) -> Guarantee:
    r"""DIHT, Theorem 15: smooth losses and a strict saddle point."""
    return _saddle(s, "DIHT, Theorem 15", strongly=False)


def diht_17(s: Setting) -> Guarantee:
    r"""DIHT, Theorem 17: smooth and strongly convex losses, a strict saddle point."""
    return _saddle(s, "DIHT, Theorem 17", strongly=True)


def diht_19(s: Setting) -> Guarantee:
    r"""DIHT, Theorem 19: Theorem 15 for blocks drawn at random."""
    return _saddle(s, "DIHT, Theorem 19", strongly=False, drawn=True)


def diht_22(s: Setting) -> Guarantee:
    r"""DIHT, Theorem 22: Theorem 17 for blocks drawn at random."""
    return _saddle(s, "DIHT, Theorem 22", strongly=True, drawn=True)


def _saddle(s: Setting, source: str, *, strongly: bool, drawn: bool = False) -> Guarantee:
    low, high = s.loss_curvature
    rate = "linearly" if strongly else "like 1/t in the squared dual error"
    if drawn:
        rate += ", in expectation"
    method = "SDIHT" if drawn else "DIHT"
    steps = "constant" if strongly else "decreasing"
    text = (
        f"{method}, as published with {steps} steps: its dual points converge {rate}, and its "
        "support becomes that of the solution"
    )
    if not math.isfinite(high) or (strongly and not low > 0.0):
        need = "smooth and strongly convex" if strongly else "smooth"
        return Guarantee(source, FAILS, f"the loss is not {need}", text)
    if not s.ridge > 0.0 or s.free:
        return Guarantee(source, FAILS, _ONE_RIDGE, text)
    if not s.weight > 0.0:
        return Guarantee(source, FAILS, "it asks for equal observation weights", text)
    margin = _kth(s) - s.slopes[1] / s.ridge
    numbers = {"epsilon": margin}
    if margin > 0.0 and strongly:
        n, ridge = s.observations, s.ridge / s.weight
        mu, ell = (1.0 / high) / n, (1.0 / low) / n + s.norm**2 / (ridge * n**2)
        numbers["step eta"] = mu / ell**2
        share, unit = (mu / ell) ** 2, "a draw of m blocks, times m" if drawn else "an iteration"
        numbers["decrease " + unit if drawn else "contraction " + unit] = (
            share if drawn else 1.0 - share
        )
    condition = (
        f"epsilon = min |w_j| - max |gradient| / lambda > 0; at the solution it is {margin:.4g}"
    )
    if not s.stationary:
        return Guarantee(source, OPEN, condition + ", which is not a minimiser there", text)
    return Guarantee(source, HOLDS if margin > 0.0 else OPEN, condition, text, numbers)


THEOREM_09 = Theorem("DIHT, Theorem 9", diht_9)
THEOREM_13 = Theorem("DIHT, Theorem 13", diht_13)
THEOREM_15 = Theorem("DIHT, Theorem 15", diht_15)
THEOREM_17 = Theorem("DIHT, Theorem 17", diht_17)
THEOREM_19 = Theorem("DIHT, Theorem 19", diht_19)
THEOREM_22 = Theorem("DIHT, Theorem 22", diht_22)


def theorems(schedule: str) -> tuple[Theorem, ...]:
    """Return what is proved about DIHT with a schedule of steps, and about the problem."""
    return THEOREM_09, THEOREM_13, *_scheduled(schedule, THEOREM_15, THEOREM_17)


def drawn_theorems(schedule: str) -> tuple[Theorem, ...]:
    """Return what is proved about SDIHT with a schedule of steps."""
    return _scheduled(schedule, THEOREM_19, THEOREM_22)


def _scheduled(schedule: str, decreasing: Theorem, constant: Theorem) -> tuple[Theorem, ...]:
    if schedule == "constant":
        decreasing = run_otherwise(decreasing, "the steps are constant, and it is not about them")
    return decreasing, constant
