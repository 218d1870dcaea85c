"""Sums of squared losses in rational numbers: exact values, exact minima on a support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.losses.residuals.linear import LinearLoss
from sparsemodel.modelling.expressions.affine import Affine
from sparsemodel.modelling.expressions.objective_terms import LossTerm, Objective
from tests.referee.expressions import present
from tests.referee.search.dense import Dense

Exact = list[Fraction]


@final
@dataclass(frozen=True, slots=True)
class ExactRows:
    """``sum of c/2 (u - y)^2``, or ``sum of c y u`` for a linear term, of ``u = A z + b``."""

    linear: bool
    matrix: tuple[Exact, ...]
    offset: Exact
    target: Exact
    factors: Exact


@final
class Rational:
    """A quadratic objective over ``z`` in rational numbers, without prices."""

    def __init__(self, dense: Dense, objective: Objective) -> None:
        self.size = dense.size
        self.constant = Fraction(float(objective.constant))
        self.ridge: Exact = _fractions(dense.ridge)
        self.rows: list[ExactRows] = []
        terms = [t for t in objective.terms if isinstance(t, LossTerm)]
        for term, rows in zip(terms, dense.rows, strict=True):
            outputs = int(np.prod(rows.shape[1:]))
            self.rows.append(
                ExactRows(
                    type(rows.loss) is LinearLoss,
                    tuple(_fractions(row) for row in rows.matrix),
                    _fractions(rows.offset),
                    _fractions(rows.target.ravel()),
                    [f for f in _factors(term, rows.shape[0]) for _ in range(outputs)],
                )
            )

    def value(self, z: FloatArray) -> Fraction:
        """Return the objective at ``z``, exactly."""
        places = np.flatnonzero(z)
        exact = {int(j): Fraction(float(z[j])) for j in places}
        total = self.constant
        for j, x in exact.items():
            total += self.ridge[j] * x * x / 2
        for r in self.rows:
            for row, b, y, c in zip(r.matrix, r.offset, r.target, r.factors, strict=True):
                u = b + sum((row[j] * x for j, x in exact.items()), Fraction(0))
                total += c * y * u if r.linear else c * (u - y) ** 2 / 2
        return total

    def minimum(self, support: IntArray) -> Fraction | None:
        """Return the exact minimum over the ``z`` that vanish off ``support``.

        None where there is none: a linear term without curvature goes down without end.
        """
        chosen = [int(j) for j in support]
        matrix = [[Fraction(0)] * len(chosen) for _ in chosen]
        right = [Fraction(0)] * len(chosen)
        total = self.constant
        for i, j in enumerate(chosen):
            matrix[i][i] += self.ridge[j]
        for r in self.rows:
            for row, b, y, c in zip(r.matrix, r.offset, r.target, r.factors, strict=True):
                a = [row[j] for j in chosen]
                if r.linear:
                    total += c * y * b
                    right = [v - c * y * x for v, x in zip(right, a, strict=True)]
                    continue
                t = y - b
                total += c * t * t / 2
                for i, x in enumerate(a):
                    if x:
                        right[i] += c * x * t
                        for j in range(i + 1):
                            matrix[i][j] += c * x * a[j]
        for i in range(len(chosen)):
            for j in range(i):
                matrix[j][i] = matrix[i][j]
        z = solve(matrix, right)
        if z is None:
            return None
        return total - sum((b * x for b, x in zip(right, z, strict=True)), Fraction(0)) / 2


def solve(matrix: list[Exact], right: Exact) -> Exact | None:
    """Return a solution of ``matrix @ z == right``; None where there is none."""
    n = len(right)
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    pivots: list[tuple[int, int]] = []
    top = 0
    for column in range(n):
        found = next((i for i in range(top, n) if rows[i][column]), None)
        if found is None:
            continue
        rows[top], rows[found] = rows[found], rows[top]
        for i in range(top + 1, n):
            if rows[i][column]:
                share = rows[i][column] / rows[top][column]
                rows[i] = [a - share * b for a, b in zip(rows[i], rows[top], strict=True)]
        pivots.append((top, column))
        top += 1
    if any(row[n] for row in rows[top:]):
        return None
    z = [Fraction(0)] * n
    for row, column in reversed(pivots):
        rest = sum((rows[row][j] * z[j] for j in range(column + 1, n)), Fraction(0))
        z[column] = (rows[row][n] - rest) / rows[row][column]
    return z


def fits(dense: Dense, objective: Objective, support: int) -> bool:
    """Return whether a problem is small and plain enough for rational numbers.

    Numbers that multiply expressions are powers of two: other products of two floats do not fit
    in extended precision, in which the matrices are made.
    """
    entries = sum(len(r.matrix) for r in dense.rows) * max(support, 1) ** 2
    factors = [
        piece.factor
        for term in objective.terms
        if isinstance(term, LossTerm) and isinstance(term.prediction, Affine)
        for piece in term.prediction.pieces
    ]
    plain = all(abs(float(np.frexp(factor)[0])) == 0.5 for factor in factors)
    exact = bool(np.finfo(np.longdouble).nmant >= 63)
    return dense.quadratic and not dense.constraints and plain and exact and entries <= 4000


def _fractions(values: Any) -> Exact:
    """Return numbers that are sums of at most two floats, exactly."""
    out = []
    for value in np.ravel(values):
        high = float(value)
        out.append(Fraction(high) + Fraction(float(value - np.longdouble(high))))
    return out


def _factors(term: LossTerm, n: int) -> Sequence[Fraction]:
    weights = np.ones(n) if term.weights is None else present(term.weights)
    scale = Fraction(float(present(term.scale)))
    share = scale / n if term.reduction == "mean" else scale
    return [share * Fraction(float(c)) for c in weights]
