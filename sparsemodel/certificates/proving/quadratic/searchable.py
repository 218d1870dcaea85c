"""Which problems are searched as a quadratic with linear constraints."""

from __future__ import annotations

import numpy as np

from sparsemodel.certificates.arithmetic.condensed import CertifiedProblem
from sparsemodel.certificates.arithmetic.dualised_rows import row_term
from sparsemodel.certificates.arithmetic.multipliers import implied, without_rows
from sparsemodel.certificates.arithmetic.products import has_far_columns, matrix_free
from sparsemodel.certificates.certify import with_multipliers
from sparsemodel.certificates.dual_bounds.gains import forced_units
from sparsemodel.certificates.proving.compiling import compilable
from sparsemodel.certificates.proving.quadratic.problem import rows_of_term
from sparsemodel.certificates.statements.certificate import Multipliers
from sparsemodel.certificates.statements.numbers import norms_of, rows_of
from sparsemodel.interfaces import FloatArray, SparseRegression

LARGEST = 1500
"""Coordinates up to which eigenvalues of their matrix, which each part may need, take seconds."""


def objections(form: SparseRegression) -> tuple[str, ...]:
    """Return every reason why nodes of ``form`` have no relaxation as a quadratic with rows.

    ``form`` has its constraints in the objective.
    """
    if row_term(form) is None:
        return ("there are no linear constraints in the objective",)
    out = []
    sparsity, ends, rows = form.sparsity, form.ends, rows_of_term(form)
    other = {t.loss.name for t in form.terms if not t.traits.gram}
    if other:
        out.append(f"{', '.join(sorted(other))} is no squared loss or linear term")
    if not (any(t.traits.square for t in form.terms) or np.any(form.ridge > 0.0)):
        out.append("nothing is quadratic, and linear programs bound what is linear")
    if form.matrix or sparsity.groups is not None:
        out.append("rows or groups are counted, not coordinates")
    if rows.norms:
        out.append("limits on norms have slopes")
    if form.region is not None:
        out.append(f"there are constraints beside the cardinality: {form.region.describe()}")
    if any(matrix_free(t.design) for t in form.terms):
        out.append("the entries of a matrix-free design cannot be read")
    if any(has_far_columns(t.design) for t in form.terms if t.traits.square):
        out.append("columns are far from zero beside what they differ by, and not shifted here")
    if sparsity.size > LARGEST:
        out.append(f"there are {sparsity.size} coordinates, and it is for at most {LARGEST}")
    if out:
        return tuple(out)
    if np.any(forced_units(sparsity, form.box)):
        out.append("bounds keep counted coordinates away from zero")
    ends = implied(form, rows, (), ~sparsity.counted) or ends
    held = np.isfinite(ends.lower) & np.isfinite(ends.upper)
    flat = sum(t.design.shape[0] for t in form.terms if t.traits.square) < sparsity.size
    if flat and np.any((form.ridge == 0.0) & ~held):
        out.append("a coordinate has neither ridge nor bounds, nor curvature in the data")
    return tuple(out)


def searchable(form: SparseRegression) -> bool:
    """Return whether parts of a problem, with its constraints as declared, are such quadratics."""
    rows = rows_of(form)
    if form.region is None or form.matrix or rows is None or norms_of(form):
        return False
    none = np.zeros(rows.lower.size)
    return not objections(without_rows(form, Multipliers(none, none, own=True)))


def with_rows(problem: CertifiedProblem, x: FloatArray) -> CertifiedProblem | None:
    """Return the problem with its linear constraints in the objective, for such nodes.

    None where nodes of another kind have to bound it, or nothing can be compiled.
    """
    if not compilable():
        return None
    own = with_multipliers(problem, x, 0.0, own=True)
    return None if own.multipliers is None or objections(own.minorant) else own
