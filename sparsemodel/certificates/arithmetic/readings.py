"""What readings of stored data found, so that a file is not read twice for the same numbers."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from sparsemodel.designs import ChunkedDesign, StackedDesign
from sparsemodel.interfaces import Design, FloatArray

_LARGEST = 2**22
"""Numbers up to which a result is kept (32 MB)."""

_MOST = 2**25
"""Numbers that are kept of a design (256 MB)."""

_MANY = 64
"""Results that are kept of a design."""

Found = tuple[FloatArray, ...]
T = TypeVar("T")

_KEPT: WeakKeyDictionary[Design, tuple[Hashable, OrderedDict[Hashable, Any]]] = WeakKeyDictionary()
"""Results of readings, with the stamps of the data that they were readings of."""

_KEEPING = Lock()
"""Threads may share a design, and what is dropped depends on all that is kept."""

_ABSENT: Any = object()


def remembered(design: Design, key: Hashable, read: Callable[[], T]) -> T:
    """Return ``read()``, or what it returned before for data that cannot have changed since.

    Data in memory, and files that other code may write to, are read again every time.
    """
    results = _results(design)
    if results is None:
        return read()
    found: T = results.get(key, _ABSENT)
    if found is _ABSENT:
        found = read()
    if _numbers(found) <= _LARGEST:
        with _KEEPING:
            results[key] = found
            results.move_to_end(key)  # what was not asked for as lately is dropped first
            while len(results) > _MANY or sum(map(_numbers, results.values())) > _MOST:
                results.popitem(last=False)
    return found


def read_once(design: Design, what: str, at: FloatArray | None, read: Callable[[], Found]) -> Found:
    """Return copies of arrays that are :func:`remembered`; they belong to the caller.

    ``what`` is read, and ``at`` is the vector it is multiplied with.
    """
    if design.stamp is None:
        return read()
    return tuple(array.copy() for array in remembered(design, _key(what, at), read))


def kept(design: Design, size: int) -> bool:
    """Return whether a result of so many numbers is kept."""
    return size <= _LARGEST and _results(design) is not None


def known(design: Design, key: Hashable) -> bool:
    """Return whether :func:`remembered` needs no reading, or is of no use: nothing is kept."""
    results = _results(design)
    return results is None or key in results


def forget(design: Design) -> None:
    """Discard what was read: a verification reads the data again."""
    _KEPT.pop(design, None)
    if isinstance(design, ChunkedDesign):
        design.forget()
    if isinstance(design, StackedDesign):
        for _, block in design.blocks:
            forget(block)


def _results(design: Design) -> OrderedDict[Hashable, Any] | None:
    """Return what is kept of the data as they are now; None where that cannot be known."""
    stamp = design.stamp
    if stamp is None:
        return None
    kept = _KEPT.get(design)
    if kept is None or kept[0] != stamp:
        kept = _KEPT[design] = (stamp, OrderedDict())
    return kept[1]


def _numbers(found: Any) -> int:
    return sum(array.size for array in found) if isinstance(found, tuple) else 0


def _key(what: str, at: FloatArray | None) -> Hashable:
    if at is None:
        return what
    entries = np.ascontiguousarray(at, dtype=np.float64)
    return what, entries.shape, hashlib.blake2b(entries.data, digest_size=16).digest()
