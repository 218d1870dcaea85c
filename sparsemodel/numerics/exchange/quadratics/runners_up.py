"""The next best supports of a quadratic after one that no exchange improves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.exchange.quadratics.perturbations import places_of, promising
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges
from sparsemodel.numerics.exchange.removal import clear_from
from sparsemodel.numerics.minimisers.few_columns import safe_inverses
from sparsemodel.numerics.support.selection import top_k

_EXCHANGES = 3
"""How many exchanges away supports are, at most."""
_PARENTS, _NUMBERS = 16, 2**18
"""Supports whose exchanges are priced at a time, and numbers of their tables, at most."""
_AGAIN = 16
"""Exchanges that are looked at for each support wanted: others lead to the same ones."""
_EXACT = ((0.2, 0.1), (0.4, 0.3), (0.6, 0.4), (0.8, 0.6), (0.95, 1.0))
"""See :func:`excluding_ratio`. Of 701 random problems with ten observations or more for each unit
(noise, correlated neighbours, factors, blocks, bumps, binary and sparse columns, heavy tails) 594
did not stand out: 150 searches improved one of 243 that end by these pairs, 44 of 351 others; of
908 more that end so, none. Three exchanges together improved none of 282 of these."""
_MODELLED = ((0.8, 0.4), (0.97, 1.0))
"""The same in the model of a loss that is not squared: of 1527 such problems (logistic and Huber
losses) 294 ended by these pairs with 0.2 and three exchanges, and perturbations improved none; of
17 that two exchanges alone would have ended with 0.2 they improved one. They improved 3 of 172 so
left of 506 with Poisson losses, whose second derivatives have no bound."""

_SINGLE_COST, _DOUBLE_COST = 0.05, 0.2
"""What exchanges and double exchanges cost at least, in units of what another coordinate gains, if
no other support is lower by a logistic loss. So it was at all of 919 ends of descents (200 or 60 to
500 rows, 20 to 300 independent, autoregressive, factor or binary columns), and at all but one of
205 with cheaper exchanges; there two or three were made together. With other losses some are lower:
 of 315 ends with Huber losses, 238 with expectiles and 287 with squared hinges 1, 2 and 4."""
_UNBOUNDED = ((0.7, 0.4, 0.7), (0.97, 1.0, 1.0))
"""Correlation up to which, and what exchanges and double exchanges cost at least there, if no other
support is lower by a loss whose second derivatives have no bound. Of 1169 such ends with Poisson,
gamma and Cox losses (100 to 2000 rows, 20 to 200 columns of six kinds, 2 to 12 units, ten rows for
each or more) the rest of the search improved none, of 4921 others 1132; 719 of the former and 3042
of the latter served to choose the pairs."""


def excluding_ratio(correlation: float, *, exact: bool = True) -> float:
    """Return the ratio of costs to gains from which double exchanges exclude better supports.

    The cost of the best double exchange over the most that another coordinate gains, by the largest
    correlation of a member with a coordinate outside; infinite where one can replace the other.
    ``exact`` where the prices are.
    """
    pairs = _EXACT if exact else _MODELLED
    return next((times for most, times in pairs if correlation <= most), np.inf)


def runners_up(here: Exchanges, many: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return ``many`` supports that come next after the only one of ``here``, the best first.

    ``(R, k)`` coordinates, scaled values of their minimisers, and how much higher their minima are:
    a third are the best one exchange away, a third the best others that one exchange leads to from
    those, and a third from these. Of many columns, among those that promise most.
    """
    among = promising(here)
    few, pool = (here, here.columns) if among is None else among
    parents = min(_PARENTS, _NUMBERS // max(1, few.g.size))
    share, batch = -(-many // _EXCHANGES), few
    codes = _codes(few.s.shape[1])
    known, chosen = _names(codes, few.members), few.members[:0]
    for _ in range(_EXCHANGES):
        members, names, _values = _neighbours(batch, codes, known, share)
        chosen, known = np.concatenate([chosen, members]), np.concatenate([known, names])
        if not len(members[:parents]):
            break
        batch = few.tiled(1)
        batch.reset_all(members[:parents])
    supports, w, explained = minimised_in(few, np.sort(chosen[:many], axis=1))
    order = np.argsort(-explained, kind="stable")
    supports, rises = supports[order], 0.5 * (few.explained[0] - explained[order])
    return (supports if pool is None else pool[supports]), w[order], rises


@final
class Comparison:
    """How the only support of a search compares with others; what is asked for is found once."""

    def __init__(self, now: Exchanges) -> None:
        self._now, self._named = now, _named(now)

    def of(self, now: Exchanges) -> bool:
        """Return whether this is about ``now`` as it is."""
        return self._now is now and self._named == _named(now)

    @cached_property
    def best(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the best exchange."""
        return self._now.best()

    @cached_property
    def gain(self) -> float:
        """Return the most that another coordinate gains."""
        return float(self._now.insertions().max())

    @property
    def contrast(self) -> float:
        """Return what the cheapest exchange costs over the most that another coordinate gains."""
        cost = -float(self.best[2][0])
        return cost / self.gain if self.gain > 0.0 else math.inf

    @cached_property
    def correlation(self) -> float:
        """Return the largest correlation of a member with a coordinate outside."""
        members = self._now.coordinates(self._now.members[0])
        correlations = np.abs(self._now.rows.rows(members))
        correlations[:, members] = 0.0
        return float(correlations.max(initial=0.0))

    @property
    def clear(self) -> bool:
        """Return whether no other support is worth looking for.

        Every exchange costs several times what any other coordinate would gain, and no member is so
        correlated with a coordinate outside that one could replace the other.
        """
        if not self._now.size or not self.contrast > clear_from(0.0):
            return False
        return self.contrast > clear_from(self.correlation)

    @cached_property
    def _double_cost(self) -> float:
        return -best_double_exchange(self._now, 0.0).gain

    @property
    def excludes_others(self) -> bool:
        """Return whether double exchanges cost so much that no other support is lower.

        By this model of a loss whose second derivatives are bounded.
        """
        return (
            excluding_ratio(self.correlation, exact=False) * self.gain < self._double_cost < np.inf
        )

    @property
    def excludes_others_logistic(self) -> bool:
        """Return whether exchanges, single and double, cost so much that no other is lower.

        By this model of a logistic loss.
        """
        told = (
            excluding_ratio(self.correlation, exact=False) < np.inf
            and self.contrast >= _SINGLE_COST
        )
        return told and _DOUBLE_COST * self.gain < self._double_cost < np.inf

    @property
    def excludes_others_unbounded(self) -> bool:
        """Return whether exchanges, single and double, cost so much that no other is lower.

        By this model of a loss whose second derivatives have no bound.
        """
        for most, single, double in _UNBOUNDED:
            if self.contrast >= single and self.correlation <= most:
                return double * self.gain < self._double_cost < np.inf
        return False


def _named(now: Exchanges) -> tuple[int, bytes]:
    return now.updates, now.members.tobytes()


@final
@dataclass(frozen=True, slots=True)
class DoubleExchange:
    """Two exchanges together."""

    members: IntArray
    gain: float
    """In units of twice the objective, ``-inf`` if there is none."""
    expensive: bool
    """Whether all that were looked at cost more than asked for."""


def best_double_exchange(here: Exchanges, least: float) -> DoubleExchange:
    """Return the best double exchange of the only support, of those that begin with the best.

    It is ``expensive`` if it costs at least ``least`` times what another coordinate gains. Of many
    columns, among those that promise most.
    """
    least *= float(here.insertions().max())
    among = promising(here)
    few, pool = (here, None) if among is None else among
    parents = min(_PARENTS, _NUMBERS // max(1, few.g.size))
    codes = _codes(few.s.shape[1])
    home, none = few.members[0], np.empty(0, dtype=np.int64)
    members, _names, values = _neighbours(few, codes, none, parents)
    if len(members):
        batch = few.tiled(1)
        batch.reset_all(members)
        members, _names, values = _neighbours(batch, codes, none, 1, home)
    if not values.size:
        return DoubleExchange(here.members[0], -np.inf, expensive=False)
    gain = float(values[0] - few.explained[0])
    places = members[0] if pool is None else places_of(here, pool[members[0]])
    return DoubleExchange(places, gain, expensive=bool(least < -gain < np.inf))


def _neighbours(
    batch: Exchanges, codes: IntArray, known: IntArray, many: int, home: IntArray | None = None
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the best supports one exchange away from those of a batch, their names and values.

    Without those whose names are ``known``, or those no farther from ``home`` than the batch.
    """
    gains = batch.prices()
    np.swapaxes(gains, 1, 2)[np.isinf(batch.s)] = -np.inf  # members, and what no support needs
    if home is not None:
        there = np.zeros(gains.shape[2], dtype=bool)
        there[home] = True
        gains[~there[batch.members]] = -np.inf
        gains[:, :, there] = -np.inf
    values = (batch.explained[:, None, None] + gains).ravel()
    best = top_k(values, _AGAIN * many)
    best = best[np.argsort(-values[best], kind="stable")]
    best = best[np.isfinite(values[best])]
    which, slots, into = np.unravel_index(best, gains.shape)
    members = batch.members[which]
    members[np.arange(len(members)), slots] = into
    names = _names(codes, members)
    fresh = np.sort(np.unique(names, return_index=True)[1])
    if known.size:
        fresh = fresh[~np.isin(names[fresh], known)]
    fresh = fresh[:many]
    return members[fresh], names[fresh], values[best[fresh]]


@lru_cache(maxsize=8)
def _codes(columns: int) -> IntArray:
    """Return numbers of columns whose sums name supports."""
    return np.random.default_rng(0).integers(2**63, size=columns)


def _names(codes: IntArray, members: IntArray) -> IntArray:
    return np.asarray(codes[members].sum(axis=1), dtype=np.int64)


def minimised_in(few: Exchanges, supports: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return supports whose coordinates do not depend on each other, with their minimisers.

    And with what these explain.
    """
    used, places = np.unique(supports, return_inverse=True)
    places = places.reshape(supports.shape)
    coordinates = few.coordinates(used)
    block = few.rows.among(coordinates).rows(np.arange(used.size))
    inside = block[places[:, :, None], places[:, None, :]]
    inverse, safe = safe_inverses(inside, few.guard)
    linear = few.linear[0, coordinates[places]]
    w = (inverse @ linear[:, :, None])[:, :, 0]
    explained = np.einsum("rk,rk->r", linear, w)
    return supports[safe], w[safe], explained[safe]
