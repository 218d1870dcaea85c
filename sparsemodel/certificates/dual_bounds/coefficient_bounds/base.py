"""What is claimed about the coefficients of good points, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, final

from sparsemodel.certificates.dual_bounds.bound import Bound
from sparsemodel.interfaces import FloatArray, IntArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class CoefficientBounds:
    """``|w_j| <= radius[j]`` for every restricted minimiser, and what its check needs."""

    NEWER: ClassVar[tuple[str, ...]] = ("room",)

    radius: FloatArray
    """One for every coordinate; infinite for the free ones."""
    starts: IntArray
    neighbours: IntArray
    """Coordinates eliminated for row ``j``: ``neighbours[starts[j]:starts[j + 1]]``."""
    level: float
    """Only minimisers with at most this objective are meant; infinite where the ridge is not used.
    """
    room: float | None = None
    """For bounds on all points at the level, whatever other constraints there are: by how much it
    is above the infimum of the losses. None for bounds on minimisers without such constraints."""

    @property
    def statement(self) -> str:
        """Return what they say, in words."""
        return STATEMENT if self.room is None else AT_A_LEVEL


METHOD = "coefficient bounds from the data"

STATEMENT = (
    "on every support the minimiser's coefficients lie within bounds that the data prove (weighted "
    "diagonal dominance of all small principal submatrices, checked row by row)"
)

AT_A_LEVEL = (
    "no point with a lower objective than a level, above the bound, has coefficients beyond bounds "
    "that the data prove (weighted diagonal dominance and the gradients that are possible there)"
)


def named(bound: Bound, bounds: CoefficientBounds | None) -> Bound:
    """Return a bound whose method says that it rests on coefficient bounds, where it does.

    What they leave out may be as low as their level, where they are bounds on all points.
    """
    if bounds is None:
        return bound
    most = bound.value if bounds.room is None else min(bound.value, bounds.level)
    return replace(bound, value=most, method=f"{bound.method} with {METHOD}")
