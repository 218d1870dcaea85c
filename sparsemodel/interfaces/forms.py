r"""Canonical forms: what a declaration is compiled to, and what a backend is given.

Every form minimises over ``x``, an array of *coordinates*: shape ``(p,)``, or ``(p, m)`` when the
variable is a matrix, in which case a coordinate is a row. Forms are immutable; the arrays they
hold are the user's own wherever possible and are never written to.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, cast, final

import numpy as np

from sparsemodel.interfaces.design import Design
from sparsemodel.interfaces.loss import Affine, DataFit, LossTraits, SquaredDistance
from sparsemodel.interfaces.numeric import BoolArray, FloatArray, IntArray
from sparsemodel.interfaces.region import Region


@final
@dataclass(frozen=True, slots=True, eq=False)
class Term:
    r"""One data set with its loss: :math:`F(A x + o; y, c)`."""

    design: Design
    loss: DataFit
    target: FloatArray
    weights: FloatArray
    """``c``, nonnegative, shape ``(n,)``: ``1/n`` for a mean, constants inside."""
    offset: FloatArray | None = None
    """``o``, in the shape of the predictions."""
    traits: LossTraits = field(init=False, repr=False)
    """What follows from the facets of the loss."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "traits", LossTraits.of(self.loss, self.target))

    def squares(self) -> tuple[FloatArray, FloatArray]:
        r"""Return ``(t, w)`` of :math:`F(u) = \tfrac12 \sum_i w_i (u_i - t_i)^2`.

        Only where ``traits.square``.
        """
        loss = cast("SquaredDistance", self.loss)
        steep = loss.steepness
        return loss.centre(self.target), self.weights if steep == 1.0 else steep * self.weights

    def slopes(self) -> FloatArray:
        r"""Return ``b`` of :math:`F(u) = \sum_i b_i u_i`. Only where ``traits.affine``."""
        return self.weights * cast("Affine", self.loss).slope(self.target)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Disjoint sets of units, each with a limit of its own."""

    sets: IntArray
    """The set ``0 .. S-1`` of each unit, ``-1`` for units in none of them."""
    most: IntArray
    """How many units of each set may be nonzero, shape ``(S,)``."""

    def counts(self, units: IntArray) -> IntArray:
        """Return how many of ``units`` are in each set."""
        sets = self.sets[units]
        return np.bincount(sets[sets >= 0], minlength=self.most.size)

    def left(self, taken: IntArray, kept: IntArray) -> Layer:
        """Return what units that are ``taken`` leave of the limits to those ``kept``."""
        return Layer(self.sets[kept], self.most - self.counts(taken))

    def full(self, units: IntArray) -> BoolArray:
        """Return which units are in a set that ``units`` have filled, shape ``(units,)``."""
        filled = np.append(self.counts(units) >= self.most, False)  # the last stands for no set
        return np.asarray(filled[self.sets])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Knapsack:
    """A budget: the costs of the units that are nonzero add up to at most ``most``."""

    costs: FloatArray
    """What each unit takes of the budget, nonnegative, shape ``(units,)``."""
    most: float

    def left(self, taken: IntArray) -> float:
        """Return what units that are ``taken`` leave of the budget; negative if they exceed it."""
        return math.fsum([self.most, *(-self.costs[taken]).tolist()])

    def fitting(self, taken: IntArray) -> BoolArray:
        """Return which single units fit the budget beside those ``taken``, shape ``(units,)``."""
        return np.asarray(self.costs <= self.left(taken))

    def after(self, taken: IntArray, kept: IntArray) -> Knapsack:
        """Return what units that are ``taken`` leave of the budget to those ``kept``."""
        return Knapsack(self.costs[kept], self.left(taken))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cardinality:
    """At most ``k`` units may be nonzero, of which :attr:`budget` are left to choose.

    A unit is a coordinate, or a group of coordinates when ``groups`` is given. ``free``
    coordinates belong to every support. Those that were never counted (intercepts, always-in
    features) do not touch ``k``. Those that were counted and that their bounds keep away from zero
    are ``forced``: they use up a part of ``k``. A backend chooses at most ``budget`` of the
    ``units`` that are neither. ``price`` adds ``price`` for each of those that is nonzero, or
    ``prices`` what each of them costs.

    ``limits`` hold beside ``k``: sets of units are disjoint or one within the other (a laminar
    family), so that supports are the independent sets of a matroid, and ``k`` is its rank. What
    knows ``k`` alone relaxes the problem: its bounds are valid, its supports need not be. So does
    what leaves out a ``knapsack``, or takes ``price``, the least one, for ``prices``.
    """

    size: int
    """``p``, the number of coordinates."""
    k: int
    """The limit as it was declared, forced units included: what to print, not what to choose."""
    free: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """Sorted indices of the coordinates that are always in."""
    groups: IntArray | None = None
    """Group ``0 .. G-1`` of each coordinate, ``-1`` for the free ones."""
    price: float = 0.0
    """What each unit costs in the objective; the least of them where ``prices`` differ."""
    forced: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """Sorted indices of those free coordinates that are part of ``k``."""
    forced_units: int = 0
    """How many units the forced coordinates make up."""
    limits: tuple[Layer, ...] = ()
    """Limits on parts of the units, inner sets before those that contain them."""
    prices: FloatArray | None = None
    """What each unit costs in the objective, shape ``(units,)``; None where it is ``price``."""
    knapsack: Knapsack | None = None
    """A budget over costs of the units."""

    @property
    def priced(self) -> bool:
        """Return whether units cost something in the objective, so that fewer may be better."""
        return self.price > 0.0 or self.prices is not None

    @property
    def plain(self) -> bool:
        """Return whether ``k`` is the only limit, and a unit costs what any other does."""
        return not self.limits and self.prices is None and self.knapsack is None

    @property
    def unit_price(self) -> float | FloatArray:
        """Return what a unit costs in the objective: a number, or one for each."""
        return self.price if self.prices is None else self.prices

    def charge(self, units: IntArray) -> float:
        """Return what distinct ``units`` cost in the objective together."""
        if self.prices is None:
            return self.price * units.size
        return math.fsum(self.prices[units].tolist())

    def within(self, units: IntArray) -> bool:
        """Return whether distinct ``units`` may be nonzero together."""
        affordable = self.knapsack is None or self.knapsack.left(units) >= 0.0
        return (
            affordable
            and units.size <= self.budget
            and all(bool(np.all(layer.counts(units) <= layer.most)) for layer in self.limits)
        )

    def limited_sets(self) -> list[tuple[IntArray, int]]:
        """Return the sets of :attr:`limits`, sorted units with their limit, inner sets first."""
        found: list[tuple[IntArray, int]] = []
        for layer in self.limits:
            order = np.argsort(layer.sets, kind="stable")
            ends = np.searchsorted(layer.sets[order], np.arange(layer.most.size + 1))
            found += [
                (order[begin:end], most)
                for begin, end, most in zip(ends[:-1], ends[1:], layer.most.tolist(), strict=True)
            ]
        return found

    def room(self, units: IntArray) -> BoolArray:
        """Return which single units may join ``units``, shape ``(units,)``."""
        mask = np.full(self.units, units.size < self.budget)
        for layer in self.limits:
            mask &= ~layer.full(units)
        if self.knapsack is not None:
            mask &= self.knapsack.fitting(units)
        mask[units] = False
        return mask

    def exchangeable(self, units: IntArray) -> BoolArray:
        """Return which units may replace each of ``units``, shape ``(len(units), units)``."""
        mask = np.ones((units.size, self.units), dtype=bool)
        for layer in self.limits:
            mask &= ~layer.full(units) | (layer.sets[units][:, None] == layer.sets)
        if self.knapsack is not None:
            for place in range(units.size):
                mask[place] &= self.knapsack.fitting(np.delete(units, place))
        mask[:, units] = False
        return mask

    @property
    def budget(self) -> int:
        """Return how many units may be chosen: ``k`` without the forced ones."""
        return self.k - self.forced_units

    def with_budget(self, budget: int) -> Cardinality:
        """Return the constraint with another number of units to choose."""
        return replace(self, k=budget + self.forced_units)

    @property
    def units(self) -> int:
        """Return how many units there are to choose from."""
        if self.groups is None:
            return self.size - int(self.free.size)
        return int(self.groups.max(initial=-1)) + 1

    @property
    def counted(self) -> BoolArray:
        """Return the mask of the coordinates that are chosen: all but the free ones."""
        mask = np.ones(self.size, dtype=bool)
        mask[self.free] = False
        return mask

    def unit_scores(self, scores: FloatArray) -> FloatArray:
        """Sum nonnegative coordinate scores (squares, gains) over each unit, shape ``(units,)``."""
        if self.groups is None:
            return np.delete(scores, self.free) if self.free.size else scores
        counted = self.groups >= 0
        sums = np.bincount(self.groups[counted], weights=scores[counted], minlength=self.units)
        return sums.astype(np.float64, copy=False)  # integers when there is nothing to count

    def coordinates(self, units: IntArray) -> IntArray:
        """Return the sorted support made of ``units`` and the free coordinates."""
        if self.groups is None:
            if not self.free.size:
                return np.sort(units)
            counted = np.flatnonzero(self.counted)
            return np.sort(np.concatenate([counted[units], self.free]))
        chosen = np.zeros(self.units + 1, dtype=bool)
        chosen[units] = True
        mask = chosen[self.groups]
        mask[self.free] = True
        return np.flatnonzero(mask)

    def active_units(self, x: FloatArray) -> IntArray:
        """Return the sorted counted units in which ``x`` is not zero."""
        # Not by squares, which are zero for entries below 1e-162.
        nonzero = (x != 0.0) if x.ndim == 1 else (x != 0.0).any(axis=1)
        return np.flatnonzero(self.unit_scores(nonzero.astype(np.float64)))

    def count(self, x: FloatArray) -> int:
        """Return the number of counted units in which ``x`` is not zero."""
        return int(self.active_units(x).size)

    def paid(self, x: FloatArray) -> float:
        """Return what the nonzero units of ``x`` cost in the objective."""
        return self.charge(self.active_units(x)) if self.priced else 0.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Bounds ``lower <= x <= upper``, elementwise; shapes ``(p,)`` or ``(p, m)``.

    With ``least`` a coordinate is zero or of at least that size (semicontinuous), on the only side
    of zero that its bounds leave. What reads ``lower`` and ``upper`` alone solves a relaxation.
    """

    lower: FloatArray
    upper: FloatArray
    least: FloatArray | None = None
    """The least sizes of coordinates that are not zero, 0 for any size, shape ``(p,)``."""

    @property
    def chosen(self) -> Box:
        """Return the bounds on coordinates that are in a support."""
        if self.least is None:
            return self
        above = (self.least > 0.0) & (self.lower >= 0.0)
        below = (self.least > 0.0) & ~above
        lower = np.where(above, np.maximum(self.lower, self.least), self.lower)
        return Box(lower, np.where(below, np.minimum(self.upper, -self.least), self.upper))

    def clipped(self, x: FloatArray) -> FloatArray:
        """Return the nearest point within the bounds on what is nonzero in ``x``; zeros stay."""
        ends = self.chosen
        return np.where(x == 0.0, x, np.clip(x, ends.lower, ends.upper))

    def broken(self, x: FloatArray, tolerance: float) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Return which entries of ``x`` are too low, too high, and nonzero but too near to zero.

        By more than a share of the bound, that is; of the bound zero by more than that share of
        the largest entry, which counts up to one.
        """
        most = min(float(np.abs(x).max(initial=0.0)), 1.0)
        low, high = (
            tolerance * np.where(np.isfinite(b), np.where(b == 0.0, most, np.abs(b)), 0.0)
            for b in (self.lower, self.upper)
        )
        least = 0.0 if self.least is None else self.least * (1.0 - tolerance)
        near = (x != 0.0) & (np.abs(x) < least)
        return x < self.lower - low, x > self.upper + high, near


class Form(ABC):
    """A canonical problem over coordinates with a cardinality constraint."""

    __slots__ = ()

    kind: ClassVar[str] = "this kind of problem"
    """What such problems are called, in the plural."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Return the shape of ``x``."""

    @property
    @abstractmethod
    def cardinality(self) -> Cardinality:
        """Return the constraint on the support."""

    @property
    def box(self) -> Box | None:
        """Return the bounds on the coordinates; None where there are none."""
        return None

    @property
    def region(self) -> Region | None:
        """Return the convex constraints beside the bounds; None where there are none."""
        return None

    @property
    def constrained(self) -> bool:
        """Return whether there are bounds, or convex constraints beside them."""
        return self.box is not None or self.region is not None

    @property
    def fewer(self) -> bool:
        """Return whether fewer units than the budget allows may be better."""
        sparsity, box = self.cardinality, self.box
        uneven = sparsity.knapsack is not None or (box is not None and box.least is not None)
        return sparsity.priced or uneven

    def with_limit(self, k: int) -> Self:
        """Return the form with another limit ``k``; for a dataclass with a field ``sparsity``."""
        sparsity = replace(self.cardinality, k=k)
        return cast("Self", replace(cast("Any", self), sparsity=sparsity))


