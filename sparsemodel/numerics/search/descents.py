"""Descents from many supports at a time, in NumPy until compiled ones are worth loading."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol, final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.budget import budget, numba_in_time
from sparsemodel.numerics.search import GUARD, ROUNDING

_BUYING = 2**29
"""Multiplications in NumPy after which the compiled descents are loaded: half a second of them, as
long as the loading takes. Whoever goes on buys; whoever ends before has paid no more than twice."""
_CALLS = 2.0**18
"""What the calls of a step in NumPy cost, in multiplications: a quarter of a millisecond."""
PRICES_TOGETHER = 2**20
"""Numbers of the prices that NumPy makes for several supports together (8 MB)."""


class UnitRows(Protocol):
    """Rows of a quadratic's matrix in whitened columns, ``q`` to a unit: the block of each is I."""

    q: int

    @property
    def store(self) -> FloatArray:
        """Return the rows that are there, ``(R, P)``."""
        ...

    @property
    def slots(self) -> IntArray:
        """Return the row in :attr:`store` of each column, -1 if it has to be fetched, ``(P,)``."""
        ...

    @property
    def diagonal(self) -> FloatArray:
        """Return 1, or 0 for columns of which nothing is left, ``(P,)``."""
        ...

    def fetch(self, units: IntArray) -> None:
        """Store the rows of units."""
        ...


@final
class WholeMatrix:
    """Rows that are all there."""

    def __init__(self, G: FloatArray, q: int = 1) -> None:
        self.store, self.q = np.ascontiguousarray(G), q
        self.slots = np.arange(len(G))
        self.diagonal = np.diag(G).copy()

    def fetch(self, units: IntArray) -> None:
        """Nothing is missing."""


