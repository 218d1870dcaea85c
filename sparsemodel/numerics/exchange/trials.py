"""Exchanges that a model prices and the objective itself judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Objective,
    Point,
    RestrictedSolver,
    priced,
)
from sparsemodel.numerics.exchange import greedy, swaps
from sparsemodel.numerics.exchange.batched_newton import RANKED, batch_limit, lowest_first
from sparsemodel.numerics.exchange.models import EXACTLY, ExchangeModels
from sparsemodel.numerics.exchange.quadratics.abreast import NEGLIGIBLE
from sparsemodel.numerics.exchange.quadratics.rounds import (
    Rounds,
    markedly_lower,
    searches_for,
    spent,
)
from sparsemodel.numerics.exchange.quadratics.runners_up import Comparison
from sparsemodel.numerics.exchange.quadratics.search import ExchangeSearch
from sparsemodel.numerics.objectives import validity
from sparsemodel.numerics.objectives.regression import RegressionObjective

_ROUGH, _COARSE = 1e-4, 0.03
"""Accuracy of the restricted minimisations that only compare supports, and that fill one, beside
what is left of the objective: where classes are nearly separable, gradients are small."""
_JUDGED, _TRIED = 4, 2
"""Ends of searches in the model that the objective is asked about, of those found at a time; rounds
that one tried on the objective counts as where a model of several columns knows no more ends."""
_FROM, _WORTH, _ALONE = 2, 24, 0.2
"""Descents from supports judged before perturbations, and more rounds in vain where they help: of
84 problems with 200 to 900 columns 7 ended too high, 10 without those, 11 if none is judged. And
contrast from which none is if double exchanges cost much: one with .03 ended high, none of 117."""
_SURE = ((4, 0.0), (6, 0.2), (np.inf, 0.6))
"""Units, and least contrast with which that takes the place of perturbations where a model says
something far away. Of 352 random problems with few rows 12 ended up to 28 % higher where up to four
units needed none, and fewer rows, or a Poisson loss, were no matter; 3 do."""
_CHANGES = 10
"""Changes in a perturbation's descent at most, beside two for each unit."""
_FAR, _REACH = 2**20, 24
"""Changes of a descent in a model at first, and at least: half of those of one that led no lower,
twice as many after one that did."""
_SEPARATED = 0.01
"""What is left of the objective, as a share, where classes are nearly separable."""


