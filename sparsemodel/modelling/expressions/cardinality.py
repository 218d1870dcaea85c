"""The cardinality of a variable: what is bounded, or has a price."""

from __future__ import annotations

from typing import Any, NoReturn, final

import numpy as np

from sparsemodel.interfaces import IntArray, ModelError
from sparsemodel.modelling.expressions.affine import Affine, AffineLike
from sparsemodel.modelling.expressions.comparisons import CardinalityConstraint, Counted, at_most
from sparsemodel.modelling.expressions.foreign import as_ours, taken
from sparsemodel.modelling.expressions.objective_terms import Objective, Price
from sparsemodel.modelling.expressions.parameters import Quantity
from sparsemodel.modelling.expressions.symbolic import Symbolic
from sparsemodel.modelling.expressions.symmetric import EdgeCount, offdiag
from sparsemodel.modelling.expressions.values import array_of, real_number


@final
class card(Symbolic):
    """The number of nonzero entries, rows or groups of a variable; compare it with ``<=``.

    ``gamma * sm.card(w)`` in an objective puts a price on each of them instead.

    Parameters
    ----------
    expression
        A variable or a slice of one. The entries left out of a slice are always in the model.
        ``sm.offdiag(Omega)`` counts the entries off the diagonal of a symmetric matrix, each
        edge twice.
    groups
        A label per entry: entries with one label count together, once.
        For a matrix one label per row: groups of rows.
    axis
        1 counts the rows of a matrix variable: a row counts once if anything in it is nonzero.
        A matrix of several columns needs it (or ``groups``), as CVXPY's users would mean the
        entries, which cannot be counted yet; with one column the two are the same.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> w = sm.Variable(500, name="w")
    >>> sm.card(w) <= 20
    card(w) <= 20
    """

    _instead = "After solving, the number of nonzeros is len(solution.support)."

    def __init__(self, expression: Any, *, groups: Any = None, axis: int | None = None) -> None:
        expression = as_ours(expression)
        self._edges = isinstance(expression, offdiag)
        if isinstance(expression, offdiag):
            if groups is not None or axis is not None:
                raise ModelError("card(offdiag(Omega)) takes neither groups nor axis.")
            self.expression: Affine = expression.expression
            self.groups: IntArray | None = None
            return
        if not isinstance(expression, AffineLike):
            raise ModelError(f"card takes a variable, not {type(expression).__name__}.")
        affine = expression.as_affine()
        plain = len(affine.pieces) == 1 and affine.offset is None
        if not plain or affine.pieces[0].design is not None:
            raise ModelError(
                f"card counts the entries of a variable or a slice of one, not of {affine}. "
                "Introduce a variable for what you want to be sparse."
            )
        shape = affine.pieces[0].shape
        if not (axis is None or (np.isscalar(axis) and axis == 1)) or (
            axis == 1 and len(shape) != 2
        ):
            raise ModelError("axis=1 counts the rows of a matrix variable; no other axis is known.")
        if not shape:
            raise ModelError(f"{affine} is a single number; there is nothing to count.")
        if axis is None and groups is None and len(shape) == 2 and shape[1] > 1:
            name = affine.pieces[0].variable.label
            raise ModelError(
                f"card({affine}) of a matrix could count its rows or its entries. Write "
                f"sm.card({name}, axis=1) for the rows: one counts once if anything in it is "
                "nonzero. The entries of a matrix cannot be counted yet; for losses that act on "
                "every entry of A @ W make it a vector, w = sm.Variable(p * m), with "
                "`np.kron(A, np.eye(m)) @ w` and B.ravel(), count sm.card(w), and take "
                "w.value.reshape(p, m)."
            )
        self.expression = affine
        self.groups = None if groups is None else _group_codes(groups, shape[0])

    @property
    def _counted(self) -> tuple[Counted]:
        return (Counted(self.expression, self.groups),)

    def __le__(self, k: Any) -> CardinalityConstraint | EdgeCount:
        limit = at_most(self._counted, k)
        return EdgeCount(self.expression, limit.k) if self._edges else limit

    def __lt__(self, k: Any) -> NoReturn:
        raise ModelError("Write `card(w) <= k`; for card(w) < k that is `card(w) <= k - 1`.")

    def __ge__(self, k: Any) -> NoReturn:
        raise ModelError("A lower bound on the number of nonzeros is not a sparsity constraint.")

    __gt__ = __ge__

    def __eq__(self, k: object) -> NoReturn:
        raise ModelError("Write `card(w) <= k`: a better fit uses all k anyway.")

    def __hash__(self) -> int:
        return object.__hash__(self)

    def as_terms(self) -> Objective:
        """Return a price of one on each nonzero."""
        if self._edges:
            raise ModelError("A price on edges is not supported; write card(offdiag(X)) <= 2 * k.")
        return Price(self._counted[0], 1.0).as_terms()

    def __mul__(self, gamma: Any) -> Price:
        if self._edges:
            raise ModelError("A price on edges is not supported; write card(offdiag(X)) <= 2 * k.")
        gamma = taken(gamma)
        if not isinstance(gamma, Quantity):
            gamma = real_number(gamma, where="The price of card", minimum=0.0)
        return Price(self._counted[0], gamma)

    __rmul__ = __mul__

    def __matmul__(self, _: Any) -> NoReturn:
        raise ModelError(
            "A price on card(w) is one number, the same for every entry; prices that differ are "
            "not supported."
        )

    __rmatmul__ = __matmul__

    def __add__(self, other: Any) -> Objective:
        return self.as_terms().__add__(other)

    __radd__ = __add__

    def __repr__(self) -> str:
        if self._edges:
            return f"card(offdiag({self.expression}))"
        return repr(self._counted[0])


def _group_codes(groups: Any, size: int) -> IntArray:
    array = np.asarray(array_of(groups, "groups") if hasattr(groups, "to_numpy") else groups)
    if array.shape != (size,):
        raise ModelError(
            f"groups needs one label for each of the {size} entries, and its shape is "
            f"{array.shape}."
        )
    if array.dtype.kind == "f" and np.any(np.isnan(array)):
        raise ModelError(f"groups has no label at index {int(np.argmax(np.isnan(array)))} (NaN).")
    if array.dtype.kind == "O":
        array = array.astype(str)
    return np.unique(array, return_inverse=True)[1].reshape(-1)


__all__ = ["card"]
