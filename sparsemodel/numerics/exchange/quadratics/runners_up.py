"""The next best supports of a quadratic after one that no exchange improves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.exchange.quadratics.perturbations import places_of, promising
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges
from sparsemodel.numerics.minimisers.few_columns import safe_inverses
from sparsemodel.numerics.support.hard_threshold import top_k

_EXCHANGES = 3
"""How many exchanges away supports are, at most."""
_PARENTS, _NUMBERS = 16, 2**18
"""Supports whose exchanges are priced at a time, and numbers of their tables, at most."""
_AGAIN = 16
"""Exchanges that are looked at for each support wanted: others lead to the same ones."""
_FAR = ((0.2, 0.1), (0.4, 0.3), (0.6, 0.4), (0.8, 0.6), (0.95, 1.0))
"""See :func:`far_from`. Of 701 random problems with ten observations for each unit or more (noise,
neighbours that look alike, factors, blocks, bumps, binary and sparse columns, heavy tails) 594 did
not stand out: 150 searches improved one of 243 that end by these pairs, 44 of 351 others; of 908
more that end so, none. Three exchanges together improved none of 282 of these."""
_MODELLED = ((0.8, 0.4), (0.97, 1.0))
"""The same in the model of a loss that is not squared: of 1527 such problems (logistic and Huber
losses) 294 ended by these pairs with 0.2 and three exchanges, and perturbations improved none; of
17 that two exchanges alone would have ended with 0.2 they improved one. They improved 3 of 172 so
left of 506 with Poisson losses, whose second derivatives have no bound."""


def far_from(likeness: float, *, exact: bool = True) -> float:
    """Return how many times what another gains two exchanges cost where no others help.

    By how much members are correlated with those outside at most; infinite where they could stand
    in each other's place. ``exact`` where the prices are.
    """
    pairs = _FAR if exact else _MODELLED
    return next((times for most, times in pairs if likeness <= most), np.inf)


def runners_up(here: Exchanges, many: int) -> tuple[IntArray, FloatArray]:
    """Return ``many`` supports that come next after the only one of ``here``, and their minimisers.

    ``(R, k)`` coordinates and scaled values: a third are the best one exchange away, a third the
    best others that one exchange leads to from those, and a third from these. Of many columns,
    among those that promise most.
    """
    among = promising(here)
    few, pool = (here, here.columns) if among is None else among
    parents = min(_PARENTS, _NUMBERS // max(1, few.g.size))
    share, batch = -(-many // _EXCHANGES), few
    codes = np.random.default_rng(0).integers(2**63, size=few.s.shape[1:])  # sums name supports
    known, chosen = _names(codes, few.members), few.members[:0]
    for _ in range(_EXCHANGES):
        members, names, _values = _neighbours(batch, codes, known, share)
        chosen, known = np.concatenate([chosen, members]), np.concatenate([known, names])
        if not len(members[:parents]):
            break
        batch = few.tiled(1)
        batch.reset_all(members[:parents])
    supports, w = _minimised(few, np.sort(chosen[:many], axis=1))
    return (supports if pool is None else pool[supports]), w


@final
@dataclass(frozen=True, slots=True)
class Leap:
    """Two exchanges together."""

    members: IntArray
    gain: float
    """In units of twice the objective, ``-inf`` where there is no leap."""
    far: bool
    """Whether all that were looked at cost more than asked for."""


def best_leap(here: Exchanges, least: float) -> Leap:
    """Return the best leap from the only support, of those that begin with the best exchanges.

    It is ``far`` if it costs at least ``least`` times what another coordinate gains. Of many
    columns, among those that promise most.
    """
    least *= float(here.insertions().max())
    among = promising(here)
    few, pool = (here, None) if among is None else among
    parents = min(_PARENTS, _NUMBERS // max(1, few.g.size))
    codes = np.random.default_rng(0).integers(2**63, size=few.s.shape[1:])
    home, none = few.members[0], np.empty(0, dtype=np.int64)
    members, _names, values = _neighbours(few, codes, none, parents)
    if len(members):
        batch = few.tiled(1)
        batch.reset_all(members)
        members, _names, values = _neighbours(batch, codes, none, 1, home)
    if not values.size:
        return Leap(here.members[0], -np.inf, far=False)
    gain = float(values[0] - few.explained[0])
    places = members[0] if pool is None else places_of(here, pool[members[0]])
    return Leap(places, gain, far=bool(least < -gain < np.inf))


def _neighbours(
    batch: Exchanges, codes: IntArray, known: IntArray, many: int, home: IntArray | None = None
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the best supports one exchange away from those of a batch, their names and values.

    Without those whose names are ``known``, or those no farther from ``home`` than the batch.
    """
    gains = batch.prices()
    np.swapaxes(gains, 1, 2)[np.isinf(batch.s)] = -np.inf  # members, and what no support needs
    if home is not None:
        inside = np.zeros(codes.size, dtype=bool)
        inside[home] = True
        gains[~inside[batch.members]] = -np.inf
        gains[:, :, inside] = -np.inf
    values = (batch.explained[:, None, None] + gains).ravel()
    best = top_k(values, _AGAIN * many)
    best = best[np.argsort(-values[best], kind="stable")]
    best = best[np.isfinite(values[best])]
    which, slots, into = np.unravel_index(best, gains.shape)
    members = batch.members[which]
    members[np.arange(len(members)), slots] = into
    names = _names(codes, members)
    first = np.sort(np.unique(names, return_index=True)[1])
    fresh = first[~np.isin(names[first], known)][:many]
    return members[fresh], names[fresh], values[best[fresh]]


def _names(codes: IntArray, members: IntArray) -> IntArray:
    return np.asarray(codes[members].sum(axis=1), dtype=np.int64)


def _minimised(few: Exchanges, supports: IntArray) -> tuple[IntArray, FloatArray]:
    """Return supports whose coordinates do not depend on each other, with their minimisers."""
    used, places = np.unique(supports, return_inverse=True)
    places = places.reshape(supports.shape)
    coordinates = few.coordinates(used)
    block = few.rows.among(coordinates).rows(np.arange(used.size))
    inside = block[places[:, :, None], places[:, None, :]]
    inverse, safe = safe_inverses(inside, few.guard)
    w = (inverse @ few.linear[0, coordinates[places]][:, :, None])[:, :, 0]
    return supports[safe], w[safe]
