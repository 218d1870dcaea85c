"""A part of the feasible set, what a minorant proves about it, and what that decides."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U
from sparsemodel.certificates.dual_bounds.gains import priced_budget
from sparsemodel.interfaces import Cardinality, FloatArray, IntArray, Layer, Order
from sparsemodel.numerics import best_units

if TYPE_CHECKING:
    from sparsemodel.certificates.proving.bounder import NodeBounder

OUT, UNDECIDED, IN = -1, 0, 1
K_ALONE = Cardinality(0, 0)
"""No price, and no limit beside ``k``."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Minorant:
    """A function of units below the objective: ``base`` less the gains of the units chosen."""

    base: float
    gains: FloatArray
    """Upper bounds on what each unit can gain."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Proved:
    """A lower bound on a part, and what every further decision would make of it."""

    bound: float
    if_in: FloatArray
    """Bounds with one more undecided unit in; ``-inf`` for the decided ones."""
    if_out: FloatArray
    """Bounds with one more undecided unit out; ``-inf`` for the decided ones."""


@final
@dataclass(slots=True, eq=False)
class Node:
    """A part of the feasible set: some units in, some out, ``k`` of the rest to choose."""

    part: NodeBounder
    """Whose units these are."""
    status: Any
    """``OUT``, ``UNDECIDED`` or ``IN`` for each unit of the part, int8."""
    k: int
    """How many undecided units may still be nonzero."""
    start: FloatArray
    """A point to start from, in the form's coordinates."""
    hint: float = 0.0
    """The multiplier of the budget there, as far as a bounder knows it."""
    bound: float = -math.inf
    """Lower bound on the objective over this part."""
    link: tuple[int, int] | None = None
    """The record that this one continues: 0 for what it leaves, 1 and 2 for the two sides of its
    branch; None at the root."""
    depth: int = 0
    slopes: FloatArray | None = None
    """Of linear constraints, as for :class:`Relaxed`."""
    sizes: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Size of each unit in the relaxation's point."""

    @property
    def undecided(self) -> IntArray:
        """Return the undecided units that may be nonzero; none when the budget is spent."""
        if self.k <= 0:
            return np.empty(0, np.intp)
        undecided = np.flatnonzero(self.status == UNDECIDED)
        inside = np.flatnonzero(self.status == IN)
        sparsity = self.part.sparsity
        for layer in sparsity.layers:
            undecided = undecided[~layer.full(inside)[undecided]]
        for knapsack in sparsity.knapsacks:
            undecided = undecided[knapsack.fitting(inside)[undecided]]
        return undecided

    @property
    def most(self) -> int:
        """Return how many undecided units there is room for: ``k``, or less by a budget."""
        inside, undecided = np.flatnonzero(self.status == IN), self.undecided
        budgets = self.part.sparsity.knapsacks
        return min([self.k, *(one.count(inside, undecided) for one in budgets)])

    @property
    def choice(self) -> Cardinality:
        """Return what may be chosen of the undecided units, numbered from 0 on."""
        undecided, inside = self.undecided, np.flatnonzero(self.status == IN)
        rest = self.part.sparsity.after(inside, undecided)
        return replace(rest, k=max(self.k, 0), price=0.0, prices=None)

    def allows(self, units: IntArray, *, beside_others: bool = False) -> bool:
        """Return whether ``units`` may be nonzero with those that are in, or others ``beside``."""
        inside = np.flatnonzero(self.status == IN)
        together = np.concatenate([inside, units])
        sparsity = replace(self.part.sparsity, k=inside.size + self.k, forced_units=0)
        if beside_others:
            sparsity = replace(sparsity, order=None)
        return sparsity.within(together)

    @property
    def impossible(self) -> bool:
        """Return whether a unit that is in needs one that is out, or more than may be in."""
        if self.part.sparsity.order is None:
            return False
        nothing = self.decided(Minorant(0.0, np.zeros(self.status.size)))
        return nothing is not None and nothing.bound == math.inf

    def decided(self, low: Minorant) -> Proved | None:
        """Return what a minorant proves over the part; see :func:`decide`."""
        return decide(low, self.status, self.k, self.part.sparsity)

    def child(self, unit: int, decision: int, bound: float, link: tuple[int, int]) -> Node:
        """Return the part where one more unit is decided."""
        status = self.status.copy()
        status[unit] = decision
        k = self.k - (decision == IN)
        return Node(
            self.part,
            status,
            k,
            self.start,
            self.hint,
            bound,
            link=link,
            depth=self.depth + 1,
            slopes=self.slopes,
        )

    def moved(self, part: NodeBounder, hint: float = 0.0) -> Node:
        """Return the same part of the feasible set in the units of another bounder.

        Units that the other one does not have are out, or always in.
        """
        if part is self.part:
            return self
        status = self.status[np.searchsorted(self.part.units, part.units)]
        return replace(self, part=part, status=status, hint=hint, sizes=np.zeros(0))


