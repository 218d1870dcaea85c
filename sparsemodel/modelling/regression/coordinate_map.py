"""Where the pieces of expressions stand: rows of matrix variables, or their single entries."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from sparsemodel.compiler.canonical.changes import Image, change_of
from sparsemodel.compiler.canonical.declaration import Block, Change
from sparsemodel.designs import KroneckerDesign, OnesDesign, SparseDesign, as_design
from sparsemodel.interfaces import Design, FloatArray, IntArray, ModelError
from sparsemodel.modelling.expressions.affine import Affine, Piece
from sparsemodel.modelling.expressions.comparisons import Constraint, Counted, LinearConstraint
from sparsemodel.modelling.expressions.parameters import Parameter, Quantity, resolve
from sparsemodel.modelling.expressions.variables import Variable


@final
class CoordinateMap:
    """The variables of a problem by number, and whether matrices stand entry by entry.

    As a rule a coordinate is a row of a matrix variable. Where a declaration is about single
    entries or columns, all matrices become vectors of their entries, row by row.
    """

    def __init__(
        self, variables: tuple[Variable, ...], counted: list[Counted], *, entries: bool
    ) -> None:
        self._variables, self._counted = variables, counted
        self._number = {id(v): i for i, v in enumerate(variables)}
        self._changes: dict[int, tuple[list[Affine], Change, list[IntArray]]] = {}
        self.entries = entries

    def of(self, piece: Piece) -> tuple[int, IntArray | None]:
        """Return the variable of a piece, and the coordinates of it that are meant."""
        variable, rows = piece.variable, piece.rows
        if variable.owner is not None:
            return self._number[id(variable.owner)], rows
        if self._apart(variable) and rows is not None:
            m = variable.shape[1]
            rows = (rows[:, None] * m + np.arange(m)).ravel()
        return self._number[id(variable)], rows

    def height(self, number: int) -> int:
        """Return how many rows a variable has."""
        return self._variables[number].shape[0]

    def changed(self, expression: Affine) -> tuple[int, IntArray]:
        """Return the variable of an expression that is counted, and its entries' coordinates."""
        variables = {self.of(piece)[0] for piece in expression.pieces}
        if len(variables) > 1:
            raise ModelError(
                f"card counts the entries of one variable, or of an expression of one, and "
                f"{expression} has several. Take what is counted for an unknown, `v = u + d` with "
                "a variable d: `A @ u + A @ d` in the place of `A @ v`, and sm.card(d) <= k."
            )
        (number,) = variables
        if self._variables[number].symmetric:
            raise ModelError(
                f"card({expression}) of a symmetric variable is not understood: its entries are "
                "counted, sm.card(W), or its pairs, sm.card(sm.offdiag(W)). Take the difference "
                "for the unknown: `A @ D + A @ W0` in the place of `A @ W`, and sm.card(D) <= k."
            )
        if number not in self._changes:
            self._changes[number] = self._change(number)
        expressions, _, places = self._changes[number]
        same = next(i for i, one in enumerate(expressions) if _same(one, expression))
        return number, places[same]

    def _change(self, number: int) -> tuple[list[Affine], Change, list[IntArray]]:
        """Return all expressions that are counted of a variable, and coordinates that hold them."""
        expressions: list[Affine] = []
        for part in self._counted:
            one = part.expression
            here = any(self.of(piece)[0] == number for piece in one.pieces)
            if here and not any(_same(one, other) for other in expressions):
                expressions.append(one)
        images = []
        for one in expressions:
            shape = one.value_shape()
            offset = resolve(one.offset, "The constant in card(...)")
            if offset is not None:
                offset = np.broadcast_to(np.asarray(offset, dtype=np.float64), shape).ravel()
            images.append(Image(self.blocks(one.pieces, shape), offset, str(one)))
        shape = self._variables[number].shape
        if any(len(one.value_shape()) == 2 for one in expressions) and self.entries:
            raise ModelError(
                f"card({expressions[0]}, axis=1) stands beside what is about single entries or "
                "columns of the matrix: a limit on them, a linear constraint, or a target of its "
                "own. Keep one of the two, or count the differences of each column, "
                "`[sm.card(sm.diff(W[:, j])) <= k for j in range(m)]`."
            )
        size = int(np.prod(shape)) if self.entries else shape[0]
        return expressions, *change_of(images, size)

    def counts_expressions(self, piece: Piece) -> bool:
        """Return whether an expression of the variable of a piece is counted, not only entries."""
        number = self.of(piece)[0]
        return any(
            not part.plain and self.of(part.expression.pieces[0])[0] == number
            for part in self._counted
        )

    @property
    def changes(self) -> dict[int, Change]:
        """Return the changes that were asked for."""
        return {number: change for number, (_, change, _) in self._changes.items()}

    def _apart(self, variable: Variable) -> bool:
        return self.entries and len(variable.shape) == 2

    def flat(self, values: Any, piece: Piece) -> Any:
        """Return numbers for the entries of a piece, in the order of its coordinates."""
        if not self._apart(piece.variable) or np.ndim(values) == 0:
            return values
        if np.ndim(values) == 1 and np.size(values) == piece.shape[0]:  # one for each row
            return np.repeat(values, piece.variable.shape[1])
        return np.broadcast_to(values, piece.shape).ravel()

    def labels(self, groups: IntArray | None, piece: Piece) -> IntArray | None:
        """Return the labels of the coordinates, given those of the rows (None: one each)."""
        if not self._apart(piece.variable):
            return groups
        rows = np.arange(piece.shape[0]) if groups is None else groups
        return np.repeat(rows, piece.variable.shape[1])

    def blocks(self, pieces: tuple[Piece, ...], shape: tuple[int, ...]) -> tuple[Block, ...]:
        """Return the pieces of an expression of this shape with their present data."""
        return tuple(
            Block(*self.of(piece), self._design(piece, shape), piece.factor) for piece in pieces
        )

    def _design(self, piece: Piece, shape: tuple[int, ...]) -> Design | None:
        design, right = _present(piece.design), piece.right
        if isinstance(piece.design, Parameter) and design is not None:
            piece.variable.adopt_names(design.names, piece.rows)  # those of the present value
        if self._apart(piece.variable):
            if right is None:
                return design if design is None else KroneckerDesign(design, piece.shape[1])
            left = SparseDesign.identity(piece.row_count) if design is None else design
            return KroneckerDesign(left, right.reshape(right.shape[0], -1))
        if self.entries and len(shape) == 2 and piece.shape:  # a row, repeated for all observations
            row: FloatArray | int = shape[1] if design is None else design.to_array().T
            return KroneckerDesign(OnesDesign(shape[0]), row)
        return design


