"""What may be nonzero only beside something else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.interfaces.numeric import BoolArray, FloatArray, IntArray

_NEVER, _ALWAYS = -2, -1
"""Numbers that stand for a unit that is always out, and for one that is always in."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Requirements: where ``child[i]`` is in, one of ``parents[i]`` is in, too.

    Unions of sets that keep them keep them. A unit that is in may be zero; so points may be zero
    in a parent, which counts then.
    """

    child: IntArray
    """The unit of each requirement, shape ``(m,)``; -1 where it holds whatever is in."""
    parents: IntArray
    """Units of which one has to be in, shape ``(m, q)``; -2 in rows with fewer."""

    @property
    def barred(self) -> bool:
        """Return whether there are units that nothing can support."""
        return bool((self.parents == _NEVER).all(axis=1).any())

    @property
    def listed(self) -> list[list[int]]:
        """Return each requirement as its unit with the parents, as certificates have it."""
        rows = zip(self.child.tolist(), self.parents.tolist(), strict=True)
        return [[child, *(j for j in parents if j != _NEVER)] for child, parents in rows]

    def without(self, units: IntArray) -> Order:
        """Return the order where ``units`` can support nothing."""
        return Order(self.child, np.where(np.isin(self.parents, units), _NEVER, self.parents))

    def lacking(self, units: IntArray) -> BoolArray:
        """Return which requirements distinct ``units`` do not keep, shape ``(m,)``."""
        inside = self._marked(units)
        return np.asarray(inside[self.child] & ~inside[self.parents].any(axis=1))

    def asked(self, units: IntArray) -> list[IntArray]:
        """Return what ``units`` lack: of each of these sets one has to be in beside them."""
        return [row[row != _NEVER] for row in self.parents[self.lacking(units)]]

    def keeps(self, units: IntArray) -> bool:
        """Return whether ``units`` may be in without any other."""
        return not self.lacking(units).any()

    def spared(self, units: IntArray) -> BoolArray:
        """Return which single ones of ``units`` may leave the others, ``(len(units),)``.

        None where not even all of them keep the requirements.
        """
        inside = self._marked(units)
        on = inside[self.child]
        child, parents = self.child[on], self.parents[on]
        there = inside[parents]
        if not there.any(axis=1).all():
            return np.zeros(units.size, dtype=bool)
        last = np.where(there, parents, _NEVER).max(axis=1, initial=_NEVER)
        sole = (~there | (parents == last[:, None])).all(axis=1) & (child != last)
        needed = np.zeros_like(inside)
        needed[last[sole]] = True
        return ~needed[units]

    def joining(self, units: IntArray, number: int) -> BoolArray:
        """Return which single units keep all requirements beside ``units``, shape ``(number,)``."""
        inside, broken = self._marked(units), self.lacking(units)
        alone = ~inside[self.child] & ~inside[self.parents].any(axis=1)
        mask = np.ones(number, dtype=bool)
        mask[self.child[alone]] = False
        for i in np.flatnonzero(broken):
            mask &= np.isin(np.arange(number), self.parents[i])
        return mask

    def closed(self, units: IntArray, scores: FloatArray | None = None) -> IntArray:
        """Return sorted ``units`` with what they require.

        Of several parents the one with the largest of ``scores``, else the one that most of the
        units ask for; ties go to the lower number.
        """
        while True:
            lacking = self.lacking(units)
            if not lacking.any():
                return np.sort(units)
            asked = self.parents[lacking]
            known = asked != _NEVER
            alone = asked[known & (known.sum(axis=1) == 1)[:, None]]
            if not alone.size:
                numbers, times = np.unique(asked[known], return_counts=True)
                if not numbers.size:
                    return np.sort(units)
                alone = numbers[[np.argmax(times if scores is None else scores[numbers])]]
            units = np.union1d(units, alone)

    def supported(self, units: IntArray) -> IntArray:
        """Return the largest part of ``units`` that keeps what its own units require."""
        while True:
            lost = self.child[self.lacking(units)]
            left = np.setdiff1d(units, lost)
            if left.size == units.size:
                return left
            units = left

    def implied(self, inside: BoolArray, out: BoolArray) -> tuple[BoolArray, BoolArray] | None:
        """Return the units that are in, and out, where some are; None where that cannot be.

        One that is in puts in its only parent that is not out; parents that are out put out what
        requires them.
        """
        inside = np.append(inside, (False, True))
        out = np.append(out, (True, False))
        while True:
            open_ = ~out[self.parents]
            left = open_.sum(axis=1)
            met = inside[self.parents].any(axis=1)
            only = inside[self.child] & ~met & (left == 1)
            lost = (left == 0) & ~out[self.child]
            if inside[self.child[lost]].any():
                return None
            if not only.any() and not lost.any():
                return inside[:_NEVER], out[:_NEVER]
            inside[self.parents[only][open_[only]]] = True
            out[self.child[lost]] = True

    def left(self, taken: IntArray, kept: IntArray, number: int) -> Order | None:
        """Return what units that are ``taken`` leave to those ``kept``, sorted and renumbered.

        ``number`` is that of all units; the others are out.
        """
        new = np.full(number + 2, _NEVER)
        new[kept] = np.arange(kept.size)
        new[taken] = _ALWAYS
        new[_ALWAYS] = _ALWAYS
        child, parents = new[self.child], new[self.parents]
        on = (child != _NEVER) & ~(parents == _ALWAYS).any(axis=1)
        return Order(child[on], parents[on]) if on.any() else None

    def _marked(self, units: IntArray) -> BoolArray:
        top = max(self.child.max(initial=-1), self.parents.max(initial=-1), units.max(initial=-1))
        inside = np.zeros(int(top) + 3, dtype=bool)
        inside[units] = inside[_ALWAYS] = True
        return inside
