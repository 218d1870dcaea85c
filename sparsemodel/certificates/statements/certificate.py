"""The certificate: a checkable statement of how good a point is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.statements.claims import (
    Assumption,
    Claim,
    gap_of,
    relative_gap_of,
)
from sparsemodel.certificates.statements.problem_facts import ProblemFacts
from sparsemodel.certificates.statements.stationarity import Stationarity
from sparsemodel.interfaces import FloatArray

VERSION = 2
"""Of the file format; earlier ones are read."""

WRITERS_OWN = (
    "who found the point",
    "how the dual point was found",
    "the gap asked for",
    "progress",
    "statistics of the search",
    "time",
    "versions",
)
"""What a certificate says of its writer: no data decide it, and no verification compares it."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """The numbers that prove the bound: whoever has the data can recompute it from them."""

    duals: tuple[FloatArray | None, ...]
    """``a`` for each term; None for a term bounded by its tangent at ``at``."""
    at: FloatArray | None = None
    """Where losses are linearised, when the bound needs a point."""
    extraction: FloatArray | None = None
    """Diagonal curvature taken out of squared losses."""
    bounds: CoefficientBounds | None = None
    """Bounds on the coefficients that the data prove; the dual point is then one of the problem
    with these as a box, whose optimal value is the same."""


@final
@dataclass(frozen=True, slots=True)
class Progress:
    """One moment of the search, for the picture of the gap against time."""

    seconds: float
    value: float
    """Best objective so far; infinite before the first feasible point."""
    bound: float
    """Best bound so far; ``-inf`` before the first."""
    phase: str


@final
@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """What is proved about a point, with everything needed to check it again.

    ``value`` and ``bound`` are what they say for the *exact* problem with the given float64 data:
    ``bound`` has its rounding allowance subtracted, and the gap is measured from ``upper``, the
    objective with its own allowance added.
    """

    claim: Claim
    value: float
    """``P``, the objective at the point."""
    upper: float
    """``P`` rounded up: not below the exact objective."""
    bound: float
    """``D``, not above the objective of any feasible point; ``-inf`` when none is known."""
    allowance: float
    """What both numbers gave away for rounding."""
    null_value: float
    """The objective at zero."""
    constant: float
    """What the objective adds whatever the coefficients are."""
    target: float
    """Relative gap that was asked for."""
    bound_method: str
    bound_source: str
    """How the dual point was found."""
    bound_reason: str
    """Why there is no bound; empty when there is."""
    assumptions: tuple[Assumption, ...]
    stationarity: Stationarity
    violations: tuple[str, ...]
    """Constraints the point breaks; empty for a feasible point."""
    x: FloatArray
    support: tuple[int, ...]
    """Nonzero counted coordinates of the canonical problem, sorted."""
    names: dict[int, str]
    """Names of the nonzero and the free coordinates."""
    problem: ProblemFacts
    witness: Witness
    backend: str
    progress: tuple[Progress, ...]
    seconds: float
    """Time the certification took."""
    created: str
    """Date and time, ISO 8601, UTC."""
    versions: dict[str, str]
    proof: dict[str, Any] | None = None
    """Record of a branch-and-bound proof; None when there was none."""
    version: int = VERSION
    """Of the file that it was read from."""

    @property
    def gap(self) -> float:
        """Return ``P - D``, rounded up; infinite without a bound."""
        return gap_of(self.upper, self.bound)

    @property
    def relative_gap(self) -> float:
        """Return the gap divided by the larger of ``|P|`` and ``|D|``.

        A constant in the objective is left out of both where that makes them smaller.
        """
        return relative_gap_of(self.upper, self.bound, self.constant)

    @property
    def coefficients(self) -> dict[str, float | list[float]]:
        """Return the nonzero coefficients and the free ones by name."""
        out: dict[str, float | list[float]] = {}
        for j, name in sorted(self.names.items()):
            entry = self.x[j]
            out[name] = float(entry) if self.x.ndim == 1 else [float(v) for v in entry]
        return out

    def __str__(self) -> str:
        from sparsemodel.reporting.documents.text import certificate_text

        return certificate_text(self)

    def _repr_html_(self) -> str:
        from sparsemodel.reporting.documents.notebook import certificate_panel

        return certificate_panel(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain numbers, strings, lists and dictionaries."""
        from sparsemodel.certificates.files.regression_file import to_dict

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
        from sparsemodel.certificates.files.regression_file import dumps
        from sparsemodel.certificates.files.saving import save
        from sparsemodel.reporting.documents.html import certificate_html
        from sparsemodel.reporting.documents.markdown import certificate_markdown
        from sparsemodel.reporting.documents.text import certificate_text

        writers = {
            ".json": dumps,
            ".html": certificate_html,
            ".htm": certificate_html,
            ".md": certificate_markdown,
            ".txt": certificate_text,
        }
        return save(self, path, writers)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Certificate:
        """Return the certificate in a ``.json`` file; nothing in it is believed until verified.

        Raises
        ------
        CertificateError
            When the file is not a certificate; the message names the line.
        """
        from sparsemodel.certificates.files.regression_file import load

        return load(path)


__all__ = ["VERSION", "WRITERS_OWN", "Certificate", "Progress", "Witness"]
