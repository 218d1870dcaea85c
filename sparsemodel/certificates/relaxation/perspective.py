r"""The relaxation for every loss: kinks are rounded off around a dual point that is improved.

With :math:`\ell_\mu` the smoothed loss of a nonsmooth one and a dual point :math:`\bar a`,

.. math:: \ell_\mu(u + \mu \bar a) - \tfrac{\mu}{2} \bar a^2
          = \max_a\ a u - \ell^*(a) - \tfrac{\mu}{2} (a - \bar a)^2

so that the relaxation with the smoothed loss and a shifted offset is a proximal step on the dual.
The dual points of the steps converge to the best one without :math:`\mu` going to zero.
(Rockafellar, *Augmented Lagrangians and applications of the proximal point algorithm in convex
programming*, Math. Oper. Res. 1, 1976.)
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from sparsemodel.certificates.dual_bounds.bound import dual_bound
from sparsemodel.certificates.dual_bounds.gains import budget_price, merged
from sparsemodel.certificates.dual_bounds.unpenalised import unbounded_coordinates
from sparsemodel.certificates.dual_bounds.witness import from_point
from sparsemodel.certificates.relaxation.engine import Relaxed, without_sides, working_set
from sparsemodel.certificates.relaxation.from_files import Models
from sparsemodel.certificates.relaxation.regulariser import (
    Regulariser,
    entrywise,
    objection,
    selected,
)
from sparsemodel.certificates.relaxation.state import TOLERANCE, Report, StoppingRule
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.interfaces import (
    Box,
    Conjugable,
    FloatArray,
    IntArray,
    Knapsack,
    Loss,
    Smoothable,
    SparseRegression,
    Term,
)
from sparsemodel.numerics import top_k

_FIRST, _SHRINK, _LEAST = 0.3, 0.3, 1e-3
"""Smoothing in units of the residuals over the slopes: first, its change, last."""

_ROUNDS = 30
_PRICES, _NARROW, _AT = 9, 1.05, 1e-9
"""Prices that are tried for a budget, the ratio of two that are alike, and the step of a proximal
point that is the point itself."""

_TURNS, _NEAR = 6, 0.1
"""Ridges that are tried in place of bounds on entries, and how little the last one changes."""

_STUCK, _PROGRESS = 4, 0.9
"""So many rounds in a row that leave more than this share of the gap are the last."""

_NOTHING = 1e-8
"""Share of the start's loss below which a relaxation is as good as the losses' infimum."""


def relax(
    form: SparseRegression,
    start: FloatArray,
    *,
    report: Report | None = None,
    deadline: float | None = None,
    tolerance: float = TOLERANCE,
    min_progress: float = 0.0,
    models: Models | None = None,
) -> Relaxed | str:
    """Return the relaxation of ``form`` solved from ``start``, or why it cannot be.

    Where kinks are rounded off, a round that closes less than the share ``min_progress`` of what
    is open between the value of ``start`` and the bound is the last one. ``models`` are what was
    read of files before, of the same losses.
    """
    return _relaxed(form, start, StoppingRule(report, deadline, tolerance, min_progress), models)


def _relaxed(
    form: SparseRegression, start: FloatArray, stopping: StoppingRule, models: Models | None = None
) -> Relaxed | str:
    reason = objection(form, form.ridge)
    if reason:
        return reason

    def solve(form: SparseRegression, start: FloatArray) -> Relaxed | str:
        if entrywise(form):
            return _within_bounds(form, start, stopping)
        if form.sparsity.knapsacks or form.sparsity.crossing:
            return _within_budget(form, start, stopping)
        if form.traits.has_hessian:
            return working_set(form, form, start, stopping, models)
        if not all(t.traits.has_hessian or t.traits.smoothable for t in form.terms):
            return "a loss that is neither smooth nor can be smoothed"
        return _nonsmooth(form, start, stopping)

    return without_sides(form, start, solve, stopping)


def _within_budget(
    form: SparseRegression, start: FloatArray, stopping: StoppingRule
) -> Relaxed | str:
    """Solve the relaxation with a price for costs in place of their budget.

    Its least value is concave in the price, and rises where the shares of its point cost more than
    the budget. Several budgets are merged as at a price of zero.
    """
    knapsack = Knapsack(np.zeros(form.sparsity.units), 0.0)
    rest = np.delete(np.arange(form.sparsity.size), unbounded_coordinates(form))
    nobody, everybody = np.zeros(0, dtype=np.intp), np.arange(form.sparsity.units)
    price, low, high, best, x = 0.0, (0.0, 0.0), (math.inf, 0.0), None, start
    for _ in range(_PRICES):
        other = _priced(form, knapsack, price)
        found = _relaxed(other, x, stopping)
        if isinstance(found, str):
            return found
        x = found.x
        if price == 0.0:
            one = merged(form.sparsity, found.gains, nobody, everybody)
            if one is None:
                return replace(found, value=math.inf)
            knapsack = one
        best = found if best is None or found.bound > best.bound else best
        shares = Regulariser(other, rest, other.ridge).prox(x[rest], _AT)[1]
        over = float(knapsack.costs @ shares) - knapsack.most
        low, high = ((price, over), high) if over > 0.0 else (low, (price, over))
        ended = stopping.over(math.inf, best.bound)
        if found.interrupted or ended or not high[0] > _NARROW * low[0]:
            break
        if price == 0.0:
            price = 0.1 * budget_price(form.sparsity, knapsack, found.gains, nobody, everybody)
        else:
            price = _between(low, high)
        if not 0.0 < price < math.inf:
            break
    return "nothing was tried" if best is None else replace(best, value=math.inf)


def _priced(form: SparseRegression, knapsack: Knapsack, price: float) -> SparseRegression:
    """Return the problem with a price for costs, paid back for all that the budget allows."""
    sparsity = replace(form.sparsity, knapsacks=(), crossing=())
    if price > 0.0:
        prices = np.asarray(sparsity.unit_price + price * knapsack.costs)
        sparsity = replace(sparsity, price=float(prices.min(initial=math.inf)), prices=prices)
    return replace(form, sparsity=sparsity, constant=form.constant - price * knapsack.most)


def _between(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Return a price where a line through what is over the budget, in logarithms, is zero."""
    if math.isinf(high[0]):
        return 8.0 * low[0]
    if low[0] == 0.0:
        return 0.125 * high[0]
    share = min(max(low[1] / (low[1] - high[1]), 0.1), 0.9)
    return low[0] * math.pow(high[0] / low[0], share)


