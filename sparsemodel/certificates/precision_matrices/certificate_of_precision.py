"""The certificate of a sparse precision matrix: what is proved, and the numbers that prove it."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, final

import numpy as np

from sparsemodel.certificates.statements.certificate import VERSION
from sparsemodel.certificates.statements.claims import Assumption, Claim, gap_of, supported
from sparsemodel.certificates.statements.fingerprint import array_hash
from sparsemodel.interfaces import FloatArray
from sparsemodel.interfaces.precision import SparsePrecision

STATIONARY_NATS = 1e-6
"""Nats per sample up to which a matrix is called the best on its own support."""

ROUNDING_NATS = 1e-9
"""Nats per sample that are rounding whatever the edges explain: globally optimal, too."""

PRECISION_WRITERS_OWN = ("who found the matrix", "the gap asked for", "time", "versions")
"""What a certificate says of its writer: no data decide it, and no verification compares it."""

_PROBES = 4
_SAME = 1e-8


@final
@dataclass(frozen=True, slots=True)
class PrecisionFacts:
    """Everything that identifies a precision-matrix problem, without its covariance."""

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

    @classmethod
    def of(cls, form: SparsePrecision) -> PrecisionFacts:
        """Describe a form. O(p^2)."""
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
        )

    def differences(self, other: PrecisionFacts) -> list[tuple[str, Any, Any]]:
        """Return ``(line, mine, theirs)`` for every entry in which two problems differ."""
        found = []
        for field in fields(self):
            one, two = getattr(self, field.name), getattr(other, field.name)
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
@dataclass(frozen=True, slots=True, eq=False)
class PrecisionWitness:
    """Dual matrices, as vectors over the coordinates, from which the bounds are recomputed."""

    enclosing: tuple[FloatArray, ...] = ()
    """``U`` of each enclosure of the matrices that are at least as good, one inside the other."""
    final: FloatArray | None = None
    """``U`` of the bound on the last enclosure; None where the trivial bound is the best."""
    restricted: FloatArray | None = None
    """A dual point for the support, off which it counts; None for the inverse of the matrix."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrecisionCertificate:
    """What is proved about a sparse precision matrix, with everything needed to check it again.

    In units of the objective. Values and bounds hold for the exact problem with the given float64
    data: rounding allowances are on the safe side in each.
    """

    claim: Claim
    value: float
    """The objective at the matrix."""
    upper: float
    """The same, rounded up."""
    bound: float
    """No matrix with at most ``k`` edges within the eigenvalue bounds lies below it."""
    trivial_bound: float
    """The same for matrices with any number of edges."""
    restricted_bound: float
    """No matrix on the same support lies below it."""
    null_value: float
    """The objective at the best matrix without edges."""
    target: float
    """Share of ``null_value - bound`` that was asked for."""
    method: str
    """Where ``bound`` came from."""
    edges: int
    active: tuple[str, ...]
    """Eigenvalue bounds that hold with equality."""
    assumptions: tuple[Assumption, ...]
    problem: PrecisionFacts
    x: FloatArray
    """Entries on and above the diagonal, in the order of the form."""
    pairs: tuple[tuple[int, int], ...]
    """The edges."""
    correlations: tuple[float, ...]
    """Their partial correlations."""
    witness: PrecisionWitness
    backend: str
    seconds: float
    created: str
    versions: dict[str, str]
    version: int = VERSION
    """Of the file that it was read from."""

    @property
    def gap(self) -> float:
        """Return how far the matrix may be from the best one, in objective units."""
        return gap_of(self.upper, self.bound)

    @property
    def trivial_gap(self) -> float:
        """Return the gap to the trivial bound, which any method's result has."""
        return gap_of(self.upper, self.trivial_bound)

    @property
    def restricted_gap(self) -> float:
        """Return how far the matrix may be from the best one on its own support."""
        return gap_of(self.upper, self.restricted_bound)

    @property
    def weight(self) -> float:
        """Return the constant in front of the likelihood."""
        return self.problem.weight

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

    def edge_names(self) -> list[tuple[str, str]]:
        """Return the edges as pairs of names, in the order of :attr:`pairs`."""
        names = self.problem.names
        if names is None:
            return [(str(i), str(j)) for i, j in self.pairs]
        return [(names[i], names[j]) for i, j in self.pairs]

    def __str__(self) -> str:
        from sparsemodel.reporting.documents.precision_report import precision_text

        return precision_text(self)

    def _repr_html_(self) -> str:
        from sparsemodel.reporting.documents.precision_report import precision_panel

        return precision_panel(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain numbers, strings, lists and dictionaries."""
        from sparsemodel.certificates.precision_matrices.precision_file import to_dict

        return to_dict(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the certificate and return where; the ending of the name says how.

        ``.json`` holds everything and can be loaded and verified again; ``.html``, ``.md`` and
        ``.txt`` are reports for people. The file appears whole or not at all.

        Raises
        ------
        CertificateError
            When the ending is none of these.
        """
        from sparsemodel.certificates.files.saving import save
        from sparsemodel.certificates.precision_matrices.precision_file import dumps
        from sparsemodel.reporting.documents.precision_report import (
            precision_html,
            precision_markdown,
            precision_text,
        )

        writers = {
            ".json": dumps,
            ".html": precision_html,
            ".htm": precision_html,
            ".md": precision_markdown,
            ".txt": precision_text,
        }
        return save(self, path, writers)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> PrecisionCertificate:
        """Return the certificate in a ``.json`` file; nothing in it is believed until verified.

        Raises
        ------
        CertificateError
            When the file is not a certificate of a precision matrix; the message names the line.
        """
        from sparsemodel.certificates.precision_matrices.precision_file import load

        return load(path)


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


__all__ = [
    "PRECISION_WRITERS_OWN",
    "ROUNDING_NATS",
    "STATIONARY_NATS",
    "PrecisionCertificate",
    "PrecisionFacts",
    "PrecisionWitness",
    "decide_precision",
    "open_share",
    "precision_claims",
]
