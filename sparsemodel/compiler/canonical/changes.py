"""Other coordinates for a variable: those of the expression of it that is counted.

What is counted has to be coordinates. Where ``card(D @ v + c)`` is declared, ``v`` is replaced by
``z = F v + shift``, whose first entries are those of ``D v + c`` and whose others, where ``D`` has
fewer rows than ``v`` has entries, span what ``D`` does not see; these are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sparsemodel.compiler.canonical.declaration import (
    Block,
    BoundSpec,
    Change,
    Declaration,
    ImageSpec,
    LinearSpec,
    LossSpec,
    NormSpec,
    RidgeSpec,
)
from sparsemodel.designs import DenseDesign, StepsDesign
from sparsemodel.interfaces import DataError, Design, FloatArray, IntArray, ModelError
from sparsemodel.losses import SquaredLoss
from sparsemodel.losses.residuals.linear import LinearLoss

_LARGEST = 2000
"""Entries of a variable up to which a general ``D`` is completed to a square matrix."""
_ONE_OF_THEM = (
    " Keep one of the limits, solve for a few of its k, and take a solution that the other allows."
)
_DEPENDENT = 1e-9
"""Rows are dependent where one has no more than this share of the largest left by the others."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """An expression of one variable: ``sum of blocks + offset``."""

    blocks: tuple[Block, ...]
    offset: FloatArray | None
    label: str
    """The expression in words."""


def change_of(images: list[Image], size: int) -> tuple[Change, list[IntArray]]:
    """Return coordinates of a variable of ``size`` entries that are the entries of expressions.

    And which of them each expression has. Entries that two of them share are one coordinate.

    Raises
    ------
    ModelError
        When rows are dependent, or there are more of them than entries.
    """
    shifts = [_shift(image, size) for image in images]
    known = [shift for shift in shifts if shift is not None]
    if len(known) == len(images):
        return _shifted(known, size, images)
    first = images[0].blocks
    factor = _difference(first, size) if len(images) == 1 else 0.0
    if factor:
        shift, offset = np.zeros(size), images[0].offset
        shift[:-1] = 0.0 if offset is None else offset / factor
        rows = np.arange(size - 1)
        return Change(None, StepsDesign(size), shift, rows, _label(images)), [rows]
    return _completed(images, size)


def _shift(image: Image, size: int) -> tuple[IntArray, FloatArray] | None:
    """Return entries and what is added to them, where an expression is no more than that."""
    first, offset = image.blocks[0], image.offset
    if len(image.blocks) > 1 or first.design is not None:
        return None
    rows = np.arange(size) if first.rows is None else first.rows
    if first.factor == 0.0:
        raise ModelError(f"card({image.label}) counts nothing: its factor is zero.")
    return rows, np.broadcast_to(0.0 if offset is None else offset / first.factor, rows.shape)


def _shifted(
    shifts: list[tuple[IntArray, FloatArray]], size: int, images: list[Image]
) -> tuple[Change, list[IntArray]]:
    """Return the entries themselves, each less a constant."""
    shift, counted = np.zeros(size), np.zeros(size, dtype=bool)
    for rows, more in shifts:
        if np.any(counted[rows] & (shift[rows] != more)):
            raise ModelError(
                f"{_words(images)} count the same entries less different constants, so that one "
                "may be zero where the other is not. With w0 held and at most k to be held, "
                "w[w0 == 0] are what may be bought: `sm.card(w[np.flatnonzero(w0 == 0)]) <= k - "
                "held` beside `sm.card(w - w0) <= trades`; what is sold makes room for more in "
                "another solve, with `w[sold] == 0`."
            )
        shift[rows], counted[rows] = more, True
    places = [rows for rows, _ in shifts]
    return Change(None, None, shift, np.flatnonzero(counted), _label(images)), places


def _words(images: list[Image]) -> str:
    return " and ".join(f"card({image.label})" for image in images)


def _label(images: list[Image]) -> str:
    return " and ".join(image.label for image in images)


def _completed(images: list[Image], size: int) -> tuple[Change, list[IntArray]]:
    """Return the entries of general expressions, completed to as many as the variable has."""
    rows: list[FloatArray] = []
    for image in images:
        matrix = np.sum([_matrix(block, size) for block in image.blocks], axis=0)
        offset = 0.0 if image.offset is None else image.offset
        rows.append(np.column_stack([matrix, np.broadcast_to(offset, len(matrix))]))
    stacked = np.concatenate(rows)
    lead = np.argmax(stacked != 0.0, axis=1)[:, None]
    scale = np.take_along_axis(stacked, lead, axis=1)
    _, first, place = np.unique(
        stacked / np.where(scale == 0.0, 1.0, scale), axis=0, return_index=True, return_inverse=True
    )
    alone = len(images) == 1  # its rows stay as they are, so that those alike are dependent
    kept = np.arange(len(stacked)) if alone else np.sort(first)
    number = kept if alone else np.searchsorted(kept, first[place.reshape(-1)])
    matrix, shift, r = stacked[kept, :size], np.zeros(size), kept.size
    if r > size:
        raise ModelError(
            f"{_words(images)}: {r} entries of expressions of {size} unknowns are counted, so "
            "that they depend on each other, and choosing which of them are zero is a problem of "
            f"its own. What can be counted has at most {size} rows that are independent of each "
            f"other, as sm.diff(w), or the edges of a tree.{_ONE_OF_THEM if not alone else ''}"
        )
    shift[:r] = stacked[kept, size]
    q, triangle = np.linalg.qr(matrix.T, mode="complete")
    sizes = np.abs(np.diag(triangle[:r]))
    if r and not sizes.min() > _DEPENDENT * sizes.max():
        raise ModelError(
            f"{_words(images)}: rows that are counted depend on each other; row "
            f"{int(np.argmin(sizes))} is a combination of those before it, up to rounding. "
            + ("Leave such rows out of the matrix." if alone else _ONE_OF_THEM.strip())
        )
    inverse = np.linalg.solve(triangle[:r], np.eye(r)).T  # Q1 R^-T inverts D on its row space
    back = np.concatenate([q[:, :r] @ inverse, q[:, r:]], axis=1)
    forward = np.concatenate([matrix, q[:, r:].T])
    places = np.split(number, np.cumsum([len(part) for part in rows])[:-1])
    some = np.count_nonzero(matrix, axis=1)
    single = np.flatnonzero(some == 1)
    entry = np.argmax(matrix[single] != 0.0, axis=1)
    entries = single, entry, matrix[single, entry]
    difference = np.flatnonzero((some == 2) & (matrix.sum(axis=1) == 0.0))
    two = np.nonzero(matrix[difference])[1].reshape(-1, 2)
    pairs = difference, two[:, 0], two[:, 1]
    designs, label = (DenseDesign(forward), DenseDesign(back)), _label(images)
    return Change(*designs, shift, np.arange(r), label, entries, pairs), places


def _difference(blocks: tuple[Block, ...], size: int) -> float:
    """Return ``f`` where the blocks are ``f`` times the differences of neighbours, else 0."""
    design = blocks[0].design
    if len(blocks) == 1 and design is not None and blocks[0].rows is None:
        if design.shape[0] != size - 1 or not 1 < size <= _LARGEST:
            return 0.0
        matrix = design.to_array()
        same = np.array_equal(matrix, matrix[0, 1] * np.diff(np.eye(size), axis=0))
        return blocks[0].factor * float(matrix[0, 1]) if same else 0.0
    if len(blocks) != 2 or any(b.design is not None or b.rows is None for b in blocks):
        return 0.0
    later, earlier = sorted(blocks, key=lambda b: -int(np.asarray(b.rows)[0]))
    follow = np.array_equal(np.asarray(earlier.rows), np.arange(size - 1))
    follow = follow and np.array_equal(np.asarray(later.rows), np.arange(1, size))
    return later.factor if follow and later.factor == -earlier.factor else 0.0


def _matrix(block: Block, size: int) -> FloatArray:
    """Return a block as a matrix of all entries of its variable."""
    if size > _LARGEST:
        raise ModelError(
            f"card of a matrix times a variable is for at most {_LARGEST} entries, not {size}; "
            "sm.diff(w) is for any number."
        )
    rows = np.arange(size) if block.rows is None else block.rows
    inner = np.eye(rows.size) if block.design is None else block.design.to_array()
    out = np.zeros((inner.shape[0], size))
    out[:, rows] = block.factor * inner
    return out


def changed(declaration: Declaration) -> Declaration:
    """Return the declaration over the coordinates of its changes."""
    if not declaration.changes:
        return declaration
    rewriting = _Rewriting(declaration)
    losses = [rewriting.loss(spec) for spec in declaration.losses]
    ridges = [rewriting.ridge(spec) for spec in declaration.ridges]
    bounds = [rewriting.bound(spec) for spec in declaration.bounds]
    return replace(
        declaration,
        losses=(*losses, *(loss for _, more in ridges for loss in more)),
        ridges=tuple(spec for spec, _ in ridges if spec is not None),
        bounds=tuple(spec for spec in bounds if isinstance(spec, BoundSpec)),
        linear=(
            *(rewriting.linear(spec) for spec in declaration.linear),
            *(spec for spec in bounds if isinstance(spec, LinearSpec)),
        ),
        norms=tuple(rewriting.norm(spec) for spec in declaration.norms),
        images=tuple(rewriting.image(spec) for spec in declaration.images),
        constant=declaration.constant + rewriting.constant,
    )


@final
@dataclass(slots=True)
class _Rewriting:
    """Every part of a declaration in new coordinates; collects the constant that comes of it."""

    declaration: Declaration
    constant: float = 0.0

    def _change(self, variable: int) -> Change | None:
        return self.declaration.changes.get(variable)

    def _columns(self, variable: int) -> tuple[int, ...]:
        """Return the shape of a row of a matrix whose rows are coordinates; () for one number."""
        return () if self.declaration.entries else self.declaration.variables[variable].shape[1:]

    def _blocks(self, blocks: tuple[Block, ...], n: int) -> tuple[tuple[Block, ...], FloatArray]:
        """Return blocks in new coordinates, and the constant that they add to each row."""
        out, constant = [], np.zeros(n)
        for block in blocks:
            change = self._change(block.variable)
            if change is None:
                out.append(block)
                continue
            origin = change.value(np.zeros(change.shift.size))
            part = origin if block.rows is None else origin[block.rows]
            moved = part if block.design is None else block.design.matvec_in_double(part)
            constant = constant + block.factor * moved
            out.append(_composed(block, change))
        return tuple(out), constant

    def loss(self, spec: LossSpec) -> LossSpec:
        blocks, constant = self._blocks(spec.blocks, spec.target.shape[0])
        if not np.any(constant):
            return replace(spec, blocks=blocks)
        offset = constant if spec.offset is None else spec.offset + constant
        return replace(spec, blocks=blocks, offset=offset)

    def ridge(self, spec: RidgeSpec) -> tuple[RidgeSpec | None, tuple[LossSpec, ...]]:
        change = self._change(spec.variable)
        if change is None:
            return spec, ()
        rows = np.arange(change.shift.size) if spec.rows is None else spec.rows
        weight = np.broadcast_to(np.asarray(spec.weight, dtype=np.float64), rows.shape)
        if change.back is None:  # (w/2) |z - s|^2 = (w/2) |z|^2 - w s.z + constant
            s = change.shift[rows]
            self.constant += 0.5 * float(weight @ np.square(s))
            slopes = DenseDesign(-(weight * s)[None, :])
            line = LossSpec(
                LinearLoss(),
                (Block(spec.variable, rows, slopes),),
                None,
                np.ones(1),
                None,
                "sum",
            )
            return spec, (line,) if np.any(s) else ()
        blocks, constant = self._blocks((Block(spec.variable, rows, None),), rows.size)
        offset = constant if np.any(constant) else None
        zero = np.zeros((rows.size, *self._columns(spec.variable)))
        return None, (LossSpec(SquaredLoss(), blocks, offset, zero, weight.copy(), "sum"),)

    def bound(self, spec: BoundSpec) -> BoundSpec | LinearSpec:
        change = self._change(spec.variable)
        if change is None:
            return spec
        rows = np.arange(change.shift.size) if spec.rows is None else spec.rows
        low = -np.inf if spec.lower is None else spec.lower
        high = np.inf if spec.upper is None else spec.upper
        if change.back is None:
            s = change.shift[rows]
            return BoundSpec(spec.variable, rows, low + s, high + s)
        if self._columns(spec.variable):
            label = self.declaration.variables[spec.variable].label
            raise ModelError(
                f"Bounds on {label} beside card({change.label}, axis=1) are not understood: "
                f"{label} is found by what is counted. Put a ridge into the objective in their "
                "place."
            )
        lower, upper = (np.broadcast_to(end, rows.shape).astype(float) for end in (low, high))
        return self.linear(LinearSpec((Block(spec.variable, rows, None),), lower, upper))

    def linear(self, spec: LinearSpec) -> LinearSpec:
        blocks, constant = self._blocks(spec.blocks, spec.upper.size)
        return LinearSpec(blocks, spec.lower - constant, spec.upper - constant)

    def image(self, spec: ImageSpec) -> ImageSpec:
        blocks, constant = self._blocks(spec.blocks, spec.shift.size)
        return replace(spec, blocks=blocks, shift=spec.shift + constant)

    def norm(self, spec: NormSpec) -> NormSpec:
        change = self._change(spec.variable)
        if change is None:
            return spec
        label = self.declaration.variables[spec.variable].label
        if change.back is not None:
            raise ModelError(
                f"norm({label}) cannot be bounded beside {change.label}: {label} is "
                "found by what is counted. Put a ridge into the objective in its place."
            )
        s = change.shift if spec.rows is None else change.shift[spec.rows]
        return replace(spec, center=s if spec.center is None else spec.center + s)


def _composed(block: Block, change: Change) -> Block:
    """Return a block on a variable as one on its new coordinates."""
    back, rows = change.back, block.rows
    if back is None:
        return block
    if block.design is None:
        return replace(block, rows=None, design=back if rows is None else back.restrict_rows(rows))
    return replace(block, rows=None, design=_product(block.design, rows, back))


def _product(design: Design, rows: IntArray | None, back: Design) -> Design:
    """Return ``design @ back[rows]``, stored."""
    n, size = design.shape[0], back.shape[0]
    entries = design.to_array()
    if rows is not None:
        whole = np.zeros((n, size))
        whole[:, rows] = entries
        entries = whole
    if not np.all(np.isfinite(entries)):
        raise DataError("The data hold NaN or infinite entries.")
    return DenseDesign(np.asfortranarray(back.rmatvec(np.ascontiguousarray(entries.T)).T))
