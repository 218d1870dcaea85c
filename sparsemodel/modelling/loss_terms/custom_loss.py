"""A custom loss: any smooth convex function, by its value and gradient or as a JAX function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import DataTypeError, FloatArray, ModelError
from sparsemodel.interfaces.numeric import real_number
from sparsemodel.losses.functions.custom import CustomLoss
from sparsemodel.losses.functions.differentiated import differentiated
from sparsemodel.modelling.expressions.affine import AffineLike
from sparsemodel.modelling.expressions.objective_terms import LossTerm
from sparsemodel.modelling.expressions.values import text_of


@rejects_unknown_arguments
def custom_loss(
    value: Callable[[FloatArray], Any],
    gradient: Callable[[FloatArray], Any] | None = None,
    hessian_product: Callable[[FloatArray, FloatArray], Any] | None = None,
    *,
    of: Any = None,
    name: str = "custom_loss",
    smoothness: float = np.inf,
    strong_convexity: float = 0.0,
    lower_bound: float = -np.inf,
) -> LossTerm:
    r"""Return :math:`f(u)` for any smooth convex ``f`` of the variable (or of ``A @ w + c``).

    Parameters
    ----------
    value
        ``u -> f(u)``, a number. Without ``gradient`` it must be a JAX function: gradient and
        Hessian products are then derived from it, in double precision whatever JAX's setting
        (``pip install jax``).
    gradient
        ``u -> grad f(u)``, an array of the shape of ``u``.
    hessian_product
        ``(u, v) -> H(u) v``. None takes differences of the gradient.
    of
        What ``u`` is: a variable, a slice, or an affine expression. None means the problem's one
        vector variable.
    name
        Its name in outputs.
    smoothness, strong_convexity
        Upper and lower bounds on the eigenvalues of the Hessian, if known.
    lower_bound
        A number that ``f`` is never below, if known; lower bounds use it.

    Returns
    -------
    LossTerm
        A term of the goal; terms are added, and multiplied by positive numbers.

    Raises
    ------
    ModelError
        When spot checks at the first compilation show that the gradient is not that of ``value``,
        or that ``f`` is not convex.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> Q, b = np.diag([1.0, 2.0, 3.0]), np.array([1.0, 0.1, -3.0])
    >>> w = sm.Variable(3, name="w")
    >>> f = sm.custom_loss(lambda u: 0.5 * u @ Q @ u - b @ u, lambda u: Q @ u - b, of=w)
    >>> sm.Problem(sm.minimize(f), sm.card(w) <= 1).solve().support
    array([2])
    """
    for what, given in (("value", value), ("gradient", gradient)):
        if given is not None and not callable(given):
            raise DataTypeError(f"The {what} of {name} must be a function, not {given!r}.")
    if gradient is None:
        value, gradient, derived = differentiated(value, name)
        hessian_product = derived if hessian_product is None else hessian_product
    loss = CustomLoss(
        value,
        gradient,
        hessian_product,
        name=text_of(name, "The name of a custom loss"),
        upper=_bound(smoothness, "smoothness", np.inf),
        lower=real_number(strong_convexity, where="strong_convexity", minimum=0.0),
        least=_bound(lower_bound, "lower_bound", -np.inf),
    )
    prediction = None
    if of is not None:
        if not isinstance(of, AffineLike):
            raise ModelError(f"of= is a variable or an affine expression, not {of!r}.")
        prediction = of.as_affine()
        if not prediction.value_shape():
            raise ModelError(f"{name}: of= must be a vector; {prediction} is a single number.")
        loss.check(prediction.value_shape())
    return LossTerm(loss, prediction, None, None, "sum")


def _bound(value: Any, where: str, unknown: float) -> float:
    """Return a bound of the user's; ``unknown`` is infinite and stands for none."""
    infinite = isinstance(value, float) and value == unknown
    return unknown if infinite else real_number(value, where=where)
