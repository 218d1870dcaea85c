"""Who is at risk when: what the Cox partial likelihood sums over, by sorting and running sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, final
from weakref import ref

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray


class Ops(NamedTuple):
    """How positive numbers are added up: themselves, or by their logarithms."""

    plus: Any
    times: Any
    over: Any
    zero: float
    of: Callable[[FloatArray], FloatArray]
    undo: Callable[[FloatArray], FloatArray]


PLAIN = Ops(np.add, np.multiply, np.divide, 0.0, np.asarray, np.asarray)
LOGS = Ops(np.logaddexp, np.add, np.subtract, -np.inf, np.log, np.exp)


@final
@dataclass(frozen=True, slots=True, eq=False)
class RiskSets:
    """Observations by stratum and descending time, and the parts of the partial likelihood.

    A part is a weight times the logarithm of a sum of hazards. After Breslow each time with events
    has one part, the sum over its risk set: everything up to the end of the time. After Efron it
    has as many parts as events, ``d``, and their hazards count ``1 - l/d`` in the ``l``-th, from 0.
    """

    order: IntArray
    """Indices that sort the observations; at each time its events come last."""
    strata: list[slice]
    """Where the strata are in that order."""
    time: IntArray
    """Which distinct time (of its stratum) an observation has, in that order."""
    time_strata: list[slice]
    """Where the strata are among the distinct times."""
    log_weights: FloatArray
    """Logarithm of the scaled weights, in order."""
    event_weights: FloatArray
    """``c_i delta_i``, in order."""
    events: IntArray
    """Positions of the events in that order."""
    at: IntArray
    """Which of the times with events an event has."""
    busy: IntArray
    """The times with events, among all distinct ones."""
    first: IntArray
    """The first part of each of them."""
    of_part: IntArray
    """Which of them a part belongs to."""
    start: IntArray
    """First position of the stratum of a part."""
    full: IntArray
    """The position up to which hazards count fully in a part; ``start - 1`` for none."""
    mass: FloatArray
    """Weight of each part."""
    share: FloatArray
    """What the hazards of the events of its time count in a part."""
    efron: bool

    @classmethod
    def of(cls, y: FloatArray, c: FloatArray, *, efron: bool) -> RiskSets:
        """Return the risk sets of a target with columns time, event and perhaps stratum."""
        several = y.shape[1] > 2
        happened = (y[:, 1] == 1.0) & (c > 0.0)
        keys = (happened, -y[:, 0], *([y[:, 2]] if several else []))
        order = np.lexsort(keys) if efron or several else np.argsort(-y[:, 0])
        new = np.ones(order.size, dtype=bool)
        new[1:] = np.any(y[order[1:], ::2] != y[order[:-1], ::2], axis=1)
        border = np.ones(order.size, dtype=bool)
        border[1:] = y[order[1:], 2] != y[order[:-1], 2] if several else False
        time, ends = np.cumsum(new) - 1, np.append(np.flatnonzero(new)[1:], order.size) - 1
        begins = np.flatnonzero(border)
        events = np.flatnonzero(happened[order])
        busy, at, counts = np.unique(time[events], return_inverse=True, return_counts=True)
        parts = counts if efron else np.ones_like(counts)
        first, of_part = np.cumsum(parts) - parts, np.repeat(np.arange(busy.size), parts)
        event_weights = np.where(happened[order], c[order], 0.0)
        deaths = np.bincount(at, event_weights[events], busy.size)
        last = ends[busy[of_part]]
        with np.errstate(divide="ignore"):  # an observation of weight zero is not there
            log_weights = np.log(c[order] * (c.size / c.sum()))
        return cls(
            order=order,
            strata=_slices(begins, order.size),
            time=time,
            time_strata=_slices(time[begins], ends.size),
            log_weights=log_weights,
            event_weights=event_weights,
            events=events,
            at=at,
            busy=busy,
            first=first,
            of_part=of_part,
            start=begins[np.cumsum(border)[last] - 1],
            full=last - counts[of_part] if efron else last,
            mass=(deaths / parts)[of_part],
            share=1.0 - (np.arange(of_part.size) - first[of_part]) / parts[of_part],
            efron=efron,
        )

    def log_hazards(self, u: FloatArray) -> tuple[FloatArray, float]:
        """Return the logarithms of the weighted hazards, a column in order, less the largest one.

        The second value is what was taken off.
        """
        log_r = u[self.order] + self.log_weights
        shift = float(log_r.max())
        return (log_r - shift)[:, None], shift

    def sums(self, ops: Ops, x: FloatArray) -> FloatArray:
        """Return the sums of the rows of ``x`` over the risk set of each part."""
        running = np.full((x.shape[0] + 1, x.shape[1]), ops.zero)
        for stratum in self.strata:
            ops.plus.accumulate(x[stratum], axis=0, out=running[stratum])
        whole = running[np.where(self.full >= self.start, self.full, -1)]
        if not self.efron:
            return whole
        own = ops.plus.reduceat(x[self.events], self.first, axis=0)[self.of_part]
        return np.asarray(ops.plus(whole, ops.times(ops.of(self.share)[:, None], own)))

    def tails(self, ops: Ops, q: FloatArray) -> FloatArray:
        """Return for each observation the sum of the rows of ``q`` over the parts that it is in."""
        rows = self.time_strata[-1].stop
        later = np.full((rows + 1, q.shape[1]), ops.zero)
        later[self.busy] = ops.plus.reduceat(q, self.first, axis=0)
        for stratum in self.time_strata:
            later[stratum] = ops.plus.accumulate(later[stratum][::-1], axis=0)[::-1]
        out = later[self.time]
        if self.efron:
            own = ops.times(ops.of(self.share)[:, None], q)
            own = ops.plus.reduceat(own, self.first, axis=0)[self.at]
            later[[stratum.start for stratum in self.time_strata]] = ops.zero
            out[self.events] = ops.plus(later[self.time[self.events] + 1], own)
        return np.asarray(out)

    def by_event(self, values: FloatArray) -> FloatArray:
        """Return for each event the mean of one value a part over the parts of its time."""
        counts = np.bincount(self.of_part, minlength=self.busy.size)
        return np.asarray((np.bincount(self.of_part, values, self.busy.size) / counts)[self.at])

    def unsorted(self, values: FloatArray) -> FloatArray:
        """Return values given in order of time in the order of the data."""
        result = np.empty_like(values)
        result[self.order] = values
        return result


class _Kept(NamedTuple):
    """Risk sets, and what they are of: the arrays, which it does not hold, and their entries."""

    arrays: tuple[ref[FloatArray], ref[FloatArray]]
    entries: tuple[FloatArray, FloatArray]
    found: RiskSets


_KEPT: dict[tuple[int, int, bool], _Kept] = {}


def risk_sets(y: FloatArray, c: FloatArray, *, efron: bool) -> RiskSets:
    """Return :meth:`RiskSets.of`, sorted once for each pair of arrays that has not changed.

    Losses are asked for thousands of values with the same target, and sorting takes longer than
    adding up. Comparing the entries is a reading of them; they are kept as long as the arrays.
    """
    key = (id(y), id(c), efron)
    kept = _KEPT.get(key)
    if kept is not None and kept.arrays[0]() is y and kept.arrays[1]() is c:
        target, weights = kept.entries
        if np.array_equal(target, y) and np.array_equal(weights, c):
            return kept.found
    found = RiskSets.of(y, c, efron=efron)
    forget = partial(_forget, key)
    _KEPT[key] = _Kept((ref(y, forget), ref(c, forget)), (y.copy(), c.copy()), found)
    return found


def _forget(key: tuple[int, int, bool], _gone: object) -> None:
    _KEPT.pop(key, None)


def _slices(begins: IntArray, size: int) -> list[slice]:
    return [slice(a, b) for a, b in zip(begins, [*begins[1:], size], strict=True)]