@final
@dataclass(frozen=True, slots=True, eq=False)
class SparseRegression(Form):
    r"""Minimise a sum of losses of linear predictions under a cardinality constraint,

    .. math:: \min_x \sum_t F_t(A_t x + o_t; y_t, c_t) + \tfrac12 \sum_j \lambda_j x_j^2
              + \text{constant}.
    """

    terms: tuple[Term, ...]
    ridge: FloatArray
    """``lambda_j >= 0``, shape ``(p,)``; the same for all columns of a matrix variable."""
    sparsity: Cardinality
    outputs: int = 1
    """``m``; ``x`` has shape ``(p,)`` when it is 1 and no term needs a matrix."""
    matrix: bool = False
    """True when ``x`` has shape ``(p, m)``."""
    box: Box | None = None
    constant: float = 0.0
    region: Region | None = None
    """Convex constraints beside the bounds."""
    parameters: tuple[tuple[str, str], ...] = ()
    """What decides a part of the problem and may change: the part, the name with the value."""

    kind: ClassVar[str] = "regressions"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.sparsity.size, self.outputs) if self.matrix else (self.sparsity.size,)

    @property
    def cardinality(self) -> Cardinality:
        return self.sparsity

    @property
    def traits(self) -> LossTraits:
        """Return what the losses of all terms have in common."""
        return LossTraits.common([term.traits for term in self.terms])


def coordinate_scores(x: FloatArray) -> FloatArray:
    """Return the squared size of each coordinate: ``x**2``, summed over a matrix's columns."""
    return np.square(x) if x.ndim == 1 else np.einsum("ij,ij->i", x, x)
