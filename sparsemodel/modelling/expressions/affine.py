"""Affine expressions of variables: ``A @ w + c``, slices, sums and scalings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np

from sparsemodel.designs import as_design, column_names
from sparsemodel.interfaces import (
    DataError,
    DataTypeError,
    Design,
    FloatArray,
    IntArray,
    ModelError,
)
from sparsemodel.interfaces.numeric import real_number
from sparsemodel.modelling.expressions.comparisons import Constraint, compare
from sparsemodel.modelling.expressions.foreign import as_ours, taken
from sparsemodel.modelling.expressions.parameters import Parameter, Quantity
from sparsemodel.modelling.expressions.symbolic import HINTS, Symbolic, asked_by_sparse, no_numbers
from sparsemodel.modelling.expressions.values import real_array

if TYPE_CHECKING:
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
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the piece's value."""
        full = self.variable.shape
        rows = full[:1] if self.rows is None else (int(self.rows.size),)
        if self.design is not None:
            rows = (self.design.shape[0],)
        return rows + (full[1:] if self.right is None else self.right.shape[1:])

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
            x = self.design.matvec(np.atleast_1d(x))
        return self.factor * (x if self.right is None else x @ self.right)


class AffineLike(Symbolic, ABC):
    """The operators that variables, slices and affine expressions share."""

    # SciPy leaves `array @ expression` to us when it sees this.
    __array_priority__: float = 1000.0
    _instead = "After solving, the numbers are in its .value."

    def __len__(self) -> int:
        name = str(self) if str(self).isidentifier() else f"({self})"
        raise DataTypeError(
            f"{self} is not a sequence, although it can be sliced; use {name}.shape."
        )

    def __iter__(self) -> NoReturn:
        raise DataTypeError(
            f"{self} is not iterable: the entries of an unknown cannot be looped over, added up "
            "or compared by Python's sum, min and max. Write w.sum() for the sum, `w >= 0` for a "
            "bound on every entry, w[0] for one of them."
        )

    @abstractmethod
    def as_affine(self) -> Affine:
        """Return the expression as a sum of pieces."""

    @property
    def value(self) -> Any:
        """Return the expression at the values of its variables; None before they have any."""
        affine = self.as_affine()
        parts: list[Any] = [piece.value for piece in affine.pieces]
        if affine.offset is not None:
            parts.append(getattr(affine.offset, "value", affine.offset))
        return None if any(part is None for part in parts) else np.asarray(sum(parts, np.zeros(())))

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the expression's value."""
        return self.as_affine().value_shape()

    @property
    def ndim(self) -> int:
        """Return the number of dimensions of the expression's value."""
        return len(self.shape)

    def __array__(self, *_args: Any, **_kwargs: Any) -> Any:
        if not asked_by_sparse():
            no_numbers(self, str(self) if str(self).isidentifier() else "w")
        single = np.empty((), dtype=object)
        single[()] = self
        return single

    def sum(self, axis: None = None, out: None = None) -> Affine:
        """Return the sum of the entries (of the rows of a matrix), shape ``(1,)``.

        ``np.sum(w)`` comes here too; ``axis`` and ``out`` are NumPy's and must be None.
        """
        if axis is not None or out is not None:
            raise ModelError(f"{self}.sum() takes no axis; for a column write `W[:, j].sum()`.")
        return self.__rmatmul__(np.ones((1, self.shape[0] if self.shape else 1)))

    def __rmatmul__(self, matrix: Any) -> Affine:
        affine, matrix = self.as_affine(), taken(matrix)
        design, shape, offset = _matrix(matrix), affine.value_shape(), affine.offset
        rows = shape[0] if shape else 1
        if design.shape[1] != rows:
            raise DataError(
                f"A @ {self}: A has {design.shape[1]} columns and {self} has {rows} entries. "
                "They must be equal" + ("; did you mean A.T?" if design.shape[0] == rows else ".")
            )
        known = not isinstance(offset, Quantity) and not isinstance(design, Parameter)
        if len(affine.pieces) > 1 and any(piece.shape != shape for piece in affine.pieces):
            raise ModelError(
                f"A matrix times {self}, of which one part is repeated for every entry, is not "
                "supported; multiply each part: `A @ w + A.sum(axis=1) * c`."
            )
        if offset is not None and not (known and len(shape) == 1):
            raise ModelError(
                f"A matrix times {self} is not supported; multiply each part: `A @ w + A @ c`."
            )
        names = column_names(matrix.value if isinstance(matrix, Parameter) else matrix)
        for piece in affine.pieces:
            piece.variable.adopt_names(names, piece.rows)
        pieces = tuple(replace(p, design=_product(design, p.design)) for p in affine.pieces)
        if isinstance(design, Parameter) or offset is None:
            return Affine(pieces)
        return Affine(pieces, design.matvec(np.broadcast_to(np.float64(offset), shape).copy()))

    def __getitem__(self, key: Any) -> Any:
        raise ModelError(
            f"{self} cannot be sliced; slice the data instead: `A[rows] @ w`, "
            "`A[:, cols] @ w[cols]`."
        )

    def _hint(self, function: str) -> str:
        hint = HINTS.get(function)
        return "" if hint is None else f"Instead, {hint}."

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise ModelError(
            f"Nothing can be assigned to entries of {self}. To fix one, add the constraint "
            "`w[0] == 1.0`; to start the search somewhere, set w.value and solve(start='value')."
        )

    def __abs__(self) -> NoReturn:
        raise ModelError(
            "The absolute value of an expression is not affine. For a sum of absolute residuals "
            "use sm.absolute_loss, for a bound `sm.norm(w, np.inf) <= 1`, for sizes of zero or at "
            "least 0.1 sm.semicontinuous(w, 0.1)."
        )

    def __matmul__(self, other: Any) -> Affine:
        other = taken(as_ours(other))
        if isinstance(other, AffineLike):
            raise ModelError(
                f"{self} @ {other} is a product of unknowns. For a sum of squares write "
                "`sm.norm(A @ w - b)**2`, for a quadratic form w @ Q @ w `sm.norm(F @ w)**2` with "
                "`F = np.linalg.cholesky(Q).T`; other products are not convex."
            )
        affine = self.as_affine()
        if isinstance(other, Quantity):
            raise ModelError(f"A parameter stands to the left of the variable: `{other!r} @ w`.")
        sparse = hasattr(other, "tocsc")
        matrix: Any = other if sparse else real_array(other, where="A in `w @ A`", ndim=(1, 2))
        if len(affine.value_shape()) == 1:
            return affine.__rmatmul__(matrix.T)
        if len(affine.pieces) != 1 or affine.offset is not None:
            raise ModelError(
                "A sum times a matrix is not supported; multiply each variable: `U @ A + V @ A`."
            )
        piece = affine.pieces[0]
        if piece.right is not None:
            raise ModelError("A product with two matrices is not supported; multiply them first.")
        right = np.asarray(matrix.toarray() if sparse else matrix, dtype=np.float64)
        if right.shape[0] != piece.shape[1]:
            raise DataError(
                f"{self} @ R: {self} has {piece.shape[1]} columns and R has {right.shape[0]} rows. "
                "They must be equal."
            )
        return Affine((replace(piece, right=right),))

    def __add__(self, other: Any) -> Affine:
        if hasattr(other, "as_terms") and self.shape in ((), (1,)):
            return NotImplemented  # a linear term of an objective: the other side knows how
        return self.as_affine().plus(other)

    def __radd__(self, other: Any) -> Affine:
        return self.as_affine().plus(other)

    def __sub__(self, other: Any) -> Affine:
        other = as_ours(taken(other))
        if not isinstance(other, (AffineLike, Quantity)):
            other = _numbers(other)
        return self.as_affine().plus(-other)

    def __rsub__(self, other: Any) -> Affine:
        return (-self).plus(other)

    def __neg__(self) -> Affine:
        return self.as_affine().times(-1.0)

    def __mul__(self, other: Any) -> Affine:
        if isinstance(other, AffineLike):
            raise ModelError("The product of two variables is not affine.")
        if np.ndim(other) > 0 and not isinstance(other, Quantity):
            raise DataTypeError(
                f"An array times {self} would be a product entry by entry, which is not "
                "understood: write `A @ w` for the product with a matrix, or put the factors into "
                "the columns of the data."
            )
        return self.as_affine().times(real_number(other, where="The factor of an expression"))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Affine:
        divisor = real_number(other, where="The divisor of an expression")
        if divisor == 0.0:
            raise ModelError("Division of an expression by zero.")
        return self.as_affine().times(1.0 / divisor)

    def __rtruediv__(self, other: Any) -> NoReturn:
        raise ModelError(f"A quotient by {self} is not affine in the variables.")

    def __pow__(self, other: Any) -> NoReturn:
        raise ModelError(
            "Powers of variables are not affine. For a sum of squares write "
            "`sm.norm(A @ w - b)**2`, for half of their mean sm.squared_loss(A @ w, b)."
        )

    # ---- comparisons make constraints --------------------------------------------------------

    def __le__(self, other: Any) -> Constraint:
        return compare(self, "<=", other)

    def __ge__(self, other: Any) -> Constraint:
        return compare(self, ">=", other)

    def __lt__(self, other: Any) -> NoReturn:
        raise ModelError("Strict inequalities describe open sets; write `<=` or `>=`.")

    __gt__ = __lt__

    def __eq__(self, other: object) -> Constraint:  # type: ignore[override]
        return compare(self, "==", other)

    def __ne__(self, other: object) -> NoReturn:
        raise ModelError(
            "`!=` does not describe a closed set and cannot be a constraint. Nonzero entries are "
            "counted by sm.card(w) <= k, of a part by sm.card(w[rows]) <= k, of groups that are in "
            "or out together by sm.card(w, groups=labels) <= k. That one entry may be nonzero only "
            "where another is (a hierarchy) is `sm.chosen(w[i]) <= sm.chosen(w[j])`."
        )

    def __hash__(self) -> int:
        return object.__hash__(self)


