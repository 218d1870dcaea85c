"""The terms of an objective as functions: a loss of predictions, a ridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.designs import as_design
from sparsemodel.designs.tables.labels import check_rows, labels_of
from sparsemodel.interfaces import (
    DataError,
    DataFit,
    DataTypeError,
    Design,
    FloatArray,
    ModelError,
    TargetKind,
)
from sparsemodel.interfaces.numeric import described, dimensions, is_one_of, real_number
from sparsemodel.modelling.expressions.affine import Affine, AffineLike
from sparsemodel.modelling.expressions.foreign import as_ours, is_cvxpy, taken
from sparsemodel.modelling.expressions.objective_terms import (
    LossTerm,
    ObjectiveLike,
    Reduction,
    Ridge,
)
from sparsemodel.modelling.expressions.parameters import Quantity, as_float, resolve
from sparsemodel.modelling.expressions.values import labels, real_array
from sparsemodel.registry import loss_class
from sparsemodel.selection.weights import checked_meaning


@rejects_unknown_arguments
def loss_term(
    loss: DataFit | str,
    prediction: Any,
    target: Any,
    *,
    weights: Any = None,
    weights_are: str = "precision",
    reduction: Reduction = "mean",
) -> LossTerm:
    """Return the term of ``loss`` at ``prediction`` and ``target``, both checked.

    Every loss function of the language goes through here, and so does a loss of your own.

    Parameters
    ----------
    loss
        A value such as ``HuberLoss(delta=2.0)``, an instance of your subclass of
        :class:`~sparsemodel.Loss`, or the name of a loss with its default parameters:
        ``"squared"``, ``"smoothed-hinge"``, or that of an installed plug-in's entry point in the
        group ``sparsemodel.losses``. :func:`~sparsemodel.available_losses` lists them.
    prediction, target, weights, weights_are, reduction
        As for :func:`~sparsemodel.squared_loss`.

    Returns
    -------
    LossTerm
        A term of the goal; terms are added, and multiplied by positive numbers.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> from sparsemodel.interfaces import Curved
    >>> class CubicLoss(Curved, sm.Loss):
    ...     name = "cubic_loss"
    ...     def value(self, u, y):
    ...         return np.abs(u - y) ** 3 / 3
    ...     def derivative(self, u, y):
    ...         return (u - y) * np.abs(u - y)
    ...     def second_derivative(self, u, y):
    ...         return 2 * np.abs(u - y)
    >>> w = sm.Variable(2, name="w")
    >>> sm.loss_term(CubicLoss(), np.eye(2) @ w, [1.0, 2.0])
    cubic_loss(A @ w)
    >>> goal = sm.minimize(sm.loss_term(CubicLoss(), np.eye(2) @ w, [1.0, 2.0]))
    >>> sm.Problem(goal, sm.card(w) <= 1).solve().support.tolist()
    [1]
    >>> sm.loss_term("huber", np.eye(2) @ w, [1.0, 2.0])
    huber_loss(A @ w)
    """
    if isinstance(loss, str):
        loss = loss_class(loss)()
    if not isinstance(loss, DataFit):
        given = loss.__name__ if isinstance(loss, type) else type(loss).__name__
        hint = f"; did you mean {given}()?" if isinstance(loss, type) else ""
        raise DataTypeError(f"loss_term needs an instance of sm.Loss first, not {given}{hint}")
    if not is_one_of(reduction, ("mean", "sum")):
        raise ModelError(f"reduction must be 'mean' or 'sum', not {described(reduction)}.")
    names = None
    checked: Affine | Design
    target, weights = taken(target), taken(weights)
    prediction = as_ours(prediction)
    if isinstance(target, AffineLike) or is_cvxpy(target):
        raise ModelError(
            f"The target of {loss.name} must be numbers; the prediction comes first: "
            f"sm.{loss.name}(A @ w, y)."
        )
    if isinstance(prediction, AffineLike):
        checked = prediction.as_affine()
        shape = checked.value_shape()
        if loss.target_kind is TargetKind.TIMES:
            _no_intercept(loss, checked)
    elif isinstance(prediction, ObjectiveLike):
        raise ModelError(f"{prediction!r} is a loss; a prediction such as `A @ w` is needed here.")
    else:
        checked = as_design(prediction, where=f"The matrix of {loss.name}")
        names = checked.names
        shape = (checked.shape[0],)
    if not shape:
        raise ModelError(
            f"The prediction of {loss.name} is a single number; it needs data, as in `A @ w + c`."
        )
    rows = getattr(checked, "labels", None)
    for values, what in ((target, "target"), (weights, "weights")):
        check_rows(rows, labels_of(values), f"{loss.name}: the {what}")
    found = target.shape[0] if isinstance(target, Quantity) and target.shape else None
    classes = None
    if not isinstance(target, Quantity):
        target, classes = checked_target(loss, target)
        found = target.shape[0]
    if found != shape[0]:
        raise DataError(
            f"{loss.name}: the prediction has {shape[0]} rows and the target has {found}. "
            "There must be one target per observation."
        )
    if weights is not None and not isinstance(weights, Quantity):
        weights = observation_weights(weights, shape[0], loss.name)
    return LossTerm(
        loss,
        checked,
        target,
        weights,
        reduction,
        classes=classes,
        column_names=names,
        weights_are=checked_meaning(weights_are),
    )


def _no_intercept(loss: DataFit, prediction: Affine) -> None:
    """Refuse a free constant where only differences between observations matter."""
    for piece in prediction.pieces:
        if piece.design is None and not piece.shape:
            raise ModelError(
                f"{loss.name} has no intercept: every value of "
                f"{piece.variable!r} gives the same loss. Leave it out."
            )


_BY_COLUMN = (
    "With a weight for each entry write a loss for each column of the target, "
    "`sum(sm.squared_loss(A @ W[:, j], Y[:, j], weights=V[:, j]) for j in range(m))`, and count "
    "rows as before, `sm.card(W, axis=1) <= k`."
)


def checked_target(loss: DataFit, target: Any) -> tuple[FloatArray, tuple[Any, ...] | None]:
    """Return the target in the loss's coding, with the names of the classes if it has any."""
    where = f"The target of {loss.name}"
    array = target if isinstance(target, np.ndarray) else np.empty(0)
    if array.ndim == 2 and array.dtype.kind == "f" and min(array.shape) > 1:
        missing = int(np.count_nonzero(np.isnan(array)))
        if missing:
            raise DataError(
                f"{where} must be finite: {missing} value(s) are NaN. {_BY_COLUMN} An entry that "
                "is missing has weight 0, and any number as its target."
            )
    numbers, classes = labels(target, where=where)
    numeric = loss.target_kind in (TargetKind.NUMBERS, TargetKind.TIMES)
    if numeric and classes is not None and classes != (False, True):
        if all(_is_number(name) for name in classes):
            raise DataError(
                f"{where} is text that holds numbers ({', '.join(map(repr, classes[:3]))}); write "
                "y.astype(float)."
            )
        raise DataError(
            f"{where} is text ({', '.join(map(repr, classes[:3]))}), but the loss needs numbers. "
            "For two classes use sm.logistic_loss, for several sm.multinomial_loss "
            "(sm.ordinal_loss if they are ordered), for numbers 0 and 1 the comparison "
            f"`y == {classes[-1]!r}`."
        )
    if classes is not None and len(classes) > 2:
        where += f", whose classes {', '.join(map(repr, classes[:6]))} are 0, 1, ..."
    return loss.check_target(numbers, where), classes


