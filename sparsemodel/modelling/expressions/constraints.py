"""Constraints: bounds on entries, linear relations, norm balls, and what comparisons make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NoReturn, final

import numpy as np

from sparsemodel.interfaces import DataError, FloatArray, ModelError
from sparsemodel.modelling.expressions.affine import Affine, AffineLike
from sparsemodel.modelling.expressions.objective_terms import LossTerm, Objective, ObjectiveLike
from sparsemodel.modelling.expressions.parameters import Quantity
from sparsemodel.modelling.expressions.symbolic import Symbolic
from sparsemodel.modelling.expressions.values import array_of, real_array, real_number
from sparsemodel.modelling.from_cvxpy.affine_expressions import affine_of
from sparsemodel.modelling.from_cvxpy.following import is_cvxpy, taken


class Constraint:
    """What a comparison makes. It has no truth value: ``0 <= w <= 1`` must be written as two."""

    def __bool__(self) -> NoReturn:
        raise ModelError(
            "A constraint is neither true nor false. Write a chained comparison such as "
            "`0 <= w <= 1` as two constraints: `[w >= 0, w <= 1]`."
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bound(Constraint):
    """``lower <= expression <= upper`` for the entries of a variable, scaled by ``factor``."""

    expression: Affine
    lower: float | FloatArray | Quantity | None
    upper: float | FloatArray | Quantity | None

    def __repr__(self) -> str:
        low = "" if self.lower is None else f"{_least(self.lower, np.min)} <= "
        high = "" if self.upper is None else f" <= {_least(self.upper, np.max)}"
        return f"{low}{self.expression}{high}"


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinearConstraint(Constraint):
    """``expression <= 0`` or ``expression == 0``, row by row."""

    expression: Affine
    relation: Literal["<=", "=="]

    def __repr__(self) -> str:
        return f"{self.expression} {self.relation} 0"


@final
@dataclass(frozen=True, slots=True, eq=False)
class NormConstraint(Constraint):
    """``norm(expression, order) <= radius`` for (a slice of) a variable minus a constant."""

    expression: Affine
    order: Literal[1, 2]
    radius: float | Quantity

    def __repr__(self) -> str:
        order = "" if self.order == 2 else ", 1"
        return f"norm({self.expression}{order}) <= {_least(self.radius, np.max)}"


@final
class norm(Symbolic):
    r"""The Euclidean norm of a variable, a slice of one, or either minus a constant.

    Compare it with ``<=``; ``gamma * sm.norm(w, 1)`` is also a term of an objective.

    Parameters
    ----------
    expression
        A variable or a slice of one, possibly minus a constant (the centre of a ball).
    order
        2 (of all entries, for a matrix too), 1 for the sum of absolute values, ``np.inf`` for the
        largest.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> w = sm.Variable(5, name="w")
    >>> sm.norm(w) <= 2.0
    norm(w) <= 2
    """

    _instead = "After solving, np.linalg.norm(w.value) is its value."

    def __init__(self, expression: Any, order: float = 2) -> None:
        if is_cvxpy(expression):
            expression = affine_of(expression)
        if not isinstance(expression, AffineLike):
            raise ModelError(f"norm takes a variable, not {type(expression).__name__}.")
        affine = expression.as_affine()
        if len(affine.pieces) != 1 or affine.pieces[0].design is not None:
            raise ModelError(
                f"norm takes a variable, a slice of one, or either minus a constant, not {affine}. "
                "To keep a residual small, put it into the objective."
            )
        if not np.isscalar(order) or order not in (1, 2, np.inf):
            raise ModelError(f"The order of norm is 1, 2 or np.inf, not {order!r}.")
        self.expression = affine
        self.order = order

    def __le__(self, radius: Any) -> Constraint | tuple[Constraint, ...]:
        radius = taken(radius)
        if not isinstance(radius, Quantity):
            radius = real_number(radius, where="The bound on norm(...)", minimum=0.0)
        if self.order == np.inf:
            return self.expression <= radius, self.expression >= -radius
        order: Literal[1, 2] = 1 if self.order == 1 else 2
        return NormConstraint(self.expression, order, radius)

    def __lt__(self, radius: Any) -> NoReturn:
        raise ModelError("Strict inequalities describe open sets; write `<=`.")

    def __ge__(self, radius: Any) -> NoReturn:
        raise ModelError("A lower bound on a norm is not convex.")

    __gt__ = __ge__

    def __eq__(self, radius: object) -> NoReturn:
        raise ModelError("A sphere is not convex; write `norm(w) <= radius`.")

    def __hash__(self) -> int:
        return object.__hash__(self)

    def as_terms(self) -> Objective:
        """Return the norm as a term of an objective: order 1 only."""
        if self.order != 1:
            raise ModelError(
                "Only norm(w, 1) can be a term of an objective. For a squared Euclidean norm use "
                "sm.ridge(w, lam); for a Euclidean norm, the constraint sm.norm(w) <= radius."
            )
        from sparsemodel.losses import AbsoluteLoss

        shape = self.expression.value_shape() or (1,)
        if len(shape) > 1:
            raise ModelError("norm(W, 1) of a matrix variable is not understood as a term.")
        term = LossTerm(AbsoluteLoss(), self.expression, np.zeros(shape), None, "sum")
        return term.as_terms()

    def __mul__(self, factor: Any) -> Objective:
        scaled: Objective = self.as_terms() * factor
        return scaled

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Objective:
        return self.as_terms().__add__(other)

    __radd__ = __add__

    def __repr__(self) -> str:
        order = "" if self.order == 2 else f", {self.order:g}"
        return f"norm({self.expression}{order})"


def compare(left: AffineLike, relation: Literal["<=", ">=", "=="], right: Any) -> Constraint:
    """Return the constraint ``left relation right``."""
    right = taken(right)
    if is_cvxpy(right):
        right = affine_of(right)
    if isinstance(right, (ObjectiveLike, norm)):
        raise ModelError(f"{right!r} cannot be compared with a variable.")
    if isinstance(right, AffineLike):
        return compare(left - right, relation, 0.0)
    affine = left.as_affine()
    if not isinstance(right, Quantity):
        right = _limit(right, affine.value_shape())
    elif right.shape not in ((), affine.value_shape()):
        raise ModelError(
            f"A bound of shape {right.shape} does not fit {affine} of shape {affine.value_shape()}."
        )
    piece = affine.pieces[0]
    if len(affine.pieces) == 1 and piece.design is None:
        limit = right if affine.offset is None else right - affine.offset
        limit = limit if piece.factor == 1.0 else limit * (1.0 / piece.factor)
        bare = Affine((type(piece)(piece.variable, piece.rows, None),))
        upper = (relation == "<=") == (piece.factor > 0.0) or relation == "=="
        lower = not upper or relation == "=="
        return Bound(bare, limit if lower else None, limit if upper else None)
    if not isinstance(right, Quantity) and not np.all(np.isfinite(right)):
        raise ModelError("The right-hand side of a linear constraint must be finite.")
    moved = affine - right
    if relation == "==":
        return LinearConstraint(moved, "==")
    return LinearConstraint(moved if relation == "<=" else -moved, "<=")


def _limit(right: Any, shape: tuple[int, ...]) -> float | FloatArray:
    """Return the numbers of a comparison; infinite ones are allowed, NaN is not."""
    if hasattr(right, "to_numpy"):
        right = array_of(right, "A bound")
    array = np.asarray(right)
    if array.dtype.kind not in "biuf":
        array = real_array(right, where="A bound", ndim=(0, 1, 2))  # or says what is wrong
    with np.errstate(all="ignore"):  # longer floats that overflow are infinite, which is allowed
        array = array.astype(np.float64)
    if np.any(np.isnan(array)):
        raise DataError("A bound must not be NaN.")
    if array.ndim == 0:
        return float(array)
    if array.shape != shape:
        raise DataError(f"A bound of shape {array.shape} does not fit an expression of {shape}.")
    return array


def _least(limit: Any, pick: Any) -> str:
    return repr(limit) if isinstance(limit, Quantity) else f"{pick(limit):g}"


__all__ = ["Bound", "Constraint", "LinearConstraint", "NormConstraint", "compare", "norm"]
