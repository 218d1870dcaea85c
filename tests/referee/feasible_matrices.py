"""Good feasible matrices of small precision-matrix problems, by a Newton method of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from typing import Any

import numpy as np

from sparsemodel.interfaces import BoolArray, FloatArray
from sparsemodel.modelling.expressions.symmetric import EdgeCount
from sparsemodel.modelling.precision_matrices.terms_and_constraints import (
    EdgePattern,
    NegativeLogDet,
    Trace,
)
from sparsemodel.modelling.problem import Problem
from tests.referee.expressions import Unjudged, Values, present
from tests.referee.objective import covariance_of

_ORDER = 8
_SUPPORTS = 40


def witnesses_of(problem: Problem, k: int | None) -> Iterator[Values]:
    """Yield feasible matrices, among them good ones of the supports in turn.

    Raises
    ------
    Unjudged
        For matrices of an order above eight.
    """
    p = problem.variables[0].shape[0]
    if p > _ORDER:
        raise Unjudged("too large a matrix for its optimum")
    means = [_mean(problem, variable) for variable in problem.variables]
    form: Any = problem.form  # defaults of bounds that nobody declared are part of the problem
    required, forbidden, limit = _patterns(problem, k)
    allowed = [
        pair for pair in combinations(range(p), 2) if pair not in forbidden and pair not in required
    ]
    for chosen in islice(combinations(allowed, min(limit, len(allowed))), _SUPPORTS):
        mask = np.eye(p, dtype=bool)
        for a, b in (*chosen, *required):
            mask[a, b] = mask[b, a] = True
        found = {
            id(variable): inside(newton(covariance, mask), part.alpha, part.beta)
            for variable, covariance, part in zip(problem.variables, means, form.parts, strict=True)
        }
        whole = {place: matrix for place, matrix in found.items() if matrix is not None}
        if len(whole) == len(found):
            yield whole


def _mean(problem: Problem, variable: Any) -> FloatArray:
    """Return the sum of the matrices of a variable's traces, over the weight of its log det."""
    weight, covariance = 0.0, np.zeros(variable.shape)
    for term in problem.goal.objective.terms:
        if not isinstance(term, (NegativeLogDet, Trace)):
            continue
        if term.expression.pieces[0].variable is not variable:
            continue
        if isinstance(term, NegativeLogDet):
            weight += term.weight
        else:
            covariance = covariance + term.weight * covariance_of(term).astype(np.float64)
    return np.asarray(covariance / weight)


def _patterns(problem: Problem, k: int | None) -> tuple[set[Any], set[Any], int]:
    required: set[Any] = set()
    forbidden: set[Any] = set()
    limits = [] if k is None else [k]
    for constraint in problem.constraints:
        if isinstance(constraint, EdgePattern):
            (required if constraint.required else forbidden).update(constraint.pairs)
        elif isinstance(constraint, EdgeCount) and k is None:
            limits.append(int(present(constraint.limit)) // 2)
    return required, forbidden, min(limits, default=problem.variables[0].size)


def newton(covariance: FloatArray, mask: BoolArray) -> FloatArray:
    """Return the matrix of the best likelihood on a support, as far as damped Newton steps lead."""
    scale = np.sqrt(np.where(np.diag(covariance) > 0.0, np.diag(covariance), 1.0))
    s = covariance / scale[:, None] / scale
    rows, cols = np.nonzero(np.triu(mask))
    matrix = np.eye(len(s))
    doubled = np.where(rows == cols, 1.0, 2.0)

    def value(m: FloatArray) -> float:
        sign, log = np.linalg.slogdet(m)
        definite = sign > 0.0 and np.linalg.eigvalsh(m)[0] > 0.0
        return float(np.sum(s * m) - log) if definite else np.inf

    best = value(matrix)
    for _ in range(25):
        inverse = np.linalg.inv(matrix)
        gradient = doubled * (s - inverse)[rows, cols]
        across = inverse[np.ix_(rows, rows)] * inverse[np.ix_(cols, cols)]
        across = across + inverse[np.ix_(rows, cols)] * inverse[np.ix_(cols, rows)]
        hessian = across * np.outer(doubled, doubled) / 2.0
        step = np.linalg.lstsq(hessian, -gradient, rcond=None)[0]
        move = np.zeros_like(matrix)
        move[rows, cols] = move[cols, rows] = step
        length = 1.0
        while length > 1e-6 and not value(matrix + length * move) < best:
            length *= 0.5
        if length <= 1e-6:
            break
        matrix = matrix + length * move
        best = value(matrix)
    return np.asarray(matrix / scale[:, None] / scale)


def inside(matrix: FloatArray, low: float, high: float) -> FloatArray | None:
    """Return a matrix of the same support whose eigenvalues are in the bounds, None for lack."""
    middle = np.sqrt(low) * np.sqrt(high) if low > 0.0 and np.isfinite(high) else 0.5 * high
    if low == high or not np.all(np.isfinite(matrix)):
        return np.asarray(low * np.eye(len(matrix))) if np.isfinite(low) and low > 0.0 else None
    if not np.isfinite(middle):
        middle = 2.0 * low + 1.0
    share = 1.0
    for _ in range(40):
        mixed = share * matrix + (1.0 - share) * middle * np.eye(len(matrix))
        least, largest = np.linalg.eigvalsh(mixed)[[0, -1]]
        # Inside by more than the rounding of the eigenvalues.
        slack = 1e-14 * len(matrix) * abs(largest)
        if least - slack >= low and largest + slack <= high and least > slack:
            return np.asarray(mixed)
        share *= 0.7
    return None


def is_about_a_graph(problem: Problem) -> bool:
    """Return whether the unknown is a precision matrix, by what was declared."""
    terms = problem.goal.objective.terms
    return any(isinstance(term, (NegativeLogDet, Trace)) for term in terms)
