"""Tasks on the workers of Dask: run together, added up in a tree, run again where a worker dies."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from sparsemodel.interfaces import DataError, SparseModelError
from sparsemodel.progress import report

Task: TypeAlias = tuple[Any, ...]
"""A function and its arguments, handles among them."""

Tasks: TypeAlias = Callable[[], Sequence[Task]]
"""Returns new tasks for each attempt."""

_DATA = 2**20
"""Bytes from which a value goes to a worker by itself: the scheduler is no place for data."""

_FAN_IN = 8
"""Results that are added in one task, so that no machine receives all of them."""

_PATIENCE = 60
"""Seconds in which a cluster without workers may start one."""

_ATTEMPTS = 4
"""Runs of a computation that loses its workers."""

_LOST = frozenset({"KilledWorker", "CommClosedError", "CancelledError", "FutureCancelledError"})
"""Failures of workers, by name: the package that defines them may not be installed."""


_ROWS: WeakKeyDictionary[Any, slice] = WeakKeyDictionary()
"""Rows of the handles of blocks."""


def client() -> Any:
    """Return the client of the cluster that computes for this process, None without one."""
    distributed = sys.modules.get("distributed")  # no other package makes clients
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def worker_count() -> int:
    """Return how many tasks can run at a time."""
    there = client()
    found = sum(there.nthreads().values()) if there is not None else os.cpu_count()
    return max(1, found or 1)


def loaded(parts: Sequence[Any], rows: Sequence[slice]) -> list[Any]:
    """Return delayed values of Dask as handles of what they compute, kept where it is computed.

    ``rows`` are those of each, for an error that says where.
    """
    there = client()
    if there is not None:
        return list(there.compute(list(parts), optimize_graph=False))
    from dask.base import compute

    try:
        return list(compute(*parts, optimize_graph=False))  # type: ignore[no-untyped-call]
    except Exception:
        for part, place in zip(parts, rows, strict=True):  # which one?
            try:
                part.compute()
            except Exception as error:
                raise _not_made(place, error) from error
        raise


def rows_of(handles: Sequence[Any], rows: Sequence[slice]) -> None:
    """Note the rows of handles of blocks, for an error that says where one cannot be made."""
    if client() is not None:
        _ROWS.update(zip(handles, rows, strict=True))


def _not_made(rows: slice, error: Exception) -> DataError:
    return DataError(
        f"Dask cannot compute rows {rows.start} to {rows.stop - 1} of the array: its graph raises "
        f"{type(error).__name__}: {error}. array[{rows.start}:{rows.stop}].compute() raises it, "
        "too. Mend what makes these rows, or leave them out of the array."
    )


def sent(value: Any, nbytes: int, hand: int) -> Any:
    """Return a handle of what goes to a worker, by number; what is small goes with its task."""
    there = client()
    if there is None or nbytes < _DATA:
        return value
    if not there.nthreads():  # all were lost; a cluster starts others in their place
        there.wait_for_workers(1, timeout=_PATIENCE)
    workers = list(there.nthreads())
    return there.scatter(value, workers=[workers[hand % len(workers)]], hash=False)


def placed(tasks: Sequence[Task]) -> list[Any]:
    """Return handles of what functions return, kept where they run."""
    there = client()
    if there is not None:
        return [there.submit(function, *found, pure=False) for function, *found in tasks]
    if len(tasks) == 1:
        return [tasks[0][0](*tasks[0][1:])]
    with ThreadPoolExecutor(min(len(tasks), worker_count())) as pool:
        return list(pool.map(lambda task: task[0](*task[1:]), tasks))


def summed(tasks: Tasks, forget: Callable[[], None]) -> Any:
    """Return the sum of what ``tasks`` return, added in a tree where they are.

    ``forget`` is called before another attempt, when what the tasks build on is lost.
    """

    def attempt() -> Any:
        level = placed(tasks())
        _watch(level)
        while len(level) > 1:
            level = placed([(_sum, level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)])
        return _here(level)[0]

    return _again(attempt, forget)


def _watch(handles: Sequence[Any]) -> None:
    """Report how many results of a computation on a cluster have arrived."""
    if client() is not None:
        many = len(handles)
        report(lambda: f"{sum(h.done() for h in handles)} of {many} groups of rows", "workers")


def gathered(tasks: Tasks, forget: Callable[[], None]) -> list[Any]:
    """Return what ``tasks`` return, one by one; see :func:`summed`."""

    def attempt() -> list[Any]:
        handles = placed(tasks())
        _watch(handles)
        return _here(handles)

    found: list[Any] = _again(attempt, forget)
    return found


def _here(handles: list[Any]) -> list[Any]:
    there = client()
    return handles if there is None else list(there.gather(handles))


def _again(attempt: Callable[[], Any], forget: Callable[[], None]) -> Any:
    """Run ``attempt``, again if the cluster lost the workers that were at it."""
    for left in range(_ATTEMPTS - 1, -1, -1):
        try:
            return attempt()
        except Exception as error:
            if left and type(error).__name__ in _LOST:
                forget()
                continue
            if not isinstance(error, SparseModelError):
                for handle, rows in list(_ROWS.items()):
                    if handle.status == "error":  # no task of ours: it needs them
                        raise _not_made(rows, error) from error
            raise
    raise AssertionError("unreachable")


def _sum(parts: list[Any]) -> Any:
    out = parts[0]
    for part in parts[1:]:
        out = out + part
    return out
