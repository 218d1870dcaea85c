"""A part of the feasible set, what a minorant proves about it, and what that decides."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U
from sparsemodel.interfaces import FloatArray, IntArray

if TYPE_CHECKING:
    from sparsemodel.certificates.proving.bounder import NodeBounder

OUT, UNDECIDED, IN = -1, 0, 1


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
    sizes: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Size of each unit in the relaxation's point."""

    @property
    def undecided(self) -> IntArray:
        """Return the undecided units; none when the budget is spent."""
        return np.flatnonzero(self.status == UNDECIDED) if self.k > 0 else np.empty(0, np.intp)

    def child(self, unit: int, decision: int, bound: float, link: tuple[int, int]) -> Node:
        """Return the part where one more unit is decided."""
        status = self.status.copy()
        status[unit] = decision
        k = self.k - (decision == IN)
        return Node(
            self.part, status, k, self.start, self.hint, bound, link=link, depth=self.depth + 1
        )

    def moved(self, part: NodeBounder, hint: float = 0.0) -> Node:
        """Return the same part of the feasible set in the units of another bounder.

        Units that the other one does not have are out, or always in.
        """
        if part is self.part:
            return self
        status = self.status[np.searchsorted(self.part.units, part.units)]
        return Node(
            part, status, self.k, self.start, hint, self.bound, link=self.link, depth=self.depth
        )


def decide(low: Minorant, status: Any, k: int, price: float = 0.0) -> Proved | None:
    r"""Return the bound of a minorant over a part, and those of the part's possible children.

    With :math:`a` the ``k``-th largest profit (gain less price) and :math:`b` the next, putting in
    a unit beyond the best ``k`` raises the bound by :math:`a` less its profit, leaving out one of
    the best by its profit less :math:`b`. None where nothing is proved.
    """
    if_in, if_out = np.full(status.size, -math.inf), np.full(status.size, -math.inf)
    undecided = np.flatnonzero(status == UNDECIDED)
    if k < 0:
        return Proved(math.inf, if_in, if_out)  # more units are in than may be
    inside = low.gains[status == IN]
    if price > 0.0:
        inside = np.nextafter(inside - price, math.inf)
    raw = low.gains[undecided] - price
    profits = np.maximum(raw, 0.0)
    budget = min(k, undecided.size)
    order = np.argsort(-profits, kind="stable")
    top = profits[order[:budget]]
    if not (math.isfinite(low.base) and np.all(np.isfinite(inside)) and np.all(np.isfinite(top))):
        return None
    total = math.fsum([low.base, *(-inside).tolist(), *(-top).tolist()])
    # Each profit rounds once beside its price.
    bound = math.nextafter(total - 2.0 * U * price * top.size, -math.inf)
    if k == 0:
        if_in[undecided], if_out[undecided] = math.inf, bound
        return Proved(bound, if_in, if_out)
    last = float(top[-1]) if k <= undecided.size else 0.0
    following = float(profits[order[budget]]) if budget < undecided.size else 0.0
    # A unit outside the top takes the place of the last one in it; one inside leaves its own to
    # the first outside. Each difference and sum rounds once.
    most = float(top[0]) if budget else 0.0
    slack = 4.0 * U * (abs(bound) + most + following + price)
    chosen, rest = order[:budget], order[budget:]
    # For units outside the difference is negative or zero where their profit is larger than
    # rounding makes it; large gains only make it smaller.
    if_in[undecided[chosen]] = bound + np.maximum(-raw[chosen], 0.0) - slack
    if_in[undecided[rest]] = bound + (last - raw[rest]) - slack
    if_out[undecided[rest]] = bound
    if_out[undecided[chosen]] = bound + (profits[chosen] - following) - slack
    return Proved(bound, if_in, if_out)


__all__ = ["IN", "OUT", "UNDECIDED", "Minorant", "Node", "Proved", "decide"]
