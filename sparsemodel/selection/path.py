"""What a path is: a solution for each k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

from sparsemodel.interfaces import FloatArray, Stop


@final
@dataclass(frozen=True, slots=True, eq=False)
class PathPoint:
    """The solution for one k, in the coordinates of the unreduced form."""

    k: int
    x: FloatArray
    value: float
    """Objective without a price."""


class Followed(NamedTuple):
    """The points of a path, the smallest ``k`` first."""

    points: list[PathPoint]
    passes: float
    """What they cost, in passes over the data."""
    stop: Stop = Stop.CONVERGED
    """Why the path ends where it does: a time limit or Ctrl-C may have ended it early."""

    def uninterrupted(self) -> list[PathPoint]:
        """Return the points, all of them: Ctrl-C goes on to whoever follows many paths."""
        if self.stop is Stop.INTERRUPTED:
            raise KeyboardInterrupt
        return self.points


__all__ = ["Followed", "PathPoint"]
