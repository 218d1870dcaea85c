"""Affine expressions of the language at given values of the variables, in extended precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from scipy import sparse

from sparsemodel.designs.remote.distributed import DistributedDesign
from sparsemodel.designs.remote.foreign import fetched, is_foreign
from sparsemodel.interfaces import Design, FloatArray
from sparsemodel.modelling.expressions.affine import Affine, Piece
from sparsemodel.modelling.expressions.parameters import Parameter, Quantity
from tests.referee.textbook_losses import Long, long

Values: TypeAlias = dict[int, FloatArray]
"""The value of each variable, by the identity of the variable."""

EPS = np.finfo(np.longdouble).eps
EPS64 = np.finfo(np.float64).eps
SMALLEST = np.finfo(np.float64).smallest_subnormal
"""The last digit of numbers near zero, which is no share of their size."""

_FEW = 16
"""Columns of an operator up to which they are looked at one by one."""

_LARGE = 250_000
"""Entries up to which a product is taken in extended precision."""


class Unjudged(Exception):
    """Why something cannot be judged, in words; this is no fault."""


@final
@dataclass(frozen=True, slots=True)
class Sum:
    """The value of an affine expression, how far it may be off, and its summands' sizes."""

    value: Long
    reach: Long
    """At most so far from the exact value."""
    size: Long
    """The sum of the absolute values of what was added up."""
    single: bool
    """Whether some data are in single precision."""


def present(quantity: Any) -> Any:
    """Return the number or array behind a parameter or a formula of parameters."""
    if not isinstance(quantity, Quantity):
        return quantity
    value = quantity.value
    if value is None:
        raise Unjudged("a parameter has no value")
    return value


def matrix_of(design: Any) -> Any:
    """Return the matrix as the user gave it: an array, a sparse matrix, else something to call."""
    if isinstance(design, Parameter):
        design = present(design)
        if hasattr(design, "to_numpy"):
            design = design.to_numpy()
        if not isinstance(design, Design):
            whole = isinstance(design, np.ndarray) or sparse.issparse(design)
            return design if whole or hasattr(design, "matvec") else np.asarray(design)
    held = getattr(design, "array", None)
    if is_foreign(held):
        return fetched(held, "A")
    return held if isinstance(held, np.ndarray) or sparse.issparse(held) else design


def dense(design: Any, columns: int) -> Long:
    """Return the entries of a small matrix; those of an operator by its own products."""
    matrix = matrix_of(design)
    if sparse.issparse(matrix):
        return long(matrix.toarray())
    if isinstance(matrix, np.ndarray):
        return long(matrix)
    return long(np.asarray(matrix.matvec(np.eye(columns))))


def product(design: Any, x: Long) -> Sum:
    """Return ``A @ x`` by the columns where ``x`` is not zero."""
    matrix = matrix_of(design)
    nonzero = np.flatnonzero(x if x.ndim == 1 else (x != 0.0).any(axis=1))
    part, terms = x[nonzero], int(nonzero.size) + 8
    if not isinstance(matrix, np.ndarray) and not sparse.issparse(matrix):
        value = long(np.asarray(matrix.matvec(np.asarray(x, dtype=np.float64))))
        if isinstance(matrix, DistributedDesign):
            size = long(matrix.magnitudes(nonzero, np.abs(np.asarray(part, dtype=np.float64))))
        elif nonzero.size <= _FEW:  # columns may cancel in the value
            units = np.zeros((len(x), nonzero.size))
            units[nonzero, np.arange(nonzero.size)] = 1.0
            size = np.abs(long(np.asarray(matrix.matvec(units)))) @ np.abs(part)
        else:
            size = np.abs(value).max(initial=0.0) + np.zeros_like(value)
        return Sum(value, size * EPS64 * 64 * terms, size, False)
    single = matrix.dtype == np.float32
    if sparse.issparse(matrix):
        matrix = sparse.csc_array(matrix)[:, nonzero]
    else:
        matrix = matrix[:, nonzero]
    if matrix.shape[0] * max(matrix.shape[1], 1) > _LARGE:
        matrix, flat = matrix.astype(np.float64), np.asarray(part, dtype=np.float64)
        size = long(np.abs(matrix) @ np.abs(flat))
        return Sum(long(matrix @ flat), size * EPS64 * terms, size, single)
    entries = long(matrix.toarray() if sparse.issparse(matrix) else matrix)
    size = np.abs(entries) @ np.abs(part)
    return Sum(entries @ part, size * EPS * terms, size, single)


def entries_of(piece: Piece, values: Values) -> FloatArray:
    """Return ``variable[rows]``; the entries of a matrix stand row by row."""
    variable = piece.variable
    if variable.owner is None:
        x = np.asarray(values[id(variable)])
    else:
        x = np.asarray(values[id(variable.owner)]).ravel()
    return x if piece.rows is None else x[piece.rows]


def piece_value(piece: Piece, values: Values) -> Sum:
    """Return ``factor * (design @ variable[rows] @ right)``."""
    x, factor = long(entries_of(piece, values)), long(piece.factor)
    if piece.design is None:
        found = Sum(x, np.abs(x) * EPS, np.abs(x), False)
    else:
        found = product(piece.design, np.atleast_1d(x))
    if piece.right is not None:
        right, extra = long(piece.right), long(piece.right.shape[0] * EPS)
        size = found.size @ np.abs(right)
        reach = found.reach @ np.abs(right) + extra * size
        found = Sum(found.value @ right, reach, size, found.single)
    size = np.abs(factor)
    return Sum(factor * found.value, size * found.reach, size * found.size, found.single)


def evaluate(affine: Affine, values: Values) -> Sum:
    """Return a sum of pieces and a constant; a number or a row is repeated for every row."""
    value, reach, size, single = long(0.0), long(0.0), long(0.0), False
    for piece in affine.pieces:
        one = piece_value(piece, values)
        value, reach, size = value + one.value, reach + one.reach, size + one.size
        single = single or one.single
    if affine.offset is not None:
        offset = long(present(affine.offset))
        value, size = value + offset, size + np.abs(offset)
    reach = reach + size * EPS * (len(affine.pieces) + 2)
    return Sum(long(value), long(reach), long(size), single)
