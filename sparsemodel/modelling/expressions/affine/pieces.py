"""The pieces of affine expressions: a matrix times a variable, or some of its entries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from sparsemodel.designs import DenseDesign, SparseDesign, as_design
from sparsemodel.interfaces import Design, FloatArray, IntArray, ModelError
from sparsemodel.modelling.expressions.parameters import Parameter, Quantity
from sparsemodel.modelling.expressions.values import real_array

if TYPE_CHECKING:
    from sparsemodel.modelling.expressions.affine.expressions import Affine
    from sparsemodel.modelling.expressions.variables import Variable


@final
@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """``factor * (design @ variable[rows] @ right)``; without matrices the entries themselves."""

    variable: Variable
    rows: IntArray | None
    design: Design | Parameter | None
    factor: float = 1.0
    right: FloatArray | None = None
    """Of a matrix variable: a matrix of its columns, or a vector of weights for them."""
    multiplied: bool = False
    """Whether the design is a product of several, so that new data would have to be one, too."""

    @property
    def bare(self) -> bool:
        """Return whether it is (a slice of) the variable itself, scaled perhaps."""
        return self.design is None and self.right is None

    @property
    def row_count(self) -> int:
        """Return how many entries (rows) of the variable are meant."""
        if self.rows is not None:
            return int(self.rows.size)
        return self.variable.shape[0] if self.variable.shape else 1

    @property
    def row_places(self) -> IntArray:
        """Return which entries (rows) of the variable are meant."""
        return np.arange(self.row_count) if self.rows is None else self.rows

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the piece's value."""
        full = self.variable.shape
        rows = full[:1] if self.rows is None else (int(self.rows.size),)
        if self.design is not None:
            rows = (self.design.shape[0],)
        return rows + (full[1:] if self.right is None else self.right.shape[1:])

    def by_entries(self) -> Piece:
        """Return the entries of (some rows of) a matrix variable as a vector."""
        entries, rows = self.variable.entries, self.rows
        if rows is not None and entries is not self.variable:
            m = self.variable.shape[1]
            rows = (rows[:, None] * m + np.arange(m)).ravel()
        return Piece(entries, rows, None)

    @property
    def value(self) -> FloatArray | None:
        """Return the piece at the value of its variable; None before it has one."""
        owner = self.variable.owner
        given = self.variable.value if owner is None else owner.value
        if given is None:
            return None
        x = np.asarray(given if owner is None else np.ravel(given), dtype=np.float64)
        x = x if self.rows is None else x[self.rows]
        if isinstance(self.design, Parameter):
            x = np.asarray(self.design.value @ x)
        elif self.design is not None:
            x = self.design.matvec_in_double(np.atleast_1d(x))
        return self.factor * (x if self.right is None else x @ self.right)


def matrix_of(matrix: Any) -> Design | Parameter:
    """Return what stands left of ``@`` as a design; a parameter as it is."""
    if isinstance(matrix, Parameter):
        if len(matrix.shape) != 2:
            raise ModelError(
                f"{matrix!r} @ ... needs a matrix; declare it as sm.Parameter((n, p))."
            )
        return matrix
    if isinstance(matrix, Quantity):
        raise ModelError(f"{matrix!r} is not a matrix.")
    if _is_row(matrix):  # `ones @ w == 1`
        matrix = real_array(matrix, where="The vector a in `a @ w`")[None, :]
    return as_design(matrix, where="The matrix A in `A @ w`")


def _is_row(matrix: Any) -> bool:
    if hasattr(matrix, "matvec"):
        return False
    try:
        return np.ndim(matrix) == 1
    except ValueError:
        return False  # rows of different lengths, which `as_design` refuses


def product_of(left: Design | Parameter, right: Design | Parameter | None) -> Design | Parameter:
    """Return the design of ``left @ (right @ w)``."""
    if right is None:
        return left
    if not isinstance(left, Parameter) and not isinstance(right, Parameter):
        if left.shape[0] == 1:
            return as_design(right.rmatvec_in_double(left.rmatvec_in_double(np.ones(1)))[None, :])
        held = (DenseDesign, SparseDesign)
        if isinstance(left, held) and isinstance(right, held):
            return as_design(left.array @ right.array)
    raise ModelError(
        "A matrix times `A @ w` is not supported where one of them is a parameter or not an array "
        "in memory; multiply the matrices first."
    )


def column_sums(matrix: Affine, shape: tuple[int, ...]) -> tuple[tuple[Piece, ...], Any]:
    """Return the sums of the columns, as pieces of the variables' entries and a constant."""
    sums, offset = [], matrix.offset
    for piece in matrix.pieces:
        given = isinstance(piece.design, Parameter) or isinstance(offset, Quantity)
        if len(piece.shape) != 2 or given:
            raise ModelError(f"The columns of {matrix} are not added up; do it for each part.")
        left, q = np.ones(piece.row_count), piece.variable.shape[1]
        if isinstance(piece.design, Design):
            left = piece.design.rmatvec_in_double(np.ones(shape[0]))
        right = np.eye(q) if piece.right is None else piece.right.T
        design = as_design(np.kron(left, right))
        sums.append(replace(piece.by_entries(), design=design, factor=piece.factor))
    return tuple(sums), None if offset is None else np.broadcast_to(offset, shape).sum(axis=0)