def limits_left(limits: tuple[Layer, ...], status: Any, kept: IntArray) -> tuple[Layer, ...]:
    """Return what the units that are in leave of limits on parts to those ``kept``."""
    inside = np.flatnonzero(status == IN)
    return tuple(layer.left(inside, kept) for layer in limits)


def decide(low: Minorant, status: Any, k: int, sparsity: Cardinality = K_ALONE) -> Proved | None:
    """Return the bound of a minorant over a part, and those of the part's possible children.

    Of ``sparsity`` prices and limits beside ``k`` are read. Budgets over costs and limits that
    cross are left out and priced, and what either proves holds. What units need is in with them;
    what none of the undecided needs yet is left out.
    """
    if sparsity.order is not None:
        return _decided_in_order(low, status, k, sparsity, sparsity.order)
    if sparsity.greedy:
        return _decided(low, status, k, sparsity.unit_price, sparsity.limits)
    inside, left = np.flatnonzero(status == IN), np.flatnonzero(status == UNDECIDED)
    sparsity = replace(sparsity, k=inside.size + k, forced_units=0)
    if not replace(sparsity, k=max(sparsity.budget, inside.size)).within(inside):
        nowhere = np.full(status.size, -math.inf)
        return Proved(math.inf, nowhere, nowhere)  # those that are in cost more than may be spent
    gains, room = low.gains.copy(), np.ones(left.size, dtype=bool)
    for knapsack in sparsity.knapsacks:
        room &= knapsack.fitting(inside)[left]
        k = min(k, knapsack.count(inside, left))
    for layer in sparsity.crossing:
        room &= ~layer.full(inside)[left]
    gains[left[~room]] = -math.inf
    low = Minorant(low.base, gains)
    found = _decided(low, status, k, sparsity.unit_price, sparsity.limits)
    priced = priced_budget(sparsity, gains, inside, left[room])
    if found is None or priced is None:
        return found
    base = math.nextafter(low.base - priced[1], -math.inf)
    more = _decided(Minorant(base, gains), status, k, priced[0], sparsity.limits)
    if more is None:
        return found
    sides = (np.maximum(found.if_in, more.if_in), np.maximum(found.if_out, more.if_out))
    return Proved(max(found.bound, more.bound), *sides)


def _decided_in_order(
    low: Minorant, status: Any, k: int, sparsity: Cardinality, order: Order
) -> Proved | None:
    """Return what :func:`decide` does where units may be nonzero only beside others."""
    nowhere = np.full(status.size, -math.inf)
    implied = order.implied(status == IN, status == OUT)
    if implied is None:
        return Proved(math.inf, nowhere, nowhere)
    after = np.where(implied[0], IN, np.where(implied[1], OUT, UNDECIDED))
    k -= int(np.sum((after == IN) & (status != IN)))
    if k <= 0 and not order.is_closed(np.flatnonzero(after == IN)):
        return Proved(math.inf, nowhere, nowhere)
    found = decide(low, after, k, replace(sparsity, order=None))
    if found is None:
        return None
    # What decides a unit decides what needs it, or what it needs.
    if_in, if_out = found.if_in.copy(), found.if_out.copy()
    ends = np.append(after, (OUT, IN))  # what stands for a unit that is never in, or always
    open_ = ends[order.parents] == UNDECIDED
    alone = (ends[order.child] == UNDECIDED) & (open_.sum(axis=1) == 1)
    alone &= ~(ends[order.parents] == IN).any(axis=1)
    child, parent = order.child[alone], order.parents[alone][open_[alone]]
    for _ in range(status.size):  # no chain of them is longer
        before = np.concatenate([if_in, if_out])
        np.fmax.at(if_in, child, if_in[parent])
        np.fmax.at(if_out, parent, if_out[child])
        if np.array_equal(before, np.concatenate([if_in, if_out])):
            break
    since = (after != status) & np.isfinite(found.bound)
    if_in[since], if_out[since] = found.bound, math.inf
    if_in[since & (after == OUT)], if_out[since & (after == OUT)] = math.inf, found.bound
    if_in[status != UNDECIDED], if_out[status != UNDECIDED] = -math.inf, -math.inf
    return Proved(found.bound, if_in, if_out)


