"""Supports of one, two, three, ... coordinates of a smooth loss, each size searched from others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import IntArray, Objective, Point, RestrictedSolver
from sparsemodel.numerics.along_k.beam import CHILDREN
from sparsemodel.numerics.exchange.batched_newton import batch_limit, lowest_first
from sparsemodel.numerics.exchange.lines import lines_of
from sparsemodel.numerics.exchange.models import EXACTLY
from sparsemodel.numerics.exchange.quadratics.abreast import NEGLIGIBLE, descend_abreast
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges
from sparsemodel.numerics.exchange.quadratics.rounds import Rounds
from sparsemodel.numerics.exchange.quadratics.runners_up import minimised_in
from sparsemodel.numerics.exchange.quadratics.search import ExchangeSearch
from sparsemodel.numerics.exchange.swaps import CachedSolver
from sparsemodel.numerics.exchange.trials import ExchangeTrials
from sparsemodel.numerics.objectives.regression import RegressionObjective
from sparsemodel.numerics.objectives.validity import bounded_curvature, unexplained
from sparsemodel.progress import counted

_NARROW, _WIDE, _EACH, _PRICES = 2, 12, 1, 2**20
"""Supports of a size that are continued, at least, at most and for each different end of searches
from perturbations, and numbers of a table of prices of all."""
_JUDGED = 12
"""Supports of a size that are judged where none is known yet."""
_SWEEPS, _CHANGES = 4, 30
"""Times that all sizes are gone through down and up at most, and changes of a support in one."""
_SEARCHES, _FEW, _FEWER = 8, 6, 2
"""Searches from perturbations that tell something of a size, and different ends up to which no
better support is expected: with bounded second derivatives, and without."""
_BESIDE = 9
"""Different ends of a size from which on the same is not expected of those beside it. Of 29 sizes
with at most 6 ends a search of that alone lowered 2 of 9 beside more than nine, by up to 2.5 %, and
1 of 20 beside 7 to 9, by .15 %."""
_ROUGH = 1e-6
"""Accuracy of the minimisations, beside what is left of the objective."""
_PROGRESS, _CHANGED = 1e-10, 1e-6
"""Relative decrease from which a point replaces another, and from which sweeps go on."""


def searched_along(objective: Objective, most: int) -> bool:
    """Return whether :class:`SupportsAlongK` searches supports of up to ``most`` coordinates.

    Those of a vector under one limit alone, where the objective is a sum of losses of one
    prediction each with second derivatives, and columns can be read and are not sparse.
    """
    sparsity, form = objective.cardinality, objective.form
    bare = sparsity.bare and sparsity.groups is None and not form.constrained
    if not bare or len(objective.shape) > 1 or batch_limit(objective, most) < _WIDE:
        return False
    return lines_of(objective) is None


@dataclass(slots=True, eq=False)
class _Size:
    """What is known of the supports of a size."""

    best: Point | None = None
    kept: dict[bytes, float] = field(default_factory=dict)
    """Supports, and how low a model said that the objective comes there."""
    judged: set[bytes] = field(default_factory=set)
    begun: set[bytes] = field(default_factory=set)
    grown: set[bytes] = field(default_factory=set)
    thinned: set[bytes] = field(default_factory=set)
    ends: set[bytes] = field(default_factory=set)
    searches: int = 0
    confirmed: bytes | None = None
    """The best support, when nothing beside it was found to be lower."""
    perturbed: bytes | None = None
    told: bool = False
    """Whether double exchanges cost so much that no other support is worth looking for."""


@final
class SupportsAlongK:
    """Supports of 1, 2, ..., ``most`` coordinates of a smooth loss, some good ones of each size.

    A second-order model at the best point of a size prices all changes of the supports kept there:
    those by the coordinates that gain most lead to the next size, those without one whose removal
    costs least to the size below. From there all descend by exchanges side by side in the same
    model, and a few Newton steps judge where they end. The best of each size asked for is compared
    with the supports that the model ranks next, and perturbed. Mutable, one run's own.

    Parameters
    ----------
    objective
        As :func:`searched_along` asks for; its limit is at least ``most``.
    over
        Returns whether time is up.
    """

    def __init__(
        self,
        objective: RegressionObjective,
        restricted: RestrictedSolver,
        most: int,
        over: Callable[[], bool],
    ) -> None:
        self._objective, self._over = objective, over
        self._restricted = CachedSolver(objective, restricted)
        self._trials = ExchangeTrials(objective, self._restricted, CHILDREN, over)
        self._models = self._trials.models
        self._rng = np.random.default_rng(0)
        origin = objective.origin()
        self._sizes = [_Size() for _ in range(most + 1)]
        self._sizes[0].best = self._restricted(objective, origin.support, origin, tol=_ROUGH)
        self._changed = False

    @property
    def points(self) -> list[Point]:
        """Return the best point of each size that was reached, the empty support first."""
        found: list[Point] = []
        for size in self._sizes:
            if size.best is None:
                break
            found.append(size.best)
        return found

    def agreed(self, size: int) -> bool:
        """Return whether no better support of a size is expected from a search of that alone.

        Of 439 points of 41 random problems and 140 of genes none was .1 % above a solve for it; of
        43 of four harder ones one was, by .8 %.
        """
        here = self._sizes[size]
        if not self._full(size) or here.confirmed is None:
            return size == 0
        beside = self._sizes[max(size - 1, 1) : size + 2]
        if here.told:
            return all(map(self._few_ends, beside))
        alike = all(len(other.ends) <= _BESIDE for other in beside)
        return size < 2 or (here.searches >= _SEARCHES and self._few_ends(here) and alike)

    def search(self, wanted: Collection[int], near: Iterable[IntArray] = ()) -> None:
        """Search all sizes, each from the one before, then down and up while that helps.

        Parameters
        ----------
        wanted
            Sizes whose best supports are compared with others and perturbed.
        near
            Supports to start from, too.
        """
        starts = {support.size: support for support in near}
        self._upwards(wanted, starts)
        for _ in range(_SWEEPS):
            self._changed = False
            self._downwards(wanted)
            if self._changed:
                self._upwards(wanted, {}, alone=True)
            if not self._changed or self._over():
                break

    def _few_ends(self, here: _Size) -> bool:
        """Return whether searches from perturbations ended at few supports."""
        return len(here.ends) <= (_FEW if bounded_curvature(self._objective) else _FEWER)

    # ---- sweeps ------------------------------------------------------------------------------

    def _upwards(
        self, wanted: Collection[int], starts: dict[int, IntArray], *, alone: bool = False
    ) -> None:
        for size in counted(range(1, len(self._sizes)), "size"):
            if self._over():
                break
            here = self._sizes[size]
            if self._full(size - 1):
                model = self._grow(size, alone=alone)
                if size in starts and model is not None:
                    self._judge(size, model, starts[size][None])
            if here.best is None:
                here.best = self._sizes[size - 1].best
            if size in wanted:
                self._compare(size)
                if self._perturb(size):
                    self._compare(size)

    def _downwards(self, wanted: Collection[int]) -> None:
        for size in counted(range(len(self._sizes) - 2, 0, -1), "going back, size"):
            if self._over():
                break
            if not (self._full(size) and self._full(size + 1)):
                continue
            supports = self._continued(size + 1, self._sizes[size + 1].thinned)
            if not supports:
                continue
            model = self._model(size)
            batch, found = _stacked(model, supports), {}
            costs = batch.removals()
            cheapest = np.argsort(costs, axis=1)[:, :CHILDREN]
            for a, members in enumerate(batch.members):
                for slot in cheapest[a]:
                    fewer = np.sort(np.delete(members, slot)).tobytes()
                    found[fewer] = float(batch.explained[a] - costs[a, slot])
            better = self._judge(size, model, self._descended(size, model, found))
            if better and size in wanted:
                self._compare(size)

    def _grow(self, size: int, *, alone: bool) -> ExchangeSearch | None:
        """Search ``size`` coordinates from supports with one fewer, or from the best ``alone``."""
        supports = self._continued(size - 1, self._sizes[size - 1].grown, alone=alone)
        if not supports:
            return None
        model = self._model(size - 1)
        batch, found = _stacked(model, supports), {}
        gains = batch.insertions()
        best = np.argsort(-gains, axis=1)[:, :CHILDREN]
        for a, members in enumerate(batch.members):
            for into in best[a]:
                if gains[a, into] > NEGLIGIBLE * batch.explained[a]:
                    more = np.sort(np.append(members, into)).tobytes()
                    found[more] = float(batch.explained[a] + gains[a, into])
        self._judge(size, model, self._descended(size, model, found))
        return model

    # ---- one size ----------------------------------------------------------------------------

    def _compare(self, size: int) -> None:
        """Go to a better support as long as an exchange or a support beside leads to one."""
        here = self._sizes[size]
        for _ in range(_CHANGES):
            if not self._full(size) or self._over() or here.confirmed == self._name(size):
                break
            model = self._model(size, EXACTLY)
            if model.size != size:
                break
            batch = _stacked(model, [self._support(size)])
            if self._judge(size, model, np.sort(descend_abreast(batch, self._over)[1], axis=1)):
                continue
            point = self._best(size)
            here.told = self._trials.excludes_others(point)
            low = [] if here.told else self._trials.near(point, point.value)[:1]
            if not (low and self._take(size, low[0], point)):
                here.confirmed = self._name(size)

    def _perturb(self, size: int) -> bool:
        """Search once from perturbations of the best support, in its model; True if that helps."""
        here = self._sizes[size]
        if size < 2 or not self._full(size) or here.perturbed == self._name(size) or self._over():
            return False
        here.perturbed = self._name(size)
        here.told = here.told or self._trials.conclusive(self._best(size), Rounds(1.0, 1))
        model = self._model(size)
        if here.told or model.size != size:
            return False
        ends = model.perturbed(self._rng, self._over)[1]
        here.ends.update(end.tobytes() for end in ends)
        here.searches += len(ends)
        return self._judge(size, model, ends)

    def _judge(self, size: int, model: ExchangeSearch, supports: IntArray) -> bool:
        """Keep supports, take the one on which the objective is lowest, return if it is lower."""
        here = self._sizes[size]
        fresh = {s.tobytes(): s for s in supports if s.tobytes() not in here.judged}
        if not fresh:
            return False
        here.judged.update(fresh)
        everything = Exchanges(model.rows, model.linear)
        chosen, w, explained = minimised_in(everything, np.array(list(fresh.values())))
        if not len(chosen):
            return False
        order = np.argsort(-explained, kind="stable")
        chosen, w, rises = chosen[order], w[order], 0.5 * (explained.max() - explained[order])
        start = self._at
        lowest = start.value + 0.5 * (model.gain - float(explained.max()))
        for support, rise in zip(chosen, rises, strict=True):
            here.kept[support.tobytes()] = lowest + float(rise)
        here.kept = {name: here.kept[name] for name in self._ranked(size)[: self._width(size)]}
        bar = np.inf
        if here.best is None:
            chosen, w, rises = chosen[:_JUDGED], w[:_JUDGED], rises[:_JUDGED]
        else:
            bar = here.best.value
        x, free = w * model.rows.scale[chosen], self._objective.cardinality.free
        if free.size:
            own = self._counted(start)
            moved = model.rows.free_changes(chosen, x)
            moved -= model.rows.free_changes(own[None], start.x[own][None])
            chosen = np.hstack([chosen, np.broadcast_to(free, moved.shape)])
            x = np.hstack([x, start.x[free] + moved])
        low = lowest_first(self._objective, bar, chosen, x, rises)
        return bool(len(low)) and self._take(size, np.sort(low[0]), start)

    def _take(self, size: int, support: IntArray, start: Point) -> bool:
        """Minimise on a support of the objective, keep that if it is lower, and return if so."""
        here, objective = self._sizes[size], self._objective
        tol = _ROUGH * unexplained(objective, start)
        point = self._restricted(objective, support, start, tol=tol)
        before = here.best
        if before is not None:
            if not point.value < before.value - _PROGRESS * abs(before.value):
                return False
            self._changed |= point.value < before.value - _CHANGED * abs(before.value)
        here.best = point
        return True

    def _descended(self, size: int, model: ExchangeSearch, found: dict[bytes, float]) -> IntArray:
        """Return where descents from the best supports end from which none has begun."""
        here = self._sizes[size]
        fresh = sorted(found.keys() - here.begun, key=lambda name: (-found[name], name))
        fresh = fresh[: self._width(size)]
        here.begun.update(fresh)
        if not fresh:
            return np.empty((0, size), dtype=np.intp)
        batch = _stacked(model, [np.frombuffer(name, dtype=np.intp) for name in fresh])
        if not len(batch.members):
            return np.empty((0, size), dtype=np.intp)
        return np.sort(descend_abreast(batch, self._over)[1], axis=1)

    # ---- what is kept ------------------------------------------------------------------------

    def _continued(self, size: int, already: set[bytes], *, alone: bool = False) -> list[IntArray]:
        """Return the best supports that were not continued that way, and note that they are."""
        own = self._name(size)
        names = [own, *(name for name in self._ranked(size) if name != own and not alone)]
        names = [name for name in names if name not in already][: self._width(size)]
        already.update(names)
        return [np.frombuffer(name, dtype=np.intp) for name in names]

    def _ranked(self, size: int) -> list[bytes]:
        kept = self._sizes[size].kept
        return sorted(kept, key=lambda name: (kept[name], name))

    def _width(self, size: int) -> int:
        ends = max(len(here.ends) for here in self._sizes[max(size - 1, 0) : size + 1])
        most = _PRICES // (max(size, 1) * self._objective.shape[0])
        return int(np.clip(_EACH * ends, _NARROW, max(1, min(_WIDE, most))))

    def _model(self, size: int, drift: float | None = None) -> ExchangeSearch:
        """Return the model at the best point of a size, from which supports are judged then."""
        self._at = self._best(size)
        self._models.renew(self._at, drift)
        return cast("ExchangeSearch", self._models.search(self._at, max(size, 1)))

    def _best(self, size: int) -> Point:
        return cast("Point", self._sizes[size].best)

    def _full(self, size: int) -> bool:
        """Return whether there is a point with as many coordinates."""
        best = self._sizes[size].best
        return best is not None and self._counted(best).size == size

    def _support(self, size: int) -> IntArray:
        return self._counted(self._best(size))

    def _name(self, size: int) -> bytes:
        return self._support(size).tobytes()

    def _counted(self, point: Point) -> IntArray:
        free = self._objective.cardinality.free
        return np.setdiff1d(point.support, free) if free.size else point.support


def _stacked(model: ExchangeSearch, supports: list[IntArray]) -> Exchanges:
    """Return supports side by side with all columns, without those that depend on others."""
    batch = Exchanges(model.rows, model.linear)
    if supports[0].size:
        batch.reset_all(np.array(supports))
    return batch
