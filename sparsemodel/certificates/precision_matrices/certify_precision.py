"""Certify a sparse precision matrix: gap on its support, and to the best support there may be."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U as _U
from sparsemodel.certificates.certify import versions
from sparsemodel.certificates.precision_matrices.ascent import LARGEST, Ascent, Tasks
from sparsemodel.certificates.precision_matrices.certificate_of_precision import (
    PrecisionCertificate,
    PrecisionFacts,
    decide_precision,
)
from sparsemodel.certificates.precision_matrices.evaluated import (
    Evaluated,
    Point,
    edges_at,
    evaluate,
)
from sparsemodel.certificates.precision_matrices.spectral_bounds import added
from sparsemodel.certificates.precision_matrices.trivial import (
    null_nats,
    null_value,
    precision_assumptions,
    scaled,
    trivial_nats,
)
from sparsemodel.certificates.precision_matrices.witness_of_precision import PrecisionWitness
from sparsemodel.certificates.statements.claims import OPTIMAL_GAP
from sparsemodel.interfaces import DataError, FloatArray
from sparsemodel.interfaces.precision import AnyPrecision, SparsePrecision
from sparsemodel.numerics.budget import (
    Budget,
    eigenvalue_cost,
    eigenvector_cost,
    ending_by,
    inverse_cost,
)
from sparsemodel.numerics.precision import Pattern, active_bounds, eigenvalues, rounding
from sparsemodel.numerics.precision.admm import minimise_between_bounds
from sparsemodel.numerics.precision.spectral import spectral_infimum
from sparsemodel.threads import small_work

_RATE = 5e8
"""Cubes of the order that eigendecompositions get through in a second, on the low side."""

_ALIKE = 10
"""Powers of two between the units of variables up to which rounding leaves bounds in their own."""

TRIVIAL = "the unconstrained likelihood"
RELAXED = "the perspective relaxation of the strong convexity"
SEARCHED = "branch and bound over the edges"


def certify_precision(
    form: AnyPrecision,
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
        Entries on and above the diagonal, ``form.entries(Omega)``; of several matrices a column
        for each.
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
    One eigendecomposition of each matrix per evaluation of the bound, O(p^3).
    """
    if not (math.isfinite(target) and target >= 0.0):
        raise DataError(f"target must be a number of at least 0, not {target!r}.")
    return certified_until(form, x, Budget(time.perf_counter() + time_limit), target, backend)


@small_work()
def certified_until(
    form: AnyPrecision, x: FloatArray, left: Budget, target: float, backend: str
) -> PrecisionCertificate:
    """Return the same within a budget, which then says whether an interrupt ended the search."""
    began, x = time.perf_counter(), np.asarray(x, dtype=np.float64)
    at = evaluate(form, x)
    # Without time for its eigenvalues nothing is proved, and that is what the certificate says.
    timely = left.fits(len(form.parts) * eigenvalue_cost(form.order))
    sigmas = [eigenvalues(part.covariance) for part in form.parts] if timely else None
    trivial = -math.inf if sigmas is None else trivial_nats(form, sigmas)
    bound, method, witness = trivial, TRIVIAL, PrecisionWitness()
    if math.isfinite(trivial):
        found, searched = _search(form, x, at, left, target)
        if found > bound:
            bound, method, witness = found, RELAXED, searched
    restricted, dual = _restricted(form, at, left)
    restricted = max(restricted, bound)
    upper, lower = scaled(form, at.upper, 1.0), scaled(form, bound, -1.0)
    within = scaled(form, restricted, -1.0)
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
        active=at.active(form),
        assumptions=precision_assumptions(form, sigmas),
        edges=edges_at(form, x, at),
        problem=PrecisionFacts.of(form),
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
    return _bounded(form, known, lower, method=SEARCHED, proof=proof)


def no_worse(
    form: SparsePrecision, found: PrecisionCertificate, other: PrecisionCertificate | None
) -> PrecisionCertificate:
    """Return a certificate with the witness of another one, where that proves more here."""
    if other is None or not other.bound > found.bound:
        return found
    upper, level = (evaluate(form, each.x).upper for each in (found, other))
    level = other.witness.above(level)
    witness = replace(
        other.witness,
        level=level if level > upper else None,
        restricted=found.witness.restricted,
    )
    lower = min(scaled(form, witnessed_bound(form, upper, witness), -1.0), found.upper)
    if not lower > found.bound:
        return found
    return _bounded(form, found, lower, method=RELAXED, witness=witness)


