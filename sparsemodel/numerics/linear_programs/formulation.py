r"""A sparse regression without curvature as a linear program, and as a mixed-integer one.

Losses are linear or have kinks. Each piece :math:`\max(l r, h r)` of a residual
:math:`r = a^T x + o - t` is :math:`h s^+ - l s^-` with :math:`r = s^+ - s^-` and both parts
nonnegative; 1-norms are bounded in the same way. A unit ``g`` that is counted has a number ``z_g``
that is 0 or 1, and its coordinates satisfy

.. math:: \mathrm{lower}_j z_g \le x_j \le \mathrm{upper}_j z_g

with bounds that the constraints imply: those of the box, what is left of a row by the bounds on its
other columns, and the extremes of a coordinate over all points of the relaxation that are no worse
than a known one. Where none follows there is no such program.

Unknowns are in units in which they are at most one, and rows in units in which their entries are,
so that tolerances of a solver mean the same for data of any scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np

from sparsemodel.designs import SparseDesign, StackedDesign
from sparsemodel.interfaces import (
    Access,
    Design,
    FloatArray,
    IntArray,
    Piecewise,
    SparseRegression,
    Term,
)
from sparsemodel.numerics.linear_programs.highs import Model, Rows

_PASSES = 10
"""Passes over the rows in which bounds follow from others; most follow in two or three."""
_OUTWARDS = 1e-9
"""Share by which implied bounds are moved outwards, more than rounding and a solver's tolerance."""
_NEAR = 1e-6
"""Share of a radius within which a point is on the sphere, so that its tangent says something."""
_BLOCK = 4096
"""Rows of a design that are read at a time."""


def objections(form: SparseRegression, *, goal: bool = True) -> tuple[str, ...]:
    """Return why a form is no such program, apart from bounds that do not follow.

    Without ``goal`` its objective does not matter.
    """
    out = []
    if goal:
        bent = {t.loss.name for t in form.terms if not is_straight(t)}
        if bent:
            names = ", ".join(sorted(bent))
            out.append(f"needs losses that are linear or have kinks and no curvature, not {names}")
        if np.any(form.ridge):
            out.append("needs an objective without a ridge, which is not linear")
    if form.matrix:
        out.append("cannot solve for a matrix variable")
    region = form.region
    if region is not None and region.spectra:
        out.append("cannot keep bounds on eigenvalues")
    designs = [t.design for t in form.terms if goal]
    if region is not None:
        designs += [part.design for part in region.linear]
        designs += [image.design for image in region.images]
    if not all(Access.MEMORY in design.access for design in designs):
        out.append("needs the entries of all matrices in memory")
    return tuple(out)


def has_round_limits(form: SparseRegression) -> bool:
    """Return whether there are limits on Euclidean norms, or on eigenvalues."""
    region = form.region
    if region is None:
        return False
    return bool(region.balls or region.spectra or any(i.order == 2 for i in region.images))


def has_bounded_minimum(form: SparseRegression) -> bool:
    """Return whether the constraints and a piecewise linear objective bound what is counted.

    False for other objectives, of which this says nothing.
    """
    if objections(form):
        return False
    relaxed = Relaxation.of(form)
    low, high = relaxed.implied()
    return relaxed.has_bounded_levels(relaxed.loose(low, high), low, high)


def is_straight(term: Term) -> bool:
    """Return whether a term is linear, or linear between kinks."""
    soft = cast("Piecewise", term.loss).softness if term.traits.piecewise else 1.0
    return term.target.ndim == 1 and (term.traits.affine or soft == 0.0)


def sparse_entries(design: Design) -> Any:
    """Return the entries of a design as a CSR array; zeros are not stored."""
    from scipy import sparse

    if isinstance(design, SparseDesign):
        return sparse.csr_array(design.array, dtype=np.float64)
    if isinstance(design, StackedDesign):
        total = sparse.csr_array(design.shape)
        for index, block in design.blocks:
            part = sparse_entries(block).tocoo()
            places = (part.coords[0], index[part.coords[1]])
            total = total + sparse.csr_array((part.data, places), shape=design.shape)
        return sparse.csr_array(total)
    blocks = [sparse.csr_array(block) for _, block in design.row_blocks(_BLOCK)]
    return sparse.vstack(blocks, format="csr") if blocks else sparse.csr_array(design.shape)


