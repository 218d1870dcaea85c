"""What an objective is made of: losses, ridges, a price on the support, and their sums."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn, TypeAlias, final

import numpy as np

from sparsemodel.interfaces import DataFit, DataTypeError, Design, FloatArray, ModelError
from sparsemodel.interfaces.numeric import described, dimensions, real_number
from sparsemodel.losses.residuals.linear import LinearLoss
from sparsemodel.modelling.expressions.affine import Affine, AffineLike
from sparsemodel.modelling.expressions.comparisons import (
    CardinalityConstraint,
    Constraint,
    Counted,
    Requirement,
    Semicontinuous,
    at_most,
    limit_text,
)
from sparsemodel.modelling.expressions.foreign import objective_as_ours, taken
from sparsemodel.modelling.expressions.parameters import Quantity, resolve
from sparsemodel.modelling.expressions.symbolic import Symbolic

Reduction: TypeAlias = Literal["mean", "sum"]


class ObjectiveLike(Symbolic):
    """The operators that objective terms and their sums share."""

    _instead = "After solving, the value of the objective is solution.value."

    @abstractmethod
    def as_terms(self) -> Objective:
        """Return the expression as a sum of terms."""

    @property
    def value(self) -> float | None:
        """Return the term at the values of its variables; None before they have any."""
        here = self.as_terms()
        values = [term.value for term in here.terms]
        known = [value for value in values if value is not None]
        return math.fsum([here.constant, *known]) if len(known) == len(values) else None

    def __add__(self, other: Any) -> Objective:
        other = objective_as_ours(taken(other))
        if hasattr(other, "as_terms"):
            other = other.as_terms()
        if isinstance(other, ObjectiveLike):
            a, b = self.as_terms(), other.as_terms()
            return Objective(a.terms + b.terms, a.constant + b.constant)
        if isinstance(other, AffineLike):
            return self + linear_term(other)
        here = self.as_terms()
        if other is None or isinstance(other, Quantity):
            raise ModelError(f"{other!r} cannot be added to an objective; it may scale a term.")
        return Objective(here.terms, here.constant + real_number(other, where="A constant"))

    __radd__ = __add__

    def __mul__(self, other: Any) -> Objective:
        if isinstance(other, (ObjectiveLike, AffineLike)):
            raise ModelError("The product of two terms is not convex; only numbers scale terms.")
        here, other = self.as_terms(), taken(other)
        if isinstance(other, Quantity):
            if here.constant:
                raise ModelError("A parameter scales single terms, not a sum with a constant.")
            return Objective(tuple(term.scaled(other) for term in here.terms))
        if dimensions(other, f"The factor of {self!r}"):
            return self._weighted(other)
        factor = real_number(other, where="The factor of a term", minimum=0.0)
        return Objective(tuple(term.scaled(factor) for term in here.terms), factor * here.constant)

    __rmul__ = __mul__

    def _weighted(self, other: Any) -> NoReturn:
        raise DataTypeError(
            f"{self!r} is one number, and only a number scales it, not {described(other)}. Weights "
            "of the observations are `weights=` of the loss."
        )

    __matmul__ = __rmatmul__ = _weighted

    def __truediv__(self, other: Any) -> Objective:
        other = taken(other)
        if isinstance(other, Quantity):
            scaled: Objective = self * (1.0 / other)
            return scaled
        divisor = real_number(other, where="The divisor of a term")
        if not divisor > 0.0:
            raise ModelError(f"A term can only be divided by a positive number, not {divisor:g}.")
        return self * (1.0 / divisor)

    def __neg__(self) -> Objective:
        raise ModelError(
            "A negated loss is not convex. To maximise a likelihood, minimise its negative, "
            "which is what the losses are."
        )

    def __sub__(self, other: Any) -> Objective:
        if isinstance(other, ObjectiveLike):
            raise ModelError("The difference of two terms is not convex.")
        if isinstance(other, AffineLike):
            return self + linear_term(-other)
        if isinstance(other, Symbolic) and not isinstance(other, Quantity):
            if hasattr(other, "__rsub__"):
                return NotImplemented  # a concave function: the other side knows how
            raise ModelError(f"{other!r} cannot be subtracted from an objective.")
        return self + -real_number(other, where="A constant")

    def __rsub__(self, other: Any) -> Objective:
        raise ModelError("A negated loss is not convex.")

    def __pow__(self, other: Any) -> Objective:
        raise ModelError("Powers of a loss are not understood; scale it or add terms.")

    def __le__(self, other: Any) -> Any:
        if all(isinstance(term, Price) for term in self.as_terms().terms):
            return _limit_on(self.as_terms(), other)
        most = taken(other)
        if not isinstance(most, Quantity):
            most = real_number(most, where=f"The bound on {self!r}")
        return LossLimit(self.as_terms(), most)

    def __ge__(self, other: Any) -> NoReturn:
        raise ModelError(
            f"A lower bound on {self!r} is not convex. Minimise the term, or bound it by `<=`; for "
            "at least one of a set write `sm.card(w[some]) >= 1`."
        )

    __lt__ = __ge__
    __gt__ = __ge__


class FormTerm(ObjectiveLike, ABC):
    """A term that one form of problem understands, such as ``-sm.log_det(Omega)``."""

    expression: Affine
    """What it is a convex function of."""
    weight: float | Quantity
    """The number in front."""

    def as_terms(self) -> Objective:
        return Objective((self,))

    @property
    def value(self) -> float | None:
        self._refuse("The value")

    @abstractmethod
    def scaled(self, factor: float | Quantity) -> FormTerm:
        """Return the term times ``factor``."""


@final
class Objective(ObjectiveLike):
    """A sum of terms and a constant."""

    def __init__(
        self,
        terms: tuple[LossTerm | Ridge | Price | FormTerm, ...],
        constant: float = 0.0,
    ) -> None:
        self.terms = terms
        self.constant = constant

    def as_terms(self) -> Objective:
        return self

    def __repr__(self) -> str:
        parts = [repr(term) for term in self.terms]
        if self.constant:
            parts.append(f"{self.constant:g}")
        return " + ".join(parts) or "0"


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LossTerm(ObjectiveLike):
    """``scale * (mean or sum of loss(prediction, target))``."""

    loss: DataFit
    prediction: Affine | Design | None
    """A design alone is the short form: the problem's one vector variable is meant. None means
    that variable itself."""
    target: FloatArray | Quantity | None
    """None for losses that have no target (a custom function of the variable)."""
    weights: FloatArray | Quantity | None
    reduction: Reduction
    scale: float | Quantity = 1.0
    classes: tuple[Any, ...] | None = None
    """The classes as they were given, when the target came as text or booleans."""
    column_names: tuple[str, ...] | None = None
    levels: tuple[Any, ...] | None = None
    """The classes in their order, where the term is that of one threshold between them."""
    weights_are: str = "precision"
    """What the weights mean, see :mod:`sparsemodel.selection.weights`."""

    def as_terms(self) -> Objective:
        return Objective((self,))

    @property
    def value(self) -> float | None:
        if not isinstance(self.prediction, Affine) or isinstance(self.target, Quantity):
            self._refuse("The value")
        u = self.prediction.value
        if u is None:
            return None
        u = np.array(np.broadcast_to(u, self.prediction.value_shape()))
        y = np.zeros(u.shape) if self.target is None else self.target
        weights = np.ones(u.shape[0]) if self.weights is None else _now(self.weights)
        share = _now(self.scale) / (u.shape[0] if self.reduction == "mean" else 1.0)
        total = self.loss.total(u, y, np.asarray(share * weights))
        return float(total + share * self.loss.constant_of(y, np.asarray(weights)))

    def scaled(self, factor: float | Quantity) -> LossTerm:
        """Return the term times ``factor``."""
        return replace(self, scale=_times(factor, self.scale))

    def __repr__(self) -> str:
        prediction = "A" if isinstance(self.prediction, Design) else repr(self.prediction)
        shown = "" if self.prediction is None else prediction
        return f"{_factor(self.scale)}{self.loss.name}({shown})"


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ridge(ObjectiveLike):
    """``(weight / 2) ||expression||^2``; no expression means the problem's one vector variable."""

    expression: Affine | None
    weight: float | FloatArray | Quantity

    def as_terms(self) -> Objective:
        return Objective((self,))

    @property
    def value(self) -> float | None:
        if self.expression is None:
            self._refuse("The value")
        v = self.expression.value
        if v is None:
            return None
        rows = np.square(v).reshape(v.shape[0] if v.ndim else 1, -1).sum(axis=1)
        return 0.5 * float(np.sum(_now(self.weight) * rows))

    def scaled(self, factor: float | Quantity) -> Ridge:
        """Return the term times ``factor``."""
        return replace(self, weight=_times(factor, self.weight))

    def __repr__(self) -> str:
        name = "" if self.expression is None else f"{self.expression}, "
        weight = self.weight
        shown = repr(weight) if isinstance(weight, Quantity) else f"{np.mean(weight):g}"
        return f"ridge({name}{shown})"


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Price(ObjectiveLike):
    """``gamma * card(expression)`` in the objective, or ``costs @ chosen(expression)``."""

    counted: Counted
    gamma: float | FloatArray | Quantity
    """One price for all that is counted, or one for each."""

    @property
    def expression(self) -> Affine:
        """Return what is counted."""
        return self.counted.expression

    def as_terms(self) -> Objective:
        return Objective((self,))

    @property
    def value(self) -> float | None:
        chosen = self.counted.chosen
        return None if chosen is None else float(np.sum(_now(self.gamma) * chosen))

    def scaled(self, factor: float | Quantity) -> Price:
        """Return the term times ``factor``."""
        return replace(self, gamma=_times(factor, self.gamma))

    def __repr__(self) -> str:
        if np.ndim(self.gamma) or (isinstance(self.gamma, Quantity) and self.gamma.shape):
            shown = repr(self.gamma) if isinstance(self.gamma, Quantity) else "costs"
            return f"{shown} @ chosen({self.counted!r})".replace("(card(", "(").replace("))", ")")
        return f"{_factor(self.gamma)}{self.counted!r}"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Budget(Constraint):
    """``costs @ chosen(u) + costs @ chosen(v) + ... <= most``."""

    terms: tuple[Price, ...]
    most: float | Quantity

    def __repr__(self) -> str:
        return f"{' + '.join(map(repr, self.terms))} <= {limit_text(self.most, np.max)}"


