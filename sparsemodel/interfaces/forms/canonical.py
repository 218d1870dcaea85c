r"""Canonical forms: what a declaration is compiled to, and what a backend is given.

Every form minimises over ``x``, an array of *coordinates*: shape ``(p,)``, or ``(p, m)`` when the
variable is a matrix, in which case a coordinate is a row. Forms are immutable; the arrays they
hold are the user's own wherever possible and are never written to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, cast, final

import numpy as np

from sparsemodel.interfaces.design import Design
from sparsemodel.interfaces.forms.cardinality import Cardinality
from sparsemodel.interfaces.loss.base import DataFit
from sparsemodel.interfaces.loss.facets import Affine, SquaredDistance
from sparsemodel.interfaces.loss.traits import LossTraits
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
    stands_for: int | None = None
    """How many observations its rows have the sums of, where those are compressed."""
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
class Box:
    """Bounds ``lower <= x <= upper``, elementwise; shapes ``(p,)`` or ``(p, m)``.

    With ``least`` a coordinate is zero or of at least that size (semicontinuous), on the only side
    of zero that its bounds leave. What reads ``lower`` and ``upper`` alone solves a relaxation.
    """

    lower: FloatArray
    upper: FloatArray
    least: FloatArray | None = None
    """The least sizes of coordinates that are not zero, 0 for any size, shape ``(p,)``."""

    @classmethod
    def unbounded(cls, shape: int | tuple[int, ...]) -> Box:
        """Return infinite bounds."""
        return cls(np.full(shape, -np.inf), np.full(shape, np.inf))

    def on(self, support: IntArray) -> Box:
        """Return the bounds on some coordinates."""
        least = None if self.least is None else self.least[support]
        return Box(self.lower[support], self.upper[support], least)

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
    def ends(self) -> Box:
        """Return the bounds on the coordinates, infinite ones where there are none."""
        return self.box or Box.unbounded(self.shape)

    def ends_on(self, support: IntArray) -> Box:
        """Return the same on some coordinates alone."""
        if self.box is None:
            return Box.unbounded((support.size, *self.shape[1:]))
        return self.box.on(support)

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
        uneven = bool(sparsity.knapsacks or sparsity.crossing)
        uneven = uneven or (box is not None and box.least is not None)
        order = sparsity.order
        uneven = uneven or (order is not None and (bool(sparsity.limits) or order.has_unsupported))
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

    def infimum(self) -> float:
        """Return the constant plus the infima of the losses, below which no value is."""
        return self.constant + sum(t.loss.infimum(t.target, t.weights) for t in self.terms)


def coordinate_scores(x: FloatArray) -> FloatArray:
    """Return the squared size of each coordinate: ``x**2``, summed over a matrix's columns."""
    return np.square(x) if x.ndim == 1 else np.einsum("ij,ij->i", x, x)
