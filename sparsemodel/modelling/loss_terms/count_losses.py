"""Losses of counts, amounts and survival times, as the language spells them; each returns a term.

Means are exponentials of predictions (the log link), so that exposures are an offset, ``A @ w + c +
np.log(exposure)``; some losses have other links as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sparsemodel.interfaces import DataFit, ModelError
from sparsemodel.losses import (
    CoxLoss,
    GammaInverseLoss,
    GammaLoss,
    InverseGaussianLoss,
    NegativeBinomialLoss,
    PoissonIdentityLoss,
    PoissonLoss,
    PoissonSqrtLoss,
    TweedieLoss,
)
from sparsemodel.modelling.expressions.objective_terms import LossTerm, Reduction
from sparsemodel.modelling.loss_terms.terms import loss_function, loss_term

_NOT_CONVEX = "with a mean of {} it is not convex in the prediction"
_POISSON_LINKS: dict[str, type[DataFit] | str] = {
    "log": PoissonLoss,
    "identity": PoissonIdentityLoss,
    "sqrt": PoissonSqrtLoss,
    "inverse": _NOT_CONVEX.format("1/u"),
}
_GAMMA_LINKS: dict[str, type[DataFit] | str] = {
    "log": GammaLoss,
    "inverse": GammaInverseLoss,
    "identity": _NOT_CONVEX.format("u"),
    "sqrt": _NOT_CONVEX.format("u^2"),
}


def _linked(name: str, links: Mapping[str, type[DataFit] | str], link: object) -> DataFit:
    """Return the loss with a link, or raise the error that says which there are."""
    found = links.get(link) if isinstance(link, str) else None
    if isinstance(found, type):
        return found()
    known = " or ".join(f'"{one}"' for one, loss in links.items() if isinstance(loss, type))
    why = f"; {found}" if found else ""
    raise ModelError(f"sm.{name} has the link {known}, not {link!r}{why}.")


@loss_function
def poisson_loss(
    prediction: Any,
    target: Any,
    *,
    link: Literal["log", "identity", "sqrt"] = "log",
    weights: Any = None,
    reduction: Reduction = "mean",
) -> LossTerm:
    r"""Return the mean (or sum) of the Poisson loss :math:`\mu - y \log \mu`: :math:`e^u - y u`.

    For counts :math:`y \ge 0` of mean :math:`\mu = e^u`; exposures enter as an offset, ``A @ w + c
    + np.log(exposure)``. With the other links, :math:`\mu = u` and :math:`\mu = u^2`, predictions
    must be positive; include a constant, or coefficients that make them so. The loss does not
    enforce this at counts of zero, where it is :math:`u` or :math:`u^2` for every ``u``; if
    necessary add the constraint ``A[y == 0] @ w >= 0``.

    Parameters
    ----------
    target
        ``y``: counts, not negative, shape ``(n,)``.
    link
        The function of the mean that is predicted: ``"log"``, ``"identity"`` for
        :math:`u - y \log u`, or ``"sqrt"`` for :math:`u^2 - 2 y \log u`.

    Notes
    -----
    Conjugate :math:`(a + y) \log(a + y) - (a + y)` for :math:`a + y \ge 0`; smooth and strongly
    convex on bounded sets only. :class:`~sparsemodel.losses.PoissonIdentityLoss` and
    ``PoissonSqrtLoss`` give the conjugates of the other links, and their values where ``u`` is not
    positive.

    Source: McCullagh and Nelder, *Generalized linear models* (1989).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.poisson_loss(np.eye(3) @ w, [1, 0, 7])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    loss = _linked("poisson_loss", _POISSON_LINKS, link)
    return loss_term(loss, prediction, target, weights=weights, reduction=reduction)


