"""From data to bounds on all coefficients: iterate, add neighbours where it grows, inflate."""

from __future__ import annotations

import math
import time

import numpy as np

from sparsemodel.certificates.dual_bounds.coefficient_bounds.eliminated import Eliminated
from sparsemodel.certificates.dual_bounds.coefficient_bounds.neighbours import (
    LEVELS,
    Neighbours,
    strongest,
)
from sparsemodel.certificates.dual_bounds.coefficient_bounds.sweep import Sweep, products
from sparsemodel.interfaces import BoolArray, FloatArray

_PASSES, _ROUGH_PASSES = 40, 3
_SLACK, _LITTLE = 0.02, 2e-3
"""Share by which bounds are larger than they have to be, where the columns leave room for it, and
where passes are cheap: what is below need not be divided, and fewer passes are needed."""

_FLOOR = 3e-3
"""What is added to every right-hand side, in units of the median one."""

_LIMIT = 30.0
"""Coefficients in units of what the predictions can be, beyond which an iteration diverges."""

_REFINED = 12
"""Neighbours of a row up to which bounds that are proved are made smaller."""

_SHARE = 0.05
"""Share of the work up to which that begins."""

_WORTH = 0.95
"""The share of the largest bound that is left when it was worth it."""

_LOOKS, _RATE = 2.0, 1.5e9
"""Looks that bounds take for every neighbour of a row, in all passes; products of a second."""

_AMPLE = 1.3
"""Multiple of what the largest column alone can have that is small enough for a bound."""

_CONCERNED = 0.5
"""Rows whose bounds are at least this share of the largest are concerned."""


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
    rate = math.inf if deadline is None else max(0.0, _RATE * (deadline - time.perf_counter()))
    look = _LOOKS * size * products(size)
    most = min(work, rate) / look
    levels = tuple(q for q in LEVELS if q < size and q <= most)
    levels = levels if eliminate and k > 1 else (0,)
    counts, frozen = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool)
    best: tuple[FloatArray, Neighbours] | None = None
    spent, ample = 0.0, _AMPLE * float(np.max(_right(e) / _own(e)))
    while True:
        neighbours = strongest(e.gram, counts)
        start = None if best is None else best[0]
        sweep = Sweep(e, k, neighbours, deadline, work=max(work - spent, 0.0))
        cheap = float(counts.mean()) * look <= _SHARE * work
        slack = _LITTLE if cheap else _SLACK
        found = _fixed_point(e, sweep, ceiling, start, slack=slack, last=False)
        spent += sweep.spent
        if isinstance(found, str):
            return found if best is None else (np.minimum(best[0], fallback), best[1])
        m, proved, failed = found
        if best is not None and not (proved and m.max() <= _WORTH * best[0].max()):
            break
        # A row that fails by itself has neighbours that cannot be eliminated together.
        if np.any(failed & (counts == 0)):
            return "a column has no curvature of its own"
        if proved:
            best = m, neighbours
            more = (m >= _CONCERNED * float(m.max())) & (counts < _REFINED) & ~frozen
            if m.max() <= ample or spent > _SHARE * work:
                break
            counts[more] = [_after(levels, int(q)) for q in counts[more]]
        else:
            frozen |= failed
            more = ~frozen & (counts < levels[-1])
            counts[failed] = [_before(levels, int(q)) for q in counts[failed]]
            counts[more] = levels[-1]
        if not (more.any() or failed.any()) or spent > work:
            break
    known = np.minimum(ceiling, fallback)
    if best is None and np.all(np.isfinite(known)):
        neighbours = Neighbours.none(size)
        sweep = Sweep(e, k, neighbours, deadline)
        found = _fixed_point(e, sweep, known, None, slack=_LITTLE, last=True)
        if not isinstance(found, str) and found[1]:
            best = found[0], neighbours
    if best is None:
        return "the columns are too correlated for bounds on the coefficients from the data"
    return np.minimum(best[0], known), best[1]


def _own(e: Eliminated) -> FloatArray:
    """Return the curvature of every coordinate by itself."""
    return np.maximum(np.diag(e.gram) + e.ridge, 1e-300)


def _right(e: Eliminated) -> FloatArray:
    """Return the largest right-hand side of every coordinate by itself."""
    return np.abs(e.linear) + np.sqrt(e.room * _own(e))


def _after(levels: tuple[int, ...], q: int) -> int:
    return next((level for level in levels if level > q), q)


def _before(levels: tuple[int, ...], q: int) -> int:
    return max((level for level in levels if level < q), default=0)


def _fixed_point(
    e: Eliminated,
    sweep: Sweep,
    ceiling: FloatArray,
    start: FloatArray | None,
    *,
    slack: float,
    last: bool,
) -> tuple[FloatArray, bool, BoolArray] | str:
    """Return bounds, whether they are proved, and the rows that fail whatever the bounds.

    Policy iteration: with the worst case of every row held fixed the bounds solve linear
    equations; then the worst cases are looked for again, until none is above the bounds. With
    ``last`` it stops at the ceiling, which is finite, and not where it grows beyond the limit.
    ``start`` are bounds that hold.
    """
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.rows_compiled import settle

    sizes = _right(e)
    floor = _FLOOR * float(np.median(sizes)) + 1e-9
    m = np.minimum((sizes + floor) / _own(e), ceiling) if start is None else start.copy()
    nobody = np.zeros(m.size, dtype=bool)
    limit = np.inf if last else _LIMIT
    for number in range(_PASSES):
        if number and start is None and sweep.eliminates:
            m = _roughly(sweep, m, ceiling, floor, slack)
        out = sweep(m, floor=floor, slack=0.95 * slack)
        if out is None:
            return "the work they would take is too much"
        failed = np.isinf(out) & (ceiling > m)
        if failed.any() and not last:
            return m, False, failed
        if (number or start is None) and np.all((out < m) | (m >= ceiling)):
            return m, True, nobody
        sweep.shares[failed] = np.inf
        before = m.copy()
        while not settle(m, ceiling, sweep.shares, sweep.others, sweep.factors, slack, limit, 500):
            if slack == 0.0:
                return m, False, nobody
            m, slack = before, 0.0
    return m, False, nobody


def _roughly(
    sweep: Sweep, m: FloatArray, ceiling: FloatArray, floor: float, slack: float
) -> FloatArray:
    """Return the result of an iteration with the neighbours of the worst cases held fixed.

    That is nearly all, for a small part of the cost.
    """
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.rows_compiled import settle

    for _ in range(_ROUGH_PASSES):
        out = sweep(m, floor=floor, slack=0.95 * slack, rough=True)
        found, cases = m.copy(), (sweep.shares, sweep.others, sweep.factors)
        if out is None or not settle(found, ceiling, *cases, slack, _LIMIT, 500):
            break
        m, before = found, m
        if np.all(out < before):
            break
    return m
