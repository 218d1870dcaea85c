"""What a declaration counts, and the limits on it, as units of the canonical form."""

from __future__ import annotations

import math

import numpy as np

from sparsemodel.compiler.canonical.declaration import CardSpec, CountedSpec, Declaration
from sparsemodel.compiler.canonical.layout import Layout
from sparsemodel.compiler.canonical.ordering import order_of
from sparsemodel.interfaces import (
    Cardinality,
    FloatArray,
    IntArray,
    Knapsack,
    Layer,
    ModelError,
)
from sparsemodel.numerics import best_units

_ROUNDING = 1e-12
"""How far above a budget a sum of costs may be, relative to it."""


def cardinality_of(declaration: Declaration, layout: Layout) -> Cardinality:
    """Return the constraint on the support.

    Raises
    ------
    ModelError
        When entries are counted in two ways.
    """
    if not declaration.cards:
        return Cardinality(layout.size, 0, free=np.arange(layout.size))
    units = _Units(declaration, layout)
    limits = [
        (chosen, min(card.k, chosen.size))  # more than there are mean all of them
        for card in declaration.cards
        if card.k is not None
        for chosen in [units.of(card)]
    ]
    prices = sum((units.prices(c) for c in declaration.cards if c.most is None), units.nothing)
    knapsacks, affordable = _budgets(declaration, units)
    layers, crossing = _layers(limits, units)
    k = _rank(layers, units.number)
    whole = [limit for chosen, limit in limits if chosen.size == units.number]
    return Cardinality(
        layout.size,
        min([k, affordable, *whole]),
        free=units.free,
        groups=units.groups,
        price=float(prices.min(initial=math.inf)) if prices.size else 0.0,
        limits=layers,
        prices=None if (prices == prices[:1]).all() else prices,
        knapsacks=knapsacks,
        crossing=crossing,
        order=order_of(declaration, units.numbers, units.number),
    )


def _budgets(declaration: Declaration, units: _Units) -> tuple[tuple[Knapsack, ...], int]:
    """Return the budgets over costs, and how many units they pay for at most.

    Without those that are a limit on their number, or none at all. A sum is within the budget up
    to a relative 1e-12, which is what adding decimal numbers may make it differ by.
    """
    found, affordable = [], units.number
    for card in declaration.cards:
        if card.most is None:
            continue
        costs, most = units.prices(card), card.most * (1.0 + _ROUNDING)
        paid = int(np.count_nonzero(np.cumsum(np.sort(costs)) <= most))
        affordable = min(affordable, paid)
        if paid < units.number and not np.all(costs == costs[:1]):
            found.append(Knapsack(costs, most))
    return tuple(found), affordable


