"""Supports and coefficients as they are reported, against the values."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemodel.modelling.expressions.comparisons import (
    CardinalityConstraint,
    Requirement,
    Semicontinuous,
)
from sparsemodel.modelling.expressions.objective_terms import Budget, Price
from sparsemodel.modelling.problem import Problem
from sparsemodel.modelling.results.solution import Solution
from tests.referee.expressions import Values
from tests.referee.feasible_matrices import is_about_a_graph
from tests.referee.objective import counted, parts_of


def support_faults(problem: Problem, values: Values, solution: Solution) -> list[str]:
    """Return what is wrong with the support and the coefficients that a solution reports."""
    if is_about_a_graph(problem):
        nonzero = pattern_of(values)
        reported = {(int(i), int(j)) for i, j in solution.indices}
        # Required edges are not counted, and need not be reported.
        return (
            [f"edges {sorted(reported - nonzero)} are reported and zero"]
            if reported - nonzero
            else []
        )
    faults = []
    mine = _nonzero_counted(problem, values)
    if mine is not None and mine != solution.indices.tolist():
        faults.append(f"the support says {solution.indices.tolist()}, and it is {mine}")
    if len(solution.coefficients) and not _is_listed(values, solution.coefficients):
        faults.append("the coefficients are not the nonzero values")
    return faults


def pattern_of(values: Values) -> set[tuple[int, int]]:
    """Return the edges of all matrices."""
    any_ = np.any([np.asarray(matrix) != 0.0 for matrix in values.values()], axis=0)
    return {(int(i), int(j)) for i, j in np.argwhere(np.triu(any_, 1))}


def _nonzero_counted(problem: Problem, values: Values) -> list[int] | None:
    """Return the nonzero counted entries of the one variable that is counted, sorted."""
    terms = [t for t in problem.goal.objective.terms if isinstance(t, Price)]
    kinds = (CardinalityConstraint, Budget, Semicontinuous, Requirement)
    limits = [c for c in problem.constraints if isinstance(c, kinds)]
    hierarchies = [c for c in limits if isinstance(c, Requirement)]
    if any(part.places is not None for c in hierarchies for part in (c.child, *c.parents)):
        return None
    if not all(part.plain for term in [*terms, *limits] for part in parts_of(term)):
        return None
    found = counted(iter([*terms, *limits]))
    if len(found) != 1 or next(iter(found)) not in values:  # several, or entries of a matrix
        return None
    ((owner, rows),) = found.items()
    x = np.asarray(values[owner])
    if getattr(problem.layout, "entries", False) and x.ndim == 2:  # told entry by entry
        return [int(j) for j in np.flatnonzero(x) if int(j) // x.shape[1] in rows]
    nonzero = np.flatnonzero((x != 0.0).reshape(len(x), -1).any(axis=1))
    return [int(j) for j in nonzero if int(j) in rows]


def _is_listed(values: Values, coefficients: Any) -> bool:
    """Return whether each coefficient that is reported is one of the nonzero values."""
    numbers = np.concatenate([np.ravel(value) for value in values.values()])
    reported = np.concatenate([np.ravel(value) for value in coefficients.values()])
    return bool(np.all(np.isin(reported, numbers)))
