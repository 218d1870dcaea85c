"""One pass over all rows: bounds on every coefficient from bounds on the others."""

from __future__ import annotations

import time
from typing import final

import numpy as np

from sparsemodel.certificates.dual_bounds.coefficient_bounds.eliminated import Eliminated
from sparsemodel.certificates.dual_bounds.coefficient_bounds.neighbours import (
    Neighbours,
    subset_tables,
)
from sparsemodel.interfaces import FloatArray

_CHUNK = 2e8
"""Products between two looks at the clock."""


@final
class Sweep:
    """The map from bounds to bounds for fixed sets of neighbours.

    It never decreases where its argument increases, and ``sweep(t m) <= t sweep(m)`` for
    ``t >= 1``.
    """

    def __init__(
        self, e: Eliminated, k: int, neighbours: Neighbours, deadline: float | None
    ) -> None:
        self._e, self._k, self._neighbours = e, k, neighbours
        self._deadline = deadline
        size = e.counted.size
        counts = neighbours.counts
        self._tables, self._sizes = subset_tables(counts, k - 1)
        self._places = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(self._sizes[counts], out=self._places[1:])
        self._values = np.zeros(int(self._places[-1]))
        self._known = np.zeros(int(self._places[-1]))
        self._at: FloatArray | None = None
        self.shares: FloatArray = np.zeros(size)
        """The parts without the bounds of the worst case of every row."""
        width = max(k - 1, 0)
        self.others = np.full((size, width), -1, dtype=np.int64)
        self.factors = np.zeros((size, width))

    def __call__(self, m: FloatArray, *, floor: float, fresh: bool) -> FloatArray | None:
        """Return the bounds that follow from ``m``, rounded up; None when time is up.

        With ``fresh`` every subset is looked at again; otherwise those that could not be the
        worst, going by what they were before, are passed over.
        """
        from sparsemodel.certificates.dual_bounds.coefficient_bounds.rows_compiled import rows

        e = self._e
        ratio = np.inf
        if not fresh and self._at is not None:
            ratio = max(1.0, float(np.max(m / self._at)))
        if ratio > 2.0:
            ratio, self._at = np.inf, m.copy()
        out = np.empty(m.size)
        work = np.diff(self._places) * float(3 * m.size)
        groups = np.floor(np.cumsum(work) / _CHUNK).astype(np.int64)
        for group in np.unique(groups):
            if self._deadline is not None and time.perf_counter() >= self._deadline:
                return None
            which = np.flatnonzero(groups == group)
            place = slice(self._places[which[0]], self._places[which[-1] + 1])
            rows(
                e.gram,
                e.linear,
                e.ridge,
                e.sizes,
                e.unit,
                e.reach,
                floor,
                self._k,
                m,
                which,
                self._neighbours.starts,
                self._neighbours.index,
                self._tables,
                self._sizes,
                self._values[place],
                self._known[place],
                ratio,
                out,
                self.shares,
                self.others,
                self.factors,
            )
        return out


__all__ = ["Sweep"]
