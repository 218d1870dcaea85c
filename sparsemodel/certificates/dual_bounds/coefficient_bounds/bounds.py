r"""Bounds that the data alone put on the coefficients of every restricted minimiser.

A problem's best points are restricted minimisers. Where all of these are proved to lie in
:math:`-M \le w \le M`, the problem with that box has the same optimal value, and a dual bound for
it is finite without any ridge.

Beside other constraints best points are no such minimisers. There *all* sparse points with at most
the objective ``U`` of a point that is known are bounded, whatever else they satisfy: with :math:`E
= U - \inf P` a step along any coordinates ``I`` of the support lowers the objective by no more, so
that the gradient ``g`` has :math:`g_I^T H_{II}^{-1} g_I \le 2 E`. No feasible point is below the
least of ``U`` and a bound for the problem in the box.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from sparsemodel.certificates.arithmetic.products import matrix_free
from sparsemodel.certificates.arithmetic.rounding import CAUTION, TINY, U
from sparsemodel.certificates.dual_bounds.bound import infimum_bound
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.dual_bounds.coefficient_bounds.eliminated import (
    Eliminated,
    eliminated,
)
from sparsemodel.certificates.dual_bounds.coefficient_bounds.iterate import find
from sparsemodel.certificates.dual_bounds.coefficient_bounds.neighbours import Neighbours
from sparsemodel.certificates.dual_bounds.coefficient_bounds.sweep import MOST, Sweep
from sparsemodel.certificates.dual_bounds.diagonal_shift import LARGE
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.statements.objective_interval import Primal
from sparsemodel.interfaces import Box, FloatArray, SparseRegression

_MOST = 4 * MOST
"""Parts that a row's supports may be divided into when a file is checked."""

_LARGEST_GRAM, _SPEED = 1e13, 5e9
"""Products that a Gram matrix may take, and how many a second is sure to do."""

_COPIES = 100.0
"""Products in the time in which an entry of the Gram matrix is written, copied and scaled."""

_SLACK = 1e-6
"""By how much bounds known from elsewhere are widened, as another machine rounds otherwise."""

_NOTHING = 2.0**-900
"""Room above the infimum that is none: its root is lost beside what others allow for underflow."""


def objection(form: SparseRegression, *, everywhere: bool = False) -> str:
    """Return why there can be no such bounds for ``form``; empty when there may be.

    Where they are for all points at a level, ``everywhere``, other constraints may be anything.
    """
    sparsity, box = form.sparsity, form.box
    if form.matrix:
        return "rows of a matrix are counted"
    if not (form.traits.gram and any(t.traits.square for t in form.terms)):
        return "the losses are not squares"
    if form.region is not None and not everywhere:
        return "there are constraints beside the cardinality"
    if any(matrix_free(t.design) for t in form.terms):
        return "the entries of a matrix-free design cannot be read"
    if sparsity.size > LARGE:
        return f"there are more than {LARGE} coordinates"
    if sparsity.budget < 1 or not sparsity.units:
        return "nothing may be chosen"
    if box is not None and not everywhere:
        low, high = form.ends.lower, form.ends.upper
        if np.any(np.isfinite(low[sparsity.free]) | np.isfinite(high[sparsity.free])):
            return "a coordinate that is always in has bounds"
        counted = sparsity.counted
        if np.any((low[counted] > 0.0) | (high[counted] < 0.0)):
            return "bounds keep counted coordinates away from zero"
    return ""


