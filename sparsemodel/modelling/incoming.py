"""CVXPY expressions as declarations: the recognised atoms, without copying the data.

Nothing here imports CVXPY: expressions are told by the names of their classes, so that a problem
without them costs nothing.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from sparsemodel.interfaces import FloatArray, ModelError
from sparsemodel.losses import AbsoluteLoss, HingeLoss, HuberLoss, LogisticLoss, PoissonLoss
from sparsemodel.modelling.affine import Affine, AffineLike
from sparsemodel.modelling.constraints import Constraint, norm
from sparsemodel.modelling.custom import custom_loss
from sparsemodel.modelling.goal import Minimize, minimize
from sparsemodel.modelling.losses import squared_loss
from sparsemodel.modelling.objective import ObjectiveLike
from sparsemodel.modelling.terms import loss_term, ridge
from sparsemodel.modelling.variables import Variable

_twins: WeakValueDictionary[int, Variable] = WeakValueDictionary()
"""Our variable for each CVXPY variable, by its number."""

RECOGNISED = (
    "sum_squares, sum of logistic, huber, pos, abs, exp, norm1, affine terms, their sums and "
    "multiples"
)


def is_cvxpy(thing: Any) -> bool:
    """Return whether ``thing`` is CVXPY's: a variable, an expression, a constraint, a goal."""
    return type(thing).__module__.partition(".")[0] == "cvxpy"


def twin(variable: Any) -> Variable:
    """Return the variable that stands for a CVXPY variable; its value is handed back there."""
    number = int(variable.id)
    found = _twins.get(number)
    if found is None:
        found = Variable(tuple(variable.shape), name=variable.name())
        found.partner = variable
        _twins[number] = found
    return found


def goal_of(goal: Any) -> Minimize:
    """Return ``cp.Minimize(...)`` as our goal."""
    if type(goal).__name__ != "Minimize":
        raise ModelError("Only cp.Minimize(...) is understood; minimise the negative instead.")
    return minimize(_objective(goal.args[0], 1.0))


def constraint_of(constraint: Any) -> Constraint | tuple[Constraint, ...]:
    """Return a CVXPY constraint as ours."""
    kind = type(constraint).__name__
    if kind in ("Equality", "Zero"):
        left, right = _sides(constraint)
        return affine_of(left) == affine_of(right)
    if kind in ("Inequality", "NonPos"):
        left, right = _sides(constraint)
        name = type(left).__name__
        if (name.startswith("Pnorm") or name == "norm1") and right.is_constant():
            order = 1 if name == "norm1" else float(left.p)
            return norm(affine_of(left.args[0]), order) <= float(right.value)
        if left.is_affine() and right.is_affine():
            return affine_of(left) <= affine_of(right)
    raise ModelError(
        f"The CVXPY constraint {constraint} ({kind}) is not recognised; affine relations and "
        "norms of variables are. Declare the problem with sm.Variable, or leave it to CVXPY."
    )


def _sides(constraint: Any) -> tuple[Any, Any]:
    if len(constraint.args) == 2:
        return constraint.args[0], constraint.args[1]
    return constraint.args[0], 0.0 * constraint.args[0]


# ---- objectives ------------------------------------------------------------------------------


def _objective(expression: Any, factor: float) -> Any:
    """Return ``factor * expression`` as terms."""
    kind = type(expression).__name__
    if expression.is_constant():
        return _Constant(factor * float(np.asarray(expression.value).reshape(())))
    if kind == "AddExpression":
        parts = [_objective(part, factor) for part in expression.args]
        return _total(parts)
    if kind == "NegExpression":
        return _objective(expression.args[0], -factor)
    if kind in ("MulExpression", "multiply"):
        left, right = expression.args
        if left.is_constant() and left.size == 1:
            return _objective(right, factor * _number(left))
        if right.is_constant() and right.size == 1:
            return _objective(left, factor * _number(right))
    if kind == "DivExpression" and expression.args[1].is_constant():
        return _objective(expression.args[0], factor / float(expression.args[1].value))
    if expression.is_affine():
        return _linear(expression, factor)
    if factor < 0.0:
        raise ModelError(f"-{kind}(...) is not convex in {expression}.")
    if kind == "quad_over_lin":
        scale = factor / float(np.asarray(expression.args[1].value).reshape(()))
        return _squares(expression.args[0], scale)
    if kind == "norm1":
        return factor * _separable(expression, expression.args[0])
    if kind == "Sum":
        inner = expression.args[0]
        return factor * _separable(inner, inner.args[0] if inner.args else inner)
    if expression.size == 1:
        return factor * _separable(expression, expression.args[0])
    raise _unknown(expression)


class _Constant:
    """A number in the objective."""

    def __init__(self, number: float) -> None:
        self.number = number


def _total(parts: list[Any]) -> Any:
    constant = sum(part.number for part in parts if isinstance(part, _Constant))
    terms = [part for part in parts if not isinstance(part, _Constant)]
    if not terms:
        return _Constant(constant)
    total: ObjectiveLike = terms[0]
    for term in terms[1:]:
        total = total + term
    return total + constant


def _squares(inside: Any, scale: float) -> Any:
    """Return ``scale * sum_squares(inside)``: a ridge for a bare variable, else a loss."""
    expression = affine_of(inside)
    piece = expression.pieces[0]
    if len(expression.pieces) == 1 and piece.design is None and expression.offset is None:
        return ridge(Affine((piece,)), 2.0 * scale)
    rows = expression.value_shape()
    return (2.0 * scale) * squared_loss(expression, np.zeros(rows), reduction="sum")


