r"""What a backend says of itself: what it is for, what to expect of it, what is proved about it.

A condition on restricted constants is decided with their enclosures: it *holds* when the numbers
that are valid for all supports satisfy it, it *fails* when the numbers that some supports attain
violate it, and it is *open* in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import final

HOLDS, FAILS, OPEN = "holds", "fails", "open"


@final
@dataclass(frozen=True, slots=True)
class Constants:
    """``M_s`` and ``m_s`` of one sparsity level, each between two numbers."""

    level: int
    """``s``."""
    smoothness: tuple[float, float]
    """``M_s`` is at least the first (attained on a support) and at most the second."""
    convexity: tuple[float, float]
    """``m_s`` is at least the first and at most the second (attained on a support)."""

    @property
    def condition(self) -> tuple[float, float]:
        """Return bounds on the restricted condition number ``M_s / m_s``, at least one."""
        return (
            max(1.0, _ratio(self.smoothness[0], self.convexity[1])),
            max(1.0, _ratio(self.smoothness[1], self.convexity[0])),
        )

    @property
    def isometry(self) -> tuple[float, float]:
        r"""Return bounds on :math:`\delta_s = (M_s - m_s)/(M_s + m_s)`.

        The restricted isometry constant of the design scaled at its best.
        """
        return tuple((c - 1.0) / (c + 1.0) if math.isfinite(c) else 1.0 for c in self.condition)  # type: ignore[return-value]

    def divided(self, size: float) -> Constants:
        """Return the constants of the objective divided by a number."""
        low, high = self.smoothness
        least, most = self.convexity
        return Constants(self.level, (low / size, high / size), (least / size, most / size))


def _ratio(one: float, two: float) -> float:
    return one / two if two > 0.0 and math.isfinite(one) else math.inf


@final
@dataclass(frozen=True, slots=True)
class Guarantee:
    """One theorem, its condition on this problem, and what follows."""

    source: str
    """Paper and theorem."""
    status: str
    """``"holds"``, ``"fails"`` or ``"open"``: the enclosures of the constants do not decide."""
    condition: str
    """What is required, and what holds here."""
    conclusion: str
    """What the theorem promises when the condition holds."""
    numbers: dict[str, float] = field(default_factory=dict)
    """The theorem's constants, computed on the safe side; empty where there are none."""
    unchecked: tuple[str, ...] = ()
    """Assumptions of the theorem that the data do not decide, or that concern an unknown target:
    it applies where they are true."""


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """Everything that the theorems' conditions are made of."""

    k: int
    p: int
    constants: dict[int, Constants]
    """Of the objective, ridge included, for the levels of :func:`levels`; empty where a loss has no
    second derivative."""
    data: dict[int, Constants]
    """Of the losses alone."""
    smooth: bool
    quadratic: bool
    loss_curvature: tuple[float, float]
    ridge: float
    """The one ridge of all counted coordinates; 0 where they differ or there is none."""
    penalised: bool
    """Whether any counted coordinate has a ridge."""
    free: int
    observations: int
    weight: float
    """``n c`` for equal observation weights ``c``; 0 where they differ."""
    row_smoothness: float
    """``L`` of TIGHT's assumption A2 at level ``4k``: every observation's, times their number."""
    norm: float
    """Upper bound on the spectral norm of the design."""
    coefficients: tuple[float, float]
    """Smallest nonzero size and Euclidean norm of the point."""
    slopes: tuple[float, float]
    """Largest gradient of the losses anywhere, largest gradient of the objective."""
    stationary: bool
    target: tuple[float, float]
    """Smallest nonzero size of the point, largest gradient of the objective anywhere."""
    rescaled: bool = False
    """Whether backends work on scaled columns, so that their steps are in other units."""
    combined: bool = False
    """Whether backends work on combinations of the observations."""
    total: float = 1.0
    """Sum of the observation weights: the objective in units of the mean of the losses."""
    dual: float = math.inf
    """Euclidean norm of the derivatives of the losses at the point."""
    dual_bounds: tuple[float, float] = (math.inf, math.inf)
    """Largest size of a dual variable, and of the slope of its conjugate; ``inf`` where they are
    not bounded."""
    relaxed_row_smoothness: float = math.inf
    """``row_smoothness`` for the iterates of a backend that keep more than ``k`` entries."""

    def in_units(self, units: str) -> Setting:
        """Return the setting of the objective as a paper writes it.

        ``units`` are those of :data:`sparsemodel.numerics.Units`: ``"sum"`` or ``"mean"`` of the
        losses, ``"declared"`` for the objective as it is.
        """
        if units == "declared":
            return self
        size = self.total if units == "mean" else self.total / max(self.observations, 1)
        return replace(
            self,
            constants={level: c.divided(size) for level, c in self.constants.items()},
            data={level: c.divided(size) for level, c in self.data.items()},
            ridge=self.ridge / size,
            weight=self.weight / size,
            total=self.total / size,
            row_smoothness=self.row_smoothness / size,
            relaxed_row_smoothness=self.relaxed_row_smoothness / size,
            slopes=(self.slopes[0] / size, self.slopes[1] / size),
            target=(self.target[0], self.target[1] / size),
        )

    def keeping(self, relaxation: float) -> Setting:
        """Return the setting of an algorithm whose iterates keep ``relaxation * k`` entries."""
        k = min(math.ceil(relaxation * self.k), self.p)
        return replace(self, k=k, row_smoothness=self.relaxed_row_smoothness)

    def at(self, level: int) -> Constants:
        """Return the constants of a level; no support has more than ``p`` coordinates."""
        return self.constants[max(1, min(level, self.p))]