def from_data(
    form: SparseRegression,
    at_point: Primal,
    *,
    work: float,
    deadline: float | None,
    quadratic: Quadratic | None = None,
    everywhere: bool = False,
) -> CoefficientBounds | str:
    """Return bounds on the coefficients of ``form``'s restricted minimisers, or why none.

    Parameters
    ----------
    form
        The problem.
    at_point
        A point of it; with a ridge its objective bounds the coefficients already.
    work
        Products that may be spent, beside those of the Gram matrix.
    deadline
        When to give up.
    quadratic
        That of the form, where it is known.
    everywhere
        Whether to bound all points with at most the objective of ``at_point`` in place of
        minimisers, which other constraints allow.

    Notes
    -----
    O(n p^2) for the Gram matrix, and ``p^2`` numbers.
    """
    reason = objection(form, everywhere=everywhere)
    if reason:
        return reason
    level, room = _level(form, at_point, everywhere), None
    if everywhere:
        room = _room(form, level) * (1.0 + 1e-9)  # another machine rounds otherwise
        if not math.isfinite(room):
            return "no infimum of the objective is known"
        if room <= _NOTHING:
            return "the objective is at its infimum"
    if quadratic is None and not _affordable(form, deadline):
        return "there is no time for the products of the data"
    # Others may not move the targets to where they are about zero, and round otherwise.
    e = eliminated(form, quadratic, room=room, aim=_aim(form))
    if isinstance(e, str):
        return e
    if room is not None and e.void.size:
        return "a column is zero"
    if not e.counted.size:
        return "no counted column is seen beside the coordinates that are always in"
    e = replace(e, unit=CAUTION * e.unit)  # a check rounds otherwise, and allows for once as much
    found: tuple[FloatArray, Neighbours] | str | None
    found = None if everywhere else _free_of_bounds(form, e, work, deadline)
    if found is None:
        declared = _ceiling(form, e, np.inf) * (1.0 + _SLACK)
        known = _ceiling(form, e, level) * (1.0 + _SLACK)
        found = find(
            e,
            most_coordinates(form),
            declared,
            fallback=known,
            eliminate=everywhere or signs_only(form),
            work=work,
            deadline=deadline,
        )
    if isinstance(found, str):
        return found
    m, neighbours = found
    radius = np.full(form.sparsity.size, np.inf)
    radius[e.counted] = m * e.scale
    if not np.all(radius[e.counted] >= TINY):
        return "the coefficients are too small for bounds on them"
    # Nothing depends on these: at zero they are as good as anywhere.
    radius[e.void] = float(np.median(radius[e.counted])) if e.counted.size else 1.0
    counts = np.zeros(radius.size, dtype=np.int64)
    counts[e.counted] = neighbours.counts
    starts = np.zeros(radius.size + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return CoefficientBounds(
        radius, starts, e.counted[neighbours.index].astype(np.int64), level, room
    )


def fault(form: SparseRegression, bounds: CoefficientBounds, at_point: Primal) -> str:
    """Return what is wrong with ``bounds``, everything computed again; empty when they hold.

    Parameters
    ----------
    form
        The problem.
    bounds
        What is claimed.
    at_point
        A point of the problem, which has to be at the level that is claimed.
    """
    everywhere = bounds.room is not None
    reason = objection(form, everywhere=everywhere)
    if reason:
        return reason
    size = form.sparsity.size
    claimed = Neighbours(bounds.starts, bounds.neighbours)
    if bounds.radius.shape != (size,) or not claimed.valid(size):
        return "the bounds do not fit the problem"
    if not np.all(bounds.radius[form.sparsity.counted] > 0.0):
        return "a bound is not positive"
    if not np.all(bounds.radius[form.sparsity.free] == np.inf):
        return "a coordinate that is always in has a bound"
    if bounds.room is not None and not _room(form, bounds.level) <= bounds.room < math.inf:
        return "the level is further above the infimum"
    if (
        not everywhere
        and math.isfinite(bounds.level)
        and not (form.box is None and not at_point.violations and at_point.upper <= bounds.level)
    ):
        return f"no feasible point with an objective of {bounds.level!r} is known"
    if bounds.neighbours.size and not (everywhere or signs_only(form, bounds.radius)):
        return "neighbours are eliminated although bounds may hold them"
    e = eliminated(form, thorough=True, room=bounds.room)
    if isinstance(e, str):
        return e
    if everywhere and e.void.size:
        return "a column is zero"
    position = np.full(size, -1, dtype=np.int64)
    position[e.counted] = np.arange(e.counted.size)
    if np.any(claimed.counts[position < 0]) or np.any(position[bounds.neighbours] < 0):
        return "a neighbour is no counted coordinate"
    starts = np.zeros(e.counted.size + 1, dtype=np.int64)
    np.cumsum(claimed.counts[e.counted], out=starts[1:])
    neighbours = Neighbours(starts, position[bounds.neighbours])
    if not e.counted.size:
        return ""  # nothing depends on any coordinate
    m = bounds.radius[e.counted] / e.scale
    ceiling = _ceiling(form, e, bounds.level)
    held = Sweep(e, most_coordinates(form), neighbours, None, _MOST).holds(m, ceiling)
    if held is None or not held.all():
        return "the data do not bound the coefficients as it is written"
    return ""


def boxed(form: SparseRegression, bounds: CoefficientBounds) -> SparseRegression:
    """Return ``form`` with the box ``|w| <= radius``: its optimal value is the same.

    Least sizes above that, which may hold a coefficient there, are left out.
    """
    low, high = form.ends.lower, form.ends.upper
    least = None if form.box is None else form.box.least
    if least is not None:
        least = np.where(least <= bounds.radius, least, 0.0)
    box = Box(np.maximum(low, -bounds.radius), np.minimum(high, bounds.radius), least)
    return replace(form, box=box)


def most_coordinates(form: SparseRegression) -> int:
    """Return how many counted coordinates a support may have, in the largest groups."""
    sparsity = form.sparsity
    sizes = np.sort(sparsity.unit_scores(np.ones(sparsity.size)))[::-1]
    return int(sizes[: sparsity.budget].sum())


def signs_only(form: SparseRegression, radius: float | FloatArray = math.inf) -> bool:
    """Return whether bounds on counted coordinates are signs, or none, without least sizes.

    A coordinate that is held at its least size is no equation, as at any other bound. Bounds
    beyond ``radius``, which restricted minimisers without them lie within, hold none.
    """
    if form.box is not None and form.box.least is not None and np.any(form.box.least):
        return False
    counted = form.sparsity.counted
    within = np.broadcast_to(radius, counted.shape)[counted]
    ends = [np.abs(side[counted]) for side in (form.ends.lower, form.ends.upper)]
    return all(bool(np.all((end == 0.0) | np.isinf(end) | (end > within))) for end in ends)


def _free_of_bounds(
    form: SparseRegression, e: Eliminated, work: float, deadline: float | None
) -> tuple[FloatArray, Neighbours] | None:
    """Return what holds without the bounds that are declared, where these lie beyond it all.

    None where they hold minimisers, or where there are no bounds but signs.
    """
    if signs_only(form):
        return None
    radius = np.full(form.sparsity.size, np.inf)
    radius[e.counted] = np.abs(e.linear) / (np.diag(e.gram) + e.ridge) * e.scale
    if not signs_only(form, radius):
        return None  # what a coordinate has by itself is held already
    every = np.full(e.counted.size, np.inf)
    k = most_coordinates(form)
    found = find(e, k, every, fallback=every, eliminate=True, work=work, deadline=deadline)
    if isinstance(found, str):
        return None
    radius[e.counted] = found[0] * e.scale
    return found if signs_only(form, radius) else None


def _aim(form: SparseRegression) -> float:
    """Return the weighted size of the targets of all squared losses."""
    sizes = [0.0]
    for term in form.terms:
        if term.traits.square:
            target, weights = term.squares()
            target = target if term.offset is None else target - term.offset
            sizes.append(float(np.linalg.norm(np.sqrt(weights) * target)))
    return math.hypot(*sizes)


def _affordable(form: SparseRegression, deadline: float | None) -> bool:
    """Return whether there is time for the Gram matrix, and for what copies and scales it."""
    cost = sum(0.5 * t.design.gram_operations for t in form.terms)
    cost += _COPIES * float(form.sparsity.size) ** 2
    left = math.inf if deadline is None else max(0.0, deadline - time.perf_counter())
    return cost <= min(_LARGEST_GRAM, _SPEED * left)


def _level(form: SparseRegression, at_point: Primal, everywhere: bool) -> float:
    """Return an objective that the best points do not exceed; infinite where none is known.

    With bounds on the coordinates points are feasible up to rounding only, and none is known
    that is feasible exactly. That does not matter where it is said of points at a level alone.
    """
    if everywhere:
        return at_point.upper + 1e-9 * abs(at_point.upper)
    ridged = np.all(form.ridge[form.sparsity.counted] > 0.0)
    lowest = infimum_bound(form).value
    if not ridged or form.box is not None or at_point.violations or not math.isfinite(lowest):
        return math.inf
    return at_point.upper + 1e-9 * (at_point.upper - lowest + abs(at_point.upper))


def _room(form: SparseRegression, level: float) -> float:
    """Return by how much a level is above the infimum of the losses, rounded up."""
    return math.nextafter(max(level - infimum_bound(form).value, 0.0), math.inf)


def _ceiling(form: SparseRegression, e: Eliminated, level: float) -> FloatArray:
    """Return what the user's bounds and the ridge say about scaled coefficients, rounded up."""
    low, high = form.ends.lower, form.ends.upper
    out = np.maximum(-low, high)[e.counted] / e.scale
    if math.isfinite(level):
        room = max(level - infimum_bound(form).value, 0.0) * (1.0 + 8.0 * U)
        ridge = form.ridge[e.counted]
        known = np.full(out.size, np.inf)
        on = ridge > 0.0
        # Not the root of the ratio, which underflows long before its root does.
        reach = math.sqrt(2.0 * room) / np.sqrt(ridge[on]) * (1.0 + 16.0 * U) + TINY
        known[on] = reach / e.scale[on]
        out = np.minimum(out, known)
    return out