@final
class Descents:
    """Descents in one quadratic; keeps the memory that they work in.

    Parameters
    ----------
    rows
        The matrix ``G``.
    c
        Linear term, ``(m, P)``.
    bounds
        Lower and upper ones of each column, which contain zero; for single columns, one output and
        a matrix of which all rows are there.
    """

    spent = 0.0
    """Multiplications that descents in NumPy have taken in this process."""

    def __init__(
        self, rows: UnitRows, c: FloatArray, bounds: tuple[FloatArray, FloatArray] | None = None
    ) -> None:
        self._rows, self._c = rows, np.ascontiguousarray(c)
        nothing = np.empty(0)
        self._low, self._high = (nothing, nothing) if bounds is None else bounds
        self._factor: tuple[int, object] = (0, None)

    def __call__(self, starts: IntArray, sizes: int | IntArray) -> tuple[IntArray, FloatArray]:
        """Return where descents from ``starts`` end, and what the ends explain.

        Parameters
        ----------
        starts
            Units, ``(R, width)``, -1 in empty places.
        sizes
            Units of each end at most; starts with more are thinned, with fewer filled.

        Returns
        -------
        ends
            Sorted, ``(R, largest size)``, -1 in empty places, which come last.
        values
            Twice what each lowers the quadratic by.
        """
        sizes = np.broadcast_to(sizes, len(starts)).astype(np.int64)
        width = int(max(sizes.max(initial=1), starts.shape[1]))  # the ends' at least
        ends = np.full((len(starts), width), -1)
        ends[:, : starts.shape[1]] = starts
        if self._is_compiled():
            values = self._compiled(ends, sizes)
        else:
            values = self._in_numpy(ends, sizes)
        P = self._c.shape[1]
        ends = np.sort(np.where(ends < 0, P, ends), axis=1)[:, : int(sizes.max(initial=1))]
        return np.where(ends == P, -1, ends), values

    def _is_compiled(self) -> bool:
        """Return whether compiled descents are loaded, or are now."""
        if "sparsemodel.numerics.search.descents_compiled" in sys.modules:
            return True
        simple = self._rows.q == 1 and not self._low.size
        return not simple or (Descents.spent > _BUYING and numba_in_time())

    def _compiled(self, ends: IntArray, sizes: IntArray) -> FloatArray:
        from sparsemodel.numerics.search.descents_compiled import descents, new_factor

        rows, c, most = self._rows, self._c, ends.shape[1]
        if self._factor[0] < most:
            self._factor = most, new_factor(most, len(c), c.shape[1], rows.q)
        values, place = np.zeros(len(ends)), np.array([0, -1, -1, 0])
        members = np.unique(ends)
        rows.fetch(members[members >= 0])
        while place[0] < len(ends):
            tables = rows.store, rows.slots, rows.diagonal, c
            where = self._low, self._high, self._factor[1]
            descents(*tables, sizes, ends, values, place, *where)
            if place[1] >= 0:
                rows.fetch(place[1:])
                place[1] = -1
        return values

    # ---- the same in NumPy: single columns, from scratch at every step -----------------------

    def _in_numpy(self, ends: IntArray, sizes: IntArray) -> FloatArray:
        values, counts = np.zeros(len(ends)), np.zeros(len(ends), dtype=np.intp)
        # The unit that a support has beyond its size, and whether such a one was not worth another.
        extra, is_stalled = np.full(len(ends), -1), np.zeros(len(ends), dtype=bool)
        active = np.arange(len(ends))
        for row in active:  # members first, each once
            members = np.fromiter(dict.fromkeys(ends[row, ends[row] >= 0].tolist()), np.intp)
            counts[row] = members.size
            ends[row] = -1
            ends[row, : members.size] = members
        steps = np.zeros(len(ends), dtype=np.intp)
        while active.size:
            size = counts[active].min()
            places = np.flatnonzero(counts[active] == size)
            places = places[: max(1, PRICES_TOGETHER // max(1, size * self._c.shape[1]))]
            some = active[places]
            done = self._step(ends, values, counts, sizes, some, extra, is_stalled)
            steps[some] += 1
            done |= (steps[some] > 20 + 21 * sizes[some] + ends.shape[1]) & (
                counts[some] <= sizes[some]
            )
            is_active = np.ones(active.size, dtype=bool)
            is_active[places[done]] = False
            active = active[is_active]
        return values

    def _step(
        self,
        ends: IntArray,
        values: FloatArray,
        counts: IntArray,
        sizes: IntArray,
        some: IntArray,
        extra: IntArray,
        is_stalled: np.ndarray,
    ) -> np.ndarray:
        """Change one unit of supports of equal size; return which of them are at an end."""
        rows, c, k = self._rows, self._c, int(counts[some[0]])
        every, members = np.arange(some.size), ends[some, :k]
        Descents.spent += _CALLS + 2.0 * some.size * k * (k + 2) * c.shape[1]
        if k:
            rows.fetch(np.unique(members))
            GS = rows.store[rows.slots[members]]
            inside = GS[every[:, None, None], np.arange(k)[:, None], members[:, None, :]]
            is_independent = np.linalg.eigvalsh(inside)[:, 0] > GUARD
            if not is_independent.all():  # the last of a start is left out, as it depends on others
                worse = some[~is_independent]
                ends[worse, k - 1] = -1
                counts[worse] -= 1
                extra[worse], is_stalled[worse] = -1, is_stalled[worse] | (extra[worse] >= 0)
                return np.zeros(some.size, dtype=bool)
            B = np.linalg.inv(inside)
            Q = B @ GS
            w = B @ c[:, members].transpose(1, 2, 0)
            r = c - w.transpose(0, 2, 1) @ GS
            s = rows.diagonal - np.einsum("rkp,rkp->rp", GS, Q)
            value = np.einsum("rkm,mrk->r", w, c[:, members])
            own = np.einsum("rkk->rk", B)
        else:
            r, s = np.broadcast_to(c, (some.size, *c.shape)), np.tile(rows.diagonal, (some.size, 1))
            value = np.zeros(some.size)
        values[some] = value
        at_end = np.zeros(some.size, dtype=bool)
        # Thin.
        thinned = counts[some] > sizes[some]
        if thinned.any():
            cost = np.square(w).sum(axis=2) / own
            for place in np.flatnonzero(thinned):
                slot, row = int(np.argmin(cost[place])), some[place]
                # The extra unit, which is the last, leaves if no other costs less.
                if extra[row] >= 0 and cost[place, k - 1] <= cost[place, slot] * (1.0 + ROUNDING):
                    slot, is_stalled[row] = k - 1, True
                extra[row] = -1
                ends[row, slot], ends[row, k - 1] = ends[row, k - 1], -1
                counts[row] -= 1
        # Fill.
        squares = np.square(r).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = np.where(s > GUARD, squares / s, -np.inf)
        gains[every[:, None], members] = -np.inf
        into = gains.argmax(axis=1)
        # With one more than its size a support goes on to lose what costs least: an exchange, of
        # which the price is that of an addition.
        is_beyond = ~thinned & (counts[some] == sizes[some])
        has_room = (counts[some] < sizes[some]) | (~is_stalled[some] & (k < ends.shape[1]))
        filled = ~thinned & has_room & (gains[every, into] > ROUNDING * value)
        if filled.any():
            ends[some[filled], k] = into[filled]
            counts[some[filled]] += 1
            extra[some] = np.where(filled & is_beyond, into, extra[some])
        # Exchange.
        rest = ~thinned & ~filled
        at_end[rest] = True
        if k and rest.any():
            here = np.flatnonzero(rest)
            t = Q[here] / own[here][:, :, None]
            left = s[here][:, None, :] + t * Q[here]
            moved = np.zeros_like(t)
            for y in range(c.shape[0]):
                moved += np.square(r[here][:, None, y, :] + t * w[here][:, :, None, y])
            with np.errstate(divide="ignore", invalid="ignore"):
                moved = np.where(left > GUARD, moved / left, -np.inf)
            moved -= (np.square(w[here]).sum(axis=2) / own[here])[:, :, None]
            moved.transpose(0, 2, 1)[np.arange(here.size)[:, None], members[here]] = -np.inf
            flat = moved.reshape(here.size, -1)
            best = flat.argmax(axis=1)
            going = flat[np.arange(here.size), best] > ROUNDING * value[here]
            slot, unit = np.divmod(best, c.shape[1])
            ends[some[here[going]], slot[going]] = unit[going]
            at_end[here[going]] = False
        return at_end


def forward_backward(
    descents: Descents,
    sizes: IntArray,
    start: IntArray | None = None,
    over: Callable[[], bool] = lambda: False,
) -> tuple[IntArray, FloatArray]:
    """Return the best support found of each size, and what these explain.

    Forward, each size begins at the end of the one before, filled by what gains most. Then all
    begin at the best of both neighbours, filled or thinned, until none is improved.

    Parameters
    ----------
    descents
        In one quadratic.
    sizes
        Increasing, at least 1.
    start
        Units of a support smaller than all of them to begin with; none if None.
    over
        Returns whether time is up. There are fewer supports then, one at least; so there are on
        Ctrl-C, which ends the budget.

    Returns
    -------
    supports
        Sorted, ``(len(sizes), largest size)``, -1 in empty places, which come last.
    values
        Twice what each lowers the quadratic by, ``(len(sizes),)``; never falling.
    """
    many, largest = sizes.size, int(sizes.max(initial=0))
    sizes = np.concatenate([[0 if start is None else start.size], sizes])
    supports, values = np.full((many + 1, largest), -1), np.zeros(many + 1)
    if sizes[0]:
        supports[:1, : sizes[0]], values[:1] = descents(np.asarray(start)[None], sizes[:1])
    # Places from whose best support no descent to the size before, or after, has begun.
    is_new = np.ones((2, many + 1), dtype=bool)

    def descend(places: IntArray, beside: int) -> bool:
        """Descend to some sizes from those beside them; return whether that improves any."""
        places = places[is_new[(1 + beside) // 2, places + beside]]
        if not places.size:
            return False
        is_new[(1 + beside) // 2, places + beside] = False
        ends, gains = descents(supports[places + beside], sizes[places])
        better = gains > values[places] * (1.0 + ROUNDING)
        supports[places[better], : ends.shape[1]] = ends[better]
        values[places[better]] = gains[better]
        is_new[:, places[better]] = True
        return bool(better.any())

    for place in range(1, many + 1):
        try:
            if place > 1 and over():
                many = place - 1
                break
            descend(np.array([place]), -1)
        except KeyboardInterrupt:
            if place == 1:
                raise
            budget().interrupt()
            many = place - 1
            break
        if values[place] < values[place - 1]:  # no further unit gains anything
            supports[place], values[place] = supports[place - 1], values[place - 1]
    while not over() and descend(np.arange(1, many), 1) | descend(np.arange(2, many + 1), -1):
        pass
    return supports[1 : many + 1], values[1 : many + 1]
