r"""What a record proves of a quadratic with linear constraints, every rounding counted.

With equations :math:`A x + s = b`, slacks :math:`s \ge 0` of inequalities among the coordinates,
curvature :math:`\Delta` of coordinates, :math:`N` of pairs of known signs (:math:`N_{ij} x_i x_j
\ge 0`), and :math:`H + \Lambda - \Delta - N + \sum_e \rho_e a_e a_e^T` positive semidefinite, any
:math:`v` and :math:`y` prove

.. math:: P(x) \ge c_0 + b^T y - \tfrac12 v^T M v - \tfrac12 \sum_e \rho_e (a_e^T v - b_e)^2
          - \sum_{x_i \ne 0} \max_x \left( r_i x - \tfrac12 \Delta_i x^2 \right), \qquad
          r = g + A^T y - M v ,

with :math:`M = H + \Lambda - \Delta - N`: :math:`(x - v)^T M (x - v) \ge -\sum_e \rho_e (a_e^T v -
b_e)^2` where the equations hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import TINY, U, gamma
from sparsemodel.certificates.dual_bounds.diagonal_shift import certainly_psd
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.proving.node import Minorant
from sparsemodel.certificates.proving.quadratic.problem import Extended
from sparsemodel.interfaces import FloatArray, SparseRegression


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowStage:
    """Curvature that may be taken out of some coordinates, slacks among them."""

    member: Any
    delta: FloatArray
    pairs: FloatArray
    """``N``, with a row and a column for every coordinate."""
    stiffness: FloatArray


@final
class RowProblem:
    """A quadratic and its equations, as the data have them."""

    def __init__(self, form: SparseRegression, quadratic: Quadratic) -> None:
        self.q = quadratic if quadratic.bare is None else quadratic.bare
        self.rows = Extended.of(form)
        ends = self.rows.ends
        own = np.flatnonzero(self.rows.slack)
        self.matrix, self.size = self.rows.whole(), form.sparsity.size
        self.low = np.concatenate([ends.lower, np.zeros(own.size)])
        self.high = np.concatenate([ends.upper, self.rows.most[own]])

    @property
    def coordinates(self) -> int:
        """Return how many coordinates there are, slacks among them."""
        return int(self.low.size)

    def stage(
        self, member: Any, delta: FloatArray, stiffness: FloatArray, pairs: Any
    ) -> RowStage | None:
        """Return a stage; None where the data do not have this curvature.

        ``pairs`` are two coordinates each and a number.

        Raises
        ------
        ValueError
            When signs are wrong.
        """
        i, j, taken = pairs
        sign = np.where(self.low >= 0.0, 1.0, np.where(self.high <= 0.0, -1.0, 0.0))
        n = np.zeros((delta.size, delta.size))
        n[i, j] = n[j, i] = taken
        fits = stiffness.shape == self.rows.right.shape and np.all(member[i] & member[j])
        fits = fits and np.all(i != j) and np.all(np.isfinite(stiffness) & (stiffness >= 0.0))
        fits = fits and np.unique(i * delta.size + j).size == i.size
        if not fits or not np.all(taken * sign[i] * sign[j] > 0.0):
            raise ValueError("curvature of pairs is taken out where their product may be negative")
        on = np.flatnonzero(member)
        h = np.zeros((delta.size, delta.size))
        h[: self.size, : self.size] = self.q.hessian
        h[np.arange(self.size), np.arange(self.size)] += self.q.ridge
        h += (self.matrix.T * stiffness) @ self.matrix - n
        sums = self.q.rows + 2 * stiffness.size + 128
        if not (self.q.sound and certainly_psd(h[np.ix_(on, on)], delta[on], sums)):
            return None
        return RowStage(member, delta, n, stiffness)

    def minorant(
        self, stage: RowStage, alive: Any, v: FloatArray, slopes: FloatArray, caution: float
    ) -> Minorant | None:
        """Return what a point and slopes of the rows prove, over all coordinates.

        ``alive`` says which coordinates may be nonzero; ``v`` is zero elsewhere.
        """
        q, p, rows = self.q, self.size, self.rows
        if slopes.shape != rows.right.shape or not np.all(np.isfinite(slopes)):
            raise ValueError("slopes do not fit the constraints")
        y = -rows.sign * slopes
        on = np.flatnonzero(v)
        values, data = v[on], on[on < p]
        x = v[data]
        count, m = on.size, y.size
        mv, error = np.zeros(v.size), np.zeros(v.size)
        weight = float(np.sum(q.norms[data] * np.abs(x))) * (1.0 + gamma(count + 8))
        mv[:p] = x @ q.hessian[data]
        error[:p] = (q.unit + gamma(count + 8)) * (1.0 + 2.0 * q.unit) * weight * q.norms
        own = np.zeros(v.size)
        own[:p] = q.ridge
        pairs, size = stage.pairs[:, on] @ values, np.abs(stage.pairs[:, on]) @ np.abs(values)
        error += gamma(count + 8) * size
        size += (np.abs(own) + np.abs(stage.delta)) * np.abs(v)
        size[:p] += np.abs(mv[:p])
        mv = mv + own * v - stage.delta * v - pairs
        error += 16.0 * U * size
        r, spread = -mv, error.copy()
        r[:p] += q.linear
        spread[:p] += q.unit * q.aim * q.norms
        pull, reach = y @ self.matrix, np.abs(y) @ np.abs(self.matrix)
        spread += gamma(m + 8) * reach + 16.0 * U * (np.abs(r) + reach)
        r = r + pull
        left = rows.right - self.matrix[:, on] @ values
        away = gamma(count + 8) * (np.abs(self.matrix[:, on]) @ np.abs(values) + np.abs(rows.right))
        squares = stage.stiffness * np.square(np.abs(left) + away)
        parts = [rows.right * y, -0.5 * values * mv[on], -0.5 * squares]
        base = math.fsum([q.lowest_constant, *np.concatenate(parts).tolist()])
        slack = float(np.sum(np.abs(values) * error[on]))
        slack += 16.0 * U * float(sum(np.abs(part).sum() for part in parts))
        slack += 16.0 * U * (abs(q.lowest_constant) + abs(base)) + TINY * (count + m + 1.0)
        base -= caution * slack * (1.0 + 1e-12)
        gains = _gains(r, caution * spread + TINY, stage.delta, self.low, self.high)
        gains = np.where(alive, gains, 0.0)
        if not math.isfinite(base) or np.any(np.isnan(gains)):
            return None
        return Minorant(base, gains)


def _gains(
    r: FloatArray, spread: FloatArray, d: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    r"""Return upper bounds on :math:`\max r x - d x^2/2` between the ends, ``d`` of any sign.

    Convex in ``r``, so that the largest value is at an end of its interval. An exact zero stays.
    """
    exact = (r == 0.0) & (d == 0.0) & (spread <= TINY)
    out = np.full(r.size, -np.inf)
    with np.errstate(all="ignore"):
        for slope in (r - spread * (1.0 + 4.0 * U), r + spread * (1.0 + 4.0 * U)):
            slope = slope + np.where(slope > r, 2.0, -2.0) * U * np.abs(slope)
            peak = np.clip(np.where(d > 0.0, slope / np.where(d > 0.0, d, 1.0), low), low, high)
            for x in (peak, low, high):
                linear, square = slope * x, 0.5 * (d * x) * x
                value = linear - square
                value += 16.0 * U * (np.abs(linear) + np.abs(square)) + TINY * (1.0 + np.abs(x))
                endless = np.isinf(x)
                falls = endless & ((d > 0.0) | ((d == 0.0) & (slope * np.sign(x) < 0.0)))
                value = np.where(endless, np.where(falls, -np.inf, np.inf), value)
                out = np.maximum(out, value)
    return np.where(exact, 0.0, out)