def levels(k: int, p: int) -> tuple[int, ...]:
    """Return the sparsity levels that the theorems speak of."""
    return tuple(sorted({max(1, min(s, p)) for s in (2, k, 2 * k, 2 * k + 1, 3 * k, 4 * k)}))


@final
@dataclass(frozen=True, slots=True)
class Theorem:
    """A published statement about a backend, which a problem's numbers are put into."""

    source: str
    """Paper and theorem, ``"NHTP, Theorem 9"``."""
    judge: Callable[[Setting], Guarantee]
    """Decides the condition; called where every loss has a second derivative."""

    def on(self, setting: Setting) -> Guarantee:
        """Return what the theorem says about a problem."""
        if setting.smooth:
            return self.judge(setting)
        text = "the loss has no second derivative, and every one of these theorems requires it"
        return Guarantee(self.source, FAILS, text, "")


def except_where(
    theorem: Theorem, where: Callable[[Setting], bool], status: str, why: str
) -> Theorem:
    """Return a theorem that has this status, with the reason, for problems of one kind."""

    def judge(s: Setting) -> Guarantee:
        return Guarantee(theorem.source, status, why, "") if where(s) else theorem.judge(s)

    return Theorem(theorem.source, judge)


def without_free(theorem: Theorem) -> Theorem:
    """Return a theorem whose iteration steps in every coordinate, for problems without free ones.

    The constants are those of the objective minimised over free coordinates; such an iteration
    does not minimise over them, and may diverge with the step that the constants allow.
    """
    text = "it takes gradient steps in free coordinates, which the constants do not cover"
    return except_where(theorem, lambda s: bool(s.free), FAILS, text)


def run_otherwise(theorem: Theorem, why: str) -> Theorem:
    """Return a theorem about an algorithm that the options in force are not, with the reason."""
    return except_where(theorem, lambda _: True, FAILS, why)


def in_units(theorem: Theorem, units: str = "declared") -> Theorem:
    """Return a theorem with a step that was given, for problems whose columns are not scaled.

    ``units`` says what the step multiplies the gradient of; the theorem's numbers are in them.
    """
    text = "the step was one of scaled columns, and the constants are those of the columns"
    own = Theorem(theorem.source, lambda s: theorem.judge(s.in_units(units)))
    return except_where(own, lambda s: s.rescaled, OPEN, text)


