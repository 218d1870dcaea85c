"""The search for a support: propose in a model, confirm on the objective, diversify, stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, Objective, Point, RestrictedSolver, priced
from sparsemodel.numerics.objectives import validity
from sparsemodel.numerics.search import GUARD, ROUNDING
from sparsemodel.numerics.search.ends import PATIENCE, WORK, Ends, descent_cost, most_starts
from sparsemodel.numerics.search.local_model import LocalModel, LocalModels, pool_width
from sparsemodel.numerics.support.closures import closed_changes
from sparsemodel.numerics.support.units import insertion_scores, support_units

ELSEWHERE = 3, 24
"""Patience of searches that begin in another model, at a minimiser of the objective each."""
_TOGETHER, _AT_ONCE = 32, 2**25
"""Starts of a batch, and multiplications of one, up to which it is that large: some tens of
milliseconds, so that limits hold."""
_PROMISING = 50
"""Units from which those that replace others are drawn."""
_JUDGED, _CANDIDATES = 12, 6
"""Ends in a model, and single changes, that the objective is asked about."""
_DOUBT = 0.5
"""Share of the cost of a removal that the unit in its place is expected to regain at least: models
of second order are taken to be wrong by a factor of two."""
_DESCENTS = 3
"""Models in which a search elsewhere descends one after the other."""
_ROUGH = 1e-6
"""Accuracy of the restricted minimisations that only compare supports."""
NEGLIGIBLE = 1e-9
"""Share of an objective, or of its fall from zero, that is no gain."""
_RESIDUE = 1e-14
"""Share of its fall from zero that an objective is rounded by where hardly anything is left."""


@final
class SupportSearch:
    """Searches of one objective; a run's workspace.

    Parameters
    ----------
    objective
        Twice differentiable.
    restricted
        Minimises on a support, and decides: values are ``inf`` where a support is not feasible.
    rng
        Where all chance comes from.
    effort
        A factor on the patience; infinite for a search that time ends.
    over
        Returns whether time is up.
    """

    def __init__(
        self,
        objective: Objective,
        restricted: RestrictedSolver,
        rng: np.random.Generator,
        effort: float,
        over: Callable[[], bool],
    ) -> None:
        self._objective, self._restricted = objective, restricted
        self._rng, self._effort, self._over = rng, effort, over
        self._sparsity = objective.cardinality
        self.models = LocalModels(objective)
        self._layout = self.models.layout
        self._most = min(self._sparsity.budget, self._sparsity.units)
        form = objective.form
        # One limit on alike units: descents are batched. Else each step asks what is allowed.
        self._batched = self._sparsity.bare and getattr(form, "region", None) is None
        self.is_exact = self.models.is_exact and self._batched
        self._origin = objective.origin().value
        self._refused: set[bytes] = set()
        self._ends: tuple[Point, Ends] | None = None
        self._elsewhere = Ends()
        self._last: tuple[Point, IntArray] | None = None

    def of_size(self, k: int) -> SupportSearch:
        """Return the search for another number of units, in the same models.

        Where that number is all that limits a support.
        """
        search = copy(self)
        search._most = min(k, self._sparsity.units)
        search._refused, search._ends, search._elsewhere = set(), None, Ends()
        return search

    @property
    def objective(self) -> Objective:
        """Return what is minimised."""
        return self._objective

    # ---- what a backend calls ----------------------------------------------------------------

    def improved(self, point: Point) -> Point | None:
        """Return a better point by a descent in the model, or one change; None if none is better.

        With room left a model that is not exact fills half of it before it is made again.
        """
        members = self._members(point)
        room = self._most - members.size
        size = self._most if self.is_exact else members.size + -(-room // 2)
        model = self.models.at(point)
        better = self._confirmed(point, [self._descended(model, members, size)])
        if better is None and not self.is_exact:
            better = self._confirmed(point, self._changes(model, point))
            if better is None and size < self._most:
                better = self._confirmed(point, [self._descended(model, members, self._most)])
        if better is None and room > 0:
            better = self._confirmed(point, self._steepest(point))
        return better

    def _steepest(self, point: Point) -> list[IntArray]:
        """Return ``point``'s units with one more, those of the largest gradients.

        A model has nothing to price where it has hardly any curvature, as where a loss is straight,
        or where what is left to explain is less than its rounding.
        """
        scores = insertion_scores(self._objective, point)
        units = self._chosen(self._members(point))
        scores[~self._sparsity.room(units)] = 0.0
        best = np.argsort(-scores, kind="stable")[:_CANDIDATES]
        added = [np.sort(np.append(units, j)) for j in best[scores[best] > 0.0]]
        return [self._layout.model_of_units[support] for support in added]

    def is_local_optimum(self, point: Point) -> bool:
        """Return whether ``point``, which a descent led to, needs no other to show that it is one.

        In an exact model the descent itself has seen all exchanges.
        """
        return self.is_exact and self._members(point).size == self._most

    def diversified(self, point: Point) -> tuple[Point | None, bool]:
        """Search from a batch of other starts; return a better point, and whether this was enough.

        First in the model at ``point``, then in models elsewhere, where a part of it is missing.
        """
        if self._most < 1 or not self._members(point).size:
            return None, True
        if not (self._batched or self.models.has_cheap_rows):  # each step would read the data
            return None, True
        if abs(point.value) <= _RESIDUE * abs(self._origin - point.value):  # all is explained
            return None, True
        if self._ends is None or self._ends[0] is not point:
            ends = Ends()
            ends.take([self._members(point)], [self._explained(point)])
            self._ends, self._elsewhere = (point, ends), Ends()
        ends, model = self._ends[1], self.models.at(point)
        most = most_starts(self._effort, self._work(model))
        if not ends.is_enough(PATIENCE, self._effort, most):
            self._search(model, ends)
            if self.is_exact:
                return self._confirmed(point, ends.supports[:1]), False
            if ends.is_enough(PATIENCE, self._effort, most):
                return self._confirmed(point, ends.supports[:_JUDGED]), False
            return None, False
        # One basin, or all of it searched: there is nothing elsewhere.
        is_searched = self.is_exact and not self._is_pooled(model)
        if len(ends.known) == 1 or is_searched or not self.models.has_cheap_rows:
            return None, True
        most = self._effort * WORK / self._far(model)
        if self._elsewhere.is_enough(ELSEWHERE, self._effort, most):
            return None, True
        return self._begun_elsewhere(point), False

    def proposed(self, point: Point, start: Point) -> Point | None:
        """Return a better point by a descent from another support, filled or thinned; else None."""
        model = self.models.at(start)
        return self._confirmed(point, [self._descended(model, self._members(start), self._most)])

    def confirmed(self, point: Point, start: Point) -> Point | None:
        """Return the minimiser on the support of another point where it is better; else None."""
        members = self._members(start)
        return self._confirmed(point, [members] if members.size <= self._most else [])

    def better_end(self, start: Point, point: Point) -> Point:
        """Return the better of ``point`` and where descents from ``start`` end."""
        there: Point | None = self.debiased(start)
        end = start
        while there is not None and np.isfinite(there.value) and not self._over():
            end, there = there, self.improved(there)
        return end if self._is_better(end, point) else point

    def debiased(self, point: Point) -> Point:
        """Return the minimiser over the support of ``point``, to full accuracy."""
        if point.memo.minimised:
            return point
        exact = self._restricted(self._objective, point.support, point)
        if np.isnan(exact.value) or not priced(self._objective, exact) > priced(
            self._objective, point
        ):
            return exact
        return point

    def neighbours(self, point: Point, many: int) -> list[IntArray]:
        """Return supports one change away that the model ranks next, as coordinates."""
        model = self.models.at(point)
        units = [self._chosen(s) for s in self._changes(model, point, many)]
        return [self._sparsity.coordinates(one) for one in units]

    # ---- propose -----------------------------------------------------------------------------

    def _descended(self, model: LocalModel, members: IntArray, size: int) -> IntArray:
        """Return where the descent in a model from ``members`` ends, in ever other pools."""
        if not self._batched:
            return self._descended_singly(model, members, size)[0]
        value = -1.0
        for _ in range(20):
            descents, pool = model.descents(members, size)
            ends, values = descents(np.searchsorted(pool, members)[None], size)
            if values[0] <= value * (1.0 + ROUNDING):
                break
            members, value = pool[ends[0][ends[0] >= 0]], float(values[0])
            if pool.size == model.units:
                break
        return members

    def _search(self, model: LocalModel, ends: Ends) -> None:
        """Descend from a batch of starts in a model, in the pool of the best end."""
        work = (self._most * self._layout.q) ** 2 * model.c.shape[1]
        many = int(np.clip(_AT_ONCE // work, 4, _TOGETHER))
        if not self._batched:
            starts, samples = self._starts(model, ends, self._layout.model_of_units, many)
            one_by_one = [self._descended_singly(model, s[s >= 0], self._most) for s in starts]
            ends.take(
                [support for support, _ in one_by_one], [value for _, value in one_by_one], samples
            )
            return
        descents, pool = model.descents_beside(ends.supports[0], self._most)
        choice = pool if pool.size < model.units else self._layout.model_of_units
        starts, samples = self._starts(model, ends, choice, many)
        if pool.size < model.units:
            place = np.full(model.units + 1, -1)  # the last is that of an empty place
            place[pool] = np.arange(pool.size)
            starts = place[starts]
        supports, values = descents(starts, self._most)
        ends.take([pool[s[s >= 0]] for s in supports], values.tolist(), samples)

    def _starts(
        self, model: LocalModel, ends: Ends, choice: IntArray, many: int
    ) -> tuple[IntArray, int]:
        """Return new starts, -1 in empty places, and how many, the last, are of random units.

        All of them as long as there is one end. Then half; a quarter each are the best support
        with up to two thirds redrawn, by units that gain much where one of those that go is
        missing, and two ends merged. A unit may stand in a start twice.
        """
        rng, home = self._rng, ends.supports[0]
        k, each = home.size, many // 4 if len(ends.supports) > 1 else 0
        samples = many - 2 * each
        starts = np.full((many, 2 * self._most), -1)
        starts[2 * each :, : self._most] = rng.choice(choice, (samples, self._most))
        if not each:
            return starts, samples
        # Redrawn: a random order of the members, of which the last go, and as many others in an
        # order of arrival, the sooner the more they promise.
        order = np.argsort(rng.random((each, k)), axis=1)
        gone = rng.integers(1, max(2, 2 * k // 3 + 1), each)
        is_gone = np.arange(k) >= k - gone[:, None]
        starts[:each, :k] = np.where(is_gone, -1, home[order])
        promise, units = model.promise(home, 4 * _PROMISING)
        gains = np.where(is_gone[:, :, None], promise[order], 0.0).max(axis=1, initial=0.0)
        wait = np.full(gains.shape, np.inf)
        np.divide(rng.exponential(size=gains.shape), gains, out=wait, where=gains > 0.0)
        soonest = np.argsort(wait, axis=1, kind="stable")[:, :k]
        drawn = np.isfinite(np.take_along_axis(wait, soonest, axis=1))
        drawn &= np.arange(soonest.shape[1]) < gone[:, None]
        starts[:each, k : k + soonest.shape[1]] = np.where(drawn, units[soonest], -1)
        # Merged: the better ends more often.
        kept = len(ends.supports)
        better, any_of = (kept * rng.random(each) ** 2).astype(int), rng.integers(kept, size=each)
        for row, (one, other) in enumerate(zip(better, any_of, strict=True), start=each):
            both = np.concatenate([ends.supports[one], ends.supports[other]])
            starts[row, : both.size] = both
        return starts, samples

    # ---- propose, where limits, prices or constraints decide what is allowed -----------------

    def _descended_singly(
        self, model: LocalModel, start: IntArray, size: int
    ) -> tuple[IntArray, float]:
        """Return where the descent from a start ends, and twice what that lowers the model by."""
        sparsity = self._sparsity
        charge = np.broadcast_to(sparsity.unit_price, sparsity.units)
        units = self._within(model, np.unique(self._chosen(start)))
        steps = 20 + 10 * size
        for _ in range(steps):
            if self._over():
                break
            changes = list(self._priced_changes(model, units, size, charge, 1))
            if not changes or changes[0][0] <= 0.0:
                break
            units = changes[0][1]
        members = self._layout.model_of_units[units]
        return members, 2.0 * (self._lowered(model, members) - float(charge[units].sum()))

    def _within(self, model: LocalModel, units: IntArray) -> IntArray:
        """Return the units of a start that may be nonzero together, those worth most first."""
        if self._sparsity.order is None and not self._sparsity.within(units):
            members = self._layout.model_of_units[units]
            units = units[np.argsort(model.prices(members).removal, kind="stable")]
        return self._allowed(units)

    def _allowed(self, units: IntArray) -> IntArray:
        """Return the first of some units that may be nonzero together, sorted."""
        sparsity = self._sparsity
        if sparsity.order is not None:
            units = sparsity.order.largest_closed(units)
        if sparsity.within(units):
            return np.sort(units)
        chosen = np.empty(0, dtype=np.intp)
        for unit in units:
            if sparsity.room(chosen)[unit]:
                chosen = np.append(chosen, unit)
        return np.sort(chosen)

    def _priced_changes(
        self, model: LocalModel, units: IntArray, size: int, charge: FloatArray, many: int
    ) -> Iterator[tuple[float, IntArray]]:
        """Yield the most promising changes of ``units`` that are allowed, with what they lower.

        A unit is added where there is room, else exchanged; where fewer may win, also removed.
        """
        sparsity, members = self._sparsity, self._layout.model_of_units[units]
        prices = model.prices_of(members)
        inside = self._layout.model_of_units
        addition, exchange = prices.addition[inside] - charge, prices.exchange[:, inside]
        removal = prices.removal + charge[units]
        exchange = exchange + charge[units][:, None] - charge
        if sparsity.order is not None:
            gains = np.where(np.isfinite(addition), addition, 0.0)
            gains[units] = 0.0
            swaps = np.where(np.isfinite(exchange), exchange, -np.inf)
            for support in closed_changes(sparsity, units, -removal, gains, swaps, 2 * many):
                yield self._change(addition, removal, exchange, units, support), np.sort(support)
            return
        options: list[tuple[float, IntArray]] = []
        if units.size < size:
            gains = np.where(sparsity.room(units), addition, -np.inf)
            best = np.argsort(-gains, kind="stable")[:many]
            options += [(float(gains[j]), np.sort(np.append(units, j))) for j in best]
        if units.size:
            if sparsity.layers or sparsity.knapsacks:
                exchange = np.where(sparsity.exchangeable(units), exchange, -np.inf)
            worth = exchange >= -_DOUBT * np.abs(removal)[:, None]
            flat = np.where(worth, exchange, -np.inf).ravel()
            best = np.argpartition(-flat, min(many, flat.size - 1))[:many]
            for place in best:
                i, j = divmod(int(place), exchange.shape[1])
                options.append((float(flat[place]), np.sort(np.append(np.delete(units, i), j))))
            if self._objective.form.fewer:
                best = np.argsort(-removal, kind="stable")[:many]
                options += [(float(removal[i]), np.delete(units, i)) for i in best]
        options = [option for option in options if np.isfinite(option[0])]
        yield from sorted(options, key=lambda option: -option[0])

    @staticmethod
    def _change(
        addition: FloatArray,
        removal: FloatArray,
        exchange: FloatArray,
        units: IntArray,
        support: IntArray,
    ) -> float:
        """Return about what a change of several units lowers the model by: the sum of the parts."""
        gone = np.isin(units, support, invert=True)
        new = np.setdiff1d(support, units)
        if new.size == 1 and gone.sum() == 1:
            return float(exchange[gone][0, new[0]])
        gains = addition[new]
        return float(gains[np.isfinite(gains)].sum() + removal[gone].sum())

    def _changes(self, model: LocalModel, point: Point, many: int = _CANDIDATES) -> list[IntArray]:
        """Return the supports one change away that promise most."""
        sparsity = self._sparsity
        charge = np.broadcast_to(sparsity.unit_price, sparsity.units)
        units = self._chosen(self._members(point))
        size = self._most
        changes = self._priced_changes(model, units, size, charge, many)
        best = sorted(changes, key=lambda change: -change[0])[:many]
        if not self.models.has_cheap_rows:  # minimisers read the data: those that promise a gain
            best = [change for change in best if change[0] > 0.0]
        return [self._layout.model_of_units[support] for _, support in best]

    # ---- confirm -----------------------------------------------------------------------------

    def _confirmed(self, point: Point, supports: Iterable[IntArray]) -> Point | None:
        """Return the minimiser over the first of some supports that is better than ``point``."""
        here = self._members(point).tobytes()
        for members in supports:
            key = members.tobytes()
            if key == here or key in self._refused:
                continue
            if self._over():
                return None
            trial = self._minimised(members, point)
            if self._is_better(trial, point):
                return trial
            self._refused.add(key)
        return None

    def _minimised(self, members: IntArray, start: Point) -> Point:
        support = self._sparsity.coordinates(self._chosen(members))
        tol = None if self.is_exact else _ROUGH * validity.unexplained(self._objective, start)
        return self._restricted(self._objective, support, start, tol=tol)

    def _is_better(self, new: Point, old: Point) -> bool:
        """Return whether one point is better than another by more than rounding."""
        if not np.isfinite(new.value):
            return False
        worth, before = priced(self._objective, new), priced(self._objective, old)
        size, fall = abs(old.value), abs(self._origin - old.value)
        if not np.isfinite(max(size, fall)):
            return not before <= worth
        # Squares of residuals are accurate down to nothing; other losses are sums that cancel.
        least = _RESIDUE * fall if self.is_exact else NEGLIGIBLE * fall
        return before - worth > max(NEGLIGIBLE * size, least)

    # ---- diversify in other models -----------------------------------------------------------

    def _begun_elsewhere(self, point: Point) -> Point | None:
        """Descend from a minimiser elsewhere, where other columns promise; return a better point.

        In turns over a part of the support and over random units.
        """
        rng, members, begun = self._rng, self._members(point), self._elsewhere
        if begun.samples % 2:
            kept = np.unique(rng.choice(self._layout.model_of_units, self._most))
        else:
            many = int(rng.integers(1, max(2, 2 * members.size // 3 + 1)))
            kept = np.sort(rng.permutation(members)[many:])
        if not self._batched:
            kept = self._layout.model_of_units[self._allowed(self._chosen(kept))]
        if self.is_exact:
            end = self._descended(self.models.at(point), kept, self._most)
            begun.take([end], [0.0], 1)
            return self._confirmed(point, [end])
        there = self._minimised(kept, point)
        for _ in range(_DESCENTS):
            if not np.isfinite(there.value) or self._over():
                break
            kept = self._members(there)
            end = self._descended(self.models.at(there), kept, self._most)
            trial = there if np.array_equal(end, kept) else self._minimised(end, there)
            if not self._is_better(trial, there):
                break
            there = trial
        begun.take([self._members(there)], [0.0], 1)
        return there if self._is_better(there, point) else None

    # ---- units and values --------------------------------------------------------------------

    def _work(self, model: LocalModel) -> float:
        """Return about how many multiplications a descent takes."""
        size = self._most * self._layout.q
        columns = model.c.shape[1]
        if self._batched and self._is_pooled(model):
            columns = pool_width(self._most) * self._layout.q
        return descent_cost(size, columns)

    def _far(self, model: LocalModel) -> float:
        """Return the same for a search elsewhere, with a pool or a model of its own."""
        rows, P = validity.observations(self._objective), model.c.shape[1]
        size = self._most * self._layout.q
        wide = min(P, pool_width(self._most) * self._layout.q)
        own = 2.0 * size * P * (size + rows / 2.0) + float(rows) * wide * wide
        return self._work(model) + float(own)

    def _is_pooled(self, model: LocalModel) -> bool:
        return self._batched and model.is_pooled(self._most)

    def _members(self, point: Point) -> IntArray:
        """Return the units of a point as the model numbers them."""
        if self._last is not None and self._last[0] is point:
            return self._last[1]
        units = self._sparsity.active_units(point.x)
        if self._objective.form.box is None and self._sparsity.order is None:
            units = support_units(self._sparsity, point.support)
        members = np.asarray(self._layout.model_of_units[units])
        self._last = point, members
        return members

    def _chosen(self, members: IntArray) -> IntArray:
        """Return the units of the cardinality limit that the model's units are."""
        return np.asarray(self._layout.units_of_model[members])

    def _lowered(self, model: LocalModel, members: IntArray) -> float:
        """Return what a support lowers the model by, bounds left aside."""
        if not members.size:
            return 0.0
        hessian = model.hessian
        hessian.fetch(members)
        columns = self._layout.columns(members)
        inside = hessian.store[hessian.slots[columns]][:, columns].copy()
        dead = hessian.diagonal[columns] == 0.0
        inside[dead, dead] = 1.0
        values, vectors = np.linalg.eigh(inside)
        turned = vectors.T @ model.c[:, columns].T
        return 0.5 * float((np.square(turned).sum(axis=1) / np.maximum(values, GUARD)).sum())

    def _explained(self, point: Point) -> float:
        """Return twice what the support of ``point`` lowers its model by."""
        model = self.models.at(point)
        members = self._members(point)
        if not self._batched:
            charge = self._sparsity.charge(self._chosen(members))
            return 2.0 * (self._lowered(model, members) - charge)
        if model.bounds is None:
            return 2.0 * self._lowered(model, members)
        descents, pool = model.descents(members, self._most)
        return float(descents(np.searchsorted(pool, members)[None], members.size)[1][0])
