r"""Squared losses beside linear constraints: points with slopes, and curvature of pairs.

Rows are equations :math:`A x + s = b` with a slack :math:`0 \le s \le m` for every inequality,
which is a coordinate that is always in. Where :math:`M = H + \Lambda - \Delta - N` and
:math:`M + \sum_e \rho_e a_e a_e'` is positive semidefinite, ``N`` with :math:`N_{ij} x_i x_j \ge 0`
by the signs of coordinates, every ``v`` and ``y`` prove

.. math:: P(x) \ge c_0 + b'y - \tfrac12 v'Mv - \tfrac12 \sum_e \rho_e (a_e'v - b_e)^2
          - \sum_{x_i \ne 0} \max_x (r_i x - \tfrac12 \Delta_i x^2), \qquad r = g + A'y - M v,

because :math:`(x - v)'M(x - v) \ge -\sum_e \rho_e (a_e'(x - v))^2` and :math:`A x = b`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparsemodel.checker import files
from sparsemodel.checker.files import require
from sparsemodel.checker.proof.arithmetic import TINY, UNIT, Ball, high, less, low, total
from sparsemodel.checker.proof.constraints import implied
from sparsemodel.checker.proof.problem import Problem
from sparsemodel.checker.proof.quadratic import has_curvature


class Equations:
    """The quadratic of a problem and its rows, slacks after its coordinates."""

    def __init__(self, problem: Problem, rows: tuple[Any, Any, Any]) -> None:
        """``problem`` has the bounds that the rows imply."""
        matrix, least, most = rows
        fits = problem.squares and problem.single
        require(fits, "slopes beside a point, and losses that are no squares or groups")
        lower, upper = implied(problem, *rows, ~problem.counted)
        self.problem = problem = replace(problem, lower=lower, upper=upper)
        p = problem.shape[0]
        self.sign = np.where(np.isfinite(most), 1.0, -1.0)
        matrix, right = self.sign[:, None] * matrix, np.where(self.sign > 0.0, most, -least)
        ends = [end.copy() for end in problem.chosen]
        for _, parents in problem.supports.order:  # in with others also where they are zero
            on = problem.counted & np.isin(problem.unit, parents)
            ends[0][on], ends[1][on] = np.minimum(ends[0][on], 0.0), np.maximum(ends[1][on], 0.0)
        inner = np.where(matrix > 0.0, np.minimum(ends[0], 0.0), np.maximum(ends[1], 0.0))
        sums = np.where(matrix != 0.0, matrix * np.where(matrix != 0.0, inner, 0.0), 0.0)
        size = np.abs(sums).sum(axis=1) + np.abs(right)
        reach = right - sums.sum(axis=1) + 1e-12 * size
        span = np.where(self.sign > 0.0, most - least, np.inf)
        slack = np.flatnonzero(least < most)
        far = np.maximum(np.minimum(reach, span), 0.0)[slack]
        self.low = np.concatenate([ends[0], np.zeros(far.size)])
        self.high = np.concatenate([ends[1], far])
        self.count, columns = self.low.size, np.zeros((right.size, slack.size))
        columns[slack, np.arange(slack.size)] = 1.0
        self.rows = problem.number(np.hstack([matrix, columns]))
        self.right = problem.number(right)
        # The quadratic, with zeros for slacks.
        h: Any = problem.number(np.zeros((p, p)))
        g: Any = problem.number(np.zeros(p))
        self.constant = problem.constant
        for term in problem.terms:
            if term.loss.name == "squared_loss":
                y = term.y - term.o
                h, g = h + term.A.T @ (term.c[:, None] * term.A), g + term.A.T @ (term.c * y)
                self.constant = self.constant + total(term.c * y * y) / 2
            else:
                g = g - term.A.T @ (term.c * term.y)
                self.constant = self.constant + total(term.c * term.y * term.o)
        h = h + problem.ridge[:, None] * np.eye(p)
        wide = np.eye(p, self.count)
        self.hessian, self.linear = wide.T @ (h @ wide), wide.T @ g

    def stage(self, stage: Any) -> tuple[Any, Any, Any, Any]:
        """Return the coordinates of a stage, ``D``, ``N`` and ``rho``; refuse what cannot be."""
        member, taken = np.zeros(self.count, dtype=bool), np.zeros(self.count)
        active = files.index(stage["active"], self.count)
        member[active], taken[active] = True, files.numbers(stage["delta"])
        rho, n = files.numbers(stage["stiffness"]), np.zeros((self.count, self.count))
        first, second, each = stage["pairs"]
        values = files.numbers(each)
        require(len(first) == len(second) == len(values), "pairs of a stage do not fit")
        sign = np.where(self.low >= 0.0, 1.0, np.where(self.high <= 0.0, -1.0, 0.0))
        for i, j, value in zip(first, second, values.tolist(), strict=True):
            fits = type(i) is int and type(j) is int and 0 <= i < j < self.count and n[i, j] == 0.0
            require(fits and member[i] and member[j], "a pair of a stage is not there")
            positive = bool(np.isfinite(value)) and value * sign[i] * sign[j] > 0.0
            require(positive, "curvature of a pair is taken whose product may be negative")
            n[i, j] = n[j, i] = value
        fits = rho.shape == self.right.shape and bool(np.all(np.isfinite(rho) & (rho >= 0.0)))
        require(fits and np.all(np.isfinite(taken)), "curvature of a stage is not finite")
        h = self.hessian + self.rows.T @ (self.hessian.like(rho)[:, None] * self.rows)
        h = (h - n + np.diag(np.maximum(-taken, 0.0)))[member][:, member]
        fits = has_curvature(h, np.maximum(taken, 0.0)[member])
        require(fits, "the data do not have the curvature that is taken out")
        return member, taken, n, rho

    def bound(self, stage: tuple[Any, Any, Any, Any], v: Any, slopes: Any, alive: Any) -> Any:
        """Return what a point and slopes prove: a number before units gain, and their gains."""
        _, taken, n, rho = stage
        require(slopes.shape == self.right.shape, "the slopes do not fit the constraints")
        require(np.all(np.isfinite(slopes)), "a slope of the tree is not finite")
        number, y = self.problem.number, self.problem.number(-self.sign * slopes)
        on = np.flatnonzero(v)
        point = number(v[on])
        moved = self.hessian[:, on] @ point - number(n[:, on]) @ point - number(taken) * number(v)
        off = self.rows[:, on] @ point - self.right
        base = self.constant + total(self.right * y) - total(point * moved[on]) / 2
        base = base - total(number(rho) * off * off) / 2
        r = self.linear + self.rows.T @ y - moved
        gains = np.where(alive, self._gains(r, taken), 0 if self.problem.exact else 0.0)
        p = self.problem.shape[0]
        free = np.append(~self.problem.counted, np.ones(self.count - p, dtype=bool))
        return less(low(base), gains[free].tolist()), self.problem.per_unit(gains[:p])

    def _gains(self, r: Ball, taken: Any) -> Any:
        """Return upper bounds on what coordinates gain; convex in ``r``."""
        number, out = self.problem.number, np.full(self.count, -np.inf)
        for slope in (low(r), high(r)):
            d = number(taken).mid
            some = taken > 0.0
            peak = np.where(some, slope / np.where(some, d, 1), self.low)
            peak = np.minimum(np.maximum(peak, self.low), self.high)
            for end in (peak, self.low, self.high):
                endless = np.abs(end.astype(float)) == np.inf
                x = number(np.where(endless, 0, end))
                most = high(number(slope) * x - number(d) * x * x / 2)
                if not self.problem.exact:  # the peak is rounded itself
                    most = most + 2.0 * UNIT * np.abs(slope * x.mid) + TINY * (x.mid != 0.0)
                # Beyond all ends a negative slope, or curvature, loses.
                falls = some | ((taken == 0.0) & (slope * np.sign(end.astype(float)) < 0))
                falls |= (taken == 0.0) & (slope == 0)
                out = np.maximum(out, np.where(endless, np.where(falls, -np.inf, np.inf), most))
        return np.where((r.mid == 0) & (r.rad == 0.0) & (taken == 0.0), 0, out)