def about_entries(expressions: list[Affine], constraints: tuple[Constraint, ...]) -> bool:
    """Return whether a declaration is about entries or columns of a matrix variable."""
    pieces = [piece for expression in expressions for piece in expression.pieces]
    return any(piece.right is not None or piece.variable.owner is not None for piece in pieces) or (
        any(
            isinstance(c, LinearConstraint) and len(c.expression.value_shape()) == 2
            for c in constraints
        )
    )


def _same(one: Affine, other: Affine) -> bool:
    """Return whether two expressions are alike, piece by piece."""
    if one is other:
        return True
    if len(one.pieces) != len(other.pieces) or not _equal(one.offset, other.offset):
        return False
    return all(
        a.variable is b.variable
        and a.factor == b.factor
        and a.right is b.right
        and _equal(a.rows, b.rows)
        and _equal(a.design, b.design)
        for a, b in zip(one.pieces, other.pieces, strict=True)
    )


def _equal(one: Any, other: Any) -> bool:
    """Return whether two numbers, arrays or designs are alike; parameters are themselves alone."""
    if one is other:
        return True
    if any(value is None or isinstance(value, Quantity) for value in (one, other)):
        return False
    one, other = (v.to_array() if isinstance(v, Design) else v for v in (one, other))
    return bool(np.array_equal(one, other))


def _present(design: Design | Parameter | None) -> Design | None:
    if not isinstance(design, Parameter):
        return design
    matrix = resolve(design, f"The data matrix {design!r}")
    return design.derived("design", lambda: as_design(matrix, where=f"{design!r}"))
