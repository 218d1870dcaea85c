"""Better points found on the way: supports read off relaxations, refitted on the original data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemodel.certificates.proving.bounder import NodeBounder
from sparsemodel.certificates.proving.node import IN, Node
from sparsemodel.interfaces import Cardinality, FloatArray, IntArray
from sparsemodel.numerics import best_units

_ROUNDING = 2.0**-50
"""Relative difference of objectives that is none: the point that was given stays, and what is known
of it need not be read again."""


class Incumbent:
    """The best feasible point so far; supports are refitted once each."""

    def __init__(
        self, sparsity: Cardinality, x: FloatArray, value: Callable[[FloatArray], float]
    ) -> None:
        """``value`` rounds the objective up; it is infinite where a point is not feasible."""
        self._sparsity, self._value = sparsity, value
        self.x: FloatArray = x
        self.upper: float = value(x)
        self._tried: set[bytes] = set()

    def offer(self, node: Node) -> bool:
        """Refit the support that a relaxation points at; return whether that is better."""
        part, undecided = node.part, node.undecided
        sizes = node.sizes[undecided]
        best = best_units(node.choice, sizes)
        chosen = undecided[best[np.argsort(-sizes[best], kind="stable")]]
        if self._sparsity.order is None:  # else what others need may be zero
            chosen = chosen[node.sizes[chosen] > 0.0]
        inside = part.units[node.status == IN]
        better = False
        # Where fewer may be better, as with a price, the smallest go first.
        fewest = 0 if part.fewer else chosen.size
        for count in range(chosen.size, fewest - 1, -1):
            units = np.concatenate([part.inside_units, inside, part.units[chosen[:count]]])
            better = self.refit(part, np.sort(units)) or better
        return better

    def refit(self, part: NodeBounder, units: IntArray) -> bool:
        """Minimise on the support of some units and keep the point if it is feasible and better.

        With them are those that they need.
        """
        if self._sparsity.order is not None:
            units = self._sparsity.order.closure(units)
        key = units.tobytes()
        if key in self._tried:
            return False
        self._tried.add(key)
        x = part.minimiser(self._sparsity.coordinates(units), self.upper)
        return x is not None and self.take(x)

    def take(self, x: FloatArray) -> bool:
        """Keep a point if it is feasible and better by more than rounding."""
        if not np.all(np.isfinite(x)):
            return False
        upper = self._value(x)
        if not self.upper - upper > _ROUNDING * abs(upper):
            return False
        self.x, self.upper = x, upper
        return True