@final
@dataclass(frozen=True, slots=True, eq=False)
class LossLimit(Constraint):
    """``loss <= most``, for the fewest nonzeros."""

    loss: Objective
    most: float | Quantity

    def __repr__(self) -> str:
        return f"{self.loss!r} <= {limit_text(self.most, np.max)}"


def counted_in(constraint: Constraint) -> tuple[Counted, ...]:
    """Return what a limit, a budget or a hierarchy is about, or what is zero or away from it."""
    if isinstance(constraint, CardinalityConstraint):
        return constraint.counted
    if isinstance(constraint, Semicontinuous):
        return (Counted(constraint.expression),)
    if isinstance(constraint, Budget):
        return tuple(term.counted for term in constraint.terms)
    if isinstance(constraint, Requirement):
        return tuple(part.counted for part in (constraint.child, *constraint.parents))
    return ()


def _limit_on(counts: Objective, k: Any) -> CardinalityConstraint | Budget:
    """Return ``card(u) + card(v) <= k``, or a budget where what is counted has a price."""
    prices = tuple(term for term in counts.terms if isinstance(term, Price))
    if not counts.constant and all(isinstance(p.gamma, float) and p.gamma == 1.0 for p in prices):
        return at_most(tuple(price.counted for price in prices), k)
    most = taken(k)
    if isinstance(most, Quantity):
        most = most - counts.constant if counts.constant else most
        if most.shape:
            raise ModelError(f"A budget is one number, and {most!r} has several.")
        return Budget(prices, most)
    most = real_number(most, where="The budget of costs @ chosen(...)") - counts.constant
    alike = _one_cost(prices)
    if most >= 0.0 and alike:
        return at_most(tuple(p.counted for p in prices), math.floor(most / alike * (1.0 + 1e-12)))
    if most < 0.0:
        raise ModelError(
            f"{counts!r} <= {most + counts.constant:g}: costs are not negative, and neither can "
            "be what they add up to. Write `costs @ sm.chosen(w) <= B` with B >= 0."
        )
    return Budget(prices, most)


