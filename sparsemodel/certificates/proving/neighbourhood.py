"""The best point on some units: the search of a proof, run for the point that it finds.

Where constraints link units, no exchange of one unit for another need be feasible. What is near a
point is then searched by the branch and bound that proofs are made by, on a problem of some tens of
units, for as many nodes as a short proof may have.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.condensed import uncondensed
from sparsemodel.certificates.arithmetic.multipliers import STIFF
from sparsemodel.certificates.certify import with_multipliers
from sparsemodel.certificates.proving.attempts import Task, attempted
from sparsemodel.certificates.proving.beyond_root import nodes_of
from sparsemodel.certificates.proving.dual.subproblem import restricted, scattered
from sparsemodel.certificates.proving.search import Snapshot
from sparsemodel.certificates.statements.claims import OPTIMAL_GAP
from sparsemodel.interfaces import (
    DataError,
    FloatArray,
    IntArray,
    SparseRegression,
    UnsupportedProblemError,
)
from sparsemodel.numerics.budget import budget

_FLAT = 1e-3
"""Ridge of a neighbourhood whose data do not determine the coefficients, as a share of the largest
curvature: without it nodes have no bounds. It moves the objective by a thousandth of what the
coefficients explain, and the point is minimised without it afterwards."""
_SUPPORTS = 300
"""Supports up to which a search has no limit on its nodes, as bounds may say little."""
_NODES = 4
"""Nodes without a better point that are looked at in any case."""


@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def best_within(form: SparseRegression, x: FloatArray, units: IntArray) -> FloatArray | None:
    """Return a better point than ``x`` whose support is among ``units``; None where none was found.

    Parameters
    ----------
    form
        The problem, constraints included.
    x
        A feasible point on some of the units.
    units
        Sorted; those of ``x`` among them.

    Notes
    -----
    The search is that of :func:`~sparsemodel.certificates.proving.prove.prove` without anything
    that is compiled. It ends where it finds nothing better for some nodes, or with the time limit.
    """
    coordinates = form.sparsity.coordinates(units)
    region = None if form.region is None else form.region.on(coordinates)
    if form.region is not None and region is None:
        return None
    small = replace(restricted(form, coordinates, np.empty(0, dtype=np.intp)), region=region)
    small, start = _determined(small), x[coordinates]
    try:
        problem = uncondensed(small, start)
        if problem.at_point.violations:
            return None
        problem = with_multipliers(problem, start, STIFF, own=True)
        task = Task(
            problem.minorant,
            problem.minorant,
            problem.points,
            start,
            OPTIMAL_GAP,
            None,
            budget().deadline,
            None if _few(small) else _Patience(nodes_of(small)),
            None,
        )
        best = attempted(task, quick=False).search.incumbent.x
    except (UnsupportedProblemError, DataError):
        return None
    if np.array_equal(best, start):
        return None
    return scattered(best, coordinates, form.sparsity.size)


def _few(form: SparseRegression) -> bool:
    """Return whether supports are so few that all of them may be looked at."""
    return math.comb(form.sparsity.units, form.sparsity.budget) <= _SUPPORTS


@final
class _Patience:
    """Ends a search that finds nothing better for as many nodes as the last point took."""

    def __init__(self, most: int) -> None:
        self._most, self._value, self._nodes = most, np.inf, 0

    def __call__(self, now: Snapshot) -> bool:
        if now.value < self._value:
            self._value, self._nodes = now.value, now.nodes
        return now.nodes >= min(self._most, 2 * self._nodes + _NODES)


def _determined(form: SparseRegression) -> SparseRegression:
    """Return a form whose nodes have bounds: with some ridge where nothing bends it enough."""
    counted = form.sparsity.counted
    rows = sum(term.design.shape[0] for term in form.terms)
    if rows > form.sparsity.size or not np.any(form.ridge[counted] == 0.0):
        return form
    squares = form.ridge + sum(t.design.column_square_norms(t.weights) for t in form.terms)
    ridge = np.where(counted, np.maximum(form.ridge, _FLAT * squares), form.ridge)
    return replace(form, ridge=ridge)