def keeping(theorem: Theorem, relaxation: float) -> Theorem:
    """Return a theorem about iterates with more entries than the solution may have.

    Its ``k`` is then that of the iterates, and so are the levels of its constants.
    """
    return Theorem(theorem.source, lambda s: theorem.judge(s.keeping(relaxation)))


def all_of(*statuses: str) -> str:
    """Return the status of several conditions together."""
    return next((status for status in (FAILS, OPEN) if status in statuses), HOLDS)


def decided_below(low: float, high: float, limit: float) -> str:
    """Return the status of ``value < limit`` for a value between ``low`` and ``high``."""
    return HOLDS if high < limit else FAILS if low >= limit else OPEN


def between(low: float, high: float) -> str:
    """Return in words what is known of a value between ``low`` and ``high``."""
    if math.isinf(low) and math.isinf(high):
        return "infinite"
    if high - low <= 1e-6 * max(abs(high), 1e-300):
        return f"{high:.4g}"
    if math.isinf(high):
        return f"at least {low:.4g}"
    return f"between {low:.4g} and {high:.4g}"


def for_targets(
    source: str,
    counts: tuple[int, int],
    condition: str,
    conclusion: str,
    numbers: Mapping[str, float] | None = None,
) -> Guarantee:
    """Return what a theorem about targets with fewer nonzeros says.

    ``counts`` is up to how many nonzeros its condition holds for certain, and perhaps;
    ``condition`` ends in the name of that number.
    """
    sure, perhaps = counts
    end = "" if perhaps <= sure else f" for certain, {perhaps} at the most"
    return Guarantee(
        source,
        HOLDS if sure else OPEN if perhaps else FAILS,
        f"{condition} <= {sure}{end}",
        conclusion,
        {"targets up to this sparsity": float(sure)} | dict(numbers or {}),
    )


class Role(Enum):
    """A job that is given to a backend without being asked for by name.

    Of several that take a job, the one whose author expects most of it is run
    (:class:`Prior`).
    """

    FINISH = "improves a support until no change of it helps"
    """Run last in every plan; by itself where it starts as well as another would."""
    RECOVERY = "finds a support from few products"
    """Run first where a recovery is likely, and where the design gives products only."""
    DUAL = "climbs the dual"
    """Run first where the dual alone is smooth."""
    GREEDY = "builds a support up"
    """Run first, or in the place of a finish that would take long."""
    APPROACH = "comes near a support with products alone"
    """Run before a recovery, for smooth losses whose finish would take long."""
    SWAPS = "exchanges units one by one"
    """Run after what stands in the place of a finish that would take long, and from zero."""
    MERGES = "exchanges many units at once"
    """Run from the best point where neither a finish nor swaps have time."""
    ENUMERATION = "tries every support"
    """Taken where there are few supports."""
    SEQUENCE = "finds the best steps of a sequence"
    """Taken where a loss of a variable has its jumps counted, and nothing else."""
    LINEAR = "solves linear programs with choices"
    """Taken where the objective has no curvature."""
    COMPARISON = "compares candidates"
    """Good after a short search from the start that a neighbouring problem gives: along paths and
    for the folds of precision matrices."""
    REFINEMENT = "refines a support"
    """Run first where a search along k has to find the number of units."""


@final
@dataclass(frozen=True, slots=True)
class Prior:
    """What a backend's author expects of it, which decides between backends of one role."""

    close: float
    """Share of the problems on which it comes within 0.1 % of the best objective known."""
    excess: float
    """Mean relative excess over that objective."""

    def __post_init__(self) -> None:
        if not (0.0 <= self.close <= 1.0 and self.excess >= 0.0):
            raise ValueError("close is a share between 0 and 1, and excess is not negative")
