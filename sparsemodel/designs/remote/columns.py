"""Columns that cost a reading of all data, kept once they are here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import final
from weakref import WeakValueDictionary

import numpy as np

from sparsemodel.designs.dense import DenseDesign, columns_again
from sparsemodel.interfaces import Design, FloatArray, IntArray

KEPT_BYTES = 2**27
"""Bytes of columns that are kept beside those in use (128 MB)."""

_KEEPING = Lock()
"""Threads may share a design: what is kept and how much of it change together."""


@final
class ReadColumns:
    """Designs of columns that are read at a price: none is read again while it is kept.

    Kept are all that are in use somewhere and, up to 128 MB, the last that were asked for, as long
    as the data have the same stamp. Algorithms that try one coordinate after another on nearly the
    same support read each of them once.

    Parameters
    ----------
    read
        Returns columns, by sorted numbers, as rows of a float64 array.
    """

    def __init__(self, read: Callable[[IntArray], FloatArray]) -> None:
        self._read = read
        self._stamp: Hashable | None = None
        self._in_use: WeakValueDictionary[bytes, DenseDesign] = WeakValueDictionary()
        self._last: OrderedDict[int, FloatArray] = OrderedDict()
        self._bytes = 0

    def restrict(
        self, support: IntArray, last: IntArray, restricted: Design, stamp: Hashable | None
    ) -> DenseDesign:
        """Return the columns ``support``, given that ``restricted`` has those of ``last``.

        Without a stamp the data may change at any time: nothing else is taken from memory then.
        """
        if stamp is None:
            return columns_again(self._read, support, last, restricted)
        with _KEEPING:
            if stamp != self._stamp:
                self._forget()
                self._stamp = stamp
            in_use = list(self._in_use.items())
        for columns, held in in_use:
            if np.isin(support, known := np.frombuffer(columns, np.intp)).all():
                last, restricted = known, held
        found = columns_again(self._kept, support, last, restricted)
        with _KEEPING:
            self._in_use[support.astype(np.intp).tobytes()] = found
        return found

    def forget(self) -> None:
        """Read columns again, even those that are still in use."""
        with _KEEPING:
            self._forget()

    def _forget(self) -> None:
        self._in_use.clear()
        self._last.clear()
        self._bytes = 0

    def _kept(self, columns: IntArray) -> FloatArray:
        """Return columns as rows, those read that are not kept."""
        numbers = columns.tolist()
        with _KEEPING:
            known = {number: self._last[number] for number in numbers if number in self._last}
            for number in known:
                self._last.move_to_end(number)
        if not known:
            out = self._read(columns)
        else:
            out = np.empty((columns.size, next(iter(known.values())).size))
            missing = np.array([number not in known for number in numbers], dtype=bool)
            for place in np.flatnonzero(~missing):
                out[place] = known[numbers[place]]
            if missing.any():
                out[missing] = self._read(columns[missing])
        with _KEEPING:
            if out.nbytes <= KEPT_BYTES:
                for number, column in zip(numbers, out, strict=True):
                    if number not in self._last:
                        self._last[number] = column.copy()
                        self._bytes += column.nbytes
            while self._bytes > KEPT_BYTES:
                self._bytes -= self._last.popitem(last=False)[1].nbytes
        return out
