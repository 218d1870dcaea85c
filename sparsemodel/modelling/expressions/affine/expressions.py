"""Affine expressions of variables: ``A @ w + c``, slices, sums and scalings."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any, NoReturn, final

import numpy as np

from sparsemodel.designs import DenseDesign, SparseDesign, as_design, column_names
from sparsemodel.designs.tables.labels import check_names, check_rows, labels_of
from sparsemodel.interfaces import (
    DataError,
    DataTypeError,
    Design,
    FloatArray,
    ModelError,
)
from sparsemodel.interfaces.numeric import dimensions, real_number
from sparsemodel.modelling.expressions.affine.pieces import (
    Piece,
    column_sums,
    matrix_of,
    product_of,
)
from sparsemodel.modelling.expressions.comparisons import Constraint, compare
from sparsemodel.modelling.expressions.foreign import as_ours, taken
from sparsemodel.modelling.expressions.parameters import Parameter, Quantity
from sparsemodel.modelling.expressions.symbolic import HINTS, Symbolic, asked_by_sparse, no_numbers
from sparsemodel.modelling.expressions.values import real_array


class AffineLike(Symbolic):
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
    def names(self) -> tuple[str, ...] | None:
        """Return the names of the entries; None for what is not (a slice of) a named variable."""
        pieces = self.as_affine().pieces
        if len(pieces) != 1 or not pieces[0].bare or pieces[0].variable.names is None:
            return None
        known, rows = pieces[0].variable.names, pieces[0].rows
        return known if rows is None else tuple(known[j] for j in rows.tolist())

    def _in_order(self, numbers: Any, what: str) -> None:
        """Refuse numbers for the entries that are labelled in another order."""
        labels = labels_of(numbers)
        if labels is not None:
            check_names(labels, self.names, what)

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

    def sum(self, axis: int | None = None, out: None = None) -> Affine:
        """Return the sum of the entries, shape ``(1,)``; ``np.sum(w)`` comes here too.

        Of a matrix ``axis=0`` sums its columns, shape ``(m,)``, and ``axis=1`` its rows.
        ``out`` is NumPy's and must be None.
        """
        shape = self.shape
        if out is not None or axis not in (None, *range(-len(shape), len(shape))):
            raise ModelError(f"{self}.sum() takes axis=0 or, of a matrix, axis=1.")
        if len(shape) == 2 and axis in (1, -1):
            return self @ np.ones(shape[1])
        if len(shape) == 2 and axis is not None:
            return Affine(*column_sums(self.as_affine(), shape))
        total = self.__rmatmul__(np.ones((1, shape[0] if shape else 1)))
        return total @ np.ones(shape[1]) if len(shape) == 2 else total

    def mean(self, axis: int | None = None, dtype: None = None, out: None = None) -> Affine:
        """Return the mean of the entries, as ``sum`` does their sum; ``np.mean(w)`` comes here."""
        if dtype is not None:
            raise ModelError(f"{self}.mean() takes no dtype; all numbers are doubles.")
        total = self.sum(axis, out)
        return total.times(math.prod(total.shape) / math.prod(self.shape))

    def __rmatmul__(self, matrix: Any) -> Affine:
        affine, matrix = self.as_affine(), taken(matrix)
        design, shape, offset = matrix_of(matrix), affine.value_shape(), affine.offset
        rows = shape[0] if shape else 1
        if design.shape[1] != rows:
            raise DataError(
                f"A @ {self}: A has {design.shape[1]} columns and {self} has {rows} entries. "
                "They must be equal" + ("; did you mean A.T?" if design.shape[0] == rows else ".")
            )
        known = not isinstance(offset, Quantity) and not isinstance(design, Parameter)
        one = ((), (1,)) if len(shape) == 1 and not isinstance(design, Parameter) else ()
        repeated = [p.shape in one and p.shape != shape for p in affine.pieces]
        if len(affine.pieces) > 1 and sum(p.shape != shape for p in affine.pieces) > sum(repeated):
            raise ModelError(
                f"A matrix times {self}, of which one part is repeated for every entry, is not "
                "supported; multiply each part: `A @ w + A.sum(axis=1) * c`."
            )
        if offset is not None and not (known and len(shape) == 1):
            words = f"A matrix times {self} is not supported; multiply each part: `A @ w + A @ c`."
            raise ModelError(words)
        names = column_names(design.value) if isinstance(design, Parameter) else design.names
        features = getattr(getattr(design, "encoding", None), "features", None)
        for piece in affine.pieces:
            if piece.design is None:
                piece.variable.adopt_names(names, piece.rows, features)
        factors: list[Design | Parameter] = [design] * len(repeated)
        if any(repeated) and not isinstance(design, Parameter):
            column = as_design(design.matvec_in_double(np.ones(rows))[:, None])
            factors = [column if again else design for again in repeated]
        pieces = tuple(
            replace(p, design=product_of(left, p.design), multiplied=p.design is not None)
            for p, left in zip(affine.pieces, factors, strict=True)
        )
        if isinstance(design, Parameter) or offset is None:
            return Affine(pieces)
        at = np.broadcast_to(np.float64(offset), shape).copy()
        return Affine(pieces, design.matvec_in_double(at))

    def __getitem__(self, key: Any) -> Any:
        raise ModelError(
            f"{self} cannot be sliced; slice its parts instead: `A[rows] @ w`, "
            "`A[:, cols] @ w[cols]`, `w[rows] - w0[rows]`."
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
        self._in_order(other, "The vector a in `w @ a`")
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
            other = _numbers(other) if labels_of(other) is None else other
        return self.as_affine().plus(-other)

    def __rsub__(self, other: Any) -> Affine:
        return (-self).plus(other)

    def __neg__(self) -> Affine:
        return self.as_affine().times(-1.0)

    def __mul__(self, other: Any) -> Affine:
        if isinstance(other, AffineLike):
            raise ModelError(
                f"{self} * {other} is a product of unknowns, which is not affine. For a sum of "
                "squares write `sm.norm(w)**2` or sm.ridge(w, lam); of features multiply columns "
                "of the data, `A[:, i] * A[:, j]`."
            )
        if not isinstance(other, Quantity) and dimensions(other, f"The factors of {self}"):
            return self._entrywise(other)
        return self.as_affine().times(real_number(other, where="The factor of an expression"))

    __rmul__ = __mul__

    def _entrywise(self, factors: Any) -> Affine:
        """Return the product of each entry (row) of a vector or a number with its factor."""
        array = real_array(factors, where=f"The factors of {self}", ndim=(1, 2))
        shape = self.shape
        self._in_order(factors, f"The factors of {self}")
        if not shape and array.ndim == 1:
            return self.__rmatmul__(DenseDesign(array[:, None], labels=labels_of(factors)))
        if shape != array.shape or array.ndim > 1:
            raise DataTypeError(
                f"An array of shape {array.shape} times {self} would be a product entry by entry, "
                f"for which it needs the shape {shape[:1]}. The product of a matrix and a vector "
                "is `A @ w`."
            )
        return self.__rmatmul__(SparseDesign.diagonal(array))

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
            "counted by sm.card(w) <= k, groups that are in or out together by sm.card(w, "
            "groups=labels) <= k. A hierarchy is `sm.chosen(w[i]) <= sm.chosen(w[j])`. An entry is "
            "always in the model if it is not counted: `sm.card(w[others]) <= k - 1`."
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

    @property
    def labels(self) -> Any:
        """Return the labels of its rows, those of the first DataFrame; None where there is none."""
        found = (getattr(piece.design, "labels", None) for piece in self.pieces)
        return next((labels for labels in found if labels is not None), None)

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
                    "do not add up: every data matrix needs the same number of rows. An intercept "
                    "is sm.Variable(), of a matrix of predictions sm.Variable(m)."
                )
        return shape

    def plus(self, other: Any) -> Affine:
        """Return the sum with a constant or another expression."""
        other = as_ours(taken(other))
        if isinstance(other, AffineLike):
            one, two = _of_one_length(self, other.as_affine())
            if two.labels is not None:  # an expression takes long to write
                check_rows(self.labels, two.labels, f"The rows of {two}")
            out = Affine(one.pieces + two.pieces, _add(one.offset, two.offset))
        elif not isinstance(other, Quantity) and type(other).__module__.startswith("sparsemodel."):
            raise ModelError(
                f"{type(other).__name__} cannot be added to the affine expression {self}; "
                "close the loss's parenthesis before adding a term."
            )
        else:
            check_rows(self.labels, labels_of(other), "The constant of an expression")
            constant = other if isinstance(other, Quantity) else _numbers(other)
            out = Affine(self.pieces, _add(self.offset, constant))
        out.value_shape()
        return out

    def times(self, factor: float) -> Affine:
        """Return the expression scaled by a number."""
        pieces = tuple(replace(p, factor=factor * p.factor) for p in self.pieces)
        return Affine(pieces, None if self.offset is None else factor * self.offset)


def _of_one_length(one: Affine, two: Affine) -> tuple[Affine, Affine]:
    """Return two expressions, a single number (a sum, say) repeated beside a vector."""
    shapes = one.value_shape(), two.value_shape()
    size = max(math.prod(shape) for shape in shapes)
    if (1,) in shapes and (size,) in shapes and size > 1:
        every = np.ones((size, 1))
        return (one.__rmatmul__(every), two) if shapes[0] == (1,) else (one, two.__rmatmul__(every))
    return one, two


def _numbers(values: Any) -> FloatArray | float:
    array = real_array(values, where="The constant of an expression", ndim=(0, 1, 2))
    return float(array) if array.ndim == 0 else array


def _add(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    if np.ndim(a) and np.ndim(b) and np.shape(a) != np.shape(b):
        raise DataError(f"Constants of shapes {np.shape(a)} and {np.shape(b)} do not add up.")
    return a + b
