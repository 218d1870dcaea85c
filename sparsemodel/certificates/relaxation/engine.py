r"""The best dual bound: maximise it through its primal, the perspective relaxation.

.. math:: \max_a D(a) = \min_x F(x) + R(x)

with the k-support regulariser ``R``. The relaxation is minimised on a working set of columns that
grows by those that violate its optimality conditions; every gradient gives a dual point that is
valid for the whole problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sparsemodel.certificates.dual_bounds.unpenalised import (
    one_sided_coordinates,
    unbounded_coordinates,
)
from sparsemodel.certificates.dual_bounds.witness import from_gradients
from sparsemodel.certificates.relaxation.accelerated import minimise
from sparsemodel.certificates.relaxation.from_files import Models
from sparsemodel.certificates.relaxation.regulariser import Regulariser, selected
from sparsemodel.certificates.relaxation.smooth import SQUARE, Image, LossSmooth
from sparsemodel.certificates.relaxation.squares import Squares, smooth_part
from sparsemodel.certificates.relaxation.state import TOLERANCE, State, StoppingRule
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.interfaces import (
    Access,
    FloatArray,
    IntArray,
    SparseRegression,
)
from sparsemodel.numerics import top_k

_ALL_AT_ONCE = 1200
"""Columns up to which the working set is everything."""

_FEW_IN_A_BOX = 300
"""The same for squares within a box."""

_SIDES = 6
"""Sets of one-sided bounds that are tried."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """The relaxation solved, or as far as it got."""

    x: FloatArray
    """Point of the relaxation, full shape."""
    value: float
    """Its value: no dual point gives more than the minimum, which is at most this."""
    bound: float
    """Best dual bound met, in plain floating point."""
    witness: Witness | None
    """The dual point behind it, to be evaluated with care."""
    gains: FloatArray
    """Gains of all counted units there."""
    iterations: int
    interrupted: bool = False
    """Whether the user stopped it (Ctrl-C)."""

    @property
    def exhausted(self) -> bool:
        """Return whether no dual point can give a better bound (to ``TOLERANCE``)."""
        return self.exhausted_to(TOLERANCE)

    def exhausted_to(self, tolerance: float) -> bool:
        """Return whether the value and the bound agree to a relative ``tolerance``."""
        size = max(abs(self.value), abs(self.bound))
        return math.isfinite(size) and self.value - self.bound <= tolerance * size


def working_set(
    form: SparseRegression,
    smoothed: SparseRegression,
    start: FloatArray,
    stopping: StoppingRule,
    models: Models | None = None,
) -> Relaxed:
    """Return the relaxation of ``smoothed`` solved from ``start``.

    ``form`` is the problem that its dual points are for: the same one, or one with kinks that
    ``smoothed`` rounds off. ``models`` are what was read of files before, of the same losses.
    """
    search = _WorkingSet(form, smoothed, start, stopping)
    search.models = Models() if models is None else models
    thorough = False
    while True:
        state = search.solve(thorough)
        units = search.evaluate(state)
        if stopping.over(search.value, search.bound) or state.interrupted:
            break
        if search.complete or stopping.met(search.value, search.bound):
            break
        added, threshold = _violators(search.whole, units, search.work, search.regulariser)
        if added.size:
            thorough = False
            search.exchange(state, units, added, threshold)
        elif thorough:
            break
        else:
            thorough = True  # the set may be complete, but its relaxation was solved roughly
    return Relaxed(
        search.x,
        search.value,
        search.bound,
        search.witness,
        search.gains,
        search.iterations,
        state.interrupted,
    )


class _WorkingSet:
    """A relaxation solved on some coordinates, and its dual points evaluated on all of them."""

    def __init__(
        self,
        form: SparseRegression,
        smoothed: SparseRegression,
        start: FloatArray,
        stopping: StoppingRule,
    ) -> None:
        self.form, self.smoothed, self.stopping = form, smoothed, stopping
        self.eliminated = unbounded_coordinates(form)
        self.rest = rest = np.delete(np.arange(form.sparsity.size), self.eliminated)
        self.free = tuple(t.design.restrict(self.eliminated).to_array() for t in form.terms)
        self.whole = Regulariser(form, rest, form.ridge)
        squared = _squared(smoothed)
        # Within a box the nodes of a proof end after a few steps: products would cost more.
        few = _FEW_IN_A_BOX if form.box is not None and squared else _ALL_AT_ONCE
        columns = all(Access.COLUMNS in t.design.access or t.design.streamed for t in form.terms)
        large = rest.size > few or not _at_hand(form, rest)
        self.x = start.copy()
        self.b: FloatArray | None = self.x[self.eliminated] if self.eliminated.size else None
        self.work = rest
        if large and columns:
            # What reads files in any case reads them more often the more sets there are.
            square = not squared and smoothed.traits.curved and rest.size <= SQUARE
            size = min(_first_size(form), rest.size)
            if not square or _at_hand(form, rest[:size]):
                self.work = _first_set(smoothed, form, self.x, rest, self.whole)
        self.value, self.bound, self.iterations = math.inf, -math.inf, 0
        self.witness: Witness | None = None
        self.gains = np.zeros(self.whole.shape.units)
        self.squares = Squares(smoothed) if squared else None
        self.models = Models()

    @property
    def complete(self) -> bool:
        """Return whether the set holds every coordinate that is regularised."""
        return bool(self.work.size == self.rest.size)

    def solve(self, thorough: bool) -> State:
        """Solve the relaxation on the set: roughly, until it is complete or ``thorough``."""
        work, floor, stopping = self.work, self.bound, self.stopping
        self.regulariser = Regulariser(self.form, work, self.form.ridge)
        self.smooth = smooth = smooth_part(
            self.smoothed,
            work,
            self.free,
            self.b,
            self.x[work],
            self.squares,
            self.eliminated,
            stopping.deadline,
        )
        to_the_end = self.complete or thorough

        def goal(state: State) -> bool:
            if to_the_end and stopping.enough(state.value, max(floor, state.bound)):
                return True
            rough = not to_the_end and math.isfinite(floor)
            if rough and state.gap <= 0.05 * (state.value - floor):
                return True
            return stopping.met(state.value, state.bound)

        state = minimise(
            smooth,
            self.regulariser,
            self.x[work],
            goal=goal,
            deadline=stopping.deadline,
            models=(self.models, self.eliminated),
        )
        self.iterations += state.iterations
        self.value = state.value
        return state

    def evaluate(self, state: State) -> FloatArray:
        """Evaluate the dual point of a state on all coordinates; return the gains of all units."""
        form, work, eliminated = self.form, self.work, self.eliminated
        self.x = np.zeros(form.shape)
        self.x[work] = state.x
        point = state.x if not self.complete or state.bound_point is None else state.bound_point
        known = state.bound_image if self.complete and point is state.bound_point else None
        value, at, gradients = self._at(point, known)
        if eliminated.size:
            # The bound's point may have another mean than the state's, and so another intercept.
            own = at
            if point is not state.x:
                own = self._at(
                    state.x, state.image if self.complete and state.bound_image else None
                )[1]
            self.b = own[eliminated]
            self.x[eliminated] = self.b
        v = np.zeros(form.shape)
        if known is not None and state.bound_gradient is not None:
            v[work] = state.bound_gradient
        else:
            for term, g in zip(form.terms, gradients, strict=True):
                v += term.design.rmatvec(g)
        units, free_gain = self.whole.gains(v[self.rest])
        bound = value - float(np.vdot(v, at)) - free_gain  # the linear minorant's constant
        bound -= selected(units, form.sparsity.budget, form.sparsity.unit_price)
        if bound > self.bound:
            self.bound, self.gains = bound, units
            self.witness = from_gradients(form, gradients, at=at)
        return units

    def _at(
        self, point: FloatArray, known: Image | None
    ) -> tuple[float, FloatArray, tuple[FloatArray, ...]]:
        """Return the value, the whole point and the gradients of the terms at a point of the set.

        ``known`` are its products, where they cost a reading of files.
        """
        if known is None or not isinstance(self.smooth, LossSmooth):
            return _complete(self.smoothed, point, self.work, self.free, self.eliminated)
        value, at = self.smooth.value(point, known), np.zeros(self.form.shape)
        at[self.work] = point
        at[self.eliminated] = self.smooth.best_free(point)
        return value, at, self.smooth.gradients

    def exchange(self, state: State, units: FloatArray, added: IntArray, threshold: float) -> None:
        """Leave out what the state does not use, and take in ``added``."""
        index = np.searchsorted(self.whole.shape.unit_index, self.regulariser.shape.unit_index)
        kept = _pruned(self.work, self.regulariser, state, units[index], threshold)
        self.work = np.union1d(kept, added)


def _at_hand(form: SparseRegression, coordinates: IntArray) -> bool:
    """Return whether products with these columns need no file, or a file once."""
    streamed = [term.design for term in form.terms if term.design.streamed]
    return all(Access.COLUMNS in design.restrict(coordinates).access for design in streamed)


def _first_size(form: SparseRegression) -> int:
    """Return how many units there are in a first set."""
    return max(10 * form.sparsity.budget, 200)


def _first_set(
    smoothed: SparseRegression,
    form: SparseRegression,
    x: FloatArray,
    rest: IntArray,
    whole: Regulariser,
) -> IntArray:
    """Return the columns to begin with: those with the largest gains, and the start's own."""
    nonzero = np.flatnonzero(x if x.ndim == 1 else np.any(x != 0.0, axis=1))
    *_, gradients = _complete(smoothed, x[rest], rest, (), np.empty(0, dtype=np.intp))
    v = np.zeros(form.shape)
    for term, g in zip(form.terms, gradients, strict=True):
        v += term.design.rmatvec(g)
    units, _ = whole.gains(v[rest])
    chosen = top_k(units, _first_size(form))
    member = np.zeros(whole.shape.units + 1, dtype=bool)
    member[chosen] = True
    keep = member[whole.shape.unit] | (whole.shape.unit < 0) | np.isin(rest, nonzero)
    member[np.unique(whole.shape.unit[keep & (whole.shape.unit >= 0)])] = True
    return rest[member[whole.shape.unit] | (whole.shape.unit < 0)]


