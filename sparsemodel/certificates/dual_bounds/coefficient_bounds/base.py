"""What is claimed about the coefficients of restricted minimisers, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from sparsemodel.certificates.dual_bounds.bound import Bound
from sparsemodel.interfaces import FloatArray, IntArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class CoefficientBounds:
    """``|w_j| <= radius[j]`` for every restricted minimiser, and what its check needs."""

    radius: FloatArray
    """One for every coordinate; infinite for the free ones."""
    starts: IntArray
    neighbours: IntArray
    """Coordinates eliminated for row ``j``: ``neighbours[starts[j]:starts[j + 1]]``."""
    level: float
    """Only minimisers with at most this objective are meant; infinite where the ridge is not used.
    """


METHOD = "coefficient bounds from the data"

STATEMENT = (
    "on every support the minimiser's coefficients lie within bounds that the data prove (weighted "
    "diagonal dominance of all small principal submatrices, checked row by row)"
)


def named(bound: Bound, bounds: CoefficientBounds | None) -> Bound:
    """Return a bound whose method says that it rests on coefficient bounds, where it does."""
    return bound if bounds is None else replace(bound, method=f"{bound.method} with {METHOD}")