@final
class ExchangeTrials:
    """Change a support by what a model promises and the objective confirms.

    Parameters
    ----------
    objective
        Twice differentiable.
    restricted
        Minimises on a support; keeps bounds and other constraints, where there are some.
    candidates
        Changes that are tried before a point counts as one that none improves.
    over
        Returns whether time is up.
    """

    def __init__(
        self,
        objective: Objective,
        restricted: RestrictedSolver,
        candidates: int,
        over: Callable[[], bool],
    ) -> None:
        self._objective = objective
        constrained = objective.form.constrained
        self._restricted = restricted if constrained else swaps.CachedSolver(objective, restricted)
        self._candidates, self._over = candidates, over
        self.models = ExchangeModels(objective)
        self._origin = objective.origin().value
        self._most = min(objective.cardinality.budget, objective.cardinality.units)
        self._around: tuple[Point, ExchangeSearch | None] | None = None
        sparsity = objective.cardinality
        bare, grouped = sparsity.bare and not constrained, sparsity.groups is not None
        self._bounded = validity.bounded_curvature(objective)
        self._plain, self._grouped = bare and not grouped, bare and grouped and self._bounded
        self._labels = validity.separable(objective)
        self._continuous = validity.continuous_curvature(objective)
        self.varied = self._plain and not self.models.rare
        """Whether models say so much of other supports that many ends of searches tell of more."""
        self._compared: bytes | None = None  # the support whose runners-up were judged last
        self._reach = _FAR  # changes from which the model still told the truth
        self._changes = 0  # of descents in models
        self._started = False  # restarted, started: the starts are always the same

    def debiased(self, point: Point) -> Point:
        """Return the minimiser over the support of ``point``, to full accuracy."""
        nothing = not point.support.size and not self._objective.form.constrained
        if nothing or point.memo.minimised:
            return point
        found = self._restricted(self._objective, point.support, point)
        same = found.normal is None and np.array_equal(found.x, point.x)
        if same and np.isfinite(found.value + point.value):
            return point  # with its gradient
        if np.isnan(found.value) or self._worth(found) <= self._worth(point):
            if self._around is not None and self._around[0] is point:
                self._around = (found, self._around[1])  # it has hardly moved
            return found  # of value NaN where products fail, which ends the run
        # Better by rounding, but without the multipliers of constraints, which prices need.
        known = point.normal is not None or not np.isfinite(found.value)
        return point if known else replace(point, normal=found.normal)

    def improved(self, point: Point, *, thorough: bool = True) -> Point | None:
        """Return a better point one change of the support away; None when none was found.

        ``thorough`` looks again with the curvatures at the point before it gives up, where they are
        not quite those of the model, and tries what comes nearest where columns share one.
        """
        if not np.isfinite(self._objective.gradient(point)).all():
            return replace(point, value=np.nan)  # the data are not finite, which ends the run
        following = self._changed(point, thorough)
        if following is None and thorough and not self._over() and self.models.turned():
            following = self._changed(point, thorough)
        if following is not None or not thorough or self._over():
            return following
        rough = self.models.shared and not self.clear(point)  # as the model was
        return self._one_change(point, rough) if self.models.renew(point, EXACTLY) else None

    def _changed(self, point: Point, thorough: bool) -> Point | None:
        """Return a better point by a descent in the model, or else by one change."""
        following, none = self._many_changes(point)
        rough = thorough and self.models.shared and not self.clear(point)
        if following is None and (rough or not none or self.models.rare):
            following = self._one_change(point, rough)
        return following

    def clear(self, point: Point) -> bool:
        """Return whether the support stands out in the model at ``point``, if that tells of it."""
        search = self._modelled(point)
        if self._grouped and validity.unexplained(self._objective, point) > _SEPARATED:
            return self.models.contrast(point)[1]
        return search is not None and search.clear

    def restarted(self, point: Point, rounds: Rounds) -> Point | None:
        """Descend from supports found in other ways, then by models without a unit each.

        None if nothing is, where the model tells of other supports, or units are not single
        coordinates or have a price.
        """
        separated = validity.unexplained(self._objective, point) <= _SEPARATED
        if self._started or not self._plain or not (separated or self._misled(point)):
            return None
        self._started = True
        rounds.renew(self._spent)
        over = partial(self._too_long, rounds)
        how = (self._restricted, self._minimised_on, self.debiased, self.better, self._over, over)
        found = self._best(
            point, greedy.fresh(self._objective, self._most, separated, *how), rounds
        )
        start, judge = found or point, (self._minimised, self.better, over)
        near = greedy.replaced_one_by_one(self._objective, start, *judge)
        return found if near is start else self.debiased(near)

    def _misled(self, point: Point) -> bool:
        """Return whether the model promises something that the objective has not refused."""
        judged = self._continuous and self._compared == point.support.tobytes()
        if judged or self._objective.quadratic or self.models.shared or self.models.rare:
            return False
        search = self._search(point)
        return search is not None and search.size > 1 and search.contrast < 0.0

    def started(
        self, point: Point, rounds: Rounds, starts: Callable[[], Sequence[FloatArray]] | None
    ) -> Point | None:
        """Return the best end of descents from what the convex problem is rounded to, if better.

        Constraints link units, so that a search from nothing may end where it began.
        """
        if self._started or starts is None:
            return None
        self._started = True
        points = (self._objective.point_from(x) for x in starts())
        return self._best(point, (self.debiased(at) for at in points), rounds)

    def round(self, point: Point, rng: np.random.Generator, rounds: Rounds) -> Point | None:
        """Descend from perturbations of ``point``, in the model first; return a better point."""
        return self._best(point, self._starts(point, rng, rounds), rounds)

    def beside(self, point: Point, rounds: Rounds) -> Point | None:
        """Descend from the best of the supports that the model ranks next, if that is better."""
        rounds.descended(self._spent)
        if rounds.enough or self.excludes_others(point):
            return None
        near = self.near(point, point.value)[:_FROM]
        better = self._best(point, (self._minimised_on(some, point) for some in near), rounds)
        rounds.allow(0 if better is None else _WORTH)
        return better

    def near(self, point: Point, bar: float = np.inf) -> list[IntArray]:
        """Return supports that the model at ``point`` ranks next, by the objective on them.

        The lowest first, where the objective comes below ``bar``. None where ``point`` stands out,
        prices are exact, or others than one limit on single coordinates decide which are allowed.
        """
        if not self._plain or self._objective.quadratic or self.clear(point):
            return []
        many = batch_limit(self._objective, point.support.size)
        found = self.models.runners_up(point, min(many, RANKED)) if many else None
        if found is None:
            return []
        self._compared = point.support.tobytes() if many >= RANKED else None
        lower = lowest_first(cast("RegressionObjective", self._objective), bar, *found)
        return [np.sort(support) for support in lower]

    def conclusive(self, point: Point, rounds: Rounds) -> bool:
        """Return whether no other support is worth looking for, as it stands out or is judged."""
        search = self._modelled(point)
        if search is None or search.clear:
            return self.clear(point) or self._none_better(point, rounds)
        comparison = self._comparison(point)
        if comparison is None or comparison.excludes_others:
            return comparison is not None
        sure = next(c for k, c in _SURE if search.size <= k)
        return self._compared == point.support.tobytes() and comparison.contrast >= sure

    def excludes_others(self, point: Point) -> bool:
        """Return whether exchanges cost so much in the model that no other support is lower."""
        if (comparison := self._comparison(point)) is None:
            return False
        if self._labels and comparison.excludes_others_logistic:  # curvature changes slowly
            self._compared = point.support.tobytes()
            return True
        return comparison.contrast >= _ALONE and comparison.excludes_others

    def _comparison(self, point: Point) -> Comparison | None:
        """Return how others compare in the model, where that tells of supports elsewhere."""
        search = None if self.models.rare or self.models.shared else self._modelled(point)
        if search is None or not validity.many_rows(self._objective, search.size):
            return None
        comparison = search.comparison
        return comparison if self._bounded or comparison.excludes_others_unbounded else None

    def _none_better(self, point: Point, rounds: Rounds) -> bool:
        """Return whether enough searches have come back, where groups have exact prices."""
        if not (self._grouped and self._objective.quadratic):
            return False
        searches = searches_for(self.models.contrast(point)[0])
        return rounds.none_better(self._counted(point).tobytes(), searches)

    def _modelled(self, point: Point) -> ExchangeSearch | None:
        """Return the search in the model at ``point``; none if classes are nearly separable."""
        search = self._search(point) if self._plain else None
        return search if validity.unexplained(self._objective, point) > _SEPARATED else None

    def _best(self, point: Point, starts: Iterable[Point], rounds: Rounds) -> Point | None:
        """Return the best end of descents, where that is better than ``point``."""
        best, home = point, b"" if self.models.rare else self._counted(point).tobytes()
        for start in starts:
            found = self._descended(start, rounds, home)
            best = found if self.better(found, best) else best
            if self._too_long(rounds):
                break
        rounds.count([], better=best is not point)
        if markedly_lower(self._objective, best, point):
            rounds.renew(self._spent, lower=True)
        return None if best is point else self.debiased(best)

    def _starts(self, point: Point, rng: np.random.Generator, rounds: Rounds) -> list[Point]:
        if self.models.turned():
            self._around = None
        search, shared = self._search(point), self.models.shared
        ends, better = list[bytes](), False
        if search is not None:
            search.walking = rounds.scattered and validity.without_margin(self._objective)
            ends, better = search.perturb(rng, self._over)
            self._changes += search.size * len(ends)  # about
        fresh = [end for end in dict.fromkeys(ends) if not rounds.known(end)]
        if search is None or (shared and not fresh):
            rounds.count([], better=False, searches=_TRIED if shared else 1)
            return [greedy.redrawn(self._objective, self.models, point, self._minimised, rng)]
        # A model that columns share says as much as a few trials.
        rounds.count([] if shared else ends, better=False, searches=_JUDGED if shared else 0)
        if better:
            search.start(self._counted(point))
        return [self._minimised_on(np.frombuffer(end, np.intp), point) for end in fresh[:_JUDGED]]

    def _search(self, point: Point) -> ExchangeSearch | None:
        """Return the search in the model at ``point``, as its perturbations have left it."""
        if self._around is None or self._around[0] is not point:
            self._around = (point, self.models.search(point, self._most))
        return self._around[1]

    def _descended(self, point: Point, rounds: Rounds, home: bytes = b"") -> Point:
        self._reach, here = _FAR, self._counted(point).tobytes()
        for _ in range(_CHANGES + 2 * self._objective.cardinality.budget):
            if (following := self.improved(point, thorough=False)) is None:
                break
            point, here = following, self._counted(following).tobytes()
            if here == home or rounds.known(here) or self._too_long(rounds):
                break
        rounds.note(here)
        return point

    @property
    def _spent(self) -> float:
        return spent(self._objective, self._changes)

    def _too_long(self, rounds: Rounds) -> bool:
        return self._over() or rounds.spend(self._spent)

    def _counted(self, point: Point) -> IntArray:
        sparsity, support = self._objective.cardinality, point.support
        return support[sparsity.counted[support]] if sparsity.free.size else support

    def better(self, new: Point, old: Point) -> bool:
        """Return whether one point is better than another by more than rounding."""
        if not np.isfinite(new.value):
            return False
        size = max(abs(old.value), abs(self._origin - old.value))
        if not np.isfinite(size):
            return not self._worth(old) <= self._worth(new)
        return self._worth(old) - self._worth(new) > NEGLIGIBLE * size

    def _many_changes(self, point: Point) -> tuple[Point | None, bool]:
        """Return the minimiser where a descent in the model ends, None if that is no better.

        One minimisation for all of its changes; None also where there is no such model. And whether
        the model promises nothing of any change.
        """
        size = self._counted(point).size
        more = swaps.filling(self._objective, point, self._most, self._most - size)
        search = self.models.search(point, size + more)
        if search is None:
            return None, False
        before = search.gain
        self._changes -= search.exchanges
        search.descend(min(self._reach, _CHANGES + 2 * self._most), self._over, exactly=False)
        self._changes += search.exchanges
        promised, possible = 0.5 * (search.gain - before), point.value - self._objective.infimum()
        if np.array_equal(search.support, self._counted(point)):
            return None, not self._over()
        if promised <= possible:  # else hardly any curvature here, as where a hinge is straight
            tol = _ROUGH if search.size == self._most else _COARSE
            trial = self._minimised_on(search.support, point, tol)
            if self.better(trial, point):
                self._reach *= 2
                return trial, False
        self._reach = max(_REACH, min(self._reach, search.exchanges) // 2)
        return None, False

    def _one_change(self, point: Point, rough: bool) -> Point | None:
        sparsity = self._objective.cardinality
        active = sparsity.active_units(point.x)
        point = swaps.without_zeros(self._objective, point, active)
        if sparsity.order is not None:
            return self._first_better(point, self.models.closed_changes(point, self._candidates))
        room = min(sparsity.budget, sparsity.units) - active.size
        if room > 0 and (filled := self._filled(point, active, room)) is not None:
            return filled
        if not active.size:
            return None
        found = self.models.exchanges(point)
        promising = swaps.changes(self._objective, point, *found, self._candidates, rough)
        return self._first_better(point, promising)

    def _first_better(self, point: Point, supports: Iterable[IntArray]) -> Point | None:
        """Return the minimiser over the first of some supports that lowers the objective."""
        for units in supports:
            if self._over():
                return None
            trial = self._minimised(units, point)
            if self.better(trial, point):
                return trial
        return None

    def _filled(self, point: Point, active: IntArray, room: int) -> Point | None:
        sparsity = self._objective.cardinality
        gains = self.models.insertions(point) - sparsity.unit_price
        gains[~sparsity.room(active)] = 0.0
        block = 1 if sparsity.priced else max(1, room // 3)
        fillings = swaps.fillings(gains, block, self._candidates)
        return self._first_better(point, (swaps.allowed(sparsity, active, f) for f in fillings))

    def _minimised(self, units: IntArray, start: Point) -> Point:
        return self._minimised_on(self._objective.cardinality.coordinates(units), start)

    def _minimised_on(self, chosen: IntArray, start: Point, tol: float = _ROUGH) -> Point:
        free = self._objective.cardinality.free
        tol *= validity.unexplained(self._objective, start)
        support = np.union1d(chosen, free) if free.size else np.sort(chosen)
        return self._restricted(self._objective, support, start, tol=tol)

    def _worth(self, point: Point) -> float:
        return priced(self._objective, point)
