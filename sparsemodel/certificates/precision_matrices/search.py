"""Certify a sparse precision matrix: gap on its support, and to the best support there may be."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from sparsemodel.certificates.certify import versions
from sparsemodel.certificates.precision_matrices.certificate_of_precision import (
    PrecisionCertificate,
    PrecisionFacts,
    PrecisionWitness,
    decide_precision,
)
from sparsemodel.certificates.precision_matrices.spectral_bounds import (
    Enclosure,
    dual_value,
    enclose,
)
from sparsemodel.certificates.statements.claims import OPTIMAL_GAP, Assumption
from sparsemodel.interfaces import DataError, FloatArray, InfeasibleError, IntArray
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.budget import Budget, eigenvalue_cost, eigenvector_cost, inverse_cost
from sparsemodel.numerics.precision import (
    Factor,
    Pattern,
    active_bounds,
    eigenvalues,
    factorise,
    minimise_admm,
    rounding,
    spectral_infimum,
    within_bounds,
)

_U = 2.0**-53

_RATE = 5e8
"""Cubes of the order that eigendecompositions get through in a second, on the low side."""

TRIVIAL = "the unconstrained likelihood"
RELAXED = "the perspective relaxation of the strong convexity"


class Evaluated(NamedTuple):
    """A feasible matrix with its objective in nats (no weight, no constant)."""

    factor: Factor
    support: IntArray
    value: float
    upper: float


def certify_precision(
    form: SparsePrecision,
    x: FloatArray,
    *,
    time_limit: float = 5.0,
    target: float = OPTIMAL_GAP,
    backend: str = "",
) -> PrecisionCertificate:
    """Return what can be proved about the entries ``x`` as a solution of ``form``.

    Parameters
    ----------
    form
        The canonical problem.
    x
        Entries on and above the diagonal, ``form.entries(Omega)``.
    time_limit
        Seconds for the search of the bound; the free bounds are always computed. No eigenvalue
        problem is begun that would not end in time.
    target
        Share of what edges can explain that is good enough: the search for a better bound ends
        there.
    backend
        Who found ``x``, for the report.

    Raises
    ------
    DataError
        When ``x`` does not fit the form, or ``target`` makes no sense.
    InfeasibleError
        When the matrix has too many edges, or is not within the eigenvalue bounds.

    Notes
    -----
    One eigendecomposition per evaluation of the bound, O(p^3).
    """
    began = time.perf_counter()
    left = Budget(began + time_limit)
    x = np.asarray(x, dtype=np.float64)
    if not (math.isfinite(target) and target >= 0.0):
        raise DataError(f"target must be a number of at least 0, not {target!r}.")
    at = evaluate_point(form, x)
    trivial = trivial_nats(form)
    bound, method, witness = trivial, TRIVIAL, PrecisionWitness()
    if math.isfinite(trivial):
        found, searched = _search(form, x, at, left, target)
        if found > bound:
            bound, method, witness = found, RELAXED, searched
    active = active_bounds(at.factor, form.alpha, form.beta)
    restricted, dual = _restricted(form, at, bool(active), left)
    restricted = max(restricted, bound)
    upper, lower = scaled(form, at.upper, 1.0), scaled(form, bound, -1.0)
    within = scaled(form, restricted, -1.0)
    pairs = tuple(form.edges(np.flatnonzero(x)))
    d = np.sqrt(np.diagonal(at.factor.omega))
    null = null_value(form)
    return PrecisionCertificate(
        claim=decide_precision(
            upper=upper,
            bound=lower,
            restricted_bound=within,
            null_value=null,
            weight=form.weight,
        ),
        value=scaled(form, at.value),
        upper=upper,
        bound=lower,
        trivial_bound=scaled(form, trivial, -1.0),
        restricted_bound=within,
        null_value=null,
        target=target,
        method=method,
        edges=len(pairs),
        active=active,
        assumptions=precision_assumptions(form),
        problem=PrecisionFacts.of(form),
        x=x,
        pairs=pairs,
        correlations=tuple(float(-at.factor.omega[i, j] / (d[i] * d[j])) for i, j in pairs),
        witness=PrecisionWitness(witness.enclosing, witness.final, dual),
        backend=backend,
        seconds=time.perf_counter() - began,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )


def trivial_bound(form: SparsePrecision) -> float:
    """Return a lower bound on the objective at any number of edges. One eigendecomposition."""
    return scaled(form, trivial_nats(form), -1.0)


def trivial_nats(form: SparsePrecision) -> float:
    """Return the same in nats, without weight and constant."""
    return dual_value(form, np.zeros(form.shape), 0.0, whole_box(form))[0]


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


def precision_assumptions(form: SparsePrecision) -> tuple[Assumption, ...]:
    """Return what the numbers rest on, each with whether it was checked."""
    out = [
        Assumption("the covariance matrix is symmetric with a positive diagonal", True),
        Assumption("the matrix is positive definite, within the bounds, with k edges", True),
    ]
    low, high = f"{form.alpha:.4g}", f"{form.beta:.4g}"
    if form.alpha > 0.0 or math.isfinite(form.beta):
        out.append(
            Assumption(f"only matrices with eigenvalues in [{low}, {high}] are compared with", True)
        )
    if math.isfinite(form.beta) and not math.isfinite(
        dual_value(form, np.zeros(form.shape), 0.0, _open(whole_box(form)))[0]
    ):
        out.append(
            Assumption(
                f"the upper eigenvalue bound {high}; without one the likelihood is unbounded",
                False,
            )
        )
    return tuple(out)


def witnessed_bound(form: SparsePrecision, upper: float, witness: PrecisionWitness) -> float:
    """Return the bound in nats that a witness proves, given an upper bound on the optimum.

    Whatever the witness holds, the number is valid: it only decides how good it is.
    """
    if witness.final is None:
        return -math.inf
    diagonal = form.rows == form.cols
    box = enclose(form, np.zeros(form.shape), upper, whole_box(form))
    for U in witness.enclosing:
        box = enclose(form, np.where(diagonal, 0.0, U), upper, box)
    return dual_value(form, witness.final, box.modulus, box)[0]


def restricted_nats(form: SparsePrecision, at: Evaluated, dual: FloatArray | None) -> float:
    """Return a bound in nats over all matrices on the support of a point.

    A symmetric matrix that equals ``S`` on the support is dual feasible; off the support it is
    that of ``dual``, or the inverse of the point's matrix.
    """
    if dual is None:
        B = at.factor.inverse.copy()
    else:
        B = form.matrix(dual)
    rows, cols = form.rows[at.support], form.cols[at.support]
    B[rows, cols] = B[cols, rows] = form.covariance[rows, cols]
    best = spectral_infimum(eigenvalues(B) - rounding(B), form.alpha, form.beta)
    return best - 64.0 * _U * (abs(best) + form.order)


def evaluate_point(form: SparsePrecision, x: FloatArray) -> Evaluated:
    """Return a point's matrix with its objective, checked to be feasible.

    Raises
    ------
    DataError, InfeasibleError
        When it is not a matrix of the form, or not a feasible one.
    """
    factor = _feasible(form, x)
    support = np.flatnonzero((x != 0.0) | ~form.sparsity.counted)
    value = float(np.vdot(form.covariance, factor.omega)) - factor.logdet
    return Evaluated(factor, support, value, value + _value_error(form, factor))


def _feasible(form: SparsePrecision, x: FloatArray) -> Factor:
    if x.shape != form.shape or not np.all(np.isfinite(x)):
        raise DataError(
            f"The point must hold {form.shape[0]} finite entries of the matrix, not {x.shape}."
        )
    count = form.sparsity.count(x)
    if count > form.sparsity.budget:
        raise InfeasibleError(f"The matrix has {count} edges, and {form.sparsity.k} are allowed.")
    factor = factorise(form.matrix(x))
    if factor is None:
        raise InfeasibleError("The matrix is not positive definite.")
    if not within_bounds(factor, form.alpha, form.beta):
        sigma = eigenvalues(factor.omega)
        raise InfeasibleError(
            f"The eigenvalues of the matrix lie in [{sigma[0]:.6g}, {sigma[-1]:.6g}], outside of "
            f"[{form.alpha:.6g}, {form.beta:.6g}]."
        )
    return factor


def _value_error(form: SparsePrecision, factor: Factor) -> float:
    """Bound the rounding error of the objective.

    A Cholesky factor is exact for a matrix that differs by at most ``gamma_{p+1} |L| |L|^T``
    (Higham 2002, Theorem 10.3); the log-determinant moves by that times the inverse.
    """
    p = form.order
    gamma = 4.0 * (p + 1) * _U
    trace = float(np.trace(factor.omega))
    logdet = gamma * trace * float(np.linalg.norm(factor.inverse)) * 2.0
    sizes = float(np.abs(form.covariance * factor.omega).sum()) + abs(factor.logdet)
    return logdet + 4.0 * (p * p + 2) * _U * sizes / p + 8.0 * p * _U * sizes


def _search(
    form: SparsePrecision, x: FloatArray, at: Evaluated, left: Budget, target: float
) -> tuple[float, PrecisionWitness]:
    """Return the best bound found by ascent in ``U`` and shrinking enclosures, and its witness."""
    best, witness = -np.inf, PrecisionWitness()
    enclosing_cost = eigenvalue_cost(form.order) + inverse_cost(form.order)
    evaluation = eigenvector_cost(form.order)
    if not left.fits(enclosing_cost, evaluation):
        return best, witness
    diagonal = form.rows == form.cols
    null = null_nats(form)
    slack = form.entries(at.factor.inverse) - form.entries(form.covariance)
    box = enclose(form, np.zeros_like(x), at.upper, whole_box(form))
    enclosing: list[FloatArray] = []
    for _ in range(4):
        mu = box.modulus
        # At the optimum of the relaxation U = W - S + mu Omega, were the gap zero.
        begin = slack + mu * x
        value, U = _ascend(form, begin, mu, box, left)
        improved = value > best + 1e-3 * max(at.upper - best, 0.0)
        if value > best:
            best, witness = value, PrecisionWitness(tuple(enclosing), U)
        # Half of it, as the bound is rounded down afterwards.
        closed = at.upper - best <= max(1e-9 * abs(at.upper), 0.5 * target * (null - best))
        if not improved or closed or left.over() or not left.fits(enclosing_cost, evaluation):
            break
        enclosing.append(np.where(diagonal, 0.0, U))
        box = enclose(form, enclosing[-1], at.upper, box)
    return best, witness


def _ascend(
    form: SparsePrecision, begin: FloatArray, mu: float, box: Enclosure, left: Budget
) -> tuple[float, FloatArray]:
    """Maximise the bound by L-BFGS, keeping the best point met (it need not be smooth)."""
    from scipy.optimize import minimize

    best: list[tuple[float, FloatArray]] = [(-np.inf, begin)]

    class _Late(Exception):
        pass

    def negative(U: FloatArray) -> tuple[float, FloatArray]:
        value, ascent = dual_value(form, U, mu, box)
        if value > best[0][0]:
            best[0] = (value, U.copy())
        if left.over() or not left.fits(eigenvector_cost(form.order)):
            raise _Late
        if not math.isfinite(value):
            return 1e300, np.zeros_like(U)
        return -value, -ascent

    try:
        negative(np.zeros_like(begin))
        negative(begin)
        for _ in range(3):  # restarts get over the kinks of the sum of the k largest
            before = best[0][0]
            options = {"maxiter": 150, "maxfun": 300}
            minimize(negative, best[0][1], jac=True, method="L-BFGS-B", options=options)
            if best[0][0] <= before + 1e-6 * (1.0 + abs(before)):
                break
    except _Late:
        pass
    return best[0]


def _restricted(
    form: SparsePrecision, at: Evaluated, bounded: bool, left: Budget
) -> tuple[float, FloatArray | None]:
    """Return the best bound over the support, and its dual point where that is not the inverse."""
    best = restricted_nats(form, at, None)
    # An eigendecomposition an iteration, about 20 p^3 operations: as many as the time allows.
    iterations = int(min(500.0, max(left.left, 0.0) * _RATE / form.order**3))
    if not (bounded and math.isfinite(form.beta) and iterations >= 20):
        return best, None
    pattern = Pattern(form.order, form.rows[at.support], form.cols[at.support])
    result = minimise_admm(
        form.covariance,
        pattern,
        form.alpha,
        form.beta,
        start=at.factor.omega,
        max_iter=iterations,
    )
    dual = form.entries(result.dual)
    found = restricted_nats(form, at, dual)
    return (found, dual) if found > best else (best, None)


def _open(box: Enclosure) -> Enclosure:
    return Enclosure(box.alpha, np.inf, np.full_like(box.entries, np.inf))


def scaled(form: SparsePrecision, value: float, direction: float = 0.0) -> float:
    """Return ``weight * value + constant``, rounded in ``direction``."""
    if not math.isfinite(value):
        return value
    out = form.weight * value + form.constant
    error = 4.0 * _U * (abs(form.weight * value) + abs(form.constant))
    return out + direction * error


__all__ = [
    "RELAXED",
    "TRIVIAL",
    "Evaluated",
    "PrecisionCertificate",
    "certify_precision",
    "evaluate_point",
    "null_value",
    "precision_assumptions",
    "restricted_nats",
    "scaled",
    "trivial_bound",
    "trivial_nats",
    "whole_box",
    "witnessed_bound",
]
