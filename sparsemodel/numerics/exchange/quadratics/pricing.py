r"""All exchanges of one coordinate for another, priced at once.

For a quadratic with Hessian ``G`` (scaled to a unit diagonal, free coordinates eliminated) and
``c`` its negative gradient at zero, a support ``S`` has the minimiser :math:`w = B c_S` with
:math:`B = G_{SS}^{-1}`. Let :math:`Q = B G_{S:}`, let :math:`r = c - G_{:S} w` be the negative
gradient there and :math:`s_j = d_j - G_{jS} Q_{Sj}` what ``S`` leaves of the curvatures ``d``.
Taking out ``i`` and putting in ``j`` lowers twice the objective by

.. math:: \frac{(r_j + Q_{ij} w_i / B_{ii})^2}{s_j + Q_{ij}^2 / B_{ii}} - \frac{w_i^2}{B_{ii}} ,

exactly, because removing ``i`` adds :math:`Q_{i:} w_i / B_{ii}` to ``r`` and
:math:`Q_{i:}^2 / B_{ii}` to ``s``. So all :math:`k (p - k)` exchanges are priced in
:math:`O(k p)` once ``Q`` is there. It need not be: of most columns ``r``, ``s`` and what they share
with the support tell that no exchange brings them in, and ``Q`` is made of the others. Carrying an
exchange out reads the rows of the support once, with one new row of ``G`` for a column that was
never seen before.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.exchange.hessian_rows import HessianRows
from sparsemodel.numerics.exchange.quadratics.tables import ceilings_of, heights, largest, squares
from sparsemodel.numerics.minimisers.few_columns import INDEPENDENT, safe_inverse, safe_inverses

_NOISES = 30.0
"""The same as ``INDEPENDENT``, in units of the rows' own noise."""
_FIRST = 64
"""Coordinates whose exchanges are priced before it is asked which others could gain more."""


