"""Variables and their slices."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.designs import column_names
from sparsemodel.designs.tables.labels import check_names, labels_of
from sparsemodel.interfaces import DataTypeError, FloatArray, IntArray, ModelError
from sparsemodel.interfaces.errors import closest
from sparsemodel.interfaces.numeric import plain_array, whole_number
from sparsemodel.modelling.expressions.affine import Affine, AffineLike, Piece
from sparsemodel.modelling.expressions.foreign import as_ours
from sparsemodel.modelling.expressions.symmetric import EigenvalueBound, eigenvalue_bound
from sparsemodel.modelling.expressions.values import (
    checked_shape,
    flag,
    names_of_entries,
    one_name,
    real_array,
)


class Variable(AffineLike):
    """An unknown: a number, a vector or a matrix.

    Parameters
    ----------
    shape
        Nothing (or ``()``) for a number, ``p`` for a vector, ``(p, m)`` for a matrix.
    name
        Its name in outputs.
    names
        Names of its entries (for a matrix, of its rows), all distinct; for example ``df.columns``.
    symmetric
        True for a symmetric matrix.
    nonneg
        True for ``w >= 0`` in every problem.

    Attributes
    ----------
    value
        The solution after :meth:`Problem.solve`, an array of ``shape`` (a float for a number);
        None before. To give a starting point, assign to it and call ``solve(start="value")``.

    Raises
    ------
    ModelError
        When a dimension is less than 1, the number of ``names`` is wrong, or a name is repeated.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> w.shape
    (3,)
    """

    @rejects_unknown_arguments
    def __init__(
        self,
        shape: int | tuple[int, ...] = (),
        *,
        name: str | None = None,
        names: Sequence[str] | None = None,
        symmetric: bool = False,
        nonneg: bool = False,
    ) -> None:
        self._shape = checked_shape(shape, "Variable")
        self.nonneg = flag(nonneg, "nonneg", "`w[:3] >= 0`")
        if symmetric and (len(self._shape) != 2 or self._shape[0] != self._shape[1]):
            raise ModelError(f"A symmetric Variable has shape (p, p), not {self._shape}.")
        self._symmetric = flag(symmetric, "symmetric")
        self.name = None if name is None else one_name(name, "names")
        self._names = None if names is None else self._check_names(names)
        self._features: tuple[str, ...] | None = None
        self._value: FloatArray | float | None = None
        self.owner: Variable | None = None
        """The matrix variable whose entries, row by row, this vector is."""
        self._entries: Variable | None = None
        self.tallied: tuple[Variable, IntArray, FloatArray] | None = None
        """Of a variable that counts: whose entries, and the least size of each where not zero."""
        self.proxied: Any = None
        """The CVXPY variable this one stands for, if any; it gets every value too."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def size(self) -> int:
        """Return the number of entries."""
        return prod(self._shape)

    @property
    def entries(self) -> Variable:
        """Return the entries of a matrix, row by row, as a vector; a vector as it is."""
        if len(self._shape) != 2:
            return self
        if self._entries is None:
            self._entries = Variable(self.size, name=self.name)
            self._entries.owner = self
        return self._entries

    @property
    def symmetric(self) -> bool:
        """Return whether it was declared to be a symmetric matrix."""
        return self._symmetric

    def __rshift__(self, bound: Any) -> EigenvalueBound:
        return eigenvalue_bound(self, bound, upper=False)

    def __lshift__(self, bound: Any) -> EigenvalueBound:
        return eigenvalue_bound(self, bound, upper=True)

    @property
    def label(self) -> str:
        """Return the name, or "variable" when it has none."""
        return self.name or "variable"

    @property
    def names(self) -> tuple[str, ...] | None:
        """Return the names of the entries (rows), if they have any."""
        return self._names

    @property
    def value(self) -> Any:
        """Return the current value; None before the first solve."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        if value is None:
            self._value = None
            return
        where = f"The value of {self.label}"
        check_names(labels_of(value), self._names, where)
        array = real_array(value, where=where, ndim=(len(self._shape),))
        if array.shape != self._shape:
            raise ModelError(f"{where} must have shape {self._shape}, not {array.shape}.")
        self.take(array)

    def take(self, found: FloatArray) -> None:
        """Take a value that was computed, of the variable's own shape."""
        self._value = found.copy() if self._shape else float(found)
        if self.proxied is not None:
            self.proxied.value = self._value

    def adopt_names(
        self,
        names: tuple[str, ...] | None,
        rows: IntArray | None,
        features: tuple[str, ...] | None = None,
    ) -> None:
        """Take the column names of a DataFrame, unless the user named the entries.

        And the ``features`` or terms of a formula that the columns belong to, where it was encoded.

        Raises
        ------
        DataError
            When the columns are the entries (those of ``rows``) in another order.
        """
        if names is not None and self._names is None and rows is None:
            self._names, self._features = self._check_names(names), features
        elif self._names is not None:
            own = self._names if rows is None else tuple(self._names[j] for j in rows.tolist())
            check_names(names, own, "The data frame", "df[list(w.names)]")

    def _check_names(self, names: Sequence[str]) -> tuple[str, ...]:
        return names_of_entries(names, self._shape[0] if self._shape else 1, self.label)

    def as_affine(self) -> Affine:
        return Affine((Piece(self, None, None),))

    def __getitem__(self, key: Any) -> Slice:
        if not self._shape:
            raise ModelError(f"{self.label} is a single number and has no entries.")
        row = isinstance(key, (int, np.integer))
        if len(self._shape) == 2 and (isinstance(key, tuple) or row):
            return Slice(self.entries, self._places((key, slice(None)) if row else key))
        if (names := names_in(key)) is not None:
            key = self._named(names)
            first = [self._named([name])[0] for name in names]
            return Slice(self, np.array(key), reordered=sorted(first) != first)
        return Slice(self, _indices(key, self._shape[0], self.label))

    def _named(self, keys: list[str]) -> list[int]:
        """Return the places of entries by name; that of a category has all of its dummies.

        So has the name of a term of a formula, ``"a:b"``.
        """
        if self._names is None:
            raise ModelError(
                f"The entries of {self.label} have no names: write names=df.columns where it is "
                "declared, or `sm.as_design(df) @ w` before."
            )
        found: set[int] = set()
        for key in keys:
            own = [j for j, name in enumerate(self._names) if name == key]
            own = own or [j for j, name in enumerate(self._features or ()) if name == key]
            own = own or [j for j, name in enumerate(self._names) if name.startswith(f"{key}[")]
            if not own:
                close = closest(str(key), (*self._names, *(self._features or ())))
                hint = f"; is {close!r} meant?" if close else "."
                raise ModelError(f"{self.label} has no entry named {key!r}{hint}")
            found.update(own)
        return sorted(found)

    def _places(self, key: tuple[Any, ...]) -> IntArray:
        """Return the places of some entries of a matrix among all of them, row by row."""
        if len(key) != 2:
            raise ModelError(f"{self.label}[...] takes one index or two, not {len(key)}.")
        rows, columns = (
            _indices(part, size, self.label) for part, size in zip(key, self._shape, strict=True)
        )
        return np.ravel(rows[:, None] * self._shape[1] + columns)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            known = self.__dict__.get("_names") or ()
            if any(one == name or one.startswith(f"{name}[") for one in known):
                raise AttributeError(
                    f"Entries are taken by name with brackets: write {self.name or 'w'}[{name!r}]"
                )
            return super().__getattr__(name)

    @property
    def T(self) -> Variable:
        """Return the vector itself (so that ``w.T @ w`` gets a helpful error)."""
        if len(self._shape) == 2 and not self._symmetric:
            raise ModelError(
                f"{self.label}.T: transposes of matrix variables are not understood; declare the "
                f"variable in the other shape, {self._shape[::-1]}, or transpose the data."
            )
        return self

    def __repr__(self) -> str:
        return self.name or f"Variable({', '.join(map(str, self._shape))})"


