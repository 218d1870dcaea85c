r"""Columns that tell little of the others apart: which of them could enter a support together.

Of two columns that are nearly equal, apart from sign and scale, neither gains anything alone where
their difference is what fits. Nor does a column that nearly depends on the support, by the rows
of the Hessian: what is left of it has cancelled there. So the search proposes to add both, or the
one, and computes what that gains from the columns themselves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemodel.interfaces import IntArray
from sparsemodel.numerics.exchange.hessian_rows import HessianRows
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges

_CLOSE = 3e-3
"""Difference of two columns, as a share of them, up to which they are a pair."""
_FEW, _ALIKE = 128, 0.99
"""Columns of which all pairs are compared at once, and the correlation from which one is close."""
_NEIGHBOURS = 8
"""Columns that each is compared with, in the order of one number that pairs nearly share."""
_KNOWN = 16
"""Rows of the Hessian that columns are compared by."""
_PROPOSED = 8
"""Proposals of each kind at most, the most promising first."""
_ROUNDING = 1e-12
"""Difference that is rounding: equal columns are no pair."""


def proposals(search: Exchanges) -> list[IntArray]:
    """Return members that may gain something together where no single change does.

    Parameters
    ----------
    search
        One support, with all columns.
    """
    return _pairs(search) + _dependent(search)


def _dependent(search: Exchanges) -> list[IntArray]:
    """Return columns of which nothing is left by the rows, but part of the residual."""
    left = search.s[0] <= search.guard
    if not left.any():
        return []
    size = np.sqrt(np.einsum("mj,mj->j", search.r[0], search.r[0]))
    fits = size > _ROUNDING * float(np.abs(search.linear).max(initial=0.0))
    found = np.flatnonzero(left & fits)
    best = found[np.argsort(-size[found], kind="stable")][:_PROPOSED]
    return list(best[:, None])


def _any_alike(rows: HessianRows) -> bool:
    """Return whether two of few columns are nearly multiples of each other; True of many."""
    everything = np.arange(rows.size)
    if rows.size > _FEW or not rows.known(everything).all():
        return True
    alike = np.abs(rows.rows(everything)) >= _ALIKE
    return bool(np.count_nonzero(alike) > np.count_nonzero(rows.diagonal))


def _pairs(search: Exchanges) -> list[IntArray]:
    r"""Return pairs of nearly equal columns whose difference may fit the residual.

    Their rows of the Hessian differ by about ``d`` of its entries' size, where ``d`` is the norm of
    the difference of the scaled columns, which so gains about
    :math:`\|r_i \mp r_j\|^2 / d^2`. Where most of these entries are zero, as in sparse data, others
    differ by no more: the rows of those that promise most are read, if several can be at a time.
    """
    if not _any_alike(search.rows):
        return []
    rows = search.g[0, :_KNOWN]
    outside = np.isfinite(search.s[0])
    sizes = np.sqrt(np.mean(np.square(rows[:, outside]), axis=1)) if outside.any() else rows[:, 0]
    rows = rows[sizes > 0.0] / sizes[sizes > 0.0, None]
    if not len(rows):
        return []
    largest = np.argmax(np.abs(rows), axis=0)
    signs = np.sign(rows[largest, np.arange(rows.shape[1])])
    keys = np.cos(np.arange(1.0, len(rows) + 1.0)) @ (signs * rows)  # weights without a pattern
    order = np.argsort(keys)
    order = order[signs[order] != 0.0]
    found: list[tuple[float, int, int]] = []
    for shift in range(1, min(_NEIGHBOURS, len(order) - 1) + 1):
        near = keys[order[shift:]] - keys[order[:-shift]] <= _CLOSE * np.sqrt(len(rows))
        if not near.any():  # nor is any further away
            break
        first, second = order[:-shift][near], order[shift:][near]
        turned = signs[first] * signs[second]
        apart = np.mean(np.square(rows[:, first] - turned * rows[:, second]), axis=0)
        gains = np.square(search.r[0][:, first] - turned * search.r[0][:, second]).sum(axis=0)
        found += [
            (-gains[a] / apart[a], int(first[a]), int(second[a]))
            for a in np.flatnonzero((apart <= _CLOSE**2) & (apart > _ROUNDING**2))
        ]
    pairs = np.array([pair for _, *pair in sorted(found)[:_PROPOSED]], dtype=np.intp).reshape(-1, 2)
    if len(pairs) and search.rows.ahead(pairs[:, 0]):
        entries = search.rows.rows(pairs[:, 0])[np.arange(len(pairs)), pairs[:, 1]]
        pairs = pairs[np.abs(entries) >= _ALIKE]
    return list(pairs)


def first_joined(
    here: Exchanges, most: int, better: Callable[[Exchanges], bool], over: Callable[[], bool]
) -> Exchanges | None:
    """Return the only support with the first of the :func:`proposals` that makes it better."""
    for together in proposals(here):
        if over():
            break
        trial = joined(here, together, most)
        if trial.size <= most and better(trial):
            return trial
    return None


def joined(here: Exchanges, together: IntArray, most: int) -> Exchanges:
    """Return the only support with the coordinates ``together``, of ``most`` members if it can be.

    Others that cost least leave one by one.
    """
    members, trial = np.union1d(here.members[0], together), here.tiled(1)
    while True:
        trial.reset(members)
        if trial.size < len(members) or len(members) <= most:
            return trial
        costs = trial.removals()[0]
        costs[np.isin(members, together)] = np.inf
        if not np.isfinite(costs.min()):
            return trial
        members = np.delete(members, int(np.argmin(costs)))