class _Units:
    """The units that all cardinalities of a declaration count, numbered by their coordinates."""

    def __init__(self, declaration: Declaration, layout: Layout) -> None:
        self._layout, self._declaration = layout, declaration
        unit = np.full(layout.size, -1, dtype=np.intp)
        following, grouped = 0, False
        for card in declaration.cards:
            for part in card.counted:
                grouped = grouped or part.groups is not None
                following = self._enter(part, unit, following)
        self.free: IntArray = np.flatnonzero(unit < 0)
        self.number = following
        if not grouped:  # units are numbered as their coordinates are
            unit[unit >= 0] = np.arange(following)
        self._unit: IntArray = unit
        self.groups: IntArray | None = unit if grouped else None

    def _enter(self, part: CountedSpec, unit: IntArray, following: int) -> int:
        """Number the units of a part that are new; those known must be the same."""
        coordinates, labels = self._labelled(part)
        known = unit[coordinates]
        fresh = known < 0
        if fresh.all():
            unit[coordinates] = following + labels
            return following + int(labels.max(initial=-1)) + 1
        # One unit has one label, and one label one unit, over all coordinates of both.
        pairs = np.unique(np.stack([labels[~fresh], known[~fresh]]), axis=1)
        touched = np.isin(labels, pairs[0])
        sizes = np.bincount(unit[unit >= 0])[pairs[1]]
        if (
            np.unique(pairs[0]).size < pairs.shape[1]
            or np.unique(pairs[1]).size < pairs.shape[1]
            or np.any(fresh & touched)
            or not np.array_equal(sizes, np.bincount(labels)[pairs[0]])
        ):
            label = self._declaration.variables[part.variable].label
            raise ModelError(
                f"Two cardinalities count {label} in different ways: its entries are units in one "
                "and groups of them in another (or other groups). Give each group of one kind an "
                "entry of a variable g of its own with columns of zeros, `A @ w + np.zeros((n, m)) "
                "@ g`, and write `sm.chosen(w) <= sm.chosen(g)[labels]`, `sm.card(g) <= 2`: an "
                "entry is in only together with that of its group."
            )
        codes = np.unique(labels[fresh], return_inverse=True)[1].reshape(-1)
        unit[coordinates[fresh]] = following + codes
        return following + int(codes.max(initial=-1)) + 1

    def _labelled(self, part: CountedSpec) -> tuple[IntArray, IntArray]:
        layout = self._layout
        if layout.is_row(part.variable):
            label = self._declaration.variables[part.variable].label
            raise ModelError(
                f"{label} is an intercept row of a matrix problem and cannot be counted."
            )
        coordinates = layout.rows(part.variable, part.rows)
        groups = part.groups
        return coordinates, np.arange(coordinates.size) if groups is None else groups

    def numbers(self, part: CountedSpec) -> IntArray:
        """Return the unit of each entry or group of a part; -1 for what is in no limit."""
        coordinates, labels = self._labelled(part)
        found = np.full(int(labels.max(initial=-1)) + 1, -1)
        found[labels] = self._unit[coordinates]
        return found

    @property
    def nothing(self) -> FloatArray:
        """Return a price of zero for each unit."""
        return np.zeros(self.number)

    def prices(self, card: CardSpec) -> FloatArray:
        """Return the price of a cardinality on each unit; zero for those that it does not count."""
        total = self.nothing
        for part, given in zip(card.counted, card.prices, strict=False):
            coordinates, labels = self._labelled(part)
            one = self.nothing
            one[self._unit[coordinates]] = np.broadcast_to(given, labels.max(initial=-1) + 1)[
                labels
            ]
            total += one
        return total

    def of(self, card: CardSpec) -> IntArray:
        """Return the sorted units that a cardinality counts."""
        if len(self._declaration.cards) == 1:
            return np.arange(self.number)
        parts = [self._unit[self._labelled(part)[0]] for part in card.counted]
        return np.unique(np.concatenate(parts))


def _layers(
    limits: list[tuple[IntArray, int]], units: _Units
) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
    """Return the limits on parts of the units, inner sets first, and those that cross them.

    A set stands in the first layer above those of all sets within it. One that overlaps such a set
    without one being in the other crosses, as the columns of a matrix do beside its rows.
    """
    others: list[tuple[IntArray, int]] = []
    parts = [(chosen, k) for chosen, k in limits if k < chosen.size < units.number]
    parts.sort(key=lambda part: (part[0].size, part[1]))
    sets: list[IntArray] = []
    most: list[list[int]] = []
    sizes: list[list[int]] = []
    for chosen, k in parts:
        height, repeats, crosses = 0, False, False
        for level, labels in enumerate(sets):
            inside = labels[chosen]
            inner = np.unique(inside[inside >= 0])
            if not inner.size:
                continue
            covered = np.count_nonzero(inside >= 0)
            if sum(sizes[level][i] for i in inner) > covered:
                crosses = True
                break
            height = level + 1
            repeats = inner.size == 1 and covered == chosen.size == sizes[level][inner[0]]
        if crosses:
            others.append((chosen, k))
        if crosses or repeats:
            continue  # the same set with a smaller limit is there
        if height == len(sets):
            sets.append(np.full(units.number, -1, dtype=np.intp))
            most.append([])
            sizes.append([])
        sets[height][chosen] = len(most[height])
        most[height].append(k)
        sizes[height].append(chosen.size)
    layers = tuple(
        Layer(labels, np.array(numbers)) for labels, numbers in zip(sets, most, strict=True)
    )
    crossing = _layers(others, units) if others else ((), ())
    return layers, (*crossing[0], *crossing[1])


def _rank(layers: tuple[Layer, ...], number: int) -> int:
    """Return how many units may be nonzero together under limits on parts of them."""
    if not layers:
        return number
    free = Cardinality(number, number, limits=layers)
    return int(best_units(free, np.zeros(number)).size)
