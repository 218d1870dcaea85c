"""Points of a quadratic with linear constraints, by exchanges of units priced exactly."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.certificates.proving.quadratic.problem import QuadraticProblem
from sparsemodel.interfaces import BoolArray, FloatArray, IntArray

_WIDTH = 8
"""Of all units that may take the place of one, the best priced ones that are refitted."""

_PASSES = 40
"""Exchanges at most."""

_FEASIBLE = 1e-7
"""What equations may be off, relative to the size of the largest, of points that are not the final
ones: of a row whose coordinates are all zero the own size says nothing."""

_ZERO = 1e-8
"""Share of the largest weight that is zero, where it may be: what the kernel leaves equations off
by. Two weights in a row whose right side is zero would else never cancel."""

_BETTER = 1e-8
"""Share of the objective that an exchange has to be worth."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The minimum on a support."""

    value: float
    w: FloatArray
    """In the problem's coordinates."""
    y: FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Bare:
    """A support as a stage of the kernel: nothing is taken out."""

    matrix: FloatArray
    rows: FloatArray
    of: FloatArray
    row: FloatArray


@final
class Exchange:
    """Search of supports by exchanges; each is refitted once."""

    def __init__(self, problem: QuadraticProblem, solve: Any) -> None:
        """``solve`` solves a node."""
        self._problem, self._solve = problem, solve
        self._fits: dict[bytes, Fit | None] = {}
        trace = float(np.trace(problem.matrix))
        squares = np.maximum(np.square(problem.rows).sum(axis=1), 1e-300)
        self._tau = 10.0 * trace / squares
        self._y = np.zeros(problem.right.size)
        self._tried: set[bytes] = set()
        self.best: float = math.inf
        self.x: FloatArray | None = None

    def fitted(self, support: IntArray) -> Fit | None:
        """Return the minimum on a support of coordinates; None where nothing is feasible."""
        problem = self._problem
        on = np.union1d(support, problem.always).astype(np.intp)
        key = on.tobytes()
        if key not in self._fits:
            self._fits[key] = self._minimum(on)
        return self._fits[key]

    def _minimum(self, on: IntArray) -> Fit | None:
        p = self._problem
        low, high = p.low[on], p.high[on]
        if np.any(low > high):
            return None
        matrix, rows = (
            np.ascontiguousarray(p.matrix[np.ix_(on, on)]),
            np.ascontiguousarray(p.rows[:, on]),
        )
        of = np.column_stack([p.linear[on], np.zeros(on.size), low, high])
        stage = _Bare(matrix, rows, of, np.column_stack([p.right, p.caps, self._tau]))
        middle = np.where(
            np.isfinite(low + high),
            0.5 * (low + np.minimum(high, low + 1.0)),
            np.clip(0.0, low, high),
        )
        start = (middle, self._y.copy(), 0.0)
        status = np.ones(on.size, np.int8)
        found = self._solve(stage, status, 0, start, math.inf, rounds=30, tol=1e-11)
        w, y = found[4], found[2]
        size = np.abs(rows) @ np.abs(w) + np.abs(p.right)
        if np.any(np.abs(rows @ w - p.right) > _FEASIBLE * size.max(initial=0.0)):
            return None
        self._y = y
        full = np.zeros(p.linear.size)
        full[on] = w
        value = float(w @ matrix @ w + of[:, 0] @ w) + p.constant
        return Fit(value, full, y)

    def point(self, fit: Fit) -> FloatArray:
        """Return the point of a fit with its equations to the last digit, on the same ends."""
        p = self._problem
        on = np.union1d(np.flatnonzero(fit.w), p.always)
        matrix, rows, right = p.matrix[np.ix_(on, on)], p.rows[:, on], p.right
        of = np.column_stack([p.linear[on], np.zeros(on.size), p.low[on], p.high[on]])
        full, w, y = np.zeros(p.linear.size), fit.w[on], fit.y
        small = np.abs(w) <= _ZERO * np.abs(w).max(initial=0.0)
        w[small & (p.low[on] <= 0.0) & (p.high[on] >= 0.0)] = 0.0
        for _ in range(3):
            low, high = of[:, 2], of[:, 3]
            inner = (w > low) & (w < high)
            if not inner.any():
                break
            system = _system(matrix, rows, inner)
            off = np.concatenate(
                [-(2.0 * matrix @ w + of[:, 0] - rows.T @ y)[inner], right - rows @ w]
            )
            step = np.linalg.lstsq(system, off, rcond=1e-14)[0]
            moved = w.copy()
            moved[inner] += step[: inner.sum()]
            clipped = np.clip(moved, low, high)
            y = y - step[inner.sum() :]
            w = clipped
            if np.array_equal(moved, clipped) and np.abs(off).max() < 1e-14:
                break
        full[on] = w
        return (full * p.unit)[: p.size]

    def improve(self, units: IntArray, deadline: float | None = None) -> None:
        """Exchange units one by one while that is better, and keep the best point."""
        sparsity = self._problem.form.sparsity
        units = np.sort(units)
        key = units.tobytes()
        here = self._of(units)
        if key in self._tried or here is None:
            return
        value = here.value + sparsity.charge(units)
        for _ in range(_PASSES):
            self._tried.add(units.tobytes())
            better = self._step(units, value, deadline)
            if better is None or better[0].tobytes() in self._tried:
                break
            units, value = better
        found = self._of(units)
        if found is not None and value < self.best:
            self.best, self.x = value, self.point(found)

    def _of(self, units: IntArray) -> Fit | None:
        return self.fitted(self._problem.counted[units])

    def _step(
        self, units: IntArray, value: float, deadline: float | None
    ) -> tuple[IntArray, float] | None:
        """Return the first better neighbour: one unit out, in, or exchanged; None where none is."""
        sparsity = self._problem.form.sparsity
        outs: list[int | None] = [*units.tolist()]
        if units.size < sparsity.budget:
            outs.append(None)
        for out in outs:
            if deadline is not None and time.perf_counter() >= deadline:
                return None
            rest = units if out is None else units[units != out]
            fit = self._of(rest)
            base = self._of(units) if fit is None else fit
            if fit is not None and out is not None and sparsity.within(rest):
                own = fit.value + sparsity.charge(rest)
                if own < value - _BETTER * abs(value):
                    return rest, own
            if base is None:
                continue
            scores = self._scores(rest, base)
            scores[units] = -math.inf
            for unit in np.argsort(-scores, kind="stable")[:_WIDTH]:
                if scores[unit] == -math.inf:
                    break
                trial = np.sort(np.append(rest, unit))
                if not sparsity.within(trial):
                    continue
                found = self._of(trial)
                if found is None:
                    continue
                own = found.value + sparsity.charge(trial)
                if own < value - _BETTER * abs(value):
                    return trial, own
        return None

    def _scores(self, units: IntArray, fit: Fit) -> FloatArray:
        """Return about how much each further unit lowers the objective, the others refitted.

        The curvature of a step is the Schur complement of the equations and of what may move.
        """
        p = self._problem
        w, counted = fit.w, p.counted
        inner = (w > p.low) & (w < p.high) & (w != 0.0)
        slope = 2.0 * p.matrix @ w + p.linear - p.rows.T @ fit.y
        own = 2.0 * np.diag(p.matrix)
        system = _system(p.matrix, p.rows, inner)
        size = int(inner.sum())
        system[size:, size:] -= 1e-9 * np.eye(p.right.size) * max(float(own.mean()), 1e-300) ** -1
        columns = np.concatenate([2.0 * p.matrix[inner], p.rows])
        try:
            curve = own - np.einsum("ij,ij->j", columns, np.linalg.solve(system, columns))
        except np.linalg.LinAlgError:
            curve = own
        curve = np.maximum(curve, 1e-6 * own + 1e-300)[counted]
        step = np.clip(-slope[counted] / curve, p.low[counted], p.high[counted])
        return np.asarray(-(slope[counted] * step + 0.5 * curve * step * step))


def _system(matrix: FloatArray, rows: FloatArray, inner: BoolArray) -> FloatArray:
    """Return the matrix of the optimality conditions of what may move."""
    a = rows[:, inner]
    size = a.shape[0]
    return np.block([[2.0 * matrix[np.ix_(inner, inner)], a.T], [a, np.zeros((size, size))]])
