"""The options of a run, checked before any work is done."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from sparsemodel.driver import RunOptions
from sparsemodel.interfaces import DataTypeError, ModelError, Stop
from sparsemodel.interfaces.numeric import checked_seed, real_number, whole_number
from sparsemodel.numerics.budget import Budget, ending_by, sharing
from sparsemodel.progress import allow


def run_options(seed: Any, time_limit: Any, max_iter: Any, callback: Any) -> RunOptions:
    """Return what a user asked for, as plain numbers.

    Raises
    ------
    ModelError, DataTypeError
        When one of them cannot be used; the message names it.
    """
    if callback is not None and not callable(callback):
        raise DataTypeError(
            f"callback must be a function of an Iteration, not {type(callback).__name__}."
        )
    most = None if max_iter is None else whole_number(max_iter, where="max_iter", minimum=0)
    return RunOptions(
        seed=checked_seed(seed),
        time_limit=time_limit_of(time_limit),
        max_iter=most,
        callback=callback,
    )


def time_limit_of(value: Any) -> float | None:
    """Return a time limit in seconds, None for none."""
    if isinstance(value, float) and value == math.inf:
        raise ModelError("time_limit must be finite, not inf. Leave it out where there is none.")
    return None if value is None else real_number(value, where="time_limit", minimum=0.0)


def within(time_limit: Any) -> AbstractContextManager[Budget]:
    """Check a time limit and let it hold, from now on, for all that runs inside."""
    limit = time_limit_of(time_limit)
    if limit is not None:
        allow(limit)
    return ending_by(None if limit is None else time.perf_counter() + limit)


def first(solve: Callable[[], Any]) -> Any:
    """Solve in half of the time that is left, so that what needs the solution has some as well."""
    with sharing(2):
        return unless_interrupted(solve())


def unless_interrupted(solution: Any) -> Any:
    """Return a solution that another question needs.

    Raises
    ------
    KeyboardInterrupt
        When Ctrl-C ended its search. The solution is kept; the question is not gone into.
    """
    if solution.stop is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    return solution
