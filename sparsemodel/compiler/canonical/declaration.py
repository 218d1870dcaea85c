"""A declaration as plain data: what the language hands to the compiler.

The compiler knows these records and nothing of the language's classes, so that another front
end (CVXPY expressions, a command line) can be compiled just as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np

from sparsemodel.designs import StepsDesign
from sparsemodel.interfaces import DataFit, Design, FloatArray, IntArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class VariableSpec:
    """A variable: how many coordinates (rows) it has and what they are called."""

    label: str
    """The user's name for it, or a made one."""
    shape: tuple[int, ...]
    names: tuple[str, ...] | None = None
    """Names of its rows (features)."""
    symmetric: bool = False
    """Whether its coordinates are the entries of its upper triangle, row by row."""
    auxiliary: bool = False
    """Whether a constraint brought it in, so that its entries are no coefficients of a model."""

    @property
    def height(self) -> int:
        """Return how many numbers make it up."""
        p = self.shape[0] if self.shape else 1
        return p * (p + 1) // 2 if self.symmetric else int(np.prod(self.shape))

    @property
    def places(self) -> IntArray:
        """Return which of the numbers each entry of a symmetric matrix is, row by row."""
        p = self.shape[0]
        i, j = np.divmod(np.arange(p * p), p)
        low = np.minimum(i, j)
        places: IntArray = low * p - low * (low + 1) // 2 + np.maximum(i, j)
        return places


@final
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """``factor * (design @ variable[rows])``; without a design, the entries themselves."""

    variable: int
    rows: IntArray | None
    design: Design | None
    factor: float = 1.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class LossSpec:
    """``scale * (mean or sum of loss(blocks + offset, target))``."""

    loss: DataFit
    blocks: tuple[Block, ...]
    offset: FloatArray | None
    target: FloatArray
    """A custom function of the variable has no target: zeros, one per prediction."""
    observation_weights: FloatArray | None
    reduction: Literal["mean", "sum"]
    scale: float = 1.0
    levels: tuple[Any, ...] | None = None
    """Ordered classes, where it is that of a threshold between them: one object for each loss."""
    weights_are: str = "precision"
    """What the weights mean, see :mod:`sparsemodel.selection.weights`; no fit depends on it."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class RidgeSpec:
    """``(weight / 2) * ||variable[rows]||^2``; one weight, or one per row."""

    variable: int
    rows: IntArray | None
    weight: float | FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class CountedSpec:
    """The entries (rows) ``variable[rows]``; those with one label of ``groups`` count once."""

    variable: int
    rows: IntArray | None = None
    groups: IntArray | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class CardSpec:
    """At most ``k`` of all that is counted, or ``prices`` for each of it in the objective.

    With ``most`` the prices of what is nonzero add up to no more than that, outside the objective.
    """

    counted: tuple[CountedSpec, ...]
    k: int | None
    prices: tuple[float | FloatArray, ...] = ()
    """For each part of what is counted: one price, or one for each of its units."""
    most: float | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundSpec:
    """``lower <= variable[rows] <= upper``; None for no bound on a side."""

    variable: int
    rows: IntArray | None
    lower: float | FloatArray | None
    upper: float | FloatArray | None


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeastSpec:
    """Every entry of ``variable[rows]`` is zero or of size ``least`` or more."""

    variable: int
    rows: IntArray | None
    least: FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class OrderSpec:
    """What is counted of ``child`` is nonzero only beside that of ``parents``, one by one.

    With places: units of it in that order, with repetitions. Each has as many as the others, or
    one. Any of the parents will do; with ``pooled`` any unit of theirs.
    """

    child: tuple[CountedSpec, IntArray | None]
    parents: tuple[tuple[CountedSpec, IntArray | None], ...]
    pooled: bool


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinearSpec:
    """``lower <= sum of blocks <= upper``, row by row."""

    blocks: tuple[Block, ...]
    lower: FloatArray
    upper: FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class NormSpec:
    """``norm(variable[rows] - center, order) <= radius``."""

    variable: int
    rows: IntArray | None
    order: Literal[1, 2]
    radius: float
    center: FloatArray | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class ImageSpec:
    """``norm(sum of blocks + shift, order) <= radius``."""

    blocks: tuple[Block, ...]
    shift: FloatArray
    order: Literal[1, 2]
    radius: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class SpectrumSpec:
    """All eigenvalues of a symmetric variable are between two numbers, infinite ones for none."""

    variable: int
    lower: float
    upper: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Coordinates ``z = forward @ v + shift`` in the place of a variable ``v`` of as many entries.

    ``v = back @ (z - shift)``. No ``back`` stands for the identity.
    """

    forward: Design | None
    """None where ``back`` is the identity, or knows its own inverse."""
    back: Design | None
    shift: FloatArray
    counted: IntArray
    """The coordinates that are the entries of the expression."""
    label: str
    """The expression in words."""
    entries: tuple[IntArray, IntArray, FloatArray] | None = None
    """Coordinates that are single entries of ``v``, which entries, and times what."""
    pairs: tuple[IntArray, IntArray, IntArray] | None = None
    """Coordinates that are multiples of a difference of two entries of ``v``, and which two."""

    def value(self, z: FloatArray) -> FloatArray:
        """Return the variable: single entries, and entries that are equal, without rounding."""
        if z.ndim == 2:
            return np.stack([self.value(column) for column in z.T], axis=1)
        moved = z - self.shift
        if self.back is None:
            return moved
        v = self.back.matvec(moved)
        single = np.empty(0, dtype=np.intp)
        if self.entries is not None:
            coordinates, single, factors = self.entries
            v[single] = moved[coordinates] / factors
        if self.pairs is not None:
            coordinates, first, second = self.pairs
            same = moved[coordinates] == 0.0
            v = _made_equal(v, first[same], second[same], single)
        return v

    def coordinates(self, v: FloatArray) -> FloatArray:
        """Return the coordinates of a value; what is zero up to rounding is zero."""
        z = np.asarray(v, dtype=np.float64)
        if z.ndim == 2:
            return np.stack([self.coordinates(column) for column in z.T], axis=1)
        if isinstance(self.back, StepsDesign):
            z = self.back.inverse(z)
        elif self.forward is not None:
            z = self.forward.matvec(z)
        size = np.abs(v).max(initial=0.0) + np.abs(self.shift)
        z = z + self.shift
        return np.where(np.abs(z) <= 1e-12 * size, 0.0, z)