@final
class Affine(AffineLike):
    """A sum of pieces and a constant."""

    def __init__(
        self, pieces: tuple[Piece, ...], offset: FloatArray | float | Quantity | None = None
    ) -> None:
        self.pieces = pieces
        self.offset = offset

    def as_affine(self) -> Affine:
        return self

    def __repr__(self) -> str:
        parts = []
        for piece in self.pieces:
            factor = "" if piece.factor == 1.0 else f"{piece.factor:g} * "
            name = piece.variable.label + ("" if piece.rows is None else "[...]")
            left = "A @ " if piece.design is not None else ""
            parts.append(factor + left + name + (" @ R" if piece.right is not None else ""))
        if self.offset is not None:
            parts.append("offset")
        return " + ".join(parts)

    def value_shape(self) -> tuple[int, ...]:
        """Return the broadcast shape of the sum, or raise when the shapes do not agree."""
        shapes = [piece.shape for piece in self.pieces]
        if self.offset is not None:
            shapes.append(np.shape(self.offset))
        shape: tuple[int, ...] = ()
        for other in shapes:
            if other in ((), shape):
                continue
            if shape in ((), other[1:]):  # a number or a row is repeated for every observation
                shape = other
            elif other != shape[1:]:
                raise DataError(
                    f"The parts of {self} have the shapes {', '.join(map(str, shapes))}, which "
                    "do not add up: every data matrix needs the same number of rows."
                )
        return shape

    def plus(self, other: Any) -> Affine:
        """Return the sum with a constant or another expression."""
        other = as_ours(taken(other))
        if isinstance(other, AffineLike):
            affine = other.as_affine()
            offset = _add(self.offset, affine.offset)
            out = Affine(self.pieces + affine.pieces, offset)
        elif not isinstance(other, Quantity) and type(other).__module__.startswith("sparsemodel."):
            raise ModelError(
                f"{type(other).__name__} cannot be added to the affine expression {self}; "
                "close the loss's parenthesis before adding a term."
            )
        else:
            constant = other if isinstance(other, Quantity) else _numbers(other)
            out = Affine(self.pieces, _add(self.offset, constant))
        out.value_shape()
        return out

    def times(self, factor: float) -> Affine:
        """Return the expression scaled by a number."""
        pieces = tuple(replace(p, factor=factor * p.factor) for p in self.pieces)
        return Affine(pieces, None if self.offset is None else factor * self.offset)


