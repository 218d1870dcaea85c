"""Points of precision-matrix problems: checked to be feasible, with their objective in nats."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U as _U
from sparsemodel.certificates.precision_matrices.certificate_of_precision import Edge
from sparsemodel.certificates.precision_matrices.spectral_bounds import added
from sparsemodel.certificates.precision_matrices.trivial import of_matrix
from sparsemodel.interfaces import BoolArray, DataError, FloatArray, InfeasibleError, IntArray
from sparsemodel.interfaces.precision import AnyPrecision, SparsePrecision
from sparsemodel.numerics.precision import (
    Factor,
    active_bounds,
    eigenvalues,
    factorise,
    within_bounds,
)


class Evaluated(NamedTuple):
    """A feasible matrix with its objective in nats (no weight, no constant)."""

    factor: Factor
    support: IntArray
    value: float
    upper: float


class Point(NamedTuple):
    """A feasible point, matrix by matrix, with their objective in nats."""

    matrices: tuple[Evaluated, ...]
    value: float
    upper: float

    def active(self, form: AnyPrecision) -> tuple[str, ...]:
        """Return the eigenvalue bounds that hold with equality, in words."""
        return tuple(
            of_matrix(form, g) + text
            for g, (part, at) in enumerate(zip(form.parts, self.matrices, strict=True))
            for text in active_bounds(at.factor, part.alpha, part.beta)
        )


def evaluate(form: AnyPrecision, x: FloatArray) -> Point:
    """Return a point's matrices with their objective, checked to be feasible.

    Raises
    ------
    DataError, InfeasibleError
        When it is not a point of the form, or not a feasible one.
    """
    if x.shape != form.shape or not np.all(np.isfinite(x)):
        shape = form.shape[0] if len(form.shape) == 1 else form.shape
        raise DataError(f"The point must hold {shape} finite entries of the matrix, not {x.shape}.")
    count = form.sparsity.count(x)
    if count > form.sparsity.budget:
        raise InfeasibleError(f"The matrix has {count} edges, and {form.sparsity.k} are allowed.")
    support = np.flatnonzero(nonzero_in(x) | ~form.sparsity.counted)
    matrices = []
    for part, column in zip(form.parts, form.columns(x), strict=True):
        factor = _feasible(part, column)
        value = float(np.vdot(part.covariance, factor.omega)) - factor.logdet
        upper = value + _value_error(part, factor)
        matrices.append(Evaluated(factor, support, value, upper))
    value = added(form.shares, [at.value for at in matrices])
    upper = added(form.shares, [at.upper for at in matrices], 1.0)
    return Point(tuple(matrices), value, upper)


def evaluate_point(form: SparsePrecision, x: FloatArray) -> Evaluated:
    """Return the same of a problem with one matrix."""
    return evaluate(form, x).matrices[0]


def nonzero_in(x: FloatArray) -> BoolArray:
    """Return the coordinates at which a matrix is not zero."""
    out: BoolArray = (x != 0.0).reshape(len(x), -1).any(axis=1)
    return out


def edges_at(form: AnyPrecision, x: FloatArray, at: Point) -> tuple[Edge, ...]:
    """Return the edges of a point with the partial correlation in each matrix."""
    correlations = []
    for one in at.matrices:
        d = np.sqrt(np.diagonal(one.factor.omega))
        correlations.append(-one.factor.omega / (d[:, None] * d))
    found = []
    for i, j in form.edges(np.flatnonzero(nonzero_in(x))):
        names = (str(i), str(j)) if form.names is None else (form.names[i], form.names[j])
        r, *others = (float(each[i, j]) for each in correlations)
        found.append(Edge(i, j, names, r, tuple(others) or None))
    return tuple(found)


def _feasible(form: SparsePrecision, x: FloatArray) -> Factor:
    factor = factorise(form.matrix(x))
    if factor is None:
        raise InfeasibleError("The matrix is not positive definite.")
    if not within_bounds(factor, form.alpha, form.beta):
        sigma = eigenvalues(factor.omega)
        raise InfeasibleError(
            f"The eigenvalues of the matrix lie in [{sigma[0]:.6g}, {sigma[-1]:.6g}], outside of "
            f"[{form.alpha:.6g}, {form.beta:.6g}]."
        )
    return factor


def _value_error(form: SparsePrecision, factor: Factor) -> float:
    """Bound the rounding error of the objective.

    A Cholesky factor is exact for a matrix that differs by at most ``gamma_{p+1} |L| |L|^T``
    (Higham 2002, Theorem 10.3); the log-determinant moves by that times the inverse. Units that are
    powers of two change nothing in a factor but its units, so that it is that of a matrix with
    entries near one on the diagonal.
    """
    p, d = form.order, np.diagonal(factor.omega)
    e = np.rint(0.5 * np.log2(d)).astype(np.intp)
    inverse = np.ldexp(factor.inverse, e[:, None] + e)
    gamma = 4.0 * (p + 1) * _U
    logdet = gamma * float(np.ldexp(d, -2 * e).sum() * np.linalg.norm(inverse)) * 2.0
    logs = float(np.abs(np.log(d)).sum()) + abs(factor.logdet)
    sizes = float(np.abs(form.covariance * factor.omega).sum()) + logs
    return logdet + 4.0 * (p * p + 2) * _U * sizes / p + 8.0 * p * _U * sizes
