"""Whether a solve finds the best of all supports, where these are few or a sequence's steps."""

from __future__ import annotations

from sparsemodel.compiler.choice.candidates import Candidates, Choice
from sparsemodel.compiler.choice.effort import Effort
from sparsemodel.compiler.services import distributed
from sparsemodel.interfaces import Cardinality, Form, Role, SparseRegression
from sparsemodel.interfaces.precision import AnyPrecision, JointPrecision, SparsePrecision
from sparsemodel.numerics import is_of_segments

SMALL = 2000
"""Supports up to which all are tried with a squared loss."""
_TRIED = 16
"""Supports up to which all are tried where each takes trips to workers."""
_TOGETHER, _SINGLY = (4.0, 2**14), (10.0, 2**16)
"""How many times as long another loss takes to minimise on a support, where that is done for many
at a time and one by one, and entries of a Hessian's sum over the rows from which on it takes twice
that."""
_GRAPHS, _VARIABLES = 500, 6
"""Graphs up to which all are tried, and between how many variables. Where samples determine the
matrix a solve then takes as long as a search does; where they do not, a search is often wrong."""


def of_all_supports(form: Form, candidates: Candidates) -> Choice | None:
    """Return the stage that finds the best of all supports, where that takes little."""
    if isinstance(form, SparseRegression) and is_of_segments(form):
        name = candidates.best(Role.SEQUENCE)
        if name is not None:
            why = "the best steps of a sequence are found by dynamic programming"
            return Choice((candidates.stage(name, why),))
    if isinstance(form, (SparsePrecision, JointPrecision)):
        limit = _graphs(form)
    elif isinstance(form, SparseRegression):
        limit = _affordable(form)
    else:
        return None
    supports = _enumerated(form.cardinality, limit)
    if supports > limit or (candidates.quick and supports > form.cardinality.units):
        return None
    name = candidates.best(Role.ENUMERATION)
    if name is None:
        return None
    why = f"there are only {supports} supports; all are tried"
    if supports == 1:
        why = "there is only one support to choose"
    return Choice((candidates.stage(name, why),))


def all_tried(form: Form, effort: Effort) -> bool:
    """Return whether a solve with that effort tries all supports."""
    return of_all_supports(form, Candidates(form, effort)) is not None


def _slow(form: SparseRegression) -> bool:
    """Return whether a minimisation on a support takes long."""
    several = form.outputs > 1 and not form.traits.quadratic
    return form.region is not None or not form.traits.has_hessian or several


def _affordable(form: SparseRegression) -> int:
    """Return how many supports are tried at most: as many as take about as long as a search."""
    if distributed(form):
        return _TRIED
    if form.traits.quadratic and not _slow(form):
        return SMALL
    k = min(form.sparsity.budget, form.sparsity.units)
    entries = sum(term.target.shape[0] for term in form.terms) * k * k
    together = form.traits.curved and not form.matrix and not form.constrained
    times, rows = _TOGETHER if together and not form.sparsity.priced else _SINGLY
    return int(SMALL / (times * (1.0 + entries / rows)))


def _graphs(form: AnyPrecision) -> int:
    """Return how many graphs are tried at most."""
    return int(_GRAPHS * (_VARIABLES / form.order) ** 2 / len(form.parts))


def _enumerated(sparsity: Cardinality, limit: int) -> int:
    """Return how many supports enumeration tries, ``limit + 1`` where there are more.

    Those of ``k`` units, and of fewer, too, where a unit has a price.
    """
    units, k = sparsity.units, min(sparsity.budget, sparsity.units)
    priced = sparsity.priced or bool(sparsity.knapsacks or sparsity.crossing)
    of_size, total = 1, 1
    for size in range(1, (k if priced else min(k, units - k)) + 1):
        of_size = of_size * (units - size + 1) // size
        total = total + of_size if priced else of_size
        if total > limit:
            return limit + 1
    return total
