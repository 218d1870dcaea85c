"""What is known of a precision matrix's objective without a search, and how it is scaled."""

from __future__ import annotations

import math

import numpy as np

from sparsemodel.certificates.precision_matrices.spectral_bounds import Enclosure, unconstrained
from sparsemodel.certificates.statements.claims import Assumption
from sparsemodel.interfaces import FloatArray
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.precision import eigenvalues

_U = 2.0**-53


def trivial_bound(form: SparsePrecision) -> float:
    """Return a lower bound on the objective at any number of edges. One set of eigenvalues."""
    return scaled(form, trivial_nats(form), -1.0)


def trivial_nats(form: SparsePrecision, sigma: FloatArray | None = None) -> float:
    """Return the same in nats, without weight and constant; ``sigma`` are the eigenvalues of S."""
    sigma = eigenvalues(form.covariance) if sigma is None else sigma
    return unconstrained(form.covariance, sigma, form.alpha, form.beta)


def whole_box(form: SparsePrecision) -> Enclosure:
    """Return the set of all matrices within the eigenvalue bounds."""
    half = 0.5 * (form.beta - form.alpha)
    entries = np.where(form.rows == form.cols, form.beta, half)
    return Enclosure(form.alpha, form.beta, entries)


def null_value(form: SparsePrecision) -> float:
    """Return the objective of the best diagonal matrix within the bounds."""
    return scaled(form, null_nats(form))


def null_nats(form: SparsePrecision) -> float:
    """Return the same in nats, without weight and constant."""
    variances = np.diagonal(form.covariance)
    d = np.clip(1.0 / variances, form.alpha, form.beta)
    return math.fsum(variances * d - np.log(d))


def precision_assumptions(
    form: SparsePrecision, sigma: FloatArray | None
) -> tuple[Assumption, ...]:
    """Return what the numbers rest on, each with whether it was checked.

    ``sigma`` are the eigenvalues of the covariance; None where no bound was computed from them.
    """
    out = [
        Assumption("the covariance matrix is symmetric with a positive diagonal", True),
        Assumption("the matrix is positive definite, within the bounds, with k edges", True),
    ]
    low, high = f"{form.alpha:.4g}", f"{form.beta:.4g}"
    if form.alpha > 0.0 or math.isfinite(form.beta):
        out.append(
            Assumption(f"only matrices with eigenvalues in [{low}, {high}] are compared with", True)
        )
    if (
        sigma is not None
        and math.isfinite(form.beta)
        and not math.isfinite(unconstrained(form.covariance, sigma, form.alpha, math.inf))
    ):
        out.append(
            Assumption(
                f"the upper eigenvalue bound {high}; without one the likelihood is unbounded",
                False,
            )
        )
    return tuple(out)


def scaled(form: SparsePrecision, value: float, direction: float = 0.0) -> float:
    """Return ``weight * value + constant``, rounded in ``direction``."""
    if not math.isfinite(value):
        return value
    out = form.weight * value + form.constant
    error = 4.0 * _U * (abs(form.weight * value) + abs(form.constant))
    return out + direction * error