@final
class _Table:
    """Columns and rows of a program while it is written down."""

    def __init__(self, lower: FloatArray, upper: FloatArray) -> None:
        self.cost, self.lower, self.upper = [np.zeros(lower.size)], [lower], [upper]
        self.columns, self.height = lower.size, 0
        self.low: list[FloatArray] = []
        self.high: list[FloatArray] = []
        self._entries: list[tuple[IntArray, IntArray, FloatArray]] = []

    def add_columns(self, cost: FloatArray, lower: FloatArray, upper: FloatArray) -> IntArray:
        """Add columns and return their places."""
        for held, more in ((self.cost, cost), (self.lower, lower), (self.upper, upper)):
            held.append(more)
        self.columns += cost.size
        return np.arange(self.columns - cost.size, self.columns)

    def add_rows(
        self, parts: Iterable[tuple[Any, IntArray]], low: FloatArray, high: FloatArray
    ) -> IntArray:
        """Add ``low <= sum of part @ x[columns] <= high`` and return the places of these rows."""
        for part, columns in parts:
            held = part.tocoo()
            at = held.coords[0] + self.height, columns[held.coords[1]]
            self._entries.append((*at, held.data))
        self.low.append(low)
        self.high.append(high)
        self.height += low.size
        return np.arange(self.height - low.size, self.height)

    def add_sizes(self, matrix: Any, shift: FloatArray, cost: tuple[FloatArray, FloatArray]) -> Any:
        """Add the positive and negative parts of ``matrix @ x + shift`` at their costs.

        Returns the columns of both and the rows.
        """
        from scipy import sparse

        m = shift.size
        none, nothing, one = np.zeros(m), np.full(m, np.inf), sparse.eye_array(m, format="csr")
        above, below = (self.add_columns(each, none, nothing) for each in cost)
        width = np.arange(matrix.shape[1])
        parts = ((matrix, width), (-one, above), (one, below))
        return above, below, self.add_rows(parts, -shift, -shift)

    def matrix(self) -> Any:
        """Return all rows as a CSR array."""
        from scipy import sparse

        rows, columns, data = (
            np.concatenate([part[i] for part in self._entries]) if self._entries else np.zeros(0)
            for i in range(3)
        )
        shape = (self.height, self.columns)
        at = rows.astype(np.intp), columns.astype(np.intp)
        return sparse.csr_array((data, at), shape=shape)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """The problem without what is counted: a linear program in the form's own units."""

    form: SparseRegression
    cost: FloatArray
    constant: float
    lower: FloatArray
    upper: FloatArray
    rows: Rows
    term_rows: tuple[tuple[IntArray, ...], ...]
    """For each term those of the residuals of each of its pieces; none where it is linear."""
    linear_rows: IntArray
    """Those of ``region.linear``, one after the other."""
    norm_rows: tuple[tuple[IntArray, IntArray], ...]
    """For each limit on a 1-norm those of its terms, and that of their sum."""

    @classmethod
    def of(cls, form: SparseRegression, *, goal: bool = True) -> Relaxation:
        """Write a form down; without ``goal`` its objective is zero."""
        box, p = form.ends.chosen, form.sparsity.size
        counted = form.sparsity.counted
        away = (form.ends.lower > 0.0) | (form.ends.upper < 0.0)
        hull = counted & ~away  # zero is in, where a unit is not chosen
        lower = np.where(hull, np.minimum(box.lower, 0.0), box.lower)
        upper = np.where(hull, np.maximum(box.upper, 0.0), box.upper)
        table, constant = _Table(lower, upper), [form.constant if goal else 0.0]
        term_rows = []
        for term in form.terms if goal else ():
            rows, more = _add_term(table, term)
            term_rows.append(rows)
            constant.append(more)
        linear, norms = [], []
        region = form.region
        for part in () if region is None else region.linear:
            entries = sparse_entries(part.design)
            linear.append(table.add_rows([(entries, np.arange(p))], part.lower, part.upper))
        for index, radius, center in _one_norms(form):
            from scipy import sparse

            matrix = sparse.eye_array(p, format="csr")[index]
            norms.append(_bound_sizes(table, matrix, -center, radius))
        for ball in () if region is None else region.images:
            if ball.order == 1:
                entries = sparse_entries(ball.design)
                norms.append(_bound_sizes(table, entries, ball.shift, ball.radius))
        low, high = (
            np.concatenate(each) if each else np.zeros(0) for each in (table.low, table.high)
        )
        cost, lower, upper = (
            np.concatenate(each) for each in (table.cost, table.lower, table.upper)
        )
        if region is not None:
            for two in region.balls:
                center = np.zeros(two.index.size) if two.center is None else two.center
                lower[two.index] = np.maximum(lower[two.index], center - two.radius)
                upper[two.index] = np.minimum(upper[two.index], center + two.radius)
        return cls(
            form,
            cost,
            math.fsum(constant),
            lower,
            upper,
            Rows(table.matrix(), low, high),
            tuple(term_rows),
            np.concatenate(linear) if linear else np.zeros(0, dtype=np.intp),
            tuple(norms),
        )

    # ---- bounds ------------------------------------------------------------------------------

    def implied(self) -> tuple[FloatArray, FloatArray]:
        """Return bounds of the columns that follow from those of others, row by row."""
        low, high = self.lower.copy(), self.upper.copy()
        table = self.rows.matrix
        if not table.nnz:
            return low, high
        row = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        column, value = table.indices, table.data
        for _ in range(_PASSES):
            before = low.copy(), high.copy()
            for side, ends in ((1.0, self.rows.high), (-1.0, -self.rows.low)):
                c = side * value
                least = np.where(c > 0.0, c * low[column], c * high[column])
                loose = np.isinf(least)
                finite = np.where(loose, 0.0, least)
                count = np.bincount(row, loose, minlength=ends.size)[row]
                total = np.bincount(row, finite, minlength=ends.size)[row]
                size = np.bincount(row, np.abs(finite), minlength=ends.size)[row]
                known = np.isfinite(ends[row]) & (count - loose == 0.0)
                slack = _OUTWARDS * (np.abs(ends[row]) + size)
                with np.errstate(invalid="ignore"):
                    reach = (ends[row] - (total - finite) + slack) / c
                up, down = known & (c > 0.0), known & (c < 0.0)
                np.minimum.at(high, column[up], reach[up])
                np.maximum.at(low, column[down], reach[down])
            low, high = np.minimum(low, before[1]), np.maximum(high, before[0])
            if np.array_equal(low, before[0]) and np.array_equal(high, before[1]):
                break
            settled = [
                np.isclose(new, old, rtol=1e-3, atol=0.0) | (np.isinf(new) & (new == old))
                for new, old in zip((low, high), before, strict=True)
            ]
            if all(each.all() for each in settled):
                break
        p = self.form.sparsity.size
        hull = self.form.sparsity.counted & (self.lower[:p] <= 0.0) & (self.upper[:p] >= 0.0)
        low[:p] = np.where(hull, np.minimum(low[:p], 0.0), low[:p])
        high[:p] = np.where(hull, np.maximum(high[:p], 0.0), high[:p])
        return low, high

    def loose(self, low: FloatArray, high: FloatArray) -> IntArray:
        """Return the counted coordinates without a bound on a side."""
        ends = (high - low)[: self.form.sparsity.size]
        return np.flatnonzero(self.form.sparsity.counted & ~np.isfinite(ends))

    def has_bounded_levels(self, loose: IntArray, low: FloatArray, high: FloatArray) -> bool:
        r"""Return whether columns ``loose`` are bounded where the objective is.

        They are unless the cone of directions ``d`` with :math:`c^T d \le 0` along which all
        constraints hold for ever has one that moves them: a random linear function of them is zero
        on the cone, both ways.
        """
        if not loose.size:
            return True
        rng = np.random.default_rng(0)
        goal = np.zeros(self.cost.size)
        goal[loose] = rng.uniform(0.5, 1.0, loose.size) * rng.choice([-1.0, 1.0], loose.size)
        unit = self.units(low, high)
        least = np.where(np.isfinite(low), 0.0, -1.0)
        most = np.where(np.isfinite(high), 0.0, 1.0)
        rows, _ = self.scaled(unit)
        sides = [np.where(np.isfinite(end), 0.0, end) for end in (rows.low, rows.high)]
        cone = self._with_level(Rows(rows.matrix, *sides), unit, 0.0)
        model = Model(goal, least, most, cone)
        for sign in (1.0, -1.0):
            model.set_costs(np.arange(goal.size), sign * goal)
            if not model.run().bound >= -1e-7:
                return False
        return True

    def bounded(
        self,
        wanted: IntArray,
        low: FloatArray,
        high: FloatArray,
        level: float,
        deadline: float | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds of columns ``wanted`` where the objective is at most ``level``.

        Two linear programs for each column; what is not solved in time stays as it is.
        """
        low, high, unit = low.copy(), high.copy(), self.units(low, high)
        goal = np.zeros(self.cost.size)
        rows = self._with_level(self.scaled(unit)[0], unit, level - self.constant)
        model = Model(goal, low / unit, high / unit, rows)
        for j in wanted:
            for sign, ends in ((1.0, low), (-1.0, high)):
                model.set_costs(np.array([j]), np.array([sign]))
                found = model.run(deadline)
                if found.status == "optimal":
                    end = sign * found.bound * unit[j]
                    end -= sign * (1e-6 * abs(end) + 1e-6 * unit[j])
                    ends[j] = max(ends[j], end) if sign > 0.0 else min(ends[j], end)
                elif found.status == "limit":
                    return low, high
            model.set_costs(np.array([j]), np.array([0.0]))
        return low, high

    def units(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return powers of two in which the columns are at most about one."""
        sizes = np.maximum(np.abs(low), np.abs(high))
        known = np.isfinite(sizes) & (sizes > 0.0)
        ends = np.abs(np.concatenate([self.rows.low, self.rows.high]))
        ends = ends[np.isfinite(ends) & (ends > 0.0)]
        reach = float(ends.max(initial=0.0)) or 1.0
        largest = np.zeros(self.cost.size)
        np.maximum.at(largest, self.rows.matrix.indices, np.abs(self.rows.matrix.data))
        guess = np.divide(reach, largest, out=np.ones(largest.size), where=largest > 0.0)
        return np.exp2(np.ceil(np.log2(np.where(known, sizes, guess))))

    def scaled(self, unit: FloatArray) -> tuple[Rows, FloatArray]:
        """Return the rows for columns in those units, by factors with which entries are near one.

        The factors are powers of two.
        """
        from scipy import sparse

        rows = self.rows
        matrix = rows.matrix * unit
        largest = (
            abs(matrix).max(axis=1).toarray().ravel() if matrix.nnz else np.zeros(rows.low.size)
        )
        size = np.exp2(-np.round(np.log2(np.where(largest > 0.0, largest, 1.0))))
        matrix = sparse.csr_array(sparse.diags_array(size) @ matrix)
        return Rows(matrix, size * rows.low, size * rows.high), size

    def _with_level(self, rows: Rows, unit: FloatArray, level: float) -> Rows:
        """Return rows with one more: the objective is at most ``level``."""
        from scipy import sparse

        cost = self.cost * unit
        size = float(np.abs(cost).max(initial=0.0)) or 1.0
        if not np.isfinite(level):
            return rows
        last = sparse.csr_array(cost[None, :] / size)
        ends = np.append(rows.low, -np.inf), np.append(rows.high, level / size)
        return Rows(sparse.vstack([rows.matrix, last], format="csr"), *ends)


def _add_term(table: _Table, term: Term) -> tuple[tuple[IntArray, ...], float]:
    """Add a term; return the rows of its residuals and its constant."""
    design, offset = term.design, term.offset
    if term.traits.affine:
        slopes = term.slopes()
        table.cost[0] = table.cost[0] + design.rmatvec_in_double(slopes)
        return (), 0.0 if offset is None else math.fsum(slopes * offset)
    matrix, rows = sparse_entries(design), []
    for kink, low, high in cast("Piecewise", term.loss).pieces(term.target):
        shift = -kink if offset is None else offset - kink
        rows.append(table.add_sizes(matrix, shift, (term.weights * high, -term.weights * low))[2])
    return tuple(rows), 0.0


def _one_norms(form: SparseRegression) -> Iterable[tuple[IntArray, float, FloatArray]]:
    for ball in () if form.region is None else form.region.one_norms:
        center = np.zeros(ball.index.size) if ball.center is None else ball.center
        yield ball.index, ball.radius, center


def _bound_sizes(
    table: _Table, matrix: Any, shift: FloatArray, radius: float
) -> tuple[IntArray, IntArray]:
    """Add ``|matrix @ x + shift|_1 <= radius``; return the rows of its terms, and of the sum."""
    from scipy import sparse

    none = np.zeros(shift.size)
    above, below, sizes = table.add_sizes(matrix, shift, (none, none))
    ones = sparse.csr_array(np.ones((1, shift.size)))
    ends = np.array([-np.inf]), np.array([radius])
    return sizes, table.add_rows([(ones, above), (ones, below)], *ends)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """What a run proposes."""

    status: str
    """That of the run, see :class:`~sparsemodel.numerics.linear_programs.highs.Answer`."""
    bound: float
    """What no point is below, by HiGHS' own account."""
    units: IntArray | None = None
    x: FloatArray | None = None


@final
class Choice:
    """The mixed-integer program of a form, in units of its own.

    Columns are those of the relaxation, then one for each unit that is counted.

    Parameters
    ----------
    relaxed
        The problem without what is counted.
    low, high
        Bounds of its columns. Where all coordinates that are counted have finite ones, every point
        of the problem is one of the program.
    nodes
        Limit on the nodes of a run.
    """

    def __init__(
        self,
        relaxed: Relaxation,
        low: FloatArray,
        high: FloatArray,
        nodes: int | None = None,
    ) -> None:
        form = relaxed.form
        sparsity, p = form.sparsity, form.sparsity.size
        self.relaxed, self._unit = relaxed, relaxed.units(low, high)
        self._width, self._units = relaxed.cost.size, sparsity.units
        cost = np.concatenate([relaxed.cost * self._unit, self._prices()])
        self._size = float(np.abs(cost).max(initial=0.0)) or 1.0
        rows, self._factors = self._rows(low[:p], high[:p])
        lower = np.concatenate([low / self._unit, np.zeros(self._units)])
        upper = np.concatenate([high / self._unit, np.ones(self._units)])
        whole = np.arange(lower.size) >= self._width
        self._model = Model(cost / self._size, lower, upper, rows, whole, nodes)
        self._plain = Model(cost / self._size, lower, upper, rows)

    def _prices(self) -> FloatArray:
        sparsity = self.relaxed.form.sparsity
        return np.array(np.broadcast_to(sparsity.unit_price, (sparsity.units,)), dtype=np.float64)

    def _rows(self, low: FloatArray, high: FloatArray) -> tuple[Rows, FloatArray]:
        """Return the relaxation's rows, those that link coordinates to units, and the limits.

        And the factors of the first.
        """
        from scipy import sparse

        form = self.relaxed.form
        sparsity = form.sparsity
        known, factors = self.relaxed.scaled(self._unit)
        padded = sparse.hstack(
            [known.matrix, sparse.csr_array((known.low.size, self._units))], format="csr"
        )
        counted, unit_of = np.flatnonzero(sparsity.counted), sparsity.unit_of
        own, scale = unit_of[counted], self._unit[counted]
        chosen = form.ends.chosen
        low, high = np.maximum(low, chosen.lower)[counted], np.minimum(high, chosen.upper)[counted]
        blocks, lows, highs = [padded], [known.low], [known.high]
        for end, sides in ((low, (0.0, np.inf)), (high, (-np.inf, 0.0))):
            on = np.flatnonzero(np.isfinite(end))
            values = np.concatenate([np.ones(on.size), -end[on] / scale[on]])
            columns = np.concatenate([counted[on], self._width + own[on]])
            at = np.tile(np.arange(on.size), 2), columns
            shape = on.size, self._width + self._units
            blocks.append(sparse.csr_array((values, at), shape=shape))
            lows.append(np.full(on.size, sides[0]))
            highs.append(np.full(on.size, sides[1]))
        limits, most = self._limits()
        whole = Rows(
            sparse.vstack([*blocks, limits], format="csr"),
            np.concatenate([*lows, np.full(most.size, -np.inf)]),
            np.concatenate([*highs, most]),
        )
        return whole, factors

    def _limits(self) -> tuple[Any, FloatArray]:
        """Return the rows of limits on units, and their right sides."""
        from scipy import sparse

        sparsity, units = self.relaxed.form.sparsity, self._units
        rows: list[tuple[IntArray, FloatArray]] = []
        most: list[float] = []

        def add(on: IntArray, values: FloatArray, top: float) -> None:
            rows.append((on, values))
            most.append(top)

        add(np.arange(units), np.ones(units), float(sparsity.budget))
        for crossing in (False, True):
            for among, top in sparsity.limited_sets(crossing=crossing):
                add(among, np.ones(among.size), float(top))
        for knapsack in sparsity.knapsacks:
            size = float(knapsack.costs.max(initial=0.0)) or 1.0
            add(np.arange(units), knapsack.costs / size, knapsack.most / size)
        for child, *parents in [] if sparsity.order is None else sparsity.order.as_lists:
            if -1 in parents:
                continue
            on, values = np.array(parents, dtype=np.intp), -np.ones(len(parents))
            if child >= 0:
                on, values = np.append(on, child), np.append(values, 1.0)
            add(on, values, 0.0 if child >= 0 else -1.0)
        ends = np.cumsum([0, *(on.size for on, _ in rows)])
        on = np.concatenate([on for on, _ in rows]) + self._width
        values = np.concatenate([values for _, values in rows])
        shape = (len(rows), self._width + units)
        return sparse.csr_array((values, on, ends), shape=shape), np.array(most)

    # ---- solving -----------------------------------------------------------------------------

    def begin_at(self, units: IntArray) -> None:
        """Begin with a choice of units, whose best point HiGHS completes."""
        z = np.zeros(self._units)
        z[units] = 1.0
        self._model.begin_at(np.arange(self._width, self._width + self._units), z)

    def run(self, deadline: float | None) -> Proposal:
        """Return the best choice of units, and what no point is below."""
        answer = self._model.run(deadline)
        bound = answer.bound * self._size + self.relaxed.constant
        if answer.x is None:
            return Proposal(answer.status, bound)
        units = np.flatnonzero(answer.x[self._width :] > 0.5)
        p = self.relaxed.form.sparsity.size
        return Proposal(answer.status, bound, units, (answer.x[: self._width] * self._unit)[:p])

    def vertex(self, units: IntArray) -> FloatArray | None:
        """Return a minimiser where these units are chosen; None where none is found."""
        z = np.zeros(self._units)
        z[units] = 1.0
        self._plain.set_bounds(np.arange(self._width, self._width + self._units), z, z)
        answer = self._plain.run()
        if answer.x is None or answer.status != "optimal":
            return None
        sparsity = self.relaxed.form.sparsity
        x = np.zeros(sparsity.size)
        support = sparsity.coordinates(units)
        x[support] = answer.x[support] * self._unit[support]
        return x

    @property
    def scale(self) -> float:
        """Return a size of objectives: the largest cost of a column at its bound."""
        return self._size

    def relaxation(self, deadline: float | None) -> tuple[FloatArray, FloatArray, bool] | None:
        """Return a minimiser with shares of units, and the multipliers of the relaxation's rows.

        Where there is no point, multipliers of a sum of rows that no point satisfies, by one, and
        whether that is so. None where neither is found.
        """
        answer = self._plain.run(deadline)
        p, own = self.relaxed.form.sparsity.size, self._factors.size
        if answer.status == "optimal" and answer.x is not None and answer.slopes is not None:
            slopes = -self._size * self._factors * answer.slopes[:own]
            return (answer.x[: self._width] * self._unit)[:p], slopes, False
        ray = self._plain.ray() if answer.status == "infeasible" else None
        if ray is None:
            return None
        return np.zeros(p), -self._factors * ray[:own], True

    # ---- cuts --------------------------------------------------------------------------------

    def exclude(self, units: IntArray, *, subsets: bool) -> None:
        """Exclude a choice of units, with all that are part of it or alone."""
        z = np.zeros(self._units, dtype=bool)
        z[units] = True
        columns = np.arange(self._width, self._width + self._units)
        if subsets:
            others = columns[~z]
            self._add(others, np.ones(others.size), 1.0, np.inf)
        else:
            self._add(columns, np.where(z, -1.0, 1.0), 1.0 - units.size, np.inf)

    def _cut(self, slope: FloatArray, most: float) -> None:
        """Add ``slope @ x <= most``."""
        on = np.flatnonzero(slope)
        values = slope[on] * self._unit[on]
        size = float(np.abs(values).max(initial=0.0)) or 1.0
        self._add(on, values / size, -np.inf, most / size)

    def _add(self, columns: IntArray, values: FloatArray, low: float, high: float) -> None:
        for model in (self._model, self._plain):
            model.add_row(columns, values, low, high)

    def cut_norms(self, x: FloatArray) -> None:
        """Add the tangents of limits on Euclidean norms that ``x`` reaches."""
        region = self.relaxed.form.region
        for ball in () if region is None else region.balls:
            away = x[ball.index] - (0.0 if ball.center is None else ball.center)
            size = float(np.linalg.norm(away))
            if size > (1.0 - _NEAR) * ball.radius and size > 0.0:
                slope = np.zeros(x.size)
                slope[ball.index] = away / size
                center = 0.0 if ball.center is None else float(away @ ball.center) / size
                self._cut(slope, ball.radius + center)
        for image in () if region is None else region.images:
            if image.order == 1:
                continue
            away = image.design.matvec_in_double(x) + image.shift
            size = float(np.linalg.norm(away))
            if size > (1.0 - _NEAR) * image.radius and size > 0.0:
                slope = image.design.rmatvec_in_double(away / size)
                self._cut(slope, image.radius - float(away @ image.shift) / size)