@final
class Exchanges:
    """Several supports of one size, each with its minimiser and the prices of its exchanges.

    The first axis of every array is that of the supports, which are searched side by side: with
    few coordinates the time goes into calls, not into numbers. Mutable, a run's workspace.

    Parameters
    ----------
    rows
        The Hessian.
    linear
        ``c``, scaled as the rows are, shape ``(m, p)`` for ``m`` columns of a matrix variable that
        share the Hessian.
    columns
        Sorted coordinates that may enter; None for all.

    Attributes
    ----------
    members
        The supports, ``(R, k)``, in the order of the slots; positions in ``columns``.
    g
        The members' rows of the Hessian, ``(R, k, p)``.
    explained
        ``c . w``: twice what each support lowers the objective by.
    """

    def __init__(
        self, rows: HessianRows, linear: FloatArray, columns: IntArray | None = None
    ) -> None:
        self.rows, self.linear, self.columns = rows, linear, columns
        self._c = linear if columns is None else np.ascontiguousarray(linear[:, columns])
        self._d = rows.diagonal if columns is None else rows.diagonal[columns]
        self._clear()

    def _clear(self) -> None:
        m, p = self._c.shape
        self.members: IntArray = np.empty((1, 0), dtype=np.intp)
        self.w: FloatArray = np.empty((1, 0, m))
        self.inverse: FloatArray = np.empty((1, 0, 0))
        self.g: FloatArray = np.empty((1, 0, p))
        self.r: FloatArray = self._c[None].copy()
        self.s: FloatArray = np.where(self._d > 0.0, self._d, np.inf)[None]
        self.explained: FloatArray = np.zeros(1)
        self.updates = 0

    @property
    def guard(self) -> float:
        """Return what must be left of the curvature of a column that enters."""
        return max(INDEPENDENT, _NOISES * self.rows.noise)

    @property
    def q(self) -> FloatArray:
        """Return ``Q``, ``(R, k, p)``, which costs ``O(k^2 p)``: the rows that leave need not."""
        return np.asarray(self.inverse @ self.g)

    @property
    def size(self) -> int:
        """Return how many coordinates a support has."""
        return int(self.members.shape[1])

    def coordinates(self, members: IntArray) -> IntArray:
        """Return coordinates by their positions in ``columns``."""
        return members if self.columns is None else self.columns[members]

    def _row(self, members: IntArray) -> FloatArray:
        block = self.rows.rows(self.coordinates(members))
        return block if self.columns is None else np.ascontiguousarray(block[:, self.columns])

    # ---- prices ------------------------------------------------------------------------------

    def removals(self) -> FloatArray:
        """Return what taking each member out costs, ``(R, k)``, in units of ``2 f``."""
        own: FloatArray = self.inverse.diagonal(axis1=1, axis2=2)
        return squares(self.w) / own

    def removals_at(self, slots: IntArray) -> FloatArray:
        """Return what taking out the member at ``slots[a]`` of each support costs, ``(R,)``."""
        every = np.arange(len(slots))
        own: FloatArray = self.inverse[every, slots, slots]
        return squares(self.w[every, slots]) / own

    def insertions(self) -> FloatArray:
        """Return what each coordinate gains if it is added, ``(R, p)``.

        0 for members and for coordinates that they make superfluous.
        """
        guard, gains = self.guard, heights(self.r)
        gains /= np.maximum(self.s, guard)
        gains[self.s <= guard] = 0.0
        return gains

    def insertions_without(self, slots: IntArray) -> FloatArray:
        """Return what each coordinate gains after the member at ``slots[a]`` has left, ``(R, p)``.

        The member itself gains what its removal costs.
        """
        every = np.arange(len(slots))
        own = self.inverse[every, slots, slots]
        leaving = (self.inverse[every, slots][:, None, :] @ self.g)[:, 0]
        drop = leaving / own[:, None]
        moved = self.r + self.w[every, slots][:, :, None] * drop[:, None, :]
        left = self.s + drop * leaving
        left[every, self.members[every, slots]] = 1.0 / own
        guard, gains = self.guard, heights(moved)
        gains /= np.maximum(left, guard)
        gains[left <= guard] = 0.0
        return gains

    def prices(self) -> FloatArray:
        """Return what every exchange gains, ``(R, k, p)``, in units of ``2 f``.

        Of members the entries are what the removal costs, negative; of coordinates that the rest
        of the support makes superfluous, ``-inf``.
        """
        return self._prices(self.g, self.r, self.s)

    def _prices(self, g: FloatArray, r: FloatArray, s: FloatArray) -> FloatArray:
        """Return the prices of some coordinates, by the rows' entries there."""
        q = self.inverse @ g
        own: FloatArray = self.inverse.diagonal(axis1=1, axis2=2)
        sizes, guard = squares(self.w), self.guard
        left = q / own[:, :, None]
        if self.w.shape[2] == 1:
            gains: FloatArray = left * self.w
            gains += r
            np.square(gains, out=gains)
        else:  # ||r_j + q w_i||^2 without the array of all outputs
            gains = self.w @ r
            gains *= 2.0
            gains += left * sizes[:, :, None]
            gains *= left
            gains += heights(r)[:, None, :]
        left *= q
        left += s[:, None, :]
        if left.size and left.min() <= guard:
            dependent = left <= guard
            gains[dependent], left[dependent] = -np.inf, 1.0
        gains /= left
        gains -= (sizes / own)[:, :, None]
        return gains

    def best(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return slot, coordinate and gain of the best exchange of each support.

        Of no other where none gains anything: with many coordinates only those are priced whose
        :func:`ceilings_of` are above what the most promising gain.
        """
        many = self._c.shape[1]
        if not self.size:
            nothing = np.zeros(len(self.members), dtype=np.intp)
            return nothing, nothing, np.full(len(nothing), -np.inf)
        if many <= 4 * _FIRST:
            return largest(self.prices())
        ceilings = ceilings_of(self.removals(), self.r, self.s, self._d)
        chosen = np.argpartition(ceilings, many - _FIRST, axis=1)[:, -_FIRST:]
        every = np.arange(len(chosen))
        slots, places, gains = largest(
            self._prices(
                np.take_along_axis(self.g, chosen[:, None, :], axis=2),
                np.take_along_axis(self.r, chosen[:, None, :], axis=2),
                np.take_along_axis(self.s, chosen, axis=1),
            )
        )
        into = chosen[every, places]
        ceilings[every[:, None], chosen] = -np.inf
        above = ceilings > np.maximum(gains, 0.0)[:, None]
        for a in np.flatnonzero(above.any(axis=1)):
            rest = np.flatnonzero(above[a])
            one = self._with(itemgetter(slice(a, a + 1)))
            priced = one._prices(one.g[:, :, rest], one.r[:, :, rest], one.s[:, rest])
            slot, place, gain = largest(priced)
            if gain[0] > gains[a]:
                slots[a], into[a], gains[a] = slot[0], rest[place[0]], gain[0]
        return slots, into, gains

    def fetch(self, members: IntArray) -> bool:
        """Read the rows of coordinates that are to enter; True when prices have changed by it."""
        coordinates = self.coordinates(members)
        before = self.rows.diagonal[coordinates]
        if not self.rows.fetch(coordinates):
            return False
        change = self.rows.diagonal[coordinates] - before
        self._d = self.rows.diagonal if self.columns is None else self.rows.diagonal[self.columns]
        where, first = np.unique(members, return_index=True)
        self.s[:, where] = np.maximum(self.s[:, where] + change[first], 0.0)
        return bool(np.any(np.abs(change) > 1e-9))

    # ---- changes -----------------------------------------------------------------------------

    def exchange(self, slots: IntArray, into: IntArray) -> None:
        """Put ``into[a]`` in place of the member at ``slots[a]``, in every support ``a``."""
        row = self._row(into)
        every = np.arange(len(slots))
        inside = self.inverse[every, slots]
        own = inside[every, slots]
        close = own * self.guard > 1.0
        b = inside / own[:, None]
        known = row[every[:, None], self.members]
        known[every, slots] = 0.0
        # What leaves, and what the others take of what enters, in one reading of the rows.
        factors = np.empty((len(slots), 2, self.size))
        factors[:, 0] = inside
        factors[:, 1] = (known[:, None, :] @ self.inverse)[:, 0]
        factors[:, 1] -= (known * b).sum(axis=1)[:, None] * inside
        read: FloatArray = factors @ self.g
        leaving, v = read[:, 0], read[:, 1]
        np.subtract(row, v, out=v)
        w, out = self.w[every, slots], self.members[every, slots]
        lost, met = w / own[:, None], leaving[every, into][:, None]
        q = (self.inverse @ self.g[every, :, into][:, :, None])[:, :, 0]
        q -= b * met
        q[every, slots] = 0.0
        pivot = np.maximum(v[every, into], self.guard)
        step = (self.r[every, :, into] + lost * met) / pivot[:, None]
        self.explained += (step * step).sum(axis=1) * pivot
        self.explained -= (w * lost).sum(axis=1)
        self.w -= b[:, :, None] * w[:, None, :]
        self.w -= q[:, :, None] * step[:, None, :]
        self.w[every, slots] = step
        self.r += lost[:, :, None] * leaving[:, None, :]
        self.r -= step[:, :, None] * v[:, None, :]
        np.square(read, out=read)
        leaving /= own[:, None]
        v /= pivot[:, None]
        self.s += leaving
        self.s -= v
        self.s[every, out] = 1.0 / own - v[every, out]
        self.s[every, into] = np.inf
        self.g[every, slots] = row
        q[every, slots] = -1.0
        self.inverse -= b[:, :, None] * inside[:, None, :]
        self.inverse[every, slots] = 0.0
        self.inverse[every, :, slots] = 0.0
        self.inverse += q[:, :, None] * (q / pivot[:, None])[:, None, :]
        self.members[every, slots] = into
        self.updates += 1
        for a in np.flatnonzero(close):  # what resembles the others was taken out: nothing is left
            again = self._with(itemgetter(slice(a, a + 1)))
            again.reset(self.members[a])
            if again.size == self.size:
                for name in _BATCHED:
                    getattr(self, name)[a] = getattr(again, name)[0]

    def insert(self, into: int) -> None:
        """Add a coordinate to the only support."""
        row = self._row(np.array([into]))[0]
        taken = row[self.members[0]] @ self.inverse[0]
        v, q = row - taken @ self.g[0], self.inverse[0] @ self.g[0, :, into]
        pivot = max(float(v[into]), self.guard)
        step = self.r[0, :, into] / pivot
        self.explained += float(step @ step) * pivot
        self.g = np.concatenate([self.g, row[None, None]], axis=1)
        self.w = np.concatenate([self.w - q[:, None] * step, step[None, None]], axis=1)
        self.r -= step[:, None] * v
        self.s -= v * (v / pivot)
        self.s[0, into] = np.inf
        extended = np.concatenate([q, [-1.0]])
        inverse = extended[:, None] * (extended / pivot)
        inverse[:-1, :-1] += self.inverse[0]
        self.inverse = inverse[None]
        self.members = np.concatenate([self.members, [[into]]], axis=1)
        self.updates += 1

    def remove(self, slot: int) -> None:
        """Take a member out of the only support."""
        inside, rest = self.inverse[0, slot], np.delete(np.arange(self.size), slot)
        own = float(inside[slot])
        if own * self.guard > 1.0:  # what resembles the others is taken out: nothing is left
            self.reset(self.members[0, rest])
            return
        leaving, w, out = inside @ self.g[0], self.w[0, slot], self.members[0, slot]
        self.updates, self.explained = self.updates + 1, self.explained - float(w @ w) / own
        self.r += w[:, None] * (leaving / own)
        self.s += leaving * (leaving / own)
        self.s[0, out] = 1.0 / own
        b = inside[rest] / own
        self.w = (self.w[0, rest] - np.outer(b, w))[None]
        self.inverse = (self.inverse[0][np.ix_(rest, rest)] - np.outer(b, inside[rest]))[None]
        self.members, self.g = self.members[:, rest], self.g[:, rest]

    def reset(self, members: IntArray) -> None:
        """Start again from one support, leaving out members that the others make superfluous."""
        block = self._row(members)
        inverse = safe_inverse(block[:, members], self.guard)
        if inverse is not None:
            self._begin(members[None], block[None], inverse[None])
            return
        root = self.rows.inverse_root(self.coordinates(members))
        if root is not None:
            self._begin(members[None], block[None], (root @ root.T)[None])
            self._sharpen(root)
            return
        self._clear()
        for member in members:
            if self.s[0, member] > self.guard and np.isfinite(self.s[0, member]):
                self.insert(int(member))
        self.updates = 0

    # ---- several supports --------------------------------------------------------------------

    def reset_all(self, members: IntArray) -> None:
        """Start again from several supports, without those in which some depend on the others."""
        count, k = members.shape
        block = self._row(members.ravel()).reshape(count, k, self._c.shape[1])
        slots = np.arange(k)[:, None]
        inside = block[np.arange(count)[:, None, None], slots, members[:, None, :]]
        inverse, safe = safe_inverses(inside, self.guard)
        self._begin(members[safe], block[safe], inverse[safe])

    def _begin(self, members: IntArray, block: FloatArray, inverse: FloatArray) -> None:
        """Start from supports, ``(R, k)``, by their rows and the inverses of what they share."""
        every, c = np.arange(len(members))[:, None], self._c
        self.members, self.inverse, self.g = members.copy(), inverse, block
        self.w = inverse @ c[:, members].transpose(1, 2, 0)
        self.r = c - self.w.swapaxes(1, 2) @ block
        s = self._d - np.einsum("rkp,rkp->rp", block, self.q)
        s[:, self._d == 0.0] = np.inf
        s[every, members] = np.inf
        self.r[every, :, members] = 0.0
        self.s = np.maximum(s, 0.0)
        self.explained = np.einsum("rkm,mrk->r", self.w, c[:, members])
        self.updates = 0

    def _sharpen(self, root: FloatArray) -> None:
        """Minimise by a root of the inverse: products with that itself cancel to eps / d**2."""
        inside, c = self.members[0], self._c
        z = root.T @ c[:, inside].T
        self.w[0] = root @ z
        self.r[0] = c - self.w[0].T @ self.g[0]
        self.r[0][:, inside] = 0.0
        left = np.maximum(self._d - np.square(root.T @ self.g[0]).sum(axis=0), 0.0)
        self.s[0] = np.where(np.isfinite(self.s[0]), left, np.inf)
        self.explained[0] = np.vdot(z, z)

    def _with(self, supports: Callable[[NDArray[Any]], NDArray[Any]]) -> Exchanges:
        """Return the same search with what ``supports`` makes of every array."""
        other = Exchanges.__new__(Exchanges)
        other.rows, other.columns, other.linear = self.rows, self.columns, self.linear
        other._c, other._d, other.updates = self._c, self._d, self.updates
        for name in _BATCHED:
            setattr(other, name, supports(getattr(self, name)))
        return other

    def tiled(self, times: int) -> Exchanges:
        """Return ``times`` copies of the only support, side by side."""
        return self._with(lambda a: a.copy() if times == 1 else a.repeat(times, axis=0))

    def keep(self, chosen: IntArray) -> None:
        """Forget all supports but the ``chosen`` ones."""
        for name in _BATCHED:
            setattr(self, name, getattr(self, name)[chosen])

    def first(self, many: int) -> Exchanges:
        """Return the first supports, whose exchanges are made in this search's arrays too."""
        return self._with(itemgetter(slice(many)))


_BATCHED = ("members", "w", "inverse", "g", "r", "s", "explained")
