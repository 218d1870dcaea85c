r"""Exchanges of units priced by a second-order model at a minimiser over its support.

Exact for quadratics without bounds. Units may be groups: with ``I`` the coordinates of the one
that leaves and ``J`` those of the one that enters, numbers become blocks,

.. math:: P = (B_{II})^{-1}, \quad r_J' = r_J + Q_{IJ}^\top P w_I, \quad
          S_J' = S_J + Q_{IJ}^\top P\, Q_{IJ}, \quad
          \mathrm{gain} = r_J'^\top S_J'^{-1} r_J' - w_I^\top P\, w_I .
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import (
    Box,
    FloatArray,
    IntArray,
    Linear,
    Objective,
    Point,
    SparseRegression,
    Term,
)
from sparsemodel.losses import SquaredLoss
from sparsemodel.numerics.curvatures.curvature import drifted
from sparsemodel.numerics.curvatures.shared import SharedCurvature, shared_curvature
from sparsemodel.numerics.exchange.hessian_rows import HessianRows
from sparsemodel.numerics.exchange.lines import lines_of
from sparsemodel.numerics.exchange.quadratics.bounded import BoundedPrices, bounded_prices, pulls
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges
from sparsemodel.numerics.exchange.quadratics.search import ExchangeSearch
from sparsemodel.numerics.exchange.removal import groups_alike, groups_clear_up_to
from sparsemodel.numerics.exchange.support_factor import has_common_hessian
from sparsemodel.numerics.objectives.regression import RegressionObjective
from sparsemodel.numerics.support.closures import best_closed, closed_changes
from sparsemodel.numerics.support.units import descent_gradient

_DRIFT, EXACTLY, _CALLS = 1.0 / 3.0, 0.05, 2**14
"""Shares of all curvature that may have changed before the Hessian is taken again: while others are
searched, and before a search ends or where the data are few numbers, which cost calls only."""
_STIFF = 1e4
"""Curvature of linear equations in a model, in units of the largest other one."""
_ALIKE = 1e3
"""Spread of curvatures, in units of the equations, from which on they are left out."""
_ENTRIES = 2**18
"""Numbers of a table of prices of groups (2 MB)."""
_JITTER = 1e-10
"""Share of its curvature that is added to a block, which may be singular."""


def quadratic_of(objective: Objective) -> tuple[HessianRows, FloatArray]:
    """Return rows and linear term of an objective, for supports as large as it allows."""
    origin, sparsity = objective.origin(), objective.cardinality
    rows = HessianRows(objective, origin, places=min(sparsity.budget, sparsity.units))
    return rows, rows.reduced_gradient(-objective.gradient(origin))


@final
class ExchangeModels:
    """The prices of insertions and exchanges at one point after another; a run's workspace.

    The Hessian's rows are kept while its curvatures are about the same. For a matrix variable
    whose columns have Hessians of their own (multinomial losses) the model is that of
    :class:`SharedCurvature`: one matrix for all columns.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._at: Point | None = None
        self._rows: HessianRows | None = None
        self._shared: SharedCurvature | None = None
        self._asked: tuple[Point, Exchanges] | None = None  # the last ones, for reading
        sparsity = objective.cardinality
        self._counted = np.flatnonzero(sparsity.counted)
        self._index: IntArray | None = None
        if sparsity.groups is not None:
            sizes = np.bincount(sparsity.groups[self._counted], minlength=sparsity.units)
            self._index = np.zeros((sparsity.units, int(sizes.max(initial=1))), dtype=np.intp)
            self._present = np.arange(self._index.shape[1]) < sizes[:, None]
            order = np.argsort(sparsity.groups[self._counted], kind="stable")
            self._index[self._present] = self._counted[order]
        self._blocks: FloatArray | None = None
        self._stood: tuple[Point, float, bool] | None = None
        self._lines = lines_of(objective) if self._index is None else None
        self._along = True
        terms = objective.form.terms if isinstance(objective.form, SparseRegression) else ()
        few = sum(term.design.entries for term in terms) <= _CALLS
        self._drift = EXACTLY if few else _DRIFT
        bounded = objective.form.box is not None and len(objective.shape) == 1
        self._alone = bounded and self._index is None  # bounds on single coordinates

    @property
    def searchable(self) -> bool:
        """Whether single coordinates are chosen, under one limit and linear equations at most."""
        form = self._objective.form
        alone = self._index is None and form.cardinality.plain and form.box is None
        region = form.region
        return alone and (
            region is None or (not region.every_ball and all(map(_is_equation, region.linear)))
        )

    @property
    def rare(self) -> bool:
        """Whether columns belong to few observations each, and lines are followed."""
        return self._lines is not None

    def turned(self) -> bool:
        """Go over to the other model, with or without what the lines tell; False if there is one.

        Either may price an exchange too low that the other does not.
        """
        if self.rare:
            self._asked, self._along = None, not self._along
        return self.rare

    @property
    def shared(self) -> bool:
        """Return whether one curvature stands for those of several columns of a variable."""
        return self._shared is not None

    def renew(self, point: Point, drift: float | None = None) -> bool:
        """Take the Hessian at ``point`` if its curvatures have changed by that share."""
        drift = self._drift if drift is None else drift
        objective, shared, before = self._objective, None, self._shared
        if len(objective.shape) > 1 and not has_common_hessian(objective):
            shared = shared_curvature(cast("RegressionObjective", objective), point)
        if before is not None and shared is not None:
            changed = before.change(shared) > drift
        else:
            changed = self._at is None or drifted(objective, self._at, point, drift)
        if not changed:
            return False
        places = min(objective.cardinality.budget, objective.shape[0])
        if shared is None:
            self._rows = HessianRows(*_with_equations(objective, point), places=places)
        else:
            self._rows = HessianRows(objective, point, places=places, curvatures=shared.weights)
        if self._index is not None:
            self._blocks = self._rows.blocks(self._index, self._present)
        self._at, self._shared, self._asked = point, shared, None
        return True

    def insertions(self, point: Point) -> FloatArray:
        """Return what adding each unit lowers the objective by, ``(units,)``; 0 for those in it."""
        search = self._search(point)
        if self._index is None:
            bounded = self._bounded(search, point)
            gains = search.insertions()[0] if bounded is None else bounded.insertions
            return np.asarray(0.5 * gains[self._counted])
        gains = _quadratic_forms(*self._left(search))
        return 0.5 * np.where(self._inside(search).any(axis=1), 0.0, gains)

    def exchanges(self, point: Point) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the units of the support, what their removal costs, what exchanges gain.

        Shapes ``(q,)``, ``(q,)`` and ``(q, units)``; ``-inf`` for units that are inside.
        """
        sparsity = self._objective.cardinality
        inside = np.zeros(sparsity.size)
        inside[point.support] = 1.0
        units = np.flatnonzero(sparsity.unit_scores(inside))
        costs, gains = np.zeros(units.size), np.zeros((units.size, sparsity.units))
        search = self._search(point)
        if self._index is None:
            self._add_coordinates(search, point, units, costs, gains)
        else:
            self._add_groups(search, units, costs, gains)
        gains[:, units] = -np.inf
        return units, costs, gains

    def contrast(self, point: Point) -> tuple[float, bool]:
        """Return what exchanges of groups cost over what others gain, and whether they stand out.

        Those of ``point`` do where no others are worth looking for (:func:`groups_clear_up_to`).
        """
        if self._stood is None or self._stood[0] is not point:
            units, _costs, gains = self.exchanges(point)
            cost, gain = -float(gains.max(initial=-np.inf)), float(self.insertions(point).max())
            contrast = cost / gain if gain > 0.0 else np.inf
            likest = groups_clear_up_to(contrast) if self._search(point).members.size else 0.0
            self._stood = (point, contrast, likest > 0.0 and not self._alike(point, units, likest))
        return self._stood[1:]

    def _alike(self, point: Point, units: IntArray, least: float) -> bool:
        search, blocks = self._search(point), cast("FloatArray", self._blocks)
        slots, there = self._slots(search, units)
        across = search.rows.rows(search.members[0])[slots][:, :, cast("IntArray", self._index)]
        across *= there[:, :, None, None] & self._present  # (k, i, b, g)
        return groups_alike(np.moveaxis(across, 1, 2), blocks, units, least)

    def closed_changes(self, point: Point, many: int) -> list[IntArray]:
        """Return supports that promise most, where units come and go with those they need.

        Twice as ``many``, as what they promise adds up what is not independent.
        """
        sparsity = self._objective.cardinality
        charge = np.broadcast_to(sparsity.unit_price, sparsity.units)
        gains = self.insertions(point) - charge
        units, costs, swaps = self.exchanges(point)
        swaps = swaps + charge[units][:, None] - charge
        return closed_changes(sparsity, units, costs - charge[units], gains, swaps, 2 * many)

    def regrown(
        self, point: Point, kept: IntArray, gone: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Return ``kept`` units, minimised on at ``point``, and others with what they need.

        Those that are ``gone`` come back for others, or where nothing else is of use.
        """
        sparsity = self._objective.cardinality
        gains = self.insertions(point) if np.isfinite(point.value) else np.ones(sparsity.units)
        drawn = gains * rng.exponential(size=gains.size)
        drawn[gone] = 0.0
        return best_closed(sparsity, drawn, sparsity.budget, kept)

    def search(self, point: Point, most: int) -> ExchangeSearch | None:
        """Return a search over the supports of the model at ``point``, begun at its support.

        Over those of at most ``most`` coordinates. None where the model is not that of single
        coordinates without constraints or limits on parts of them.
        """
        if not self.searchable:
            return None
        model, price = self._search(point), self._objective.cardinality.price
        return ExchangeSearch(model.rows, model.linear, most=most, price=price, at=model.tiled(1))

    def runners_up(self, point: Point, many: int) -> tuple[IntArray, FloatArray, FloatArray] | None:
        """Return the supports that the model at ``point`` ranks next, and its minimisers on them.

        The best first, ``(R, q)``, the free coordinates last, and how much higher the model rises
        on each. None where it is not that of single coordinates of a vector, or is corrected by
        lines.
        """
        search = self.search(point, point.support.size)
        if search is None or self.rare or self._shared is not None:
            return None
        here, free = search.solution()[0], self._objective.cardinality.free
        supports, w, rises = search.runners_up(many)
        rows, x = search.rows, w * search.rows.scale[supports]
        if free.size:
            before = rows.free_changes(here[None], point.x[here][None])
            moved = rows.free_changes(supports, x) - before
            supports = np.hstack([supports, np.broadcast_to(free, moved.shape)])
            x = np.hstack([x, point.x[free] + moved])
        return supports, x, rises

    # ---- coordinates -------------------------------------------------------------------------

    def _search(self, point: Point) -> Exchanges:
        """Return the exchanges of the model whose minimiser over the support is ``point``."""
        if self._asked is not None and self._asked[0] is point:
            return self._asked[1]
        self.renew(point)
        rows, x = cast("HessianRows", self._rows), point.x
        gradient = descent_gradient(self._objective, point)
        if self._shared is not None:
            x, gradient = self._shared.coordinates(x), self._shared.gradient(gradient)
        members = point.support[rows.diagonal[point.support] > 0.0]
        if self._alone:
            gradient, fixed = pulls(self._objective, point, gradient)
            members = members[~fixed[members]]
        w = (x[members] if x.ndim > 1 else x[members][:, None]) / rows.scale[members, None]
        linear = -rows.reduced_gradient(gradient)
        linear[:, members] = 0.0
        if self._lines is not None and self._along:
            factors = np.sqrt(self._lines.corrections(point, np.square(linear[0])))
            w, linear = factors[members, None] * w, factors * linear
        linear += w.T @ rows.rows(members)
        search = Exchanges(rows, linear)
        if members.size:
            search.reset(members)
        self._asked = (point, search)
        return search

    def _add_coordinates(
        self,
        search: Exchanges,
        point: Point,
        units: IntArray,
        costs: FloatArray,
        gains: FloatArray,
    ) -> None:
        bounded = self._bounded(search, point)
        if bounded is None:
            exact, single = search.prices()[0], search.insertions()[0]
            members, removals = search.members[0], search.removals()[0]
        else:
            exact, single = bounded.exchanges, bounded.insertions
            members, removals = bounded.members, bounded.removals
        slots = {int(member): slot for slot, member in enumerate(members)}
        for place, coordinate in enumerate(self._counted[units]):
            slot = slots.get(int(coordinate))
            if slot is None:  # superfluous: the others do without it
                gains[place] += 0.5 * single[self._counted]
            else:
                costs[place] += 0.5 * removals[slot]
                gains[place] += 0.5 * exact[slot][self._counted]

    def _bounded(self, search: Exchanges, point: Point) -> BoundedPrices | None:
        """Return prices with steps within bounds; None without bounds on single coordinates."""
        if not self._alone:
            return None
        members = point.support[search.rows.diagonal[point.support] > 0.0]
        fixed = np.setdiff1d(members, search.members[0])
        return bounded_prices(search, point.x, cast("Box", self._objective.form.box), fixed)

    # ---- groups ------------------------------------------------------------------------------

    def _inside(self, search: Exchanges) -> np.ndarray:
        member = np.zeros(search.rows.size, dtype=bool)
        member[search.members[0]] = True
        return np.asarray(member[cast("IntArray", self._index)] & self._present)

    def _left(self, search: Exchanges) -> tuple[FloatArray, FloatArray]:
        """Return by group the negative gradient ``(b, g, m)`` and what is left of its block."""
        index = cast("IntArray", self._index)
        members = search.members[0]
        rows = search.rows.rows(members)
        left = cast("FloatArray", self._blocks).copy()
        pairs = self._present[:, :, None] & self._present[:, None, :]
        taken = np.einsum("kbg,kbh->bgh", rows[:, index], search.q[0][:, index], optimize=True)
        left -= taken * pairs
        r = np.moveaxis(search.r[0][:, index], 0, 2) * self._present[:, :, None]
        return r, left

    def _add_groups(
        self, search: Exchanges, units: IntArray, costs: FloatArray, gains: FloatArray
    ) -> None:
        index = cast("IntArray", self._index)
        r, left = self._left(search)
        if not search.members.size:  # the model is flat in all that are inside
            gains += 0.5 * _quadratic_forms(r, left)
            return
        slots, there = self._slots(search, units)
        pairs = there[:, :, None] & there[:, None, :]
        own = search.inverse[0][slots[:, :, None], slots[:, None, :]] * pairs
        np.einsum("kgg->kg", own)[~there] = 1.0
        own = np.linalg.pinv(own, hermitian=True)
        w = search.w[0][slots] * there[:, :, None]
        lost = np.einsum("kim,kij,kjm->k", w, own, w)
        costs += 0.5 * lost
        width = max(1, _ENTRIES // max(slots.shape[1] * index.size, 1))
        for first in range(0, units.size, width):
            some = slice(first, first + width)
            inside = search.q[0][slots[some][:, :, None, None], index] * self._present  # (k,i,b,g)
            inside *= there[some][:, :, None, None]
            turned = np.einsum("kij,kjbg->kibg", own[some], inside)
            moved = r + np.einsum("kibg,kim->kbgm", turned, w[some])
            grown = left + np.einsum("kibg,kibh->kbgh", turned, inside)
            gains[some] += 0.5 * (_quadratic_forms(moved, grown) - lost[some, None])

    def _slots(self, search: Exchanges, units: IntArray) -> tuple[IntArray, np.ndarray]:
        """Return the places of the members of some groups, ``(k, g)``, and which are there."""
        place = np.full(search.rows.size, -1, dtype=np.intp)
        place[search.members[0]] = np.arange(search.members.shape[1])
        found = np.where(self._present[units], place[cast("IntArray", self._index)[units]], -1)
        return np.maximum(found, 0), found >= 0


def _is_equation(part: Linear) -> bool:
    return np.array_equal(part.lower, part.upper)


def _with_equations(objective: Objective, point: Point) -> tuple[Objective, Point]:
    """Return the objective with the squares of the linear equations that hold, and its point.

    With a weight beside which curvatures are small an exchange is priced together with the steps
    of the other coordinates that keep the equations.
    """
    form = cast("SparseRegression", objective.form)
    rows = () if form.region is None or len(objective.shape) > 1 else form.region.linear
    equations = [part for part in rows if _is_equation(part)]
    if not equations:
        return objective, point
    bends = objective.hessian_diagonal(point, np.arange(objective.shape[0]))
    terms = list(form.terms)
    for part in equations:
        ones = np.ones(len(part.upper))
        squares = part.design.column_square_norms(ones)
        tied = (squares > 0.0) & (bends > 0.0)
        ratios = bends[tied] / squares[tied]
        if not ratios.size or ratios.max() > _ALIKE * ratios.min():
            return objective, point
        terms.append(Term(part.design, SquaredLoss(), part.upper, _STIFF * ratios.max() * ones))
    stiff = RegressionObjective(replace(form, terms=tuple(terms), region=None))
    return stiff, stiff.point(point.support, point.x[point.support])


def _quadratic_forms(r: FloatArray, matrices: FloatArray) -> FloatArray:
    """Return ``trace(r.T @ inv(M) @ r)`` for each block, with ``M`` a little enlarged."""
    eye = _JITTER * np.eye(matrices.shape[-1])
    solved = np.linalg.solve(matrices + eye, r)
    return np.asarray(np.maximum(np.einsum("...gm,...gm->...", r, solved), 0.0))
