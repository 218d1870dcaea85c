"""The loss of ordered classes: a sum of logistic losses, one for each threshold between classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import DataError, DataTypeError, IntArray, ModelError
from sparsemodel.interfaces.numeric import described, plain_array
from sparsemodel.losses import LogisticLoss
from sparsemodel.modelling.expressions.affine import AffineLike
from sparsemodel.modelling.expressions.foreign import as_ours
from sparsemodel.modelling.expressions.objective_terms import Objective, Reduction
from sparsemodel.modelling.expressions.values import labels
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.loss_terms.terms import loss_term

_MOST = 100
"""Ordered classes: each threshold is another logistic loss of all observations."""


@rejects_unknown_arguments
def ordinal_loss(
    prediction: Any,
    target: Any,
    *,
    order: Sequence[Any] | None = None,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Objective:
    r"""Return the mean (or sum) of :math:`\sum_j \log(1 + e^{-s_{ij} (u_i - \theta_j)})`.

    For classes that have an order, such as grades: :math:`s_{ij}` is 1 where the class of ``i`` is
    above the threshold :math:`\theta_j` and -1 where it is not (the all-threshold loss). Thresholds
    lie between neighbouring classes and are found together with ``w``; they are variables of the
    problem that are not counted, named ``"low | mid"`` after their neighbours.

    Parameters
    ----------
    prediction
        ``A @ w``, shape ``(n,)``, without a constant: the thresholds are constants.
    target
        Numbers, an ordered categorical column, or classes of any kind together with ``order``.
    order
        The classes from the lowest to the highest. Those that no observation has are left out.
    weights, reduction
        As for :func:`squared_loss`.

    Returns
    -------
    Objective
        A sum of logistic losses, one for each threshold; it is added and multiplied like a term.

    Raises
    ------
    DataError
        For text without an order, a class that is missing from ``order``, fewer than two classes,
        or more than a hundred.
    ModelError
        For predictions with a constant.

    Notes
    -----
    Bounds, certificates and proofs are those of the logistic loss. At a minimum the thresholds are
    in order, and ``predict(new, "probability")`` returns the differences of the probabilities at
    neighbouring thresholds. The sum is no likelihood of the classes: choose ``k`` by
    cross-validation. Source: Rennie and Srebro, *Loss functions for preference levels* (IJCAI
    workshop, 2005).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((90, 6))
    >>> grade = np.digitize(A[:, 3] + 0.3 * rng.standard_normal(90), [-1.0, 1.0])
    >>> w = sm.Variable(6, name="w")
    >>> goal = sm.minimize(sm.ordinal_loss(A @ w, grade) + sm.ridge(w, 0.01))
    >>> problem = sm.Problem(goal, sm.card(w) <= 1)
    >>> problem.solve().support.tolist(), problem.predict([[0, 0, 0, 2, 0, 0]]).tolist()
    ([3], [2])
    """
    prediction = as_ours(prediction)
    affine = prediction.as_affine() if isinstance(prediction, AffineLike) else None
    if affine is None or any(piece.shape == () for piece in affine.pieces):
        raise ModelError(
            "ordinal_loss needs a prediction such as `A @ w`, without a constant: the thresholds "
            "between the classes are constants, and are found with w."
        )
    codes, levels = _in_order(target, order)
    terms = []
    for j, (below, above) in enumerate(pairwise(levels)):
        threshold = Variable(name=f"{below} | {above}")
        higher = np.where(codes > j, 1.0, -1.0)
        one = loss_term(
            LogisticLoss(), affine - threshold, higher, weights=weights, reduction=reduction
        )
        terms.append(replace(one, levels=levels))
    return Objective(tuple(terms))


def _in_order(target: Any, order: Sequence[Any] | None) -> tuple[IntArray, tuple[Any, ...]]:
    """Return the number of each observation's class, and the classes that there are, in order."""
    where, categories = "The target of ordinal_loss", getattr(target, "cat", target)
    if order is None and getattr(categories, "ordered", False) is True:
        order = list(categories.categories)
    if order is not None:
        if isinstance(order, (str, set, frozenset)) or not np.iterable(order):
            raise DataTypeError(
                "order must be a list of the classes from the lowest to the highest, not "
                f"{described(order)}."
            )
        order, values = plain_array(order, "order").tolist(), np.asarray(target).tolist()
        known = {value: place for place, value in enumerate(order)}
        strange = [value for value in values if value not in known]
        if strange:
            raise DataError(f"{where} holds {strange[0]!r}, which is not in order={order!r}.")
        places, codes = np.unique([known[value] for value in values], return_inverse=True)
        levels = tuple(order[place] for place in places.tolist())
    else:
        numbers, classes = labels(target, where=where)
        if classes is not None and len(classes) > 2:
            raise DataError(
                f"{where} is text, and the order of {', '.join(map(repr, classes[:6]))} is not "
                "known: pass them from the lowest to the highest, order=[...]."
            )
        found, codes = np.unique(numbers, return_inverse=True)
        named = found.astype(int) if np.all(found == np.round(found)) else found
        levels = tuple(named.tolist()) if classes is None else classes
    if not 2 <= len(levels) <= _MOST:
        raise DataError(
            f"{where} has {len(levels)} different values, and 2 to {_MOST} are understood as "
            "ordered classes; sm.squared_loss and sm.huber_loss are for numbers."
        )
    return codes.ravel(), levels
