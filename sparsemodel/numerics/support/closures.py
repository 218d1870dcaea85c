"""Selection where units may be nonzero only beside others."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from sparsemodel.interfaces import Cardinality, FloatArray, IntArray, Order

_DEEPEST = 50
"""Requirements of requirements that are followed."""


def bundles(order: Order, scores: FloatArray, inside: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the score and the size of each unit with all that it needs beside ``inside``.

    Of several parents the one that adds most. What two parents need alike counts twice. Units that
    nothing can support score ``-inf``; those inside score 0 and add nothing.
    """
    size = scores.size
    own, one = np.append(scores, (-np.inf, 0.0)), np.append(np.ones(size), (0.0, 0.0))
    own[inside] = one[inside] = 0.0
    real = (order.child >= 0) & (one[order.child] > 0.0)
    child, parents = order.child[real], order.parents[real]
    total, many = own, one
    for _ in range(_DEEPEST):
        best = np.argmax(total[parents], axis=1)
        best = parents[np.arange(best.size), best]
        following, count = own.copy(), one.copy()
        np.add.at(following, child, total[best])
        np.add.at(count, child, many[best])
        if np.array_equal(following, total):
            break
        total, many = following, count
    return total[:size], many[:size]


def best_closed(
    sparsity: Cardinality, scores: FloatArray, k: int, begun: IntArray | None = None
) -> IntArray:
    """Return sorted units with large ``scores`` that may be nonzero together, ``k`` at most.

    Greedy: the unit that brings most for each unit that it needs, until none fits. Ties go to the
    lower index. To choose the best is as hard as to find the densest part of a graph.
    """
    order = sparsity.order
    if order is None:
        raise ValueError("there is nothing that units need")
    limit = replace(sparsity, k=k + sparsity.forced_units)
    begun = np.empty(0, np.intp) if begun is None else begun
    chosen = order.closure(begun, scores)
    if not limit.within(chosen):
        fewer = limit.closing(begun, scores)
        chosen = chosen if fewer is None else fewer
    barred = np.zeros(scores.size, dtype=bool)
    while chosen.size < min(k, scores.size):
        total, many = bundles(order, scores, chosen)
        many[chosen] = np.inf
        worth = np.where(barred | (many > k - chosen.size), -np.inf, total / many)
        unit = int(np.argmax(worth))
        if worth[unit] == -np.inf:
            break
        more = order.closure(np.append(chosen, unit), scores)
        if limit.within(more):
            chosen = more
        else:
            barred[unit] = True
    return chosen


def closed_changes(
    sparsity: Cardinality,
    units: IntArray,
    costs: FloatArray,
    gains: FloatArray,
    swaps: FloatArray,
    most: int,
) -> list[IntArray]:
    """Return the ``most`` most promising changes of ``units`` that are allowed, best first.

    A unit enters with all that it needs, alone or in the place of one that leaves with all that
    needs it; where that is too many, the cheapest leave as well. With prices, units leave alone.

    Parameters
    ----------
    costs
        What each of ``units`` costs when it leaves, its price taken off.
    gains
        What each unit gains when it enters, its price taken off; shape ``(units,)``.
    swaps
        The same in the place of one of ``units``; shape ``(len(units), units)``.
    """
    order = sparsity.order
    if order is None:
        raise ValueError("there is nothing that units need")
    cost = np.zeros(gains.size)
    cost[units] = costs
    proposed: list[tuple[float, IntArray, int | None]] = []

    def propose(base: IntArray, unit: int | None, score: float) -> None:
        proposed.append((score, base, unit))

    total, many = bundles(order, gains, units)
    for values in (total, total / np.maximum(many, 1.0)):
        for unit in _largest(values, units, most):
            propose(units, unit, float(total[unit]))
    for place, leaving in enumerate(units.tolist()):
        others = np.delete(units, place)
        base = order.largest_closed(others)
        lost = float(cost[np.setdiff1d(units, base)].sum())
        propose(base, None, -lost)
        score, _ = bundles(order, gains, base)
        score = score - gains + swaps[place] - (lost - cost[leaving])
        for unit in _largest(score, units, 2):
            propose(base, unit, float(score[unit]))
        for unit in _largest(
            np.where(order.addable(others, gains.size), swaps[place], -np.inf), units, 2
        ):
            propose(others, unit, float(swaps[place, unit]))
    return _allowed(sparsity, units, cost, gains, proposed, most)


def _allowed(
    sparsity: Cardinality,
    units: IntArray,
    cost: FloatArray,
    gains: FloatArray,
    proposed: list[tuple[float, IntArray, int | None]],
    most: int,
) -> list[IntArray]:
    """Return the best of what is ``proposed``, with all that it needs and without what is too many.

    Each with what it scores as long as no more has to leave, some units, and one that joins them.
    """
    order = cast("Order", sparsity.order)
    costly = bool(cost[units].min(initial=0.0) >= 0.0)  # then more that leaves is no better
    found: dict[bytes, tuple[float, IntArray]] = {}
    least = 0.0 if costly else -np.inf
    for score, base, unit in sorted(proposed, key=lambda one: -one[0]):
        if score <= least:
            break
        new = base if unit is None else order.closure(np.append(base, unit), gains)
        if unit is not None:
            new, score = _trimmed(sparsity, new, unit, cost, score, least)
        if sparsity.within(new) and not np.array_equal(new, units):
            found.setdefault(new.tobytes(), (score, new))
            if costly and len(found) >= most:
                least = max(0.0, sorted(one[0] for one in found.values())[-most])
    ranked = sorted(found.values(), key=lambda one: -one[0])
    return [new for score, new in ranked[:most] if score > 0.0]


def _largest(values: FloatArray, units: IntArray, most: int) -> list[int]:
    """Return the units outside of ``units`` with the largest finite values, largest first."""
    values = values.copy()
    values[units] = -np.inf
    order = np.argsort(-values, kind="stable")[:most]
    return [int(unit) for unit in order if values[unit] > -np.inf]


def _trimmed(
    sparsity: Cardinality,
    units: IntArray,
    kept: int,
    cost: FloatArray,
    score: float,
    least: float,
) -> tuple[IntArray, float]:
    """Return ``units`` without the cheapest that nothing else needs, until they are few enough.

    Or until they score no more than the ``least`` that is of use.
    """
    order = sparsity.order
    while units.size > sparsity.budget and order is not None and score > least:
        free = np.flatnonzero((units != kept) & order.removable(units))
        if not free.size:
            break
        place = free[np.argmin(cost[units[free]])]
        score -= float(cost[units[place]])
        units = np.delete(units, place)
    return units, score
