"""The record of a proof: enough to check every region that was discarded."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np

from sparsemodel.certificates.dual_bounds.bound import Bound
from sparsemodel.certificates.proving.branch_and_bound.domain import (
    Domain,
    forced_values,
    node_value,
)
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.interfaces import BoolArray


def _none() -> BoolArray:
    return np.zeros(0, dtype=bool)


@final
@dataclass(slots=True, eq=False)
class Node:
    """A region: a domain, units in, units out; what was proved there and how it was divided."""

    domain: int
    inside: BoolArray
    out: BoolArray
    witness: Witness | None = None
    cannot_in: BoolArray = field(default_factory=_none)
    """Units deleted because putting them in costs too much."""
    cannot_out: BoolArray = field(default_factory=_none)
    """Units put in because leaving them out costs too much."""
    branch: int = -1
    """Unit that was branched on; -1 for none."""
    children: tuple[int, int] = (-1, -1)
    """Nodes with the unit in and out; -1 where this node's own dual point is all there is."""
    successor: int = -1
    """Node that is the same region in a smaller domain; -1 for none."""

    def refined(self) -> tuple[BoolArray, BoolArray]:
        """Return the units in and out after fixing."""
        if not self.cannot_in.size:
            return self.inside, self.out
        return self.inside | self.cannot_out, self.out | self.cannot_in

    def child(self, is_in: bool) -> tuple[BoolArray, BoolArray]:
        """Return the units in and out of a child."""
        inside, out = (mask.copy() for mask in self.refined())
        (inside if is_in else out)[self.branch] = True
        return inside, out


def region_bounds(nodes: list[Node], domains: list[Domain], bounds: list[Bound]) -> list[float]:
    """Return the lower bound that the record proves on the region of every node.

    ``bounds`` are the evaluated dual points, node by node. Nodes come after their parents.
    """
    values = [-math.inf] * len(nodes)
    for i in range(len(nodes) - 1, -1, -1):
        node, bound = nodes[i], bounds[i]
        form = domains[node.domain].form
        own = node_value(bound, form, node.inside, node.out)
        rest = own
        if node.successor >= 0:
            rest = values[node.successor]
        elif node.branch >= 0:
            rest = min(
                max(
                    values[child] if child >= 0 else -math.inf,
                    node_value(bound, form, *node.child(is_in)),
                )
                for child, is_in in zip(node.children, (True, False), strict=True)
            )
        elif node.cannot_in.size:
            rest = node_value(bound, form, *node.refined())
        values[i] = max(own, min(rest, discarded(node, domains, bound)))
    return values


def discarded(node: Node, domains: list[Domain], bound: Bound) -> float:
    """Return the lower bound on the parts of a region that fixing units gave up."""
    if not node.cannot_in.size or not (node.cannot_in.any() or node.cannot_out.any()):
        return math.inf
    form = domains[node.domain].form
    if_in, if_out = forced_values(bound, form, node.inside, node.out)
    lowest = math.inf
    if node.cannot_in.any():
        lowest = float(if_in[node.cannot_in].min())
    if node.cannot_out.any():
        lowest = min(lowest, float(if_out[node.cannot_out].min()))
    return lowest


__all__ = ["Node", "discarded", "region_bounds"]
