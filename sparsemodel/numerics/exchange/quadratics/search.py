"""A search over supports by exchanges: descend, perturb, descend again."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.exchange.hessian_rows import HessianRows
from sparsemodel.numerics.exchange.quadratics.abreast import NEGLIGIBLE, descend_abreast, least_gain
from sparsemodel.numerics.exchange.quadratics.close_columns import first_joined
from sparsemodel.numerics.exchange.quadratics.forward import forward_selection
from sparsemodel.numerics.exchange.quadratics.perturbations import (
    completed,
    places_of,
    promising,
    searched,
)
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges
from sparsemodel.numerics.exchange.quadratics.rounds import searches_for
from sparsemodel.numerics.exchange.quadratics.runners_up import (
    Comparison,
    best_double_exchange,
    excluding_ratio,
    runners_up,
)
from sparsemodel.numerics.exchange.removal import of_size_beside, with_cheapest_replaced
from sparsemodel.numerics.support.selection import top_k

_DOUBTFUL = 1e-7
"""A gain below this fraction is computed again before it is used."""
_REFRESH, _SETTLED = 40, 20
"""Updates after which everything is computed again, and ends of a descent that may be doubted."""
_SHORT_LIST = 2048
"""Columns that are priced at every step where there are many more; all are before the end. With 400
searches of 60 x 2500 random columns were three times faster and ended up to 77 % higher."""
_PROMISING = 50
"""Coordinates that promise most in place of a member, which the short list contains."""
_ABREAST, _ENTRIES = 24, 2**18
"""Perturbations that are searched side by side at most, and numbers of a table of prices then. Of
40 problems with 600 to 5000 columns 38 end within 0.1 % of the best known point; 36 with half of
it, in a sixth more time."""
_TOGETHER = 12
"""Rows that are read together while a support is filled, where there are many columns."""
_RESIZED = 3
"""Sizes above and below that are searched where units have a price. Of 50 problems with 5 to 37
units, columns correlated by .9, 10 ended up to 1.3 % higher without, in two thirds of the time."""
_PLENTY = 1500
"""Numbers of a table of prices from which fewer searches side by side take clearly less time."""
_ALIKE = 0.9
"""Correlation with a coordinate outside from which searches look at all columns once those in few
columns have ended at several supports. Of 140 problems with 600 to 3000 columns 9 ended up to 39 %
too high so, 15 with few columns throughout."""


@final
class ExchangeSearch:
    """A support of a quadratic that is improved exchange by exchange; mutable, one run's own.

    Gains are in units of twice the objective, as those of :class:`Exchanges`.

    Parameters
    ----------
    rows, linear
        The quadratic, see :class:`Exchanges`.
    most
        Coordinates a support may have.
    price
        What each costs in the objective.
    at
        A support that has been priced, with all columns, to begin at; None for the empty one.
    """

    def __init__(
        self,
        rows: HessianRows,
        linear: FloatArray,
        *,
        most: int,
        price: float = 0.0,
        at: Exchanges | None = None,
    ) -> None:
        self.rows, self.linear = rows, linear
        self._most, self._price = most, 2.0 * price
        self._current = Exchanges(rows, linear) if at is None else at
        self._kept = Comparison(self._current)
        self._apart: bytes | None = None  # the support from which double exchanges cost much
        self._easy = True  # until searches of few columns end at several supports
        self.exchanges = 0
        """Changes of descents so far."""
        self.walking = False
        """Whether searches from perturbed supports go on where no exchange gains."""
        if at is not None:
            self._begin(at)

    @property
    def size(self) -> int:
        """Return how many coordinates the support has."""
        return self._current.size

    @property
    def support(self) -> IntArray:
        """Return the coordinates of the support, sorted."""
        return np.sort(self._current.coordinates(self._current.members[0]))

    @property
    def gain(self) -> float:
        """Return what the support lowers twice the objective by, less what it costs."""
        return _worth(self._current, self._price)

    def solution(self) -> tuple[IntArray, FloatArray]:
        """Return the sorted support and the scaled coordinates on it, shape ``(k, m)``."""
        coordinates = self._current.coordinates(self._current.members[0])
        order = np.argsort(coordinates)
        return coordinates[order], self._current.w[0, order]

    @property
    def clear(self) -> bool:
        """Return whether the support stands out, so that no other is worth looking for."""
        return self.comparison.clear

    @property
    def contrast(self) -> float:
        """Return what the cheapest exchange costs over the most that another coordinate gains."""
        return self.comparison.contrast

    @property
    def apart(self) -> bool:
        """Return whether the support stands out, or double exchanges were found expensive."""
        return self.clear or self._apart == self.support.tobytes()

    @property
    def sure(self) -> int:
        """Return how many searches for each of their ends tell that none is better than this."""
        return searches_for(self.contrast)

    def start(self, support: IntArray) -> None:
        """Begin at a support; members that the others make superfluous are left out."""
        useful = support[self.rows.diagonal[support] > 0.0]
        if self._many:
            self._look(useful)
        elif useful.size or self.size:
            self._current = Exchanges(self.rows, self.linear)
            if useful.size:
                self._current.reset(useful)

    def _begin(self, model: Exchanges) -> None:
        if self._many:
            self._look(model.members[0])
        else:
            self._current = model

    def replaced(self, support: IntArray) -> bool:
        """Go on from another support if that is better, and return whether it is."""
        before, here = self.gain, self.support
        self.start(support)
        if self.gain > before + self._threshold(self._current):
            return True
        self.start(here)
        return False

    # ---- descent -----------------------------------------------------------------------------

    def descend(self, steps: int, over: Callable[[], bool], *, exactly: bool = True) -> bool:
        """Improve the support by at most ``steps`` changes; True when no single one is left.

        ``exactly`` looks once more at prices computed again, which rounding may have hidden, and at
        columns that gain something together; else only where no change is worth anything at first.
        """
        before, together, settled, changes = -np.inf, -np.inf, 0, 0
        if not (self._current.size or self._many) and self.rows.exact:
            self._select()
        for _ in range(steps):
            if over():
                return False
            # Doubtful gains begin to count updates again, and may go round in a circle.
            if max(self._current.updates, changes) >= _REFRESH:
                self._current.reset(self._current.members[0])
                last, before, changes = before, self.gain, 0
                if not before > last:  # what looked like gains was noise
                    return True
            if self._improve():
                self.exchanges, changes = self.exchanges + 1, changes + 1
                size = self._current.size
                if self._many and size < self._most and size & (size - 1) == 0:
                    self._look(self.support)  # at 1, 2, 4, 8, ...
                continue
            if self._current.updates and exactly:
                self._current.reset(self._current.members[0])
                if (settled := settled + 1) < _SETTLED and self._improve():
                    self.exchanges += 1
                    continue
            if self._many and self._look(self.support):
                continue
            if (self.exchanges and not exactly) or not self.gain > together:
                return True  # the last such gain was rounding where it has led back to here
            together = self.gain + self._threshold(self._current)
            if not self._improve_together(over):
                return True
            self.exchanges += 1
        return False

    def _improve(self) -> bool:
        """Make the best change; False when none is worth it."""
        now = self._current
        threshold = self._threshold(now)
        if now.size < self._most:
            gains = now.insertions()[0]
            into = int(np.argmax(gains))
            if gains[into] > self._price + threshold:
                if self._fetched(self._wanted(gains, into)):
                    return self._improve()
                now.insert(into)
                return True
        if self._price > 0.0 and now.size:
            costs = now.removals()[0]
            slot = int(np.argmin(costs))
            if costs[slot] < self._price - threshold:
                now.remove(slot)
                return True
        slots, members, gain = self.comparison.best
        if not gain[0] > least_gain(now, slots)[0]:
            return False
        if gain[0] < _DOUBTFUL * float(now.explained[0]) and now.updates:
            now.reset(now.members[0])
            return self._improve()
        if self._fetched(members):
            return self._improve()
        now.exchange(slots, members)
        return True

    def _fetched(self, members: IntArray) -> bool:
        """Read the rows of what is to enter; True when prices have changed by it."""
        if changed := self._current.fetch(members):
            self._kept = Comparison(self._current)
        return changed

    def _select(self) -> None:
        """Fill the empty support by what gains most, one coordinate after the other."""
        now = self._current
        how = {"guard": now.guard, "price": self._price, "share": NEGLIGIBLE}
        chosen = forward_selection(self.rows, self.linear, self._most, **how)
        if chosen.size:
            now.reset(chosen)
            self.exchanges += chosen.size

    def _wanted(self, gains: FloatArray, into: int) -> IntArray:
        """Return the coordinate that enters, and what may enter next where its row is read."""
        now, best = self._current, np.array([into])
        if not self._many or self.rows.known(now.coordinates(best))[0]:
            return best
        more = np.union1d(best, top_k(gains, min(_TOGETHER, self._most - now.size)))
        return more if self.rows.ahead(more) else best

    def try_double(self) -> bool:
        """Make two exchanges that gain something together; False where none do."""
        if self.size < 2:
            return False
        double = best_double_exchange(self._current, excluding_ratio(self.comparison.correlation))
        self._apart = self.support.tobytes() if double.expensive else None
        there = self._current.coordinates(double.members)
        return double.gain > self._threshold(self._current) and self.replaced(there)

    @property
    def comparison(self) -> Comparison:
        """Return how the support compares with others."""
        if not self._kept.of(self._current):
            self._kept = Comparison(self._current)
        return self._kept

    def exchange_blocks(self, over: Callable[[], bool]) -> bool:
        """Replace several members at a time; True when that leads to a better support.

        The cheapest 2, 4, 8, ... are taken out one by one, and as many put in that gain most; where
        that helps the search descends from there, and begins with 2 again.
        """
        many, better = 2, False
        while many < 2 * self.size and not over():
            self.exchanges += (out := min(many, self.size))
            trial = with_cheapest_replaced(self._current, out, self._price, _REFRESH)
            if self._better(trial):
                self._current, many, better = trial, 1, True
                self.descend(10 + 4 * self.size, over)
            many *= 2
        return better

    def resized(self, rng: np.random.Generator, over: Callable[[], bool]) -> bool:
        """Search among supports of one, two, ... members more or fewer; True when that helps."""
        best = here = self._current
        for many in (1, -1):
            self._current = here
            for _ in range(_RESIZED):
                if over() or not 2 <= self.size + many <= self._most:
                    break
                self._current = of_size_beside(self._current, many)
                self.perturb(rng, over)
                if self.gain > _worth(best, self._price) + self._threshold(here):
                    best = self._current
        self._current = best
        return best is not here

    def _improve_together(self, over: Callable[[], bool]) -> bool:
        """Add columns that nearly depend on others; False when that is worth nothing.

        What gains least without them makes room.
        """
        here = self._current
        if here.columns is not None:
            here = Exchanges(self.rows, self.linear)
            here.reset(self.support)
        found = first_joined(here, self._most, self._better, over)
        if found is not None:
            self._begin(found)
        return found is not None

    def _better(self, other: Exchanges) -> bool:
        return _worth(other, self._price) > self.gain + self._threshold(other)

    def _threshold(self, search: Exchanges) -> float:
        return NEGLIGIBLE * float(search.explained.max())

    # ---- many columns ------------------------------------------------------------------------

    @property
    def _many(self) -> bool:
        return self.rows.size > 2 * max(_SHORT_LIST, 4 * self._most)

    def _look(self, support: IntArray) -> bool:
        """Look at all columns and choose those to go on with; True when that offers something."""
        everything = Exchanges(self.rows, self.linear)
        everything.reset(support)
        threshold = self._threshold(everything)
        gains = everything.insertions()[0]
        best = everything.prices()[0].max(axis=0, initial=-np.inf)
        best[everything.members[0]] = -np.inf
        room = everything.size < self._most and float(gains.max()) > self._price + threshold
        offers = room or bool(best.max() > threshold)
        chosen = np.union1d(top_k(gains, max(_SHORT_LIST, 4 * self._most)), everything.members[0])
        chosen = np.union1d(chosen, top_k(best, _PROMISING))
        self._current = Exchanges(self.rows, self.linear, chosen)
        self._current.reset(np.searchsorted(chosen, everything.members[0]))
        return offers

    def runners_up(self, many: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the supports that come next; see the function."""
        return runners_up(self._current, many)

    # ---- perturbations -----------------------------------------------------------------------

    def perturb(
        self, rng: np.random.Generator, over: Callable[[], bool], most: int = _ABREAST
    ) -> tuple[list[bytes], bool]:
        """Search from perturbed copies of the support, and go to a better one if that is found.

        From ``most`` copies, where more would take longer. Returns where they ended as bytes of
        sorted coordinates, best first, and whether the best is better than where they began.
        """
        here = self._current
        values, ends = self.perturbed(rng, over, most)
        better = False
        if values[0] > here.explained[0] + self._threshold(here):
            trial = here.tiled(1)
            trial.reset(places_of(here, ends[0]))
            if better := self._better(trial):
                self._current = trial
        return [end.tobytes() for end in ends], better

    def perturbed(
        self, rng: np.random.Generator, over: Callable[[], bool], most: int = _ABREAST
    ) -> tuple[FloatArray, IntArray]:
        """Return where searches from perturbed copies of the support end, best first.

        What each lowers twice the objective by, and its sorted coordinates. Of many columns those
        that promise most are searched first, and all of them from the ends of that. Where there are
        several ends more columns are searched from then on, or all of them if members resemble
        others, and searches in few columns count half.
        """
        here, among = self._current, None
        if self._easy or self.comparison.correlation <= _ALIKE:
            among = promising(here, wider=not self._easy)
        few, pool = (here, here.columns) if among is None else among
        side_by_side = _ABREAST if few.g.size < _PLENTY else min(most, _ABREAST)
        copies = int(np.clip(_ENTRIES // max(few.g.size, 1), 1, side_by_side))
        values, ends = searched(few, rng, copies, over, walking=self.walking)
        ends = np.sort(ends if pool is None else pool[ends], axis=1)
        if among is not None and pool is not None:
            values, ends = descend_abreast(completed(here, ends), over)
            self._easy, ends = len(ends) == 1, np.sort(here.coordinates(ends), axis=1)
            times = copies if self._easy else max(1, round(copies / 2 / len(ends)))
            values, ends = values.repeat(times), ends.repeat(times, axis=0)
            if not (self._easy or self.comparison.correlation <= _ALIKE) and self.rows.ahead(pool):
                self._fetched(places_of(here, pool))  # together: all are searched from now on
        order = np.argsort(-values, kind="stable")
        return values[order], ends[order]


def _worth(search: Exchanges, price: float) -> float:
    return float(search.explained[0]) - price * search.size
