"""Copies of a support with some of the members replaced at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.exchange.quadratics.abreast import descend_abreast, walk_abreast
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges
from sparsemodel.numerics.support.selection import top_k

_PROMISING = 50
"""Coordinates that a perturbation draws from."""
_BESIDE, _WIDER, _MANY = 16, 48, 512
"""Coordinates that promise most in place of each member, beside which others are left out of the
first searches and of later ones, and how many there must be."""
_REPLACED = 2.0 / 3.0
"""Share of a support that a perturbation replaces at most. With a third, searches as long missed
the best known point of 16 of 169 problems with coherent columns, with two thirds of one."""


def promising(here: Exchanges, *, wider: bool = False) -> tuple[Exchanges, IntArray] | None:
    """Return the only support among the columns that promise most, and these columns.

    Those that gain most alone or in place of a member, known by their places; ``wider`` takes more
    of them. None where there are few others. Their own matrix alone is formed where that is cheap.
    """
    beside = _WIDER if wider else _BESIDE
    if here.s.shape[1] <= max(_MANY, beside * here.size) or here.size < 2:
        return None
    gains = here.prices()[0]
    many = gains.shape[1]
    instead = np.argpartition(gains, many - beside, axis=1)[:, -beside:]
    alone = top_k(here.insertions()[0], _PROMISING)
    places = np.unique(np.concatenate([here.members[0], alone, instead.ravel()]))
    pool = here.coordinates(places)
    if here.rows.ahead(pool):
        few = Exchanges(here.rows.among(pool), np.ascontiguousarray(here.linear[:, pool]))
    else:
        few = Exchanges(here.rows, here.linear, pool)
    few.reset(np.searchsorted(places, here.members[0]))
    return (few, pool) if few.size == here.size else None


def places_of(here: Exchanges, coordinates: IntArray) -> IntArray:
    """Return the positions of coordinates in the search's columns."""
    return coordinates if here.columns is None else np.searchsorted(here.columns, coordinates)


def completed(here: Exchanges, ends: IntArray) -> Exchanges:
    """Return supports of some columns, ``(R, k)`` coordinates, each once, with all columns."""
    ends = np.unique(ends, axis=0)
    batch = here.tiled(1)
    batch.reset_all(places_of(here, ends))
    return batch if len(batch.members) else here.tiled(1)


def searched(
    here: Exchanges,
    rng: np.random.Generator,
    copies: int,
    over: Callable[[], bool],
    *,
    walking: bool,
) -> tuple[FloatArray, IntArray]:
    """Return where searches from perturbed copies of the only support end, or come ``walking``."""
    starts = perturbed(here, rng, copies)
    return walk_abreast(starts, rng, over) if walking else descend_abreast(starts, over)


def perturbed(here: Exchanges, rng: np.random.Generator, copies: int) -> Exchanges:
    """Return copies of the only support with some of the members replaced at random.

    An empty one, where no coordinate gains anything, has nothing to be replaced.
    """
    if not here.size:
        return here.tiled(copies)
    most = max(1, int(_REPLACED * here.size))
    times = np.sort(rng.integers(1, most + 1, copies))[::-1]
    batch = here.tiled(copies)
    for step in range(int(times[0]), 0, -1):
        _replace(batch.first(int(np.sum(times >= step))), here.members[0], rng)
    return batch


def _replace(batch: Exchanges, original: IntArray, rng: np.random.Generator) -> None:
    """Replace a random member of ``original`` in each support, by one that is promising."""
    every = np.arange(len(batch.members))
    left = batch.members == original  # slots keep their members until they are replaced
    slots = np.argmax(rng.random(left.shape) * left, axis=1)
    gains = batch.insertions_without(slots)
    gains[every[:, None], original] = 0.0
    many = min(_PROMISING, gains.shape[1])
    best = np.argpartition(-gains, many - 1, axis=1)[:, :many]
    sums = np.cumsum(gains[every[:, None], best], axis=1)
    drawn = np.sum(sums < rng.random((len(every), 1)) * sums[:, -1:], axis=1)
    into = best[every, np.minimum(drawn, many - 1)]
    # Where nothing else is of use, the member stays.
    into = np.where(gains[every, into] > 0.0, into, batch.members[every, slots])
    batch.fetch(into)
    batch.exchange(slots, into)
