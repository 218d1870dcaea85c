r"""Which units may be nonzero together, and the least value that leaves to a bound.

A bound is a number ``base``, from which every nonzero unit ``g`` takes at most ``gains_g`` and to
which it adds its price. Of the units, at most ``budget`` are nonzero, of some sets at most so many,
all of them together cost no more than there is, and some need others beside them. So

.. math:: P \ge \text{base} - \max_S \sum_{g \in S} (\text{gains}_g - \text{prices}_g)

over the supports ``S`` that may be. For coordinates, groups, rows and the edges of a graph alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import linprog

from sparsemodel.checker.files import (
    Refuted,
    array,
    array_hash,
    in_words,
    index,
    listed,
    real,
    vector,
    whole,
)
from sparsemodel.checker.proof.arithmetic import Ball, Number, high, less, low, middle, number


@dataclass(eq=False)
class Supports:
    """The sets of units that may be nonzero."""

    budget: int
    prices: Number
    """What each unit costs in the objective."""
    limits: list[tuple[Any, int]]
    """Sets of units with the number of them that may be nonzero; disjoint, or one in another."""
    knapsacks: list[tuple[Any, float]]
    """What each unit takes, as floats, of what all nonzero ones together may."""
    order: list[tuple[int, Any]]
    """Units, -1 for any, with those of which one has to be in where they are."""
    held: Any
    """Units that are nonzero at every feasible point."""
    hashes: list[str] = field(default_factory=list)
    """Those of what the file says."""
    crossing: list[tuple[Any, int]] = field(default_factory=list)
    """Further sets of units with limits, which overlap those of ``limits``."""

    def __post_init__(self) -> None:
        self.count = int(self.prices.shape[0])
        prices = middle(self.prices)
        further = self.limits or self.order or self.knapsacks or self.crossing
        self.plain = not further and bool(np.all(prices == prices[:1]))
        """Whether units differ in nothing but what they gain."""

    def words(self, forced: int, kind: str) -> list[str]:
        """Return what is restricted and paid; ``forced`` more are nonzero by their bounds."""
        k, all_ = self.budget + forced, self.count + forced
        out = [
            f"plus a price for every nonzero unit, {in_words(middle(self.prices))}",
            f"at most k = {k} of {all_} nonzero, {forced} of them by their bounds: {kind}",
            *(f"  at most {n} of the units {listed(s)} nonzero" for s, n in self._sets),
            *(f"  unit {c} (-1: any) only beside one of {listed(p)}" for c, p in self.order),
        ]
        for costs, most in self.knapsacks:
            out.append(f"  nonzero units cost at most {most!r} together: {in_words(costs)}")
        return out

    @property
    def _sets(self) -> list[tuple[Any, int]]:
        return self.limits + self.crossing

    def closed(self, units: Iterable[int]) -> Any:
        """Return units with those that they need beside them.

        Of several that would do, the one that most of them ask for.
        """
        held = set(units)
        while asked := [p for c, p in self.order if c in (-1, *held) and held.isdisjoint(p)]:
            alone = [p for p in asked if len(p) == 1]
            numbers, times = np.unique(np.concatenate(asked), return_counts=True)
            if not numbers.size:
                break
            held |= set(np.concatenate(alone)) if alone else {int(numbers[np.argmax(times)])}
        return np.array(sorted(held), dtype=int)

    def broken(self, chosen: Any) -> list[str]:
        """Return what keeps a support from being one of these, in words."""
        out = []
        if chosen.size > self.budget:
            out.append(f"{chosen.size} counted units are nonzero, of at most {self.budget}")
        out += [
            f"more than {most} of a set of units are nonzero"
            for among, most in self._sets
            if np.isin(chosen, among).sum() > most
        ]
        over = any(_room(budget, chosen) < 0.0 for budget in self.knapsacks)
        return out + ["the nonzero units cost more than a budget"] * over

    def bound(self, base: Any, gains: Any, inside: Any = None, out: Any = None) -> Any:
        """Return the least value where the units ``inside`` are in and ``out`` are not."""
        nobody = np.zeros(self.count, dtype=bool)
        must = self.held | (nobody if inside is None else inside)
        out = nobody if out is None else out.copy()
        fits = self._decided(must, out) and not np.any(must & out) and must.sum() <= self.budget
        rooms = [_room(budget, must) for budget in self.knapsacks]
        over = min(rooms, default=0.0) < 0.0
        if not fits or over or any(must[s].sum() > most for s, most in self._sets):
            return np.inf  # nothing is feasible there
        left = ~must & ~out
        for (costs, _), room in zip(self.knapsacks, rooms, strict=True):
            left &= costs <= np.nextafter(room, np.inf)
        for among, most in self.crossing:
            left[among] &= must[among].sum() < most
        best, chosen = self._priced(base, gains, self.prices, must, left)
        budget = self._merged(gains, must, left, chosen)
        if budget is None:
            return best
        exact = not isinstance(self.prices, Ball)
        costs, most = (number(v, exact)[()] for v in budget)
        # mu (cost - most) <= 0 may be added for mu >= 0, which is concave: cut into halves.
        paying = left & (budget[0] > 0.0)
        worth = np.asarray(gains - middle(self.prices), dtype=float)[paying]
        ends = [0.0, float((worth / budget[0][paying]).max(initial=0.0))]
        for _ in range(80 if _room(budget, chosen) < 0.0 and ends[1] < np.inf else 0):
            mu = number(0.5 * sum(ends), exact)[()]
            less_, dearer = low(base - mu * most), self.prices + mu * costs
            found, chosen = self._priced(less_, gains, dearer, must, left)
            best = max(best, found)
            ends[0 if _room(budget, chosen) < 0.0 else 1] = 0.5 * sum(ends)
        return best

    def _merged(self, gains: Any, must: Any, left: Any, chosen: Any) -> tuple[Any, float] | None:
        """Return one budget that all supports keep: a sum of several with nonnegative weights.

        The weights are multipliers of the linear relaxation, which any others could replace.
        """
        if len(self.knapsacks) < 2 and not self.crossing:
            return self.knapsacks[0] if self.knapsacks else None
        ones = [np.bincount(s, minlength=self.count).astype(float) for s, _ in self._sets]
        rows = np.array([c for c, _ in self.knapsacks] + ones[::-1] + [np.ones(self.count)])
        most = [m for _, m in self.knapsacks] + [m for _, m in self._sets[::-1]] + [self.budget]
        tops = np.array(most, dtype=float)
        priced = len(self.knapsacks) + len(self.crossing)
        worth = np.asarray(gains - middle(self.prices), dtype=float)
        on = left & (worth > 0.0)
        if np.all(rows[:priced, chosen].sum(axis=1) <= tops[:priced]) or not on.any():
            return None
        size = np.maximum(rows.max(axis=1), np.finfo(float).tiny)
        rooms = (tops - rows[:, must].sum(axis=1)) / size
        scale = worth[on].max()
        if not np.isfinite(scale):
            return None
        table = rows[:, on] / size[:, None]
        found = linprog(-worth[on] / scale, A_ub=table, b_ub=np.maximum(rooms, 0.0), bounds=(0, 1))
        if found.status != 0:
            return None
        weights = np.maximum(-found.ineqlin.marginals / size, 0.0)[:priced] * scale
        costs, total = weights @ rows[:priced], float(weights @ tops[:priced])
        return costs * (1.0 - 1e-13), total * (1.0 + 1e-13)  # more than rounding

    def _priced(self, base: Any, gains: Any, prices: Number, must: Any, left: Any) -> Any:
        """Return the bound at these prices, and the units that are in.

        Beside ``must`` one after the other, the most profitable first, where limits leave room: the
        best choice, as their sets are disjoint or one within the other.
        """
        profits = high(gains - prices)
        chosen, candidates = np.flatnonzero(must).tolist(), np.flatnonzero(left & (profits > 0))
        for unit in candidates[np.argsort(-profits[candidates], kind="stable")].tolist():
            if len(chosen) == self.budget:
                break
            own = (one for one in self.limits if unit in one[0])
            if all(np.isin(chosen, among).sum() < most for among, most in own):
                chosen.append(unit)
        return less(base, profits[chosen].tolist()), chosen

    def _decided(self, must: Any, out: Any) -> bool:
        """Put in what units need, and out what needs those that are out; return whether it fits."""
        changed = True
        while changed:
            changed = False
            for child, parents in self.order:
                needed, left = child == -1 or must[child], parents[~out[parents]]
                if needed and not left.size:
                    return False
                if needed and left.size == 1 and not must[left[0]]:
                    must[left[0]] = changed = True
                if not needed and not left.size and not out[child]:
                    out[child] = changed = True
        asked = any((c == -1 or must[c]) and not must[p].any() for c, p in self.order)
        return not (asked and must.sum() >= self.budget)


def supports_of(facts: dict[str, Any], held: dict[str, Any], kept: Any, exact: bool) -> Supports:
    """Return what a file says of the supports; units that are ``kept`` are in all of them."""
    units, price = kept.size, real(facts["price"])
    k, forced = whole(facts["k"]), whole(facts["forced"])
    prices = np.full(units, price)
    if "prices" in held:
        prices = vector(array(held["prices"]), (units,), "prices", 0.0)
    if not 0 <= forced <= k or not 0.0 <= price < math.inf or prices.min(initial=price) != price:
        raise Refuted("one of 'problem.k', 'forced', 'price' makes no sense.")
    limits, crossing = (
        [(index(one["units"], units), whole(one["most"])) for one in held.get(key, [])]
        for key in ("limits", "crossing")
    )
    outer, sizes = np.full(units, -1), list[int]()  # the largest set so far around each unit
    for among, _ in sorted(limits, key=lambda one: int(one[0].size)):
        inner = outer[among][outer[among] >= 0]
        if sum(sizes[i] for i in np.unique(inner)) != inner.size:
            raise Refuted("limits hold for sets that overlap without one being in the other.")
        outer[among] = len(sizes)
        sizes.append(int(among.size))
    given = held.get("knapsack", [])
    knapsacks = [
        (vector(array(one["costs"]), (units,), "costs", 0.0), real(one["most"]))
        for one in ([given] if isinstance(given, dict) else given)
    ]
    if any(not 0.0 <= most < math.inf for _, most in knapsacks):
        raise Refuted("a budget is negative.")
    order = [(whole(child), index(parents, units)) for child, *parents in held.get("order", [])]
    if any(most < 0 for _, most in limits + crossing) or any(
        not -1 <= child < units for child, _ in order
    ):
        raise Refuted("a limit is negative, or a unit that needs others is not there.")
    hashes = [f"{array_hash(s)}<={most}" for s, most in limits + crossing]
    hashes += [f"prices {array_hash(prices)}"] if "prices" in held else []
    hashes += [f"{array_hash(costs)}<={most!r}" for costs, most in knapsacks]
    if order:
        rows = np.full((len(order), max(p.size for _, p in order) + 1), -2.0)
        for row, (child, parents) in zip(rows, order, strict=True):
            row[: parents.size + 1] = child, *parents
        hashes.append(f"order {array_hash(rows)}")
    rest = knapsacks, order, kept, hashes, crossing
    return Supports(k - forced, number(prices, exact), limits, *rest)


def _room(budget: tuple[Any, float], chosen: Any) -> float:
    """Return what units leave of what all together may cost."""
    costs, most = budget
    return math.fsum([most, *(-costs[chosen]).tolist()])
