"""What a path is: a solution for each k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

from sparsemodel.compiler.choice.effort import Effort
from sparsemodel.interfaces import Backend, Cardinality, FloatArray, Form, Stop


@final
@dataclass(frozen=True, slots=True)
class Search:
    """How a path is searched: on all observations and without some of them alike."""

    sweeps: int = 1
    """How often improvements are carried down and up again."""
    effort: Effort = "medium"
    """How long each ``k`` is searched on its own."""
    backend: str | Backend | None = None
    """What searches each ``k`` in place of the algorithm for paths."""
    near: Sequence[PathPoint] = ()
    """The solutions of a problem like this one for the same ``k``, to start from, too."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class PathPoint:
    """The solution for one k, in the coordinates of the unreduced form."""

    k: int
    x: FloatArray
    value: float
    """The objective; without a price until :func:`with_prices` has added it."""


class PathResult(NamedTuple):
    """The points of a path, the smallest ``k`` first."""

    points: list[PathPoint]
    passes: float
    """What they cost, in passes over the data."""
    stop: Stop = Stop.CONVERGED
    """Why the path ends where it does: a time limit or Ctrl-C may have ended it early."""

    def uninterrupted(self) -> PathResult:
        """Return the path itself; Ctrl-C is passed on to callers that follow many paths."""
        if self.stop is Stop.INTERRUPTED:
            raise KeyboardInterrupt
        return self


def sizes_to_follow(ks: Sequence[int], form: Form) -> Sequence[int]:
    """Return the limits to follow for those in ``ks``: with a price, fewer units may be best."""
    sparsity = form.cardinality
    if sparsity.price == 0.0:
        return ks
    least = min(ks) if form.constrained else min(sparsity.forced_units, min(ks))
    return range(least, max(ks) + 1)


def with_prices(path: PathResult, sparsity: Cardinality, ks: Sequence[int]) -> PathResult:
    """Return the points at ``ks`` with the price of every unit in the objective, as declared.

    What a unit more is worth may be less than its price: then the point with fewer stays, so that
    the objective never rises with ``k``.
    """
    if sparsity.price == 0.0:
        return path
    points: list[PathPoint] = []
    for point in path.points:
        worth = point.value + sparsity.price * sparsity.count(point.x)
        if points and points[-1].value <= worth:
            points.append(PathPoint(point.k, points[-1].x, points[-1].value))
        else:
            points.append(PathPoint(point.k, point.x, worth))
    reached = [point for point in points if point.k in ks]
    return path._replace(points=reached or [replace(points[-1], k=ks[0])])
