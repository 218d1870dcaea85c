r"""A quadratic model of an objective, in units, with prices of what may be changed.

At a point ``x`` with gradient ``g`` and Hessian ``H`` the model is
:math:`f(x) + g^\top (y - x) + \frac12 (y - x)^\top H (y - x)`, with free coordinates minimised
out: exact for squared losses, of second order for others. Columns are scaled, and those of a group
whitened, so that the block of each unit is the identity; then it is
:math:`const - c^\top z + \frac12 z^\top G z`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import (
    Cardinality,
    FloatArray,
    IntArray,
    Linear,
    Objective,
    Point,
    SparseRegression,
    Term,
)
from sparsemodel.losses import SquaredLoss
from sparsemodel.numerics.curvatures.curvature import cheap_columns, drifted
from sparsemodel.numerics.curvatures.shared import SharedCurvature, shared_curvature
from sparsemodel.numerics.exchange.support_factor import has_common_hessian
from sparsemodel.numerics.objectives.regression import RegressionObjective
from sparsemodel.numerics.objectives.validity import observations
from sparsemodel.numerics.search import GUARD
from sparsemodel.numerics.search.descents import Descents, UnitRows, WholeMatrix
from sparsemodel.numerics.search.hessian_rows import HessianRows

_DRIFT = 1.0 / 3.0
"""Share of all curvature that may have changed before the Hessian is taken again."""
_STIFF = 1e4
"""Curvature of a linear equation in a model, in units of the largest other one: an exchange is then
priced with the steps of the others that keep the equation, to a part in ten thousand."""
_PER_MEMBER, _BESIDE = 16, 64
"""Candidates in a pool of columns: for each member, in its place, and others."""
_CHEAP = 16
"""Observations for each column of a support up to which its rows, ``n P`` multiplications each,
cost about as much as a descent, ``4 (k q)^2 P`` and twice as many steps as it has columns."""
_EASY = 2**20
"""Multiplications of a start, ``(k q)^2 P``, up to which all columns are searched: about a
millisecond."""


@final
class Layout:
    """The columns of each unit, in the order in which a model has them.

    Where all units are single a unit of the model is a coordinate (free ones are never chosen);
    with groups of different sizes the smaller ones are padded with empty columns.
    """

    def __init__(self, sparsity: Cardinality) -> None:
        self.size = sparsity.size
        counted, units = np.flatnonzero(sparsity.counted), sparsity.unit_of
        by_unit = counted[np.argsort(units[counted], kind="stable")]
        sizes = np.bincount(units[counted], minlength=sparsity.units)
        self.q = int(sizes.max(initial=1))
        if self.q == 1:
            self.index = np.arange(sparsity.size)[:, None]
            self.present = np.ones((sparsity.size, 1), dtype=bool)
            self.units_of_model, self.model_of_units = units, by_unit
            return
        self.present = np.arange(self.q) < sizes[:, None]
        self.index = np.zeros(self.present.shape, dtype=np.intp)
        self.index[self.present] = by_unit
        self.units_of_model = self.model_of_units = np.arange(sparsity.units)

    def columns(self, units: IntArray) -> IntArray:
        """Return the model's columns of units."""
        return (units[:, None] * self.q + np.arange(self.q)).ravel()


