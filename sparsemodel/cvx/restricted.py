"""The problem on a support as a CVXPY problem: the chosen columns, and nothing of the others."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemodel.cvx.package import cvxpy_package
from sparsemodel.interfaces import (
    CvxModelled,
    IntArray,
    Linear,
    Objective,
    OneNormBall,
    Point,
    SparseRegression,
    Spectrum,
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
    cp = cvxpy_package()
    shape = (support.size, *objective.shape[1:])
    if not support.size:
        point = objective.point(support, np.zeros(shape))
        if form.region is not None and form.region.violation(point.x) > 1e-9:
            return replace(point, value=np.inf)
        return point
    z = cp.Variable(shape, name="x")
    size = _size(form)
    problem, linear = _build(cp, form, support, size * z, size)
    worth = _power_of_two(abs(objective.origin().value - form.constant))
    # Solvers have tolerances of their own: numbers of about one are asked of them.
    scaled = cp.Problem(cp.Minimize(problem.objective.args[0] / worth), problem.constraints)
    status = _solve(cp, scaled)
    if status in ("infeasible", "infeasible_inaccurate"):
        return replace(objective.point(support, np.zeros(shape)), value=np.inf)
    if status in ("unbounded", "unbounded_inaccurate"):
        raise UnboundedError(
            "The objective is unbounded below on the chosen columns. Add a ridge, "
            "sm.ridge(w, 1e-3) for instance, or constraints."
        )
    if z.value is None:
        raise UnsupportedProblemError(f"CVXPY could not solve the restricted problem ({status}).")
    values = size * np.asarray(z.value, dtype=np.float64).reshape(shape)
    if form.box is not None:
        box = form.box.chosen
        values = np.clip(values, box.lower[support], box.upper[support])
    point = objective.point(support, values)
    return replace(point, normal=_normal(objective, point, support, linear, worth / size))


def _size(form: SparseRegression) -> float:
    """Return the size that the constraints give the coordinates, as a power of two."""
    sizes: list[float] = []
    if form.region is not None:
        bounds = [end for rows in form.region.linear for end in (rows.lower, rows.upper)]
        sizes += [float(np.abs(end[np.isfinite(end)]).max(initial=0.0)) for end in bounds]
        sizes += [part.radius for part in (*form.region.every_ball, *form.region.images)]
        ends = [end for part in form.region.spectra for end in (part.lower, part.upper)]
        sizes += [abs(end) for end in ends if np.isfinite(end)]
    return _power_of_two(max(sizes, default=0.0))


def _power_of_two(size: float) -> float:
    return float(2.0 ** np.round(np.log2(size))) if 0.0 < size < np.inf else 1.0


def restricted_problem(form: SparseRegression, support: IntArray, x: Any) -> cvxpy.Problem:
    """Return the CVXPY problem on ``support``; ``x`` is an expression of its coordinates."""
    cp = cvxpy_package()
    problem: cvxpy.Problem = _build(cp, form, support, x)[0]
    return problem


def labelled_problem(
    form: SparseRegression, support: IntArray, parts: list[tuple[str, int]]
) -> cvxpy.Problem:
    """Return the CVXPY problem on ``support`` with a variable of its own for each part.

    ``parts`` holds names and numbers of coordinates, in the order of ``support``.
    """
    cp = cvxpy_package()
    variables = [
        cp.Variable((size, form.outputs) if form.matrix else (size,), name=label)
        for label, size in parts
    ]
    stacked = cp.vstack(variables) if form.matrix else cp.hstack(variables)
    return restricted_problem(form, support, stacked)


def _build(
    cp: Any, form: SparseRegression, support: IntArray, x: Any, size: float = 1.0
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
        box = form.box.chosen
        lower, upper = box.lower[support], box.upper[support]
        for bound, sign in ((lower, 1.0), (-upper, -1.0)):
            finite = np.isfinite(bound)
            if finite.any():
                masked = np.where(finite, bound, 0.0)
                kept = cp.multiply(finite.astype(float) / size, sign * x)
                constraints.append(kept >= masked / size)
    linear: list[tuple[Linear, Any, Any]] = []
    if form.region is not None:
        linear += [
            (rows, *_rows(rows, support, x, constraints, size)) for rows in form.region.linear
        ]
        for ball in form.region.balls:
            full = np.zeros((form.sparsity.size, *x.shape[1:]))
            inside = np.intersect1d(ball.index, support, assume_unique=True)
            center = full if ball.center is None else _scattered(full, ball.index, ball.center)
            gone = np.setdiff1d(ball.index, inside)
            rest = ball.radius**2 - float(np.sum(np.square(center[gone])))
            part = x[np.searchsorted(support, inside)] - center[inside]
            radius = np.sqrt(rest) if rest >= 0.0 else -1.0
            constraints.append(cp.norm(cp.vec(part, order="C"), 2) / size <= radius / size)
        constraints += [_diamond(cp, ball, support, x) for ball in form.region.one_norms]
        for image in form.region.images:
            u = image.design.restrict(support).to_array() @ x + image.shift
            constraints.append(cp.norm(u / size, image.order) <= image.radius / size)
        for part in form.region.spectra:
            constraints += _eigenvalues(cp, part, support, x / size, size)
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


def _eigenvalues(cp: Any, part: Spectrum, support: IntArray, x: Any, size: float) -> list[Any]:
    """Return the bounds on the eigenvalues of a matrix of which the support has some entries."""
    _, places, inside = np.intersect1d(part.index, support, assume_unique=True, return_indices=True)
    i, j = (side[places] for side in part.entries)
    p = int(part.entries[0][-1]) + 1
    put = np.zeros((p * p, inside.size))
    put[i * p + j, np.arange(inside.size)] = put[j * p + i, np.arange(inside.size)] = 1.0
    matrix = cp.reshape(put @ x[inside], (p, p), order="C")
    ends = ((part.lower, 1.0), (part.upper, -1.0))
    return [sign * (matrix - end / size * np.eye(p)) >> 0 for end, sign in ends if np.isfinite(end)]


def _scattered(full: Any, index: IntArray, values: Any) -> Any:
    full[index] = values
    return full


def _rows(rows: Linear, support: IntArray, x: Any, constraints: list[Any], size: float) -> Any:
    """Add the rows to the constraints; return the upper (or equal) and the lower ones."""
    value = rows.design.restrict(support).to_array() @ x / size
    if np.array_equal(rows.lower, rows.upper):
        constraints.append(value == rows.upper / size)
        return constraints[-1], None
    made: list[Any] = []
    for bound, sign in ((rows.upper / size, 1.0), (-rows.lower / size, -1.0)):
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
    objective: Objective,
    point: Point,
    support: IntArray,
    linear: list[tuple[Linear, Any, Any]],
    worth: float,
) -> Any:
    """Return what the constraints add to the gradient: known on the support, and for rows.

    ``worth`` is what the objective was divided by, over what the constraints were.
    """
    out = np.zeros(objective.shape)
    for rows, upper, lower in linear:
        y = np.zeros(rows.upper.size)
        if upper is not None and upper.dual_value is not None:
            finite = np.isfinite(rows.upper)
            y[finite] += np.atleast_1d(upper.dual_value)
        if lower is not None and lower.dual_value is not None:
            y[np.isfinite(rows.lower)] -= np.atleast_1d(lower.dual_value)
        out += rows.design.rmatvec(worth * y)
    out[support] = -objective.restricted_gradient(point, support)
    return out
