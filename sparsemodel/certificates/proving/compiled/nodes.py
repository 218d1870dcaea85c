"""One node of the search: its fixings, its rigorous bound, and what that bound decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import CAUTION, U
from sparsemodel.certificates.proving.compiled.quadratic import Minorant, Quadratic, minorant
from sparsemodel.certificates.proving.compiled.stage import Stage
from sparsemodel.interfaces import FloatArray

OUT, UNDECIDED, IN = -1, 0, 1


@final
@dataclass(slots=True, eq=False)
class Node:
    """A part of the feasible set: some candidates out, some in, ``k`` of the rest to choose."""

    status: Any
    """``OUT``, ``UNDECIDED`` or ``IN`` for each active coordinate of the stage, int8."""
    k: int
    """How many undecided coordinates may still be nonzero."""
    w: FloatArray
    """Scaled point of the relaxation."""
    t: float
    bound: float = -math.inf
    """Rigorous lower bound on the objective over this part."""
    value: float = math.inf
    """Value of the relaxation."""
    record: int = -1
    """Number of the record of the last point."""
    stage: Stage | None = None
    """Whose coordinates these are; None for a node that is not kept for branching."""

    @property
    def undecided(self) -> Any:
        """Return the undecided coordinates, none when the budget is spent."""
        return np.flatnonzero(self.status == UNDECIDED) if self.k > 0 else np.empty(0, np.intp)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Proved:
    """A rigorous node bound and what every further decision would add to it."""

    bound: float
    minorant: Minorant
    if_in: FloatArray
    """Bounds with one more undecided coordinate in; ``inf`` elsewhere."""
    if_out: FloatArray
    """Bounds with one more undecided coordinate out; ``-inf`` elsewhere."""


def prove_node(q: Quadratic, stage: Stage, node: Node, w: FloatArray) -> Proved | None:
    """Return the bound that the scaled point ``w`` proves for a node, valid in exact arithmetic.

    Taken with :data:`CAUTION`, so that whoever checks it proves no less.
    """
    at = stage.point(w)
    low = minorant(q, stage.active, stage.balanced, at, stage.delta, caution=CAUTION)
    if low is None:
        return None
    return bounds_of(low, node.status, node.k)


def bounds_of(low: Minorant, status: Any, k: int) -> Proved | None:
    """Return the bound of a minorant over a node, and those of the node's possible children."""
    gains = low.gains
    inside = gains[status == IN]
    undecided = np.flatnonzero(status == UNDECIDED) if k > 0 else np.empty(0, np.intp)
    own = gains[undecided]
    budget = min(k, undecided.size)
    order = np.argsort(-own, kind="stable")
    top = own[order[:budget]]
    if not (np.all(np.isfinite(inside)) and np.all(np.isfinite(top))):
        return None
    total = math.fsum([low.base, *(-inside).tolist(), *(-top).tolist()])
    bound = math.nextafter(total, -math.inf)
    last = float(top[-1]) if budget else 0.0
    following = float(own[order[budget]]) if budget < undecided.size else 0.0
    if_in = np.full(gains.size, np.inf)
    if_out = np.full(gains.size, -np.inf)
    # A coordinate outside the top takes the place of the last one in it; one inside leaves its
    # own to the first outside. Each difference and sum rounds once.
    slack = 4.0 * U * (abs(bound) + (float(top[0]) if budget else 0.0) + following)
    outside, within = undecided[order[budget:]], undecided[order[:budget]]
    if_in[within] = bound
    if_in[outside] = bound + (last - gains[outside]) - slack
    if_out[outside] = bound
    if_out[within] = bound + (gains[within] - following) - slack
    return Proved(bound, low, if_in, if_out)


__all__ = ["IN", "OUT", "UNDECIDED", "Node", "Proved", "bounds_of", "prove_node"]
