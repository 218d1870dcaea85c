"""Theorems of Yuan, Liu, Wang, Liu and Metaxas (2020) on dual iterative hard thresholding."""

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


def diht_15(s: Setting, *, drawn: bool = False) -> Guarantee:
    r"""DIHT, Theorem 15 (19 for blocks drawn at random): smooth losses, a strict saddle point.

    Section 4.1 limits both to dual variables and slopes of conjugates that are bounded, by ``r``
    and ``rho``: the bounds have them as factors.
    """
    source = "DIHT, Theorem 19" if drawn else "DIHT, Theorem 15"
    text = _promise("like 1/t in the squared dual error", "decreasing", drawn=drawn)
    if not math.isfinite(s.loss_curvature[1]):
        return Guarantee(source, FAILS, "the loss is not smooth", text)
    if not math.isfinite(s.dual_bounds[0]):
        return Guarantee(source, FAILS, "dual variables of this loss are not bounded", text)
    if not math.isfinite(s.dual_bounds[1]):
        why = "the slope of the conjugate of this loss is not bounded"
        return Guarantee(source, FAILS, why, text)
    return _saddle(s, source, text)


def diht_17(
    s: Setting, *, drawn: bool = False, constant: bool = False, step: float | None = None
) -> Guarantee:
    r"""DIHT, Theorem 17 (22 for blocks): smooth and strongly convex losses, a strict saddle point.

    :math:`\|g - \bar g\| \le \ell_D \|\alpha - \bar\alpha\|` comes from Lemma 31. While the
    support is another one, its part (b) counts, and

    .. math:: \ell_D = \frac{\ell}{N} + \frac{\|X\|^2}{\lambda N^2}
              \Big(1 + \frac{4 \|X\| \|\bar\alpha\|}{\lambda N \bar\epsilon}\Big);

    without the bracket, its part (a), it is that on the right support. An iteration multiplies the
    squared error by :math:`1 - 2 \eta \mu_D + \eta^2 \ell_D^2`; :math:`\eta = \mu_D/\ell_D^2` is
    the theorem's step. ``constant`` says that the run has constant steps, ``step`` which; None is
    the step of the right support.
    """
    source = "DIHT, Theorem 22" if drawn else "DIHT, Theorem 17"
    text = _promise("linearly", "constant", drawn=drawn)
    low, high = s.loss_curvature
    if not (math.isfinite(high) and low > 0.0):
        return Guarantee(source, FAILS, "the loss is not smooth and strongly convex", text)
    verdict = _saddle(s, source, text)
    if verdict.status != HOLDS:
        return verdict
    n, ridge, margin = s.observations, s.ridge / s.weight, verdict.numbers["epsilon"]
    mu, right = (1.0 / high) / n, s.norm**2 / (ridge * n**2)
    own = (1.0 / low) / n + right
    ell = own + right * 4.0 * s.norm * s.dual / (ridge * n * margin)
    if not math.isfinite(ell):
        return replace(verdict, status=OPEN)
    eta = mu / ell**2
    numbers = verdict.numbers | {"step eta": eta}
    if constant:
        eta = mu / own**2 if step is None else step
    decrease = 2.0 * eta * mu - (eta * ell) ** 2
    if constant and not decrease > 0.0:
        condition = (
            f"{verdict.condition}; and a step below 2 mu_D / l_D^2 = {2.0 * mu / ell**2:.4g}, with "
            f"the l_D of Lemma 31(b); it is {eta:.4g}"
        )
        return Guarantee(source, FAILS, condition, text, numbers)
    if drawn:
        numbers["decrease a draw of m blocks, times m"] = decrease
    else:
        numbers["contraction an iteration"] = 1.0 - decrease
    return replace(verdict, numbers=numbers)


def _promise(rate: str, steps: str, *, drawn: bool) -> str:
    method = "SDIHT" if drawn else "DIHT"
    rate += ", in expectation" if drawn else ""
    return (
        f"{method}, as published with {steps} steps: its dual points converge {rate}, and its "
        "support becomes that of the solution"
    )


def _saddle(s: Setting, source: str, text: str) -> Guarantee:
    """Return whether there is a strict saddle point, which all four theorems assume."""
    if not s.ridge > 0.0 or s.free:
        return Guarantee(source, FAILS, _ONE_RIDGE, text)
    if not s.weight > 0.0:
        return Guarantee(source, FAILS, "it asks for equal observation weights", text)
    margin = _kth(s) - s.slopes[1] / s.ridge
    condition = (
        f"epsilon = min |w_j| - max |gradient| / lambda > 0; at the solution it is {margin:.4g}"
    )
    if not s.stationary:
        return Guarantee(source, OPEN, condition + ", which is not a minimiser there", text)
    status = HOLDS if margin > 0.0 else OPEN
    return Guarantee(source, status, condition, text, {"epsilon": margin})


THEOREM_09 = Theorem("DIHT, Theorem 9", diht_9)
THEOREM_13 = Theorem("DIHT, Theorem 13", diht_13)


def theorems(schedule: str, step: float | None = None) -> tuple[Theorem, ...]:
    """Return what is proved about DIHT with a schedule of steps, and about the problem."""
    return THEOREM_09, THEOREM_13, *_scheduled(schedule, step, drawn=False)


def drawn_theorems(schedule: str, step: float | None = None) -> tuple[Theorem, ...]:
    """Return what is proved about SDIHT with a schedule of steps."""
    return _scheduled(schedule, step, drawn=True)


def _scheduled(schedule: str, step: float | None, *, drawn: bool) -> tuple[Theorem, ...]:
    names = (19, 22) if drawn else (15, 17)
    constant = schedule == "constant"
    slow = Theorem(f"DIHT, Theorem {names[0]}", lambda s: diht_15(s, drawn=drawn))
    if constant:
        slow = run_otherwise(slow, "the steps are constant, and it is not about them")
    fast = Theorem(
        f"DIHT, Theorem {names[1]}",
        lambda s: diht_17(s, drawn=drawn, constant=constant, step=step),
    )
    return slow, fast
