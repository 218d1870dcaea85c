"""The certificate of a sparse precision matrix: what is proved, and the numbers that prove it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.certificates.precision_matrices.witness_of_precision import PrecisionWitness
from sparsemodel.certificates.statements.claims import Claim, gap_of, supported
from sparsemodel.certificates.statements.fingerprint import array_hash
from sparsemodel.certificates.statements.frame import SearchedCertificate
from sparsemodel.certificates.statements.numbers import edges_of
from sparsemodel.documents.document import Bar, Bars
from sparsemodel.documents.numbers import number, percent, side_by_side
from sparsemodel.interfaces import FloatArray
from sparsemodel.interfaces.precision import AnyPrecision, JointPrecision

STATIONARY_NATS = 1e-6
"""Nats per sample up to which a matrix is called the best on its own support."""

ROUNDING_NATS = 1e-9
"""Nats per sample that are rounding whatever the edges explain: globally optimal, too."""

PRECISION_WRITERS_OWN = ("who found the matrix", "the requested gap", "time", "versions")
"""What a certificate says of its writer: no data decide it, and no verification compares it."""

_PROBES = 4
_SAME = 1e-8

_SENTENCES = {
    "globally optimal": "No matrix with as many edges has a higher likelihood.",
    "within gap": "No matrix with as many edges has a likelihood that is higher by more than "
    "{nats} nats per sample.",
    "stationary": "The matrix is the best one with these edges. No matrix with as many edges is "
    "better by more than {nats} nats per sample.",
    "none": "There is no guarantee beyond the lower bound below.",
}


_SEVERAL = (
    ("No matrix ", "No pattern "),
    ("The matrix is the best one", "The matrices are the best ones"),
    ("about this matrix", "about these matrices"),
)
"""Words of one matrix, and of several with one pattern."""


@final
@dataclass(frozen=True, slots=True)
class PrecisionFacts:
    """Everything that identifies a precision-matrix problem, without its covariance."""

    NEWER: ClassVar[tuple[str, ...]] = ("numbers", "others")

    order: int
    k: int
    units: int
    """Edges that may be there and are counted."""
    required: int
    alpha: float
    beta: float
    weight: float
    constant: float
    samples: int | None
    structure: str
    """Fingerprint of which edges are counted, required and forbidden."""
    probes: tuple[float, ...]
    r"""Numbers :math:`r^T S x` for fixed pseudo-random ``r`` and ``x``: a covariance computed on
    another machine differs in its last digits, so that a hash of it would not do."""
    names: tuple[str, ...] | None
    numbers: dict[str, Any] | None = None
    """The edges behind ``structure``, see :func:`edges_of`; None in files written without."""
    others: tuple[PrecisionFacts, ...] | None = None
    """Of several matrices with one pattern, all but the first; None of one."""

    @classmethod
    def of(cls, form: AnyPrecision) -> PrecisionFacts:
        """Describe a form. O(p^2) for each matrix."""
        if isinstance(form, JointPrecision):
            first, *others = map(cls.of, form.parts)
            return replace(first, constant=form.constant, others=tuple(others))
        rng = np.random.default_rng(20_180_907)
        deviations = np.sqrt(np.diagonal(form.covariance))
        probes = []
        for _ in range(_PROBES):
            r, x = rng.standard_normal((2, form.order)) / deviations
            probes.append(float(r @ (form.covariance @ x)))
        structure = np.concatenate([form.rows, form.cols, form.sparsity.free]).astype(np.float64)
        return cls(
            order=form.order,
            k=int(form.sparsity.k),
            units=int(form.sparsity.units),
            required=int(form.sparsity.free.size) - form.order,
            alpha=form.alpha,
            beta=form.beta,
            weight=form.weight,
            constant=form.constant,
            samples=form.samples,
            structure=array_hash(structure),
            probes=tuple(probes),
            names=form.names,
            numbers=edges_of(form),
        )

    @property
    def matrices(self) -> tuple[PrecisionFacts, ...]:
        """Return what identifies each matrix."""
        return (self, *(self.others or ()))

    def sentence(self) -> str:
        """Return the problem in a line."""
        if self.others is not None:
            counted = f"at most {self.k} of {self.units} edges"
            parts = [one.sentence().replace(f", {counted}", "") for one in self._alone()]
            weights = [f"{number(one.weight, 4)} times the " for one in self.matrices]
            each = [w + p[0].lower() + p[1:] for w, p in zip(weights, parts, strict=True)]
            return f"{'; '.join(each)}; one pattern, {counted}".replace("gaussian", "Gaussian")
        parts = [
            f"Gaussian likelihood of a precision matrix of {self.order} variables",
            f"at most {self.k} of {self.units} edges",
        ]
        if self.required:
            parts.append(f"{self.required} more required")
        forbidden = self.order * (self.order - 1) // 2 - self.units - self.required
        if forbidden:
            parts.append(f"{forbidden} forbidden")
        parts.append(f"eigenvalues in [{number(self.alpha, 4)}, {number(self.beta, 4)}]")
        if self.samples is not None:
            parts.append(f"{self.samples} samples")
        return ", ".join(parts)

    def names_of(self, i: int, j: int) -> tuple[str, str]:
        """Return what two variables are called: their numbers where they have no names."""
        return (str(i), str(j)) if self.names is None else (self.names[i], self.names[j])

    def _alone(self) -> list[PrecisionFacts]:
        return [replace(one, others=None) for one in self.matrices]

    def differences(self, other: PrecisionFacts) -> list[tuple[str, Any, Any]]:
        """Return ``(line, mine, theirs)`` for every entry in which two problems differ."""
        found = []
        for field in fields(self):
            one, two = getattr(self, field.name), getattr(other, field.name)
            if field.name == "numbers" and one is None:
                continue
            if field.name == "others" and one and two and len(one) == len(two):
                pairs = enumerate(zip(one, two, strict=True))
                found += [
                    (f"problem.others[{g}]{line.removeprefix('problem')}", *values)
                    for g, (mine, theirs) in pairs
                    for line, *values in mine.differences(theirs)
                ]
                continue
            if field.name == "probes":
                # In units of the standard deviations: sizes are those of a correlation matrix.
                size = max(1.0, max(map(abs, two), default=0.0))
                same = len(one) == len(two) and all(
                    abs(a - b) <= _SAME * size for a, b in zip(one, two, strict=True)
                )
            elif isinstance(one, float) and isinstance(two, float):
                near = abs(one - two) <= _SAME * max(abs(one), abs(two))
                same = one == two or (math.isfinite(one) and math.isfinite(two) and near)
            else:
                same = one == two
            if not same:
                found.append((f"problem.{field.name}", one, two))
        return found


@final
@dataclass(frozen=True, slots=True)
class Edge:
    """An edge of the graph, with the names of its ends."""

    one: int
    other: int
    names: tuple[str, ...]
    partial_correlation: float
    others: tuple[float, ...] | None = None
    """The partial correlations in further matrices."""

    NEWER: ClassVar[tuple[str, ...]] = ("others",)

    @property
    def correlations(self) -> tuple[float, ...]:
        """Return the partial correlation in each matrix."""
        return (self.partial_correlation, *(self.others or ()))


@final
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PrecisionCertificate(SearchedCertificate):
    """What is proved about a sparse precision matrix, with everything needed to check it again.

    In units of the objective. ``bound`` is not above the objective of any matrix with at most
    ``k`` edges within the eigenvalue bounds.
    """

    FORMAT: ClassVar[str] = "sparsemodel-precision-certificate"
    LINES: ClassVar[tuple[str, ...]] = (
        *("claim", "value", "upper", "bound", "gap", "nats_per_sample", "trivial_bound"),
        *("restricted_bound", "null_value", "method", "active", "assumptions", "edges"),
        *("problem", "witness", "proof", "writer"),
    )
    WRITER: ClassVar[tuple[str, ...]] = (
        *("backend", "target", "search", "seconds", "created", "versions"),
    )
    NEWER: ClassVar[tuple[str, ...]] = ("proof", "search")
    MEASURE: ClassVar[str] = "what edges can explain at most"
    WITHOUT: ClassVar[str] = "without edges"

    trivial_bound: float
    """The same bound for matrices with any number of edges."""
    restricted_bound: float
    """No matrix on the same support lies below it."""
    method: str
    """Where ``bound`` came from."""
    active: tuple[str, ...]
    """Eigenvalue bounds that hold with equality."""
    edges: tuple[Edge, ...]
    problem: PrecisionFacts
    witness: PrecisionWitness
    """Its ``x`` are the entries on and above the diagonal, in the order of the form."""

    @property
    def search(self) -> Any:
        """Return what the writer says of its search over edges; None where there was none."""
        return None if self.proof is None else self.proof.get("summary", {})

    @property
    def trivial_gap(self) -> float:
        """Return the gap to the trivial bound, which needs no certificate."""
        return gap_of(self.upper, self.trivial_bound)

    @property
    def restricted_gap(self) -> float:
        """Return how far the matrix may be from the best one on its own support."""
        return gap_of(self.upper, self.restricted_bound)

    @property
    def weight(self) -> float:
        """Return the constant in front of the likelihood."""
        return math.fsum(one.weight for one in self.problem.matrices)

    @property
    def nats_per_sample(self) -> float:
        """Return the gap in log-likelihood per sample: half of the unweighted objective."""
        return 0.5 * self.gap / self.weight

    @property
    def open_share(self) -> float:
        """Return the gap as a share of what edges could explain at most, ``null_value - bound``."""
        share = open_share(
            upper=self.upper, bound=self.bound, null_value=self.null_value, weight=self.weight
        )
        return min(1.0, share)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Return the edges as pairs of variables."""
        return tuple((edge.one, edge.other) for edge in self.edges)

    @property
    def correlations(self) -> tuple[float, ...]:
        """Return the partial correlations of the edges, in the first matrix."""
        return tuple(edge.partial_correlation for edge in self.edges)

    def misfit(self) -> str:
        """Return how the lines of a file contradict each other; empty where they agree."""
        p = self.problem
        m = len(p.matrices)
        if any(not one.weight > 0.0 or one.order < 1 for one in p.matrices):
            return "line 'problem' describes no precision-matrix problem."
        if p.names is not None and len(p.names) != p.order:
            return f"line 'problem.names' must hold {p.order} names."
        for i, edge in enumerate(self.edges):
            if not 0 <= edge.one < edge.other < p.order:
                return f"line 'edges[{i}]' names a variable that is not there."
            if edge.names != p.names_of(edge.one, edge.other):
                return f"line 'edges[{i}].names' says {edge.names}, and 'problem' another."
            if len(edge.correlations) != m:
                return f"line 'edges[{i}].others' does not fit {m} matrices."
        w = self.witness
        arrays: dict[str, FloatArray | None] = {"final": w.final, "restricted": w.restricted}
        arrays |= {f"enclosing[{i}]": U for i, U in enumerate(w.enclosing)}
        for line, array in arrays.items():
            shaped = self.x.ndim == 1 if m == 1 else self.x.shape[1:] == (m,)
            if not shaped or (array is not None and array.shape != self.x.shape):
                return f"line 'witness.{line}' does not fit a matrix with entries {self.x.shape}."
        return ""

    @rejects_unknown_arguments
    def title(self) -> str:
        """Return the claim in a few words."""
        if self.claim is Claim.OPTIMAL:
            return "globally optimal"
        if self.claim is Claim.WITHIN_GAP:
            return f"at most {percent(self.open_share)} of what edges can explain is missing"
        if self.claim is Claim.STATIONARY:
            several = self.problem.others is not None
            return (
                "the best matrices with these edges"
                if several
                else "the best matrix with these edges"
            )
        return "nothing is proved"

    @rejects_unknown_arguments
    def headline(self) -> str:
        """Return the claim in a sentence, with the gap where there is one."""
        text = self._headline()
        if self.problem.others is None:
            return text
        for one, several in _SEVERAL:
            text = text.replace(one, several)
        return text

    def _headline(self) -> str:
        if not math.isfinite(self.bound):
            if self.claim is Claim.STATIONARY:
                return "The matrix is the best one with these edges; no bound on others is known."
            if self.claim is Claim.NONE:
                return "Nothing is proved about this matrix."
        return _SENTENCES[self.claim.value].format(nats=number(self.nats_per_sample, 3))

    def _numbers(self) -> list[tuple[str, str]]:
        value, bound = side_by_side(self.value, self.bound)
        rows = [
            ("objective", value),
            ("lower bound", bound if math.isfinite(self.bound) else "none"),
        ]
        if math.isfinite(self.gap):
            nats = f"{number(self.nats_per_sample, 3)} nats per sample"
            trivial = number(0.5 * self.trivial_gap / self.weight, 3)
            rows += [
                ("gap", f"{number(self.gap, 3)}, {nats}"),
                ("gap to any matrix", f"{trivial} nats per sample, if all edges were allowed"),
                ("share of the gap", f"{percent(self.open_share)} of {self.MEASURE}"),
            ]
        within = number(0.5 * self.restricted_gap / self.weight, 3)
        return [
            *rows,
            ("objective without edges", number(self.null_value, 8)),
            ("on this support", f"within {within} nats"),
            ("bound from", self.method),
            *(("active", text) for text in self.active),
        ]

    def _sizes(self) -> tuple[str, Bars]:
        rows = [
            Bar(" -- ".join(edge.names), max(r, key=abs), ", ".join(f"{v:+.4f}" for v in r))
            for edge in self.edges
            for r in [edge.correlations]
        ]
        rows.sort(key=lambda bar: (-abs(bar.size), bar.name))
        header = ("edge", "value")
        return "Partial correlations", Bars(rows, header, "There are no edges.", scale=1.0)


