"""Columns that cost a reading of all data, kept once they are here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import final
from weakref import WeakValueDictionary

import numpy as np

from sparsemodel.designs.dense import DenseDesign, columns_again
from sparsemodel.interfaces import Design, FloatArray, IntArray

KEPT_BYTES = 2**27
"""Bytes of columns that are kept beside those in use (128 MB)."""


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
        if stamp != self._stamp:
            self.forget()
            self._stamp = stamp
        for columns, held in list(self._in_use.items()):
            if np.isin(support, known := np.frombuffer(columns, np.intp)).all():
                last, restricted = known, held
        found = columns_again(self._kept, support, last, restricted)
        self._in_use[support.astype(np.intp).tobytes()] = found
        return found

    def forget(self) -> None:
        """Read columns again, even those that are still in use."""
        self._in_use.clear()
        self._last.clear()
        self._bytes = 0

    def _kept(self, columns: IntArray) -> FloatArray:
        """Return columns as rows, those read that are not kept."""
        numbers = columns.tolist()
        there = np.array([number in self._last for number in numbers], dtype=bool)
        if not there.any():
            out = self._read(columns)
        else:
            rows = next(iter(self._last.values())).size
            out = np.empty((columns.size, rows))
            for place in np.flatnonzero(there):
                self._last.move_to_end(numbers[place])
                out[place] = self._last[numbers[place]]
            if not there.all():
                out[~there] = self._read(columns[~there])
        if out.nbytes <= KEPT_BYTES:
            for place in np.flatnonzero(~there):
                self._last[numbers[place]] = out[place].copy()
                self._bytes += out[place].nbytes
        while self._bytes > KEPT_BYTES:
            self._bytes -= self._last.popitem(last=False)[1].nbytes
        return out
