"""The best supports of every size together: each size is searched from those beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias, final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.along_k.descents import descend_from, worthwhile
from sparsemodel.numerics.exchange.hessian_rows import HessianRows
from sparsemodel.numerics.exchange.quadratics.abreast import NEGLIGIBLE, NOISES, descend_abreast
from sparsemodel.numerics.exchange.quadratics.perturbations import promising
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges
from sparsemodel.numerics.exchange.quadratics.search import ExchangeSearch
from sparsemodel.numerics.exchange.quadratics.tables import squares
from sparsemodel.numerics.minimisers.few_columns import safe_inverses
from sparsemodel.progress import counted

_WIDTH, _MOST = 48, 1000
"""Supports of a size that are kept, and where more are because they are short."""
_SWEEPS = 4
"""Times that sweeps go on at most, as long as each improves a size. Of 170 points of 38 problems
none ended above the best known one with 4 times, 2.9 % with 2, 4.7 % with 1, in 0.8 and 0.65 of the
time. Of 1 to 15 of 3051 genes 7 sizes ended up to 13 % above a solve with 1, 3 up to 6 % with 4, 2
up to 3 % with 6, in 0.1, 0.25 and 0.32 of the time of solves."""
_PROGRESS = 1e-9
"""Relative gain from which on a size is improved."""
CHILDREN = 3
"""Changes that each support is continued by."""
_NUMBERS, _BEGINNING, _LEFT, _ENDS = 2**25, 3, 0.7, 24
"""Numbers that compiled searches of a size go through, about, coordinates drawn at random that half
of them begin with, the share of a support that others leave out at most, and their best ends that
are searched from in all columns."""
_ELSEWHERE, _DRAWS = 4, 600
"""Times that :func:`found_elsewhere` draws, and searches each time. Of 98 searches of 300 to 3051
columns for 5 to 15 units, half of them of genes, 16 ended .4 to 8.3 % lower with it, none higher,
in 1.2 times the time."""

Support: TypeAlias = tuple[int, ...]


@final
class SupportBeam:
    """Supports of a quadratic of 1, 2, ..., ``most`` coordinates, the best of each size kept.

    Every support kept is continued to the next size by the coordinates that gain most, and to the
    size below by those whose removal costs least; from there it descends by exchanges, side by side
    with the others. Mutable, one run's own.

    Parameters
    ----------
    rows, linear
        The quadratic, see :class:`Exchanges`.
    most
        Size of the largest supports.
    over
        Returns whether time is up.
    width, entries
        How many supports of a size are kept, and up to how many numbers more are.
    scattered
        How many searches from coordinates drawn at random, all compiled, perturb large problems in
        place of some from perturbed supports; none if 0.
    """

    def __init__(
        self,
        rows: HessianRows,
        linear: FloatArray,
        most: int,
        over: Callable[[], bool],
        *,
        width: int = _WIDTH,
        entries: int = 0,
        scattered: int = 0,
    ) -> None:
        self._rows, self._linear, self._over = rows, linear, over
        self._kept: list[dict[Support, float]] = [{(): 0.0}, *({} for _ in range(most))]
        self._begun: list[set[Support]] = [set() for _ in range(most + 1)]
        self._grown: dict[Support, dict[Support, float]] = {}
        self._scattered = scattered if scattered and worthwhile(most, linear, rows) else 0
        self._rng, self._entries, self._least = np.random.default_rng(0), entries, width

    @property
    def compiled(self) -> bool:
        """Return whether descents are compiled."""
        return self._scattered > 0

    @property
    def reached(self) -> int:
        """Return the largest size of which a support was found."""
        return max(size for size, kept in enumerate(self._kept) if kept)

    def best(self, size: int) -> IntArray:
        """Return the best support of a size."""
        kept = self._kept[size]
        return np.array(max(kept, key=lambda support: kept[support]), dtype=np.intp)

    def search(
        self,
        sweeps: int,
        wanted: Collection[int],
        near: Iterable[IntArray] = (),
        *,
        perturbed: bool = True,
    ) -> None:
        """Search all sizes: each from the one before and from perturbations, then down and up.

        Parameters
        ----------
        sweeps
            How often to go down and up again, and up to four times as often while that improves a
            size.
        wanted
            Sizes whose best supports are looked at once more in the end.
        near
            Supports to start from, too.
        """
        starts = {support.size: support for support in near}
        for size in counted(range(1, len(self._kept)), "size"):
            self.grow(size)
            if size in starts:
                self.descend(starts[size])
            if perturbed:
                self.perturb(size)
            if self.reached < size:
                break
        top = self.reached
        for sweep in range(_SWEEPS * sweeps):
            before = self._values()
            for size in counted(range(top - 1, 1, -1), "going back, size"):  # 1: all were seen
                self.thin(size)
            for size in counted(range(2, top + 1), "again, size"):
                self.grow(size)
                if perturbed:
                    self.perturb(size)
            if sweep + 1 >= sweeps and np.all(self._values() <= (1.0 + _PROGRESS) * before):
                break
        for size in counted(range(1, top + 1), "confirming, size"):
            if (size in wanted or size == top) and not self._over():
                # Prices computed again, and close columns.
                self.descend(self.best(size))

    def grow(self, size: int) -> None:
        """Search ``size`` coordinates from the supports with one fewer."""
        if size == 1:  # a descent would lead all of them to the best one
            gains = Exchanges(self._rows, self._linear).insertions()[0]
            useful = np.flatnonzero(gains > 0.0)
            best = useful[np.argsort(-gains[useful], kind="stable")[: self._width(1)]]
            self._keep(1, gains[best], best[:, None])
            return
        found: dict[Support, float] = {}
        for parent in self._with_children(size - 1):
            found.update(self._grown[parent])
        self._search(size, found)

    def _with_children(self, size: int) -> list[Support]:
        """Return the supports of a size once it is known how each of them is continued upwards."""
        parents = [] if self._over() else self._ranked(size)
        for batch in self._stacked([one for one in parents if one not in self._grown]):
            gains = batch.insertions()
            best = np.argsort(-gains, axis=1)[:, :CHILDREN]
            for a, members in enumerate(batch.members.tolist()):
                self._grown[tuple(members)] = {
                    tuple(sorted([*members, into])): float(batch.explained[a] + gains[a, into])
                    for into in best[a].tolist()
                    if gains[a, into] > NEGLIGIBLE * batch.explained[a]
                }
        return [parent for parent in parents if parent in self._grown]

    def thin(self, size: int) -> None:
        """Search ``size`` coordinates from the supports with one more."""
        if self._over() or not self._kept[size + 1]:
            return
        found: dict[Support, float] = {}
        parents = np.array(self._ranked(size + 1), dtype=np.intp)
        parents, inverse, c = self._minimised(parents)
        w = np.einsum("rkl,mrl->rkm", inverse, c)
        costs = squares(w) / inverse.diagonal(axis1=1, axis2=2)
        explained = np.einsum("rkm,mrk->r", w, c)
        cheapest = np.argsort(costs, axis=1)[:, :CHILDREN]
        for a, members in enumerate(parents.tolist()):
            for slot in cheapest[a].tolist():
                fewer = tuple(members[:slot] + members[slot + 1 :])
                found[fewer] = float(explained[a] - costs[a, slot])
        self._search(size, found)

    def perturb(self, size: int) -> None:
        """Search ``size`` coordinates from perturbations of one that is kept, rather a good one."""
        if size < 2 or not self._kept[size]:
            return
        ranked = self._ranked(size)
        near = ranked[int(len(ranked) * self._rng.random() ** 2)]
        if self.compiled:
            self._scatter(size, near)
            return
        search = ExchangeSearch(self._rows, self._linear, most=size)
        search.start(np.array(near, dtype=np.intp))
        if search.size == size:
            self._ended(size, search.perturbed(self._rng, self._over)[1])

    def _scatter(self, size: int, near: Support) -> None:
        """Search from parts of a support, and from coordinates drawn at random that promise much.

        The latter forget what the supports kept have in common, which perturbations of these hardly
        ever lose. The best ends are searched from in all columns.
        """
        here, everything = Exchanges(self._rows, self._linear), np.arange(self._rows.size)
        here.reset(np.array(near, dtype=np.intp))
        if here.size != size:
            return
        few, pool = promising(here, wider=True) or (here, everything)
        if few.columns is not None:
            few, pool = here, everything
        useful = np.flatnonzero(few.rows.diagonal > 0.0)
        many = int(np.clip(_NUMBERS // (size * size * pool.size), 2, self._scattered))
        starts = np.full((many, size), -1, dtype=np.intp)
        parts, others = np.split(starts, [many // 2])
        stays = self._rng.random(parts.shape) > self._rng.uniform(0.0, _LEFT, (len(parts), 1))
        parts[stays] = np.broadcast_to(np.searchsorted(pool, near), parts.shape)[stays]
        drawn = others[:, :_BEGINNING]
        drawn[:] = useful[self._rng.integers(useful.size, size=drawn.shape)]
        values = self._descended(few, starts)
        full = values > 0.0
        ends, first = np.unique(np.sort(pool[starts[full]], axis=1), axis=0, return_index=True)
        values = values[full][first]
        best = np.argsort(-values, kind="stable")[:_ENDS]
        kept = self._kept[size]
        least = min(kept.values()) if len(kept) >= self._width(size) else 0.0
        found = zip(map(tuple, ends[best].tolist()), values[best].tolist(), strict=True)
        self._search(size, {end: value for end, value in found if value > least})

    def descend(self, support: IntArray) -> None:
        """Search by exchanges from one support, and keep where that ends."""
        search = ExchangeSearch(self._rows, self._linear, most=support.size)
        search.start(support)
        search.descend(10 + 4 * support.size, self._over)
        if search.size == support.size:
            self._keep(support.size, np.array([search.gain]), search.support[None])

    # ---- what is kept ------------------------------------------------------------------------

    def _values(self) -> FloatArray:
        """Return what the best support of each size lowers twice the objective by."""
        return np.array([max(kept.values(), default=0.0) for kept in self._kept])

    def _ended(self, size: int, ends: IntArray) -> None:
        """Keep where searches have ended, by values computed again.

        After many updates rounding may have made anything of the value of coordinates that nearly
        depend on each other.
        """
        ends, inverse, c = self._minimised(ends)
        self._keep(size, np.einsum("mrk,rkl,mrl->r", c, inverse, c), ends)

    def _minimised(self, supports: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the supports whose coordinates are independent, ``(R, k)``.

        With the inverses of their blocks and the linear terms, ``(m, R, k)``.
        """
        pool, places = np.unique(supports, return_inverse=True)
        places = places.reshape(supports.shape)
        among = self._rows.among(pool).rows(np.arange(pool.size))
        inverse, safe = safe_inverses(
            among[places[:, :, None], places[:, None, :]], Exchanges(self._rows, self._linear).guard
        )
        return supports[safe], inverse[safe], self._linear[:, supports[safe]]

    def _descended(self, search: Exchanges, supports: IntArray) -> FloatArray:
        """Descend from supports in the columns of a search by what is compiled, in place."""
        limits = np.array([NEGLIGIBLE, NOISES * search.rows.noise])
        return descend_from(search.rows, search.linear, search.guard, supports, limits)

    def _width(self, size: int) -> int:
        short = self._entries // max(1, size * self._rows.size)
        return max(self._least, min(short, _MOST))

    def _ranked(self, size: int) -> list[Support]:
        kept = self._kept[size]
        return sorted(kept, key=lambda support: -kept[support])

    def _keep(self, size: int, values: FloatArray, supports: IntArray) -> None:
        kept = self._kept[size]
        for value, members in zip(values.tolist(), np.sort(supports, axis=1).tolist(), strict=True):
            support = tuple(members)
            kept.setdefault(support, value)
            self._begun[size].add(support)
        if len(kept) > self._width(size):
            self._kept[size] = {one: kept[one] for one in self._ranked(size)[: self._width(size)]}

    def _search(self, size: int, found: dict[Support, float]) -> None:
        """Descend from the best of the supports that no descent began or ended at."""
        fresh = [support for support in found if support not in self._begun[size]]
        fresh = sorted(fresh, key=lambda support: -found[support])[: self._width(size)]
        self._begun[size].update(fresh)
        if self.compiled and fresh and not self._over():
            supports = np.array(fresh, dtype=np.intp)
            values = self._descended(Exchanges(self._rows, self._linear), supports)
            self._ended(size, supports[values > 0.0])
            return
        for batch in self._stacked(fresh):
            if self._over():
                break
            self._ended(size, descend_abreast(batch, self._over)[1])

    def _stacked(self, supports: list[Support]) -> list[Exchanges]:
        """Return the supports side by side, without those whose coordinates depend on others."""
        if not supports:
            return []
        batch = Exchanges(self._rows, self._linear)
        batch.reset_all(np.array(supports, dtype=np.intp))
        return [batch] if len(batch.members) else []


def found_beside(
    search: ExchangeSearch, over: Callable[[], bool], *, perturbed: bool, **kept: int
) -> bool:
    """Search the sizes up to one more, then that of a search again; True if this improves it."""
    size = search.size
    beam = SupportBeam(search.rows, search.linear, size + 1, over, **kept)
    for many in range(1, size + 2):
        beam.grow(many)
        if perturbed:
            beam.perturb(many)
    beam.thin(size)
    return beam.reached >= size and search.replaced(beam.best(size))


def found_elsewhere(search: ExchangeSearch, over: Callable[[], bool], width: int) -> bool:
    """Search from coordinates drawn at random, if that is compiled; True if it helps."""
    size = search.size
    beam = SupportBeam(search.rows, search.linear, size, over, width=width, scattered=_DRAWS)
    if not beam.compiled:
        return False
    beam.descend(search.support)
    for _ in range(_ELSEWHERE):
        beam.perturb(size)
    return search.replaced(beam.best(size))
