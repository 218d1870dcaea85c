"""Losses of numerical targets, as the language spells them; each returns a term.

All of them take

prediction
    ``u``: an affine expression such as ``A @ w + c``, or a matrix ``A`` alone, which means
    ``A @ w`` for the problem's one vector variable.
target
    ``y``: one entry per observation, shape ``(n,)``. Losses of the size of a residual also take
    that alone: ``squared_loss(A @ w - b)`` is ``squared_loss(A @ w, b)``.
weights
    Nonnegative observation weights; the mean is still taken over ``n``.
reduction
    ``"mean"`` divides the (weighted) sum by ``n``; ``"sum"`` does not.
"""

from __future__ import annotations

from typing import Any

from sparsemodel.interfaces import ModelError
from sparsemodel.losses import (
    AbsoluteLoss,
    CoxLoss,
    EpsilonInsensitiveLoss,
    GammaLoss,
    HuberLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
)
from sparsemodel.modelling.expressions.objective_terms import LossTerm, Reduction
from sparsemodel.modelling.loss_terms.terms import loss_term, residual_term


def squared_loss(
    prediction: Any, target: Any = None, *, weights: Any = None, reduction: Reduction = "mean"
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`\frac12 (u_i - y_i)^2`.

    Parameters
    ----------
    prediction
        ``u``: an affine expression such as ``A @ w + c``, or a matrix ``A`` alone, which means
        ``A @ w`` for the problem's one vector variable. With a matrix variable, ``u`` and ``y``
        have several columns.
    target
        ``y``: numbers, shape ``(n,)`` or ``(n, m)``. Without it the prediction is a residual,
        ``A @ w - b``, and its constant part is ``-y``.
    weights
        Nonnegative observation weights; the mean is still taken over ``n``.
    reduction
        ``"mean"`` divides the (weighted) sum by ``n``; ``"sum"`` does not.

    Returns
    -------
    LossTerm
        A term of the goal; terms are added, and multiplied by positive numbers.

    Notes
    -----
    Conjugate :math:`a^2/2 + a y` on the real line; 1-smooth and 1-strongly convex.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(2, name="w")
    >>> sm.squared_loss(np.eye(2) @ w, [1.0, 2.0])
    squared_loss(A @ w)
    >>> problem = sm.Problem(sm.minimize(sm.squared_loss(np.eye(2) @ w - [1, 2])), sm.card(w) <= 1)
    >>> problem.solve().value
    0.25
    """
    return residual_term(SquaredLoss(), prediction, target, weights=weights, reduction=reduction)


def huber_loss(
    prediction: Any,
    target: Any = None,
    *,
    delta: float = 1.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> LossTerm:
    r"""Return the mean (or sum) of the Huber loss of the residual :math:`r = u - y`:
    :math:`\frac12 r^2` for :math:`|r| \le \delta`, :math:`\delta |r| - \frac12 \delta^2` beyond.

    ``delta`` is in the units of the target; residuals above it count by their size only, so that
    outliers pull with bounded force.

    Parameters
    ----------
    prediction, weights, reduction
        As for :func:`squared_loss`.
    target
        ``y``: numbers, shape ``(n,)``; left out where the prediction is a residual, ``A @ w - b``.
    delta
        Where the parabola ends, in the units of the target.

    Returns
    -------
    LossTerm
        A term of the goal; terms are added, and multiplied by positive numbers.

    Notes
    -----
    Conjugate :math:`a^2/2 + a y` for :math:`|a| \le \delta`; 1-smooth, not strongly convex.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.huber_loss(np.eye(3) @ w, [3.0, 0.1, 90.0])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    loss = HuberLoss(delta=delta)
    return residual_term(loss, prediction, target, weights=weights, reduction=reduction)


def absolute_loss(
    prediction: Any, target: Any = None, *, weights: Any = None, reduction: Reduction = "mean"
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`|u_i - y_i|`, whose minimiser predicts a median.

    Parameters
    ----------
    prediction, weights, reduction
        As for :func:`squared_loss`.
    target
        ``y``: numbers, shape ``(n,)``; left out where the prediction is a residual, ``A @ w - b``.

    Returns
    -------
    LossTerm
        A term of the goal; terms are added, and multiplied by positive numbers.

    Notes
    -----
    Conjugate :math:`a y` for :math:`|a| \le 1`; neither smooth nor strongly convex: solved by a
    sequence of smoothed problems and exactly on the support, as ``explain()`` says.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.absolute_loss(np.eye(3) @ w, [3.0, 0.1, 90.0])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    return residual_term(AbsoluteLoss(), prediction, target, weights=weights, reduction=reduction)


def quantile_loss(
    prediction: Any,
    target: Any = None,
    *,
    tau: float = 0.5,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`\tau (y - u)_+ + (1 - \tau)(u - y)_+`.

    Its minimiser predicts the quantile of level ``tau``, strictly between 0 and 1.

    Parameters
    ----------
    prediction, weights, reduction
        As for :func:`squared_loss`.
    target
        ``y``: numbers, shape ``(n,)``; left out where the prediction is a residual, ``A @ w - b``.
    tau
        Level of the quantile, strictly between 0 and 1.

    Returns
    -------
    LossTerm
        A term of the goal; terms are added, and multiplied by positive numbers.

    Notes
    -----
    Conjugate :math:`a y` for :math:`-\tau \le a \le 1 - \tau`; neither smooth nor strongly convex
    (see :func:`absolute_loss`).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.quantile_loss(np.eye(3) @ w, [3.0, 0.1, 90.0], tau=0.9)
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [0]
    """
    if target is None:
        raise ModelError(
            "quantile_loss needs prediction and target apart, as it is another function of `u - y` "
            "than of `y - u`: sm.quantile_loss(A @ w, b, tau=...)."
        )
    loss = QuantileLoss(tau=tau)
    return loss_term(loss, prediction, target, weights=weights, reduction=reduction)


def epsilon_insensitive_loss(
    prediction: Any,
    target: Any = None,
    *,
    epsilon: float = 0.1,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`\max(|u - y| - \epsilon, 0)`.

    Residuals up to ``epsilon`` (in the units of the target) cost nothing.

    Parameters
    ----------
    prediction, weights, reduction
        As for :func:`squared_loss`.
    target
        ``y``: numbers, shape ``(n,)``; left out where the prediction is a residual, ``A @ w - b``.
    epsilon
        Half the width of what costs nothing, in the units of the target.

    Returns
    -------
    LossTerm
        A term of the goal; terms are added, and multiplied by positive numbers.

    Notes
    -----
    Conjugate :math:`a y + \epsilon |a|` for :math:`|a| \le 1`; neither smooth nor strongly convex
    (see :func:`absolute_loss`).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.epsilon_insensitive_loss(np.eye(3) @ w, [3.0, 0.1, 90.0], epsilon=0.5)
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    loss = EpsilonInsensitiveLoss(epsilon=epsilon)
    return residual_term(loss, prediction, target, weights=weights, reduction=reduction)


def poisson_loss(
    prediction: Any, target: Any, *, weights: Any = None, reduction: Reduction = "mean"
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`e^u - y u`, for counts :math:`y \ge 0` of mean
    :math:`e^u`.

    Exposures enter as an offset, ``A @ w + c + np.log(exposure)``.

    Parameters
    ----------
    prediction, weights, reduction
        As for :func:`squared_loss`.
    target
        ``y``: counts, not negative, shape ``(n,)``.

    Returns
    -------
    LossTerm
        A term of the goal; terms are added, and multiplied by positive numbers.

    Notes
    -----
    Conjugate :math:`(a + y) \log(a + y) - (a + y)` for :math:`a + y \ge 0`; smooth and strongly
    convex on bounded sets only.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.poisson_loss(np.eye(3) @ w, [1, 0, 7])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    return loss_term(PoissonLoss(), prediction, target, weights=weights, reduction=reduction)


def gamma_loss(
    prediction: Any, target: Any, *, weights: Any = None, reduction: Reduction = "mean"
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`u + y e^{-u}`, for positive targets of mean
    :math:`e^u` and a standard deviation proportional to it.

    Parameters
    ----------
    prediction, weights, reduction
        As for :func:`squared_loss`.
    target
        ``y``: positive numbers, shape ``(n,)``.

    Returns
    -------
    LossTerm
        A term of the goal; terms are added, and multiplied by positive numbers.

    Notes
    -----
    Conjugate :math:`s \log s - s \log y - s` with :math:`s = 1 - a \ge 0`; smooth and strongly
    convex on bounded sets only.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.gamma_loss(np.eye(3) @ w, [1.2, 0.9, 7.0])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    return loss_term(GammaLoss(), prediction, target, weights=weights, reduction=reduction)


def cox_loss(
    prediction: Any, target: Any, *, weights: Any = None, reduction: Reduction = "mean"
) -> LossTerm:
    r"""Return the negative log partial likelihood of the Cox model, ties after Breslow:
    the sum over the events of :math:`\log \sum_{j : t_j \ge t_i} e^{u_j} - u_i`, divided by the
    number of observations, censored ones included (``reduction="mean"``), or not (``"sum"``).

    ``target`` has two columns, the time of the event or of the censoring and 1 for an event, 0
    for censoring: ``np.column_stack([time, event])``. An intercept changes nothing and must be
    left out.

    Parameters
    ----------
    prediction, weights, reduction
        As for :func:`squared_loss`.
    target
        Shape ``(n, 2)``: times, and 1 for an event or 0 for censoring.

    Returns
    -------
    LossTerm
        A term of the goal; terms are added, and multiplied by positive numbers.

    Notes
    -----
    Observations are coupled, so there is no conjugate of single losses; convex, no global
    smoothness constant is declared. See :class:`~sparsemodel.losses.CoxLoss`.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.cox_loss(np.eye(3) @ w, [[5.0, 1], [3.0, 0], [1.0, 1]])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    return loss_term(CoxLoss(), prediction, target, weights=weights, reduction=reduction)


__all__ = [
    "absolute_loss",
    "cox_loss",
    "epsilon_insensitive_loss",
    "gamma_loss",
    "huber_loss",
    "poisson_loss",
    "quantile_loss",
    "squared_loss",
]