def _bounded(
    form: SparsePrecision, known: PrecisionCertificate, lower: float, **changes: Any
) -> PrecisionCertificate:
    """Return a certificate with a better bound, and what it then claims."""
    within = max(known.restricted_bound, lower)
    claim = decide_precision(
        upper=known.upper,
        bound=lower,
        restricted_bound=within,
        null_value=known.null_value,
        weight=form.weight,
    )
    return replace(known, claim=claim, bound=lower, restricted_bound=within, **changes)


def witnessed_bound(form: AnyPrecision, upper: float, witness: PrecisionWitness) -> float:
    """Return the bound in nats that a witness proves, given an upper bound on the optimum.

    Whatever the witness holds, the number is valid: it only decides how good it is.
    """
    if witness.final is None:
        return -math.inf
    m = len(form.parts)
    tasks = Tasks(form, witness.above(upper), witness.units_of(m))
    *moduli, mu = witness.moduli_of(m)
    for U, own in zip(witness.enclosing, moduli, strict=True):
        tasks.narrow(np.array(form.columns(U)), own)
    if witness.modulus is None and witness.moduli is None:
        mu = np.array([box.modulus for box in tasks.boxes])
    return tasks.value(np.array(form.columns(witness.final)), mu)


def restricted_nats(form: SparsePrecision, at: Evaluated, dual: FloatArray | None) -> float:
    """Return a bound in nats over all matrices on the support of a point.

    A symmetric matrix that equals ``S`` on the support is dual feasible; off the support it is
    that of ``dual``, or the inverse of the point's matrix.
    """
    B = at.factor.inverse.copy()
    if dual is not None and dual.size == form.rows.size:
        B = form.matrix(dual)
    elif dual is not None:
        rows, cols = np.triu_indices(form.order)
        B[rows, cols] = B[cols, rows] = dual
    rows, cols = form.rows[at.support], form.cols[at.support]
    B[rows, cols] = B[cols, rows] = form.covariance[rows, cols]
    best = spectral_infimum(eigenvalues(B) - rounding(B), form.alpha, form.beta)
    return best - 64.0 * _U * (abs(best) + form.order)


def _search(
    form: AnyPrecision, x: FloatArray, at: Point, left: Budget, target: float
) -> tuple[float, PrecisionWitness]:
    """Return the best bound found by ascent in ``U`` and shrinking enclosures, and its witness."""
    best, witness, m = -np.inf, PrecisionWitness(), len(form.parts)
    enclosing_cost = m * (eigenvalue_cost(form.order) + inverse_cost(form.order))
    evaluation = m * eigenvector_cost(form.order)
    choices = [_in_units(*pair) for pair in zip(form.parts, at.matrices, strict=True)]
    if not left.fits(max(map(len, choices)) * enclosing_cost, evaluation):
        return best, witness
    null = null_nats(form)
    ascent = _started(choices, form, x, at, left)
    diagonal = form.rows == form.cols
    enclosing: list[FloatArray] = []
    moduli: list[FloatArray] = []
    for _ in range(4):
        ascent.run()
        value = ascent.tasks.in_nats(ascent.best)
        improved = not math.isfinite(best) or value > best + 1e-3 * max(at.upper - best, 0.0)
        if improved:
            best = value
            units = [task.units for task in ascent.tasks.each]
            witness = PrecisionWitness.of(enclosing, ascent.U, [*moduli, ascent.mu], units)
        # Half of it, as the bound is rounded down afterwards.
        closed = at.upper - best <= max(1e-9 * abs(at.upper), 0.5 * target * (null - best))
        if not improved or closed or left.over() or not left.fits(enclosing_cost, evaluation):
            break
        enclosing.append(np.where(diagonal, 0.0, ascent.U) if m == 1 else ascent.U)
        moduli.append(ascent.mu)
        ascent.tasks.narrow(enclosing[-1], ascent.mu)
        ascent.again()
    return best, witness


