"""Theorems of Yuan, Li and Zhang (2018) on GraHTP and its fast variant."""

from __future__ import annotations

import math

from sparsemodel.interfaces.self_description import (
    FAILS,
    HOLDS,
    OPEN,
    Constants,
    Guarantee,
    Setting,
    Theorem,
    all_of,
    between,
    decided_below,
    for_targets,
    in_units,
    keeping,
    run_otherwise,
    without_free,
)


def grahtp_2(s: Setting, limit: float, source: str, method: str, step: float | None) -> Guarantee:
    r"""GraHTP, Theorem 2: ``M_3k / m_3k`` below 1.1547 (GraHTP) or 1.26 (its fast variant).

    The step is given, or the best one, ``m / M^2``. ``rho`` below 0.5 implies the first condition,
    ``rho`` below 1/1.62 does not imply the second. The paper prints 0.62 for 1/1.62, with which
    the factor 1.62 rho may exceed one.
    """
    low, high = s.at(3 * s.k).condition
    status, given, exact = decided_below(low, high, limit), "", limit < 1.2
    least, rho = _contraction(low), _contraction(high)
    if step is None:
        step = s.at(3 * s.k).convexity[0] / s.at(3 * s.k).smoothness[1] ** 2
    else:
        least, rho = _contractions(s.at(3 * s.k), step)
        bound = 0.5 if exact else 1.0 / 1.62
        status = all_of(status, decided_below(least, rho, bound))
        given = f", and rho < {bound:.4g} for the step {step:.4g}; it is {between(least, rho)}"
    numbers: dict[str, float] = {}
    if status == HOLDS:
        rate = rho / (1.0 - rho) if exact else 1.62 * rho
        error = 2.83 / (1.0 - 2.0 * rho) if exact else 2.81 / (1.0 - 1.62 * rho)
        numbers = {"step eta": step, "contraction of the error an iteration": rate}
        numbers |= _errors(error * step * math.sqrt(s.k))
    return Guarantee(
        source,
        status,
        f"M_3k/m_3k < {limit:.4g}; it is {between(low, high)}{given}",
        f"{method} with the step eta converges linearly towards every k-sparse target, to within "
        "a multiple of sqrt(k) times the largest gradient there",
        numbers,
    )


def grahtp_5(s: Setting, step: float | None) -> Guarantee:
    r"""GraHTP, Theorem 5(a): ``eta < 1/M_2k`` and ``k >= (2 + 4/(eta m)^2) kbar``.

    With the step ``1/(2 M_2k)``, where none is given, that is ``2 + 16 M^2/m^2`` (Remark 6).
    """
    c = s.at(2 * s.k)
    low, high = c.condition
    if step is None:
        factors = 2.0 + 16.0 * high**2, 2.0 + 16.0 * low**2
        need = (
            "k >= (2 + 16 (M_2k/m_2k)^2) kbar for a target of kbar >= 1 nonzeros; M_2k/m_2k is "
            f"{between(low, high)}"
        )
        step = 0.5 / c.smoothness[1]
    else:
        M, m = c.smoothness[0], c.convexity[0]
        factors = _factor(step, c.smoothness[1], m), _factor(step, M, c.convexity[1])
        need = (
            f"eta < 1/M_2k and k >= (2 + 4/(eta m_2k)^2) kbar for a target of kbar >= 1 nonzeros; "
            f"eta is {step:.4g}, 1/M_2k {between(*(_inverse(M) for M in reversed(c.smoothness)))}, "
            f"m_2k {between(*c.convexity)}"
        )
    room = max(0, s.p - 2 * s.k - 1)  # the theorem asks for 2k + kbar < p
    sure, perhaps = (min(math.floor(s.k / factor), room) for factor in factors)
    numbers: dict[str, float] = {}
    if sure:
        rate = 1.0 - 0.5 * step * c.convexity[0] * (1.0 - step * c.smoothness[1])
        numbers = {"step eta": step, "contraction of the objective an iteration": rate}
        numbers |= _errors(2.83 * math.sqrt(s.k) / c.convexity[0])
    return for_targets(
        "GraHTP, Theorem 5(a)",
        (sure, perhaps),
        f"{need}, so kbar",
        "GraHTP with the step eta converges linearly towards every kbar-sparse target",
        numbers,
    )


def grahtp_5b(s: Setting, step: float | None) -> Guarantee:
    r"""GraHTP, Theorem 5(b): ``k > rho kbar / (1 - rho)^2`` for FGraHTP; ``m/M^2`` if no step."""
    c, near = s.at(3 * s.k), s.at(2 * s.k + 1)  # at least 2k + kbar, and the least
    low, high = near.condition[0], c.condition[1]
    rho, least = _contraction(high), _contraction(low)
    if step is None:
        step = c.convexity[0] / c.smoothness[1] ** 2
        given = ""
    else:
        least, rho = _contractions(near, step)[0], _contractions(c, step)[1]
        given = f", at the step {step:.4g} rho {between(least, rho)}"
    room = min(s.k, s.p - 2 * s.k - 1)

    def most(rho: float) -> int:
        fits = (t for t in range(1, room + 1) if rho * t < s.k * (1.0 - rho) ** 2)
        return max(fits, default=0) if rho < 1.0 else 0

    sure = most(rho)
    numbers: dict[str, float] = {}
    if sure:
        share = sure / s.k
        gamma = math.sqrt(1.0 + (share + math.sqrt((4.0 + share) * share)) / 2.0)
        rate = rho * gamma
        numbers = {"step eta": step, "contraction of the error an iteration": rate}
        numbers |= _errors(gamma * step * math.sqrt(2 * s.k + sure) / (1.0 - rate))
    return for_targets(
        "GraHTP, Theorem 5(b)",
        (sure, most(least)),
        f"k > rho kbar / (1 - rho)^2 for a target of kbar >= 1 nonzeros, rho^2 = 1 - 2 eta m + "
        f"(eta M)^2 of level 2k + kbar; M/m is {between(low, high)}{given}, so kbar",
        "IHT (FGraHTP) with the step eta converges linearly towards every kbar-sparse target",
        numbers,
    )


