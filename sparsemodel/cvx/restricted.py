"""The problem on a support as a CVXPY problem: the chosen columns, and nothing of the others."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemodel.interfaces import (
    CvxModelled,
    IntArray,
    Linear,
    Objective,
    OneNormBall,
    Point,
    SparseRegression,
    UnboundedError,
    UnsupportedProblemError,
)

if TYPE_CHECKING:
    import cvxpy

_TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
"""Tolerances for Clarabel; what it cannot reach it reports as inaccurate, which is fine here."""


def minimise_with_cvxpy(
    objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
) -> Point:
    """Return ``argmin f(x)`` over the feasible ``x`` on ``support``, by CVXPY.

    A restricted solver for forms with constraints that no kernel knows. The point's value is
    ``inf`` where the support admits no feasible point.
    """
    form = objective.form
    if not isinstance(form, SparseRegression):
        raise UnsupportedProblemError("The CVXPY step is for sparse regressions.")
    import cvxpy as cp

    shape = (support.size, *objective.shape[1:])
    if not support.size:
        point = objective.point(support, np.zeros(shape))
        if form.region is not None and form.region.violation(point.x) > 1e-9:
            return replace(point, value=np.inf)
        return point
    z = cp.Variable(shape, name="x")
    problem, linear = _build(cp, form, support, z)
    status = _solve(cp, problem)
    if status in ("infeasible", "infeasible_inaccurate"):
        return replace(objective.point(support, np.zeros(shape)), value=np.inf)
    if status in ("unbounded", "unbounded_inaccurate"):
        raise UnboundedError(
            "The objective is unbounded below on the chosen columns. Add a ridge, "
            "sm.ridge(w, 1e-3) for instance, or constraints."
        )
    if z.value is None:
        raise UnsupportedProblemError(f"CVXPY could not solve the restricted problem ({status}).")
    values = np.asarray(z.value, dtype=np.float64).reshape(shape)
    if form.box is not None:
        values = np.clip(values, form.box.lower[support], form.box.upper[support])
    point = objective.point(support, values)
    return replace(point, normal=_normal(objective, point, support, linear))


def restricted_problem(form: SparseRegression, support: IntArray, x: Any) -> cvxpy.Problem:
    """Return the CVXPY problem on ``support``; ``x`` is an expression of its coordinates."""
    import cvxpy as cp

    problem: cvxpy.Problem = _build(cp, form, support, x)[0]
    return problem


def labelled_problem(
    form: SparseRegression, support: IntArray, parts: list[tuple[str, int]]
) -> cvxpy.Problem:
    """Return the CVXPY problem on ``support`` with a variable of its own for each part.

    ``parts`` holds names and numbers of coordinates, in the order of ``support``.
    """
    import cvxpy

    cp: Any = cvxpy
    variables = [
        cp.Variable((size, form.outputs) if form.matrix else (size,), name=label)
        for label, size in parts
    ]
    stacked = cp.vstack(variables) if form.matrix else cp.hstack(variables)
    return restricted_problem(form, support, stacked)


def _build(
    cp: Any, form: SparseRegression, support: IntArray, x: Any
) -> tuple[Any, list[tuple[Linear, Any, Any]]]:
    total: Any = form.constant
    for term in form.terms:
        if not isinstance(term.loss, CvxModelled):
            raise UnsupportedProblemError(
                f"{term.loss.name} has no CVXPY form, which the constraints of this problem need; "
                "inherit CvxModelled and write cvxpy_value."
            )
        u = term.design.restrict(support).to_array() @ x
        u = u if term.offset is None else u + term.offset
        total = total + term.loss.cvxpy_total(cp, u, term.target, term.weights)
    ridge = form.ridge[support]
    if np.any(ridge > 0.0):
        root = np.sqrt(0.5 * ridge)
        total = total + cp.sum_squares(cp.multiply(root if not form.matrix else root[:, None], x))
    constraints: list[Any] = []
    if form.box is not None:
        lower, upper = form.box.lower[support], form.box.upper[support]
        for bound, sign in ((lower, 1.0), (-upper, -1.0)):
            finite = np.isfinite(bound)
            if finite.any():
                masked = np.where(finite, bound, 0.0)
                constraints.append(cp.multiply(finite.astype(float), sign * x) >= masked)
    linear: list[tuple[Linear, Any, Any]] = []
    if form.region is not None:
        linear += [(rows, *_rows(rows, support, x, constraints)) for rows in form.region.linear]
        for ball in form.region.balls:
            full = np.zeros((form.sparsity.size, *x.shape[1:]))
            inside = np.intersect1d(ball.index, support, assume_unique=True)
            center = full if ball.center is None else _scattered(full, ball.index, ball.center)
            gone = np.setdiff1d(ball.index, inside)
            rest = ball.radius**2 - float(np.sum(np.square(center[gone])))
            part = x[np.searchsorted(support, inside)] - center[inside]
            radius = np.sqrt(rest) if rest >= 0.0 else -1.0
            constraints.append(cp.norm(cp.vec(part, order="C"), 2) <= radius)
        constraints += [_diamond(cp, ball, support, x) for ball in form.region.one_norms]
    return cp.Problem(cp.Minimize(total), constraints), linear


def _diamond(cp: Any, ball: OneNormBall, support: IntArray, x: Any) -> Any:
    """Return a bound on a 1-norm; the entries that are zero are as far from the centre as it is."""
    _, inside, outside = np.intersect1d(
        ball.index, support, assume_unique=True, return_indices=True
    )
    left, part = ball.radius, x[outside]
    if ball.center is not None:
        left -= float(np.abs(np.delete(ball.center, inside, axis=0)).sum())
        part = part - ball.center[inside]
    return cp.sum(cp.abs(part)) <= left if outside.size else cp.Constant(0.0) <= left


def _scattered(full: Any, index: IntArray, values: Any) -> Any:
    full[index] = values
    return full


def _rows(rows: Linear, support: IntArray, x: Any, constraints: list[Any]) -> Any:
    """Add the rows to the constraints; return the upper (or equal) and the lower ones."""
    value = rows.design.restrict(support).to_array() @ x
    if np.array_equal(rows.lower, rows.upper):
        constraints.append(value == rows.upper)
        return constraints[-1], None
    made: list[Any] = []
    for bound, sign in ((rows.upper, 1.0), (-rows.lower, -1.0)):
        finite = np.flatnonzero(np.isfinite(bound))
        made.append(sign * value[finite] <= bound[finite] if finite.size else None)
        if made[-1] is not None:
            constraints.append(made[-1])
    return made


def _solve(cp: Any, problem: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate" below the tolerance asked for
        try:
            problem.solve(solver=cp.CLARABEL, **_TIGHT)
        except cp.error.SolverError:
            problem.solve()
    return str(problem.status)


def _normal(
    objective: Objective, point: Point, support: IntArray, linear: list[tuple[Linear, Any, Any]]
) -> Any:
    """Return what the constraints add to the gradient: known on the support, and for rows."""
    out = np.zeros(objective.shape)
    for rows, upper, lower in linear:
        y = np.zeros(rows.upper.size)
        if upper is not None and upper.dual_value is not None:
            finite = np.isfinite(rows.upper)
            y[finite] += np.atleast_1d(upper.dual_value)
        if lower is not None and lower.dual_value is not None:
            y[np.isfinite(rows.lower)] -= np.atleast_1d(lower.dual_value)
        out += rows.design.rmatvec(y)
    out[support] = -objective.restricted_gradient(point, support)
    return out


__all__ = ["labelled_problem", "minimise_with_cvxpy", "restricted_problem"]
