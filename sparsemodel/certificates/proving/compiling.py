"""What the searches of all forms compile, with Numba where it can be imported."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import WRAPPER_ASSIGNMENTS, wraps
from typing import Any

import numpy as np

from sparsemodel.interfaces import MissingDependencyError

_LONG = 1.0
"""Seconds of compiling that are worth a word."""


def compiled(function: Callable[..., Any]) -> Any:
    """Return a function compiled, or itself where Numba cannot be imported."""
    try:
        from sparsemodel.certificates.proving.gram.numba_compiled import numba
    except MissingDependencyError:
        return function
    return numba.njit(cache=True, error_model="numpy")(function)


def interruptible(function: Callable[..., Any]) -> Any:
    """Return a compiled function in which Ctrl-C is a ``KeyboardInterrupt``.

    Python tells of a Ctrl-C that came in compiled code as soon as a line of Python runs again. That
    is where Numba builds the arrays that it returns, and what it raises then is a ``SystemError``.
    """

    @wraps(function, WRAPPER_ASSIGNMENTS, ())
    def called(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except SystemError as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, KeyboardInterrupt):
                cause = cause.__cause__ or cause.__context__
            if cause is None:
                raise
            raise KeyboardInterrupt from error

    return called


@compiled
def top(values, k):  # type: ignore[no-untyped-def]
    """Return the sum of the ``k`` largest values and the least of them; reorders ``values``."""
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    total, least = 0.0, np.inf
    for i in range(min(k, values.size)):
        total += values[i]
        least = min(least, values[i])
    return total, least


def warmed(call: Callable[[], object]) -> float:
    """Call what compiles when it is first called; return the seconds, logged where they are many.

    They do not count as search.
    """
    began = time.perf_counter()
    call()
    seconds = time.perf_counter() - began
    if seconds > _LONG:
        logging.getLogger("sparsemodel").info(
            "compiled the search for proofs in %.1f s, which is not counted as search", seconds
        )
    return seconds


__all__ = ["compiled", "interruptible", "top", "warmed"]
