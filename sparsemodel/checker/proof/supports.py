r"""Which units may be nonzero together, the least value that leaves to a bound, and trees of them.

A bound is a number ``base``, from which every nonzero unit ``g`` takes at most ``gains_g`` and to
which it adds its price. Of the units, at most ``budget`` are nonzero, of some sets at most so many,
all of them together cost no more than there is, and some need others beside them. So

.. math:: P \ge \text{base} - \max_S \sum_{g \in S} (\text{gains}_g - \text{prices}_g)

over the supports ``S`` that may be. For coordinates, groups, rows and the edges of a graph alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog

from sparsemodel.checker import files
from sparsemodel.checker.files import require
from sparsemodel.checker.proof.arithmetic import Ball, high, less, low, middle, number

Budget = tuple[Any, float]
"""What each unit takes, as floats, of what all nonzero ones together may."""


class Supports:
    """The sets of units that may be nonzero."""

    def __init__(
        self,
        budget: int,
        prices: Ball,
        held: Any = False,
        limits: Sequence[tuple[Any, int]] = (),
        budgets: Sequence[Budget] = (),
        order: Sequence[tuple[int, Any]] = (),
    ) -> None:
        """``prices`` are what each unit costs in the objective; those ``held`` are always nonzero.

        ``limits`` are sets of units with the number of them that may be nonzero, disjoint or one in
        another; ``budgets`` are all others; ``order`` has units, -1 for any, with those of which
        one has to be in beside them.
        """
        self.budget, self.prices, self.limits, self.order = budget, prices, limits, order
        self.count = int(prices.shape[0])
        self.held, plain = np.zeros(self.count, dtype=bool) | held, middle(prices)
        self.priced = len(budgets)
        self.rows = [*budgets, *(_ones(*limit, self.count) for limit in limits)]
        self.plain = not self.rows and not order and bool(np.all(plain == plain[:1]))
        """Whether units differ in nothing but what they gain."""

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
        over = any(_room(row, chosen) < 0.0 for row in self.rows)
        return out + ["the nonzero units are more, or cost more, than they may"] * over

    def bound(self, base: Any, gains: Any, inside: Any = False, out: Any = False) -> Any:
        """Return the least value where the units ``inside`` are in and ``out`` are not."""
        must, out = self.held | inside, np.zeros(self.count, dtype=bool) | out
        fits = self._decided(must, out) and not np.any(must & out) and must.sum() <= self.budget
        rooms = [_room(row, must) for row in self.rows]
        if not fits or min(rooms, default=0.0) < 0.0:
            return np.inf  # nothing is feasible there
        left = ~must & ~out
        for (costs, _), room in zip(self.rows[: self.priced], rooms, strict=False):
            left &= costs <= np.nextafter(room, np.inf)
        best, chosen = self._greedy(base, gains, self.prices, must, left)
        mu = self._multipliers(gains, must, left, chosen)
        if mu is None:
            return best
        dearer = self.prices  # mu' (costs - most) <= 0 may be added for mu >= 0
        for (costs, most), m in zip(self.rows, mu, strict=False):
            scaled = number(m, dearer.exact)
            dearer, base = dearer + scaled * costs, low(base - scaled * most)
        return max(best, self._greedy(base, gains, dearer, must, left)[0])

    def room(self, must: Any, left: Any) -> int:
        """Return how many units may be in: as many of the cheapest as budgets have room for."""
        most, chosen = self.budget, int(must.sum())
        for row in self.rows[: self.priced]:
            costs = np.cumsum(np.sort(row[0][left]))
            fits = np.searchsorted(costs, _room(row, must) + 1e-12 * abs(row[1]), side="right")
            most = min(most, chosen + int(fits))
        return most

    def _greedy(self, base: Any, gains: Any, prices: Ball, must: Any, left: Any) -> Any:
        """Return the bound at these prices, and the units that are in.

        Beside ``must`` one after the other, the most profitable first, where limits leave room: the
        best choice, as their sets are disjoint or one within the other.
        """
        profits, most = high(gains - prices), self.room(must, left)
        chosen, candidates = np.flatnonzero(must).tolist(), np.flatnonzero(left & (profits > 0))
        for unit in candidates[np.argsort(-profits[candidates], kind="stable")].tolist():
            if len(chosen) >= most:
                break
            own = (one for one in self.limits if unit in one[0])
            if all(np.isin(chosen, among).sum() < most for among, most in own):
                chosen.append(unit)
        return less(base, profits[chosen].tolist()), chosen

    def _multipliers(self, gains: Any, must: Any, left: Any, chosen: Any) -> Any:
        """Return multipliers of the budgets, unless they hold without: any are allowed.

        Those of the linear relaxation are the best, as the other limits are as good there.
        """
        worth = np.asarray(gains - middle(self.prices), dtype=float)
        on = left & (worth > 0.0)
        kept = all(_room(row, chosen) >= 0.0 for row in self.rows[: self.priced])
        if kept or not on.any() or not np.isfinite(worth[on].max()):
            return None
        table = np.array([*(costs for costs, _ in self.rows), np.ones(self.count)])
        tops = np.array([*(most for _, most in self.rows), self.budget], dtype=float)
        size, most = np.maximum(table.max(axis=1), np.finfo(float).tiny), worth[on].max()
        rooms = np.maximum((tops - table[:, must].sum(axis=1)) / size, 0.0)
        found = linprog(-worth[on] / most, table[:, on] / size[:, None], rooms, bounds=(0, 1))
        if found.status != 0:
            return None
        return np.maximum(-found.ineqlin.marginals / size, 0.0)[: self.priced] * most

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


def _room(budget: Budget, chosen: Any) -> float:
    """Return what units leave of what all together may cost."""
    costs, most = budget
    return math.fsum([most, *(-costs[chosen]).tolist()])


def _ones(among: Any, most: int, count: int) -> Budget:
    return np.bincount(among, minlength=count).astype(float), most


def supports_of(
    facts: dict[str, Any], held: dict[str, Any], kept: Any, exact: bool
) -> tuple[Supports, list[str]]:
    """Return what a file says of the supports, with hashes; units ``kept`` are in all."""
    units, price, given = kept.size, files.real(facts["price"]), "prices" in held
    k, forced = (files.whole(facts[name]) for name in ("k", "forced"))
    prices = (
        files.vector(held["prices"], (units,), "prices", 0.0) if given else np.full(units, price)
    )
    fits = 0 <= forced <= k and 0.0 <= price < math.inf and prices.min(initial=price) == price
    require(fits, "one of 'problem.k', 'forced', 'price' makes no sense")
    limits, crossing = (
        [(files.index(one["units"], units), files.whole(one["most"])) for one in held.get(key, [])]
        for key in ("limits", "crossing")
    )
    sets = np.array([_ones(*limit, units)[0] for limit in limits]).reshape(len(limits), units)
    common, sizes = sets @ sets.T, sets.sum(axis=1)
    nested = np.all((common == 0.0) | (common == np.minimum.outer(sizes, sizes)))
    require(nested, "limits hold for sets that overlap without one being in the other")
    costs = held.get("knapsack", [])
    knapsacks = [
        (files.vector(one["costs"], (units,), "costs", 0.0), files.real(one["most"]))
        for one in ([costs] if isinstance(costs, dict) else costs)
    ]
    fits = all(0.0 <= most < math.inf for _, most in [*knapsacks, *limits, *crossing])
    require(fits, "a limit or a budget is negative")
    order = [
        (files.whole(child), files.index(parents, units))
        for child, *parents in held.get("order", [])
    ]
    fits = all(-1 <= child < units for child, _ in order)
    require(fits, "a unit that needs others is not there")
    hashes = [f"{files.array_hash(s)}<={most}" for s, most in limits + crossing]
    hashes += [f"prices {files.array_hash(prices)}"] if given else []
    hashes += [f"{files.array_hash(costs)}<={most!r}" for costs, most in knapsacks]
    if order:
        rows = np.full((len(order), max(p.size for _, p in order) + 1), -2.0)
        for row, (child, parents) in zip(rows, order, strict=True):
            row[: parents.size + 1] = child, *parents
        hashes.append(f"order {files.array_hash(rows)}")
    budgets = knapsacks + [_ones(*limit, units) for limit in crossing]
    cost = number(prices, exact)
    return Supports(k - forced, cost, kept, limits, budgets, order), hashes


class Tree:
    """A tree of parts: every part's bound again, and that the parts cover all supports.

    A record is about the supports with some units in for good and some out. It may hold numbers
    from which a bound follows; units that this bound decides (``out``: whoever uses one is above
    the cut; ``in``: whoever does without); and what came next: another record for what is left, or
    two, one with a unit in and one with it out. -1 is a part that was not examined: it has the
    bound known so far. What records prove depends on the problem.
    """

    def __init__(self, nodes: list[Any], supports: Supports) -> None:
        self.nodes, self.supports, self.count = nodes, supports, supports.count

    def evaluate(self, record: Any, inside: Any, out: Any, facts: Any) -> Any:
        """Return what the numbers of a record prove: a base, gains of units, ..."""
        raise NotImplementedError

    def below(self, found: Any, inside: Any, out: Any, facts: Any) -> Any:
        """Return what is known of the matrices of a part's two children, beside their units."""
        return facts

    def bound(self, out: Any = False, facts: Any = None) -> Any:
        """Return the least bound of all parts; the units ``out`` are out from the beginning."""
        parts, seen, nobody = [], set[int](), np.zeros(self.count, dtype=bool)
        todo: list[tuple[Any, Any, Any, Any, Any]] = [(0, nobody, nobody | out, -np.inf, facts)]
        while todo:
            at, inside, out, known, facts = todo.pop()
            if at == -1:
                parts.append(known)
                continue
            fits = type(at) is int and 0 <= at < len(self.nodes) and at not in seen
            require(fits, f"record {at!r} of the tree appears twice, or is not there")
            seen.add(at)
            record = self.nodes[at]
            found = self.evaluate(record, inside, out, facts)
            known = max(known, self._at(found, inside, out))
            without, within = (
                files.index(record.get(name, []), self.count) for name in ("out", "in")
            )
            decided = inside | out
            fits = not decided[without].any() and not decided[within].any()
            decided[without] = True
            require(fits and not decided[within].any(), f"record {at} decides a unit twice")
            if without.size or within.size:
                parts += self._cut(found, inside, out, known, without, within)
                inside, out = inside.copy(), out.copy()
                inside[within], out[without] = True, True
                known = max(known, self._at(found, inside, out))
            if "next" in record:
                todo.append((record["next"], inside, out, known, facts))
            elif "branch" in record:
                unit, *children = record["branch"]
                j = np.isin(np.arange(self.count), files.index([unit], self.count))
                fits = not np.any(j & (inside | out)) and len(children) == 2
                require(fits, f"record {at} of the tree branches on a decided unit")
                below = self.below(found, inside, out, facts)
                for child, *masks in zip(
                    children, (inside | j, inside), (out, out | j), strict=True
                ):
                    todo.append((child, *masks, max(known, self._at(found, *masks)), below))
            else:
                parts.append(known)
        return min(parts)

    def _at(self, found: Any, inside: Any, out: Any) -> Any:
        return self.supports.bound(found[0], found[1], inside, out)

    def _cut(
        self, found: Any, inside: Any, out: Any, known: Any, without: Any, within: Any
    ) -> list[Any]:
        """Return bounds on what the decisions cut off: the worst unit of either kind decides.

        Where nothing distinguishes units, that is the one with the largest or least gain.
        """
        parts = []
        for units, worst, way in ((without, np.argmax, 1), (within, np.argmin, 0)):
            some = units[[worst(found[1][units])]] if self.supports.plain and units.size else units
            for j in some:
                alone = np.arange(self.count) == j
                masks = (inside | alone, out) if way else (inside, out | alone)
                parts.append(max(known, self._at(found, *masks)))
        return parts
