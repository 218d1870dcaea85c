"""Problems with few supports: where the bound leaves a gap, all of them are searched."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparsemodel.certificates.dual_bounds.bound import Bound
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import named
from sparsemodel.certificates.proving.records.searches import SEARCHED, searched
from sparsemodel.certificates.statements.certificate import Certificate
from sparsemodel.certificates.statements.claims import OPTIMAL_GAP, Claim
from sparsemodel.interfaces import SparseRegression, UnsupportedProblemError

PATIENCE = 3.0
"""Seconds after which such a search ends; ``prove`` takes the time it is given."""


@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def decided(
    form: SparseRegression,
    certificate: Certificate,
    *,
    names: Sequence[str] | None,
    deadline: float | None,
) -> Certificate:
    """Return the certificate that a search over all supports gives, where it says more.

    Parameters
    ----------
    form
        The problem.
    certificate
        What is known without a search.
    names
        A name for every coordinate.
    deadline
        On the clock of ``time.perf_counter``; None for no limit.

    Notes
    -----
    The certificate stays one of the same point: a better one met on the way only shows in the gap.
    """
    from sparsemodel.certificates.proving.prove import prove

    decided = certificate.claim in (Claim.OPTIMAL, Claim.ZERO) or certificate.violations
    left = PATIENCE if deadline is None else min(PATIENCE, deadline - time.perf_counter())
    if decided or left <= 0.0:
        return certificate
    began = time.perf_counter()
    try:
        proof = prove(
            form,
            certificate.x,
            names=names,
            gap=OPTIMAL_GAP,
            time_limit=left,
            backend=certificate.backend,
        )
    except UnsupportedProblemError:
        return certificate
    if not proof.bound > certificate.bound:
        return certificate
    if not np.array_equal(proof.x, certificate.x):
        proof = _of_the_point(form, certificate, proof, names)
    seconds = certificate.seconds + time.perf_counter() - began
    moments = [p._replace(seconds=p.seconds + certificate.seconds) for p in proof.progress]
    return replace(proof, seconds=seconds, progress=(*certificate.progress, *moments))


def _of_the_point(
    form: SparseRegression,
    certificate: Certificate,
    proof: Certificate,
    names: Sequence[str] | None,
) -> Certificate:
    """Return what the search proves about the point, having found a better one."""
    from sparsemodel.certificates.arithmetic.multipliers import priced
    from sparsemodel.certificates.arithmetic.tall import survey
    from sparsemodel.certificates.certify import assemble
    from sparsemodel.certificates.dual_bounds.bound_search import Candidate

    seen = priced(survey(form, certificate.x), proof.witness.multipliers)
    bound, box = Bound(proof.bound, 0.0, SEARCHED), proof.witness.bounds
    if box is not None and seen.at_point.upper > box.level:
        return certificate  # the bounds rest on the better point, which is in no file
    bound = named(bound, box)
    tree = None if proof.proof is None else proof.proof["tree"]
    found = assemble(
        seen,
        certificate.x,
        Candidate(proof.witness, bound, proof.bound_source),
        names=names,
        backend=certificate.backend,
        progress=proof.progress,
        target=proof.target,
        seconds=proof.seconds,
        proof=proof.proof,
    )
    return replace(found, assumptions=(*found.assumptions, searched(tree)))
