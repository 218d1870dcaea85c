"""How a line of a certificate is compared with what the data say, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.certificates.statements.claims import Claim
from sparsemodel.interfaces import CertificateError

_PARTS = {
    "design": "another matrix",
    "target": "another target",
    "weights": "other weights of the observations",
    "offset": "another offset",
    "loss": "another loss",
    "ridge": "another ridge",
    "k": "another limit k",
    "price": "another price of a coefficient",
    "box": "other bounds on the coefficients",
    "region": "other convex constraints",
    "structure": "other sets of what is counted, grouped or limited",
    "probes": "another covariance matrix",
    "alpha": "another lower bound on the eigenvalues",
    "beta": "another upper bound on the eigenvalues",
    "names": "other names of the variables",
}
"""What the lines are about, by their last word."""


@final
@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked: the lines of the file, each with a remark."""

    claim: Claim
    lines: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.lines)
        body = "\n".join(f"  {name:<{width}}  {note}" for name, note in self.lines)
        return f"verified: {self.claim.value}\n{body}"


def require(condition: bool, line: str, stored: Any, found: Any) -> None:
    """Raise an error that names the line, what it says and what was recomputed, unless it holds."""
    if not condition:
        raise CertificateError(
            f"line '{line}' does not hold: the certificate says {short(stored)}, "
            f"recomputed from the data it is {short(found)}."
        )


def short(value: Any) -> str:
    """Return a value as it appears in a message, cut to a line."""
    text = repr(value) if not isinstance(value, np.ndarray) else f"array {value.shape}"
    return text if len(text) <= 120 else text[:117] + "..."


def require_same(
    differences: Iterable[tuple[str, Any, Any]], parameters: Iterable[tuple[str, str]]
) -> None:
    """Raise an error at the first line in which two problems differ.

    Parameters
    ----------
    differences
        The line, and what the certificate and the problem at hand say there.
    parameters
        Of the problem at hand: what each decides, and its name with its present value.
    """
    for line, stored, found in differences:
        part = line.split(".")[-1].removesuffix("_smallest").removesuffix("_largest")
        numbers = f" ({short(stored)}, and {short(found)} here)" if _plain(stored, found) else ""
        deciding = "; ".join(words for place, words in parameters if place in ("", part))
        raise CertificateError(
            f"line '{line}' does not fit: the certificate was made for "
            f"{_PARTS.get(part, 'another problem')}{numbers}."
            + (f" Parameters that it depends on, as they are now: {deciding}." if deciding else "")
        )


def _plain(*values: Any) -> bool:
    """Return whether values say something to a reader, as fingerprints do not."""
    return all(isinstance(v, (bool, int, float, str)) and len(str(v)) <= 60 for v in values)
