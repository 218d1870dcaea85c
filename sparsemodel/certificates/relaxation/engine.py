r"""The best dual bound: maximise it through its primal, the perspective relaxation.

.. math:: \max_a D(a) = \min_x F(x) + R(x)

with the k-support regulariser ``R``. The relaxation is minimised on a working set of columns that
grows by those that violate its optimality conditions; every gradient gives a dual point that is
valid for the whole problem.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.dual_bounds.unpenalised import unbounded_coordinates
from sparsemodel.certificates.dual_bounds.witness import from_gradients
from sparsemodel.certificates.relaxation.accelerated import minimise
from sparsemodel.certificates.relaxation.regulariser import Regulariser, selected
from sparsemodel.certificates.relaxation.smooth import LossSmooth
from sparsemodel.certificates.relaxation.squares import Squares, smooth_part
from sparsemodel.certificates.relaxation.state import State
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.interfaces import (
    Access,
    FloatArray,
    IntArray,
    Quadratic,
    SparseRegression,
    TwiceDifferentiable,
)
from sparsemodel.numerics import top_k

TOLERANCE = 1e-6
"""Relative gap between the relaxation and its dual at which the bound is called exhausted."""

_ALL_AT_ONCE = 1200
"""Columns up to which the working set is everything."""

_FEW_IN_A_BOX = 300
"""The same for squares within a box."""

Report = Callable[[float, float], bool]
"""Called with the relaxation's value and the best bound; returns True to stop."""


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
        return self.value - self.bound <= tolerance * max(abs(self.value), abs(self.bound))


def working_set(
    form: SparseRegression,
    smoothed: SparseRegression,
    start: FloatArray,
    report: Report | None,
    deadline: float | None,
    tolerance: float,
) -> Relaxed:
    """Return the relaxation of ``smoothed`` solved from ``start``.

    ``form`` is the problem that its dual points are for: the same one, or one with kinks that
    ``smoothed`` rounds off.
    """
    eliminated = unbounded_coordinates(form)
    rest = np.setdiff1d(np.arange(form.sparsity.size), eliminated)
    free = tuple(t.design.restrict(eliminated).to_array() for t in form.terms)
    whole = Regulariser(form, rest, form.ridge)
    # Within a box the nodes of a proof end after a few steps: products would cost more than those.
    few = _FEW_IN_A_BOX if form.box is not None and _squared(smoothed) else _ALL_AT_ONCE
    everything = rest.size <= few or not all(Access.COLUMNS in t.design.access for t in form.terms)
    work = rest
    x = start.copy()
    b: FloatArray | None = x[eliminated] if eliminated.size else None
    if not everything:
        work = _first_set(smoothed, form, x, rest, whole)
    best_bound, best_value, iterations = -math.inf, math.inf, 0
    witness: Witness | None = None
    gains = np.zeros(whole.shape.units)
    thorough = False
    squares = Squares(smoothed) if _squared(smoothed) else None
    while True:
        regulariser = Regulariser(form, work, form.ridge)
        smooth = smooth_part(smoothed, work, free, b, x[work], squares, eliminated)
        complete = work.size == rest.size

        def goal(
            state: State, complete: bool = complete or thorough, floor: float = best_bound
        ) -> bool:
            if complete and report is not None and report(state.value, max(floor, state.bound)):
                return True
            allowed = tolerance * max(abs(state.value), abs(state.bound))
            if not complete and math.isfinite(floor):
                allowed = max(allowed, 0.05 * (state.value - floor))
            return state.gap <= allowed

        state = minimise(smooth, regulariser, x[work], goal=goal, deadline=deadline)
        iterations += state.iterations
        x = np.zeros(form.shape)
        x[work] = state.x
        point = state.bound_point if complete and state.bound_point is not None else state.x
        at, gradients = _complete(smoothed, point, work, free, eliminated)
        if eliminated.size:
            # The bound's point may have another mean than the state's, and so another intercept.
            own = at
            if point is not state.x:
                own, _ = _complete(smoothed, state.x, work, free, eliminated)
            b = own[eliminated]
            x[eliminated] = b
        v = np.zeros(form.shape)
        for term, g in zip(form.terms, gradients, strict=True):
            v += term.design.rmatvec(g)
        units, free_gain = whole.gains(v[rest])
        bound = _dual_value(smoothed, at, gradients, v) - free_gain
        bound -= selected(units, form.sparsity.budget, form.sparsity.price)
        if bound > best_bound:
            best_bound, gains = bound, units
            witness = from_gradients(form, gradients)
        best_value = state.value
        if report is not None and report(best_value, best_bound):
            break
        if state.interrupted or (deadline is not None and time.perf_counter() >= deadline):
            break
        if complete or best_value - best_bound <= tolerance * max(abs(best_value), abs(best_bound)):
            break
        added, threshold = _violators(whole, units, work, regulariser)
        if not added.size:
            if thorough:
                break
            thorough = True  # the set may be complete, but its relaxation was solved roughly
            continue
        thorough = False
        idle = units[np.searchsorted(whole.shape.unit_index, regulariser.shape.unit_index)]
        work = np.union1d(_pruned(work, regulariser, state, idle, threshold), added)
    return Relaxed(x, best_value, best_bound, witness, gains, iterations, state.interrupted)


def _first_set(
    smoothed: SparseRegression,
    form: SparseRegression,
    x: FloatArray,
    rest: IntArray,
    whole: Regulariser,
) -> IntArray:
    """Return the columns to begin with: those with the largest gains, and the start's own."""
    nonzero = np.flatnonzero(x if x.ndim == 1 else np.any(x != 0.0, axis=1))
    _, gradients = _complete(smoothed, x[rest], rest, (), np.empty(0, dtype=np.intp))
    v = np.zeros(form.shape)
    for term, g in zip(form.terms, gradients, strict=True):
        v += term.design.rmatvec(g)
    units, _ = whole.gains(v[rest])
    count = max(10 * form.sparsity.budget, 200)
    chosen = top_k(units, count)
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
    threshold = max(own[k - 1] if 0 < k <= own.size else 0.0, whole.price)
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
) -> tuple[FloatArray, tuple[FloatArray, ...]]:
    """Return the full point with the eliminated coordinates at their best, and the gradients."""
    nonzero = point != 0.0 if point.ndim == 1 else np.any(point != 0.0, axis=1)
    on = np.flatnonzero(nonzero)
    smooth = LossSmooth(form, work[on], free if eliminated.size else ())
    smooth.gradient(point[on], smooth.image(point[on]))
    at = np.zeros(form.shape)
    at[work] = point
    if eliminated.size:
        at[eliminated] = smooth.best_free(point[on])
    return at, smooth.gradients


def _dual_value(
    form: SparseRegression, at: FloatArray, gradients: tuple[FloatArray, ...], v: FloatArray
) -> float:
    """Return ``f(at) - <v, at>``, the constant of the linear minorant there."""
    nonzero = np.flatnonzero(at if at.ndim == 1 else np.any(at != 0.0, axis=1))
    total = form.constant
    for term in form.terms:
        u = term.design.restrict(nonzero).matvec(at[nonzero])
        u = u if term.offset is None else u + term.offset
        total += term.loss.total(u, term.target, term.weights)
    return total - float(np.vdot(v, at))


def _squared(form: SparseRegression) -> bool:
    return all(isinstance(t.loss, Quadratic) for t in form.terms)


def is_smooth(loss: object) -> bool:
    """Return whether Newton's method applies to a loss as it is."""
    return isinstance(loss, TwiceDifferentiable)


__all__ = ["TOLERANCE", "Relaxed", "Report", "is_smooth", "working_set"]
