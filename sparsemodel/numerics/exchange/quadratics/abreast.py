"""Descents by exchanges from several supports side by side, and walks on from there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges

NEGLIGIBLE = 1e-11
"""A decrease below this fraction of what is explained, or of the objective's range, is rounding."""
NOISES = 10.0
"""A gain below this many times the noise of what leaves is rounding, too."""
_STEPS = 30
"""Exchanges of a walk."""
_OUT, _STAYS = 3, 1.0 / 3.0
"""Steps for which what has left does not come back, at most, and for which what has entered does
not leave, as a share of the support."""


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


def walk_abreast(
    batch: Exchanges, rng: np.random.Generator, over: Callable[[], bool]
) -> tuple[FloatArray, IntArray]:
    """Make the best exchanges of each support, also those that lose; return the best passed.

    What has left does not come back for a few steps, and what has entered does not leave (tabu
    search, Glover, ORSA Journal on Computing 1, 1989). Returns what the best support of each walk
    explains, ``(R,)``, and its members, ``(R, k)``.
    """
    many, p = len(batch.members), batch.s.shape[1]
    every, stays = np.arange(many), max(1, int(_STAYS * batch.size))
    values, supports = batch.explained.copy(), batch.members.copy()
    out, kept = np.zeros((many, p), dtype=np.intp), np.zeros((many, p), dtype=np.intp)
    for step in range(_STEPS):
        gains = batch.prices()
        closed = np.isinf(batch.s)
        closed |= out > step
        np.swapaxes(gains, 1, 2)[closed] = -np.inf
        gains[np.take_along_axis(kept, batch.members, axis=1) > step] = -np.inf
        flat = gains.reshape(many, -1)
        best = np.argmax(flat, axis=1)
        if over() or not np.all(np.isfinite(flat[every, best])):
            break
        slots, into = np.divmod(best, p)
        if batch.fetch(into):
            continue
        out[every, batch.members[every, slots]] = step + 1 + rng.integers(1, _OUT + 1, many)
        kept[every, into] = step + 1 + rng.integers(1, stays + 1, many)
        batch.exchange(slots, into)
        better = batch.explained > values
        values[better], supports[better] = batch.explained[better], batch.members[better]
    return values, supports


def least_gain(search: Exchanges, slots: IntArray) -> FloatArray:
    """Return what the exchange of the member at each slot must gain to be more than rounding.

    Its gain is the difference between what enters and what leaves, each as uncertain as the rows.
    """
    if not search.size:
        return np.full(len(slots), np.inf)
    noise = NOISES * search.rows.noise * search.removals_at(slots)
    return np.maximum(NEGLIGIBLE * search.explained, noise)
