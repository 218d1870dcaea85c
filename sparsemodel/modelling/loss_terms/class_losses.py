"""Losses of class labels, as the language spells them; each returns a term.

The two-class losses understand labels -1/1, 0/1, booleans, or two strings (the second in sorted
order is +1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from sparsemodel.interfaces import DataError, DataTypeError, IntArray, ModelError
from sparsemodel.interfaces.numeric import described, plain_array
from sparsemodel.losses import (
    HingeLoss,
    LogisticLoss,
    MultinomialLoss,
    SmoothedHingeLoss,
    SquaredHingeLoss,
)
from sparsemodel.modelling.expressions.affine import AffineLike
from sparsemodel.modelling.expressions.foreign import as_ours
from sparsemodel.modelling.expressions.objective_terms import LossTerm, Objective, Reduction
from sparsemodel.modelling.expressions.values import labels
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.loss_terms.terms import loss_function, loss_term

_MOST = 100
"""Ordered classes: each threshold is another logistic loss of all observations."""


@loss_function
def logistic_loss(
    prediction: Any, target: Any, *, weights: Any = None, reduction: Reduction = "mean"
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`\log(1 + e^{-y_i u_i})`, labels :math:`y_i = \pm 1`.

    Parameters
    ----------
    target
        Labels -1/1, 0/1, booleans, or two strings (the second in sorted order is +1).

    Notes
    -----
    Conjugate :math:`s \log s + (1-s) \log(1-s)` with :math:`s = -a y \in [0, 1]`; 1/4-smooth.
    Without a ridge the minimum is not attained on separable data.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> A = np.array([[2.0, 0.1], [-1.0, 0.2], [3.0, 0.3]])
    >>> w = sm.Variable(2, name="w")
    >>> loss = sm.logistic_loss(A @ w, ["ill", "well", "ill"])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [0]
    """
    return loss_term(LogisticLoss(), prediction, target, weights=weights, reduction=reduction)


@loss_function
def hinge_loss(
    prediction: Any, target: Any, *, weights: Any = None, reduction: Reduction = "mean"
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`\max(0, 1 - y_i u_i)`, labels :math:`y_i = \pm 1`.

    With a ridge this is a support vector machine.

    Parameters
    ----------
    target
        Labels -1/1, 0/1, booleans, or two strings (the second in sorted order is +1).

    Notes
    -----
    Conjugate :math:`a y` for :math:`a y \in [-1, 0]`; neither smooth nor strongly convex: solved
    by a sequence of smoothed problems and exactly on the support, as ``explain()`` says.

    Source: Cortes and Vapnik, *Support-vector networks* (Machine Learning 20, 1995).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> A = np.array([[2.0, 0.1], [-1.0, 0.2], [3.0, 0.3]])
    >>> w = sm.Variable(2, name="w")
    >>> loss = sm.hinge_loss(A @ w, ["ill", "well", "ill"])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [0]
    """
    return loss_term(HingeLoss(), prediction, target, weights=weights, reduction=reduction)


@loss_function
def smoothed_hinge_loss(
    prediction: Any,
    target: Any,
    *,
    gamma: float = 1.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> LossTerm:
    r"""Return the mean (or sum) of the hinge loss with a parabola for its kink.

    It is 0 for :math:`y u \ge 1`, :math:`(1 - y u)^2 / (2\gamma)` down to :math:`1 - \gamma`, and
    :math:`1 - y u - \gamma/2` below.

    Parameters
    ----------
    target
        Labels -1/1, 0/1, booleans, or two strings (the second in sorted order is +1).
    gamma
        Width of the parabola.

    Notes
    -----
    Conjugate :math:`a y + \frac{\gamma}{2} a^2` for :math:`a y \in [-1, 0]`;
    :math:`1/\gamma`-smooth, not strongly convex.

    Source: Shalev-Shwartz and Zhang, *Stochastic dual coordinate ascent methods for regularized
    loss minimization* (JMLR 14, 2013).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> A = np.array([[2.0, 0.1], [-1.0, 0.2], [3.0, 0.3]])
    >>> w = sm.Variable(2, name="w")
    >>> loss = sm.smoothed_hinge_loss(A @ w, ["ill", "well", "ill"])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [0]
    """
    loss = SmoothedHingeLoss(gamma=gamma)
    return loss_term(loss, prediction, target, weights=weights, reduction=reduction)


@loss_function
def squared_hinge_loss(
    prediction: Any, target: Any, *, weights: Any = None, reduction: Reduction = "mean"
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`\frac12 \max(0, 1 - y_i u_i)^2`, :math:`y_i = \pm 1`.

    Parameters
    ----------
    target
        Labels -1/1, 0/1, booleans, or two strings (the second in sorted order is +1).

    Notes
    -----
    Conjugate :math:`a y + \frac12 a^2` for :math:`a y \le 0`; 1-smooth, not strongly convex.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> A = np.array([[2.0, 0.1], [-1.0, 0.2], [3.0, 0.3]])
    >>> w = sm.Variable(2, name="w")
    >>> loss = sm.squared_hinge_loss(A @ w, ["ill", "well", "ill"])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [0]
    """
    return loss_term(SquaredHingeLoss(), prediction, target, weights=weights, reduction=reduction)


@loss_function
def multinomial_loss(
    prediction: Any,
    target: Any,
    *,
    classes: int | None = None,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`\log \sum_j e^{u_{ij}} - u_{i, y_i}`.

    The variable is a matrix with one column per class, ``W = sm.Variable((p, m))``, and an
    intercept a row of it, ``c = sm.Variable(m)``; ``card(W, axis=1) <= k`` counts rows (features).

    Parameters
    ----------
    prediction
        ``A @ W + c``, shape ``(n, m)``.
    target
        Classes 0, 1, ..., m-1, or strings, which are numbered in sorted order.
    classes
        ``m``, where some classes may be absent from ``target``; None counts them.
    weights, reduction
        As for :func:`squared_loss`.

    Notes
    -----
    Conjugate :math:`\sum_j s_j \log s_j` with :math:`s = a + e_y` in the unit simplex; 1/2-smooth,
    not strongly convex.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((90, 6))
    >>> kinds = np.argmax(A[:, :3] + 0.1 * rng.standard_normal((90, 3)), axis=1)
    >>> W, c = sm.Variable((6, 3), name="W"), sm.Variable(3, name="c")
    >>> goal = sm.minimize(sm.multinomial_loss(A @ W + c, kinds) + sm.ridge(W, 0.01))
    >>> sm.Problem(goal, sm.card(W, axis=1) <= 3).solve().support
    array([0, 1, 2])
    """
    loss = MultinomialLoss(classes=classes)
    return loss_term(loss, prediction, target, weights=weights, reduction=reduction)


@loss_function
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
