r"""Exact exchange of coordinates for quadratic objectives, at two or three products a swap.

Let ``S`` be a support, ``x`` the minimiser over it, ``g`` the gradient there and
:math:`d_i = H_{ii} - H_{iS} H_{SS}^{-1} H_{Si}` the square norm of what the columns of ``S``
leave of column ``i``. With :math:`v_j = H_{SS}^{-1} e_j / (H_{SS}^{-1})_{jj}` and
:math:`c_j = H v_j`, dropping ``j`` costs :math:`x_j^2 / (2 (H_{SS}^{-1})_{jj})` and leaves

.. math:: g' = g - x_j c_j, \qquad d' = d + (H_{SS}^{-1})_{jj}\, c_j \circ c_j ,

after which adding ``i`` gains :math:`g_i'^2 / (2 d_i')`. So one product :math:`H v_j` prices all
swaps with ``j``, and a block of products those of several ``j`` at the speed of a matrix product.

Most columns need no price. With :math:`e_i = H_{ii} - d_i` what ``S`` explains of column ``i``,
:math:`c_{ji}^2 \le e_i / (H_{SS}^{-1})_{jj}`, so that no swap gains anything where

.. math:: |g_i| + \sqrt{2 t\, e_i} \le \sqrt{2 t\, d_i}

with ``t`` the least that a removal costs. Of 50,000 words fewer than a hundred are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Objective,
    Point,
    coordinate_scores,
)
from sparsemodel.numerics.curvatures.curvature import (
    full_diagonal,
    hessian_columns,
    hessian_square_norms,
)
from sparsemodel.numerics.exchange.support_factor import SupportFactor, has_common_hessian
from sparsemodel.numerics.minimisers.few_columns import INDEPENDENT

_BLOCK_ENTRIES = 2**21
"""Entries of a block of prices (16 MB)."""
_REFRESH = 50
"""Updates of ``g`` and ``d`` after which they are computed again."""
_ROUNDING = 1e-10
"""Share of its curvature by which what is known of a column may be wrong."""
_FEW = 0.05
"""Share of the coordinates up to which only those are priced that may gain."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Swap:
    """An exchange, what it would change the objective by, and the products that priced it."""

    out: int
    into: int
    decrease: float
    removal: FloatArray
    """``v_j`` on the sorted support."""
    column: FloatArray | None
    """``c_j = H v_j``, if all of it was priced."""