def open_share(*, upper: float, bound: float, null_value: float, weight: float) -> float:
    """Return the gap relative to what edges can explain at most; infinite without a bound.

    A likelihood has no zero, so gaps are compared with the objective without edges less the
    bound. That share does not depend on the units of the data. A gap of ``ROUNDING_NATS`` is none.
    """
    gap, reach = gap_of(upper, bound), null_value - bound
    if not (math.isfinite(gap) and math.isfinite(reach)):
        return math.inf
    if 0.5 * gap / weight <= ROUNDING_NATS:
        return 0.0
    return gap / reach if reach > 0.0 else 1.0


def precision_claims(
    *, upper: float, bound: float, restricted_bound: float, null_value: float, weight: float
) -> set[Claim]:
    """Return every claim that the numbers of a feasible matrix support."""
    share = open_share(upper=upper, bound=bound, null_value=null_value, weight=weight)
    within = 0.5 * gap_of(upper, restricted_bound) / weight
    finite = math.isfinite(upper)
    return supported(finite, share, False, within <= STATIONARY_NATS)


def decide_precision(
    *, upper: float, bound: float, restricted_bound: float, null_value: float, weight: float
) -> Claim:
    """Return the strongest claim that the numbers of a feasible matrix support."""
    found = precision_claims(
        upper=upper,
        bound=bound,
        restricted_bound=restricted_bound,
        null_value=null_value,
        weight=weight,
    )
    return max(found, key=list(Claim).index)
