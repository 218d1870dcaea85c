"""The goal of a problem: what is minimised."""

from __future__ import annotations

import numbers
from typing import Any, final

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import ModelError
from sparsemodel.modelling.expressions.affine import AffineLike
from sparsemodel.modelling.expressions.cardinality import card
from sparsemodel.modelling.expressions.norms import norm
from sparsemodel.modelling.expressions.objective_terms import Objective, ObjectiveLike, linear_term
from sparsemodel.modelling.expressions.symbolic import NotOfCvxpy
from sparsemodel.modelling.precision_matrices.terms_and_constraints import log_det


@final
class Minimize(NotOfCvxpy):
    """An objective to be minimised; made by :func:`minimize`."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    @property
    def value(self) -> float | None:
        """Return the objective at the values of the variables; None before they have any."""
        return self.objective.value

    def __repr__(self) -> str:
        return f"minimize({self.objective!r})"


@rejects_unknown_arguments
def minimize(objective: Any) -> Minimize:
    """Return the goal of minimising ``objective``, a sum of losses, ridges and linear terms.

    Parameters
    ----------
    objective
        Terms added up, each times a positive number. A linear term is an affine expression that is
        one number: ``loss - mu @ w``. Under linear or norm constraints a count alone,
        ``sm.card(w)``, is minimised too, and ``0`` asks for any point that satisfies all of them.

    Returns
    -------
    Minimize
        The first argument of :class:`Problem`.

    Raises
    ------
    ModelError
        When ``objective`` is not such a sum; the message shows one.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(2, name="w")
    >>> sm.minimize(sm.squared_loss(np.eye(2) @ w, [1.0, 2.0]) + sm.ridge(w, 0.1))
    minimize(squared_loss(A @ w) + ridge(w, 0.1))
    """
    if isinstance(objective, log_det):
        objective = objective + 0.0  # says that it is concave
    if isinstance(objective, (norm, card)):
        objective = objective.as_terms()
    if isinstance(objective, AffineLike):
        objective = linear_term(objective)
    if isinstance(objective, numbers.Real) and not isinstance(objective, bool):
        return Minimize(Objective((), float(objective)))  # any point within the constraints
    if not isinstance(objective, ObjectiveLike):
        raise ModelError(
            f"minimize takes a sum of losses and ridges, not {type(objective).__name__}. "
            "Write, for example, sm.minimize(sm.squared_loss(A @ w, b))."
        )
    return Minimize(objective.as_terms())
