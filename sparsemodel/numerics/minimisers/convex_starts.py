r"""Starts from what is convex: the problem without a limit on the support, rounded to supports.

Units that constraints tie together are large together in the minimiser :math:`x` over all units, so
its largest ones, by the scale-free size :math:`h_j x_j^2`, are often a support on which the
constraints can be met. Where they are none, the feasible support of the largest sum of sizes is
sought (:mod:`~sparsemodel.numerics.minimisers.feasible_supports`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Objective,
    Point,
    RestrictedSolver,
    SparseRegression,
    coordinate_scores,
)
from sparsemodel.numerics.budget import TOO_LONG, budget, rate
from sparsemodel.numerics.minimisers.feasible_supports import Decision, feasible_support
from sparsemodel.numerics.objectives.regression import RegressionObjective
from sparsemodel.numerics.support.selection import best_units, select_scores
from sparsemodel.numerics.support.units import support_units

_STEPS = 50.0
"""Newton steps of a minimisation within constraints, about."""
_FLAT = 1e-3
"""Ridge of the convex problem where rows are fewer than columns, as a share of the curvatures: its
minimiser is not unique otherwise."""

_TOGETHER = 32
"""Units that are searched together, of which a branch and bound is over soon."""
_PAIRS = 8
"""Pairs of tied units, the largest first, that have a start each: no exchange of one unit brings a
pair in."""
_BLOCK = 64
"""Rows that are read at a time."""


@final
class ConvexStarts:
    """The convex problem behind a form, and points that its minimiser is rounded to.

    Parameters
    ----------
    objective, restricted
        Of the run.
    """

    def __init__(self, objective: Objective, restricted: RestrictedSolver) -> None:
        self._objective, self._restricted = objective, restricted
        self._points: list[Point] | None = None

    @cached_property
    def _curvatures(self) -> FloatArray:
        """Return the sums of squares of the columns, ridge added: what sizes are measured in."""
        form = self._form
        squares = form.ridge.copy()
        for term in form.terms:
            squares += term.design.column_square_norms(term.weights)
        return squares

    @property
    def _form(self) -> SparseRegression:
        form = self._objective.form
        if not isinstance(form, SparseRegression):
            raise TypeError("convex starts are for regressions")
        return form

    @cached_property
    def _easier(self) -> Objective:
        """Return the objective, with some ridge where it has many minimisers without a limit."""
        form = self._form
        rows = sum(term.design.shape[0] for term in form.terms)
        if rows >= form.sparsity.size or not isinstance(self._objective, RegressionObjective):
            return self._objective
        least = _FLAT * self._curvatures
        ridge = np.where(form.sparsity.counted, np.maximum(form.ridge, least), form.ridge)
        return RegressionObjective(replace(form, ridge=ridge), work=self._objective.work)

    @cached_property
    def relaxed(self) -> Point | None:
        """Return the minimiser over all units; None where that takes long, or none was found.

        Of a large problem over those that promise most at zero.
        """
        form = self._form
        origin = self._easier.origin()
        found = self._restricted(self._easier, self._pool, origin)
        if np.isfinite(found.value) or self._pool.size == form.sparsity.size:
            return found if np.isfinite(found.value) else None
        return None

    @cached_property
    def _pool(self) -> IntArray:
        """Return the coordinates that the convex problem has."""
        form, sparsity = self._form, self._form.sparsity
        rows = sum(term.design.shape[0] for term in form.terms)
        # A step costs about n q^2 + q^3.
        operations = rate() * 0.1 * TOO_LONG / _STEPS
        most = int(min((operations / max(rows, 1)) ** 0.5, operations ** (1.0 / 3.0)))
        most = max(most, 3 * sparsity.budget)
        if sparsity.units <= most:
            return np.arange(sparsity.size)
        return select_scores(sparsity.relaxed().with_budget(most), self._promises())

    def _promises(self) -> FloatArray:
        """Return what each coordinate promises alone at zero, more where constraints hold it."""
        slopes = coordinate_scores(self._objective.gradient(self._objective.origin()))
        out, curved = np.zeros_like(slopes), self._curvatures > 0.0
        np.divide(slopes, self._curvatures, out=out, where=curved)
        return out

    def sizes(self, x: FloatArray) -> FloatArray:
        """Return the scale-free size of ``x`` in each unit."""
        return self._form.sparsity.unit_scores(coordinate_scores(x) * self._curvatures)

    def points(self) -> list[Point]:
        """Return the minimisers on the supports that rounding leads to, feasible ones alone."""
        if self._points is None:
            self._points = list(self._rounded())
        return self._points

    def _rounded(self) -> Iterator[Point]:
        sparsity, tried = self._form.sparsity, set[bytes]()
        origin = self._objective.origin()
        for support in self._supports():
            if support.tobytes() in tried:
                continue
            tried.add(support.tobytes())
            point = self._restricted(self._objective, support, origin)
            if np.isfinite(point.value) and sparsity.within(sparsity.active_units(point.x)):
                yield point
            if budget().over():
                return

    def _supports(self) -> Iterator[IntArray]:
        """Yield the largest units, those that are left by halves, and those without the region."""
        form, sparsity, relaxed = self._form, self._form.sparsity, self.relaxed
        if relaxed is None:
            return
        yield sparsity.coordinates(best_units(sparsity, self.sizes(relaxed.x)))
        sizes = self.sizes(relaxed.x)
        together = self._with_ties(sizes)
        yield sparsity.coordinates(together)
        pairs = [pair for pair in self._partners.pairs if not np.isin(pair, together).all()]
        for pair in sorted(pairs, key=lambda pair: -float(sizes[pair].sum()))[:_PAIRS]:
            yield sparsity.coordinates(self._with_ties(sizes, pair))
        halved = self._halved(relaxed)
        if halved is not None:
            yield halved
        if form.region is not None and isinstance(self._objective, RegressionObjective):
            bare = RegressionObjective(
                replace(cast("SparseRegression", self._easier.form), region=None)
            )
            loose = self._restricted(bare, self._pool, bare.origin())
            if np.all(np.isfinite(loose.x)):
                yield sparsity.coordinates(best_units(sparsity, self.sizes(loose.x)))

    def _with_ties(self, sizes: FloatArray, first: IntArray | None = None) -> IntArray:
        """Return the largest units, each with those that an equation of two entries ties it to.

        One without the other is zero, and takes the place of a third. Those that are given come
        ``first``.
        """
        sparsity, chosen = self._form.sparsity, np.empty(0, dtype=np.intp)
        order = np.argsort(-sizes, kind="stable")
        for unit in (order if first is None else np.concatenate([first, order])).tolist():
            if chosen.size >= sparsity.budget:
                break
            more = np.union1d(chosen, self._partners.of(unit, sparsity.units, most=2))
            if sparsity.within(more):
                chosen = more
        return chosen

    @cached_property
    def _partners(self) -> _Partners:
        return _Partners(self._form)

    def _halved(self, point: Point) -> IntArray | None:
        """Return what is left where half of the units leave at a time, the others refitted."""
        sparsity = self._form.sparsity
        size = min(sparsity.units, self._pool.size)
        while size > sparsity.budget:
            size = max(sparsity.budget, size // 2)
            wider = sparsity.with_budget(size) if size > sparsity.budget else sparsity
            if not wider.plain and size > sparsity.budget:
                wider = wider.relaxed()
            support = select_scores(wider, coordinate_scores(point.x) * self._curvatures)
            if size == sparsity.budget:
                return support
            point = self._restricted(self._easier, support, point)
            if not np.isfinite(point.value):
                return None
        return None

    def linked(self, objective: Objective, point: Point) -> IntArray:
        """Return units that are worth a search together with those of ``point``, sorted.

        In turn the largest of the convex problem, those with the best prices where multipliers of
        the constraints count, and where they do not; each with the units that it shares a
        constraint with, if these are few.
        """
        sparsity = self._form.sparsity
        chosen = dict.fromkeys(support_units(sparsity, point.support).tolist())
        most = min(sparsity.units, max(_TOGETHER, len(chosen) + _TOGETHER // 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = objective.gradient(point)
            priced = slopes if point.normal is None else slopes + point.normal
            lists = [
                sparsity.unit_scores(np.nan_to_num(coordinate_scores(g) / self._curvatures))
                for g in (priced, slopes)
            ]
        if self.relaxed is not None:
            lists.insert(0, self.sizes(self.relaxed.x))
        orders = [np.argsort(-scores, kind="stable").tolist() for scores in lists]
        for unit in (unit for each in zip(*orders, strict=True) for unit in each):
            if len(chosen) >= most:
                break
            if unit not in chosen:
                chosen.update(dict.fromkeys(self._partners.of(unit, most - len(chosen))))
        return np.array(sorted(chosen), dtype=np.intp)

    def decided(self) -> Decision:
        """Return a feasible point of the limit, or what is known of there being none."""
        relaxed = self.relaxed
        sizes = None if relaxed is None else self.sizes(relaxed.x)
        return feasible_support(self._objective, self._restricted, sizes)


class _Partners:
    """Units that share linear constraints with few entries."""

    def __init__(self, form: SparseRegression) -> None:
        self._rows: list[set[int]] = []
        unit_of = form.sparsity.unit_of
        for part in () if form.region is None or form.matrix else form.region.linear:
            for _, entries in part.design.row_blocks(_BLOCK):
                for row in entries:
                    units = unit_of[np.flatnonzero(row)]
                    self._rows.append(set(units[units >= 0].tolist()))

    @property
    def pairs(self) -> list[IntArray]:
        """Return the units of constraints on two of them."""
        known = {tuple(sorted(row)) for row in self._rows if len(row) == 2}
        return [np.array(pair, dtype=np.intp) for pair in sorted(known)]

    def of(self, unit: int, room: int, most: float = np.inf) -> list[int]:
        """Return a unit and the others of its rows, as far as each row finds room.

        Of rows with at most ``most`` units alone.
        """
        out = {unit: None}
        for row in self._rows:
            if unit in row and len(row) <= most and len(row | out.keys()) <= room:
                out.update(dict.fromkeys(sorted(row)))
        return list(out)