@loss_function
def negative_binomial_loss(
    prediction: Any,
    target: Any,
    *,
    theta: float = 1.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`(y + \theta) \log(1 + e^u/\theta) - y u`.

    For counts of mean :math:`\mu = e^u` that vary more than Poisson's, with variance :math:`\mu +
    \mu^2/\theta`; exposures enter as an offset, ``A @ w + c + np.log(exposure)``.

    Parameters
    ----------
    target
        ``y``: counts, not negative, shape ``(n,)``.
    theta
        A positive number, which is not estimated; with a large one the loss is close to that of
        Poisson. Its inverse is known as the dispersion.

    Notes
    -----
    Conjugate :math:`s \log \frac{\theta s}{\theta + y} + t \log \frac{t}{\theta + y}` with
    :math:`s = a + y` and :math:`t = \theta - a`, not negative; :math:`(\max y + \theta)/4`-smooth,
    strongly convex on bounded sets only.

    Source: Lawless, *Negative binomial and mixed Poisson regression* (Canadian Journal of
    Statistics 15, 1987).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.negative_binomial_loss(np.eye(3) @ w, [1, 0, 7], theta=2.0)
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    loss = NegativeBinomialLoss(theta=theta)
    return loss_term(loss, prediction, target, weights=weights, reduction=reduction)


@loss_function
def gamma_loss(
    prediction: Any,
    target: Any,
    *,
    link: Literal["log", "inverse"] = "log",
    weights: Any = None,
    reduction: Reduction = "mean",
) -> LossTerm:
    r"""Return the mean (or sum) of the gamma loss :math:`\log \mu + y/\mu`: :math:`u + y e^{-u}`.

    For positive targets of mean :math:`\mu = e^u` and a standard deviation proportional to it. With
    the inverse link :math:`\mu = 1/u`, and predictions must be positive; include a constant, or
    coefficients that make them so.

    Parameters
    ----------
    target
        ``y``: positive numbers, shape ``(n,)``.
    link
        The function of the mean that is predicted: ``"log"``, or ``"inverse"`` (the canonical link)
        for :math:`y u - \log u`.

    Notes
    -----
    Conjugate :math:`s \log s - s \log y - s` with :math:`s = 1 - a \ge 0`, with the inverse link
    :math:`-1 - \log(y - a)` for :math:`a < y`; smooth and strongly convex on bounded sets only.

    Source: McCullagh and Nelder, *Generalized linear models* (1989).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.gamma_loss(np.eye(3) @ w, [1.2, 0.9, 7.0])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    loss = _linked("gamma_loss", _GAMMA_LINKS, link)
    return loss_term(loss, prediction, target, weights=weights, reduction=reduction)


@loss_function
def inverse_gaussian_loss(
    prediction: Any, target: Any, *, weights: Any = None, reduction: Reduction = "mean"
) -> LossTerm:
    r"""Return the mean (or sum) of the inverse Gaussian loss :math:`\frac12 y u - \sqrt u`.

    For positive targets of mean :math:`\mu = 1/\sqrt u` (the canonical link, :math:`u = 1/\mu^2`)
    and a variance proportional to :math:`\mu^3`, for example first passage times. Predictions must
    be positive; include a constant, or coefficients that make them so. With :math:`\mu = e^u` the
    loss is not convex. With :math:`\mu = 1/u` it is, up to a constant, a weighted squared loss,
    ``sm.squared_loss(A @ w + c, 1 / y, weights=y)``.

    Parameters
    ----------
    target
        ``y``: positive numbers, shape ``(n,)``.

    Notes
    -----
    Conjugate :math:`1 / (2 y - 4 a)` for :math:`a < y / 2`; smooth and strongly convex on bounded
    sets only.

    Source: McCullagh and Nelder, *Generalized linear models* (1989).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w, c = sm.Variable(3, name="w"), sm.Variable(name="c")
    >>> loss = sm.inverse_gaussian_loss(np.eye(3) @ w + c, [1.2, 0.9, 0.3])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    loss = InverseGaussianLoss()
    return loss_term(loss, prediction, target, weights=weights, reduction=reduction)


@loss_function
def tweedie_loss(
    prediction: Any,
    target: Any,
    *,
    power: float = 1.5,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> LossTerm:
    r"""Return the mean (or sum) of :math:`y e^{-(p - 1) u}/(p - 1) + e^{(2 - p) u}/(2 - p)`.

    For amounts of mean :math:`\mu = e^u` and a variance proportional to :math:`\mu^p`, with many
    zeros and a wide spread of positive values: rainfall, insurance claims.

    Parameters
    ----------
    target
        ``y``: numbers, not negative, shape ``(n,)``.
    power
        ``p``, strictly between 1 (Poisson) and 2 (gamma).

    Notes
    -----
    Conjugate by the root of one equation, see :class:`~sparsemodel.losses.TweedieLoss`; smooth and
    strongly convex on bounded sets only.

    Source: Jørgensen, *Exponential dispersion models* (JRSS B 49, 1987).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.tweedie_loss(np.eye(3) @ w, [1.2, 0.9, 7.0], power=1.4)
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    loss = TweedieLoss(power=power)
    return loss_term(loss, prediction, target, weights=weights, reduction=reduction)


@loss_function
def cox_loss(
    prediction: Any,
    target: Any,
    *,
    ties: str = "breslow",
    weights: Any = None,
    reduction: Reduction = "mean",
) -> LossTerm:
    r"""Return the negative log partial likelihood of the Cox model.

    It is the sum over the events of :math:`\log \sum_{j : t_j \ge t_i} e^{u_j} - u_i`, divided by
    the number of observations, censored ones included (``reduction="mean"``), or not (``"sum"``).

    ``target`` has two columns, the time of the event or of the censoring and 1 for an event, 0
    for censoring: ``np.column_stack([time, event])``. An optional third column has numbers of
    strata (hospitals, for example): every stratum has its own baseline hazard, and only its own
    observations are compared. An intercept changes nothing and must be left out.

    Parameters
    ----------
    target
        Shape ``(n, 2)``: times, and 1 for an event or 0 for censoring; or ``(n, 3)``, with strata.
    ties
        How ties (events at the same time) are treated: ``"breslow"``, as in the formula above, or
        ``"efron"``, which is closer to the exact likelihood if there are many ties.

    Notes
    -----
    Observations are coupled, so there is no conjugate of single losses; convex, no global
    smoothness constant is declared. See :class:`~sparsemodel.losses.CoxLoss`.

    Source: Cox, *Regression models and life-tables* (JRSS B 34, 1972); for ties Breslow
    (Biometrics 30, 1974) and Efron (JASA 72, 1977).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.cox_loss(np.eye(3) @ w, [[5.0, 1], [3.0, 0], [1.0, 1]])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    """
    return loss_term(CoxLoss(ties=ties), prediction, target, weights=weights, reduction=reduction)