@final
class QuadraticSwaps:
    """The state of a local search over supports; mutable, a run's workspace."""

    def __init__(self, objective: Objective, diagonal: FloatArray) -> None:
        self._objective = objective
        self._diagonal = diagonal
        self._updates = 0

    @classmethod
    def start(cls, objective: Objective, point: Point) -> QuadraticSwaps | None:
        """Return the state at ``point``, the minimiser over its support, or None.

        None when the objective is not a quadratic of stored columns with coordinates as units
        and no further constraints, or when the columns of the support are dependent. Costs
        ``|support| + 1`` half passes, as one product of matrices.
        """
        if objective.form.constrained or objective.cardinality.groups is not None:
            return None
        if not has_common_hessian(objective):
            return None
        diagonal = full_diagonal(objective, point)
        if diagonal is None:
            return None
        swaps = cls(objective, diagonal)
        return swaps if swaps.reset(point) else None

    def reset(self, point: Point) -> bool:
        """Start again from ``point``, the minimiser over its support."""
        objective = self._objective
        self._at = point
        self._support = point.support
        self._x = point.x[point.support].copy()
        self._factor = SupportFactor(objective, point)
        if not self._factor.reset(point.support):
            return False
        self._g = objective.gradient(point).copy()
        self._d = self._diagonal.copy()
        # Columns of H R^{-1} for the factor R^T R = H_SS: d_i = H_ii - ||R^{-T} H_Si||^2.
        basis = self._factor.whitened(np.arange(point.support.size))
        self._d -= hessian_square_norms(objective, point, self._support, basis)
        self._cleared()
        self._updates = 0
        return True

    @property
    def support(self) -> IntArray:
        """Return the sorted support."""
        return self._support

    def point(self) -> Point:
        """Return the minimiser over the support as the updates have it."""
        return self._objective.point(self._support, self._x)

    @property
    def block_width(self) -> int:
        """Return how many removals a call of :meth:`best_swap` may be given."""
        return max(1, _BLOCK_ENTRIES // max(self._objective.shape[0], 1))

    def removals(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the removable positions, cheapest first, with their costs and ``H^{-1}_jj``."""
        inverse = self._factor.inverse_diagonal()
        costs = 0.5 * coordinate_scores(self._x) / inverse
        movable = ~np.isin(self._support, self._objective.cardinality.free, assume_unique=True)
        positions = np.flatnonzero(movable)
        order = np.argsort(costs[positions], kind="stable")
        return positions[order], costs, inverse

    def sizes(self, *, scaled: bool = True) -> FloatArray:
        """Return ``|x_j|`` on the support, as for columns of unit norm if ``scaled``."""
        squares = coordinate_scores(self._x)
        return np.sqrt(squares * self._diagonal[self._support] if scaled else squares)

    def best_swap(self, positions: IntArray, costs: FloatArray, inverse: FloatArray) -> Swap | None:
        """Return the swap that lowers the objective most among those that drop ``positions``.

        None where no swap with them gains anything; its ``decrease`` may be negative. ``costs`` and
        ``inverse`` are those of :meth:`removals`. Costs half a pass per position, in one product of
        matrices, of the columns that may gain.
        """
        rows, directions, columns, gains = self._priced(positions, costs, inverse)
        if not gains.size:
            return None
        into, which = np.unravel_index(int(np.argmax(gains)), gains.shape)
        decrease = float(gains[into, which])
        if not np.isfinite(decrease):
            return None
        return Swap(
            out=int(self._support[positions[which]]),
            into=int(into if rows is None else rows[into]),
            decrease=decrease,
            removal=directions[:, which].copy(),
            column=columns[:, which].copy() if rows is None else None,
        )

    def _priced(
        self, positions: IntArray, costs: FloatArray, inverse: FloatArray
    ) -> tuple[IntArray | None, FloatArray, FloatArray, FloatArray]:
        """Return the coordinates that may gain, None for all, and removal directions.

        And, for these coordinates, Hessian columns of the directions and the gains of all swaps.
        """
        rows = self._candidates(float(costs[positions].min()))
        some = slice(None) if rows is None else rows
        g, d, diagonal = self._g[some], self._d[some], self._diagonal[some]
        directions = self._factor.removal_directions(positions, inverse)
        columns = hessian_columns(self._objective, self._at, self._support, directions, rows)
        dropped = self._x[positions]
        if dropped.ndim == 1:
            gains = np.square(g[:, None] - columns * dropped)
        else:  # ||g_i - c_ij x_j||^2, without the (p, q, m) array
            gains = coordinate_scores(g)[:, None] - 2.0 * columns * (g @ dropped.T)
            gains += np.square(columns) * coordinate_scores(dropped)
        left = np.square(columns)
        left *= inverse[positions]
        left += d[:, None]
        gains *= 0.5
        with np.errstate(divide="ignore", invalid="ignore"):  # ten times as fast as where=
            gains /= left
        gains[left <= INDEPENDENT * diagonal[:, None]] = -np.inf
        if rows is None:
            gains[self._support] = -np.inf
        gains -= costs[positions]
        return rows, directions, columns, gains

    def _candidates(self, cheapest: float) -> IntArray | None:
        """Return what may enter at a gain where removals cost so much or more; None for most."""
        slack = _ROUNDING * self._diagonal
        explained = np.maximum(self._diagonal - self._d, 0.0) + slack
        room = np.sqrt(self._d) - np.sqrt(explained)
        sizes = np.sqrt(coordinate_scores(self._g))
        able = sizes + np.sqrt(slack * cheapest) > np.sqrt(2.0 * cheapest) * room
        able[self._support] = False
        rows = np.flatnonzero(able)
        return rows if rows.size < _FEW * able.size else None

    def exchange(self, swap: Swap) -> bool:
        """Carry out a swap; half a pass or one. False when rounding has spoilt the state."""
        column = swap.column
        if column is None:
            removal = swap.removal[:, None]
            column = hessian_columns(self._objective, self._at, self._support, removal)[:, 0]
        self._leave(swap.out, swap.removal, column)
        return self.insert(swap.into)

    def unprofitable(self, least: float) -> int | None:
        """Return the coordinate that is worth least, if that is less than ``least``."""
        positions, costs, _ = self.removals()
        if not positions.size or costs[positions[0]] >= least:
            return None
        return int(self._support[positions[0]])

    def remove(self, coordinate: int) -> None:
        """Drop a coordinate and minimise over what is left; half a pass."""
        position = np.searchsorted(self._support, [coordinate])
        inverse = self._factor.inverse_diagonal()
        direction = self._factor.removal_directions(position, inverse)
        column = hessian_columns(self._objective, self._at, self._support, direction)
        self._leave(coordinate, direction[:, 0], column[:, 0])
        self._cleared()
        self._updates += 1

    def _leave(self, coordinate: int, removal: FloatArray, column: FloatArray) -> None:
        position = int(np.searchsorted(self._support, coordinate))
        leaving = self._x[position]
        size = float(column[coordinate])  # 1 / (H^{-1})_jj
        x = self._x - _outer(removal, leaving)
        self._g = self._g - _outer(column, leaving)
        self._d += np.square(column) / size
        self._factor.remove(coordinate)
        self._x = np.delete(x, position, axis=0)
        self._support = np.delete(self._support, position)
        self._d[coordinate] = size

    def best_insertion(self) -> tuple[int, float] | None:
        """Return the coordinate that lowers the objective most when it is added, and by what."""
        dependent = self._d <= INDEPENDENT * self._diagonal
        with np.errstate(divide="ignore", invalid="ignore"):  # ten times as fast as where=
            gains = 0.5 * coordinate_scores(self._g) / self._d
        gains[dependent] = -np.inf
        gains[self._support] = -np.inf
        if not gains.size or not np.isfinite(gains.max()):
            return None
        into = int(np.argmax(gains))
        return into, float(gains[into])

    def insert(self, coordinate: int) -> bool:
        """Add a coordinate and minimise over the new support; half a pass."""
        added = self._factor.add(coordinate)
        if added is None:
            return False
        direction, pivot = added
        position = int(np.searchsorted(self._support, coordinate))
        self._support = np.insert(self._support, position, coordinate)
        step = -self._g[coordinate] / pivot
        self._x = np.insert(self._x, position, 0.0, axis=0) + _outer(direction, step)
        column = hessian_columns(self._objective, self._at, self._support, direction[:, None])[:, 0]
        self._g = self._g + _outer(column, step)
        self._d -= np.square(column) / pivot
        self._cleared()
        self._updates += 1
        return True

    @property
    def stale(self) -> bool:
        """Return whether so many updates were made that :meth:`reset` is due."""
        return self._updates >= _REFRESH

    def _cleared(self) -> None:
        self._g[self._support] = 0.0
        np.maximum(self._d, 0.0, out=self._d)
        self._d[self._support] = 0.0


def _outer(v: FloatArray, row: FloatArray) -> FloatArray:
    return np.multiply.outer(v, row)