@final
class Slice(AffineLike):
    """Some entries (rows) of a variable, in increasing order."""

    def __init__(self, variable: Variable, rows: IntArray, *, reordered: bool = False) -> None:
        """``reordered``: whether they were named in another order."""
        self.variable = variable
        self.rows = rows
        self.reordered = reordered

    def as_affine(self) -> Affine:
        return Affine((Piece(self.variable, self.rows, None),))

    def __rmatmul__(self, matrix: Any) -> Affine:
        self._refuse_reordered(matrix)
        owner = self.variable.owner
        if owner is not None and self.rows.size > 1:
            rows, columns = np.divmod(self.rows, owner.shape[1])
            if np.ptp(rows) and np.ptp(columns):
                raise ModelError(
                    f"A matrix times a part of {owner.label} with several rows and columns is not "
                    "understood; write it for each column, `A @ W[:, j]`."
                )
        return super().__rmatmul__(matrix)

    def _in_order(self, numbers: Any, what: str) -> None:
        super()._in_order(numbers, what)
        self._refuse_reordered(numbers)

    def _refuse_reordered(self, numbers: Any) -> None:
        """Refuse numbers by position beside entries that were named in another order."""
        what = f"An array beside {self}"
        shape = numbers.shape if hasattr(numbers, "shape") else plain_array(numbers, what).shape
        if self.reordered and shape and column_names(numbers) is None:
            raise ModelError(
                f"{self} has its entries in the order of {self.variable.label}, not in that of the "
                "names, so that an array beside it would meet others. Name them in the order of "
                f"{self.variable.label}."
            )

    def __repr__(self) -> str:
        return f"{self.variable.label}[{self.rows.size} entries]"


