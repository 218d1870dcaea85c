"""Small problems as plain arrays, with everything a check needs to know about their answer.

An :class:`Instance` holds the data of a sparse regression as NumPy arrays; it can be stored in
any design, permuted, flipped, rescaled, and evaluated without the library's own objective.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias, final

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from sparsemodel.designs import (
    DenseDesign,
    OperatorDesign,
    SparseDesign,
    StackedDesign,
    TransformedDesign,
)
from sparsemodel.interfaces import (
    Box,
    Cardinality,
    DataFit,
    Design,
    FloatArray,
    IntArray,
    SparseRegression,
    Term,
)
from sparsemodel.numerics import RegressionObjective

Storage: TypeAlias = Callable[[FloatArray], Design]
"""Makes a design that holds the entries of an array."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """One term of an instance, ``F(array @ x + offset; target, weights)``."""

    array: FloatArray
    loss: DataFit
    target: FloatArray
    weights: FloatArray
    offset: FloatArray | None = None

    def value(self, x: FloatArray) -> float:
        """Return the term at ``x``, for the two basic losses from their textbook formulas."""
        u = self.array @ x
        u = u if self.offset is None else u + self.offset
        if self.loss.name == "squared_loss":
            squares = 0.5 * np.square(u - self.target)
            return float(self.weights @ squares.reshape(len(u), -1).sum(axis=1))
        if self.loss.name == "logistic_loss":
            return float(self.weights @ np.logaddexp(0.0, -self.target * u))
        return self.loss.total(u, self.target, self.weights)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    r"""A problem :math:`\min_x \sum_t F_t(A_t x + o_t) + \frac12\sum_j \lambda_j x_j^2` with at
    most ``sparsity.k`` counted units in ``x``.
    """

    name: str
    data: tuple[Data, ...]
    ridge: FloatArray
    sparsity: Cardinality
    outputs: int = 1
    matrix: bool = False
    box: Box | None = None
    constant: float = 0.0
    planted: IntArray | None = field(default=None)
    """The support that generated the data, where any sensible method finds it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of ``x``."""
        p = self.sparsity.size
        return (p, self.outputs) if self.matrix else (p,)

    def form(self, storage: Storage = DenseDesign) -> SparseRegression:
        """Return the canonical form, each array held by ``storage``."""
        terms = tuple(
            Term(storage(d.array), d.loss, d.target, d.weights, d.offset) for d in self.data
        )
        return SparseRegression(
            terms,
            self.ridge,
            self.sparsity,
            outputs=self.outputs,
            matrix=self.matrix,
            box=self.box,
            constant=self.constant,
        )

    def objective(self, storage: Storage = DenseDesign) -> RegressionObjective:
        """Return a new objective over :meth:`form`."""
        return RegressionObjective(self.form(storage))

    def value(self, x: FloatArray) -> float:
        """Return the objective at ``x``, price of the support included, from the formulas."""
        squares = np.square(x).reshape(len(x), -1).sum(axis=1)
        total = self.constant + 0.5 * float(self.ridge @ squares)
        total += sum(d.value(x) for d in self.data)
        return total + self.sparsity.price * self.sparsity.count(x)

    @property
    def origin(self) -> float:
        """Return the objective at zero, where a run without a start begins."""
        return self.value(np.zeros(self.shape))

    def arrays(self) -> dict[str, FloatArray]:
        """Return every array of the instance by name."""
        named: dict[str, FloatArray] = {"ridge": self.ridge}
        for t, d in enumerate(self.data):
            named |= {f"A{t}": d.array, f"target{t}": d.target, f"weights{t}": d.weights}
            if d.offset is not None:
                named[f"offset{t}"] = d.offset
        if self.box is not None:
            named |= {"lower": self.box.lower, "upper": self.box.upper}
        return named

    # ---- the same problem in other words -----------------------------------------------------

    def with_k(self, k: int) -> Instance:
        """Return the instance with another limit on the cardinality."""
        return replace(self, sparsity=replace(self.sparsity, k=k), planted=None)

    def permuted(self, order: IntArray) -> Instance:
        """Return the instance whose solution is ``x[order]`` when this one's is ``x``."""
        s = self.sparsity
        position = np.argsort(order)
        sparsity = replace(
            s,
            free=np.sort(position[s.free]),
            groups=None if s.groups is None else s.groups[order],
        )
        return replace(
            self,
            data=tuple(replace(d, array=d.array[:, order]) for d in self.data),
            ridge=self.ridge[order],
            sparsity=sparsity,
            box=None if self.box is None else Box(self.box.lower[order], self.box.upper[order]),
            planted=None if self.planted is None else np.sort(position[self.planted]),
        )

    def rescaled(self, d: FloatArray | float) -> Instance:
        """Return the instance whose solution is ``x / d`` (columns of ``A`` times ``d``)."""
        factor = np.broadcast_to(np.asarray(d, dtype=np.float64), self.ridge.shape)
        rows = factor if not self.matrix else factor[:, None]
        box = self.box
        if box is not None:
            ends = (box.lower / rows, box.upper / rows)
            box = Box(np.minimum(*ends), np.maximum(*ends))
        return replace(
            self,
            data=tuple(replace(t, array=t.array * factor) for t in self.data),
            ridge=self.ridge * factor**2,
            box=box,
        )

    def with_objective_times(self, c: float) -> Instance:
        """Return the instance with the objective multiplied by ``c > 0``; same solution."""
        return replace(
            self,
            data=tuple(replace(d, weights=d.weights * c) for d in self.data),
            ridge=self.ridge * c,
            constant=self.constant * c,
            sparsity=replace(self.sparsity, price=self.sparsity.price * c),
        )

    def with_target_times(self, c: float) -> Instance:
        """Return the instance with targets and offsets times ``c``; squared losses only.

        Its solution is ``c x``, its value ``c**2`` times this one's.
        """
        data = tuple(
            replace(d, target=d.target * c, offset=None if d.offset is None else d.offset * c)
            for d in self.data
        )
        sparsity = replace(self.sparsity, price=self.sparsity.price * c**2)
        return replace(self, data=data, sparsity=sparsity, constant=self.constant * c**2)

    def rounded(self) -> Instance:
        """Return the instance with every ``A`` rounded to what float32 can hold."""
        single = tuple(
            replace(d, array=d.array.astype(np.float32).astype(np.float64)) for d in self.data
        )
        return replace(self, data=single)


