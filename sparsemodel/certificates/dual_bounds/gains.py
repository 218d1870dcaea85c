r"""What the best choice of one coordinate can gain: the functions :math:`h_j` of a dual bound.

:math:`h_j(v) = \max_{l_j \le x \le u_j} -v x - \tfrac{\lambda_j}{2} x^2`, the most that the linear
form and the ridge can fall below zero along coordinate ``j``. Everything is rounded up.
"""

from __future__ import annotations

import math

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import TINY, U, add_up, gamma, up
from sparsemodel.interfaces import BoolArray, Box, Cardinality, FloatArray, IntArray, Knapsack
from sparsemodel.numerics import best_units


def coordinate_gains(
    v: FloatArray, error: FloatArray, ridge: FloatArray, box: Box | None
) -> FloatArray:
    """Return upper bounds on ``h_j`` over ``v_j - error_j .. v_j + error_j``, shape ``(p,)``.

    For a matrix variable the gains of a row's entries are added up. Convex in ``v``, so that the
    largest value is at an end of the interval.
    """
    curvature = ridge if v.ndim == 1 else np.broadcast_to(ridge[:, None], v.shape)
    if box is None:
        reach = up(np.abs(v) + error, 2)
        reach = np.where((v == 0.0) & (error == 0.0), 0.0, reach)
        gains = np.where(reach == 0.0, 0.0, half_square_over(reach, curvature))
    else:
        # An exact zero stays one: coordinates without ridge or bounds gain nothing there.
        exact = (v == 0.0) & (error == 0.0)
        reach = np.where(exact, 0.0, up(error, 2) + 2.0 * U * np.abs(v))
        low = _boxed(v - reach, curvature, box)
        high = _boxed(v + reach, curvature, box)
        gains = np.maximum(low, high)
    return gains if gains.ndim == 1 else _row_sums(gains)


def half_square_over(v: FloatArray, curvature: FloatArray) -> FloatArray:
    r"""Return upper bounds on :math:`v^2 / (2 d)` for ``v >= 0``; infinite where ``d`` is zero.

    Divided by the root of ``d`` before it is squared: the square of a small ``v`` would underflow,
    whose quotient by a small ``d`` is as large as any.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(v == 0.0, 0.0, v / np.sqrt(curvature))
        gains = up(0.5 * np.square(share))
    return np.where(curvature > 0.0, gains, np.inf)


def _boxed(v: FloatArray, curvature: FloatArray, box: Box) -> FloatArray:
    lower, upper = box.lower, box.upper
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        peak = np.where(curvature > 0.0, -v / curvature, np.where(v > 0.0, -np.inf, np.inf))
        peak = np.where((v == 0.0) & (curvature == 0.0), 0.0, peak)
        x = np.clip(peak, lower, upper)
        # In this order nothing overflows that the slope itself does not.
        linear, quadratic = -v * x, 0.5 * (curvature * x) * x
        gains = linear - quadratic + 16.0 * U * (np.abs(linear) + quadratic)
        gains += TINY * (1.0 + np.abs(x))
    gains = np.where(np.isinf(x), np.inf, gains)
    return np.where((x == 0.0) & (lower <= 0.0) & (upper >= 0.0) & (v == 0.0), 0.0, gains)


def _row_sums(gains: FloatArray) -> FloatArray:
    return np.asarray(gains.sum(axis=1) + gamma(gains.shape[1]) * np.abs(gains).sum(axis=1))


def unit_gains(sparsity: Cardinality, gains: FloatArray) -> FloatArray:
    """Return the gains of the counted units, rounded up (infinite ones stay infinite)."""
    units = sparsity.unit_scores(gains)
    if sparsity.groups is None:
        return units
    return np.asarray(units + gamma(sparsity.size) * sparsity.unit_scores(np.abs(gains)))


def forced_units(sparsity: Cardinality, box: Box | None) -> FloatArray:
    """Return 1.0 for every unit that the box keeps away from zero, else 0.0."""
    if box is None:
        return np.zeros(sparsity.units)
    away: BoolArray = np.logical_or(box.lower > 0.0, box.upper < 0.0)
    if away.ndim > 1:
        away = np.any(away, axis=1)
    forced = sparsity.unit_scores(np.asarray(away, dtype=np.float64)) > 0.0
    return forced.astype(np.float64)


def best_selection(units: FloatArray, forced: FloatArray, sparsity: Cardinality) -> float:
    """Return an upper bound on the gain of the best units that are allowed, prices paid.

    Units in ``forced`` are taken whatever they gain, and then limits on parts are left out; of the
    others only those with a profit. Budgets over costs and limits that cross are left out, or
    priced, whichever says more; that units need others is left out.
    """
    must = forced > 0.0
    if must.any() and not sparsity.within(np.flatnonzero(must)):
        return -math.inf
    found = _selected(units, must, sparsity, sparsity.unit_price)
    priced = priced_budget(sparsity, units, np.flatnonzero(must), np.flatnonzero(~must))
    if priced is None:
        return found
    prices, most = priced
    with_budget = _selected(units, must, sparsity, prices) + most
    return min(found, math.nextafter(with_budget, math.inf))


def priced_budget(
    sparsity: Cardinality, gains: FloatArray, inside: IntArray, left: IntArray
) -> tuple[FloatArray, float] | None:
    r"""Return prices with a share of each unit's cost, and what that share is of the budget.

    For :math:`\mu \ge 0` the objective is at least itself and :math:`\mu (c(S) - B)`, which is a
    price for each unit, less :math:`\mu B`; with several budgets the sum of these, and limits that
    cross are budgets with costs of one. Prices are rounded down and the constant up. None where all
    profitable units have room.
    """
    knapsack = merged(sparsity, gains, inside, left)
    multiplier = 0.0 if knapsack is None else budget_price(sparsity, knapsack, gains, inside, left)
    if knapsack is None or multiplier == 0.0:
        return None
    dearer = np.asarray((sparsity.unit_price + multiplier * knapsack.costs) * (1.0 - 8.0 * U))
    most = math.nextafter(multiplier * knapsack.most, math.inf)
    return (dearer, most) if math.isfinite(most) and np.all(np.isfinite(dearer)) else None


def merged(
    sparsity: Cardinality, gains: FloatArray, inside: IntArray, left: IntArray
) -> Knapsack | None:
    r"""Return one budget that all supports keep: the only one, or :math:`\sum_i \mu_i c_i \le
    \sum_i \mu_i B_i` with the multipliers of the linear relaxation.

    Of units ``left`` beside those ``inside``. Costs are rounded down and the budget up. None where
    there is no budget, or the best units keep all of them.
    """
    if not sparsity.crossing and len(sparsity.knapsacks) < 2:
        return sparsity.knapsacks[0] if sparsity.knapsacks else None
    profits = (gains - sparsity.unit_price)[left]
    units, profits = left[profits > 0.0], profits[profits > 0.0]
    rest = sparsity.after(inside, units)
    if rest.k <= 0 or not units.size or not np.all(np.isfinite(profits)):
        return None
    if rest.within(best_units(rest.relaxed(), profits)):
        return None
    budgets = [(one.costs, one.most) for one in sparsity.knapsacks]
    for among, most in sparsity.limited_sets(crossing=True):
        budgets.append((np.bincount(among, minlength=sparsity.units).astype(np.float64), most))
    multipliers = _linear_relaxation(rest, profits / profits.max())
    multipliers *= float(profits.max())
    if not multipliers.any() or not np.all(np.isfinite(multipliers)):
        return None
    costs = np.zeros(gains.size)
    for mu, (one, _) in zip(multipliers, budgets, strict=True):
        costs += mu * one
    total = math.fsum([mu * most for mu, (_, most) in zip(multipliers, budgets, strict=True)])
    many = len(budgets) + 2.0
    return Knapsack(costs * (1.0 - many * U), total * (1.0 + many * U))


def _linear_relaxation(sparsity: Cardinality, profits: FloatArray) -> FloatArray:
    """Return multipliers of the budgets, then of the limits that cross, at shares of units."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    rows, tops = [], []
    for one in sparsity.knapsacks:
        rows.append(csr_array(one.costs[None, :]))
        tops.append(one.most)
    sets = [*sparsity.limited_sets(crossing=True), *sparsity.limited_sets()]
    for among, most in [*sets, (np.arange(profits.size), sparsity.budget)]:
        ends = np.array([0, among.size])
        rows.append(csr_array((np.ones(among.size), among, ends), shape=(1, profits.size)))
        tops.append(most)
    size = np.array([abs(row).max() for row in rows])
    size = np.where(size > 0.0, size, 1.0)
    table = vstack(rows, format="csr") * (1.0 / size)[:, None]
    found = linprog(-profits, A_ub=table, b_ub=np.array(tops) / size, bounds=(0.0, 1.0))
    priced = len(sparsity.knapsacks) + len(sparsity.limited_sets(crossing=True))
    if found.status != 0:
        return np.zeros(priced)
    return np.asarray(np.maximum(-found.ineqlin.marginals / size, 0.0)[:priced])


