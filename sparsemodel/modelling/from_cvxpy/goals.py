"""CVXPY goals, constraints and attributes as declarations, without copying the data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sparsemodel.interfaces import ModelError
from sparsemodel.modelling.expressions.comparisons import Bound, Constraint
from sparsemodel.modelling.expressions.foreign import taken, value_of
from sparsemodel.modelling.expressions.norms import norm
from sparsemodel.modelling.expressions.symmetric import eigenvalue_bound
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.from_cvxpy.affine_expressions import (
    affine_of,
    is_uniform,
    kind_of,
    number_of,
    proxy_of,
    shown,
)
from sparsemodel.modelling.from_cvxpy.atoms import objective_of, root_of
from sparsemodel.modelling.goal import Minimize, minimize
from sparsemodel.modelling.precision_matrices.terms_and_constraints import forbidden_edges

_HARMLESS = {"nonneg", "pos", "nonpos", "neg", "bounds", "symmetric", "PSD"}
"""Attributes of CVXPY variables that are constraints here; our variables know the last two, and a
positive definite matrix is all that log_det allows."""


BOOLEANS = (
    "Bound both ends of w by it, `cp.abs(w) <= M * z` (or `w <= M * z` together with "
    "`w >= -M * z`, `w >= 0` or `w >= m * z`). Otherwise z may only appear in limits, budgets "
    "and costs (`cp.sum(z) <= k`, `cp.sum(z[rows]) <= 1`, `costs @ z <= budget`, "
    "`cp.sum(z[rows]) >= 1` together with one limit on all, `costs @ z` in the objective) and "
    "in hierarchies (`z[i] <= z[j]`, `z[i] <= z[j] + z[l]`). For one z for several entries "
    "write a group, `sm.card(w, groups=labels) <= k`, without z."
)
"""What constraints on boolean variables may say."""

_INSTEAD = {
    "boolean": BOOLEANS,
    "integer": ("The values of variables are real numbers here; round them, or solve with CVXPY."),
    "complex": (
        "Write real and imaginary part as two columns of a real variable of shape (p, 2) and count "
        "its rows: sm.card(W, axis=1) <= k. For complex data A = R + 1j*I the prediction has the "
        "rows `R @ W[:, 0] - I @ W[:, 1]` and `I @ W[:, 0] + R @ W[:, 1]`."
    ),
}
"""What to write in place of an attribute."""


def goal_of(goal: Any) -> Minimize:
    """Return ``cp.Minimize(f)`` as our goal, and ``cp.Maximize(f)`` as that of minimising -f."""
    inside = goal.args[0]
    return minimize(objective_of(-inside if kind_of(goal) == "Maximize" else inside))


def attributes_of(variables: Iterable[Variable]) -> tuple[Constraint, ...]:
    """Return what variables were declared to be (``nonneg=True``) as constraints.

    Raises
    ------
    ModelError
        For attributes that are no constraints here: ``integer``, ``boolean``, ...
    """
    found: list[Constraint] = []
    for variable in variables:
        if variable.nonneg:
            found.append(Bound(variable.as_affine(), 0.0, None))
        if variable.proxied is None:
            continue
        attributes = variable.proxied.attributes.items()
        given = {key: value for key, value in attributes if _is_set(value)}
        strange = sorted(given.keys() - _HARMLESS)
        if strange:
            raise ModelError(
                f"The CVXPY variable {variable.label} is declared {', '.join(strange)}, which is "
                f"not understood. {_INSTEAD.get(strange[0], 'Declare it without.')}"
            )
        expression = variable.as_affine()
        if given.keys() & {"nonneg", "pos"}:
            found.append(Bound(expression, 0.0, None))
        if given.keys() & {"nonpos", "neg"}:
            found.append(Bound(expression, None, 0.0))
        for end, upper in zip(given.get("bounds", ()), (False, True), strict=False):
            if end is not None:
                limit = taken(end)
                found.extend(flat(variable <= limit if upper else variable >= limit))
    return tuple(found)


def _is_set(value: Any) -> bool:
    """Return whether an attribute was given; some are lists or arrays of places."""
    return value is not None and value is not False


def flat(made: Any) -> tuple[Constraint, ...]:
    """Return one constraint or several as a tuple."""
    return made if isinstance(made, tuple) else (made,)


def constraint_of(constraint: Any) -> Constraint | tuple[Constraint, ...]:
    """Return a CVXPY constraint as ours.

    Raises
    ------
    ModelError
        When it is not recognised; the message names it.
    """
    kind = kind_of(constraint)
    if kind == "PSD":
        return _eigenvalues(constraint)
    if kind in ("Equality", "Zero"):
        left, right = _sides(constraint)
        pair = _entry(left)
        if pair is not None and right.is_constant() and not np.any(value_of(right)):
            return forbidden_edges(*pair)
        return affine_of(left) == affine_of(right)
    if kind in ("Inequality", "NonPos"):
        left, right = _sides(constraint)
        ball: Constraint | tuple[Constraint, ...] | None = _ball(left, right)
        if ball is not None:
            return ball
        if left.is_affine() and right.is_affine():
            return affine_of(left) <= affine_of(right)
        largest = _largest_eigenvalue(left, right)
        if largest is not None:
            return largest
        if kind_of(left) in ("max", "maximum") and getattr(left, "axis", None) is None:
            return tuple(one for part in left.args for one in flat(_below(part, right)))
        if kind_of(right) in ("min", "minimum") and getattr(right, "axis", None) is None:
            return tuple(one for part in right.args for one in flat(_below(left, part)))
    if any(v.attributes["boolean"] for v in constraint.variables()):
        raise ModelError(
            f"The constraint {shown(constraint)} has a boolean variable. {_INSTEAD['boolean']}"
        )
    if kind_of(constraint.args[-1]) == "abs":
        raise ModelError(
            f"{shown(constraint)}: a least size is not convex. For entries that are zero or at "
            "least m write sm.semicontinuous(w, m), or `m * z <= w` beside `w <= M * z`; for an "
            "entry of one sign `w[0] >= m`."
        )
    raise ModelError(
        f"The CVXPY constraint {shown(constraint)} ({kind}) is not recognised; affine relations, "
        "norms of affine expressions (`cp.norm(x) <= t` for cp.SOC(t, x)), `Omega >> alpha * "
        "np.eye(p)` and cp.lambda_min or lambda_max of a symmetric variable are. A loss that is "
        "bounded goes into the objective, with a weight that keeps the bound."
    )


def _below(part: Any, right: Any) -> Constraint | tuple[Constraint, ...]:
    """Return ``part <= right`` for one of the parts of a maximum."""
    if not (part.is_constant() and right.is_constant()):
        return constraint_of(part - right <= 0.0 if part.is_constant() else part <= right)
    if np.any(value_of(part) > value_of(right)):
        raise ModelError(f"{shown(part)} <= {shown(right)} never holds.")
    return ()


def _sides(constraint: Any) -> tuple[Any, Any]:
    if len(constraint.args) == 2:
        return constraint.args[0], constraint.args[1]
    return constraint.args[0], 0.0 * constraint.args[0]


def _ball(left: Any, right: Any) -> Any:
    """Return a bound on a norm, or None for anything else."""
    name = kind_of(left)
    if not left.args:
        return None
    inside = left.args[0]
    if name == "abs" and right.is_affine():
        expression, limit = affine_of(inside), affine_of(right)
        return expression <= limit, expression >= -limit
    if not right.is_constant():
        return None
    if name in ("max", "Sum") and kind_of(inside) == "abs" and left.axis is None:
        order = np.inf if name == "max" else 1.0
        return norm(affine_of(inside.args[0]), order) <= number_of(right)
    if name == "Pnorm":
        return norm(affine_of(inside), float(getattr(left.p, "value", left.p))) <= number_of(right)
    if name == "quad_over_lin" and left.args[1].is_constant():
        squared = number_of(right) * number_of(left.args[1])
        if squared >= 0.0:
            return norm(affine_of(inside)) <= float(np.sqrt(squared))
    if name == "QuadForm" and left.args[1].is_constant():
        root = root_of(value_of(left.args[1]))
        if root is not None and root.any() and number_of(right) >= 0.0:
            expression = affine_of(inside).__rmatmul__(root)
            return norm(expression) <= float(np.sqrt(number_of(right)))
    orders = {"norm1": 1.0, "norm_inf": np.inf}
    if name in orders and left.axis is None:
        return norm(affine_of(inside), orders[name]) <= number_of(right)
    return None


def _eigenvalues(constraint: Any) -> Constraint:
    """Return ``f * Omega + C >> 0`` as a bound on the eigenvalues of ``Omega``."""
    variable, factor, shift = None, 0.0, 0.0
    for part, sign in _summands(constraint.args[0], 1.0):
        if part.is_constant():
            value = value_of(part)
            shift = shift + sign * (value.toarray() if hasattr(value, "toarray") else value)
        elif kind_of(part) == "Variable" and (variable is None or variable is part):
            variable, factor = part, factor + sign
        else:
            raise ModelError(
                f"The CVXPY constraint {shown(constraint)} is not recognised: `>>` and `<<` bound "
                "the eigenvalues of one symmetric variable by a multiple of the identity."
            )
    if variable is None or factor == 0.0:
        raise ModelError(f"The CVXPY constraint {shown(constraint)} has no variable in it.")
    limit = np.broadcast_to(-np.asarray(shift, dtype=np.float64) / factor, variable.shape)
    if not np.array_equal(limit, limit[0, 0] * np.eye(limit.shape[0])):
        raise ModelError(
            f"The CVXPY constraint {shown(constraint)} is not a bound on eigenvalues by a multiple "
            "of the identity. In CVXPY `Omega >> alpha` means a matrix with alpha in every entry; "
            "write `Omega >> alpha * np.eye(p)`."
        )
    return eigenvalue_bound(proxy_of(variable), float(limit[0, 0]), upper=factor < 0.0)


def _largest_eigenvalue(left: Any, right: Any) -> Constraint | None:
    """Return ``lambda_max(Omega) <= b``, or ``a <= lambda_min(Omega)``: ``-lambda_max(-Omega)``."""
    if left.is_constant() and kind_of(right) == "NegExpression":
        left, right = right.args[0], -left
    if kind_of(left) != "lambda_max" or not right.is_constant():
        return None
    inside, limit = left.args[0], number_of(right)
    if kind_of(inside) == "NegExpression":
        return eigenvalue_bound(affine_of(inside.args[0]), -limit, upper=False)
    return eigenvalue_bound(affine_of(inside), limit, upper=True)


def _summands(expression: Any, factor: float) -> list[tuple[Any, float]]:
    """Return the parts of a sum of matrices with the numbers in front of them."""
    kind = kind_of(expression)
    if kind == "AddExpression":
        return [pair for part in expression.args for pair in _summands(part, factor)]
    if kind == "NegExpression":
        return _summands(expression.args[0], -factor)
    if kind in ("multiply", "MulExpression") and not expression.is_constant():
        left, right = expression.args
        if left.is_constant() and (kind == "multiply" or left.size == 1) and is_uniform(left):
            return _summands(right, factor * number_of(left))
    return [(expression, factor)]


def _entry(expression: Any) -> tuple[Any, list[tuple[int, int]]] | None:
    """Return a symmetric variable and the place of the one entry of it that is meant."""
    if kind_of(expression) != "index" or expression.size != 1:
        return None
    variable = expression.args[0]
    if kind_of(variable) != "Variable" or variable.ndim != 2 or not variable.is_symmetric():
        return None
    i, j = (
        int(np.arange(size)[key].item())
        for size, key in zip(variable.shape, expression.key, strict=True)
    )
    return proxy_of(variable), [(i, j)]