# ---- ways to store the same entries ----------------------------------------------------------


def _stacked(array: FloatArray) -> Design:
    n, p = array.shape
    even, odd = np.arange(0, p, 2), np.arange(1, p, 2)
    blocks = tuple((index, DenseDesign(array[:, index])) for index in (even, odd) if index.size)
    return StackedDesign(n, p, blocks)


def _transformed(array: FloatArray) -> Design:
    # Column j is stored at 2j of a wider array, shifted by j + 1 and divided by 2**j mod 8.
    n, p = array.shape
    shift = np.arange(1.0, p + 1.0)
    scale = np.exp2(np.arange(p) % 8 - 3.0)
    wide = np.full((n, 2 * p), 7.0)
    wide[:, ::2] = array / scale + shift
    return TransformedDesign(
        DenseDesign(wide), select=np.arange(0, 2 * p, 2), means=shift, scale=scale
    )


EXACT_STORAGES: Mapping[str, Storage] = MappingProxyType(
    {
        "dense C": lambda a: DenseDesign(np.ascontiguousarray(a)),
        "dense F": lambda a: DenseDesign(np.asfortranarray(a)),
        "strided view": lambda a: DenseDesign(np.repeat(a, 2, axis=1)[:, ::2]),
        "CSR": lambda a: SparseDesign(sparse.csr_array(a)),
        "CSC": lambda a: SparseDesign(sparse.csc_array(a)),
        "operator": lambda a: OperatorDesign(aslinearoperator(a)),
        "stacked": _stacked,
        "transformed": _transformed,
    }
)
"""Storages that hold the entries to double precision."""

SINGLE_STORAGES: Mapping[str, Storage] = MappingProxyType(
    {
        "float32": lambda a: DenseDesign(a.astype(np.float32)),
        "float32 CSR": lambda a: SparseDesign(sparse.csr_array(a.astype(np.float32))),
    }
)
"""Storages that hold the entries, and multiply, in single precision."""