def _one_cost(prices: tuple[Price, ...]) -> float:
    """Return the positive cost that all entries have in common; 0 where there is none."""
    if any(isinstance(price.gamma, Quantity) for price in prices):
        return 0.0
    costs = np.concatenate([np.ravel(price.gamma) for price in prices])
    return float(costs[0]) if np.all(costs == costs[0]) and costs[0] > 0.0 else 0.0


def linear_term(expression: AffineLike) -> LossTerm:
    """Return an affine expression that is one number as a term of an objective."""
    affine = expression.as_affine()
    if affine.value_shape() not in ((), (1,)):
        raise ModelError(
            f"{affine} has the shape {affine.value_shape()}, and an objective is one number: add a "
            "linear term such as `mu @ w` or `w.sum()`, put the expression inside a loss, or use "
            "sm.ridge(w, lam)."
        )
    if not affine.value_shape():
        affine = affine.plus(np.zeros(1))
    return LossTerm(LinearLoss(), affine, np.ones(1), None, "sum")


def _times(factor: Any, scale: Any) -> Any:
    return factor if isinstance(scale, float) and scale == 1.0 else factor * scale


def _now(number: Any) -> Any:
    """Return a number or array; of a parameter its value."""
    return resolve(number, "A factor")


def _factor(scale: Any) -> str:
    if isinstance(scale, Quantity):
        return f"{scale!r} * "
    return "" if scale == 1.0 else f"{scale:g} * "
