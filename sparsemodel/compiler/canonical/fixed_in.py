"""Counted units that their bounds keep away from zero, which are in every support, or at zero."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsemodel.compiler.canonical.layout import Layout
from sparsemodel.interfaces import Box, Cardinality, InfeasibleError, IntArray, Layer


def without_forced(
    sparsity: Cardinality, box: Box | None, layout: Layout
) -> tuple[Cardinality, float]:
    """Return the cardinality with forced units made free, and what they cost in the objective.

    Zero is within the bounds of every unit that is left to choose. ``k`` stays what was declared.

    Raises
    ------
    InfeasibleError
        When more units are forced than may be nonzero, or than the budget pays for.
    """
    if box is None:
        return sparsity, 0.0
    if sparsity.order is not None:  # what is zero supports nothing
        moving = (box.lower != 0.0) | (box.upper != 0.0)
        moving = moving if moving.ndim == 1 else moving.any(axis=1)
        zero = np.flatnonzero(sparsity.unit_scores(moving.astype(np.float64)) == 0.0)
        sparsity = replace(sparsity, order=sparsity.order.without(zero))
    away = (box.lower > 0.0) | (box.upper < 0.0)
    away = (away if away.ndim == 1 else away.any(axis=1)) & sparsity.counted
    if not away.any():
        return sparsity, 0.0
    units = np.flatnonzero(sparsity.unit_scores(away.astype(np.float64)))
    if units.size > sparsity.k:
        name = layout.names()[int(np.argmax(away))]
        raise InfeasibleError(
            f"The bounds keep {units.size} entries away from zero ({name} is the first), and at "
            f"most {sparsity.k} may be nonzero."
        )
    free = sparsity.coordinates(units)
    groups = sparsity.groups
    if groups is not None:
        mask = np.ones(sparsity.size, dtype=bool)
        mask[free] = False
        codes = np.unique(groups[mask], return_inverse=True)[1]
        groups = np.full(sparsity.size, -1, dtype=np.intp)
        groups[mask] = codes
    forced = np.setdiff1d(free, sparsity.free, assume_unique=True)
    others = np.delete(np.arange(sparsity.units), units)
    order = sparsity.order
    knapsacks = tuple(knapsack.after(units, others) for knapsack in sparsity.knapsacks)
    for knapsack in knapsacks:
        if knapsack.most < 0.0:
            raise InfeasibleError(
                f"The bounds keep {units.size} entries away from zero, whose costs exceed the "
                f"budget by {-knapsack.most:g}."
            )
    order = None if order is None else order.left(units, others, sparsity.units)
    with_them = replace(
        sparsity,
        free=free,
        groups=groups,
        forced=forced,
        forced_units=int(units.size),
        limits=_limits_left(sparsity.limits, units, others),
        crossing=_limits_left(sparsity.crossing, units, others),
        prices=None if sparsity.prices is None else sparsity.prices[others],
        knapsacks=knapsacks,
        order=order,
    )
    if with_them.closing(np.empty(0, dtype=np.intp)) is None:
        raise InfeasibleError(
            f"The bounds keep {units.size} entries away from zero, and what these need beside them "
            f"is more than the {sparsity.k} that may be nonzero, or than limits on parts allow."
        )
    return with_them, sparsity.charge(units)


def _limits_left(
    layers: tuple[Layer, ...], forced: IntArray, others: IntArray
) -> tuple[Layer, ...]:
    """Return what limits on parts leave to the ``others`` beside units that are ``forced``."""
    left = []
    for layer in layers:
        left.append(layer.left(forced, others))
        if np.any(left[-1].most < 0):
            s = int(np.argmin(left[-1].most))
            raise InfeasibleError(
                f"The bounds keep {layer.counts(forced)[s]} entries of a set away from zero, of "
                f"which at most {layer.most[s]} may be nonzero."
            )
    return tuple(left)
