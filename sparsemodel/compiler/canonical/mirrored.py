"""Symmetric matrix variables: their upper triangles, row by row, in the place of all entries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.compiler.canonical.declaration import (
    Block,
    BoundSpec,
    CardSpec,
    CountedSpec,
    Declaration,
    ImageSpec,
    LeastSpec,
    LinearSpec,
    NormSpec,
    OrderSpec,
    RidgeSpec,
)
from sparsemodel.designs import DenseDesign, SparseDesign
from sparsemodel.interfaces import FloatArray, IntArray, ModelError


def mirrored(declaration: Declaration) -> Declaration:
    """Return the declaration, about entries of matrices, over the triangles of symmetric ones."""
    if not any(spec.symmetric for spec in declaration.variables):
        return declaration
    own = _Mirror(declaration)
    return replace(
        declaration,
        losses=tuple(replace(s, blocks=own.blocks(s.blocks)) for s in declaration.losses),
        ridges=tuple(map(own.ridge, declaration.ridges)),
        cards=tuple(map(own.card, declaration.cards)),
        bounds=tuple(part for spec in declaration.bounds for part in own.bound(spec)),
        leasts=tuple(map(own.least, declaration.leasts)),
        orders=tuple(map(own.order, declaration.orders)),
        linear=tuple(
            LinearSpec(own.blocks(s.blocks), s.lower, s.upper) for s in declaration.linear
        ),
        norms=tuple(spec for spec in declaration.norms if own.places(spec) is None),
        images=(
            *(replace(s, blocks=own.blocks(s.blocks)) for s in declaration.images),
            *(own.norm(spec) for spec in declaration.norms if own.places(spec) is not None),
        ),
    )


@final
@dataclass(frozen=True, slots=True)
class _Mirror:
    """Every part of a declaration over triangles."""

    declaration: Declaration

    def places(self, part: Any) -> IntArray | None:
        """Return where the entries ``part.variable[part.rows]`` stand; None where nowhere else."""
        spec = self.declaration.variables[part.variable]
        if not spec.symmetric:
            return None
        found: IntArray = spec.places if part.rows is None else spec.places[part.rows]
        return found

    def blocks(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        return tuple(map(self._block, blocks))

    def _block(self, block: Block) -> Block:
        at = self.places(block)
        if at is None:
            return block
        from scipy.sparse import csc_array

        size = self.declaration.variables[block.variable].height
        chosen = csc_array((np.ones(at.size), (np.arange(at.size), at)), shape=(at.size, size))
        if block.design is None:
            return replace(block, rows=None, design=SparseDesign(chosen))
        stored = block.design.restrict(np.arange(at.size))
        if isinstance(stored, SparseDesign):
            return replace(block, rows=None, design=SparseDesign(csc_array(stored.array @ chosen)))
        dense = np.asfortranarray((chosen.T @ stored.to_array().T).T)
        return replace(block, rows=None, design=DenseDesign(dense))

    def ridge(self, spec: RidgeSpec) -> RidgeSpec:
        at = self.places(spec)
        if at is None:
            return spec
        kept, weights = _added(at, spec.weight)
        return RidgeSpec(spec.variable, kept, weights)

    def card(self, spec: CardSpec) -> CardSpec:
        """Return a limit on pairs, or a budget of two for each beside one for the diagonal."""
        if all(self.places(part) is None for part in spec.counted):
            return spec
        given = spec.prices if spec.k is None else (1.0,) * len(spec.counted)
        found = [self._counted(*pair) for pair in zip(spec.counted, given, strict=True)]
        parts, prices = tuple(part for part, _ in found), tuple(costs for _, costs in found)
        if spec.k is None:
            return replace(spec, counted=parts, prices=prices)
        costs = np.concatenate([np.atleast_1d(price) for price in prices])
        if np.all(costs == costs[:1]):
            return CardSpec(parts, int(spec.k // costs[0]) if costs.size else spec.k)
        return CardSpec(parts, None, prices, float(spec.k))

    def _counted(
        self, part: CountedSpec, price: float | FloatArray
    ) -> tuple[CountedSpec, float | FloatArray]:
        """Return what is counted once, and the price of all entries of each."""
        at = self.places(part)
        if at is None:
            return part, price
        if part.groups is not None:
            raise ModelError(
                f"The rows of {self._label(part)}, which is symmetric, have entries in common, and "
                "so may groups of its entries: they are not counted. Count entries, sm.card(W), or "
                "pairs, sm.card(sm.offdiag(W)); one row may have a limit, sm.card(W[0, :]) <= 2."
            )
        kept, prices = _added(at, price)
        return CountedSpec(part.variable, kept), prices

    def order(self, spec: OrderSpec) -> OrderSpec:
        def moved(side: tuple[CountedSpec, IntArray | None]) -> tuple[CountedSpec, IntArray | None]:
            at = self.places(side[0])
            if at is None:
                return side
            if side[0].groups is not None or np.unique(at).size < at.size:
                raise ModelError(
                    f"chosen(...) <= chosen(...) is about entries of {self._label(side[0])}, which "
                    "is symmetric: name each once, `sm.chosen(W[0, 1:])`."
                )
            return CountedSpec(side[0].variable, at), side[1]

        return OrderSpec(moved(spec.child), tuple(map(moved, spec.parents)), spec.pooled)

    def bound(self, spec: BoundSpec) -> tuple[BoundSpec, ...]:
        """Return the bounds above the diagonal and those below, which both hold."""
        at = self.places(spec)
        if at is None:
            return (spec,)
        p = self.declaration.variables[spec.variable].shape[0]
        i, j = np.divmod(np.arange(p * p) if spec.rows is None else spec.rows, p)
        return tuple(
            BoundSpec(spec.variable, at[on], *(_part(end, on) for end in (spec.lower, spec.upper)))
            for on in (np.flatnonzero(i <= j), np.flatnonzero(i > j))
            if on.size
        )

    def least(self, spec: LeastSpec) -> LeastSpec:
        at = self.places(spec)
        return (
            spec if at is None else replace(spec, rows=at)
        )  # of a vector: no entry is twice in it

    def norm(self, spec: NormSpec) -> ImageSpec:
        block = self._block(Block(spec.variable, spec.rows, None))
        rows = np.zeros(block.design.shape[0] if block.design is not None else 0)
        shift = rows if spec.center is None else -spec.center
        return ImageSpec((block,), shift, spec.order, spec.radius)

    def _label(self, part: CountedSpec) -> str:
        return self.declaration.variables[part.variable].label


def _added(at: IntArray, values: float | FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the places that are there, sorted, and the sums of the values at each."""
    kept, which = np.unique(at, return_inverse=True)
    sums = np.bincount(which.ravel(), np.broadcast_to(values, at.shape), kept.size)
    return kept, sums.astype(np.float64)


def _part(end: float | FloatArray | None, on: IntArray) -> float | FloatArray | None:
    return end if end is None or np.ndim(end) == 0 else np.asarray(end)[on]