def _is_number(text: Any) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except (TypeError, ValueError):
        return False


def observation_weights(weights: Any, n: int, loss: str) -> FloatArray:
    """Return the weights of ``n`` observations, checked."""
    where = f"The weights of {loss}"
    if len(np.shape(weights)) == 2 and 1 not in np.shape(weights):
        raise DataError(
            f"{where} are one for each observation, not {' x '.join(map(str, np.shape(weights)))}. "
            f"{_BY_COLUMN}"
        )
    c = real_array(weights, where=where)
    if c.size != n:
        raise DataError(f"{where} have {c.size} entries for {n} observations.")
    if np.any(c < 0.0):
        raise DataError(f"{where} must not be negative; entry {int(np.argmin(c))} is {c.min():g}.")
    if not np.any(c > 0.0):
        raise DataError(f"{where} are all zero; at least one observation must count.")
    return c


@rejects_unknown_arguments
def ridge(expression: Any = None, lam: Any = None) -> Ridge:
    r"""Return the ridge term :math:`(\lambda/2) \|w\|_2^2`.

    Parameters
    ----------
    expression
        The variable, or a slice of it. ``ridge(lam)`` alone is short for the problem's one vector
        or matrix variable.
    lam
        At least 0: a number, one number per entry (row), or a :class:`Parameter`. It is never
        divided by the number of observations.

    Returns
    -------
    Ridge
        A term of the goal.

    Raises
    ------
    ModelError
        When ``lam`` is missing or negative, or ``expression`` is not a variable or a slice of one.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> sm.ridge(sm.Variable(3, name="w"), 0.5)
    ridge(w, 0.5)
    """
    expression, lam = taken(expression), taken(lam)
    expression = as_ours(expression)
    if lam is None and not isinstance(expression, AffineLike):
        expression, lam = None, expression
    if lam is None:
        raise ModelError("ridge(w, lam) needs its weight lam, for example sm.ridge(w, 1e-2).")
    if isinstance(lam, AffineLike):
        raise ModelError("ridge(w, lam) takes the variable first and the number second.")
    if isinstance(expression, AffineLike):
        expression._in_order(lam, "The weight lam of ridge")
    weight = lam if isinstance(lam, Quantity) else ridge_weight(lam)
    if expression is None:
        return Ridge(None, weight)
    if not isinstance(expression, AffineLike):
        raise ModelError(f"ridge(w, lam) takes a variable first, not {type(expression).__name__}.")
    affine = expression.as_affine()
    if len(affine.pieces) != 1 or affine.offset is not None or not affine.pieces[0].bare:
        raise ModelError(
            f"ridge takes a variable or a slice of one, not {affine}. Of an expression write its "
            "squared norm, `0.5 * lam * sm.norm(w - w0)**2`."
        )
    rows = affine.pieces[0].row_count
    if isinstance(weight, np.ndarray) and weight.size != rows:
        raise ModelError(
            f"ridge has {weight.size} weights for {rows} entries of {affine}; give one number for "
            "all, or one for each entry (row)."
        )
    return Ridge(affine, weight)


def ridge_weight(lam: Any) -> float | FloatArray:
    """Return the weight of a ridge: a number, or one per entry; not negative."""
    where = "The weight lam of ridge"
    if not hasattr(lam, "to_numpy") and dimensions(lam, where) == 0:
        return real_number(lam, where=where, minimum=0.0)
    weight = real_array(lam, where=where)
    if np.any(weight < 0.0):
        raise ModelError(f"{where} must not be negative; the smallest entry is {weight.min():g}.")
    return weight


def scale_of(scale: Any, what: str) -> float:
    """Return the present value of a term's factor; a parameter may have made it negative."""
    if not isinstance(scale, Quantity):
        return float(scale)
    value = as_float(resolve(scale, f"The factor of {what}"))
    return real_number(value, where=f"The factor of {what}", minimum=0.0)
