"""What fits into the time that is left: costs of dense factorisations, forecast from their sizes.

A factorisation cannot be asked to stop. So that time limits hold, one that would not end in time
is not begun; its cost is forecast at the machine's own rate, measured once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from sparsemodel.interfaces import Access, Design

_ORDER, _TRIES = 160, 30
"""Order of the matrices that are multiplied to measure the rate, and how often: 30 ms. Products
this short are rarely interrupted by other processes; the best counts."""

_FREE = 5e8
"""Operations that are never left out: a twentieth of a second or so."""

_QUICK = 2**26
"""Bytes of files that are read in a moment (64 MB)."""

TOO_LONG = 5.0
"""Forecast CPU seconds beyond which nothing is begun by default, nor continued without gain."""

SECONDS_PER_ENTRY = 1e-9
"""Forecast CPU seconds of a pass for each stored entry."""

_SHARE = 0.8
"""Share of the time left that a forecast may fill; rates vary."""

NUMBA_LOADING = 2.0
"""Seconds that loading Numba takes at most, with what was compiled before."""


@final
@dataclass(slots=True, eq=False)
class Budget:
    """The time until a deadline, in the clock of :func:`time.perf_counter`; None is no deadline."""

    deadline: float | None = None
    cut: bool = False
    """Whether anything was left out, or broken off, to save time."""
    interrupted: bool = False
    outer: Budget | None = None
    """What this one is within."""

    def interrupt(self) -> None:
        """End it now, by Ctrl-C."""
        self.deadline, self.interrupted = -np.inf, True

    def extend(self, seconds: float) -> None:
        """Put off the deadline, and those around it, by what took long and does not count."""
        within: Budget | None = self
        while within is not None:
            if within.deadline is not None:
                within.deadline += seconds
            within = within.outer

    @property
    def left(self) -> float:
        """Return the seconds left, infinite without a deadline."""
        return np.inf if self.deadline is None else self.deadline - time.perf_counter()

    @property
    def limit(self) -> float | None:
        """Return the same as a time limit, at least zero; None without a deadline."""
        return None if self.deadline is None else max(self.left, 0.0)

    def over(self) -> bool:
        """Return whether the deadline has passed."""
        late = self.left <= 0.0
        self.cut |= late
        return late

    def fits(self, *costs: float) -> bool:
        """Return whether work of so many operations (of a matrix product) would end in time.

        What does not fit is left out, and remembered as such (:attr:`cut`).
        """
        possible = self.allows(*costs)
        self.cut |= not possible
        return possible

    def allows(self, *costs: float) -> bool:
        """Return the same where other work takes its place and nothing is left out."""
        if self.deadline is None:
            return True
        total = sum(costs)
        return total <= _FREE or total <= _SHARE * self.left * rate()


_BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def ending_by(deadline: float | None) -> Iterator[Budget]:
    """Let all that runs inside end by a deadline, or by the one outside where that is earlier.

    Kernels far below read it from :func:`budget`: between them and a time limit lie backends,
    whose interface has no place for one.
    """
    outer = budget()
    if outer.deadline is not None:
        deadline = outer.deadline if deadline is None else min(deadline, outer.deadline)
    inner = Budget(deadline, outer=outer)
    token = _BUDGET.set(inner)
    try:
        yield inner
    finally:
        _BUDGET.reset(token)
        outer.cut |= inner.cut


def sharing(parts: int) -> AbstractContextManager[Budget]:
    """Let what runs inside have one of so many equal shares of the time that is left."""
    limit = budget().limit
    return ending_by(None if limit is None else time.perf_counter() + limit / parts)


@contextmanager
def without_deadline() -> Iterator[None]:
    """Run what is inside without a deadline: a few solves that make points of what was found."""
    token = _BUDGET.set(None)
    try:
        yield
    finally:
        _BUDGET.reset(token)


def budget() -> Budget:
    """Return the time that is left to what is running; without a deadline unless one was set."""
    found = _BUDGET.get()
    return Budget() if found is None else found


def numba_in_time() -> bool:
    """Return whether Numba is loaded, or would be in the time that is left."""
    return "numba" in sys.modules or budget().left >= NUMBA_LOADING


def too_late_to_read(designs: Iterable[Design]) -> bool:
    """Return whether time is up and data that are not at hand take long to read once more."""
    far = [design for design in designs if Access.COLUMNS not in design.access]
    return sum(design.nbytes or 0 for design in far) > _QUICK and budget().over()


def gram_cost(rows: int, p: int) -> float:
    """Return the cost of ``A.T @ A``."""
    return 2.0 * rows * p * p


def products_cost(designs: Iterable[Design], number: float) -> float:
    """Return the cost of so many products with designs whose products are all that is known.

    They were timed; where the cost of a design follows from its size this is 0.
    """
    return number * sum(design.product_seconds for design in designs) * rate()


def cholesky_cost(p: int) -> float:
    """Return the cost of a Cholesky factorisation, copies included."""
    return 1.0 * p**3


def inverse_cost(p: int) -> float:
    """Return the cost of an inverse from a Cholesky factor."""
    return 4.0 * p**3


def eigenvalue_cost(p: int) -> float:
    """Return the cost of all eigenvalues of a symmetric matrix, half of it bound by memory."""
    return 10.0 * p**3


def eigenvector_cost(p: int) -> float:
    """Return the cost of a symmetric eigendecomposition."""
    return 25.0 * p**3


@lru_cache(maxsize=1)
def rate() -> float:
    """Return operations per second of a matrix product on this machine, measured once."""
    matrix = np.ones((_ORDER, _ORDER))
    best = np.inf
    for _ in range(_TRIES):
        began = time.perf_counter()
        np.dot(matrix, matrix)
        best = min(best, time.perf_counter() - began)
    return 2.0 * _ORDER**3 / max(best, 1e-9)
