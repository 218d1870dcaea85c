"""What the compiled solver of nodes takes and passes on: records that Numba reads as tuples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparsemodel.interfaces import FloatArray, IntArray


class NodeProblem(NamedTuple):
    """The relaxation of one node, on scaled coordinates."""

    q: FloatArray
    """Matrix of the quadratic; empty where there are too many coordinates to hold it."""
    g: FloatArray
    """Minus its linear part."""
    constant: float
    d: FloatArray
    """Curvatures that a choice is paid with: one after scaling, or less."""
    low: FloatArray
    high: FloatArray
    """Bounds, zero between them."""
    status: npt.NDArray[np.int8]
    """``OUT``, ``UNDECIDED`` or ``IN`` for each coordinate; those that are in have paid."""
    k: float
    """Budget of the undecided coordinates."""
    costs: FloatArray
    """What each takes of it."""
    prices: FloatArray
    """Price of each beside ``floor ** 2 / 2``, which all have."""
    floor: float

    def on(self, some: IntArray, q: FloatArray) -> NodeProblem:
        """Return the problem on some of its coordinates, which have the matrix ``q``."""
        return NodeProblem(
            q,
            self.g[some],
            self.constant,
            self.d[some],
            self.low[some],
            self.high[some],
            self.status[some],
            self.k,
            self.costs[some],
            self.prices[some],
            self.floor,
        )


class Limits(NamedTuple):
    """When the solver of a node stops."""

    cutoff: float
    """Bound that is enough."""
    tolerance: float
    """Difference of value and bound that is exact."""
    rounds: int


COORDINATE = np.dtype(
    [(name, np.float64) for name in ("g", "d", "low", "high", "cost", "price")]
    + [("inside", np.bool_)],
    align=True,
)
"""What a coordinate has in the arrays of a :class:`NodeProblem`, side by side."""


class PackedNode(NamedTuple):
    """A :class:`NodeProblem` as its solver passes it on: few arrays, as each one has to be counted
    wherever it goes."""

    q: FloatArray
    constant: float
    coordinates: npt.NDArray[np.void]
    """One :data:`COORDINATE` each."""
    live: IntArray
    """Those that may be nonzero."""
    undecided: IntArray
    """Those of them that are not in."""
    k: float
    floor: float
    plain: bool
    """Whether the budget has room for all."""
    free: bool
    """Whether nothing has a price either."""


class Point(NamedTuple):
    """A point, changed in place."""

    w: FloatArray
    slopes: FloatArray
    """``q @ w - g``."""


ACTIVE = np.dtype(
    [("index", np.int64), ("kind", np.int64)]
    + [(name, np.float64) for name in ("sign", "rate", "width")]
)
"""A coordinate that is not zero: which one, its kind, the sign, the slope of its linear penalty in
``t``, and where that penalty ends or the value at a bound.

Kinds: 0 linear with a width that ``t`` sets, 1 linear up to a bound, 2 full, 3 at a bound, 4 in for
good, 5 in for good and at a bound."""
