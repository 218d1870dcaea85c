"""From data to bounds on all coefficients: iterate, add neighbours where it grows, inflate."""

from __future__ import annotations

import numpy as np

from sparsemodel.certificates.dual_bounds.coefficient_bounds.eliminated import Eliminated
from sparsemodel.certificates.dual_bounds.coefficient_bounds.neighbours import (
    LEVELS,
    MOST_SUBSETS,
    Neighbours,
    products,
    strongest,
    subsets,
)
from sparsemodel.certificates.dual_bounds.coefficient_bounds.sweep import Sweep
from sparsemodel.interfaces import BoolArray, FloatArray, IntArray

_PASSES = 40
_INFLATION = 1e-6
_SHRINKAGE = 0.01
_LIMIT = 30.0
"""Coefficients in units of what the predictions can be, beyond which an iteration diverges."""

_REFINEMENTS = 8
"""How often neighbours are added to bounds that are proved, to make the largest smaller."""

_SHARE = 0.3
"""Share of the work up to which refinements begin."""

_WORTH = 0.97
"""The share of the largest bound that is left when a refinement was worth it."""

_REFINED = 0.5

_STRONG = 0.3
"""Correlations that are eliminated as soon as diagonal dominance alone fails."""

_CONCERNED = 0.2
"""Rows whose bounds grow to this share of the largest get more neighbours."""


def find(
    e: Eliminated,
    k: int,
    ceiling: FloatArray,
    *,
    fallback: FloatArray,
    eliminate: bool,
    work: float,
    deadline: float | None,
) -> tuple[FloatArray, Neighbours] | str:
    """Return scaled bounds with the neighbours that prove them, or why there are none.

    Parameters
    ----------
    e
        The quadratic in the counted coordinates.
    k
        Largest number of nonzeros, at least 1.
    ceiling
        Bounds that the problem declares (infinite for none).
    fallback
        Bounds known from elsewhere, to start from where the data alone give none.
    eliminate
        Whether neighbours may be eliminated.
    work
        Products that may be spent; a thousand million of them take a second or less.
    deadline
        When to give up.
    """
    size = e.counted.size
    if not size:  # nothing depends on any coordinate
        return np.zeros(0), Neighbours.none(0)
    levels = _levels(size, k) if eliminate else (0,)
    counts, frozen = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool)
    best: tuple[FloatArray, Neighbours] | None = None
    spent, gained, first = 0.0, 0, True
    while gained <= _REFINEMENTS:
        neighbours = strongest(e.gram, counts)
        start = None if best is None else best[0]
        sweep = Sweep(e, k, neighbours, deadline)
        found = _fixed_point(e, sweep, ceiling, start, last=False)
        if isinstance(found, str):
            return found if best is None else (np.minimum(best[0], fallback), best[1])
        m, proved, failed = found
        if proved:
            if best is not None and m.max() > _WORTH * best[0].max():
                break
            best, gained = (m, neighbours), gained + 1
        # A row that fails by itself has neighbours that cannot be eliminated together.
        if np.any(failed & (counts == 0)):
            return "a column has no curvature of its own"
        frozen |= failed
        counts[failed] = [_before(levels, int(q)) for q in counts[failed]]
        share = _REFINED if proved else _CONCERNED
        more = ~frozen & (m >= share * float(m.max())) & (counts < levels[-1])
        if not (more.any() or failed.any()):
            more = ~frozen & (counts < levels[-1]) & (best is None)
        counts[more] = [_after(levels, int(q)) for q in counts[more]]
        if first and not proved:
            counts = np.maximum(counts, _strong(e, levels))
        first = False
        spent += products(counts, k)
        if not (more.any() or failed.any()) or spent > (work if best is None else _SHARE * work):
            break
    known = np.minimum(ceiling, fallback)
    if best is None and np.all(np.isfinite(known)):
        neighbours = Neighbours.none(size)
        found = _fixed_point(e, Sweep(e, k, neighbours, deadline), known, None, last=True)
        if not isinstance(found, str) and found[1]:
            best = found[0], neighbours
    if best is None:
        return "the columns are too correlated for bounds on the coefficients from the data"
    return np.minimum(best[0], known), best[1]


def _strong(e: Eliminated, levels: tuple[int, ...]) -> IntArray:
    """Return for every row how many neighbours are strongly correlated with it, as a level."""
    counts = np.array([int(np.sum(np.abs(row) >= _STRONG)) - 1 for row in e.gram])
    places = np.searchsorted(np.array(levels), counts, side="right") - 1
    return np.asarray(np.array(levels, dtype=np.int64)[np.maximum(places, 0)])


def _levels(size: int, k: int) -> tuple[int, ...]:
    return tuple(q for q in LEVELS if q < size and subsets(q, k - 1) <= MOST_SUBSETS)


def _after(levels: tuple[int, ...], q: int) -> int:
    return next((level for level in levels if level > q), q)


def _before(levels: tuple[int, ...], q: int) -> int:
    return max((level for level in levels if level < q), default=0)


def _fixed_point(
    e: Eliminated, sweep: Sweep, ceiling: FloatArray, start: FloatArray | None, *, last: bool
) -> tuple[FloatArray, bool, BoolArray] | str:
    """Return bounds, whether they are proved, and the rows that fail whatever the bounds.

    Policy iteration: with the worst case of every row held fixed the bounds solve linear
    equations; then the worst cases are looked for again. With ``last`` it stops at the ceiling,
    which is finite, and not where it grows beyond the limit. ``start`` are bounds that hold.
    """
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.rows_compiled import settle

    sizes = np.abs(e.linear)
    floor = 1e-3 * float(np.median(sizes)) + 1e-9
    own = np.maximum(np.diag(e.gram) + e.ridge, 1e-300)
    m = np.minimum((sizes + floor) / own, ceiling) if start is None else start.copy()
    nobody = np.zeros(m.size, dtype=bool)
    limit = np.inf if last else _LIMIT
    settled = False
    for _ in range(_PASSES):
        if settled:
            m = np.minimum(m, ceiling) * (1.0 + _INFLATION)
        out = sweep(m, floor=0.0 if settled else floor, fresh=settled)
        if out is None:
            return "time was up"
        failed = np.isinf(out) & (ceiling > m)
        if failed.any() and not last:
            return m, False, failed
        if settled and np.all((out < m) | (m >= ceiling)):
            return m, True, nobody
        change = np.where(m < ceiling, out / m, 1.0)
        # From above every pass shrinks the bounds; the last digits are not worth one.
        small = start is None or float(change.min(initial=1.0)) >= 1.0 - _SHRINKAGE
        settled = small and float(change.max(initial=1.0)) <= 1.0 + 0.1 * _INFLATION
        if settled:
            continue
        if not settle(m, ceiling, sweep.shares, sweep.others, sweep.factors, limit, 500):
            return m, False, nobody
    return m, False, nobody


__all__ = ["find"]
