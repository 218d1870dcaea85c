r"""Whether any support of the allowed size admits a feasible point: mixed-integer linear programs.

With :math:`z_u \in \{0, 1\}` for each unit and bounds :math:`l_j z_u \le x_j \le u_j z_u` that the
constraints imply, linear constraints and 1-norms are linear as they are, and Euclidean norms are
replaced by tangents,

.. math:: \frac{(C \bar x + s)^T}{\|C \bar x + s\|} (C x + s) \le r ,

at the points :math:`\bar x` where they turn out to be exceeded (outer approximation; Duran and
Grossmann, Mathematical Programming 36, 1986). Each program is a relaxation, so one without a
solution proves that there is no feasible point; one with a solution names a support, on which the
constraints are tried themselves. A support that fails is excluded with all its subsets.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Objective,
    Point,
    Region,
    RestrictedSolver,
    SparseRegression,
)
from sparsemodel.numerics.budget import TOO_LONG, budget

_ASSUMED = 1e3
"""Size of entries that no constraint bounds, in units of the ends: without it no program has big
bounds. What it excludes is not proved."""
_GAP = 0.05
"""Share of the largest sum of sizes that a support may fall short of."""
_TANGENT = 1e-7
"""Excess over a norm's limit, relative to it, from which a tangent is added."""
_FEW = 500
"""Supports up to which each is tried, for which no bounds on the entries are needed."""
_ALWAYS = -1
"""Stands for a unit that is always in, where units need others."""
_TANGENTS = 100
"""Tangents on one support at most; where they do not decide it, nothing is proved."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What is known of there being a feasible point."""

    point: Point | None = None
    """A feasible point."""
    impossible: str = ""
    """Of what kind of points it is proved that none is feasible; empty where nothing is."""


def feasible_support(
    objective: Objective, restricted: RestrictedSolver, sizes: FloatArray | None
) -> Decision:
    """Return a feasible point on an allowed support, of large ``sizes``; or that there is none.

    Parameters
    ----------
    objective, restricted
        Of the run.
    sizes
        Of the units in the minimiser without a limit; the support has a large sum of them. None
        where nothing is known.
    """
    form = objective.form
    if not isinstance(form, SparseRegression) or form.matrix:
        return Decision()
    if form.region is not None and form.region.spectra:
        return Decision()
    left = budget().limit
    deadline = time.perf_counter() + (TOO_LONG if left is None else left)
    programs = _Programs(form, sizes)
    if programs.convex_is_empty():
        return Decision(impossible="with any number of nonzero entries")
    proof = Decision(impossible=f"with at most {form.sparsity.k} nonzero entries")
    if programs.each_is_refuted(deadline):
        return proof
    programs.bound_entries(deadline)
    origin, proved = objective.origin(), not programs.assumed
    while (seconds := deadline - time.perf_counter()) > 0.0:
        infeasible, x = programs.solve(seconds)
        if infeasible:
            return proof if proved else Decision()
        if x is None:
            break
        if programs.cut_at(x):
            continue
        support = form.sparsity.coordinates(programs.units)
        point = restricted(objective, support, origin)
        if np.isfinite(point.value):
            return Decision(point)
        # One that is not refuted may be feasible by a hair, and the minimiser missed it.
        proved &= programs.refuted(support)
        programs.excluded.append(programs.units)
    return Decision()


@dataclass(frozen=True, slots=True, eq=False)
class _Norm:
    """``||C x + s|| <= radius``, in the units of the programs."""

    matrix: FloatArray
    shift: FloatArray
    radius: float


