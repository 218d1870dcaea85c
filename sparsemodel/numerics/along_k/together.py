"""Supports of all sizes of one quadratic, searched together.

A search as for one size, but that ends are starts for the sizes beside their own, too, filled or
thinned. One call descends for all sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.along_k.whitened import Whitened
from sparsemodel.numerics.search import ROUNDING
from sparsemodel.numerics.search.descents import Descents
from sparsemodel.numerics.search.ends import PATIENCE, Ends, descent_cost, most_starts

_STARTS = 12
"""Starts of a size in a round, half of them random."""
_CARRIED = 12
"""Ends of a size that descents to the sizes beside it begin at."""
SHARE = 0.125
"""Patience with a size beside that of a solve for it alone: its neighbours are searched as well."""
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
        self._ends = [Ends() for _ in sizes]
        self._begun: list[set[bytes]] = [set() for _ in sizes]

    def best(self, place: int, many: int = 1) -> list[IntArray]:
        """Return the best supports of a size, the best first."""
        return self._ends[place].supports[:many]

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
            self._ends[at].take([row[row >= 0]], [value])

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
            if self._over() or np.all(np.array(values) <= np.array(before) * (1.0 + ROUNDING)):
                break

    def _rounds(self, descents: Descents, pool: IntArray | None, effort: float) -> None:
        """Search among some units until each size has been in vain for long enough."""
        for place, ends in enumerate(self._ends):  # what was met in another pool tells nothing
            self._ends[place] = Ends()
            self._ends[place].take(ends.supports, ends.values)
        columns = (self._quadratic.size if pool is None else pool.size) * self._quadratic.q
        most = [
            most_starts(SHARE * effort, descent_cost(size * self._quadratic.q, columns))
            for size in self.sizes.tolist()
        ]
        active = np.flatnonzero((self.sizes > 1) & (self.sizes < self._quadratic.size))
        while active.size and not self._over():
            rows, places = self._starts(active, pool)
            self._descend(descents, rows, places, pool, _STARTS // 2)
            self._carry(descents, pool, _CARRIED)
            is_enough = [
                self._ends[place].is_enough(PATIENCE, SHARE * effort, most[place])
                for place in active.tolist()
            ]
            active = active[~np.array(is_enough)]

    def _starts(self, active: IntArray, pool: IntArray | None) -> tuple[IntArray, IntArray]:
        """Return starts of each active size, and the place of the size of each.

        One half, the last of each, are random units; the others put a part of one of its ends and a
        part of one of a size nearby together.
        """
        rng, rows, places = self._rng, [], np.repeat(active, _STARTS)
        every = self._quadratic.size if pool is None else pool
        for place in active.tolist():
            own = self._ends[place].supports
            near = [
                support
                for beside in range(max(place - 2, 0), min(place + 3, self.sizes.size))
                for support in self._ends[beside].supports
            ]
            for _ in range(_STARTS - _STARTS // 2):
                home = own[int(len(own) * rng.random() ** 2)]
                other = near[rng.integers(len(near))]
                kept = home[rng.random(home.size) > rng.uniform(0.0, 0.7)]
                added = other[rng.random(other.size) < rng.uniform(0.2, 1.0)]
                rows.append(np.union1d(kept, added))
            rows += list(rng.choice(every, (_STARTS // 2, self.sizes[place])))
        return stacked(rows), places

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
        self,
        descents: Descents,
        rows: IntArray,
        places: IntArray,
        pool: IntArray | None,
        samples: int = 0,
    ) -> None:
        """Descend from starts, ordered by places, and keep where that ends.

        The last ``samples`` of each place began at random.
        """
        if pool is not None:
            place = np.full(self._quadratic.size + 1, -1)
            place[pool] = np.arange(pool.size)
            rows = place[rows]
        ends, values = descents(rows, self.sizes[places])
        for at in np.unique(places).tolist():
            own = np.flatnonzero(places == at)
            supports = [end[end >= 0] for end in ends[own]]
            if pool is not None:
                supports = [pool[support] for support in supports]
            self._ends[at].take(supports, values[own].tolist(), samples)

    def _value(self, place: int) -> float:
        return self._ends[place].values[0]


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
