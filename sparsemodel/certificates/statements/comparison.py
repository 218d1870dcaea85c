"""How a line of a certificate is compared with what the data say, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.certificates.statements.claims import Claim
from sparsemodel.interfaces import CertificateError


@final
@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked: lines of the file with a word on each."""

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


__all__ = ["Verification", "require", "short"]
