"""Which strong neighbours of a row are eliminated exactly, and all their subsets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray

LEVELS = (0, 2, 4, 6, 8, 10, 13, 16, 20, 25, 32, 40)
"""Numbers of neighbours that are tried, one after the other."""

MOST_SUBSETS = 12_000
"""Subsets of the neighbours of one row; about a microsecond each for a thousand columns."""


def subsets(q: int, largest: int) -> int:
    """Return how many subsets of ``q`` neighbours have at most ``largest`` members."""
    return sum(math.comb(q, t) for t in range(min(q, largest) + 1))


def products(counts: IntArray, k: int) -> float:
    """Return about how many products one pass over rows with these numbers of neighbours takes.

    Infinite where a row has more subsets than are ever looked at.
    """
    used, rows = np.unique(counts, return_counts=True)
    total = 0.0
    for q, many in zip(used, rows, strict=True):
        number = subsets(int(q), k - 1)
        if number > MOST_SUBSETS:
            return math.inf
        total += 3.0 * number * float(many)
    return counts.size * total


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


def strongest(gram: FloatArray, counts: IntArray) -> Neighbours:
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


def subset_tables(counts: IntArray, largest: int) -> tuple[IntArray, IntArray]:
    """Return the subsets with at most ``largest`` members of every number that occurs.

    The first result has the shape (largest number + 1, subsets, members), -1 beyond the members;
    the second how many subsets there are. Only numbers in ``counts`` are filled in.
    """
    used = np.unique(counts)
    top = int(used.max(initial=0))
    sizes = np.zeros(top + 1, dtype=np.int64)
    for q in used:
        sizes[q] = subsets(int(q), largest)
    tables = np.full((top + 1, int(sizes.max(initial=1)), max(largest, 1)), -1, dtype=np.int64)
    for q in used:
        turn = 0
        for members in range(min(int(q), largest) + 1):
            for chosen in combinations(range(int(q)), members):
                tables[q, turn, :members] = chosen
                turn += 1
    return tables, sizes


__all__ = [
    "LEVELS",
    "MOST_SUBSETS",
    "Neighbours",
    "products",
    "strongest",
    "subset_tables",
    "subsets",
]
