"""Minimisers found without the library's solvers: SciPy on every support, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import final

import numpy as np
from scipy.optimize import minimize

from sparsemodel.interfaces import FloatArray, IntArray, Objective, Point, SparseRegression
from sparsemodel.testing.instances.problems import Data, Instance


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The global minimum of an instance, and what the next best support reaches."""

    x: FloatArray
    value: float
    support: IntArray
    runner_up: float
    """Smallest value on the other supports; infinite when there is only one."""
    origin: float
    """The objective where every coordinate is zero."""

    @property
    def scale(self) -> float:
        """Return what an error of the objective is measured against.

        The decrease from zero; where there is none, the objective itself.
        """
        decrease = self.origin - self.value
        return decrease if decrease > 1e-9 * abs(self.origin) else max(abs(self.value), 1e-300)


@lru_cache(maxsize=256)
def brute_force(instance: Instance) -> Reference:
    """Minimise on every support of at most ``k`` units, and return the best.

    Least squares by :func:`numpy.linalg.lstsq` (minimum norm) where every loss is squared and
    there are no bounds, else :func:`scipy.optimize.minimize`.
    """
    sparsity = instance.sparsity
    largest = min(sparsity.budget, sparsity.units)
    # Without a price, a support is never worse than its subsets.
    sizes = range(largest + 1) if sparsity.price > 0.0 else (largest,)
    found = []
    for size in sizes:
        for units in combinations(range(sparsity.units), size):
            support = sparsity.coordinates(np.array(units, dtype=np.intp))
            x = minimum_on(instance, support)
            found.append((instance.value(x), support, x))
    found.sort(key=lambda item: item[0])
    value, support, x = found[0]
    runner_up = found[1][0] if len(found) > 1 else np.inf
    return Reference(x, value, support, runner_up, instance.value(np.zeros(instance.shape)))


def minimum_on(instance: Instance, support: IntArray) -> FloatArray:
    """Return a minimiser of the instance among the ``x`` that vanish outside ``support``."""
    x = np.zeros(instance.shape)
    if not support.size:
        return x
    squared = all(d.loss.name == "squared_loss" for d in instance.data)
    if squared and instance.box is None:
        x[support] = _least_squares(instance, support)
    elif any(d.loss.name == "hinge_loss" for d in instance.data):
        x[support] = _support_vectors(instance, support)
    else:
        x[support] = _general(instance, support)
    return x


def _least_squares(instance: Instance, support: IntArray) -> FloatArray:
    """Solve the stacked weighted rows ``sqrt(c) A_S`` over the rows ``sqrt(lambda) I``."""
    rows, targets = [], []
    for d in instance.data:
        root = np.sqrt(d.weights)
        right = d.target if d.offset is None else d.target - d.offset
        rows.append(root[:, None] * d.array[:, support])
        targets.append((root * right.T).T)
    rows.append(np.diag(np.sqrt(instance.ridge[support])))
    targets.append(np.zeros((support.size, *instance.shape[1:])))
    solution = np.linalg.lstsq(np.concatenate(rows), np.concatenate(targets), rcond=None)[0]
    return np.asarray(solution, dtype=np.float64)


def _support_vectors(instance: Instance, support: IntArray) -> FloatArray:
    r"""Solve the hinge loss with a ridge by its dual, a concave quadratic over a box.

    :math:`\max_{0 \le \alpha \le c} \sum_i \alpha_i - \frac12 \sum_j v_j^2 / \lambda_j` with
    :math:`v = A_S^\top (y \circ \alpha)`, and :math:`x_j = v_j / \lambda_j`.
    """
    (d,) = instance.data
    signed, ridge = d.target[:, None] * d.array[:, support], instance.ridge[support]

    def value_and_slope(a: FloatArray) -> tuple[float, FloatArray]:
        v = signed.T @ a
        return float(0.5 * v @ (v / ridge) - a.sum()), signed @ (v / ridge) - 1.0

    bounds = [(0.0, c) for c in d.weights]
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 0.0, "gtol": 1e-12}
    a = np.zeros(len(signed))
    for _ in range(3):
        a = minimize(
            value_and_slope, a, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        ).x
    return np.asarray(signed.T @ a / ridge, dtype=np.float64)


def _general(instance: Instance, support: IntArray) -> FloatArray:
    """Run L-BFGS on the coordinates of ``support`` to the accuracy of the arithmetic."""
    shape = (support.size, *instance.shape[1:])
    bounds = None
    if instance.box is not None:
        bounds = list(
            zip(
                instance.box.lower[support].ravel(),
                instance.box.upper[support].ravel(),
                strict=True,
            )
        )

    def value_and_slope(v: FloatArray) -> tuple[float, FloatArray]:
        x = np.zeros(instance.shape)
        x[support] = v.reshape(shape)
        ridge = instance.ridge if not instance.matrix else instance.ridge[:, None]
        slope = ridge * x
        for d in instance.data:
            slope += d.array.T @ _slope(d, x)
        return instance.value(x) / unit, slope[support].ravel() / unit

    unit = 1.0
    start = np.zeros(int(np.prod(shape)))
    if bounds is not None:
        start = np.clip(start, *np.array(bounds).T)
    unit = max(float(np.linalg.norm(value_and_slope(start)[1])), 1e-300)
    options = {"maxiter": 5000, "ftol": 0.0, "gtol": 1e-12, "maxcor": 30, "maxls": 60}
    for _ in range(3):  # a restart forgets the curvature that rounding spoilt
        start = minimize(
            value_and_slope, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        ).x
    return np.asarray(start.reshape(shape), dtype=np.float64)


def _slope(d: Data, x: FloatArray) -> FloatArray:
    u = d.array @ x
    return d.loss.gradient(u if d.offset is None else u + d.offset, d.target, d.weights)


def minimise_in_box(
    objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
) -> Point:
    """Minimise on a support within the form's bounds: a restricted solver for small problems.

    The suite hands this to backends where a form has bounds.
    """
    form = objective.form
    if not isinstance(form, SparseRegression) or form.box is None:
        raise TypeError("minimise_in_box is for sparse regressions with bounds.")
    shape = (support.size, *objective.shape[1:])
    lower, upper = form.box.lower[support].ravel(), form.box.upper[support].ravel()

    def value_and_slope(v: FloatArray) -> tuple[float, FloatArray]:
        at = objective.point(support, v.reshape(shape))
        return at.value, objective.restricted_gradient(at, support).ravel()

    first = np.clip(start.x[support].ravel(), lower, upper)
    if not support.size:
        return objective.point(support, first.reshape(shape))
    options = {"maxiter": 2000, "ftol": 0.0, "gtol": 1e-12}
    bounds = list(zip(lower, upper, strict=True))
    best = minimize(
        value_and_slope, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x
    return objective.point(support, np.clip(best, lower, upper).reshape(shape))
