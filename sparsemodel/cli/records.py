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
from sparsemodel.cli.reading import Table
from sparsemodel.documents.numbers import number, percent

_IDENTITY = ("squared", "huber", "absolute", "quantile")
"""Losses whose prediction is a value of the target."""


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


def fit_of(declared: Declared, table: Table, loss: str, solution: Any) -> dict[str, str]:
    """Return measures of the fit by name: accuracy, or R2 and the size of the errors.

    They are about the rows that the model was fitted to; new rows are predicted worse. Losses
    whose prediction is the logarithm of a mean have none.
    """
    predicted = table.X @ np.asarray(solution.values["w"]) + solution.values.get("intercept", 0.0)
    target, weights = declared.target, table.weights
    if declared.classes:
        several = np.ndim(predicted) == 2
        guessed = np.argmax(predicted, axis=1) if several else (predicted > 0.0).astype(float)
        right = float(np.average(guessed == target, weights=weights))
        counts = np.bincount(target.astype(int), weights=weights)
        always = float(counts.max() / counts.sum())
        return {"accuracy": f"{percent(right)} (the largest class alone: {percent(always)})"}
    if loss not in _IDENTITY:
        return {}
    errors = np.asarray(target - predicted)
    spread = target - np.average(target, weights=weights)
    mean = float(np.average(np.square(errors), weights=weights))
    total = float(np.average(np.square(spread), weights=weights))
    found = {"R2": number(1.0 - mean / total, 3)} if total > 0.0 else {}
    return found | {"RMSE": number(mean**0.5, 3)}


def finite(value: float) -> float | None:
    """Return a number that JSON knows, or None."""
    return float(value) if math.isfinite(value) else None


__all__ = [
    "certificate_record",
    "coefficient_csv",
    "finite",
    "fit_of",
    "plain_coefficients",
    "solution_record",
]