def _separable(atom: Any, inside: Any) -> Any:
    """Return the sum of an elementwise atom over affine predictions."""
    kind = type(atom).__name__
    if kind in ("abs", "norm1"):
        u = affine_of(inside)
        return loss_term(AbsoluteLoss(), u, np.zeros(u.value_shape()), reduction="sum")
    if kind == "huber":
        u = affine_of(inside)
        loss = HuberLoss(delta=float(atom.M.value))
        return 2.0 * loss_term(loss, u, np.zeros(u.value_shape()), reduction="sum")
    if kind == "exp":
        u = affine_of(inside)
        return loss_term(PoissonLoss(), u, np.zeros(u.value_shape()), reduction="sum")
    if kind == "logistic":  # log(1 + exp(-y u)) with the signs -y in front of u
        u, signs = _signed(inside, atom)
        return loss_term(LogisticLoss(), u, -signs, reduction="sum")
    if kind == "maximum" and len(atom.args) == 2:
        active, other = atom.args
        if active.is_constant():
            active, other = other, active
        if other.is_constant() and not np.any(other.value):
            # max(0, t) = max(0, 1 - u) with u = 1 - t
            u = 1.0 - affine_of(active)
            return loss_term(HingeLoss(), u, np.ones(u.value_shape()), reduction="sum")
    raise _unknown(atom)


def _signed(inside: Any, atom: Any) -> tuple[Affine, FloatArray]:
    """Return predictions and the signs in front of them: ``-y`` of ``logistic(-y * u)``."""
    sign = 1.0
    while type(inside).__name__ == "NegExpression":
        sign, inside = -sign, inside.args[0]
    if type(inside).__name__ == "multiply" and inside.args[0].is_constant():
        signs = sign * np.asarray(inside.args[0].value, dtype=np.float64).ravel()
        u = affine_of(inside.args[1])
        signs = np.broadcast_to(signs, u.value_shape())
        if not np.all(np.abs(signs) == 1.0):
            raise ModelError(
                f"The factors inside {type(atom).__name__}(...) are understood as labels, which "
                "are -1 and 1."
            )
        return u, signs
    u = affine_of(inside)
    return u, np.full(u.value_shape(), sign)


def _linear(expression: Any, factor: float) -> Any:
    """Return an affine term of the objective as a custom loss."""
    affine = affine_of(expression)
    shape = affine.value_shape() or (1,)
    return custom_loss(
        lambda u: factor * float(np.sum(u)),
        lambda u: np.full(u.shape, factor),
        lambda u, v: np.zeros_like(v),
        of=affine if affine.value_shape() else affine + np.zeros(shape),
        name="linear_term",
        smoothness=0.0,
    )


def _unknown(expression: Any) -> ModelError:
    return ModelError(
        f"The CVXPY atom {type(expression).__name__} in {expression} is not recognised; "
        f"recognised are {RECOGNISED}."
    )


# ---- affine expressions ----------------------------------------------------------------------


def affine_of(expression: Any) -> Affine:
    """Return an affine CVXPY expression as ours; matrices are held by reference."""
    if isinstance(expression, AffineLike):
        return expression.as_affine()
    kind = type(expression).__name__
    if expression.is_constant():
        return Affine((), _array(expression.value))
    if kind == "Variable":
        return twin(expression).as_affine()
    if kind == "AddExpression":
        total = affine_of(expression.args[0])
        for part in expression.args[1:]:
            total = total.plus(affine_of(part))
        return total
    if kind == "NegExpression":
        return affine_of(expression.args[0]).times(-1.0)
    if kind == "Promote":
        return affine_of(expression.args[0])
    if kind == "Sum" and type(expression.args[0]).__name__ == "Variable":
        return twin(expression.args[0]).sum()
    if kind in ("MulExpression", "multiply"):
        left, right = expression.args
        if right.is_constant():
            left, right = right, left
        if left.is_constant() and (kind == "multiply" or left.size == 1) and _is_uniform(left):
            return affine_of(right).times(_number(left))
        if left.is_constant() and kind == "MulExpression":
            return affine_of(right).__rmatmul__(left.value)
    if kind == "DivExpression" and expression.args[1].is_constant():
        return affine_of(expression.args[0]).times(1.0 / _number(expression.args[1]))
    if kind == "index" and type(expression.args[0]).__name__ == "Variable":
        variable = twin(expression.args[0])
        rows = np.arange(variable.shape[0])[expression.key[0]]
        return variable[np.atleast_1d(rows)].as_affine()
    raise _unknown(expression)


def _is_uniform(constant: Any) -> bool:
    """Return whether a constant is one number, repeated for every entry perhaps."""
    values = constant.value
    return not hasattr(values, "tocsr") and bool(np.all(values == np.ravel(values)[0]))


def _number(constant: Any) -> float:
    return float(np.ravel(constant.value)[0])


def _array(value: Any) -> FloatArray | float:
    array = np.asarray(value, dtype=np.float64)
    return float(array) if array.ndim == 0 else array


__all__ = ["RECOGNISED", "affine_of", "constraint_of", "goal_of", "is_cvxpy", "twin"]
