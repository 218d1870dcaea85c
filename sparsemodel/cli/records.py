"""Results as plain data, for ``--json``, for tables and for reports."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsemodel.cli.model import Declared
from sparsemodel.cli.printing import cell


def solution_record(solution: Any) -> dict[str, Any]:
    """Return a solution as JSON-ready values; what is infinite becomes null."""
    return {
        "status": solution.status,
        "stop": solution.stop.value,
        "backend": solution.backend,
        "objective": finite(solution.value),
        "bound": finite(solution.bound),
        "support": [str(name) for name in solution.support],
        "coefficients": plain_coefficients(solution.coefficients),
        "iterations": solution.iterations,
        "passes": finite(solution.passes),
        "seconds": {name: round(value, 6) for name, value in solution.timings.items()},
        "notes": list(solution.notes),
    }


def plain_coefficients(coefficients: Mapping[str, Any]) -> dict[str, float | list[float]]:
    """Return named coefficients as numbers, or lists of numbers for several outputs."""
    return {
        name: float(value) if np.ndim(value) == 0 else [float(v) for v in value]
        for name, value in coefficients.items()
    }


def certificate_record(certificate: Any) -> dict[str, Any]:
    """Return the statement of a certificate as JSON-ready values."""
    return {
        "claim": certificate.claim.value,
        "value": finite(certificate.value),
        "bound": finite(certificate.bound),
        "gap": finite(certificate.gap),
        "relative_gap": finite(certificate.relative_gap),
        "assumptions": [str(a) for a in certificate.assumptions],
    }


def coefficient_csv(declared: Declared, solution: Any) -> str:
    """Return the nonzero coefficients as CSV: a name and a number (one a class) on each row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    several = len(declared.classes) > 2 or any(np.ndim(v) for v in solution.coefficients.values())
    classes = map(cell, declared.classes) if several else ["coefficient"]
    writer.writerow(["name", *classes])
    for name, value in solution.coefficients.items():
        writer.writerow([cell(name), *(repr(float(v)) for v in np.atleast_1d(value))])
    return text.getvalue()


def finite(value: float) -> float | None:
    """Return a number that JSON knows, or None."""
    return float(value) if math.isfinite(value) else None


__all__ = [
    "certificate_record",
    "coefficient_csv",
    "finite",
    "plain_coefficients",
    "solution_record",
]
