"""Certificates with coefficient bounds: the search for a bound in the box that they make."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from sparsemodel.certificates.dual_bounds.bound_search import Candidate, Found, search
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds, named
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import (
    boxed,
    fault,
    from_data,
    objection,
)
from sparsemodel.certificates.dual_bounds.diagonal_shift import LIMIT
from sparsemodel.certificates.dual_bounds.witness import evaluate, from_point
from sparsemodel.certificates.proving.compiling import BOUNDS, loadable
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.certificates.statements.claims import relative_gap_of
from sparsemodel.certificates.statements.objective_interval import Primal
from sparsemodel.interfaces import (
    CertificateError,
    FloatArray,
    MissingDependencyError,
    SparseRegression,
)

_GAP = 1e-3
"""Relative gap up to which a bound is good enough without a box."""

_GAIN = 0.05
"""Share of a gap that a box has to close at the gradient of the point to be worth a search."""

WORK = 3e9
"""Products that a certificate may spend on the bounds: a second or two."""

_NOTHING = Found((), ())


def search_within(
    form: SparseRegression,
    x: FloatArray,
    at_point: Primal,
    best: Candidate,
    *,
    norms: tuple[FloatArray, ...],
    deadline: float | None,
    began: float,
) -> Found:
    """Return candidates for the problem in the box that the data prove; none where it is no help.

    ``best`` is the best candidate without it. Compiling is not counted as search. Ctrl-C ends it
    with what was found.
    """
    try:
        return _search_within(form, x, at_point, best, norms, deadline, began)
    except KeyboardInterrupt:
        return replace(_NOTHING, interrupted=True)


def _search_within(
    form: SparseRegression,
    x: FloatArray,
    at_point: Primal,
    best: Candidate,
    norms: tuple[FloatArray, ...],
    deadline: float | None,
    began: float,
) -> Found:
    gap = relative_gap_of(at_point.upper, best.bound.value)
    large = form.sparsity.size > LIMIT
    if gap <= _GAP or at_point.violations or large or objection(form):
        return _NOTHING
    if not loadable(BOUNDS, deadline):
        return _NOTHING
    try:
        from sparsemodel.certificates.dual_bounds.coefficient_bounds.rows_compiled import compiling
    except MissingDependencyError:
        return _NOTHING  # without a compiler a certificate does without these bounds
    deadline = None if deadline is None else deadline + compiling()
    now = time.perf_counter()
    half = None if deadline is None else 0.5 * (now + deadline)  # a box without a search is none
    bounds = from_data(form, at_point, work=WORK, deadline=half)
    if isinstance(bounds, str):
        return _NOTHING
    inner = boxed(form, bounds)
    if not _helps(form, inner, x, at_point, norms):
        return _NOTHING
    box = inner.box
    start = x if box is None else np.clip(x, box.lower, box.upper)
    found = search(
        inner,
        start,
        at_point,
        norms=norms,
        gradients=(),
        deadline=deadline,
        relax=True,
        began=began,
    )
    return replace(found, candidates=tuple(_marked(c, bounds) for c in found.candidates))


def _helps(
    form: SparseRegression,
    inner: SparseRegression,
    x: FloatArray,
    at_point: Primal,
    norms: tuple[FloatArray, ...],
) -> bool:
    """Return whether the box holds coefficients that the ridge lets go, at the point's gradient."""
    witness = from_point(form, x)
    plain = evaluate(form, witness, norms=norms).value
    held = evaluate(inner, witness, norms=norms).value
    return not plain >= held - _GAIN * (at_point.upper - held)


def _marked(candidate: Candidate, bounds: CoefficientBounds) -> Candidate:
    """Return a candidate for the boxed problem as one for the problem itself."""
    if not candidate.witness.duals:
        return candidate
    witness: Witness = replace(candidate.witness, bounds=bounds)
    return Candidate(witness, named(candidate.bound, bounds), candidate.source)


def within(
    form: SparseRegression,
    bounds: CoefficientBounds | None,
    at_point: Primal,
    declared: SparseRegression | None = None,
) -> SparseRegression:
    """Return the problem in the box that a certificate's bounds make, once they are checked.

    Bounds on all points at a level are those of the problem as ``declared``, where ``form`` has its
    constraints in the objective.

    Raises
    ------
    CertificateError
        When the data do not prove the bounds.
    """
    if bounds is None:
        return form
    about = form if declared is None or bounds.room is None else declared
    wrong = fault(about, bounds, at_point)
    if wrong:
        raise CertificateError(f"line 'witness.bounds' does not hold: {wrong}.")
    return boxed(form, bounds)
