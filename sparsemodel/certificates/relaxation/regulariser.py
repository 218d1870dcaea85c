r"""The convex regulariser of the relaxation, with the problem's structure around it.

Counted units carry the k-support regulariser of
:mod:`sparsemodel.numerics.ksupport`; groups and rows of matrix variables enter by their norms. Free
coordinates keep their ridge and bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.interfaces import (
    BoolArray,
    Box,
    FloatArray,
    IntArray,
    SparseRegression,
    coordinate_scores,
)
from sparsemodel.interfaces.numeric import rowwise
from sparsemodel.numerics import top_k
from sparsemodel.numerics.ksupport import ksupport_prox, ksupport_value


def objection(form: SparseRegression, curvature: FloatArray) -> str:
    """Return why the relaxation cannot be solved by proximal steps; empty when it can.

    ``curvature`` is the ridge, with what was taken out of the losses.
    """
    sparsity, box = form.sparsity, form.box
    counted = sparsity.counted
    finite = np.zeros(form.shape, dtype=bool)
    if box is not None:
        lower, upper = box.lower, box.upper
        finite = np.isfinite(lower) & np.isfinite(upper)
        if np.any((lower[counted] > 0.0) | (upper[counted] < 0.0)):
            return "bounds keep counted coordinates away from zero"
    flat = finite if finite.ndim == 1 else finite.all(axis=1)
    if np.any((curvature <= 0.0) & ~flat & counted):
        return (
            "counted coordinates have neither ridge nor bounds, and for these losses none follow "
            "from the data; add a ridge, sm.ridge(w, 1e-3), or bounds, w <= 10 and w >= -10"
        )
    return ""


def entrywise(form: SparseRegression) -> bool:
    """Return whether single entries of groups, or of rows of a matrix, have bounds beside zero."""
    box, counted = form.box, form.sparsity.counted
    if box is None or (form.sparsity.groups is None and not form.matrix):
        return False
    ends = [side[counted] for side in (box.lower, box.upper)]
    return any(bool(np.any(np.isfinite(end) & (end != 0.0))) for end in ends)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Which coordinates and units a regulariser is about."""

    coordinates: IntArray
    """Indices in the form, sorted."""
    unit: IntArray
    """Local unit of each coordinate, ``-1`` for the free ones."""
    units: int
    unit_index: IntArray
    """The form's unit for each local one."""


