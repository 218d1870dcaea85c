"""By which strong neighbours the supports of a row are divided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from sparsemodel.interfaces import IntArray

LEVELS = (0, 4, 12, 40)
"""Numbers of neighbours that are tried, one after the other."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """A set of other rows for every row."""

    starts: IntArray
    index: IntArray
    """Row ``j``'s are ``index[starts[j]:starts[j + 1]]``."""

    @classmethod
    def none(cls, size: int) -> Neighbours:
        """Return empty sets."""
        return cls(np.zeros(size + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))

    @property
    def counts(self) -> IntArray:
        """Return how many neighbours every row has."""
        return np.diff(self.starts)

    def valid(self, size: int) -> bool:
        """Return whether these are sets of other rows, for ``size`` rows."""
        starts, index = self.starts, self.index
        if starts.shape != (size + 1,) or starts[0] != 0 or starts[-1] != index.size:
            return False
        if np.any(np.diff(starts) < 0) or np.any((index < 0) | (index >= size)):
            return False
        owner = np.repeat(np.arange(size), np.diff(starts))
        pairs = owner * size + index
        return not np.any(owner == index) and np.unique(pairs).size == pairs.size


def strongest(gram: npt.NDArray[np.floating], counts: IntArray) -> Neighbours:
    """Return for every row the ``counts`` columns with the largest entries."""
    size = counts.size
    starts = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    index = np.empty(int(starts[-1]), dtype=np.int64)
    for j in np.flatnonzero(counts):
        entries = np.abs(gram[j])
        entries[j] = -1.0
        found = np.argpartition(-entries, counts[j] - 1)[: counts[j]]
        index[starts[j] : starts[j + 1]] = found
    return Neighbours(starts, index)
