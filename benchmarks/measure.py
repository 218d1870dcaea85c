"""Timing: CPU and wall seconds, and the unit that makes machines comparable."""

from __future__ import annotations

import resource
import statistics
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np


class NothingToMeasure(Exception):
    """What a family needs and the machine does not have, in words. No failure."""


@dataclass(frozen=True)
class Timing:
    """Medians over the repetitions; the minimum too, because the machine may be shared."""

    cpu: float
    wall: float
    cpu_min: float
    repeats: int


@dataclass
class Record:
    """One line of a table: quality first, then cost."""

    family: str
    case: str
    solver: str
    quality: dict[str, Any]
    timing: Timing
    unit: float
    """CPU seconds of one ``A @ x`` plus one ``A.T @ r``, in the same process."""
    passes: float | None = None
    peak_mb: float | None = None
    """Most memory at a time beside the data, in megabytes."""
    notes: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def units(self) -> float:
        """Return the CPU time in units."""
        return self.timing.cpu / self.unit

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"units": self.units}


def timed(call: Callable[[], Any], repeats: int = 5) -> tuple[Any, Timing]:
    """Return the last result of ``call`` and the medians of ``repeats`` timings."""
    cpu, wall, result = [], [], None
    for _ in range(repeats):
        began, clock = time.process_time(), time.perf_counter()
        result = call()
        cpu.append(time.process_time() - began)
        wall.append(time.perf_counter() - clock)
    return result, Timing(statistics.median(cpu), statistics.median(wall), min(cpu), repeats)


def unit_of(
    matvec: Callable[[Any], Any], rmatvec: Callable[[Any], Any], p: int, repeats: int = 7
) -> float:
    """Return the CPU seconds of one product with the matrix and one with its transpose."""
    x = np.random.default_rng(0).standard_normal(p)

    def both() -> None:
        rmatvec(matvec(x))

    both()
    return timed(both, repeats)[1].cpu


def unit_of_array(array: Any, repeats: int = 7) -> float:
    """Return the unit for an ndarray or a sparse array, in its own precision."""
    return unit_of(
        lambda x: array @ x.astype(array.dtype), lambda r: array.T @ r, array.shape[1], repeats
    )


def peak_beyond(call: Callable[[], Any]) -> float:
    """Return the most megabytes ``call`` had allocated at a time: its need beside the data.

    Counted by ``tracemalloc``, to which NumPy reports its arrays; so not to be timed.
    """
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def peak_resident() -> float:
    """Return the largest resident memory of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
