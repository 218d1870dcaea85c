"""Losses of numerical targets, as the language spells them; each returns a term."""

from __future__ import annotations

from typing import Any

from sparsemodel.interfaces import ModelError
from sparsemodel.losses import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    ExpectileLoss,
    HuberLoss,
    QuantileLoss,
    SquaredLoss,
)
from sparsemodel.modelling.expressions.objective_terms import LossTerm, Reduction
from sparsemodel.modelling.loss_terms.terms import loss_function, loss_term, residual_term


@loss_function
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

    Raises
    ------
    DataError
        As for every loss: when shapes disagree, an entry is NaN or infinite, a weight is negative,
        or the target is not of the kind that the loss needs (numbers, counts, labels).
    ModelError
        As for every loss: when ``prediction`` is no affine expression, or ``reduction`` is unknown.

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


@loss_function
def huber_loss(
    prediction: Any,
    target: Any = None,
    *,
    delta: float = 1.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> LossTerm:
    r"""Return the mean (or sum) of the Huber loss of the residual :math:`r = u - y`.

    It is :math:`\frac12 r^2` for :math:`|r| \le \delta` and :math:`\delta |r| - \frac12 \delta^2`
    beyond. Large residuals enter linearly, so that each outlier has a bounded influence.

    Parameters
    ----------
    target
        ``y``: numbers, shape ``(n,)``; left out where the prediction is a residual, ``A @ w - b``.
    delta
        Where the parabola ends, in the units of the target.

    Notes
    -----
    Conjugate :math:`a^2/2 + a y` for :math:`|a| \le \delta`; 1-smooth, not strongly convex.

    Source: Huber, *Robust estimation of a location parameter* (Annals of Mathematical Statistics
    35, 1964).

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


@loss_function
def absolute_loss(
    prediction: Any, target: Any = None, *, weights: Any = None, reduction: Reduction = "mean"
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`|u_i - y_i|`, whose minimiser predicts a median.

    Parameters
    ----------
    target
        ``y``: numbers, shape ``(n,)``; left out where the prediction is a residual, ``A @ w - b``.

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


@loss_function
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
    target
        ``y``: numbers, shape ``(n,)``; left out where the prediction is a residual, ``A @ w - b``.
    tau
        Level of the quantile, strictly between 0 and 1.

    Notes
    -----
    Conjugate :math:`a y` for :math:`-\tau \le a \le 1 - \tau`; neither smooth nor strongly convex
    (see :func:`absolute_loss`).

    Source: Koenker and Bassett, *Regression quantiles* (Econometrica 46, 1978).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.quantile_loss(np.eye(3) @ w, [3.0, 0.1, -90.0], tau=0.9)
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [0]
    """
    _apart("quantile_loss", target)
    loss = QuantileLoss(tau=tau)
    return loss_term(loss, prediction, target, weights=weights, reduction=reduction)


@loss_function
def expectile_loss(
    prediction: Any,
    target: Any = None,
    *,
    tau: float = 0.5,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`\tau (y - u)_+^2 + (1 - \tau)(u - y)_+^2`.

    Its minimiser predicts the expectile of level ``tau``: a mean in which what lies above counts
    :math:`\tau / (1 - \tau)` times. For 0.5 it is the squared loss.

    Parameters
    ----------
    target
        ``y``: numbers, shape ``(n,)``.
    tau
        Level of the expectile, strictly between 0 and 1.

    Notes
    -----
    Conjugate :math:`a y + a^2 / (4 \omega)`, :math:`\omega = \tau` for :math:`a < 0` and
    :math:`1 - \tau` for :math:`a > 0`; :math:`2\max(\tau, 1 - \tau)`-smooth and
    :math:`2\min(\tau, 1 - \tau)`-strongly convex.

    Source: Newey and Powell, *Asymmetric least squares estimation and testing* (Econometrica 55,
    1987).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.expectile_loss(np.eye(3) @ w, [-3.0, 0.1, 2.0], tau=0.9)
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    _apart("expectile_loss", target)
    loss = ExpectileLoss(tau=tau)
    return loss_term(loss, prediction, target, weights=weights, reduction=reduction)


@loss_function
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
    target
        ``y``: numbers, shape ``(n,)``; left out where the prediction is a residual, ``A @ w - b``.
    epsilon
        Largest residual without a loss, in the units of the target.

    Notes
    -----
    Conjugate :math:`a y + \epsilon |a|` for :math:`|a| \le 1`; neither smooth nor strongly convex
    (see :func:`absolute_loss`).

    Source: Vapnik, *The nature of statistical learning theory* (1995).

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


def _apart(name: str, target: Any) -> None:
    """Raise :class:`ModelError` where a loss with two unlike sides is given a residual alone."""
    if target is None:
        raise ModelError(
            f"{name} needs prediction and target apart, as it is another function of `u - y` "
            f"than of `y - u`: sm.{name}(A @ w, b, tau=...)."
        )