def _decided(
    low: Minorant, status: Any, k: int, price: float | FloatArray, limits: tuple[Layer, ...]
) -> Proved | None:
    r"""Return what :func:`decide` does with ``k`` and limits on parts of the units.

    The best units are chosen greedily. Putting in another one raises the bound by the least profit
    (gain less price) that it can take the place of, less its own; leaving out one of them by its
    profit less the largest that can take its place. Without ``limits`` on parts of the units these
    are the ``k``-th largest profit and the next. None where nothing is proved.
    """
    if_in, if_out = np.full(status.size, -math.inf), np.full(status.size, -math.inf)
    undecided = np.flatnonzero(status == UNDECIDED)
    limits = limits_left(limits, status, undecided)
    if k < 0 or any(np.any(layer.most < 0) for layer in limits):
        return Proved(math.inf, if_in, if_out)  # more units are in than may be
    prices = np.broadcast_to(price, status.shape)
    inside = low.gains[status == IN]
    if np.any(prices > 0.0):
        inside = np.nextafter(inside - prices[status == IN], math.inf)
    raw = low.gains[undecided] - prices[undecided]
    profits = np.maximum(raw, 0.0)
    chosen, rest, last, following = _exchanged(profits, min(k, undecided.size), limits)
    top = profits[chosen]
    if not (math.isfinite(low.base) and np.all(np.isfinite(inside)) and np.all(np.isfinite(top))):
        return None
    total = math.fsum([low.base, *(-inside).tolist(), *(-top).tolist()])
    # Each profit rounds once beside its price.
    paid, dearest = prices[undecided[chosen]].sum(), prices.max(initial=0.0)
    bound = math.nextafter(total - 2.0 * U * paid * (1.0 + U * top.size), -math.inf)
    if k == 0:
        if_in[undecided], if_out[undecided] = math.inf, bound
        return Proved(bound, if_in, if_out)
    # Each difference and sum rounds once.
    most, next_ = float(top.max(initial=0.0)), float(following.max(initial=0.0))
    slack = 4.0 * U * (abs(bound) + most + next_ + dearest)
    # For units outside the difference is negative or zero where their profit is larger than
    # rounding makes it; large gains only make it smaller.
    if_in[undecided[chosen]] = bound + np.maximum(-raw[chosen], 0.0) - slack
    if_in[undecided[rest]] = bound + (last - raw[rest]) - slack
    if_out[undecided[rest]] = bound
    if_out[undecided[chosen]] = bound + (profits[chosen] - following) - slack
    return Proved(bound, if_in, if_out)


def _exchanged(
    profits: FloatArray, k: int, limits: tuple[Layer, ...]
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return the best units, the others, and what each can be exchanged for.

    Of another one that is the least profit in the smallest full set that it is in (infinite where
    there is nothing to exchange it for), of one of the best the largest of those that it makes
    room for.
    """
    if not limits:
        order = np.argsort(-profits, kind="stable")
        chosen, rest = order[:k], order[k:]
        last = np.full(rest.size, profits[chosen[-1]] if k else math.inf)
        return chosen, rest, last, np.full(k, profits[rest[0]] if rest.size else 0.0)
    chosen = best_units(Cardinality(profits.size, k, limits=limits), profits)
    open_ = np.ones(profits.size, dtype=bool)
    open_[chosen] = False
    rest = np.flatnonzero(open_)
    least, most = np.zeros(profits.size), np.zeros(profits.size)
    whole = Layer(np.zeros(profits.size, dtype=np.intp), np.array([k]))
    for layer in (*limits, whole):  # inner sets first
        blocked = np.flatnonzero(open_ & layer.full(chosen))
        inner, outer = layer.sets[chosen], layer.sets[blocked]
        smallest = np.full(layer.most.size + 1, math.inf)
        largest = np.zeros(layer.most.size + 1)
        np.minimum.at(smallest, inner, profits[chosen])
        np.maximum.at(largest, outer, profits[blocked])
        largest[-1] = 0.0  # stands for no set
        least[blocked] = smallest[outer]
        most[chosen] = np.maximum(most[chosen], largest[inner])
        open_[blocked] = False
    return chosen, rest, least[rest], most[chosen]
