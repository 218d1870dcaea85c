"""Losses of class labels, as the language spells them; each returns a term.

The two-class losses understand labels -1/1, 0/1, booleans, or two strings (the second in sorted
order is +1).
"""

from __future__ import annotations

from typing import Any

from sparsemodel.losses import (
    HingeLoss,
    LogisticLoss,
    MultinomialLoss,
    SmoothedHingeLoss,
    SquaredHingeLoss,
)
from sparsemodel.modelling.expressions.objective_terms import LossTerm, Reduction
from sparsemodel.modelling.loss_terms.terms import loss_function, loss_term


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
