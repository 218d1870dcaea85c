"""Where descents ended, and whether enough of them have been made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import final

import numpy as np

from sparsemodel.interfaces import IntArray
from sparsemodel.numerics.search import ROUNDING

PATIENCE = 32, 1024
"""Random starts in vain before the end, with ``effort`` 1, where all ends have been met before, and
where every end is new; between, by the share of ends that one start alone met (Good and Turing's
estimate of what is unseen). An end to which a tenth of the starts lead is met in 29 of 30 runs."""
WORK = 2.0**29
"""Multiplications for which a search goes on in vain at most, with ``effort`` 1: about half a
second."""
_MERGED = 24
"""Ends that are kept to be merged."""


def descent_cost(size: int, columns: int) -> float:
    """Return about how many multiplications a descent takes.

    To supports of ``size`` columns, among ``columns``.
    """
    return 2.0 * size * size * float(columns)


def most_starts(effort: float, cost: float) -> float:
    """Return the random starts in vain that :data:`WORK` has room for, others beside each.

    ``cost`` is that of a descent.
    """
    return effort * WORK / (2.0 * cost)


@final
@dataclass(slots=True, eq=False)
class Ends:
    """Where descents in one model ended: the best of them, and how often each was met."""

    supports: list[IntArray] = field(default_factory=list)
    """Sorted units, the best first."""
    values: list[float] = field(default_factory=list)
    known: set[bytes] = field(default_factory=set)
    times: dict[bytes, int] = field(default_factory=dict)
    samples: int = 0
    """Searches that began at random."""
    last_gain: int = 0
    """How many of these there were when the best end was met."""
    once: int = 0
    """Ends that exactly one of these met."""

    def take(self, supports: Iterable[IntArray], values: Iterable[float], samples: int = 0) -> None:
        """Add the ends of a batch, the last ``samples`` of which began at random."""
        batch = list(zip(supports, values, strict=True))
        for place, (support, value) in enumerate(batch):
            key = support.tobytes()
            if place >= len(batch) - samples:
                self.samples += 1
                times = self.times[key] = self.times.get(key, 0) + 1
                self.once += (times == 1) - (times == 2)
            if key in self.known:
                continue
            self.known.add(key)
            if not self.values or value > self.values[0] * (1.0 + ROUNDING):
                self.last_gain = self.samples
            self.supports.append(support)
            self.values.append(value)
        order = np.argsort(-np.array(self.values), kind="stable")[:_MERGED]
        self.supports = [self.supports[i] for i in order]
        self.values = [self.values[i] for i in order]

    @property
    def unseen(self) -> float:
        """Return the chance that a search from a random start ends where none did before."""
        return self.once / max(self.samples, 1)

    def is_enough(self, patience: tuple[int, int], effort: float, most: float) -> bool:
        """Return whether it was searched in vain as long as the last gain took, and with patience.

        That is as :data:`PATIENCE` says, times ``effort``, and at most ``most`` starts.
        """
        least, longest = patience
        vain = min(effort * (least + (longest - least) * self.unseen), most)
        return self.samples - self.last_gain >= max(min(self.last_gain, most), vain, 1.0)
