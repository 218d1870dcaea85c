"""The certificate of a sparse regression: a checkable statement of how good a point is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.statements.claims import Claim, relative_gap_of
from sparsemodel.certificates.statements.frame import SearchedCertificate
from sparsemodel.certificates.statements.problem_facts import ProblemFacts
from sparsemodel.certificates.statements.stationarity import Stationarity
from sparsemodel.documents.document import Bar, Bars, Chart, Facts, Section, Series
from sparsemodel.documents.numbers import aligned, number, percent, side_by_side
from sparsemodel.interfaces import FloatArray

_TOLERANCE = 1e-2
"""Largest requested gap that is still called a tolerance."""

WRITERS_OWN = (
    "who found the point",
    "how the dual point was found",
    "the requested gap",
    "progress",
    "statistics of the search",
    "time",
    "versions",
    "the objective without features",
)
"""What a certificate says of its writer: no data decide it, and no verification compares it."""

_RAISED_BY = (
    "a ridge, sm.ridge(w, 1e-3); bounds on the coefficients, w <= 10 and w >= -10; or no columns "
    "that others determine"
)
"""What leaves a dual point room where there is next to no bound."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Multipliers:
    """What moves constraints into the objective, where they need not hold any more."""

    NEWER: ClassVar[tuple[str, ...]] = ("own", "norms")

    slopes: FloatArray
    """``y``, a Lagrange multiplier for every row."""
    stiffness: FloatArray
    """``rho``, the weight of a row's square: zero for rows that are no equations."""
    own: bool = False
    """Whether parts of a search may have slopes of their own."""
    norms: FloatArray | None = None
    """``mu``, a multiplier for every limit on a norm; None where there are none."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """The numbers that prove the bound, which can be recomputed from them and the data."""

    NEWER: ClassVar[tuple[str, ...]] = ("multipliers",)

    duals: tuple[FloatArray | None, ...]
    """``a`` for each term, or the predictions whose gradient it is where the conjugate of the loss
    is not known; None for the gradient of squares at ``at``."""
    at: FloatArray | None = None
    """Where squared losses are linearised, when the bound needs a point."""
    extraction: FloatArray | None = None
    """Diagonal curvature taken out of squared losses."""
    bounds: CoefficientBounds | None = None
    """Bounds on the coefficients that the data prove; the dual point is then one of the problem
    with these as a box, whose optimal value is the same."""
    multipliers: Multipliers | None = None
    """Of linear constraints: the dual points are then those of the problem with the constraints in
    the objective, one for the linear term, and one for the squares where there are any."""


class Progress(NamedTuple):
    """One moment of the search, for the picture of the gap against time."""

    seconds: float
    value: float
    """Best objective so far; infinite before the first feasible point."""
    bound: float
    """Best bound so far; ``-inf`` before the first."""
    phase: str


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Certificate(SearchedCertificate):
    """What is proved about a point, with everything needed to check it again.

    ``value`` and ``bound`` hold for the *exact* problem with the given float64 data: the rounding
    allowance is already subtracted from ``bound``, and the gap is measured from ``upper``, the
    objective with its own allowance added.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> goal = sm.minimize(sm.squared_loss(np.eye(3) @ w, [3.0, 0.1, -2.0]) + sm.ridge(w, 0.1))
    >>> certificate = sm.Problem(goal, sm.card(w) <= 1).certify()
    >>> certificate.title()
    'globally optimal'
    >>> certificate.bound <= certificate.value
    True
    """

    FORMAT: ClassVar[str] = "sparsemodel-certificate"
    LINES: ClassVar[tuple[str, ...]] = (
        *("claim", "value", "upper", "bound", "gap", "relative_gap", "allowance", "null_value"),
        *("constant", "bound_method", "bound_reason", "assumptions", "stationarity"),
        *("violations", "support", "names", "coefficients", "problem", "witness", "proof"),
        "writer",
    )
    WRITER: ClassVar[tuple[str, ...]] = (
        *("backend", "bound_source", "target", "search", "progress", "seconds", "created"),
        *("versions", "without"),
    )
    NEWER: ClassVar[tuple[str, ...]] = ("without",)
    MEASURE: ClassVar[str] = "the objective"
    WITHOUT: ClassVar[str] = "at zero"

    allowance: float
    """The safety margin for rounding errors in ``bound`` and ``upper``."""
    constant: float
    """The part of the objective that does not depend on the coefficients."""
    bound_method: str
    bound_source: str
    """How the dual point was found."""
    bound_reason: str
    """Why there is no bound; empty when there is."""
    stationarity: Stationarity
    violations: tuple[str, ...]
    """Constraints that the point violates; empty for a feasible point."""
    support: tuple[int, ...]
    """Nonzero counted coordinates of the canonical problem, sorted."""
    names: dict[int, str]
    """Names of the nonzero and the free coordinates."""
    problem: ProblemFacts
    witness: Witness
    progress: tuple[Progress, ...]
    without: float | None = None
    """The objective of the best model without features, of coefficients that are not counted alone;
    infinite where there is none, None where a file does not say."""

    @property
    def relative_gap(self) -> float:
        """Return the gap divided by the larger of ``|P|`` and ``|D|``.

        A constant in the objective is left out of both where that makes them smaller.
        """
        return relative_gap_of(self.upper, self.bound, self.constant)

    @property
    def coefficients(self) -> dict[str, float | list[float]]:
        """Return the nonzero coefficients and the free ones by name."""
        return {name: self.x[j].tolist() for j, name in sorted(self.names.items())}

    def misfit(self) -> str:
        """Return how the lines of a file contradict each other; empty where they agree."""
        shape, terms, witness = self.problem.shape, self.problem.terms, self.witness
        if not shape or self.x.shape != shape:
            return f"line 'witness.x' has shape {self.x.shape}, the problem {shape}."
        held = witness.multipliers  # rows have a term or two, and every norm may have its own
        more = 0 if held is None else 2 + (0 if held.norms is None else held.norms.size)
        if len(witness.duals) > len(terms) + more:
            return f"line 'witness.duals' has {len(witness.duals)} entries, not {len(terms)}."
        known = zip(witness.duals, terms, strict=False)  # constraints have no number of rows here
        rows = {f"duals[{i}]": (a, term.observations) for i, (a, term) in enumerate(known)}
        rows |= {"at": (witness.at, shape[0]), "extraction": (witness.extraction, shape[0])}
        for line, (array, needed) in rows.items():
            if array is not None and array.shape[:1] != (needed,):
                return f"line 'witness.{line}.shape' is {array.shape}; {needed} rows are needed."
        far = [j for j in self.names if j >= shape[0]]
        return f"line 'names' names coordinate {far[0]}, and there are {shape[0]}." if far else ""

    @rejects_unknown_arguments
    def title(self) -> str:
        """Return the claim in a few words."""
        match self.claim:
            case Claim.OPTIMAL:
                return "globally optimal"
            case Claim.WITHIN_GAP if self._as_asked():
                return f"optimal within the requested tolerance of {percent(self.target)}"
            case Claim.WITHIN_GAP if self.relative_gap < 1.0:
                return f"at most {percent(self.relative_gap)} from the best possible model"
            case Claim.WITHIN_GAP:
                return "the best possible model may be far better"
            case Claim.STATIONARY:
                return "the best model with these features; nothing is known of others"
        return self.claim.value if self.claim is Claim.ZERO else "nothing is proved"

    @rejects_unknown_arguments
    def headline(self) -> str:
        """Return the claim in a sentence, with the numbers behind it."""
        claim, value, bound = self.claim, *side_by_side(self.value, self.bound)
        if claim is Claim.WITHIN_GAP:
            return f"No {self._model()} has an objective below {bound}. This one has {value}."
        if claim is Claim.OPTIMAL and self.relative_gap > 0.0:
            return f"No {self._model()} is better than this one, up to a relative gap of 1e-6."
        weak = claim in (Claim.STATIONARY, Claim.NONE) and not self.violations
        if weak and math.isfinite(self.bound):
            # As files of the first version say it: the claim is weaker than the numbers.
            return f"No {self._model()} has an objective below {number(self.bound)}."
        return claim.sentence

    def _model(self) -> str:
        """Return what the claim compares with: what keeps the same constraints."""
        p = self.problem
        further = {"limits", "crossing", "prices", "knapsack", "order"} & set(p.numbers or {})
        bounded = p.price > 0.0 or bool(further) or p.box != "none" or p.region != "none"
        if bounded:
            return "model within these constraints"
        units = "groups" if p.grouped else "rows" if len(p.shape) > 1 else "coefficients"
        return f"model with at most {p.k} of {p.units + (p.forced or 0)} nonzero {units}"

    def _as_asked(self) -> bool:
        return self.proof is not None and self.relative_gap <= self.target <= _TOLERANCE

    def _numbers(self) -> list[tuple[str, str]]:
        value, bound = side_by_side(self.value, self.bound)
        known = math.isfinite(self.bound)
        rows = [
            ("objective", value),
            ("lower bound", f"{bound} ({self.bound_method})" if known else "none"),
            *([] if known else [("why none", self.bound_reason)]),
        ]
        if math.isfinite(self.gap):
            share = percent(self.relative_gap)
            rows.append(("gap", f"{number(self.gap, 3)}, {share} of the objective"))
        label, reference = self._compared()
        label = "objective at zero" if self.without is None else label
        loose = self.problem.ridge_smallest == 0.0 and self.problem.box == "none"
        if self.claim is Claim.WITHIN_GAP and self.relative_gap >= 1.0 and loose:
            rows.append(("raised by", _RAISED_BY))
        if known and self.proof is None and "order" in (self.problem.numbers or {}):
            rows.append(("ignored by it", "that entries are nonzero only together with others"))
        return [
            *rows,
            *([(label, number(reference))] if label else []),
            ("rounding allowance", f"{number(self.allowance, 2)} (already in the gap)"),
        ]

    def _compared(self) -> tuple[str, float]:
        if self.without is None:
            return super()._compared()
        return ("without features" if math.isfinite(self.without) else "", self.without)

    def _sizes(self) -> tuple[str, Bars]:
        chosen, rows = set(self.support), []
        single = aligned([float(self.x[j]) for j in self.names]) if self.x.ndim == 1 else None
        for index, (j, name) in enumerate(self.names.items()):
            entry = self.x[j]
            size = float(entry) if self.x.ndim == 1 else float(np.linalg.norm(entry))
            parts = (f"{v:.4g}" for v in np.atleast_1d(entry).tolist())
            text = ", ".join(parts) if single is None else single[index]
            note = "" if j in chosen else "not counted"
            rows.append(Bar(name, size, text, j in chosen, note))
        rows.sort(key=lambda bar: (not bar.drawn, -abs(bar.size), bar.name))
        return "Coefficients", Bars(rows, empty="All coefficients are zero.")

    def _details(self) -> tuple[Section, ...]:
        facts = Facts(self.stationarity.rows(self.claim), ("quantity", "value"))
        data = Facts(self.problem.fingerprints())
        return Section("First-order facts", (facts,)), Section("Fingerprints of the data", (data,))

    def _origin(self) -> list[tuple[str, str]]:
        summary = [
            (key, number(value) if isinstance(value, float) else str(value))
            for key, value in self.search.items()
            if key != "gap asked for"  # among the rows of every certificate
        ]
        names = ("names", "as declared by the author")
        return [*super()._origin(), ("bound found by", self.bound_source), names, *summary]

    def _pictures(self) -> tuple[Chart, ...]:
        solver = [p for p in self.progress if p.phase not in ("bound", "proof")]
        later = [p for p in self.progress if p.phase in ("bound", "proof")]
        known = math.isfinite(self.bound)
        floor = self.bound if known else min((p.value for p in solver), default=0.0)
        scale = max(abs(self.upper), abs(self.bound), 1e-300)
        above = tuple(p.value - floor for p in solver)
        steps = tuple(float(i + 1) for i in range(len(solver)))
        gaps = tuple(100.0 * max(p.value - p.bound, 0.0) / scale for p in later)
        return (
            Chart(
                (Series("objective", steps, above, "value"),),
                title="objective above the bound, by iteration",
                x_label="iteration",
                y_label="objective - bound" if known else "objective - final objective",
                caption="Distance of the objective from the bound in each iteration of "
                f"{self.backend}.",
                log=True,
            ),
            Chart(
                (Series("relative gap", tuple(p.seconds for p in later), gaps, "bound", True),),
                title="relative gap against time",
                x_label="seconds",
                y_label="relative gap in %",
                caption="The relative gap while the bound was raised.",
                log=True,
            ),
        )

    @classmethod
    def _of_second_version(cls, body: dict[str, Any]) -> dict[str, Any]:
        found = super()._of_second_version(body)
        proof, constant = body["proof"], body["problem"]["constant"]
        found["writer"]["search"] = {} if proof is None else proof.get("summary") or {}
        found["proof"] = None if proof is None else {"tree": proof.get("tree")}
        found["constant"] = constant
        if constant != 0.0:
            del found["relative_gap"]  # measured otherwise then
        if not body["stationarity"]["smooth"]:
            found["stationarity"] = {**body["stationarity"], "step": "nan"}
        return found