@final
class Regulariser:
    """``R`` on a set of coordinates: proximal steps, values, and its conjugate."""

    def __init__(
        self,
        form: SparseRegression,
        coordinates: IntArray,
        curvature: FloatArray,
        *,
        fixed: BoolArray | None = None,
    ) -> None:
        """``fixed`` marks units of the form that are in for good: they count as free."""
        sparsity = form.sparsity
        all_units = sparsity.unit_of
        if fixed is not None:
            all_units = np.where(np.append(fixed, False)[all_units], -1, all_units)
        unit_index, local = _numbered(all_units[coordinates], sparsity.units)
        self.shape: Shape = Shape(coordinates, local, int(unit_index.size), unit_index)
        taken = 0 if fixed is None else int(np.count_nonzero(fixed))
        self.k: int = max(0, min(sparsity.budget - taken, self.shape.units))
        prices = sparsity.prices
        self.price: float | FloatArray = sparsity.price if prices is None else prices[unit_index]
        self.curvature: FloatArray = curvature[coordinates]
        self.counted: BoolArray = local >= 0
        self.single: bool = form.sparsity.groups is None and not form.matrix
        self._local = local[self.counted]
        # Of different ridges in a group the relaxation knows the least; bounds know them all.
        self.unit_ridge: FloatArray = np.full(self.shape.units, np.inf)
        np.minimum.at(self.unit_ridge, self._local, self.curvature[self.counted])
        self.box: Box | None = None
        if form.box is not None:
            self.box = Box(form.box.lower[coordinates], form.box.upper[coordinates])
        # Limits are of counted coordinates; those of free ones only clip.
        self.limited: bool = self.box is not None and bool(
            np.any(
                (
                    (np.isfinite(self.box.lower) & (self.box.lower < 0.0))
                    | (np.isfinite(self.box.upper) & (self.box.upper > 0.0))
                )[self.counted]
            )
        )

    def prox(self, q: FloatArray, step: float) -> tuple[FloatArray, FloatArray]:
        """Return ``(x, z)``: the proximal point and the share of every unit."""
        signed = q if self.box is None else self._signed(q)
        sizes, limit = self.sizes(signed), self._limit(signed)
        chosen, z = ksupport_prox(
            sizes, step, self.unit_ridge, self.k, price=self.price, limit=limit
        )
        factor = np.divide(chosen, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)
        x = np.zeros_like(q)
        x[self.counted] = rowwise(factor[self._local], signed[self.counted])
        if not self.counted.all():
            free = ~self.counted
            x[free] = rowwise(1.0 / (1.0 + step * self.curvature[free]), q[free])
            if self.box is not None:
                x[free] = np.clip(x[free], self.box.lower[free], self.box.upper[free])
        return x, z

    def value(self, x: FloatArray, z: FloatArray | None = None) -> float:
        """Return ``R(x)``; with the best shares ``z`` known it is a sum."""
        sizes = self.sizes(x)
        if z is None:
            total = ksupport_value(
                sizes, self.unit_ridge, self.k, price=self.price, limit=self._limit(x)
            )
        else:
            on = sizes > 0.0
            total = 0.5 * float(np.sum(self.unit_ridge[on] * np.square(sizes[on]) / z[on]))
            total += float(np.sum((self.price * z)[on]))
        free = ~self.counted
        if free.any():
            total += 0.5 * float(self.curvature[free] @ coordinate_scores(x[free]))
        return total

    def gains(self, v: FloatArray) -> tuple[FloatArray, float]:
        """Return the gains ``h`` of the units at slopes ``v``, and of the free coordinates."""
        gains = _gains(v, self.curvature, self.box)
        free = float(gains[~self.counted].sum())
        if self.single:
            return gains[self.counted], free
        units = np.zeros(self.shape.units)
        np.add.at(units, self._local, gains[self.counted])
        return units, free

    def conjugate(self, v: FloatArray) -> float:
        """Return ``sup_x <-v, x> - R(x)``: the gain of the best ``k`` units."""
        units, free = self.gains(v)
        return free + selected(units, self.k, self.price)

    def sizes(self, x: FloatArray) -> FloatArray:
        """Return the Euclidean norms of the units."""
        if self.single:
            return np.abs(x[self.counted])
        scores = coordinate_scores(x[self.counted])
        return np.sqrt(np.bincount(self._local, weights=scores, minlength=self.shape.units))

    def _signed(self, q: FloatArray) -> FloatArray:
        box = self.box
        if box is None:
            return q
        positive = np.where(box.upper > 0.0, q, np.minimum(q, 0.0))
        return np.where(box.lower < 0.0, positive, np.maximum(positive, 0.0))

    def _limit(self, q: FloatArray) -> FloatArray | None:
        if not self.limited or self.box is None:
            return None
        return np.where(q >= 0.0, self.box.upper, -self.box.lower)[self.counted]


def selected(units: FloatArray, k: int, price: float | FloatArray) -> float:
    """Return the sum of the ``k`` largest profits, gains minus the price, none negative."""
    profits = np.maximum(units - price, 0.0)
    return float(profits[top_k(profits, k)].sum())


def _gains(v: FloatArray, curvature: FloatArray, box: Box | None) -> FloatArray:
    wide = curvature if v.ndim == 1 else curvature[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        if box is None:
            gains = np.where(v == 0.0, 0.0, np.square(v) / (2.0 * wide))
        else:
            peak = np.where(v == 0.0, 0.0, -v / wide)
            x = np.clip(peak, box.lower, box.upper)
            gains = -v * x - 0.5 * wide * np.square(x)
    return gains if gains.ndim == 1 else gains.sum(axis=1)


def _numbered(unit: IntArray, units: int) -> tuple[IntArray, IntArray]:
    """Return the units that occur, sorted, and the place of each of ``unit``; -1 for none."""
    present = np.zeros(units + 1, dtype=bool)
    present[unit] = True
    present[-1] = False  # the place of the free ones
    place = np.append(np.cumsum(present[:-1]) - 1, -1)
    return np.flatnonzero(present), place[unit]
