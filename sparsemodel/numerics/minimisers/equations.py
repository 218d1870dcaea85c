r"""Minimise a quadratic on a support with linear equations: one solve, no rounds of multipliers.

With :math:`C v = b` on the support, Hessian ``H`` and gradient ``g`` at a point, and columns ``Z``
that span the null space of ``C``,

.. math:: v^* = v + s + Z u, \qquad C s = b - C v, \qquad Z^T H Z u = -Z^T (g + H s)

(Nocedal and Wright, *Numerical Optimization*, 2006, section 16.2). Where what comes out satisfies
the other constraints, too, it is the minimiser with them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, Linear, Objective, Point
from sparsemodel.numerics.minimisers.feasible import inside
from sparsemodel.numerics.objectives.regression import RegressionObjective

_DEPENDENT = 1e-10
"""Pivots and singular values below this share of the largest are left to the method of multipliers,
after columns and rows were brought to one size."""

_EXACT = 1e-12
"""Relative violation that counts as rounding."""


def minimise_with_equations(objective: Objective, support: IntArray, start: Point) -> Point | None:
    """Return the minimiser on ``support`` within the form's constraints, where this finds it.

    None where losses are not quadratic, rows depend on each other, the Hessian is singular beside
    them, or a bound or an inequality is active.

    Notes
    -----
    :math:`O(n q^2 + q^3)` for ``q`` coordinates, and as much again for one refinement.
    """
    if not isinstance(objective, RegressionObjective) or len(objective.shape) > 1:
        return None
    form = objective.form
    if form.region is None or not support.size:
        return None
    if not form.traits.quadratic or not objective.explicit_hessian(support):
        return None
    rows = [(part, part.lower == part.upper) for part in form.region.linear]
    entries = [part.design.restrict(support).to_array()[equal] for part, equal in rows]
    matrix = np.concatenate([np.zeros((0, support.size)), *entries])
    if len(matrix) > support.size:
        return None
    aims = np.concatenate([np.zeros(0), *(part.lower[equal] for part, equal in rows)])
    at = objective.point(support, start.x[support])
    steps = _Steps.of(objective.hessian(at, support), matrix)
    if steps is None:
        return None
    for _ in range(2):
        v = at.x[support]
        slopes = objective.restricted_gradient(at, support)
        at = objective.point(support, v + steps.step(aims - matrix @ v, slopes))
    if not (inside(form.box, at.x, 0.0) and form.region.violation(at.x) <= _EXACT):
        return None
    multipliers = steps.multipliers(objective.restricted_gradient(at, support))
    return replace(
        at,
        normal=_normal(rows, multipliers, form.sparsity.size),
        duals=objective.prediction_gradients(at),
    )


class _Steps:
    """The factors of one Hessian with its equations, coordinates and rows of one size."""

    def __init__(
        self, hessian: FloatArray, sizes: tuple[FloatArray, FloatArray], svd: tuple[FloatArray, ...]
    ) -> None:
        (self._scale, self._rows), (u, s, vt) = sizes, svd
        self._hessian = hessian
        self._onto = vt[: s.size].T @ (u.T / s[:, None])  # the shortest step that meets the rows
        self._null = vt[s.size :].T
        self._inverse = np.linalg.inv(self._null.T @ hessian @ self._null)

    @classmethod
    def of(cls, hessian: FloatArray, matrix: FloatArray) -> _Steps | None:
        """Return the factors; None where they are singular."""
        diagonal = np.diag(hessian)
        if not np.all(diagonal > 0.0) or not np.all(np.isfinite(hessian)):
            return None
        scale = 1.0 / np.sqrt(diagonal)
        scaled = matrix * scale
        sizes = np.linalg.norm(scaled, axis=1)
        if not np.all(sizes > 0.0):
            return None
        u, s, vt = np.linalg.svd(scaled / sizes[:, None])
        hessian = hessian * np.multiply.outer(scale, scale)
        null = vt[s.size :].T
        least = np.linalg.eigvalsh(null.T @ hessian @ null).min(initial=1.0)
        if s.min(initial=1.0) < _DEPENDENT or least < _DEPENDENT:
            return None
        return cls(hessian, (scale, sizes), (u, s, vt))

    def step(self, missing: FloatArray, slopes: FloatArray) -> FloatArray:
        """Return the step that adds ``missing`` to the rows and ends at the minimiser."""
        onto = self._onto @ (missing / self._rows)
        slopes = self._scale * slopes + self._hessian @ onto
        return self._scale * (onto - self._null @ (self._inverse @ (self._null.T @ slopes)))

    def multipliers(self, slopes: FloatArray) -> FloatArray:
        """Return what the rows are to be multiplied by for the slopes to vanish."""
        return np.asarray(-(self._onto.T @ (self._scale * slopes)) / self._rows)


def _normal(
    rows: list[tuple[Linear, FloatArray]], multipliers: FloatArray, size: int
) -> FloatArray:
    """Return what the multipliers add to the gradient, for all coordinates."""
    out, at = np.zeros(size), 0
    for part, equal in rows:
        y = np.zeros(equal.size)
        y[equal] = multipliers[at : at + int(equal.sum())]
        at += int(equal.sum())
        out += part.design.rmatvec(y)
    return out
