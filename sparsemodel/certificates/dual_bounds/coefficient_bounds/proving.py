"""Whether a proof of squared losses should branch in the box that the data prove."""

from __future__ import annotations

import math
import time

import numpy as np

from sparsemodel.certificates.arithmetic.products import column_norms
from sparsemodel.certificates.arithmetic.scaling import scaling
from sparsemodel.certificates.dual_bounds.bound_search import extractable, search
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import (
    boxed,
    from_data,
    objection,
)
from sparsemodel.certificates.relaxation import relax
from sparsemodel.certificates.statements.claims import relative_gap_of
from sparsemodel.certificates.statements.objective_interval import Primal, primal
from sparsemodel.interfaces import FloatArray, SparseRegression

_MANY = 2.0
"""Observations per coefficient from which on the curvature of the data does better."""

_SMALL, _LARGE = 0.02, 0.5
"""Gaps at the root that need no box, and that leave no doubt about the need."""

_PAIRS = 20_000_000
"""Pairs of columns that are looked at in less time than bounds on the coefficients take."""

_WORTH = 0.97
"""Share of a large gap that a box may leave at the root: it does far more in the tree."""

WORK = 2e10
"""Products that a proof may spend on the bounds: some seconds."""


def bounds_for_proof(
    form: SparseRegression, x: FloatArray, time_limit: float | None
) -> CoefficientBounds | None:
    """Return bounds on the coefficients where a proof gains by them, else None."""
    if objection(form) or form.box is not None or form.sparsity.price > 0.0:
        return None
    if _enumerable(form):
        return None
    rows = sum(t.design.shape[0] for t in form.terms)
    at_point = primal(form, x)
    if rows >= _MANY * form.sparsity.size or at_point.violations:
        return None
    deadline = None if time_limit is None else time.perf_counter() + 0.5 * time_limit
    gap = _gap_without(form, x, at_point, deadline)
    if gap <= _SMALL:
        return None
    bounds = from_data(form, at_point, work=WORK, deadline=deadline)
    if isinstance(bounds, str):
        return None
    if math.isfinite(gap):
        inner = boxed(form, bounds)
        found = _relaxed(inner, x, at_point.upper, deadline)
        if found > (_WORTH if gap >= _LARGE else 0.8) * gap:
            return None
    return bounds


def _enumerable(form: SparseRegression) -> bool:
    """Return whether supports can all be looked at sooner, and will be, for want of a ridge."""
    sparsity = form.sparsity
    loose = bool(np.any(form.ridge[sparsity.counted] == 0.0))
    return loose and sparsity.budget <= 2 and math.comb(sparsity.units, 2) <= _PAIRS


def _gap_without(
    form: SparseRegression, x: FloatArray, at_point: Primal, deadline: float | None
) -> float:
    """Return about the relative gap at the root without a box."""
    if not extractable(form, deadline):
        return _relaxed(form, x, at_point.upper, deadline)
    norms = tuple(column_norms(t.design) for t in form.terms)
    found = search(
        form,
        x,
        at_point,
        norms=norms,
        gradients=(),
        deadline=deadline,
        relax=True,
        began=time.perf_counter(),
    )
    best = max(c.bound.value for c in found.candidates)
    return relative_gap_of(at_point.upper, best)


def _relaxed(form: SparseRegression, x: FloatArray, upper: float, deadline: float | None) -> float:
    """Return about the relative gap of the relaxation; infinite where it has none."""
    other = scaling(form)
    inner, start = (form, x) if other is None else (other.form, other.start(x))
    if inner.box is not None:
        start = np.clip(start, inner.box.lower, inner.box.upper)

    def enough(value: float, bound: float) -> bool:
        gap = upper - bound
        return value - bound <= 0.05 * gap or upper - value >= 0.9 * abs(upper)

    found = relax(inner, start, report=enough, deadline=deadline)
    if isinstance(found, str):
        return math.inf
    return (upper - found.bound) / max(abs(upper), 1e-300)


__all__ = ["WORK", "bounds_for_proof"]
