"""What is counted, and the limits on it: numbers, costs, and what comes only beside something."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from sparsemodel.interfaces.forms.order import Order
from sparsemodel.interfaces.numeric import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Disjoint sets of units, each with a limit of its own."""

    sets: IntArray
    """The set ``0 .. S-1`` of each unit, ``-1`` for units in none of them."""
    most: IntArray
    """How many units of each set may be nonzero, shape ``(S,)``."""

    def counts(self, units: IntArray) -> IntArray:
        """Return how many of ``units`` are in each set."""
        sets = self.sets[units]
        return np.bincount(sets[sets >= 0], minlength=self.most.size)

    def left(self, taken: IntArray, kept: IntArray) -> Layer:
        """Return what units that are ``taken`` leave of the limits to those ``kept``."""
        return Layer(self.sets[kept], self.most - self.counts(taken))

    def full(self, units: IntArray) -> BoolArray:
        """Return which units are in a set that ``units`` have filled, shape ``(units,)``."""
        filled = np.append(self.counts(units) >= self.most, False)  # the last stands for no set
        return np.asarray(filled[self.sets])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Knapsack:
    """A budget: the costs of the units that are nonzero add up to at most ``most``."""

    costs: FloatArray
    """What each unit takes of the budget, nonnegative, shape ``(units,)``."""
    most: float

    def left(self, taken: IntArray) -> float:
        """Return what units that are ``taken`` leave of the budget; negative if they exceed it."""
        return math.fsum([self.most, *(-self.costs[taken]).tolist()])

    def fitting(self, taken: IntArray) -> BoolArray:
        """Return which single units fit the budget beside those ``taken``, shape ``(units,)``."""
        return np.asarray(self.costs <= self.left(taken))

    def count(self, taken: IntArray, kept: IntArray) -> int:
        """Return how many of the units ``kept`` the budget has room for, beside those ``taken``."""
        costs = np.cumsum(np.sort(self.costs[kept]))
        room = self.left(taken)
        return int(np.searchsorted(costs, room + 1e-12 * abs(self.most), side="right"))

    def after(self, taken: IntArray, kept: IntArray) -> Knapsack:
        """Return what units that are ``taken`` leave of the budget to those ``kept``."""
        return Knapsack(self.costs[kept], self.left(taken))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cardinality:
    """At most ``k`` units may be nonzero, of which :attr:`budget` are left to choose.

    A unit is a coordinate, or a group of coordinates when ``groups`` is given. ``free``
    coordinates belong to every support. Those that were never counted (intercepts, always-in
    features) do not touch ``k``. Those that were counted and that their bounds keep away from zero
    are ``forced``: they use up a part of ``k``. A backend chooses at most ``budget`` of the
    ``units`` that are neither. ``price`` adds ``price`` for each of those that is nonzero, or
    ``prices`` what each of them costs.

    ``limits`` hold beside ``k``: sets of units are disjoint or one within the other (a laminar
    family), so that supports are the independent sets of a matroid, and ``k`` is its rank. Sets
    that overlap these are ``crossing``. What knows ``k`` alone relaxes the problem: its bounds are
    valid, its supports need not be. So does what leaves out limits that cross, ``knapsacks`` or an
    ``order``, or takes ``price``, the least one, for ``prices``. With an ``order`` a unit counts,
    and is paid for, where another one needs it.
    """

    size: int
    """``p``, the number of coordinates."""
    k: int
    """The limit as it was declared, forced units included: what to print, not what to choose."""
    free: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """Sorted indices of the coordinates that are always in."""
    groups: IntArray | None = None
    """Group ``0 .. G-1`` of each coordinate, ``-1`` for the free ones."""
    price: float = 0.0
    """What each unit costs in the objective; the least of them where ``prices`` differ."""
    forced: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """Sorted indices of those free coordinates that are part of ``k``."""
    forced_units: int = 0
    """How many units the forced coordinates make up."""
    limits: tuple[Layer, ...] = ()
    """Limits on parts of the units, inner sets before those that contain them."""
    prices: FloatArray | None = None
    """What each unit costs in the objective, shape ``(units,)``; None where it is ``price``."""
    knapsacks: tuple[Knapsack, ...] = ()
    """Budgets over costs of the units."""
    crossing: tuple[Layer, ...] = ()
    """Limits on sets that overlap those of :attr:`limits` without one being in the other."""
    order: Order | None = None
    """Which units may be nonzero only beside others."""

    @property
    def priced(self) -> bool:
        """Return whether units cost something in the objective, so that fewer may be better."""
        return self.price > 0.0 or self.prices is not None

    @property
    def plain(self) -> bool:
        """Return whether ``k`` is the only limit, and a unit costs what any other does."""
        alike = self.prices is None and not self.knapsacks
        return alike and not self.layers and self.order is None

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Return all limits on parts of the units."""
        return (*self.limits, *self.crossing)

    @property
    def greedy(self) -> bool:
        """Return whether best units are found one after another: a matroid, and no more."""
        return not self.knapsacks and not self.crossing and self.order is None

    def relaxed(self) -> Cardinality:
        """Return the constraint with what is :attr:`greedy` alone."""
        return replace(self, knapsacks=(), crossing=(), order=None)

    @property
    def bare(self) -> bool:
        """Return whether only the number of units matters: no other limit, and no price."""
        return self.plain and not self.priced

    @property
    def unit_price(self) -> float | FloatArray:
        """Return what a unit costs in the objective: a number, or one for each."""
        return self.price if self.prices is None else self.prices

    def charge(self, units: IntArray) -> float:
        """Return what distinct ``units`` cost in the objective together."""
        if self.prices is None:
            return self.price * units.size
        return math.fsum(self.prices[units].tolist())

    def within(self, units: IntArray) -> bool:
        """Return whether distinct ``units`` may be nonzero together."""
        return (
            all(knapsack.left(units) >= 0.0 for knapsack in self.knapsacks)
            and (self.order is None or self.order.is_closed(units))
            and units.size <= self.budget
            and all(bool(np.all(layer.counts(units) <= layer.most)) for layer in self.layers)
        )

    def closing(self, units: IntArray, scores: FloatArray | None = None) -> IntArray | None:
        """Return distinct ``units`` with few that they require, or None where there is no room.

        Of the smallest set that is asked for each unit is tried, the one with the largest of
        ``scores`` first, unless more sets with nothing in common are asked for than there is room.
        """
        asked = [] if self.order is None else sorted(self.order.missing_parents(units), key=len)
        apart: list[IntArray] = []
        for one in asked:
            if not any(np.isin(one, other).any() for other in apart):
                apart.append(one)
        if units.size + len(apart) > self.budget or not replace(self, order=None).within(units):
            return None
        if not asked:
            return np.sort(units)
        first = asked[0] if scores is None else asked[0][np.argsort(-scores[asked[0]])]
        tried = (self.closing(np.append(units, j), scores) for j in first)
        return next((found for found in tried if found is not None), None)

    def limited_sets(self, *, crossing: bool = False) -> list[tuple[IntArray, int]]:
        """Return the sets of :attr:`limits`, sorted units with their limit, inner sets first.

        Or those that are :attr:`crossing`.
        """
        found: list[tuple[IntArray, int]] = []
        for layer in self.crossing if crossing else self.limits:
            order = np.argsort(layer.sets, kind="stable")
            ends = np.searchsorted(layer.sets[order], np.arange(layer.most.size + 1))
            found += [
                (order[begin:end], most)
                for begin, end, most in zip(ends[:-1], ends[1:], layer.most.tolist(), strict=True)
            ]
        return found

    def room(self, units: IntArray) -> BoolArray:
        """Return which single units may join ``units``, shape ``(units,)``."""
        mask = np.full(self.units, units.size < self.budget)
        for layer in self.layers:
            mask &= ~layer.full(units)
        for knapsack in self.knapsacks:
            mask &= knapsack.fitting(units)
        if self.order is not None:
            mask &= self.order.addable(units, self.units)
        mask[units] = False
        return mask

    def exchangeable(self, units: IntArray) -> BoolArray:
        """Return which units may replace each of ``units``, shape ``(len(units), units)``."""
        mask = np.ones((units.size, self.units), dtype=bool)
        for layer in self.layers:
            mask &= ~layer.full(units) | (layer.sets[units][:, None] == layer.sets)
        for place in range(units.size if self.knapsacks or self.order else 0):
            others = np.delete(units, place)
            for knapsack in self.knapsacks:
                mask[place] &= knapsack.fitting(others)
            if self.order is not None:
                mask[place] &= self.order.addable(others, self.units)
        mask[:, units] = False
        return mask

    def after(self, taken: IntArray, kept: IntArray) -> Cardinality:
        """Return what is left to choose of units ``kept``, as coordinates, beside those ``taken``.

        Both are sorted; what the ones taken cost is not in the prices that are left.
        """
        order = self.order
        return Cardinality(
            size=int(kept.size),
            k=self.budget - int(taken.size),
            price=self.price,
            limits=tuple(layer.left(taken, kept) for layer in self.limits),
            prices=None if self.prices is None else self.prices[kept],
            knapsacks=tuple(knapsack.after(taken, kept) for knapsack in self.knapsacks),
            crossing=tuple(layer.left(taken, kept) for layer in self.crossing),
            order=None if order is None else order.left(taken, kept, self.units),
        )

    @property
    def budget(self) -> int:
        """Return how many units may be chosen: ``k`` without the forced ones."""
        return self.k - self.forced_units

    def with_budget(self, budget: int) -> Cardinality:
        """Return the constraint with another number of units to choose."""
        return replace(self, k=budget + self.forced_units)

    @property
    def units(self) -> int:
        """Return how many units there are to choose from."""
        if self.groups is None:
            return self.size - int(self.free.size)
        return int(self.groups.max(initial=-1)) + 1

    @property
    def counted(self) -> BoolArray:
        """Return the mask of the coordinates that are chosen: all but the free ones."""
        free = np.zeros(self.size, dtype=bool)
        free[self.free] = True
        return ~free

    @property
    def unit_of(self) -> IntArray:
        """Return the unit of every coordinate, ``-1`` for the free ones."""
        if self.groups is not None:
            return self.groups
        counted = self.counted
        return np.where(counted, np.cumsum(counted) - 1, -1)

    def unit_scores(self, scores: FloatArray) -> FloatArray:
        """Sum nonnegative coordinate scores (squares, gains) over each unit, shape ``(units,)``."""
        if self.groups is None:
            return np.delete(scores, self.free) if self.free.size else scores
        counted = self.groups >= 0
        sums = np.bincount(self.groups[counted], weights=scores[counted], minlength=self.units)
        return sums.astype(np.float64, copy=False)  # integers when there is nothing to count

    def coordinates(self, units: IntArray) -> IntArray:
        """Return the sorted support made of ``units`` and the free coordinates."""
        if self.groups is None:
            if not self.free.size:
                return np.sort(units)
            counted = np.flatnonzero(self.counted)
            return np.sort(np.concatenate([counted[units], self.free]))
        chosen = np.zeros(self.units + 1, dtype=bool)
        chosen[units] = True
        mask = chosen[self.groups]
        mask[self.free] = True
        return np.flatnonzero(mask)

    def active_units(self, x: FloatArray) -> IntArray:
        """Return the sorted counted units in which ``x`` is not zero, and those that they need."""
        # Not by squares, which are zero for entries below 1e-162.
        nonzero = (x != 0.0) if x.ndim == 1 else (x != 0.0).any(axis=1)
        (units,) = self.unit_scores(nonzero.astype(np.float64)).nonzero()
        return units if self.order is None else self.order.closure(units)

    def count(self, x: FloatArray) -> int:
        """Return the number of :meth:`active_units`."""
        return int(self.active_units(x).size)

    def paid(self, x: FloatArray) -> float:
        """Return what the nonzero units of ``x`` cost in the objective."""
        return self.charge(self.active_units(x)) if self.priced else 0.0