@final
class UnitHessian:
    """Rows of a Hessian in whitened columns, computed when they are asked for and kept."""

    def __init__(self, rows: HessianRows, layout: Layout) -> None:
        self.rows, self.layout, self.q = rows, layout, layout.q
        self._blocks: FloatArray | None = None
        if self.q == 1:
            return
        blocks = rows.blocks(layout.index, layout.present)
        # What a block's columns have in common twice is taken out of the later one.
        jitter = GUARD * np.eye(self.q)
        self._blocks = np.linalg.inv(np.linalg.cholesky(blocks + jitter))  # L^-1
        # Padding, and columns of which nothing is left, become directions of their own: they enter
        # with their unit and explain nothing.
        self._is_empty = ~(layout.present & (rows.diagonal[layout.index] > 0.0)).ravel()
        self._diagonal = np.ones(self._is_empty.size)
        self._store = np.empty((0, self._diagonal.size))
        self._slots = np.full(self._diagonal.size, -1, dtype=np.intp)

    @property
    def store(self) -> FloatArray:
        """Return the rows that are there, in the model's columns."""
        return self.rows.held[0] if self._blocks is None else self._store

    @property
    def slots(self) -> IntArray:
        """Return the place of each column's row in :attr:`store`, or -1."""
        return self.rows.held[1] if self._blocks is None else self._slots

    @property
    def diagonal(self) -> FloatArray:
        """Return 1 for each column, or 0 where nothing is left of it."""
        return self.rows.diagonal if self._blocks is None else self._diagonal

    def whiten(self, c: FloatArray) -> FloatArray:
        """Return a linear term ``(m, p)`` in the model's columns, ``(m, P)``."""
        if self._blocks is None:
            return c
        grouped = c[:, self.layout.index] * self.layout.present  # (m, U, q)
        whitened = np.einsum("uab,mub->mua", self._blocks, grouped).reshape(len(c), -1)
        return np.ascontiguousarray(np.where(self._is_empty, 0.0, whitened))

    def coordinates(self, x: FloatArray, units: IntArray) -> FloatArray:
        """Return scaled coordinates ``(p, m)`` of units in the model's columns, ``(k q, m)``."""
        if self._blocks is None:
            return x[units]
        grouped = x[self.layout.index[units]] * self.layout.present[units][:, :, None]
        factors = np.linalg.inv(self._blocks[units])  # L
        return np.asarray(np.einsum("uba,ubm->uam", factors, grouped)).reshape(-1, x.shape[1])

    def fetch(self, units: IntArray) -> None:
        """Store the rows of units."""
        if self._blocks is None:
            self.rows.fetch(units)
            return
        missing = units[self.slots[units * self.q] < 0]
        if not missing.size:
            return
        layout, present = self.layout, self.layout.present[missing]
        raw = np.zeros((missing.size, self.q, layout.size))
        raw[present] = self.rows.rows(layout.index[missing][present])
        across = raw[:, :, layout.index] * layout.present  # (f, q, U, q)
        across = np.einsum("fab,fbuc->fauc", self._blocks[missing], across)
        across = np.einsum("fauc,udc->faud", across, self._blocks).reshape(
            missing.size * self.q, -1
        )
        columns = layout.columns(missing)
        across[:, self._is_empty] = 0.0
        across[self._is_empty[columns]] = 0.0
        own = across.reshape(missing.size, self.q, -1, self.q)
        own[np.arange(missing.size), :, missing, :] = np.eye(self.q)
        self._slots[columns] = len(self._store) + np.arange(columns.size)
        self._store = np.concatenate([self._store, across])

    def among(self, units: IntArray) -> WholeMatrix:
        """Return the matrix of some units alone, which are known by their places there."""
        if self._blocks is None:
            return WholeMatrix(self.rows.among(units))
        self.fetch(units)
        columns = self.layout.columns(units)
        return WholeMatrix(self.store[self.slots[columns]][:, columns], self.q)


@final
class PoolRows:
    """Rows of some units, fetched in all columns when they are asked for."""

    def __init__(self, hessian: UnitHessian, pool: IntArray) -> None:
        self._hessian, self._pool, self.q = hessian, pool, hessian.q
        self._columns = hessian.layout.columns(pool)
        self.store = np.empty((0, self._columns.size))
        self.slots = np.full(self._columns.size, -1, dtype=np.intp)
        self.diagonal = hessian.diagonal[self._columns]

    def fetch(self, units: IntArray) -> None:
        """Store the rows of units."""
        missing = units[self.slots[units * self.q] < 0]
        if not missing.size:
            return
        self._hessian.fetch(self._pool[missing])
        columns = self._hessian.layout.columns(missing)
        rows = self._hessian.store[self._hessian.slots[self._columns[columns]]]
        self.slots[columns] = len(self.store) + np.arange(columns.size)
        self.store = np.concatenate([self.store, rows[:, self._columns]])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """What changes of a support lower a model by; negative where they raise it."""

    addition: FloatArray
    """Of each unit, shape ``(U,)``; ``-inf`` for members and units that depend on them."""
    removal: FloatArray
    """Of each member, at most 0, shape ``(k,)``."""
    exchange: FloatArray
    """Of each member for each unit, shape ``(k, U)``."""


