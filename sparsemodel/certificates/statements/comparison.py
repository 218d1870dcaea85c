"""How a line of a certificate is compared with what the data say."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemodel.interfaces import CertificateError


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


__all__ = ["require", "short"]