def grahtp_8(
    s: Setting, source: str, factor: float, whose: str, step: float | None = None
) -> Guarantee:
    r"""GraHTP, Theorems 8 (step ``1/(2 M_2k)``) and 10(2): ``k >= (1 + factor M^2/m^2) kbar``."""
    c = s.at(2 * s.k)
    low, high = c.condition
    sure, perhaps = (
        math.floor(s.k / (1.0 + factor * x**2)) if math.isfinite(x) else 0 for x in (high, low)
    )
    if step is not None:  # the theorem is about one step only
        ends = [2.0 * step * M for M in c.smoothness]
        sure = sure if max(abs(end - 1.0) for end in ends) <= 1e-6 else 0
        perhaps = perhaps if ends[0] <= 1.0 + 1e-6 and ends[1] >= 1.0 - 1e-6 else 0
    numbers: dict[str, float] = {}
    if sure:
        if factor == 16.0:
            numbers["step eta"] = 0.5 / c.smoothness[1]
        numbers["smallest coefficient per root of the excess"] = 2.3 / math.sqrt(c.convexity[0])
    return for_targets(
        source,
        (sure, perhaps),
        f"k >= (1 + {factor:g} (M_2k/m_2k)^2) kbar for a target of kbar >= 1 nonzeros; M_2k/m_2k "
        f"is {between(low, high)}"
        + (f", and the step {step:.4g} is 1/(2 M_2k)" if step else "")
        + ", so kbar",
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


def _contractions(c: Constants, step: float) -> tuple[float, float]:
    """Return bounds on ``rho`` at a step."""

    def rho(m: float, M: float) -> float:
        return math.sqrt(max(0.0, 1.0 - 2.0 * step * m + (step * M) ** 2))

    return rho(c.convexity[1], c.smoothness[0]), rho(c.convexity[0], c.smoothness[1])


def _factor(step: float, M: float, m: float) -> float:
    """Return what Theorem 5(a) multiplies ``kbar`` by."""
    return 2.0 + 4.0 / (step * m) ** 2 if step * M < 1.0 and m > 0.0 else math.inf


def _inverse(value: float) -> float:
    return 1.0 / value if value > 0.0 else math.inf


def _errors(error: float) -> dict[str, float]:
    """Return what a unit of the gradient costs, and the support recovered (Corollaries 3, 7)."""
    return {
        "error per unit of the gradient": error,
        "smallest coefficient found per unit of the gradient": 2.0 * error,
    }


THEOREM_10 = (
    Theorem("GraHTP, Theorem 10(1)", grahtp_10),
    Theorem(
        "GraHTP, Theorem 10(2)",
        lambda s: grahtp_8(s, "GraHTP, Theorem 10(2)", 4.0, "every best k-sparse point"),
    ),
)


def theorems(
    step: float | None = None,
    otherwise: str = "",
    units: str = "declared",
    relaxation: float = 1.0,
) -> tuple[Theorem, ...]:
    """Return the theorems on GraHTP: with a step that was given, or the best one of each.

    ``otherwise`` is in what the run differs from the printed algorithm, ``units`` what the step is
    one of, and ``relaxation`` how many times the entries of the solution its iterates keep.
    """
    limit = 2.0 / math.sqrt(3.0)
    about = (
        Theorem(
            "GraHTP, Theorem 2(a)",
            lambda s: grahtp_2(s, limit, "GraHTP, Theorem 2(a)", "GraHTP", step),
        ),
        Theorem("GraHTP, Theorem 5(a)", lambda s: grahtp_5(s, step)),
        Theorem(
            "GraHTP, Theorem 8",
            lambda s: grahtp_8(s, "GraHTP, Theorem 8", 16.0, "GraHTP's result", step),
        ),
    )
    return (*_about(about, step, otherwise, units, relaxation), *THEOREM_10)


def fast_theorems(
    step: float | None = None,
    otherwise: str = "",
    units: str = "declared",
    relaxation: float = 1.0,
) -> tuple[Theorem, ...]:
    """Return the theorems on FGraHTP, which is IHT; as for :func:`theorems`."""
    about = (
        Theorem(
            "GraHTP, Theorem 2(b)",
            lambda s: grahtp_2(s, 1.26, "GraHTP, Theorem 2(b)", "IHT (FGraHTP)", step),
        ),
        Theorem("GraHTP, Theorem 5(b)", lambda s: grahtp_5b(s, step)),
    )
    run = _about(about, step, otherwise, units, relaxation)
    return tuple(without_free(theorem) for theorem in run)


def _about(
    theorems: tuple[Theorem, ...], step: float | None, otherwise: str, units: str, relaxation: float
) -> tuple[Theorem, ...]:
    if otherwise:
        return tuple(run_otherwise(theorem, otherwise) for theorem in theorems)
    if relaxation != 1.0:
        theorems = tuple(keeping(theorem, relaxation) for theorem in theorems)
    if step is None and units == "declared":
        return theorems
    return tuple(in_units(theorem, units) for theorem in theorems)