@final
class LocalModel:
    """The model of an objective at a point; units are numbered as in its :class:`Layout`.

    Parameters
    ----------
    hessian
        Rows of the Hessian, perhaps of a point nearby.
    c
        Linear term in the model's columns, ``(m, P)``.
    members
        The units of the point.
    bounds
        Those of each column in the model's units; None where there are none, or the model does not
        know them.
    rows_are_cheap
        Whether the rows of a support at random cost about as much as a descent from it.
    rows_are_read
        Whether a row costs a reading of a file, or a trip to where the data are.
    """

    def __init__(
        self,
        hessian: UnitHessian,
        c: FloatArray,
        members: IntArray,
        bounds: tuple[FloatArray, FloatArray] | None,
        rows_are_cheap: bool,
        rows_are_read: bool,
    ) -> None:
        self.hessian, self.c, self.members, self.bounds = hessian, c, members, bounds
        self._rows_are_cheap, self._rows_are_read = rows_are_cheap, rows_are_read
        self._descents: Descents | None = None
        self._prices: tuple[bytes, Prices] | None = None
        self._promise: tuple[bytes, FloatArray, IntArray] | None = None

    @property
    def units(self) -> int:
        """Return how many units there are."""
        return int(self.c.shape[1] // self.hessian.q)

    def prices_of(self, members: IntArray) -> Prices:
        """Return :meth:`prices`, the last ones if they are asked for again."""
        if self._prices is None or self._prices[0] != members.tobytes():
            self._prices = members.tobytes(), self.prices(members)
        return self._prices[1]

    def promise(self, members: IntArray, many: int) -> tuple[FloatArray, IntArray]:
        """Return what units gain where a member is missing, ``(k, many)``, and which units.

        Those that gain most in the place of any.
        """
        if self._promise is None or self._promise[0] != members.tobytes():
            prices = self.prices_of(members)
            gains = prices.exchange - prices.removal[:, None]
            units = _largest(gains.max(axis=0, initial=-np.inf), many)
            self._promise = members.tobytes(), np.maximum(gains[:, units], 0.0), units
        return self._promise[1:]

    def prices(self, members: IntArray) -> Prices:
        """Return the prices of all changes of a support; ``O((k q)^2 P)``."""
        hessian, q, c = self.hessian, self.hessian.q, self.c
        k, U, m = members.size, self.units, len(c)
        columns = hessian.layout.columns(members)
        hessian.fetch(members)
        rows = hessian.store[hessian.slots[columns]]
        inside = rows[:, columns].copy()
        dead = hessian.diagonal[columns] == 0.0
        inside[dead, dead] = 1.0
        values, vectors = np.linalg.eigh(inside)
        B = (vectors / np.maximum(values, GUARD)) @ vectors.T
        Q = B @ rows
        w = B @ c[:, columns].T
        r = c - w.T @ rows
        if q == 1:
            s = hessian.diagonal - np.einsum("ij,ij->j", rows, Q)
            r[:, columns] = 0.0
            own = np.diag(B)
            addition = 0.5 * _gains(np.square(r).sum(axis=0), s)
            cost = np.square(w).sum(axis=1) / own
            t = Q / own[:, None]
            moved = np.zeros_like(Q)
            for y in range(m):
                moved += np.square(r[y] + t * w[:, y, None])
            if self.bounds is not None:
                exchange, addition = self._within(r[0], s, t, Q, w[:, 0], cost)
            else:
                exchange = 0.5 * (_gains(moved, s + t * Q) - cost[:, None])
            removal = -0.5 * cost
        else:
            grouped = rows.reshape(k * q, U, q)
            left = np.einsum("iua,iub->uab", grouped, Q.reshape(k * q, U, q))
            left = np.eye(q) * hessian.diagonal.reshape(U, q)[:, :, None] - left
            pull = r.reshape(m, U, q).transpose(1, 2, 0)
            addition = 0.5 * _block_gains(left, pull)
            exchange, removal = np.empty((k, U)), np.empty(k)
            for place in range(k):
                here = slice(place * q, place * q + q)
                root = np.linalg.inv(np.linalg.cholesky(B[here, here]))
                T = (root @ Q[here]).reshape(q, U, q)
                own_w = root @ w[here]
                cost = float(np.square(own_w).sum())
                moved_pull = pull + np.einsum("aub,am->ubm", T, own_w)
                grown = left + np.einsum("aub,auc->ubc", T, T)
                exchange[place] = 0.5 * (_block_gains(grown, moved_pull) - cost)
                removal[place] = -0.5 * cost
        addition[members] = -np.inf
        exchange[:, members] = -np.inf
        return Prices(addition, removal, exchange)

    def _within(
        self,
        r: FloatArray,
        s: FloatArray,
        t: FloatArray,
        Q: FloatArray,
        w: FloatArray,
        cost: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the prices of exchanges and additions whose steps are clipped to bounds."""
        low, high = cast("tuple[FloatArray, FloatArray]", self.bounds)

        def clipped(pull: FloatArray, left: FloatArray) -> FloatArray:
            step = np.clip(pull / np.where(left > GUARD, left, 1.0), low, high)
            return np.where(left > GUARD, step * (2.0 * pull - step * left), -np.inf)

        exchange = 0.5 * (clipped(r + t * w[:, None], s + t * Q) - cost[:, None])
        return exchange, 0.5 * clipped(r, s)

    def descents(self, members: IntArray, k: int) -> tuple[Descents, IntArray]:
        """Return descents among the units that promise most beside ``members``, and those units.

        All units, unless there are so many that a start would take long.
        """
        hessian = self.hessian
        if not self.is_pooled(k):
            if self._descents is None:
                self._descents = Descents(hessian, self.c, self.bounds)
            return self._descents, np.arange(self.units)
        if k > members.size:  # rows that are likely to be asked for, in one product of matrices
            hessian.fetch(_largest(self.correlations(), 2 * (k - members.size)))
        pool = self.pool(members, k)
        rows = PoolRows(hessian, pool) if self._is_large(pool) else hessian.among(pool)
        return self._descents_among(pool, rows), pool

    def descents_beside(self, members: IntArray, k: int) -> tuple[Descents, IntArray]:
        """Return :meth:`descents` from many starts: where rows are read, among those at hand."""
        if not self._rows_are_read:
            return self.descents(members, k)
        hessian = self.hessian
        pool = np.flatnonzero((hessian.slots.reshape(-1, hessian.q) >= 0).all(axis=1))
        return self._descents_among(pool, hessian.among(pool)), pool

    def _descents_among(self, pool: IntArray, rows: UnitRows) -> Descents:
        """Return descents among some units, whose rows are known by their places there."""
        columns, bounds = self.hessian.layout.columns(pool), self.bounds
        if bounds is not None:
            bounds = bounds[0][columns], bounds[1][columns]
        return Descents(rows, self.c[:, columns], bounds)

    def _is_large(self, pool: IntArray) -> bool:
        """Return whether a few rows of all columns cost less than all rows of the pool."""
        hessian = self.hessian
        columns, k = pool.size * hessian.q, self.members.size + pool.size // _PER_MEMBER
        return bool(columns * columns > 4 * k * hessian.q * self.c.shape[1])

    def correlations(self) -> FloatArray:
        """Return what each unit alone lowers the model by, twice."""
        return np.asarray(np.square(self.c).sum(axis=0).reshape(self.units, -1).sum(axis=1))

    def is_pooled(self, k: int) -> bool:
        """Return whether a search looks at the units alone that promise most."""
        columns, size = self.c.shape[1], max(1, k * self.hessian.q)
        if not self.hessian.rows.exact or not is_wide(self.units, k):
            return False
        return bool(not self._rows_are_cheap or size * size * columns > _EASY)

    def pool(self, members: IntArray, k: int) -> IntArray:
        """Return members and the units that promise most beside them, and in the place of each."""
        wide = min(pool_width(k), self.units)
        prices = self.prices_of(members)
        usable = int(np.count_nonzero(np.isfinite(prices.addition)))
        best = [members, _largest(prices.addition, min(wide, usable))]
        if members.size:
            each = min(_PER_MEMBER, self.units - 1)
            best.append(np.argpartition(-prices.exchange, each, axis=1)[:, :each].ravel())
        pool = np.unique(np.concatenate(best))
        usable_columns = self.hessian.diagonal.reshape(-1, self.hessian.q)[pool] > 0.0
        return np.asarray(pool[usable_columns.any(axis=1)])


def pool_width(k: int) -> int:
    """Return how many units a pool for supports of ``k`` units has."""
    return _PER_MEMBER * k + _BESIDE


def is_wide(units: int, k: int) -> bool:
    """Return whether there are so many units that a pool of them is searched in their place."""
    return units > 4 * pool_width(k)


@final
class LocalModels:
    """The models at one point after another; their Hessian is kept while curvatures are alike."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self.layout = Layout(objective.cardinality)
        self._at: Point | None = None
        self._hessian: UnitHessian | None = None
        self._shared: SharedCurvature | None = None
        self._last: tuple[Point, LocalModel] | None = None
        self.has_cheap_rows = cheap_columns(objective)
        form = objective.form
        box = form.box
        single = self.layout.q == 1 and len(objective.shape) == 1
        self._bounded = box is not None and box.least is None and form.region is None and single
        self.is_exact = (
            objective.quadratic
            and has_common_hessian(objective)
            and (form.box is None or self._bounded)
            and form.region is None
        )

    def at(self, point: Point) -> LocalModel:
        """Return the model at a point."""
        if self._last is not None and self._last[0] is point:
            return self._last[1]
        objective = self._objective
        self._renew(point)
        hessian = cast("UnitHessian", self._hessian)
        rows, x, gradient = hessian.rows, point.x, objective.gradient(point)
        if point.normal is not None:
            gradient = gradient + point.normal
        if self._shared is not None:
            x, gradient = self._shared.coordinates(x), self._shared.gradient(gradient)
        x = x[:, None] if x.ndim == 1 else x
        units = objective.cardinality.active_units(point.x)
        members = self.layout.model_of_units[units]
        scaled = np.zeros_like(x)
        np.divide(x, rows.scale[:, None], out=scaled, where=rows.scale[:, None] > 0.0)
        c = hessian.whiten(-rows.reduced_gradient(gradient))
        if members.size:
            hessian.fetch(members)
            columns = self.layout.columns(members)
            z = hessian.coordinates(scaled, members)
            c = c + z.T @ hessian.store[hessian.slots[columns]]
        bounds = None
        if self._bounded and objective.form.box is not None:
            box, scale = objective.form.box, np.where(rows.scale > 0.0, rows.scale, 1.0)
            bounds = box.lower / scale, box.upper / scale
        size = self.layout.q * min(objective.cardinality.budget, self.layout.model_of_units.size)
        cheap = observations(objective) <= _CHEAP * size
        model = LocalModel(hessian, c, members, bounds, cheap, not self.has_cheap_rows)
        self._last = point, model
        return model

    def _renew(self, point: Point) -> None:
        """Take the Hessian at ``point`` if curvatures have changed by much."""
        objective, shared, before = self._objective, None, self._shared
        if len(objective.shape) > 1 and not has_common_hessian(objective):
            shared = shared_curvature(cast("RegressionObjective", objective), point)
        if before is not None and shared is not None:
            if before.change(shared) <= _DRIFT:
                return
        elif self._at is not None and not drifted(objective, self._at, point, _DRIFT):
            return
        places = min(objective.cardinality.budget, objective.shape[0])
        if shared is None:
            rows = HessianRows(*_with_equations(objective, point), places=places)
        else:
            rows = HessianRows(objective, point, places=places, curvatures=shared.weights)
        self._at, self._shared = point, shared
        self._hessian = UnitHessian(rows, self.layout)


def _gains(squares: FloatArray, left: FloatArray) -> FloatArray:
    """Return ``squares / left``; ``-inf`` for columns of which the others leave nothing."""
    out = np.full(squares.shape, -np.inf)
    np.divide(squares, left, out=out, where=left > GUARD)
    return out


def _block_gains(left: FloatArray, pull: FloatArray) -> FloatArray:
    """Return ``tr(r' M^-1 r)`` of blocks ``(U, q, q)`` and ``(U, q, m)``; flat directions add 0."""
    values, vectors = np.linalg.eigh(left)
    turned = np.square(np.einsum("uab,uam->ubm", vectors, pull)).sum(axis=2)
    usable = values > GUARD
    return np.asarray(np.where(usable, turned / np.where(usable, values, 1.0), 0.0).sum(axis=1))


def _largest(scores: FloatArray, many: int) -> IntArray:
    """Return the places of the ``many`` largest scores."""
    if many >= scores.size:
        return np.arange(scores.size)
    return np.argpartition(-scores, many)[:many]


def _with_equations(objective: Objective, point: Point) -> tuple[Objective, Point]:
    """Return the objective with stiff squares of the linear equations that hold, and its point."""
    form = objective.form
    if not isinstance(form, SparseRegression) or form.region is None or len(objective.shape) > 1:
        return objective, point
    equations = [p for p in form.region.linear if np.array_equal(p.lower, p.upper)]
    if not equations or not cheap_columns(objective):
        return objective, point
    curvatures = objective.hessian_diagonal(point, np.arange(objective.shape[0]))
    terms = (*form.terms, *(_stiff(part, curvatures) for part in equations))
    stiff = RegressionObjective(replace(form, terms=terms, region=None))
    return stiff, stiff.point(point.support, point.x[point.support])


def _stiff(part: Linear, curvatures: FloatArray) -> Term:
    """Return equations as squares whose curvature is large beside all others."""
    ones = np.ones(len(part.upper))
    squares = part.design.column_square_norms(ones)
    tied = squares > 0.0
    weight = _STIFF * float((curvatures[tied] / squares[tied]).max(initial=0.0))
    return Term(part.design, SquaredLoss(), part.upper, weight * ones)
