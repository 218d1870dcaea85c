"""Proving a problem's solution, or the better one that the proof finds."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemodel.documents.numbers import number
from sparsemodel.driver import LowerBound, Outcome
from sparsemodel.interfaces import DataTypeError, SparseModelError
from sparsemodel.interfaces.numeric import real_number
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.modelling.declared import Reading
from sparsemodel.modelling.formulations.formulation import CompiledProblem, ProofRequest
from sparsemodel.modelling.results.assembly import improved_solution, with_readings
from sparsemodel.modelling.results.solution import Solution
from sparsemodel.numerics.budget import budget
from sparsemodel.reporting.proof_log import ProofLog

if TYPE_CHECKING:
    from sparsemodel.certificates import Certificate


def certify(compiled: CompiledProblem, outcome: Outcome, solution: Solution) -> Certificate:
    """Return the certificate of a solution, found in the time that is left."""
    before = compiled.stored[0]
    found: Certificate = compiled.certify(outcome, solution.backend, time_limit=budget().limit)
    solution.lower.take(found)
    return _with_fit(with_readings(found, compiled, before), compiled, solution)


def _with_fit(
    certificate: Certificate, compiled: CompiledProblem, solution: Solution
) -> Certificate:
    """Return the certificate with how well its model fits, where data at hand say it."""
    if not compiled.at_hand:
        return certificate
    try:
        summary = solution.summary()
    except SparseModelError:  # several losses, say
        return certificate
    words = {"observations": number(summary.n)} | summary.measures()
    return replace(certificate, fit=words)


@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def prove(
    reading: Reading,
    compiled: CompiledProblem,
    outcome: Outcome,
    solution: Solution,
    *,
    gap: Any,
    verbose: bool,
    resume: Any = None,
) -> tuple[Certificate, Outcome, Solution]:
    """Return the certificate, and the outcome and solution that belong to it, in time.

    The time is what :func:`~sparsemodel.numerics.budget.budget` leaves.
    """
    limit = budget().limit
    gap = real_number(gap, where="gap", minimum=1e-9)
    earlier = _earlier(resume, compiled)
    log = ProofLog(sys.stderr) if verbose and sys.stderr is not None else None

    def show(value: float, bound: float, nodes: int, left: int) -> None:
        if log is not None:
            log(value, bound, nodes, left)

    before = compiled.stored[0]
    certificate: Certificate = compiled.prove(
        outcome, solution.backend, ProofRequest(gap, limit, show, earlier)
    )
    if log is not None:
        log.close()
    certificate = with_readings(certificate, compiled, before)
    lower = LowerBound(solution.lower.value, solution.lower.optimal)
    lower.take(certificate)
    if np.array_equal(certificate.x, outcome.x):
        certificate = _with_fit(certificate, compiled, solution)
        return certificate, outcome, replace(solution, lower=lower)
    better = replace(outcome, x=certificate.x, value=certificate.value)
    found = improved_solution(reading, compiled, better, solution, lower)
    return _with_fit(certificate, compiled, found), better, found


def enclosure(*problem: Any) -> tuple[float, float]:
    """Return proved bounds on an optimum from both sides; solvers need them seldom."""
    from sparsemodel.certificates import enclosure as enclose

    return enclose(*problem)


def neighbourhood(*problem: Any) -> Any:
    """Return the best point on some units; only searches within linked constraints need it."""
    from sparsemodel.certificates.proving.neighbourhood import best_within

    return best_within(*problem)


def _earlier(resume: Any, compiled: CompiledProblem) -> Any:
    """Return the certificate to go on from, read from its file where a path is given."""
    from sparsemodel.certificates import Certificate, PrecisionCertificate

    kind: Any = PrecisionCertificate if isinstance(compiled.form, SparsePrecision) else Certificate
    if resume is None or isinstance(resume, kind):
        return resume
    if isinstance(resume, (str, os.PathLike)):
        return kind.load(resume)
    raise DataTypeError(
        f"resume needs a {kind.__name__} or the path of its .json file, not "
        f"{type(resume).__name__}."
    )