def _made_equal(v: FloatArray, first: IntArray, second: IntArray, exact: IntArray) -> FloatArray:
    """Return ``v`` with one value for entries that pairs connect: an exact one where there is."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    pairs = sparse.coo_array((np.ones(first.size), (first, second)), shape=(v.size, v.size))
    number, part = connected_components(pairs, directed=False)
    last_first = np.concatenate([np.arange(v.size)[::-1], exact])
    leader = np.empty(number, dtype=np.intp)
    leader[part[last_first]] = last_first
    return np.asarray(v[leader[part]])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Declaration:
    """Everything the user declared."""

    variables: tuple[VariableSpec, ...]
    losses: tuple[LossSpec, ...]
    ridges: tuple[RidgeSpec, ...] = ()
    cards: tuple[CardSpec, ...] = ()
    bounds: tuple[BoundSpec, ...] = ()
    leasts: tuple[LeastSpec, ...] = ()
    orders: tuple[OrderSpec, ...] = ()
    linear: tuple[LinearSpec, ...] = ()
    norms: tuple[NormSpec, ...] = ()
    images: tuple[ImageSpec, ...] = ()
    spectra: tuple[SpectrumSpec, ...] = ()
    constant: float = 0.0
    changes: Mapping[int, Change] = field(default_factory=dict)
    """By variable: other coordinates, of which the other records speak."""
    entries: bool = False
    """Whether rows of matrix variables are numbers of single entries, counted row by row."""