def _within_bounds(
    form: SparseRegression, start: FloatArray, stopping: StoppingRule
) -> Relaxed | str:
    r"""Solve the relaxation with a ridge in place of bounds on the entries of groups.

    With :math:`E_g = \sum_{j \in g} M_j^2`, any :math:`\kappa > 0` and at most ``k`` groups,
    :math:`\sum_{g \in S} (\kappa / E_g) \|w_g\|^2 - k \kappa \le 0` within the bounds. The best
    :math:`\kappa` is half of the mean gain of the ``k`` best groups, which is looked for by turns.
    """
    gains = from_point(form, start)
    known = dual_bound(form, gains.duals, at=start).gains
    share = _mean_of_best(form, known)
    best, most = None, -math.inf
    for _ in range(_TURNS):
        ridged = _ridged(form, share if share > 0.0 else 1.0)
        found = _relaxed(ridged, start if best is None else best.x, stopping)
        if isinstance(found, str):
            return found
        if best is None or found.bound > most:
            best, most = found, found.bound
        following = math.sqrt(share * _mean_of_best(form, found.gains))
        ended = stopping.over(math.inf, most)
        if found.interrupted or ended or abs(following - share) <= _NEAR * share:
            break
        share = following
    # What this relaxation's least value is nobody knows: another ridge has another one.
    return "nothing was tried" if best is None else replace(best, value=math.inf)


def _mean_of_best(form: SparseRegression, gains: FloatArray) -> float:
    """Return half of the mean gain of the best ``k`` units."""
    best = gains[top_k(gains, form.sparsity.budget)]
    return 0.5 * float(best.mean()) if best.size and np.all(np.isfinite(best)) else 0.0


def _ridged(form: SparseRegression, share: float) -> SparseRegression:
    """Return the problem with a ridge for bounds on entries, which lies nowhere above it."""
    box, counted, unit = form.box, form.sparsity.counted, form.sparsity.unit_of
    if box is None:
        return form
    low, high = (side.copy() for side in (box.lower, box.upper))
    reach = np.maximum(-low, high)
    squares = np.square(reach if reach.ndim == 1 else np.sqrt(np.square(reach).sum(axis=1)))
    sizes = np.bincount(unit[counted], weights=squares[counted], minlength=form.sparsity.units)
    more = np.zeros(counted.size)
    more[counted] = 2.0 * share / sizes[unit[counted]]
    low[counted], high[counted] = (
        np.where(end == 0.0, 0.0, np.copysign(np.inf, end)) for end in (low[counted], high[counted])
    )
    return replace(
        form,
        ridge=form.ridge + more,
        box=Box(low, high),
        constant=form.constant - form.sparsity.budget * share,
    )


