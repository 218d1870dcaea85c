"""The best approximation of a sequence by steps, by dynamic programming."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast, final

import numpy as np

from sparsemodel.designs import StepsDesign, TransformedDesign
from sparsemodel.interfaces import FloatArray, Form, IntArray, Piecewise, SparseRegression, Term

_PRUNED_EVERY = 16
"""Entries after which beginnings that can lead nowhere are left out."""
_ROUNDING = 1e-9
"""Share of the costs by which a beginning must be worse to be left out."""
_WORK = 1e9
"""Costs of segments that are looked at, at most: about ten seconds."""
_ENTRIES = 2**24
"""Entries of a table of sums at kinks, at most (128 MB)."""


class SegmentCosts(Protocol):
    """What a segment costs where its level is the best one."""

    @property
    def size(self) -> int:
        """Return how many entries the sequence has."""

    @property
    def whole(self) -> float:
        """Return a size of costs, which rounding errors are small relative to."""

    def to(self, end: int, begins: IntArray) -> FloatArray:
        """Return the costs of the segments of entries ``begin .. end - 1``, one for each begin."""


@final
class SquareCosts:
    r"""Costs :math:`\min_v \tfrac12 \sum_i c_i (y_i - v)^2` of segments, from running sums."""

    def __init__(self, y: FloatArray, weights: FloatArray) -> None:
        total = float(weights.sum())
        y = y - (float(weights @ y) / total if total > 0.0 else 0.0)
        self._w, self._s, self._q = (
            np.concatenate([[0.0], np.cumsum(part)])
            for part in (weights, weights * y, 0.5 * weights * y * y)
        )

    @property
    def size(self) -> int:
        """Return how many entries the sequence has."""
        return self._w.size - 1

    @property
    def whole(self) -> float:
        """Return the cost of all entries in one segment."""
        return float(self._q[-1])

    def to(self, end: int, begins: IntArray) -> FloatArray:
        """Return the costs of the segments of entries ``begin .. end - 1``."""
        weight, total = self._w[end] - self._w[begins], self._s[end] - self._s[begins]
        explained = np.zeros(begins.size)
        np.divide(0.5 * total * total, weight, out=explained, where=weight > 0.0)
        return np.asarray(np.maximum(self._q[end] - self._q[begins] - explained, 0.0))


@final
class PiecewiseCosts:
    r"""Costs :math:`\min_v \sum_i c_i \ell(v + o_i; y_i)` of segments for losses of pieces.

    The sum is piecewise linear, or piecewise quadratic with a continuous slope. Its value and its
    slope to the right of every knot ``v_r`` are tabulated for all beginnings of the sequence, so
    that those of a segment are differences of two rows. Slopes rise with ``r``: the first that is
    not negative is found by bisection, and the minimum is there, or on the parabola before it.

    ``O(n^2)`` numbers are held and a segment costs ``O(log n)``.
    """

    def __init__(self, term: Term) -> None:
        loss = cast("Piecewise", term.loss)
        self._soft, offset = loss.softness, 0.0 if term.offset is None else term.offset
        on = np.flatnonzero(term.weights > 0.0)
        parts = [(t - offset, low, high) for t, low, high in loss.pieces(term.target)]
        ends = [t[on] + self._soft * end[on] for t, low, high in parts for end in (low, high)]
        self._knots = np.unique(np.concatenate(ends)) if on.size else np.zeros(1)
        shape = (term.target.size + 1, self._knots.size)
        self._values, self._slopes = np.zeros(shape), np.zeros(shape)
        for t, low, high in parts:
            reach = self._knots - t[:, None]
            if self._soft > 0.0:
                slope = np.clip(reach / self._soft, low[:, None], high[:, None])
            else:
                slope = np.where(reach >= 0.0, high[:, None], low[:, None])
            c = term.weights[:, None]
            self._values[1:] += c * slope * (reach - 0.5 * self._soft * slope)
            self._slopes[1:] += c * slope
        np.cumsum(self._values, axis=0, out=self._values)
        np.cumsum(self._slopes, axis=0, out=self._slopes)

    @staticmethod
    def fits(term: Term) -> bool:
        """Return whether a term's loss has pieces, and its tables room."""
        if not isinstance(term.loss, Piecewise) or term.target.ndim > 1:
            return False
        knots = len(term.loss.pieces(term.target)) * (2 if term.loss.softness > 0.0 else 1)
        return knots * term.target.size**2 <= _ENTRIES

    @property
    def size(self) -> int:
        """Return how many entries the sequence has."""
        return self._values.shape[0] - 1

    @property
    def whole(self) -> float:
        """Return the largest cost of all entries at a knot."""
        return float(self._values[-1].max())

    def to(self, end: int, begins: IntArray) -> FloatArray:
        """Return the costs of the segments of entries ``begin .. end - 1``."""
        values, slopes, last = self._values, self._slopes, self._knots.size - 1
        low, high = np.zeros(begins.size, dtype=np.intp), np.full(begins.size, last)
        while np.any(low < high):  # the first slope that is not negative is in low .. high
            middle = (low + high) // 2
            falls = slopes[end, middle] < slopes[begins, middle]
            low, high = np.where(falls, middle + 1, low), np.where(falls, high, middle)
        costs = values[end, low] - values[begins, low]
        if self._soft > 0.0:
            before = np.maximum(low - 1, 0)
            fall = slopes[end, before] - slopes[begins, before]
            rise = slopes[end, low] - slopes[begins, low]
            inner = (fall < 0.0) & (rise > 0.0)
            gap = self._knots[low] - self._knots[before]
            share = np.divide(fall * fall, rise - fall, out=np.zeros(low.size), where=inner)
            there = values[end, before] - values[begins, before] - 0.5 * gap * share
            costs = np.where(inner, np.minimum(there, costs), costs)
        return np.asarray(np.maximum(costs, 0.0))