def _violators(
    whole: Regulariser, units: FloatArray, work: IntArray, regulariser: Regulariser
) -> tuple[IntArray, float]:
    """Return coordinates outside the set that deserve a share, and the gain that earns one."""
    inside = np.isin(whole.shape.unit_index, regulariser.shape.unit_index)
    # Units with a fractional share all gain the same; those above it are in for good.
    k = min(whole.k, int(inside.sum()))
    own = np.sort(units[inside])[::-1]
    threshold = max(own[k - 1] if 0 < k <= own.size else 0.0, float(np.min(whole.price)))
    if np.ndim(whole.price):  # a unit may gain less than others and be cheaper
        threshold = float(np.min(whole.price))
    outside = np.flatnonzero(~inside & (units > threshold * (1.0 - 1e-9)))
    if not outside.size:
        return np.empty(0, dtype=np.intp), threshold
    room = max(200, work.size // 2)
    chosen = outside[top_k(units[outside], room)]
    member = np.zeros(whole.shape.units + 1, dtype=bool)
    member[chosen] = True
    chosen = whole.shape.coordinates[member[whole.shape.unit] & (whole.shape.unit >= 0)]
    return chosen, threshold


def _pruned(
    work: IntArray, regulariser: Regulariser, state: State, idle: FloatArray, threshold: float
) -> IntArray:
    """Drop units that have no share and are far from earning one."""
    useless = (state.z == 0.0) & (idle < 0.25 * threshold)
    member = np.append(~useless, True)
    return np.asarray(work[member[regulariser.shape.unit]])


def _complete(
    form: SparseRegression,
    point: FloatArray,
    work: IntArray,
    free: tuple[FloatArray, ...],
    eliminated: IntArray,
) -> tuple[float, FloatArray, tuple[FloatArray, ...]]:
    """Return the value with the eliminated coordinates at their best, the point, the gradients."""
    nonzero = point != 0.0 if point.ndim == 1 else np.any(point != 0.0, axis=1)
    on = np.flatnonzero(nonzero)
    smooth = LossSmooth(form, work[on], free if eliminated.size else ())
    value = smooth.value(point[on], smooth.image(point[on]))
    at = np.zeros(form.shape)
    at[work] = point
    if eliminated.size:
        at[eliminated] = smooth.best_free(point[on])
    return value, at, smooth.gradients


def _squared(form: SparseRegression) -> bool:
    return form.traits.quadratic


def without_sides(
    form: SparseRegression,
    start: FloatArray,
    solve: Callable[[SparseRegression, FloatArray], Relaxed | str],
    stopping: StoppingRule,
) -> Relaxed | str:
    """Solve the relaxation without one-sided bounds of free coordinates that are not active.

    One that is not makes slopes vanish, which steps never reach: on one side of zero nothing is
    proved. Dropped bounds that are broken are held from then on, and those that turn out not to
    be active are dropped.
    """
    index, box = one_sided_coordinates(form), form.box
    if box is None or not index.size:
        return solve(form, start)
    low, high = box.lower, box.upper
    held = (start[index] <= low[index]) | (start[index] >= high[index])
    best: Relaxed | None = None
    for _ in range(_SIDES):
        lower, upper = low.copy(), high.copy()
        lower[index[~held]], upper[index[~held]] = -np.inf, np.inf
        found = solve(
            replace(form, box=replace(box, lower=lower, upper=upper)),
            start if best is None else best.x,
        )
        if isinstance(found, str):
            return found
        beyond = ~held & ((found.x[index] < low[index]) | (found.x[index] > high[index]))
        # The value of a point outside is no measure of what dual points can give.
        value = math.inf if beyond.any() else found.value
        found = replace(found, x=np.clip(found.x, low, high), value=value)
        best = found if best is None or found.bound >= best.bound else best
        proved = math.isfinite(found.bound)
        ended = stopping.over(found.value, best.bound) if proved else stopping.out_of_time
        off = held & (found.x[index] > low[index]) & (found.x[index] < high[index])
        dropped = np.zeros_like(held) if proved else off if off.any() else held
        if found.interrupted or ended or not (beyond.any() or dropped.any()):
            break
        held = (held | beyond) & ~dropped
    return "nothing was tried" if best is None else best