def _nonsmooth(form: SparseRegression, start: FloatArray, stopping: StoppingRule) -> Relaxed:
    scales = [_scale(form, term, start) for term in form.terms]
    rest = np.delete(np.arange(form.sparsity.size), unbounded_coordinates(form))
    regulariser = Regulariser(form, rest, form.ridge)
    best = Relaxed(start, math.inf, -math.inf, None, np.zeros(regulariser.shape.units), 0)
    centre: Witness | None = None
    mu, before, stuck = _FIRST, math.inf, 0
    lowest = form.infimum()
    top = _value(form, regulariser, rest, start)
    typical = min(top, _value(form, regulariser, rest, np.zeros(form.shape))) - lowest
    for _ in range(_ROUNDS):
        smoothed = _smoothed(form, mu, scales, centre)
        # The constant of the shift is left out: it is the same for all points.
        gap = best.value - best.bound
        share = 0.1 * mu if not math.isfinite(gap) else 0.03 * gap / max(abs(best.value), 1e-300)
        near = 0.3 * stopping.min_progress * (top - max(best.bound, lowest))
        found = working_set(
            form,
            smoothed,
            best.x,
            replace(
                stopping,
                report=partial(_within, near),
                tolerance=max(0.1 * stopping.tolerance, min(share, 1e-2)),
            ),
        )
        value = _value(form, regulariser, rest, found.x)
        bound, gains = -math.inf, best.gains
        if found.witness is not None:
            bound, gains = _bound(form, regulariser, rest, found.witness)
            centre = found.witness
        if value < best.value:
            best = replace(best, x=found.x, value=value)
        idle = max(bound - best.bound, 0.0) < stopping.min_progress * (top - best.bound)
        if bound > best.bound:
            best = replace(best, bound=bound, gains=gains, witness=found.witness)
        done = best.iterations + found.iterations
        best = replace(best, iterations=done, interrupted=found.interrupted)
        if found.interrupted:
            break
        gap = best.value - best.bound
        if stopping.over(best.value, best.bound) or best.exhausted_to(stopping.tolerance):
            break
        nothing = max(_NOTHING, 3.0 * stopping.min_progress)
        if math.isfinite(typical) and best.value - lowest <= nothing * typical:
            break
        stuck = stuck + 1 if gap > _PROGRESS * before else 0
        if stuck == _STUCK or idle:
            break
        if gap > 0.3 * before:
            if mu <= _LEAST * 1e-2:
                break
            mu *= _SHRINK
        before = gap
    return best


def _smoothed(
    form: SparseRegression, mu: float, scales: list[float], centre: Witness | None
) -> SparseRegression:
    """Return the form with its kinks rounded off around a dual point."""
    duals = (None,) * len(scales) if centre is None else centre.duals
    parts = zip(form.terms, scales, duals, strict=True)
    return replace(form, terms=tuple(_around(t, mu * scale, a) for t, scale, a in parts))


def _within(near: float, value: float, bound: float) -> bool:
    """Return whether a value and a bound are as near each other as that."""
    return value - bound <= near


def _around(term: Term, mu: float, centre: FloatArray | None) -> Term:
    """Return the term smoothed around a dual point."""
    if term.traits.has_hessian or not isinstance(term.loss, Smoothable):
        return term
    offset = term.offset
    if centre is not None:
        shift = mu * centre
        offset = shift if offset is None else offset + shift
    return replace(term, loss=term.loss.smoothed(mu), offset=offset)


def _scale(form: SparseRegression, term: Term, x: FloatArray) -> float:
    """Return the size of predictions that matters to a loss: its mean value over its mean slope."""
    largest = 0.0
    for point in (np.zeros(form.shape), x):
        u = term.design.matvec(point)
        u = u if term.offset is None else u + term.offset
        slope = float(np.abs(term.loss.gradient(u, term.target, term.weights)).sum())
        value = term.loss.total(u, term.target, term.weights)
        if slope > 0.0 and math.isfinite(value):
            largest = max(largest, abs(value) / slope)
    return largest if largest > 0.0 else 1.0


def _value(
    form: SparseRegression, regulariser: Regulariser, rest: IntArray, x: FloatArray
) -> float:
    total = form.constant + regulariser.value(x[rest])
    nonzero = np.flatnonzero(x if x.ndim == 1 else np.any(x != 0.0, axis=1))
    for term in form.terms:
        u = term.design.restrict(nonzero).matvec(x[nonzero])
        u = u if term.offset is None else u + term.offset
        total += term.loss.total(u, term.target, term.weights)
    return total


def _bound(
    form: SparseRegression, regulariser: Regulariser, rest: IntArray, witness: Witness
) -> tuple[float, FloatArray]:
    """Return the dual value of a witness in plain floating point, and the gains of the units."""
    total, v = form.constant, np.zeros(form.shape)
    for term, a in zip(form.terms, witness.duals, strict=True):
        if a is None or not (isinstance(term.loss, Conjugable) and isinstance(term.loss, Loss)):
            return -math.inf, np.zeros(regulariser.shape.units)
        slopes = term.weights * a if a.ndim == 1 else term.weights[:, None] * a
        total -= float(term.weights @ term.loss.conjugate(a, term.target))
        total += 0.0 if term.offset is None else float(np.vdot(slopes, term.offset))
        v += term.design.rmatvec(slopes)
    units, free = regulariser.gains(v[rest])
    return total - free - selected(units, form.sparsity.budget, form.sparsity.unit_price), units
