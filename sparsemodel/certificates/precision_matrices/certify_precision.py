"""Certify a sparse precision matrix: gap on its support, and to the best support there may be."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from sparsemodel.certificates.certify import versions
from sparsemodel.certificates.precision_matrices.ascent import LARGEST, Ascent, Task, rescaled
from sparsemodel.certificates.precision_matrices.certificate_of_precision import (
    Edge,
    PrecisionCertificate,
    PrecisionFacts,
    PrecisionWitness,
    decide_precision,
)
from sparsemodel.certificates.precision_matrices.spectral_bounds import dual_value
from sparsemodel.certificates.precision_matrices.trivial import (
    null_nats,
    null_value,
    precision_assumptions,
    scaled,
    trivial_nats,
)
from sparsemodel.certificates.statements.claims import OPTIMAL_GAP
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
from sparsemodel.threads import small_work

_U = 2.0**-53

_RATE = 5e8
"""Cubes of the order that eigendecompositions get through in a second, on the low side."""

TRIVIAL = "the unconstrained likelihood"
RELAXED = "the perspective relaxation of the strong convexity"
SEARCHED = "branch and bound over the edges"


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
    if not (math.isfinite(target) and target >= 0.0):
        raise DataError(f"target must be a number of at least 0, not {target!r}.")
    return certified_until(form, x, Budget(time.perf_counter() + time_limit), target, backend)


@small_work()
def certified_until(
    form: SparsePrecision, x: FloatArray, left: Budget, target: float, backend: str
) -> PrecisionCertificate:
    """Return the same within a budget, which then says whether an interrupt ended the search."""
    began, x = time.perf_counter(), np.asarray(x, dtype=np.float64)
    at = evaluate_point(form, x)
    # Without time for its eigenvalues nothing is proved, and that is what the certificate says.
    sigma = eigenvalues(form.covariance) if left.fits(eigenvalue_cost(form.order)) else None
    trivial = -math.inf if sigma is None else trivial_nats(form, sigma)
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
    problem = PrecisionFacts.of(form)
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
        active=active,
        assumptions=precision_assumptions(form, sigma),
        edges=tuple(
            Edge(i, j, problem.names_of(i, j), float(-at.factor.omega[i, j] / (d[i] * d[j])))
            for i, j in form.edges(np.flatnonzero(x))
        ),
        problem=problem,
        x=x,
        witness=replace(witness, restricted=dual),
        backend=backend,
        seconds=time.perf_counter() - began,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )


def proved_by_search(
    form: SparsePrecision, known: PrecisionCertificate, nats: float, proof: dict[str, Any]
) -> PrecisionCertificate:
    """Return a certificate with a search and the better of both bounds.

    A search that ended before it was the better one is kept, too: another may go on from it.
    """
    lower = max(min(scaled(form, nats, -1.0), known.upper), known.bound)
    within = max(known.restricted_bound, lower)
    claim = decide_precision(
        upper=known.upper,
        bound=lower,
        restricted_bound=within,
        null_value=known.null_value,
        weight=form.weight,
    )
    return replace(
        known, claim=claim, bound=lower, restricted_bound=within, method=SEARCHED, proof=proof
    )


def witnessed_bound(form: SparsePrecision, upper: float, witness: PrecisionWitness) -> float:
    """Return the bound in nats that a witness proves, given an upper bound on the optimum.

    Whatever the witness holds, the number is valid: it only decides how good it is.
    """
    if witness.final is None:
        return -math.inf
    task = rescaled(form, witness.above(upper), witness.units)
    box = task.enclosed()
    for U in witness.enclosing:
        box = task.enclosed(U, box)
    mu = box.modulus if witness.modulus is None else witness.modulus
    return task.in_nats(dual_value(task.form, witness.final, mu, box)[0])


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
    tasks = _in_units(form, at)
    if not left.fits(len(tasks) * enclosing_cost, evaluation):
        return best, witness
    null = null_nats(form)
    ascent = _started(tasks, form, x, at, left)
    enclosing: list[FloatArray] = []
    for _ in range(4):
        ascent.run()
        value = ascent.task.in_nats(ascent.best)
        improved = value > best + 1e-3 * max(at.upper - best, 0.0)
        if value > best:
            best = value
            witness = PrecisionWitness(
                tuple(enclosing), ascent.U, modulus=ascent.mu, units=ascent.task.units
            )
        # Half of it, as the bound is rounded down afterwards.
        closed = at.upper - best <= max(1e-9 * abs(at.upper), 0.5 * target * (null - best))
        if not improved or closed or left.over() or not left.fits(enclosing_cost, evaluation):
            break
        enclosing.append(np.where(form.rows == form.cols, 0.0, ascent.U))
        ascent.enter(ascent.task.enclosed(enclosing[-1], ascent.box))
    return best, witness


def _in_units(form: SparsePrecision, at: Evaluated) -> list[Task]:
    """Return the problem in the variables' own units, and in those that make them alike.

    Bounds on eigenvalues are about the variables' own units; the modulus is largest where they
    are all alike.
    """
    units = np.clip(np.frexp(np.diagonal(at.factor.omega))[1] // 2, -LARGEST, LARGEST)
    tasks = [rescaled(form, at.upper, None)]
    if np.any(units != units[0]):
        tasks.append(rescaled(form, at.upper, tuple(map(int, units))))
    return tasks


def _started(
    tasks: list[Task], form: SparsePrecision, x: FloatArray, at: Evaluated, left: Budget
) -> Ascent:
    """Return an ascent in the units that have more strong convexity at the known matrix."""
    boxes = [task.enclosed() for task in tasks]

    def strength(place: int) -> float:
        omega = tasks[place].form.matrix(tasks[place].in_units(x, -1))
        return boxes[place].modulus * float(np.vdot(omega, omega))

    best = max(range(len(tasks)), key=strength)
    task = tasks[best]
    slack = form.entries(at.factor.inverse) - form.entries(form.covariance)
    return Ascent(task, boxes[best], task.in_units(slack), task.in_units(x, -1), left)


def _restricted(
    form: SparsePrecision, at: Evaluated, bounded: bool, left: Budget
) -> tuple[float, FloatArray | None]:
    """Return the best bound over the support, and its dual point where that is not the inverse."""
    if not left.fits(eigenvalue_cost(form.order)):
        return -math.inf, None
    best = restricted_nats(form, at, None)
    # An eigendecomposition an iteration, about 20 p^3 operations: as many as the time allows.
    iterations = int(min(500.0, max(left.left, 0.0) * _RATE / form.order**3))
    if not (bounded and math.isfinite(form.beta) and iterations >= 20):
        return best, None
    pattern = Pattern(form.order, form.rows[at.support], form.cols[at.support])
    try:
        result = minimise_admm(
            form.covariance,
            pattern,
            form.alpha,
            form.beta,
            start=at.factor.omega,
            max_iter=iterations,
        )
    except KeyboardInterrupt:
        left.interrupt()
        return best, None
    dual = form.entries(result.dual)
    found = restricted_nats(form, at, dual)
    return (found, dual) if found > best else (best, None)
