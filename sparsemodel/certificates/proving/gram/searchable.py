"""Which problems are searched with their Gram matrix, and with which slopes of constraints."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from sparsemodel.certificates.arithmetic.condensed import CertifiedProblem
from sparsemodel.certificates.arithmetic.dualised_rows import DualisedRows, norm_slopes
from sparsemodel.certificates.arithmetic.multipliers import STIFF, dualised
from sparsemodel.certificates.arithmetic.products import matrix_free
from sparsemodel.certificates.certify import with_multipliers
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import from_data, objection
from sparsemodel.certificates.dual_bounds.coefficient_bounds.slopes_of_equations import (
    ROUNDS,
    relaxed_slopes,
)
from sparsemodel.certificates.dual_bounds.diagonal_shift import LARGE
from sparsemodel.certificates.proving.compiling import BOUNDS, compilable, loadable
from sparsemodel.certificates.proving.dual.shared import loose_coordinates
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.proving.quadratic import searchable as quadratic
from sparsemodel.certificates.statements.numbers import norms_of, rows_of
from sparsemodel.interfaces import FloatArray, SparseRegression
from sparsemodel.numerics.linear_programs.minimiser import is_linear_program

TIME = 0.7
"""Share of the time left that the bounds may take."""

WORK = 1e11
"""Products that a proof may spend on the bounds: a minute, if it has as much."""


def objections(form: SparseRegression) -> tuple[str, ...]:
    """Return every reason why nodes of ``form`` cannot be bounded with its Gram matrix."""
    out = []
    sparsity, box = form.sparsity, form.box
    other = {t.loss.name for t in form.terms if not t.traits.gram}
    if other:
        out.append(f"{', '.join(sorted(other))} is no squared loss or linear term")
    if form.matrix:
        out.append("the variable is a matrix")
    if sparsity.groups is not None:
        out.append("groups are counted, not coordinates")
    if form.region is not None:
        out.append(f"there are constraints beside the cardinality: {form.region.describe()}")
    priced = [t.loss.rows for t in form.terms if isinstance(t.loss, DualisedRows)]
    if any(rows.matrix[:, sparsity.free].any() for rows in priced):
        out.append("a linear constraint holds a coordinate that is always in")
    if any(rows.norms for rows in priced):
        out.append("limits on norms have slopes")
    if any(matrix_free(t.design) for t in form.terms):
        out.append("the entries of a matrix-free design cannot be read")
    if is_linear_program(form) and not np.any(loose_coordinates(form)[sparsity.counted]):
        out.append("nothing has curvature, and nodes are linear programs")
    if sparsity.size > LARGE:
        out.append(f"there are {sparsity.size} coordinates, and it is for at most {LARGE}")
    if box is not None:
        low, high = box.lower, box.upper
        if np.any(np.isfinite(low[sparsity.free]) | np.isfinite(high[sparsity.free])):
            out.append("a coordinate that is always in has bounds")
        if np.any((low > 0.0) | (high < 0.0)):
            out.append("bounds keep counted coordinates away from zero")
    return tuple(out)


def searchable(
    problem: CertifiedProblem,
    x: FloatArray,
    bounds: CoefficientBounds | None,
    *,
    sloped: bool,
    deadline: float | None,
) -> tuple[CertifiedProblem, CoefficientBounds | None]:
    """Return the problem of a search, linear constraints in its objective, and bounds for it.

    Without constraints these are the ``bounds`` that are known.

    Every part has slopes of its own, unless only bounds on the coefficients, which hold for one
    choice of the slopes, can say much; with ``sloped`` also then, and for limits on norms.
    """
    if problem.form.region is None:
        return problem, bounds
    straight = is_linear_program(problem.form)  # where nodes choose all slopes at no cost
    own = None if straight else quadratic.with_rows(problem, x)
    if own is not None:
        return own, None
    form = problem.form
    sloped = sloped or straight
    other = own_slopes(problem, x) if compilable() and not straight else None
    flat = sum(term.design.shape[0] for term in form.terms) < form.sparsity.size
    if other is None or (sloped and norms_of(form)):
        problem = with_multipliers(problem, x, STIFF, own=True, sloped=sloped)
        return problem, _at_level(problem, deadline) if flat and not straight else None
    if sloped or other.minorant.box is not None or not flat:
        return other, None
    if loose(form):
        return _relaxed(other, x, deadline)
    return with_multipliers(problem, x, STIFF), None


def _relaxed(
    problem: CertifiedProblem, x: FloatArray, deadline: float | None
) -> tuple[CertifiedProblem, CoefficientBounds | None]:
    """Return the problem with slopes for which coefficient bounds say much, and the bounds."""
    if not loadable(BOUNDS, deadline):
        return problem, None
    end = _share(deadline)
    held, whole, best = problem.multipliers, Quadratic.of(problem.minorant), None
    other = None if held is None else dualised(problem, replace(held, slopes=0.0 * held.slopes))
    for left in range(ROUNDS, -1, -1):
        if other is None or other.multipliers is None:
            break
        bounds = from_data(
            other.minorant,
            other.at_point,
            work=WORK,
            deadline=end,
            quadratic=whole.at(other.multipliers.slopes),
        )
        if isinstance(bounds, str):
            break
        best = dualised(other, replace(other.multipliers, own=True)), bounds
        other = relaxed_slopes(other, x, bounds, end) if left else None
    return best or (problem, None)


def _at_level(problem: CertifiedProblem, deadline: float | None) -> CoefficientBounds | None:
    """Return bounds on the coefficients of all points that are no worse; None for none."""
    form = problem.form
    if problem.multipliers is None or not compilable() or objection(form, everywhere=True):
        return None
    if not loadable(BOUNDS, deadline):
        return None
    found = from_data(form, problem.at_point, work=WORK, deadline=_share(deadline), everywhere=True)
    return None if isinstance(found, str) else found


def _share(deadline: float | None) -> float | None:
    """Return when bounds have to be found; compiling is not counted."""
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.rows_compiled import compiling

    compiled, now = compiling(), time.perf_counter()
    return None if deadline is None else now + TIME * (deadline + compiled - now)


def own_slopes(problem: CertifiedProblem, x: FloatArray) -> CertifiedProblem | None:
    """Return the problem with linear constraints in its objective, with slopes free in each part.

    None where nodes have no Gram matrix, or a row holds a coordinate that is always in.
    """
    form = problem.form
    if objections(replace(form, region=None)):
        return None
    rows = rows_of(form)
    if rows is None or rows.matrix[:, form.sparsity.free].any():
        return None
    return with_multipliers(problem, x, 0.0, own=True)  # compiled nodes need no stiffness


def every_slope(problem: CertifiedProblem, form: SparseRegression) -> bool:
    """Return whether parts choose slopes of all that is in the objective of ``form``."""
    held = problem.multipliers
    return held is None or norm_slopes(form) or (held.own and held.norms is None)


def fixed_slopes(problem: CertifiedProblem) -> bool:
    """Return whether parts have the slopes that there are, or none, and rows that can be read."""
    return not problem.condensed and not (
        problem.multipliers is not None and problem.multipliers.own
    )


def loose(form: SparseRegression) -> bool:
    """Return whether a counted coordinate has no ridge."""
    return bool(np.any(form.ridge[form.sparsity.counted] == 0.0))
