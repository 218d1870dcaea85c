"""Supports of all sizes of one quadratic, searched together.

Ends of descents are starts for other sizes: parts of two of them are put together, and filled or
thinned to the size in question. One call descends for all sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.along_k.whitened import Whitened
from sparsemodel.numerics.search.descents import Descents

_STARTS = 12
"""Starts of a size in a round."""
_KEPT = 24
"""Ends of a size that are kept to be put together."""
_CARRIED = 12
"""Ends of a size that descents to the sizes beside it begin at."""
_PATIENCE = 3
"""Rounds in vain before a size is left, up to four times as many where most ends are new."""
_FEW = 3
"""Units drawn at random that a start begins with which forgets what was found."""
_POOLS, _CLOSED = 4, 4
"""Pools of columns at most, and ends of a size in each that descend in all columns."""
_WIDE, _EACH = 1024, 256
"""Columns from which descents are made among those that promise most, and how many these are beside
a support."""


@final
class SizesTogether:
    """The best supports of each size, and others; a run's workspace.

    Parameters
    ----------
    quadratic
        What supports are of.
    sizes
        Increasing, at least 1.
    over
        Returns whether time is up.
    """

    def __init__(self, quadratic: Whitened, sizes: IntArray, over: Callable[[], bool]) -> None:
        self._quadratic, self._over = quadratic, over
        self.sizes = np.minimum(sizes, quadratic.size)
        self._rng = np.random.default_rng(0)
        self._ends: list[dict[bytes, tuple[float, IntArray]]] = [{} for _ in sizes]
        self._times: list[dict[bytes, int]] = [{} for _ in sizes]
        self._begun: list[set[bytes]] = [set() for _ in sizes]
        self._vain = np.zeros(self.sizes.size)

    def best(self, place: int, many: int = 1) -> list[IntArray]:
        """Return the best supports of a size, the best first."""
        ranked = sorted(self._ends[place].values(), key=lambda end: -end[0])
        return [support for _, support in ranked[:many]]

    @property
    def has_close_columns(self) -> bool:
        """Return whether the largest support nearly makes up a column that is not in it."""
        return self._quadratic.leaves_nothing(self.best(self.sizes.size - 1)[0])

    def begin(self, supports: IntArray, values: FloatArray | None = None) -> None:
        """Take one support of each size, a row with -1 behind its units, and what it explains.

        Without values they are starts, of no matter how many units.
        """
        if values is None:
            self._descend(self._quadratic.descents, supports, np.arange(self.sizes.size), None)
            return
        for at, (row, value) in enumerate(zip(supports, values.tolist(), strict=True)):
            support = row[row >= 0]
            self._ends[at][support.tobytes()] = value, support

    def search(self, effort: float) -> None:
        """Search all sizes in rounds, until each has been in vain for long enough."""
        if self._quadratic.size <= _WIDE:
            self._rounds(self._quadratic.descents, None, effort)
            return
        # Many columns: in pools around the best supports, whose ends descend in all columns.
        for _ in range(_POOLS):
            before = [self._value(place) for place in range(self.sizes.size)]
            supports = [self.best(place)[0] for place in range(self.sizes.size)]
            pool = promising(self._quadratic, supports)
            self._rounds(self._quadratic.among(pool), pool, effort)
            places = np.arange(self.sizes.size)
            rows = [self.best(place, _CLOSED) for place in places.tolist()]
            at = np.repeat(places, [len(row) for row in rows])
            self._descend(
                self._quadratic.descents, stacked([end for row in rows for end in row]), at, None
            )
            self._carry(self._quadratic.descents, None, 1)
            values = [self._value(place) for place in range(self.sizes.size)]
            if self._over() or np.all(np.array(values) <= np.array(before) * (1.0 + 1e-9)):
                break

    def _rounds(self, descents: Descents, pool: IntArray | None, effort: float) -> None:
        """Search among some units until each size has been in vain for long enough."""
        self._vain[:] = 0
        active = np.flatnonzero((self.sizes > 1) & (self.sizes < self._quadratic.size))
        while active.size and not self._over():
            rows, places = self._starts(active, pool)
            before = [self._value(place) for place in active.tolist()]
            self._descend(descents, rows, places, pool)
            self._carry(descents, pool, _CARRIED)
            for place, value in zip(active.tolist(), before, strict=True):
                better = self._value(place) > value * (1.0 + 1e-9)
                self._vain[place] = 0 if better else self._vain[place] + 1
            patience = np.array([self._patience(place) for place in active.tolist()])
            active = active[self._vain[active] < effort * patience]

    def _patience(self, place: int) -> float:
        """Return rounds in vain that are enough, by the share of ends that were met once."""
        times = self._times[place]
        once, every = sum(t == 1 for t in times.values()), sum(times.values())
        return _PATIENCE * (1.0 + 3.0 * once / max(every, 1))

    def _starts(self, active: IntArray, pool: IntArray | None) -> tuple[IntArray, IntArray]:
        """Return starts of each active size, and the place of the size of each.

        Three in four put a part of one of its ends and a part of one of a size nearby together; the
        others are a few units at random.
        """
        rng, rows, places = self._rng, [], []
        every = self._quadratic.size if pool is None else pool
        for place in active.tolist():
            own = self.best(place, _KEPT)
            near = [
                support
                for beside in range(max(place - 2, 0), min(place + 3, self.sizes.size))
                for support in self.best(beside, _KEPT)
            ]
            for number in range(_STARTS):
                places.append(place)
                if number % 4 == 3:
                    rows.append(rng.choice(every, min(_FEW, self.sizes[place]), replace=False))
                    continue
                home = own[int(len(own) * rng.random() ** 2)]
                other = near[rng.integers(len(near))]
                kept = home[rng.random(home.size) > rng.uniform(0.0, 0.7)]
                added = other[rng.random(other.size) < rng.uniform(0.2, 1.0)]
                rows.append(np.union1d(kept, added))
        return stacked(rows), np.array(places)

    def _carry(self, descents: Descents, pool: IntArray | None, many: int) -> None:
        """Descend from the ends of the sizes beside each one, from where none has begun."""
        rows, places = [], []
        for place in range(self.sizes.size):
            for beside in (place - 1, place + 1):
                if self.sizes[place] == 1 or not 0 <= beside < self.sizes.size:
                    continue
                for support in self.best(beside, many):
                    key = (b"all" if pool is None else b"") + support.tobytes()
                    if key not in self._begun[place]:
                        self._begun[place].add(key)
                        rows.append(support)
                        places.append(place)
        if rows:
            self._descend(descents, stacked(rows), np.array(places), pool)

    def _descend(
        self, descents: Descents, rows: IntArray, places: IntArray, pool: IntArray | None
    ) -> None:
        """Descend from starts, and keep where that ends."""
        if pool is not None:
            place = np.full(self._quadratic.size + 1, -1)
            place[pool] = np.arange(pool.size)
            rows = place[rows]
        ends, values = descents(rows, self.sizes[places])
        for at, end, value in zip(places.tolist(), ends, values.tolist(), strict=True):
            support = end[end >= 0] if pool is None else pool[end[end >= 0]]
            key, kept = support.tobytes(), self._ends[at]
            self._times[at][key] = self._times[at].get(key, 0) + 1
            kept.setdefault(key, (value, support))
            if len(kept) > 2 * _KEPT:
                best = sorted(kept.items(), key=lambda item: -item[1][0])[:_KEPT]
                self._ends[at] = dict(best)

    def _value(self, place: int) -> float:
        return max(value for value, _ in self._ends[place].values())


def stacked(rows: list[IntArray]) -> IntArray:
    """Return supports as the rows of a matrix, with -1 behind the shorter ones."""
    out = np.full((len(rows), max(max(map(len, rows)), 1)), -1)
    for row, members in zip(out, rows, strict=True):
        row[: len(members)] = members
    return out


def promising(quadratic: Whitened, supports: list[IntArray]) -> IntArray:
    """Return the units of some supports, and those that promise most beside them or in a place."""
    chosen = [np.unique(np.concatenate(supports))]
    largest = max(support.size for support in supports)
    wanted = {largest, largest // 2, largest // 4, 0}
    for support in [np.empty(0, dtype=np.intp), *supports]:
        if support.size in wanted:
            wanted.discard(support.size)
            adding, exchanging = quadratic.prices(support)
            last = min(_EACH, adding.size - 1)
            chosen += [np.argpartition(-gains, last)[:_EACH] for gains in (adding, exchanging)]
    return np.unique(np.concatenate(chosen))