def _matrix(matrix: Any) -> Design | Parameter:
    if isinstance(matrix, Parameter):
        if len(matrix.shape) != 2:
            raise ModelError(
                f"{matrix!r} @ ... needs a matrix; declare it as sm.Parameter((n, p))."
            )
        return matrix
    if isinstance(matrix, Quantity):
        raise ModelError(f"{matrix!r} is not a matrix.")
    if np.ndim(matrix) == 1 and not hasattr(matrix, "matvec"):  # a row: `ones @ w == 1`
        matrix = real_array(matrix, where="The vector a in `a @ w`")[None, :]
    return as_design(matrix, where="The matrix A in `A @ w`")


def _product(left: Design | Parameter, right: Design | Parameter | None) -> Design | Parameter:
    """Return the design of ``left @ (right @ w)``: a row times a matrix is a row."""
    if right is None:
        return left
    if isinstance(left, Parameter) or isinstance(right, Parameter) or left.shape[0] > 1:
        raise ModelError("A matrix times `A @ w` is not supported; multiply the matrices first.")
    return as_design(right.rmatvec(left.rmatvec(np.ones(1)))[None, :])


def _numbers(values: Any) -> FloatArray | float:
    array = real_array(values, where="The constant of an expression", ndim=(0, 1, 2))
    return float(array) if array.ndim == 0 else array


def _add(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    if np.ndim(a) and np.ndim(b) and np.shape(a) != np.shape(b):
        raise DataError(f"Constants of shapes {np.shape(a)} and {np.shape(b)} do not add up.")
    return a + b
