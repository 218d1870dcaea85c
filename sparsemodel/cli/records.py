"""Results as plain data, for ``--json``, for tables and for reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from sparsemodel.cli.model import Declared
from sparsemodel.cli.printing import as_csv, cell
from sparsemodel.cli.reading import Table


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


def certificate_record(certificate: Any, share: str = "relative_gap") -> dict[str, Any]:
    """Return the statement of a certificate as JSON-ready values; ``share`` rates the gap."""
    return {
        "claim": certificate.claim.value,
        "value": finite(certificate.value),
        "bound": finite(certificate.bound),
        "gap": finite(certificate.gap),
        share: finite(getattr(certificate, share)),
        "assumptions": [str(a) for a in certificate.assumptions],
    }


def coefficient_csv(declared: Declared, solution: Any) -> str:
    """Return the nonzero coefficients as CSV: a name and a number (one a class) on each row."""
    several = len(declared.classes) > 2 or any(np.ndim(v) for v in solution.coefficients.values())
    classes = map(cell, declared.classes) if several else ["coefficient"]
    rows = [
        [cell(name), *(repr(float(v)) for v in np.atleast_1d(value))]
        for name, value in solution.coefficients.items()
    ]
    return as_csv([["name", *classes], *rows])


MODEL_FORMAT = "sparsemodel model 1"
"""What files of models say first."""


def model_record(declared: Declared, table: Table, solution: Any) -> dict[str, Any]:
    """Return what predicts: the nonzero coefficients, and the columns of the file they need."""
    w = np.asarray(solution.values["w"])
    used = np.flatnonzero(w if w.ndim == 1 else np.any(w != 0.0, axis=1))
    columns = None
    if table.encoding is not None:
        features = np.array(table.encoding.features)
        wanted = set(features[used].tolist()) or {features[0]}  # one column tells the rows
        used = np.flatnonzero([name in wanted for name in features.tolist()])
        columns = [asdict(column) for column in table.encoding.columns if column.name in wanted]
    constant = np.asarray(solution.values.get("intercept", 0.0))
    return {
        "format": MODEL_FORMAT,
        "loss": declared.loss,
        "classes": list(declared.classes),
        "columns": columns,
        "width": int(w.shape[0]),
        "indices": used.tolist(),
        "coefficients": w[used].tolist(),
        "constant": constant.tolist(),
    }


def finite(value: float) -> float | None:
    """Return a number that JSON knows, or None."""
    return float(value) if math.isfinite(value) else None
