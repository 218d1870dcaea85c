"""Norms: balls as constraints, and the sum of absolute values as a term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NoReturn, final

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import ModelError
from sparsemodel.interfaces.numeric import real_number
from sparsemodel.losses import AbsoluteLoss, SquaredLoss
from sparsemodel.modelling.expressions.affine import Affine, AffineLike
from sparsemodel.modelling.expressions.comparisons import Constraint, limit_text
from sparsemodel.modelling.expressions.foreign import as_ours, taken
from sparsemodel.modelling.expressions.objective_terms import LossTerm, Objective, Ridge
from sparsemodel.modelling.expressions.parameters import Quantity
from sparsemodel.modelling.expressions.symbolic import Symbolic


@final
@dataclass(frozen=True, slots=True, eq=False)
class NormConstraint(Constraint):
    """``norm(expression, order) <= radius``."""

    expression: Affine
    order: Literal[1, 2]
    radius: float | Quantity

    @property
    def bare(self) -> bool:
        """Return whether it is about (a slice of) a variable minus a constant."""
        return len(self.expression.pieces) == 1 and self.expression.pieces[0].bare

    def __repr__(self) -> str:
        order = "" if self.order == 2 else ", 1"
        return f"norm({self.expression}{order}) <= {limit_text(self.radius, np.max)}"


@final
class norm(Symbolic):
    r"""The norm of a variable, a slice of one, or an expression such as ``F @ w - c``.

    Compare it with ``<=``; ``gamma * sm.norm(w, 1)`` is also a term of an objective, and so is
    ``sm.norm(A @ w - b)**2``, the sum of squares.

    Parameters
    ----------
    expression
        A variable or a slice of one, possibly minus a constant (the centre of a ball), or a vector
        that is affine in variables: ``sm.norm(F @ w) <= risk``.
    order
        2 for the root of the sum of squares (of all entries, also for a matrix), 1 for the sum of
        absolute values, ``np.inf`` for the largest absolute value; others raise a ``ModelError``.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> w = sm.Variable(5, name="w")
    >>> sm.norm(w) <= 2.0
    norm(w) <= 2
    """

    _instead = "After solving, np.linalg.norm(w.value) is its value."

    @rejects_unknown_arguments
    def __init__(self, expression: Any, order: float = 2) -> None:
        expression = as_ours(expression)
        if not isinstance(expression, AffineLike):
            raise ModelError(f"norm takes a variable, not {type(expression).__name__}.")
        affine = expression.as_affine()
        bare = len(affine.pieces) == 1 and affine.pieces[0].bare
        if not affine.pieces or (not bare and len(affine.value_shape()) > 1):
            raise ModelError(
                f"norm takes a variable or a vector such as `F @ w - c`, not {affine}; of a matrix "
                "expression bound each column, sm.norm(F @ W[:, j])."
            )
        if np.isscalar(order) and order == 0:
            raise ModelError("The number of nonzeros is no norm: write sm.card(w) <= k.")
        if not np.isscalar(order) or order not in (1, 2, np.inf):
            raise ModelError(f"The order of norm is 1, 2 or np.inf, not {order!r}.")
        self.expression = affine
        self.order = order

    @property
    def value(self) -> float | None:
        """Return the norm at the values of the variables; None before they have any."""
        v = self.expression.value
        return None if v is None else float(np.linalg.norm(v.ravel(), self.order))

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
                "Only norm(w, 1) and norm(A @ w - b)**2 can be terms of an objective; for a "
                "Euclidean norm write the constraint sm.norm(w) <= radius."
            )
        shape = self.expression.value_shape() or (1,)
        if len(shape) > 1:
            raise ModelError("norm(W, 1) of a matrix variable is not understood as a term.")
        term = LossTerm(AbsoluteLoss(), self.expression, np.zeros(shape), None, "sum")
        return term.as_terms()

    def __pow__(self, exponent: Any) -> Objective:
        """Return the sum of squares as a term of an objective."""
        expression, offset = self.expression, self.expression.offset
        if self.order != 2 or exponent != 2:
            raise ModelError("Of powers of norms only sm.norm(A @ w - b)**2 is understood.")
        if offset is None and len(expression.pieces) == 1 and expression.pieces[0].bare:
            return Ridge(expression, 2.0).as_terms()
        shape = expression.value_shape() or (1,)
        constant: Any = np.zeros(shape) if offset is None else offset
        target = -(constant if np.shape(constant) == shape else constant + np.zeros(shape))
        prediction = Affine(expression.pieces)
        return LossTerm(SquaredLoss(), prediction, target, None, "sum", 2.0).as_terms()

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
