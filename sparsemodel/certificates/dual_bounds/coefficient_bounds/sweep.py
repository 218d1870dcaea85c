"""One pass over all rows: bounds on every coefficient from bounds on the others."""

from __future__ import annotations

import math
import time
from typing import final

import numpy as np

from sparsemodel.certificates.dual_bounds.coefficient_bounds.eliminated import Eliminated
from sparsemodel.certificates.dual_bounds.coefficient_bounds.neighbours import Neighbours
from sparsemodel.interfaces import BoolArray, FloatArray, IntArray

_FEW, _SHORT = 8, 0.02
"""Rows before the first look at the clock, and seconds below which twice as many come before the
next: a row takes as long as the parts that its supports are divided into."""

MOST = 2_000
"""Parts that the supports of one row may be divided into."""

_MANY, _WIDTH = 5000, 40
"""Columns from which the largest entries of the rows are listed, and one of how many is listed."""

_GROWN = 1.1
"""Factor by which bounds may grow until the largest entries are listed again."""


def products(size: int) -> float:
    """Return the products in the time of a look at a part of a row of ``size``.

    With the largest entries listed few columns are looked at.
    """
    return (1.0 if size >= _MANY else 3.0) * size


@final
class Sweep:
    """The map from bounds to bounds for fixed sets of neighbours."""

    def __init__(
        self,
        e: Eliminated,
        k: int,
        neighbours: Neighbours,
        deadline: float | None,
        most: int = MOST,
        work: float = math.inf,
    ) -> None:
        """``work`` are the products after which it gives up, and ``most`` the parts of a row."""
        self._e, self._k, self._neighbours = e, k, neighbours
        self._deadline, self._most, self._work = deadline, most, work
        size, width = e.counted.size, max(k - 1, 0)
        self.eliminates = bool(neighbours.index.size)
        """Whether any row has neighbours."""
        self.spent: float = 0.0
        """Products so far."""
        self.shares: FloatArray = np.full(size, -1.0)
        """The parts without the bounds of the worst case of every row."""
        self.others = np.full((size, width), -1, dtype=np.int64)
        self.factors = np.zeros((size, width))
        self._inside = np.full((size, width), -1, dtype=np.int64)
        listed = size // _WIDTH if size >= _MANY and neighbours.index.size else 0
        self._heads: tuple[IntArray, FloatArray, IntArray, FloatArray] = (
            np.empty((size, listed), dtype=np.int32),
            np.empty((size, listed)),
            np.zeros(size, dtype=np.int64),
            np.zeros(size),
        )
        self._listed_at: FloatArray | None = None

    def __call__(
        self,
        m: FloatArray,
        *,
        floor: float,
        slack: float = 0.0,
        rough: bool = False,
    ) -> FloatArray | None:
        """Return the bounds that follow from ``m``, rounded up; None when it gives up.

        The worst cases of the last pass count again, whether or not the rows need them, and
        ``slack`` more: where nothing is above that, nothing is looked at more closely. A rough
        pass looks only at the neighbours of these cases, and proves nothing.
        """
        there = np.where(self.others >= 0, m[self.others], 0.0)
        again = self.shares + np.sum(self.factors * there, axis=1)
        low = again * (1.0 + slack - 1e-9)
        most, self._most = self._most, 0 if rough else self._most
        try:
            return self._pass(m, floor, low, np.full(m.size, np.inf))
        finally:
            self._most = most

    def holds(self, m: FloatArray, ceiling: FloatArray) -> BoolArray | None:
        """Return for which rows bounds below ``m`` follow from ``m``; None when it gives up.

        Nothing is asked of rows with ``m`` at the ceiling. Once a row fails, some of the rest count
        as failed, too.
        """
        below = np.nextafter(m, 0.0)
        need = m < ceiling
        found = self._pass(m, 0.0, np.where(need, below, np.inf), below)
        return None if found is None else ~need | (found < m)

    def _pass(
        self, m: FloatArray, floor: float, low: FloatArray, enough: FloatArray
    ) -> FloatArray | None:
        from sparsemodel.certificates.dual_bounds.coefficient_bounds.rows_compiled import rows

        e, size = self._e, m.size
        heads = self._heads_at(m)
        out = np.full(size, np.inf)
        step, following = _FEW, 0
        while following < size:
            first, began = following, time.perf_counter()
            late = self._deadline is not None and began >= self._deadline
            if late or self.spent > self._work:
                return None
            looks = rows(
                e.gram,
                e.linear,
                e.ridge,
                e.sizes,
                e.unit,
                e.reach,
                e.room,
                floor,
                self._k,
                m,
                first,
                min(first + step, size),
                self._neighbours.starts,
                self._neighbours.index,
                low,
                enough,
                self._most,
                heads,
                out,
                (self.shares, self.others, self.factors, self._inside),
            )
            self.spent += looks * products(size)
            done, following = slice(first, first + step), first + step
            step = 2 * step if time.perf_counter() - began < _SHORT else step
            if np.any((out[done] > enough[done]) & (low[done] < np.inf)):
                return out  # asked whether all hold, and one does not
        return out

    def _heads_at(self, m: FloatArray) -> tuple[IntArray, FloatArray, IntArray, FloatArray, float]:
        """Return the largest entries of all rows in units of ``m``, and the largest size."""
        from sparsemodel.certificates.dual_bounds.coefficient_bounds.largest_compiled import (
            heads_of_rows,
        )

        listed, entries, counts, tails = self._heads
        widest = float(np.max(self._e.sizes * m, initial=0.0))
        if not listed.size:
            return listed, entries, counts, tails, widest
        grown = np.inf if self._listed_at is None else float(np.max(m / self._listed_at))
        if not grown <= _GROWN:
            heads_of_rows(self._e.gram, m, *self._heads)
            self._listed_at, grown = m.copy(), 1.0
        return listed, entries, counts, tails * max(grown, 1.0), widest
