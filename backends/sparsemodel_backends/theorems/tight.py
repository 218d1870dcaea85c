"""Theorems of Shen and Li (2018) on hard thresholding."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from sparsemodel.interfaces.self_description import (
    FAILS,
    HOLDS,
    OPEN,
    Guarantee,
    Setting,
    Theorem,
    between,
    except_where,
    for_targets,
    in_units,
    keeping,
    run_otherwise,
    without_free,
)
from sparsemodel.numerics import expansion


def tight_rip(
    s: Setting,
    level: int,
    source: str,
    method: str,
    limit: Callable[[float], float],
    step: float | None = None,
) -> Guarantee:
    r"""TIGHT, Theorems 6 and 7: restricted isometry of the design, at its best scaling.

    A step ``eta`` of IHT is the step 1 of (3.4) for the design times the root of ``eta``.
    """
    if not s.quadratic or s.penalised:
        return Guarantee(source, FAILS, "it is about squared losses without ridge", "")
    wide = s.data[min(level, s.p)].isometry[1]
    own = (
        s.data[max(1, min(level - s.k + 1, s.p))]
        if level == 3 * s.k
        else s.data[max(1, min(3 * s.k, s.p))]
    )
    least, scaled = own.isometry[0], ""
    if step is not None:
        c, scaled = s.data[min(level, s.p)], f" of the design times the root of {step:.4g}"
        wide = max(step * c.smoothness[1] - 1.0, 1.0 - step * c.convexity[0])
        least = max(step * own.smoothness[0] - 1.0, 1.0 - step * own.convexity[1], 0.0)
    sure = max((t for t in range(1, s.k + 1) if wide <= limit(expansion(s.p, s.k, t))), default=0)
    perhaps = least <= limit(expansion(s.p, s.k, 1))
    name = "2k+K" if level == 3 * s.k else "3k+K"
    numbers = {"targets up to this sparsity": float(sure)}
    if sure and level == 3 * s.k:
        c = s.data[min(level, s.p)]
        numbers["step eta"] = step or 2.0 / (c.smoothness[1] + c.convexity[0])
    return Guarantee(
        source,
        HOLDS if sure else OPEN if perhaps else FAILS,
        f"delta_({name}){scaled} <= {limit(expansion(s.p, s.k, max(sure, 1))):.4g} for a target "
        f"of K = {max(sure, 1)} nonzeros; it is {between(least, wide)}",
        f"{method} halves its distance to every K-sparse target an iteration, down to the noise",
        numbers,
    )


BALL = "the target is in the ball of the run (radius), whose square enters the last distance"


def tight_10(s: Setting, step: float | None = None, inner: int | None = None) -> Guarantee:
    r"""TIGHT, Theorem 10: the expansion ``nu`` of hard thresholding below ``4L/(4L - alpha)``.

    ``L`` may be any number that is large enough, so that a step has to be below ``1/(4L)`` for the
    one that is known; a longer one may be covered by a smaller ``L``. For a step that is given,
    the two conditions of the paper are not enough where ``nu > 1/(1 - eta alpha)``: its proof
    (Case 2) asks for ``4 nu alpha L eta^2 - 2 nu alpha eta + nu - 1 < 0``, which short steps
    violate. That is the same as ``beta < 1`` for a long inner loop, which is asked for here.
    """
    smooth = s.row_smoothness
    sure, perhaps = _targets(s, smooth, lambda alpha: 4.0 * smooth / (4.0 * smooth - alpha))
    alpha = s.at(2 * s.k).convexity[0]
    numbers = {"largest step eta": 0.25 / smooth, "alpha": alpha, "L": smooth}
    words = ""
    if step is not None:
        words = f" and eta < 1/(4L), and beta < 1, for eta = {step:.4g}"
        words += "" if inner is None else f", m = {inner}"
        fits = (t for t in range(sure, 0, -1) if _rate(s, t, step, inner, smooth)[0] < 1.0)
        sure = next(fits, 0)
        if sure:
            beta, gain, square = _rate(s, sure, step, inner, smooth)
            numbers["contraction of the objective a stage"] = beta
            if inner is not None:
                numbers["tau per unit of radius and gradient"] = gain
                numbers["tau per squared unit of gradient"] = square
    verdict = for_targets(
        "TIGHT, Theorem 10",
        (sure, perhaps),
        f"nu(k, K) < 4L/(4L - alpha){words} for a target of K >= 1 nonzeros; "
        + _curvature(s, smooth),
        "the objective of HT-SVRG, as published with a ball (radius) that the target is in and a "
        "suitable step, falls in expectation linearly to that of every K-sparse target, up to the "
        "gradient there times the radius (tau), given inner loops that are long enough",
        numbers if sure else {},
    )
    return replace(verdict, unchecked=(BALL,) if verdict.status != FAILS else ())


def _rate(
    s: Setting, target: int, step: float, inner: int | None, smooth: float
) -> tuple[float, float, float]:
    r"""Return ``beta`` of Theorem 10 and the two factors of ``tau``.

    ``tau`` is the sum of the first, times the radius and the norm of the ``3k + K`` largest entries
    of the gradient at the target, and of the second times the square of that norm. ``inner`` is
    ``m``; None is its limit, without ``tau``. All of them fall with ``alpha``.
    """
    alpha = min(s.at(2 * s.k).convexity[0], smooth)
    nu = expansion(s.p, s.k, target)
    m = math.inf if inner is None else float(inner)
    eta, L = step, smooth
    if not (alpha > 0.0 and 4.0 * eta * L < 1.0):
        return math.inf, math.inf, math.inf
    short = nu * (1.0 - eta * alpha) <= 1.0
    if short:  # Case 1 of the proof: beta_2
        each = nu * eta * alpha * (1.0 - 2.0 * eta * L)
        beta = 1.0 / (each * m) + 2.0 * eta * L / (1.0 - 2.0 * eta * L)
    else:  # Case 2: beta_1
        each = 2.0 * nu * eta * alpha * (1.0 - eta * L) - nu + 1.0
        if not each > 0.0:
            return math.inf, math.inf, math.inf
        beta = (1.0 / m + 2.0 * nu * eta**2 * alpha * L) / each
    if not (beta < 1.0 and math.isfinite(m)):
        return beta, math.inf, math.inf
    over = (1.0 if short else alpha) / (2.0 * each * (1.0 - beta) * m)
    radius = 16.0 * nu * eta**2 * L * m + 2.0 / alpha
    return beta, over * radius, over * 4.0 * nu * eta**2 * m


def tight_15(s: Setting, step: float | None = None, inner: int | None = None) -> Guarantee:
    r"""TIGHT, Corollaries 15 and 16: Theorem 10 with the parameters of (4.5).

    That is ``k >= 8c (8c - 1) K`` for ``c = L/alpha``. The distance contracts by the root of what
    the objective does (Corollary 16). A step that is given is that of a larger ``L``, and of a
    length of the inner loop the contraction is asked to be one.
    """
    smooth, longer = s.row_smoothness, False
    if step is not None:
        longer = not 8.0 * step * smooth <= 1.0 + 1e-9
        smooth = smooth if longer else 0.125 / step
    # nu = 1 / (1 - eta alpha) at most
    sure, perhaps = _targets(s, smooth, lambda alpha: 1.0 / (1.0 - alpha / (8.0 * smooth)))
    sure = 0 if longer else sure
    numbers: dict[str, float] = {}
    if sure:
        alpha = min(s.at(2 * s.k).convexity[0], smooth)
        each = expansion(s.p, s.k, sure) * alpha / (8.0 * smooth)  # nu eta alpha
        steps = math.ceil(4.0 / each)
        rate = 1.0 / (0.75 * each * (inner or steps)) + 1.0 / 3.0
        sure, steps = (sure, inner or steps) if rate < 1.0 else (0, steps)
    if sure:
        numbers = {
            "step eta": 0.125 / smooth,
            "inner steps m": float(steps),
            "contraction of the objective a stage": rate,
            "contraction of the distance a stage": math.sqrt(rate),
        }
    verdict = for_targets(
        "TIGHT, Corollaries 15 and 16",
        (sure, perhaps),
        "k >= 8c (8c - 1) K for a target of K >= 1 nonzeros, c = L/alpha"
        + ("" if step is None else f" and L = 1/(8 eta) at least {s.row_smoothness:.4g}")
        + "; "
        + _curvature(s, smooth if step is None else 0.125 / step),
        "HT-SVRG, as published with these steps and a ball (radius) that the target is in, "
        "converges in expectation to the value of the best K-sparse point, and to every K-sparse "
        "target, up to the gradient there",
        numbers,
    )
    return replace(verdict, unchecked=(BALL,) if verdict.status != FAILS else ())


def _curvature(s: Setting, smooth: float) -> str:
    """Return what is known of the two constants, and where the name of the count follows."""
    low, high = s.at(2 * s.k).convexity[0], s.at(s.k).convexity[1]
    return f"L = {smooth:.4g}, alpha = m_(k+K) is {between(low, high)}, so K"


def _targets(s: Setting, smooth: float, limit: Callable[[float], float]) -> tuple[int, int]:
    """Return up to which K ``nu(k, K)`` is below ``limit(alpha)``: for certain, and perhaps."""

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


def iht_theorem(
    step: float | None = None,
    otherwise: str = "",
    units: str = "declared",
    relaxation: float = 1.0,
) -> Theorem:
    """Return Theorem 6: for a step that was given, or the best one."""

    def limit(nu: float) -> float:
        return 1.0 / math.sqrt(8.0 * nu)

    theorem = Theorem(
        "TIGHT, Theorem 6",
        lambda s: tight_rip(s, 3 * s.k, "TIGHT, Theorem 6", "IHT with the step eta", limit, step),
    )
    if otherwise:
        return without_free(run_otherwise(theorem, otherwise))
    if relaxation != 1.0:
        theorem = keeping(theorem, relaxation)
    if step is None and units == "declared":
        return without_free(theorem)
    return without_free(in_units(theorem, units))


THEOREM_07 = without_free(
    Theorem(
        "TIGHT, Theorem 7",
        lambda s: tight_rip(s, 4 * s.k, "TIGHT, Theorem 7", "CoSaMP, as published,", _cosamp),
    )
)


def svrg_theorems(
    step: float | Literal["spectral"] | None = None,
    inner: Callable[[Setting], int | None] = lambda _: None,
    otherwise: str = "",
    units: str = "declared",
    relaxation: float = 1.0,
) -> tuple[Theorem, ...]:
    """Return the theorems on HT-SVRG: with a step and a length of the inner loop, or any.

    ``otherwise`` is in what the run differs from the printed algorithm. Of the step
    ``"spectral"`` a lower bound is known, so that a theorem it fits is open.
    """

    def length(s: Setting) -> float | None:
        return 2.0 / s.norm**2 if isinstance(step, str) else step

    about: tuple[Theorem, ...] = (
        Theorem("TIGHT, Theorem 10", lambda s: tight_10(s, length(s), inner(s))),
        Theorem("TIGHT, Corollaries 15 and 16", lambda s: tight_15(s, length(s), inner(s))),
    )
    if step == "spectral":
        about = tuple(_at_most_open(theorem) for theorem in about)
    if otherwise:
        return tuple(without_free(run_otherwise(theorem, otherwise)) for theorem in about)
    if relaxation != 1.0:
        about = tuple(keeping(theorem, relaxation) for theorem in about)
    if step is not None or units != "declared":
        about = tuple(in_units(_of_rows(theorem), units) for theorem in about)
    return tuple(without_free(theorem) for theorem in about)


def _at_most_open(theorem: Theorem) -> Theorem:
    """Return a theorem whose step is known to be no shorter than the one it is judged with."""

    def judge(s: Setting) -> Guarantee:
        verdict = theorem.judge(s)
        return replace(verdict, status=OPEN, numbers={}) if verdict.status == HOLDS else verdict

    return Theorem(theorem.source, judge)


def _of_rows(theorem: Theorem) -> Theorem:
    """Return a theorem whose steps are over single observations."""
    text = "the steps were over combinations of the observations, and L is of the observations"
    return except_where(theorem, lambda s: s.combined, OPEN, text)
