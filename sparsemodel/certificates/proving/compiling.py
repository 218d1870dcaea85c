"""Whether there is time for what is compiled with Numba, and how long compiling took."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import WRAPPER_ASSIGNMENTS, wraps
from importlib.util import find_spec
from typing import Any

from sparsemodel.numerics.budget import budget
from sparsemodel.progress import doing

LOADING = 0.8
"""Seconds that it takes, once in a process, to load Numba and what was compiled before. Nothing
stops it, so it is not begun where less time is left."""

_LONG = 1.0
"""Seconds of compiling that are worth a word."""

_loaded = False


def interruptible(function: Callable[..., Any]) -> Any:
    """Return a compiled function in which Ctrl-C is a ``KeyboardInterrupt``.

    Python reports a Ctrl-C that came in compiled code as soon as a line of Python runs again. That
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


def compilable() -> bool:
    """Return whether Numba is installed."""
    try:
        return find_spec("numba") is not None
    except ImportError:
        return False


def loadable(deadline: float | None) -> bool:
    """Return whether compiled code is loaded, or would be in time."""
    return _loaded or deadline is None or deadline - time.perf_counter() >= LOADING


def warmed(call: Callable[[], object]) -> float:
    """Call what compiles when it is first called; return the seconds that compiling took.

    They do not count as search: the deadline of :func:`~sparsemodel.numerics.budget.budget` is put
    off. They are logged where they are many; loading what was compiled before counts.
    """
    global _loaded
    began = time.perf_counter()
    with doing("preparing compiled code"):
        call()
    _loaded = True
    seconds = max(time.perf_counter() - began - LOADING, 0.0)
    budget().extend(seconds)
    if seconds > _LONG:
        logging.getLogger("sparsemodel").info(
            "compiled the search for proofs in %.1f s, which is not counted as search", seconds
        )
    return seconds
