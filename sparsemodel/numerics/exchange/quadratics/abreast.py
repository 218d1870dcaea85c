"""Descents by exchanges from several supports side by side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges

NEGLIGIBLE = 1e-11
"""A gain below this fraction of what the support explains is rounding."""
_NOISES = 10.0
"""A gain below this many times the noise of what leaves is rounding, too."""


def descend_abreast(batch: Exchanges, over: Callable[[], bool]) -> tuple[FloatArray, IntArray]:
    """Make the best exchange of each support until none gains; return values and supports."""
    values, ends = [], []
    for _ in range(10 + 4 * batch.size):
        slots, into, gain = batch.best()
        going = gain > least_gain(batch, slots)
        if over():
            going[:] = False
        if not going.all():
            values.append(batch.explained[~going])
            ends.append(batch.members[~going])
            batch.keep(np.flatnonzero(going))
            if not going.any():
                break
            slots, into = slots[going], into[going]
        if not batch.fetch(into):
            batch.exchange(slots, into)
    return np.concatenate([*values, batch.explained]), np.concatenate([*ends, batch.members])


def least_gain(search: Exchanges, slots: IntArray) -> FloatArray:
    """Return what the exchange of the member at each slot must gain to be more than rounding.

    Its gain is the difference between what enters and what leaves, each as uncertain as the rows.
    """
    if not search.size:
        return np.full(len(slots), np.inf)
    noise = _NOISES * search.rows.noise * search.removals_at(slots)
    return np.maximum(NEGLIGIBLE * search.explained, noise)