def budget_price(
    sparsity: Cardinality, knapsack: Knapsack, gains: FloatArray, inside: IntArray, left: IntArray
) -> float:
    """Return the profit per cost at which a budget ends: the continuous knapsack.

    Of units ``left`` beside those ``inside``; 0 where all profitable units have room.
    """
    if sparsity.crossing or len(sparsity.knapsacks) > 1:
        return 1.0  # the merged one has it already
    profits, costs = (gains - sparsity.unit_price)[left], knapsack.costs[left]
    on = np.flatnonzero((profits > 0.0) & (costs > 0.0))
    with np.errstate(over="ignore"):
        worth = profits[on] / costs[on]
    order = np.argsort(-worth, kind="stable")
    over = np.flatnonzero(np.cumsum(costs[on[order]]) > knapsack.left(inside))
    if not over.size or not math.isfinite(worth[order[over[0]]]):
        return 0.0
    return float(worth[order[over[0]]])


def _selected(
    units: FloatArray, must: BoolArray, sparsity: Cardinality, prices: float | FloatArray
) -> float:
    """Return an upper bound on the gain of the best units, less ``prices``."""
    profit = units - prices
    room = sparsity.budget - int(must.sum())
    optional = np.maximum(profit[~must], 0.0)
    if sparsity.limits and optional.size == units.size:
        optional = optional[best_units(sparsity.relaxed(), optional)]
    elif 0 < room < optional.size:
        optional = np.partition(optional, optional.size - room)[optional.size - room :]
    elif room == 0:
        optional = np.zeros(0)
    chosen = np.concatenate([profit[must], optional])
    # One rounding for each subtraction of the price.
    size = float(np.abs(chosen).max(initial=0.0)) if chosen.size else 0.0
    price = float(np.max(prices, initial=0.0))
    slack = 2.0 * U * chosen.size * (size + price) if price > 0.0 else 0.0
    return add_up(chosen) + slack if math.isfinite(size) else math.inf