def as_sequence(form: Form) -> tuple[FloatArray, FloatArray] | None:
    """Return a sequence and its weights where ``form`` is their best approximation by steps.

    One squared loss of the entries of a variable whose jumps are counted, and nothing else: no
    ridge, no bounds, no constraints. None for any other form, and where there is too much to do.
    """
    term = _steps_of(form)
    if term is None or not term.traits.square:
        return None
    centre, weights = term.squares()
    return centre if term.offset is None else centre - term.offset, weights


def costs_of_segments(form: Form) -> SegmentCosts | None:
    """Return the costs of the segments of a sequence whose jumps are counted.

    As for :func:`as_sequence`, and for losses of pieces (absolute, quantile, Huber, hinge). None
    for any other form.
    """
    sequence, term = as_sequence(form), _steps_of(form)
    if sequence is not None:
        return SquareCosts(*sequence)
    return PiecewiseCosts(term) if term is not None and PiecewiseCosts.fits(term) else None


def is_of_segments(form: Form) -> bool:
    """Return whether ``form`` has :func:`costs_of_segments`, without computing them."""
    term = _steps_of(form)
    return term is not None and (term.traits.square or PiecewiseCosts.fits(term))


def _steps_of(form: Form) -> Term | None:
    """Return the only term of a form that counts the jumps of a sequence, and does nothing else."""
    if not isinstance(form, SparseRegression) or len(form.terms) != 1 or form.constrained:
        return None
    (term,), sparsity = form.terms, form.sparsity
    design = term.design
    while isinstance(design, TransformedDesign) and design.only_scaled:
        design = design.inner
    if not isinstance(design, StepsDesign) or form.matrix:
        return None
    n = design.shape[0]
    plain = sparsity.groups is None and sparsity.plain and not sparsity.forced_units
    if not plain or sparsity.free.tolist() != [n - 1] or np.any(form.ridge):
        return None
    return None if min(sparsity.budget, n) * n * n > _WORK else term


def best_segments(
    costs: SegmentCosts,
    jumps: int,
    *,
    price: float = 0.0,
    over: Callable[[], bool] | None = None,
) -> IntArray | None:
    r"""Return where the best step function with at most ``jumps`` jumps has them.

    It minimises the sum of the costs of its segments and ``price`` for each jump: a jump ``j`` lies
    between the entries ``j`` and ``j + 1``. With :math:`C_m(j)` the least cost of the first
    ``j`` entries in ``m`` segments and :math:`c(i, j)` that of one segment,

    .. math:: C_{m+1}(j) = \min_{i < j} C_m(i) + c(i, j).

    A beginning ``i`` is left out for ``m`` once :math:`C_m(i) + c(i, j) \ge C_m(j)`, as a segment
    from ``j`` on then serves all later ends as well: one long segment costs no less than its parts.

    Parameters
    ----------
    costs
        Those of the segments of ``n`` entries.
    jumps
        How many there may be.
    price
        What each adds to the objective.
    over
        Asked now and then whether to give up.

    Returns
    -------
    places
        Sorted; None when ``over`` said so.

    Notes
    -----
    At most :math:`O(k n^2)`, vectorised over segments and beginnings; far less where jumps stand
    out.

    Examples
    --------
    >>> import numpy as np
    >>> best_segments(SquareCosts(np.array([1.0, 1.1, 0.9, 5.0, 5.1]), np.ones(5)), 1)
    array([2])
    """
    n = costs.size
    segments = min(jumps, n - 1) + 1
    least = np.full((segments, n + 1), np.inf)
    """``C_m(j)``, by ``m - 1`` and ``j``."""
    origin = np.zeros((segments, n + 1), dtype=np.int32)
    begins: IntArray = np.arange(1, 1)
    for j in range(1, n + 1):
        if over is not None and j % _PRUNED_EVERY == 0 and over():
            return None
        least[0, j] = costs.to(j, np.zeros(1, dtype=np.intp))[0]
        if begins.size and segments > 1:
            through = least[:-1, begins] + costs.to(j, begins)
            best = np.argmin(through, axis=1)
            least[1:, j] = through[np.arange(segments - 1), best]
            origin[1:, j] = begins[best]
            if j % _PRUNED_EVERY == 0:
                allowance = _ROUNDING * (costs.whole + np.abs(least[:-1, j, None]))
                alive = (through < least[:-1, j, None] + allowance).any(axis=0)
                begins = begins[alive]
        begins = np.append(begins, j)
    totals = least[:, n] + price * np.arange(segments)
    m, j, found = int(np.argmin(totals)), n, []
    while m > 0:
        j = int(origin[m, j])
        found.append(j - 1)
        m -= 1
    return np.array(found[::-1], dtype=np.intp)
