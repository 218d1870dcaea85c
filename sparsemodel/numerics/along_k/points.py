"""A minimiser for each number of units: a sweep along k, then each size searched on.

Sizes are starts for one another: a support with fewer units is filled, one with more is thinned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

import numpy as np

from sparsemodel.interfaces import (
    IntArray,
    Objective,
    Point,
    RestrictedSolver,
    SparseRegression,
)
from sparsemodel.numerics.along_k.curved import CurvedPart, dense_rows, has_curvatures
from sparsemodel.numerics.along_k.squares import SquaredSums, has_squares
from sparsemodel.numerics.along_k.together import SHARE, SizesTogether
from sparsemodel.numerics.budget import budget, gram_cost, numba_in_time, without_deadline
from sparsemodel.numerics.search.search import SupportSearch
from sparsemodel.progress import counted

_ROUNDS = 4
"""Times that improvements are carried to other sizes, at most."""


@final
class PointsAlongK:
    """The best point of each size so far; a run's workspace.

    Parameters
    ----------
    objective
        Of a form whose budget is the largest size; twice differentiable.
    restricted
        Minimises on a support.
    sizes
        Increasing, the first may be 0.
    through
        Sizes that the sweep goes through, too, where it is compiled.
    effort
        A factor on the patience of a solve; 0 for changes that improve a point alone.
    at
        Returns the objective with a limit, where a limit is more than a number of units: where
        constraints, other limits or prices decide what is allowed. None where it is no more.
    """

    def __init__(
        self,
        objective: Objective,
        restricted: RestrictedSolver,
        sizes: Sequence[int],
        *,
        through: Sequence[int] = (),
        effort: float = 1.0,
        at: Callable[[int], Objective] | None = None,
    ) -> None:
        self._objective, self._restricted, self._at = objective, restricted, at
        self._rng, self._effort = np.random.default_rng(0), effort
        self.sizes, self.points = list(sizes), list[Point]()
        self._through = np.union1d(sizes, through).astype(np.intp)
        self._searches: dict[int, SupportSearch] = {}
        self._together: SizesTogether | None = None
        self._patience = SHARE
        self._part: CurvedPart | None = None
        self._whole: SupportSearch | None = None

    # ---- the sweep ---------------------------------------------------------------------------

    def sweep(self) -> None:
        """Fill :attr:`points`, as many as time allows and one at least; never rising."""
        supports = self._supports()
        if supports is not None:
            with without_deadline():  # a few solves that make points of what was found
                for support in supports:
                    start = self.points[-1] if self.points else self._objective.origin()
                    self._append(self._restricted(self._objective, support, start))
            return
        for k in counted(self.sizes, "size"):
            if self.points and budget().over():
                break
            self._append(self._grown(k, self.points[-1] if self.points else None))

    def _append(self, point: Point) -> None:
        """Add the point of a size, or that with fewer units where it is no better."""
        better = not self.points or point.value < self.points[-1].value
        self.points.append(point if better else self.points[-1])

    def _supports(self) -> list[IntArray] | None:
        """Return the supports of a compiled sweep, None where none knows the objective."""
        form, sparsity = self._objective.form, self._objective.cardinality
        if not isinstance(form, SparseRegression) or self._at is not None or not has_sweep(form):
            return None
        through = self._through[self._through > 0]
        weights = [term.weights for term in form.terms]
        if has_squares(form):
            quadratic = SquaredSums(form).part(weights).whitened(sparsity, form.ridge)
            supports, values = quadratic.sweep(through)
            through = through[: len(supports)]
            self._together = SizesTogether(quadratic, through, budget().over)
            self._together.begin(supports, values)
            self._objective.work.passes += quadratic.passes
            found = [row[row >= 0] for row in supports]
        else:
            self._part, self._form = CurvedPart(form, weights, dense_rows(form)), form
            every = np.concatenate([[0], through])
            self._swept = self._part.along_k(form.ridge, every)
            if self._effort == 0.0:  # no search follows
                self._swept = self._part.swept_again(form.ridge, every, self._swept)
            self._objective.work.passes += self._part.passes
            found = [sparsity.active_units(x) for x in self._swept[0][1:]]
        return self._wanted([sparsity.coordinates(one) for one in found])

    def _wanted(self, supports: list[IntArray]) -> list[IntArray]:
        """Return the supports of the sizes that are wanted among those of all that were swept."""
        through, nothing = self._through[self._through > 0], self._objective.origin().support
        places = [int(np.searchsorted(through, k)) for k in self.sizes if k > 0]
        found = [supports[place] for place in places if place < len(supports)]
        found = [nothing] * (len(self.sizes) - len(places)) + found
        return found or supports[-1:]  # time was up before: one with fewer units

    def _grown(self, k: int, before: Point | None) -> Point:
        """Return the point of a size, from the one before by changes that improve it."""
        search = self._search(k)
        point = self._objective.origin() if before is None else before
        if before is None:
            point = self._restricted(search.objective, point.support, point)
        while (better := search.improved(point)) is not None:
            point = better
        return search.debiased(point)

    # ---- each size searched on ---------------------------------------------------------------

    def search(self, near: Sequence[Point] = ()) -> None:
        """Search each size, until none of them improves another.

        Parameters
        ----------
        near
            Points to start from, too, one for each size; or fewer.
        """
        if self._together is not None:
            self._together.search(self._effort)
            sparsity, together = self._objective.cardinality, self._together
            best = [together.best(place)[0] for place in range(together.sizes.size)]
            self._take_all(self._wanted([sparsity.coordinates(one) for one in best]))
            # Where columns nearly depend on each other, products do not tell what they explain.
            is_close = together.has_close_columns
            self._patience = 1.0
            for place, k in enumerate(self.sizes[: len(self.points)]):
                point = self.points[place]
                is_short = sparsity.count(point.x) < min(k, sparsity.units)
                if (is_short or is_close) and not budget().over():
                    self._take(place, self._searched(k, point))
            return
        if self._part is not None:
            form, sparsity = self._form, self._objective.cardinality
            every = np.concatenate([[0], self._through[self._through > 0]])[: len(self._swept[0])]
            x = self._part.searched(form.ridge, every, self._swept, self._effort, budget().over)[0]
            units = [sparsity.active_units(one) for one in x[1:]]
            self._take_all(self._wanted([sparsity.coordinates(one) for one in units]))
            self._effort = 0.0  # what is left are single changes, each in a model of its own
        starts = dict(zip(self.sizes, near, strict=False))
        searched: dict[int, Point] = {}
        used: dict[tuple[int, int], Point] = {}
        for _ in range(_ROUNDS):
            changed = False
            for place, k in enumerate(counted(self.sizes[: len(self.points)], "size")):
                if k == 0 or budget().over():
                    continue
                for beside in (place - 1, place + 1):
                    if 0 <= beside < len(self.points):
                        changed |= self._carried(used, place, beside)
                if (start := starts.pop(k, None)) is not None:
                    changed |= self._take(
                        place, self._search(k).confirmed(self.points[place], start)
                    )
                if searched.get(k) is not self.points[place]:
                    changed |= self._take(place, self._searched(k, self.points[place]))
                    searched[k] = self.points[place]
            if not changed or budget().over():
                break
        for place, k in enumerate(self.sizes[: len(self.points)]):
            self.points[place] = self._search(k).debiased(self.points[place])
        for place in range(1, len(self.points)):
            if self.points[place - 1].value < self.points[place].value:
                self.points[place] = self.points[place - 1]

    def _take_all(self, supports: list[IntArray]) -> None:
        """Minimise on other supports of the sizes, where time allows, and keep what is better."""
        for place, support in enumerate(supports[: len(self.points)]):
            point = self.points[place]
            if not np.array_equal(support, point.support) and not budget().over():
                self._take(place, self._restricted(self._objective, support, point))
            if place and self.points[place - 1].value < self.points[place].value:
                self.points[place] = self.points[place - 1]

    def _carried(self, used: dict[tuple[int, int], Point], place: int, beside: int) -> bool:
        """Descend from a neighbour's support; return whether that improves the size."""
        start = self.points[beside]
        if used.get((place, beside)) is start or start is self.points[place]:
            return False
        used[place, beside] = start
        if not np.isfinite(start.value):
            return False
        return self._take(
            place, self._search(self.sizes[place]).proposed(self.points[place], start)
        )

    def _searched(self, k: int, point: Point) -> Point | None:
        """Return a better point of a size, None where the search finds none."""
        search, first = self._search(k), point
        while not budget().over():
            better = search.improved(point)
            if better is None:
                if self._effort == 0.0:
                    break
                better, is_enough = search.diversified(point)
                if better is None:
                    if is_enough:
                        break
                    continue
            point = better
        return None if point is first else point

    def _take(self, place: int, better: Point | None) -> bool:
        if better is None or not better.value < self.points[place].value:
            return False
        self.points[place] = better
        return True

    def _search(self, k: int) -> SupportSearch:
        """Return the search of a size; one of all where only their numbers of units differ."""
        if k not in self._searches:
            if self._at is not None:
                self._searches[k] = self._new(self._at(k))
            else:
                self._whole = self._whole or self._new(self._objective)
                self._searches[k] = self._whole.of_size(k)
        return self._searches[k]

    def _new(self, objective: Objective) -> SupportSearch:
        over = budget().over
        return SupportSearch(
            objective, self._restricted, self._rng, self._patience * self._effort, over
        )


def has_sweep(form: SparseRegression) -> bool:
    """Return whether a compiled sweep along k knows the losses, and its sums are quickly there.

    It does not with constraints beside the limit on k, with kinks, where data are not in memory,
    and where there is no time to load what is compiled.
    """
    if form.constrained or not form.sparsity.bare or not numba_in_time():
        return False
    if not (has_squares(form) or has_curvatures(form)):
        return False
    n, p = sum(term.target.shape[0] for term in form.terms), form.sparsity.size
    return budget().allows(gram_cost(n, min(n, p)))
