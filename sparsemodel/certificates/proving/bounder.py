"""The interface between a search and what bounds its nodes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

from sparsemodel.certificates.proving.node import K_ALONE, Minorant, Node
from sparsemodel.interfaces import Cardinality, FloatArray, IntArray

COPIED = 0.5
"""Share of the units that are left up to which the children of a node get a smaller part."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class RecordedCurvature:
    """Curvature taken out of the data, as a record holds it: in the form's coordinates."""

    active: IntArray
    """The coordinates that it covers."""
    delta: FloatArray
    """The curvature of each of them."""
    stiffness: FloatArray | None = None
    """Of equations, beside which the rest is positive semidefinite; None without equations. Slacks
    of inequalities then are coordinates as well, after those of the form."""
    pairs: tuple[IntArray, IntArray, FloatArray] | None = None
    """Two coordinates each, and what is taken out of the product of the two."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """A node's relaxation: where it is, and what that proves."""

    x: FloatArray
    """In the form's coordinates."""
    hint: float
    """The multiplier of the budget, for the next start."""
    sizes: FloatArray
    """Size of each unit of the part."""
    minorant: Minorant | None
    """Over the units of the part; None where the point proves nothing."""
    at: FloatArray | None = None
    """The point of the record, where it is not ``x``."""
    duals: tuple[FloatArray, ...] | None = None
    """The dual point of the record; None where it follows from the point and the stage."""
    stage: RecordedCurvature | None = None
    slopes: FloatArray | None = None
    """Of linear constraints in the objective, where they are the node's own."""
    balanced: IntArray | None = None
    """The form's coordinates whose slopes are exactly zero near the dual point."""
    interrupted: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """All that there is to know about a node: no branching can raise its bound."""

    bound: float
    x: FloatArray | None = None
    """The best point, where it is known."""
    units: IntArray | None = None
    """The form's units of its support, where these are."""
    duals: tuple[FloatArray, ...] | None = None
    """The dual point of the record; None where every support was looked at."""
    balanced: IntArray | None = None
    """As for :class:`Relaxed`."""
    rough: bool = False
    """Whether supports were bounded without some constraints, so that a gap may be left."""


@final
@dataclass(frozen=True, slots=True)
class Aim:
    """What a relaxation is solved for."""

    cutoff: float
    """The bound from which on the node is closed."""
    upper: float
    """The best objective so far."""
    deadline: float | None = None
    exact: bool = False
    """Ask for all that floating point gives, not just for a decision."""


class NodeBounder(ABC):
    """Bounds the nodes of a part of a problem: the units that are left, some others in for good.

    Attributes
    ----------
    units
        The form's numbers of the units, sorted.
    inside_units
        Those that are in for good.
    sparsity
        Prices of the units and limits on parts of them, numbered as ``units`` are.
    fewer
        Whether fewer units than may be chosen may be better.
    rounding
        Gap below which rounding leaves nothing to be closed.
    needs_record
        Whether its own bounds round as they like: what is stated is evaluated from the record,
        for which a file must have room.
    """

    units: IntArray
    inside_units: IntArray
    sparsity: Cardinality = K_ALONE
    rounding: float = 0.0
    fewer: bool = False
    needs_record: bool = False

    @abstractmethod
    def at_start(self, node: Node, aim: Aim) -> Relaxed | None:
        """Return what the node's start proves as it is, for next to nothing; None for nothing."""

    @abstractmethod
    def relax(self, node: Node, aim: Aim) -> Relaxed | None:
        """Return the node's relaxation; None where there is none."""

    @abstractmethod
    def finishes(self, node: Node) -> bool:
        """Return whether :meth:`finish` is the first thing to try for a node."""

    @abstractmethod
    def finish(self, node: Node, *, roughly: bool = False) -> Finished | None:
        """Bound a node with little left to choose once and for all; None where that is too much.

        With ``roughly`` it may also be a bound that need not close the node.
        """

    @abstractmethod
    def shrunk(self, node: Node, before: int) -> NodeBounder | None:
        """Return the bounder to relax a node with again, after fixing; None to branch.

        ``before`` units were undecided when it was relaxed last.
        """

    def branching(self, node: Node, aim: Aim) -> int | None:
        """Return the place of the unit to branch on; None for the largest one."""
        return None

    def proposals(self, node: Node, upper: float) -> list[FloatArray]:
        """Return points found from a node's relaxation that may be better than ``upper``."""
        return []

    def copied(self, node: Node) -> NodeBounder | None:
        """Return this part without the units that are out, for a node's children; None to stay."""
        return None

    @abstractmethod
    def on(self, status: Any) -> NodeBounder:
        """Return a bounder for the units that are not out: ``status`` of all units."""

    @abstractmethod
    def minimiser(self, support: IntArray, below: float) -> FloatArray | None:
        """Return the minimiser on a support (coordinates, with those that are always in).

        None where it would not be better than ``below``, or is not feasible.
        """

    @property
    def delay(self) -> float:
        """Return the seconds that compiling took, which do not count as search."""
        return 0.0

    @property
    def operations(self) -> float:
        """Return about how many operations relaxations took so far, where they are counted."""
        return 0.0


def goal_of(node: Node, aim: Aim) -> Any:
    """Return when a relaxation with a value and a bound is solved well enough."""
    everything = node.allows(node.undecided)

    def enough(value: float, bound: float) -> bool:
        if bound >= aim.cutoff + 1e-9 * abs(aim.cutoff):
            return True
        tight = value - bound <= 1e-9 * max(abs(value), abs(bound))
        # It will not prune: what remains to be known is which units can be fixed.
        return tight or (
            not everything and value < aim.cutoff and value - bound <= 0.05 * (aim.cutoff - bound)
        )

    return enough


def proved_of(node: Node, found: Relaxed | None) -> float:
    """Return what a relaxation proves of a node."""
    proved = None if found is None or found.minorant is None else node.decided(found.minorant)
    return -math.inf if proved is None else proved.bound
