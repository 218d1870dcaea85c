"""Who is at risk when: what the Cox partial likelihood sums over, by sorting and running sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, final
from weakref import ref

import numpy as np

from sparsemodel.interfaces import BoolArray, FloatArray, IntArray


class Ops(NamedTuple):
    """How positive numbers are added up: themselves, or by their logarithms."""

    plus: Any
    times: Any
    over: Any
    zero: float
    of: Callable[[FloatArray], FloatArray]
    undo: Callable[[FloatArray], FloatArray]


class Survival(NamedTuple):
    """The columns of a target of survival times."""

    time: FloatArray
    """When the event or the censoring was."""
    event: BoolArray
    stratum: FloatArray | None
    entry: FloatArray | None
    """Since when an observation has been at risk: after this time. None: from the beginning."""


def survival(y: FloatArray) -> Survival:
    """Return what the columns of a target are.

    Two or three are time, event and stratum; four are start, stop, event and stratum.
    """
    if y.shape[1] == 4:
        return Survival(y[:, 1], y[:, 2] == 1.0, y[:, 3], y[:, 0])
    return Survival(y[:, 0], y[:, 1] == 1.0, y[:, 2] if y.shape[1] > 2 else None, None)


def in_columns(y: FloatArray) -> FloatArray:
    """Return start, stop and event with a column for one stratum; other targets as they are.

    Three columns are these where the last holds 0 and 1 alone and the second does not.
    """
    delayed = y.ndim == 2 and y.shape[1] == 3 and _binary(y[:, 2]) and not _binary(y[:, 1])
    return np.column_stack([y, np.zeros(y.shape[0])]) if delayed else y


def _binary(values: FloatArray) -> bool:
    return bool(np.all((values == 0.0) | (values == 1.0)))


PLAIN = Ops(np.add, np.multiply, np.divide, 0.0, np.asarray, np.asarray)
LOGS = Ops(np.logaddexp, np.add, np.subtract, -np.inf, np.log, np.exp)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Which of ``T`` times in a row each observation is at risk at, for sums over either.

    Sums of those at risk are not made by taking away those that have not entered, which would
    cancel. A range is the union of at most ``2 log2 T`` nodes of a binary tree over the times:
    what belongs to a node is added up once and handed on, O(n log T) for all times together.
    """

    first: IntArray
    end: IntArray
    """The ranges ``first <= time < end``."""
    leaves: int
    """The number of leaves, a power of two: node ``i`` has the children ``2 i`` and ``2 i + 1``."""
    times: int
    by_node: tuple[IntArray, IntArray, IntArray]
    """Observations by their nodes, where each node begins, and the nodes."""
    by_row: tuple[IntArray, IntArray, IntArray]
    """Nodes by their observations, where each observation begins, and the observations."""

    @classmethod
    def of(cls, first: IntArray, end: IntArray, times: int) -> Ranges:
        """Return the nodes of each range."""
        leaves = 1 << max(times - 1, 0).bit_length()
        left, right, everyone = first + leaves, end + leaves, np.arange(first.size)
        rows, nodes = [], []
        while np.any(left < right):
            # A node that is the right child at the left end, or past a left child at the right
            # end, is not covered by its parent.
            for inside, node in ((left & 1 == 1, left), (right & 1 == 1, right - 1)):
                chosen = inside & (left < right)
                rows.append(everyone[chosen])
                nodes.append(node[chosen])
            left, right = (left + 1) >> 1, right >> 1
        row = np.concatenate([np.empty(0, dtype=np.intp), *rows])
        node = np.concatenate([np.empty(0, dtype=np.intp), *nodes])
        by_node, by_row = np.argsort(node, kind="stable"), np.argsort(row, kind="stable")
        nodes_there, node_starts = np.unique(node[by_node], return_index=True)
        rows_there, row_starts = np.unique(row[by_row], return_index=True)
        return cls(
            first,
            end,
            leaves,
            times,
            (row[by_node], node_starts, nodes_there),
            (node[by_row], row_starts, rows_there),
        )

    def over_rows(self, ops: Ops, x: FloatArray) -> FloatArray:
        """Return for each time the sum of the rows of ``x`` that are at risk."""
        rows, starts, nodes = self.by_node
        tree = np.full((2 * self.leaves, x.shape[1]), ops.zero)
        if nodes.size:
            tree[nodes] = ops.plus.reduceat(x[rows], starts, axis=0)
        level = 2
        while level <= self.leaves:
            parents = np.repeat(tree[level // 2 : level], 2, axis=0)
            tree[level : 2 * level] = ops.plus(tree[level : 2 * level], parents)
            level *= 2
        return tree[self.leaves : self.leaves + self.times]

    def over_times(self, ops: Ops, q: FloatArray) -> FloatArray:
        """Return for each observation the sum of ``q`` over the times at which it is at risk."""
        nodes, starts, rows = self.by_row
        tree = np.full((2 * self.leaves, q.shape[1]), ops.zero)
        tree[self.leaves : self.leaves + self.times] = q
        level = self.leaves
        while level > 1:
            tree[level // 2 : level] = ops.plus(
                tree[level : 2 * level : 2], tree[level + 1 : 2 * level : 2]
            )
            level //= 2
        out = np.full((self.first.size, q.shape[1]), ops.zero)
        if rows.size:
            out[rows] = ops.plus.reduceat(tree[nodes], starts, axis=0)
        return out


def _positions(keys: tuple[Any, Any], values: tuple[Any, Any]) -> IntArray:
    """Return how many of the sorted pairs of keys come before each pair of values."""
    count = keys[0].size
    both = [np.append(*pair) for pair in zip(keys, values, strict=True)]
    # Values come before the keys that are equal to them.
    order = np.lexsort((np.arange(both[0].size) < count, both[1], both[0]))
    before = np.cumsum(order < count)
    out = np.empty(both[0].size, dtype=np.intp)
    out[order] = before
    return out[count:]


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
    ranges: Ranges | None
    """The times with events at which observations are at risk, where they enter late."""

    @classmethod
    def of(cls, y: FloatArray, c: FloatArray, *, efron: bool) -> RiskSets:
        """Return the risk sets of a target (:func:`survival`)."""
        given = survival(y)
        strata = given.stratum
        happened = given.event & (c > 0.0)
        keys: tuple[Any, ...] = (happened, -given.time) + (() if strata is None else (strata,))
        order = np.lexsort(keys) if efron or len(keys) > 2 else np.argsort(-given.time)
        border, new = (np.ones(order.size, dtype=bool) for _ in range(2))
        border[1:] = False if strata is None else np.diff(strata[order]) != 0.0
        new[1:] = border[1:] | (np.diff(given.time[order]) != 0.0)
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
        ranges = None
        if given.entry is not None:
            # By descending time somebody is at risk from his own time on (an event of a tie after
            # Efron from the next one on), until those that are not after his start.
            first_risk = np.searchsorted(busy, time + (efron & happened[order]))
            stratum = np.cumsum(border) - 1
            at_times = stratum[ends[busy]], -given.time[order][ends[busy]]
            last_risk = _positions(at_times, (stratum, -given.entry[order]))
            ranges = Ranges.of(first_risk, np.maximum(first_risk, last_risk), busy.size)
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
            ranges=ranges,
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
        if self.ranges is not None:
            whole = self.ranges.over_rows(ops, x)[self.of_part]
        else:
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
        totals = ops.plus.reduceat(q, self.first, axis=0)
        own = None
        if self.efron:
            own = ops.times(ops.of(self.share)[:, None], q)
            own = ops.plus.reduceat(own, self.first, axis=0)[self.at]
        if self.ranges is not None:
            out = self.ranges.over_times(ops, totals)
            if own is not None:
                out[self.events] = ops.plus(out[self.events], own)
            return out
        rows = self.time_strata[-1].stop
        later = np.full((rows + 1, q.shape[1]), ops.zero)
        later[self.busy] = totals
        for stratum in self.time_strata:
            later[stratum] = ops.plus.accumulate(later[stratum][::-1], axis=0)[::-1]
        out = later[self.time]
        if own is not None:
            later[[stratum.start for stratum in self.time_strata]] = ops.zero
            out[self.events] = ops.plus(later[self.time[self.events] + 1], own)
        return np.asarray(out)

    def members(self, part: int) -> IntArray:
        """Return the positions of those whose hazards count fully in a part."""
        if self.ranges is None:
            return np.arange(self.start[part], self.full[part] + 1)
        at = self.of_part[part]
        return np.flatnonzero((self.ranges.first <= at) & (at < self.ranges.end))

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
