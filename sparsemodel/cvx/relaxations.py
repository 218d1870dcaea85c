r"""The perspective relaxation from its algebraic form, solved by CVXPY: an independent check.

.. math:: \min_{x, z}\ \sum_t F_t(A_t x + o_t) + \sum_j \frac{\lambda_j \|x_j\|^2}{2 z_{u(j)}}
          + \gamma \sum_u z_u, \qquad 0 \le z \le 1,\ \sum z \le k

with free coordinates keeping their ridge and bounds scaled by the shares.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparsemodel.cvx.package import cvxpy_package
from sparsemodel.interfaces import (
    CvxModelled,
    FloatArray,
    SparseRegression,
    UnsupportedProblemError,
)

_SOLVER = "CLARABEL"


def relaxation_value(form: SparseRegression, *, extraction: FloatArray | None = None) -> float:
    """Return the value of the relaxation, which no dual bound exceeds.

    Parameters
    ----------
    form
        A problem whose losses are CVXPY expressions; its designs are made dense.
    extraction
        Curvature that goes from squared losses into the ridge, for every coordinate.

    Raises
    ------
    UnsupportedProblemError
        When a loss has no CVXPY form, or the solver gives up.
    """
    cp = cvxpy_package()
    unknown = sorted({t.loss.name for t in form.terms if not isinstance(t.loss, CvxModelled)})
    if unknown:
        raise UnsupportedProblemError(f"{', '.join(unknown)} has no CVXPY form.")
    if extraction is not None:
        return _extracted_value(cp, form, extraction)
    x = cp.Variable(form.shape)
    total: Any = form.constant
    for term in form.terms:
        u = term.design.to_array() @ x
        if term.offset is not None:
            u = u + term.offset
        loss = term.loss
        if isinstance(loss, CvxModelled):
            total = total + loss.cvxpy_total(cp, u, term.target, term.weights)
    penalty, constraints = _penalty(cp, form, x)
    problem = cp.Problem(cp.Minimize(total + penalty), constraints)
    problem.solve(solver=_SOLVER)
    if problem.status not in ("optimal", "optimal_inaccurate"):
        raise UnsupportedProblemError(f"{_SOLVER} ended with the status {problem.status!r}.")
    return float(problem.value)


def _extracted_value(cp: Any, form: SparseRegression, extraction: FloatArray) -> float:
    r"""Return the value for squared losses less :math:`\frac12 x^T \Delta x`, by a square root.

    Linear terms may stand beside them.
    """
    stacked, aims = [], []
    slopes, constant = np.zeros(form.shape), form.constant
    for term in form.terms:
        if term.traits.affine:
            b = term.slopes()
            slopes += term.design.rmatvec(b)
            constant += 0.0 if term.offset is None else float(b @ term.offset)
            continue
        centre, weights = term.squares()
        root = np.sqrt(weights)
        aim = centre if term.offset is None else centre - term.offset
        stacked.append(root[:, None] * term.design.to_array())
        aims.append(root * aim)
    a, y = np.concatenate(stacked), np.concatenate(aims)
    values, vectors = np.linalg.eigh(a.T @ a - np.diag(extraction))
    half = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    x = cp.Variable(form.shape)
    total = constant + 0.5 * float(y @ y) + 0.5 * cp.sum_squares(half @ x)
    total = total + (slopes - a.T @ y) @ x
    more = replace(form, ridge=form.ridge + extraction)
    penalty, constraints = _penalty(cp, more, x)
    problem = cp.Problem(cp.Minimize(total + penalty), constraints)
    problem.solve(solver=_SOLVER)
    if problem.status not in ("optimal", "optimal_inaccurate"):
        raise UnsupportedProblemError(f"{_SOLVER} ended with the status {problem.status!r}.")
    return float(problem.value)


def _penalty(cp: Any, form: SparseRegression, x: Any) -> tuple[Any, list[Any]]:
    sparsity, ridge = form.sparsity, form.ridge
    z = cp.Variable(sparsity.units, nonneg=True)
    constraints = [z <= 1, cp.sum(z) <= sparsity.budget]
    total: Any = sparsity.price * cp.sum(z)
    unit = sparsity.unit_of
    single = sparsity.groups is None and len(form.shape) == 1
    if single and sparsity.units:
        # s_j z_j >= lambda_j x_j^2, all rotated cones at once.
        counted = np.flatnonzero(unit >= 0)
        s = cp.Variable(counted.size, nonneg=True)
        scaled = cp.multiply(2.0 * np.sqrt(ridge[counted]), x[counted])
        constraints.append(cp.SOC(s + z, cp.vstack([scaled, s - z]), axis=0))
        total = total + 0.5 * cp.sum(s)
    for u in range(0 if single else sparsity.units):
        index = np.flatnonzero(unit == u)
        weights = np.sqrt(ridge[index])
        if not weights.any():
            continue
        scaled = cp.multiply(weights if len(form.shape) == 1 else weights[:, None], x[index])
        total = total + 0.5 * cp.quad_over_lin(cp.vec(scaled, order="C"), z[u])
    free = sparsity.free
    if free.size and ridge[free].any():
        scaled = cp.multiply(
            np.sqrt(ridge[free]) if len(form.shape) == 1 else np.sqrt(ridge[free])[:, None], x[free]
        )
        total = total + 0.5 * cp.sum_squares(scaled)
    return total, constraints + _bounds(form, x, z, unit)


def _bounds(form: SparseRegression, x: Any, z: Any, unit: Any) -> list[Any]:
    if form.box is None:
        return []
    lower, upper, out = form.box.lower, form.box.upper, []
    for j in np.ndindex(*form.shape):
        share = 1.0 if unit[j[0]] < 0 else z[int(unit[j[0]])]
        if np.isfinite(lower[j]):
            out.append(x[j] >= lower[j] * share)
        if np.isfinite(upper[j]):
            out.append(x[j] <= upper[j] * share)
    return out