class _Programs:
    """The programs of one form: entries ``x``, units ``z``, and sizes ``t`` of 1-norms."""

    def __init__(self, form: SparseRegression, sizes: FloatArray | None) -> None:
        self._form, self._sparsity = form, form.sparsity
        region = form.region or Region()
        rows = [(part.design.to_array(), part.lower, part.upper) for part in region.linear]
        p = form.sparsity.size
        ones: list[tuple[FloatArray, FloatArray, float]] = []
        norms: list[tuple[FloatArray, FloatArray, float]] = []
        for ball in region.every_ball:
            matrix = np.zeros((ball.index.size, p))
            matrix[np.arange(ball.index.size), ball.index] = 1.0
            center = np.zeros(ball.index.size) if ball.center is None else ball.center
            kind = norms if any(ball is one for one in region.balls) else ones
            kind.append((matrix, -center, ball.radius))
        for image in region.images:
            kind = ones if image.order == 1 else norms
            kind.append((image.design.to_array(), image.shift, image.radius))
        ends = form.ends.chosen
        self.unit = _unit_of(rows, ends.lower, ends.upper, [*ones, *norms])
        self._norms = [_Norm(m, s / self.unit, r / self.unit) for m, s, r in norms]
        self.assumed = False
        self._p, self._t = p, sum(m.shape[0] for m, _, _ in ones)
        self._lower, self._upper = ends.lower / self.unit, ends.upper / self.unit
        self._sizes = sizes
        self.excluded: list[IntArray] = []
        """Supports that are known to be infeasible."""
        self.units: IntArray = np.empty(0, dtype=np.intp)
        """Those of the last solution."""
        self._rows: list[FloatArray] = []
        self._low: list[FloatArray] = []
        self._high: list[FloatArray] = []
        for matrix, low, high in rows:
            size = np.abs(matrix).max(axis=1, initial=0.0)
            size[size == 0.0] = 1.0
            self._add(matrix / size[:, None], low / size / self.unit, high / size / self.unit)
        first = 0
        for matrix, shift, radius in ones:
            m = matrix.shape[0]
            t = np.zeros((m, self._t))
            t[np.arange(m), first + np.arange(m)] = 1.0
            shift = shift / self.unit
            for sign in (1.0, -1.0):
                self._add(np.hstack([sign * matrix, -t]), np.full(m, -np.inf), -sign * shift)
            total = np.zeros((1, p + self._t))
            total[0, p + first : p + first + m] = 1.0
            self._add(total, np.array([-np.inf]), np.array([radius / self.unit]))
            first += m
        for norm in self._norms:  # no entry of an image is larger than its norm
            self._add(norm.matrix, -norm.radius - norm.shift, norm.radius - norm.shift)

    def _add(self, matrix: FloatArray, low: FloatArray, high: FloatArray) -> None:
        wide = np.zeros((matrix.shape[0], self._p + self._t))
        wide[:, : matrix.shape[1]] = matrix
        self._rows.append(wide)
        self._low.append(low)
        self._high.append(high)

    @property
    def _linear(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        if not self._rows:
            width = self._p + self._t
            return np.zeros((0, width)), np.zeros(0), np.zeros(0)
        return np.concatenate(self._rows), np.concatenate(self._low), np.concatenate(self._high)

    def _program(self, cost: FloatArray, lower: FloatArray, upper: FloatArray) -> Any:
        """Return the solution of the convex relaxation within bounds on the entries."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        t = np.zeros(self._t)
        bounds = Bounds(np.concatenate([lower, t]), np.concatenate([upper, t + np.inf]))
        matrix, low, high = self._linear
        rows = LinearConstraint(matrix, low, high) if matrix.shape[0] else ()
        return milp(np.concatenate([cost, t]), constraints=rows, bounds=bounds)

    @property
    def _loose(self) -> tuple[FloatArray, FloatArray]:
        """Return bounds on the entries, zero allowed for those that are counted."""
        counted = self._sparsity.counted
        return (
            np.where(counted, np.minimum(self._lower, 0.0), self._lower),
            np.where(counted, np.maximum(self._upper, 0.0), self._upper),
        )

    def _empty(self, lower: FloatArray, upper: FloatArray) -> bool | None:
        """Return whether nothing is within bounds and region; None where that stays open.

        Solutions of programs are corners, so tangents are also taken at their mean.
        """
        mean = np.zeros(self._p)
        for number in range(1, _TANGENTS + 1):
            found = self._program(np.zeros(self._p), lower, upper)
            if found.status == 2:
                return True
            if found.x is None:
                return None
            x = found.x[: self._p]
            mean += (x - mean) / number
            if not self.cut_at(x):
                return False
            self.cut_at(mean)
        return None

    def convex_is_empty(self) -> bool:
        """Return whether it is proved that no point satisfies the constraints."""
        return self._empty(*self._loose) is True

    def refuted(self, support: IntArray) -> bool:
        """Return whether it is proved that no point on a support satisfies the constraints."""
        off = np.ones(self._p, dtype=bool)
        off[support] = False
        lower, upper = np.where(off, 0.0, self._lower), np.where(off, 0.0, self._upper)
        return self._empty(lower, upper) is True

    def bound_entries(self, deadline: float) -> None:
        """Give every counted entry the bounds that the constraints imply."""
        lower, upper = self._loose
        for j in np.flatnonzero(self._sparsity.counted):
            for sign, ends in ((1.0, lower), (-1.0, upper)):
                if np.isfinite(ends[j]):
                    continue
                cost = np.zeros(self._p)
                cost[j] = sign
                found = None
                if time.perf_counter() < deadline:
                    found = self._program(cost, *self._loose)
                if found is not None and found.status == 0:
                    ends[j] = sign * found.fun - sign * 1e-6 * (1.0 + abs(found.fun))
                else:
                    self.assumed = True
                    ends[j] = -sign * _ASSUMED
        counted = self._sparsity.counted
        self._lower = np.where(counted & ~np.isfinite(self._lower), lower, self._lower)
        self._upper = np.where(counted & ~np.isfinite(self._upper), upper, self._upper)

    def cut_at(self, x: FloatArray) -> bool:
        """Add tangents of the norms that are exceeded at a point; return whether there are some."""
        cut = False
        for norm in self._norms:
            image = norm.matrix @ x + norm.shift
            size = float(np.linalg.norm(image))
            if size <= norm.radius + _TANGENT * max(norm.radius, size):
                continue
            slope = image / size
            end = np.array([norm.radius - slope @ norm.shift])
            self._add((slope @ norm.matrix)[None], np.array([-np.inf]), end)
            cut = True
        return cut

    def each_is_refuted(self, deadline: float) -> bool:
        """Return whether there are few supports, and none of them admits a feasible point."""
        sparsity, box = self._sparsity, self._form.box
        smaller = not sparsity.plain or (box is not None and box.least is not None)
        sizes = range(0 if smaller else sparsity.budget, sparsity.budget + 1)
        if sum(math.comb(sparsity.units, size) for size in sizes) > _FEW:
            return False
        for each in chain.from_iterable(combinations(range(sparsity.units), s) for s in sizes):
            units = np.array(each, dtype=np.intp)
            if time.perf_counter() >= deadline:
                return False
            if sparsity.within(units) and not self.refuted(sparsity.coordinates(units)):
                return False
        return True

    def solve(self, seconds: float) -> tuple[bool, FloatArray | None]:
        """Return whether the program is proved infeasible, and its solution."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        p, t, units = self._p, self._t, self._sparsity.units
        matrix, low, high = self._linear
        blocks = [np.hstack([matrix, np.zeros((matrix.shape[0], units))])]
        lows, highs = [low], [high]

        def add(on_x: FloatArray, on_z: FloatArray, below: FloatArray, above: FloatArray) -> None:
            blocks.append(np.hstack([on_x, np.zeros((on_x.shape[0], t)), on_z]))
            lows.append(below)
            highs.append(above)

        of = self._sparsity.unit_of
        counted = np.flatnonzero(of >= 0)
        q = counted.size
        on_x, on_z = np.zeros((q, p)), np.zeros((q, units))
        on_x[np.arange(q), counted] = 1.0
        for end, below, above in (
            (self._lower, np.zeros(q), np.full(q, np.inf)),
            (self._upper, np.full(q, -np.inf), np.zeros(q)),
        ):
            on_z = np.zeros((q, units))
            on_z[np.arange(q), of[counted]] = -end[counted]
            add(on_x, on_z, below, above)
        for on, most in self._counts():
            nothing = np.zeros((1, p))
            add(nothing, on[None], np.array([-np.inf]), np.array([most]))
        lower = np.where(of >= 0, np.minimum(self._lower, 0.0), self._lower)
        upper = np.where(of >= 0, np.maximum(self._upper, 0.0), self._upper)
        bounds = Bounds(
            np.concatenate([lower, np.zeros(t + units)]),
            np.concatenate([upper, np.full(t, np.inf), np.ones(units)]),
        )
        cost = np.zeros(p + t + units)
        if self._sizes is not None and self._sizes.max(initial=0.0) > 0.0:
            cost[p + t :] = -self._sizes / self._sizes.max()
        found = milp(
            cost,
            integrality=np.concatenate([np.zeros(p + t), np.ones(units)]),
            bounds=bounds,
            constraints=LinearConstraint(
                np.concatenate(blocks), np.concatenate(lows), np.concatenate(highs)
            ),
            options={"time_limit": seconds, "mip_rel_gap": _GAP},
        )
        if found.x is None:
            return found.status == 2, None
        self.units = np.flatnonzero(found.x[p + t :] > 0.5)
        return False, found.x[:p]

    def _counts(self) -> list[tuple[FloatArray, float]]:
        """Return the limits on what is chosen: sums of units and what they are at most."""
        sparsity = self._sparsity
        units = sparsity.units
        out = [(np.ones(units), float(sparsity.budget))]
        for layer in sparsity.layers:
            for number, most in enumerate(layer.most.tolist()):
                out.append(((layer.sets == number).astype(float), float(most)))
        out += [(knapsack.costs, float(knapsack.most)) for knapsack in sparsity.knapsacks]
        if sparsity.order is not None:
            for child, *parents in sparsity.order.as_lists:
                if _ALWAYS in parents:
                    continue
                on = np.zeros(units)
                on[[parent for parent in parents if parent >= 0]] = -1.0
                if child >= 0:
                    on[child] = 1.0
                out.append((on, 0.0 if child >= 0 else -1.0))
        least = self._form.box is not None and self._form.box.least is not None
        for known in self.excluded:  # and where entries have no least sizes, all its subsets
            on = -np.ones(units)
            on[known] = 1.0 if least else 0.0
            out.append((on, known.size - 1.0 if least else -1.0))
        return out


def _unit_of(rows: list[Any], lower: FloatArray, upper: FloatArray, norms: list[Any]) -> float:
    """Return the size that the ends of constraints have, which programs are to see as one."""
    ends: list[FloatArray] = [lower, upper]
    for matrix, low, high in rows:
        size = np.abs(matrix).max(axis=1, initial=0.0)
        size[size == 0.0] = 1.0
        ends += [low / size, high / size]
    ends += [np.array([radius]) for _, _, radius in norms]
    known = np.abs(np.concatenate([end[np.isfinite(end)] for end in ends]))
    return float(known.max(initial=0.0)) or 1.0