def _in_units(form: SparsePrecision, at: Evaluated) -> list[tuple[int, ...] | None]:
    """Return the variables' own units, and those that make them alike.

    Bounds on eigenvalues are about the variables' own units, and the modulus is largest where they
    are all alike: an active bound decides, unless rounding does.
    """
    units = np.clip(np.frexp(np.diagonal(at.factor.omega))[1] // 2, -LARGEST, LARGEST)
    if np.ptp(units) <= _ALIKE and active_bounds(at.factor, form.alpha, form.beta):
        return [None]
    return [None, tuple(map(int, units))] if np.any(units != units[0]) else [None]


def _started(
    choices: list[list[tuple[int, ...] | None]],
    form: AnyPrecision,
    x: FloatArray,
    at: Point,
    left: Budget,
) -> Ascent:
    """Return an ascent in the units that have more strong convexity at the known matrices."""
    columns = form.columns(x)

    def strengths(tasks: Tasks) -> list[float]:
        found = []
        for task, box, column in zip(tasks.each, tasks.boxes, columns, strict=True):
            omega = task.form.matrix(task.in_units(column, -1))
            found.append(box.modulus * float(np.vdot(omega, omega)))
        return found

    tasks = Tasks(form, at.upper, [of[0] for of in choices])
    if any(len(of) > 1 for of in choices):
        other = Tasks(form, at.upper, [of[-1] for of in choices])
        pairs = zip(strengths(tasks), strengths(other), choices, strict=True)
        units = [of[0] if one >= two else of[-1] for one, two, of in pairs]
        if units != [task.units for task in tasks.each]:
            last = units == [task.units for task in other.each]
            tasks = other if last else Tasks(form, at.upper, units)
    slack = [
        task.in_units(part.entries(one.factor.inverse) - part.entries(part.covariance))
        for task, part, one in zip(tasks.each, form.parts, at.matrices, strict=True)
    ]
    start = [task.in_units(x, -1) for task, x in zip(tasks.each, columns, strict=True)]
    return Ascent(tasks, np.array(slack), np.array(start), left)


def _restricted(form: AnyPrecision, at: Point, left: Budget) -> tuple[float, FloatArray | None]:
    """Return the best bound over the support, and its dual points where they are not inverses."""
    pairs = list(zip(form.parts, at.matrices, strict=True))
    found = [_restricted_part(part, one, left) for part, one in pairs]
    best = added(form.shares, [nats for nats, _ in found], -1.0)
    if all(dual is None for _, dual in found):
        return best, None
    duals = np.stack(
        [
            dual_entries(part, one.factor.inverse) if dual is None else dual
            for (part, one), (_, dual) in zip(pairs, found, strict=True)
        ],
        axis=1,
    )
    duals = duals if len(form.shape) > 1 else duals[:, 0]
    return restricted_bound(form, at, duals), duals


def dual_entries(form: SparsePrecision, dual: FloatArray) -> FloatArray:
    """Return the entries of a dual matrix: forbidden edges have no coordinates, but multipliers."""
    entries: FloatArray = dual[np.triu_indices(form.order)]
    return entries


def restricted_bound(form: AnyPrecision, at: Point, duals: FloatArray | None) -> float:
    """Return a bound in nats over all points on the support of one, see ``restricted_nats``."""
    columns = [None] * len(form.parts) if duals is None else form.columns(duals)
    found = [
        restricted_nats(part, one, column)
        for part, one, column in zip(form.parts, at.matrices, columns, strict=True)
    ]
    return added(form.shares, found, -1.0)


def _restricted_part(
    form: SparsePrecision, at: Evaluated, left: Budget
) -> tuple[float, FloatArray | None]:
    """Return the same of one matrix."""
    bounded = bool(active_bounds(at.factor, form.alpha, form.beta))
    if not left.fits(eigenvalue_cost(form.order)):
        return -math.inf, None
    best = restricted_nats(form, at, None)
    # An eigendecomposition an iteration, about 20 p^3 operations: as many as the time allows.
    iterations = int(min(500.0, max(left.left, 0.0) * _RATE / form.order**3))
    if not (bounded and math.isfinite(form.beta) and iterations >= 20):
        return best, None
    pattern = Pattern(form.order, form.rows[at.support], form.cols[at.support])
    try:
        with ending_by(left.deadline):
            result = minimise_between_bounds(
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
    dual = dual_entries(form, result.dual)
    found = restricted_nats(form, at, dual)
    return (found, dual) if found > best else (best, None)
