"""What is known of a precision matrix's objective without a search, and how it is scaled."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U as _U
from sparsemodel.certificates.precision_matrices.spectral_bounds import (
    Enclosure,
    added,
    unconstrained,
)
from sparsemodel.certificates.statements.claims import Assumption
from sparsemodel.interfaces import FloatArray
from sparsemodel.interfaces.precision import AnyPrecision, SparsePrecision
from sparsemodel.numerics.precision import eigenvalues


def trivial_bound(form: AnyPrecision) -> float:
    """Return a lower bound on the objective at any number of edges. The eigenvalues of each S."""
    return scaled(form, trivial_nats(form), -1.0)


def trivial_nats(form: AnyPrecision, sigmas: Sequence[FloatArray] | None = None) -> float:
    """Return the same in nats, without weight and constant; ``sigmas`` are the eigenvalues."""
    if sigmas is None:
        sigmas = [eigenvalues(part.covariance) for part in form.parts]
    found = [
        unconstrained(part.covariance, sigma, part.alpha, part.beta)
        for part, sigma in zip(form.parts, sigmas, strict=True)
    ]
    return added(form.shares, found, -1.0)


def whole_box(form: SparsePrecision) -> Enclosure:
    """Return the set of all matrices within the eigenvalue bounds."""
    half = 0.5 * (form.beta - form.alpha)
    entries = np.where(form.rows == form.cols, form.beta, half)
    return Enclosure(form.alpha, form.beta, entries)


def null_value(form: AnyPrecision) -> float:
    """Return the objective of the best diagonal matrix within the bounds."""
    return scaled(form, null_nats(form))


def null_nats(form: AnyPrecision) -> float:
    """Return the same in nats, without weight and constant."""
    found = []
    for part in form.parts:
        variances = np.diagonal(part.covariance)
        d = np.clip(1.0 / variances, part.alpha, part.beta)
        found.append(math.fsum(variances * d - np.log(d)))
    return added(form.shares, found)


def precision_assumptions(
    form: AnyPrecision, sigmas: Sequence[FloatArray] | None
) -> tuple[Assumption, ...]:
    """Return what the numbers rest on, each with whether it was checked.

    ``sigmas`` are the eigenvalues of the covariances; None where no bound was computed from them.
    """
    out = [
        Assumption("the covariance matrix is symmetric with a positive diagonal", True),
        Assumption("the matrix is positive definite, within the bounds, with k edges", True),
    ]
    for g, part in enumerate(form.parts):
        low, high = f"{part.alpha:.4g}", f"{part.beta:.4g}"
        which = of_matrix(form, g)
        if part.alpha > 0.0 or math.isfinite(part.beta):
            text = f"{which}only matrices with eigenvalues in [{low}, {high}] are compared with"
            out.append(Assumption(text, True))
        if (
            sigmas is not None
            and math.isfinite(part.beta)
            and not math.isfinite(unconstrained(part.covariance, sigmas[g], part.alpha, math.inf))
        ):
            text = f"the upper eigenvalue bound {high}; without one the likelihood is unbounded"
            out.append(Assumption(which + text, False))
    return tuple(out)


def of_matrix(form: AnyPrecision, g: int) -> str:
    """Return which of several matrices is meant; nothing where there is one."""
    return "" if len(form.parts) == 1 else f"matrix {g + 1}: "


def scaled(form: AnyPrecision, value: float, direction: float = 0.0) -> float:
    """Return ``weight * value + constant``, rounded in ``direction``."""
    if not math.isfinite(value):
        return value
    out = form.weight * value + form.constant
    error = 4.0 * _U * (abs(form.weight * value) + abs(form.constant))
    return out + direction * error
