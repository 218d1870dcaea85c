r"""Minimise a quadratic on a support with linear constraints: few solves, no rounds of multipliers.

With active rows :math:`C v = b` on the support, Hessian ``H`` and gradient ``g`` at a point, and
columns ``Z`` that span the null space of ``C``,

.. math:: v^* = v + s + Z u, \qquad C s = b - C v, \qquad Z^T H Z u = -Z^T (g + H s)

(Nocedal and Wright, *Numerical Optimization*, 2006, section 16.2). Equations are active; of bounds
and inequalities the one that is violated most joins them, and those whose multipliers have the
wrong sign leave, until there are none. Where that satisfies the other constraints, too, it is the
minimiser with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, Objective, Point, SparseRegression
from sparsemodel.numerics.minimisers.feasible import inside
from sparsemodel.numerics.objectives.regression import RegressionObjective

_DEPENDENT = 1e-10
"""Pivots and singular values below this share of the largest are left to the method of multipliers,
after columns and rows were brought to one size."""

_EXACT = 1e-12
"""Relative violation that counts as rounding."""

_SMALL = 100
"""Coordinates up to which active rows are sought."""


def minimise_with_equations(objective: Objective, support: IntArray, start: Point) -> Point | None:
    """Return the minimiser on ``support`` within the form's constraints, where this finds it.

    None where losses are not quadratic, active rows depend on each other, the Hessian is singular
    beside them, a set of active rows comes again, or a constraint is active that is not linear.

    Notes
    -----
    :math:`O(n q^2 + q^3)` for ``q`` coordinates and every change of the active rows; of more than
    :data:`_SMALL` nothing but the equations is tried.
    """
    if not isinstance(objective, RegressionObjective) or len(objective.shape) > 1:
        return None
    form = objective.form
    if form.region is None or not support.size:
        return None
    if not form.traits.quadratic or not objective.explicit_hessian(support):
        return None
    rows = _Rows.of(form, support)
    at = objective.point(support, start.x[support])
    found = rows.active(
        objective.hessian(at, support), objective.restricted_gradient(at, support), at.x[support]
    )
    if found is None:
        return None
    steps, side = found
    matrix, aims = rows.on(side)
    for _ in range(2):
        v = at.x[support]
        slopes = objective.restricted_gradient(at, support)
        at = objective.point(support, rows.held(v + steps.step(aims - matrix @ v, slopes)))
    if not (inside(form.box, at.x, 0.0) and form.region.violation(at.x) <= _EXACT):
        return None
    y = np.zeros(side.size)
    y[side != 0] = steps.multipliers(objective.restricted_gradient(at, support))
    normal, first = np.zeros(form.sparsity.size), 0
    for part in form.region.linear:
        last = first + part.lower.size
        normal += part.design.rmatvec(y[first:last])
        first = last
    return replace(at, normal=normal, duals=objective.prediction_gradients(at))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Linear constraints on a support, then the bounds on its coordinates."""

    matrix: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, form: SparseRegression, support: IntArray) -> _Rows:
        parts, q = () if form.region is None else form.region.linear, support.size
        ends = form.ends_on(support)
        entries = [part.design.restrict(support).to_array() for part in parts]
        return cls(
            np.concatenate([*entries, np.eye(q)]),
            np.concatenate([*(part.lower for part in parts), ends.lower]),
            np.concatenate([*(part.upper for part in parts), ends.upper]),
        )

    def on(self, side: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the active rows, and the ends that they are at."""
        active = side != 0
        return self.matrix[active], np.where(side > 0, self.upper, self.lower)[active]

    def held(self, v: FloatArray) -> FloatArray:
        """Return values within the bounds, which they may miss by rounding."""
        return np.asarray(np.clip(v, self.lower[-v.size :], self.upper[-v.size :]))

    def active(
        self, hessian: FloatArray, slopes: FloatArray, v: FloatArray
    ) -> tuple[_Steps, IntArray] | None:
        """Return which rows are active at the minimum, 1 above and -1 below; None for not found.

        ``slopes`` is the gradient at ``v``.
        """
        equal = self.lower == self.upper
        side, seen = equal.astype(np.int8), set[bytes]()
        units = np.sqrt(np.diag(hessian))
        ends = [np.where(np.isfinite(end), np.abs(end), 0.0) for end in (self.lower, self.upper)]
        while side.tobytes() not in seen and np.count_nonzero(side) <= v.size:
            seen.add(side.tobytes())
            matrix, aims = self.on(side)
            steps = _Steps.of(hessian, matrix)
            if steps is None:
                return None
            move = steps.step(aims - matrix @ v, slopes)
            y = np.zeros(side.size)
            y[side != 0] = steps.multipliers(slopes + hessian @ move)
            wrong = ~equal & (y * side < 0.0)
            if wrong.any():
                side[wrong] = 0
                continue
            there = v + move
            value, reach = self.matrix @ there, np.max(units * np.abs(there)) / units
            size = np.abs(self.matrix) @ reach + ends[0] + ends[1] + 1e-300
            over = np.maximum(value - self.upper, self.lower - value) / size
            over[side != 0] = 0.0
            worst = int(np.argmax(over))
            if over[worst] <= _EXACT:
                return steps, side
            if v.size > _SMALL:
                return None
            side[worst] = 1 if value[worst] > self.upper[worst] else -1
        return None


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
        if not np.all(sizes > 0.0) or not np.all(np.isfinite(scaled)):
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