def _no_sequence(expression: Any) -> ModelError:
    return ModelError(
        f"diff takes a variable or a slice of one, not {expression}. Differences of differences "
        "are sm.diff(w, 2), those of `A @ w` `np.diff(A, axis=0) @ w`."
    )


@rejects_unknown_arguments
def diff(expression: Any, order: int = 1) -> Affine:
    """Return the differences of neighbouring entries (rows, of a matrix) of a variable.

    Those of order 1 are ``w[i + 1] - w[i]``; higher orders repeat this. Rows of a matrix that
    differ from the one before are counted by ``sm.card(sm.diff(W), axis=1)``, as change points of
    several sequences together.

    Parameters
    ----------
    expression
        A variable of more than ``order`` entries (rows), or a slice of one.
    order
        The order of the differences: 1 for jumps, 2 for changes of slope, ...

    Returns
    -------
    Affine
        An expression with ``order`` fewer entries, for ``card`` or a loss.

    Raises
    ------
    ModelError
        When ``expression`` is not a variable or a slice of one, or has too few entries.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> w = sm.Variable(50, name="w")
    >>> sm.card(sm.diff(w)) <= 3
    card(w[...] + -1 * w[...]) <= 3
    """
    order = whole_number(order, where="The order of diff", minimum=1)
    expression = as_ours(expression)
    affine = expression.as_affine() if isinstance(expression, AffineLike) else None
    if affine is None or len(affine.pieces) != 1 or affine.offset is not None:
        raise _no_sequence(expression)
    piece, count = affine.pieces[0], affine.pieces[0].row_count - order
    if not piece.bare or not piece.shape:
        raise _no_sequence(expression)
    if count < 1:
        raise ModelError(f"diff of order {order} needs more entries than {piece.row_count}.")
    rows = piece.row_places
    pieces = [
        Piece(
            piece.variable,
            rows[shift : shift + count],
            None,
            (-1.0) ** (order - shift) * comb(order, shift) * piece.factor,
        )
        for shift in range(order, -1, -1)
    ]
    return Affine(tuple(pieces))


def _indices(key: Any, size: int, label: str) -> IntArray:
    rows = indices_of(key, size, label)
    if np.any(np.diff(rows) <= 0):
        raise ModelError(
            f"The entries of {label}[...] must be distinct and in increasing order. In a hierarchy "
            f"sm.chosen({label})[...] takes them as they come: `sm.chosen({label})[kids] <= "
            f"sm.chosen({label})[parents]`."
        )
    return rows


def names_in(key: Any) -> list[str] | None:
    """Return the names that an index is made of; None for one of numbers."""
    listed = key.tolist() if hasattr(key, "tolist") else key
    listed = [listed] if isinstance(listed, str) else listed
    return listed if isinstance(listed, list) and isinstance((*listed, 0)[0], str) else None


def indices_of(key: Any, size: int, label: str) -> IntArray:
    """Return the places that an index means, in its order.

    Raises
    ------
    ModelError
        When it is out of range or selects nothing.
    DataTypeError
        When it is no index.
    """
    if isinstance(key, tuple):
        raise ModelError(f"{label}[...] takes one index: {label} is a vector.")
    if isinstance(key, slice) and isinstance(key.start or key.stop, str):
        raise DataTypeError(
            f"{label}[...] takes no range of names; list them, as in "
            f"`{label}[list(df.loc[:, {key.start!r}:{key.stop!r}])]`."
        )
    try:
        rows = np.atleast_1d(np.arange(size)[key])
    except IndexError as error:
        if "only integers" in str(error):
            raise DataTypeError(f"{label}[{key!r}] is not a slice, an index or a mask.") from error
        raise ModelError(
            f"{label}[{key!r}] is out of range: {label} has {size} entries."
        ) from error
    except (TypeError, ValueError) as error:
        raise DataTypeError(f"{label}[{key!r}] is not a slice, an index or a mask.") from error
    if rows.ndim != 1:
        raise ModelError(f"{label}[...] takes one index; matrix variables are sliced by rows.")
    if not rows.size:
        raise ModelError(f"{label}[{key!r}] selects no entries.")
    return rows
