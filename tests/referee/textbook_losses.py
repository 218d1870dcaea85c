r"""The losses from their textbook formulas, in extended precision, with derivatives of their own.

``numpy.longdouble`` has at least the range and precision of float64; on x86-64 it has 64 bits and
exponents to :math:`10^{\pm 4932}`, so that squares of any float64 are exact enough to judge by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparsemodel.checker.proof.arithmetic import Ball
from sparsemodel.checker.proof.losses import loss_of
from sparsemodel.interfaces import DataFit
from sparsemodel.losses import (
    AbsoluteLoss,
    CoxLoss,
    EpsilonInsensitiveLoss,
    ExpectileLoss,
    GammaInverseLoss,
    GammaLoss,
    HingeLoss,
    HuberLoss,
    InverseGaussianLoss,
    LogisticLoss,
    MultinomialLoss,
    NegativeBinomialLoss,
    PoissonIdentityLoss,
    PoissonLoss,
    PoissonSqrtLoss,
    QuantileLoss,
    SmoothedHingeLoss,
    SquaredHingeLoss,
    SquaredLoss,
    TweedieLoss,
    builtin_losses,
)
from sparsemodel.losses.functions.custom import CustomLoss
from sparsemodel.losses.residuals.linear import LinearLoss

Long: TypeAlias = NDArray[Any]
"""An array of ``numpy.longdouble``."""

Formula: TypeAlias = Callable[[Any, Long, Long], Long]
"""``(loss, u, y)`` to one number per observation."""

LABELLED = (LogisticLoss, HingeLoss, SmoothedHingeLoss, SquaredHingeLoss)
"""Losses of labels -1 and 1."""

COUPLED = (CoxLoss, MultinomialLoss)
"""Losses whose predictions hang together: they move no more than twice the largest move."""


def long(values: Any) -> Long:
    """Return ``values`` as extended precision."""
    return np.asarray(values, dtype=np.longdouble)


def _rows(values: Long) -> Long:
    return values if values.ndim == 1 else long(values.sum(axis=1))


def _huber(loss: Any, u: Long, y: Long) -> Long:
    size, delta = np.abs(u - y), long(loss.delta)
    return long(np.where(size <= delta, size * size / 2, delta * size - delta * delta / 2))


def _quantile(loss: Any, u: Long, y: Long) -> Long:
    tau = long(loss.tau)
    return long(np.where(y >= u, tau * (y - u), (1 - tau) * (u - y)))


def _expectile(loss: Any, u: Long, y: Long) -> Long:
    tau = long(loss.tau)
    return long(np.where(y >= u, tau, 1 - tau) * (y - u) * (y - u))


def _negative_binomial(loss: Any, u: Long, y: Long) -> Long:
    theta = long(loss.theta)
    return long((y + theta) * np.logaddexp(long(0.0), u - np.log(theta)) - y * u)


def _tweedie(loss: Any, u: Long, y: Long) -> Long:
    p = long(loss.power)
    return long(np.exp((2 - p) * u) / (2 - p) - y * np.exp((1 - p) * u) / (1 - p))


def _weighted_log(b: Long, u: Long) -> Long:
    """Return ``b log(u)``: minus infinity where ``u`` is not positive, zero where ``b`` is."""
    logs = np.log(np.where(u > 0, u, 1))
    return long(np.where(b > 0, np.where(u > 0, b * logs, -np.inf), 0))


def _smoothed_hinge(loss: Any, u: Long, y: Long) -> Long:
    gap, gamma = 1 - y * u, long(loss.gamma)
    curve = gap * gap / (2 * gamma)
    return long(np.where(gap <= 0, 0, np.where(gap <= gamma, curve, gap - gamma / 2)))


def _multinomial(loss: Any, u: Long, y: Long) -> Long:
    top = u.max(axis=1)
    own = u[np.arange(len(u)), y.astype(np.intp)]
    return long(np.log(np.exp(u - top[:, None]).sum(axis=1)) + top - own)


def _multinomial_slope(loss: Any, u: Long, y: Long) -> Long:
    shares = np.exp(u - u.max(axis=1)[:, None])
    shares /= shares.sum(axis=1)[:, None]
    shares[np.arange(len(u)), y.astype(np.intp)] -= 1
    return long(shares)


VALUES: Mapping[type, Formula] = MappingProxyType(
    {
        SquaredLoss: lambda loss, u, y: _rows((u - y) * (u - y) / 2),
        LinearLoss: lambda loss, u, y: y * u,
        HuberLoss: _huber,
        AbsoluteLoss: lambda loss, u, y: np.abs(u - y),
        QuantileLoss: _quantile,
        ExpectileLoss: _expectile,
        EpsilonInsensitiveLoss: lambda loss, u, y: np.maximum(np.abs(u - y) - loss.epsilon, 0),
        LogisticLoss: lambda loss, u, y: np.maximum(-y * u, 0) + np.log1p(np.exp(-np.abs(y * u))),
        HingeLoss: lambda loss, u, y: np.maximum(1 - y * u, 0),
        SmoothedHingeLoss: _smoothed_hinge,
        SquaredHingeLoss: lambda loss, u, y: np.square(np.maximum(1 - y * u, 0)) / 2,
        PoissonLoss: lambda loss, u, y: np.exp(u) - y * u,
        NegativeBinomialLoss: _negative_binomial,
        GammaLoss: lambda loss, u, y: u + y * np.exp(-u),
        TweedieLoss: _tweedie,
        PoissonIdentityLoss: lambda loss, u, y: u - _weighted_log(y, u),
        PoissonSqrtLoss: lambda loss, u, y: u * u - 2 * _weighted_log(y, u),
        GammaInverseLoss: lambda loss, u, y: y * u - _weighted_log(1 + 0 * y, u),
        InverseGaussianLoss: lambda loss, u, y: np.where(
            u < 0, np.inf, y * u / 2 - np.sqrt(np.abs(u))
        ),
        MultinomialLoss: _multinomial,
    }
)
"""The losses of one observation each."""

SLOPES: Mapping[type, Formula] = MappingProxyType(
    {
        SquaredLoss: lambda loss, u, y: u - y,
        LinearLoss: lambda loss, u, y: y + 0 * u,
        HuberLoss: lambda loss, u, y: np.clip(u - y, -loss.delta, loss.delta),
        AbsoluteLoss: lambda loss, u, y: np.sign(u - y),
        QuantileLoss: lambda loss, u, y: np.where(u > y, 1 - long(loss.tau), -long(loss.tau)),
        ExpectileLoss: lambda loss, u, y: (
            2 * np.where(u > y, 1 - long(loss.tau), long(loss.tau)) * (u - y)
        ),
        EpsilonInsensitiveLoss: lambda loss, u, y: np.sign(u - y) * (np.abs(u - y) > loss.epsilon),
        LogisticLoss: lambda loss, u, y: -y * np.exp(-np.logaddexp(0, y * u)),
        HingeLoss: lambda loss, u, y: -y * (y * u < 1),
        SmoothedHingeLoss: lambda loss, u, y: -y * np.clip((1 - y * u) / loss.gamma, 0, 1),
        SquaredHingeLoss: lambda loss, u, y: -y * np.maximum(1 - y * u, 0),
        PoissonLoss: lambda loss, u, y: np.exp(u) - y,
        NegativeBinomialLoss: lambda loss, u, y: (
            (loss.theta * np.exp(u) - loss.theta * y) / (loss.theta + np.exp(u))
        ),
        GammaLoss: lambda loss, u, y: 1 - y * np.exp(-u),
        TweedieLoss: lambda loss, u, y: (np.exp(u) - y) * np.exp((1 - long(loss.power)) * u),
        PoissonIdentityLoss: lambda loss, u, y: 1 - np.where(y > 0, y / u, 0),
        PoissonSqrtLoss: lambda loss, u, y: 2 * u - 2 * np.where(y > 0, y / u, 0),
        GammaInverseLoss: lambda loss, u, y: y - 1 / u,
        InverseGaussianLoss: lambda loss, u, y: (y - 1 / np.sqrt(u)) / 2,
        MultinomialLoss: _multinomial_slope,
    }
)
"""Derivatives of :data:`VALUES`: they lead the search for good points and judge nothing."""

BENDS: Mapping[type, Formula] = MappingProxyType(
    {
        SquaredLoss: lambda loss, u, y: np.ones_like(u),
        LinearLoss: lambda loss, u, y: np.zeros_like(u),
        HuberLoss: lambda loss, u, y: long(np.abs(u - y) <= loss.delta),
        ExpectileLoss: lambda loss, u, y: 2 * np.where(u > y, 1 - long(loss.tau), long(loss.tau)),
        LogisticLoss: lambda loss, u, y: np.exp(-np.abs(u)) / np.square(1 + np.exp(-np.abs(u))),
        SmoothedHingeLoss: lambda loss, u, y: (
            long((y * u < 1) & (1 - y * u < loss.gamma)) / loss.gamma
        ),
        SquaredHingeLoss: lambda loss, u, y: long(y * u < 1),
        PoissonLoss: lambda loss, u, y: np.exp(u),
        NegativeBinomialLoss: lambda loss, u, y: (
            (y + loss.theta) * loss.theta * np.exp(u) / np.square(loss.theta + np.exp(u))
        ),
        GammaLoss: lambda loss, u, y: y * np.exp(-u),
        TweedieLoss: lambda loss, u, y: (
            ((2 - long(loss.power)) * np.exp(u) + (long(loss.power) - 1) * y)
            * np.exp((1 - long(loss.power)) * u)
        ),
        PoissonIdentityLoss: lambda loss, u, y: np.where(y > 0, y / (u * u), 0),
        PoissonSqrtLoss: lambda loss, u, y: 2 + 2 * np.where(y > 0, y / (u * u), 0),
        GammaInverseLoss: lambda loss, u, y: 1 / (u * u),
        InverseGaussianLoss: lambda loss, u, y: 1 / (4 * u * np.sqrt(u)),
    }
)
"""Second derivatives of the smooth losses of one prediction."""


def is_known(loss: DataFit) -> bool:
    """Return whether there is a formula for a loss; subclasses may mean anything else."""
    return type(loss) in VALUES or type(loss) is CoxLoss


def total(loss: DataFit, u: Long, y: Long, c: Long) -> Any:
    """Return the sum of the losses times ``c``; losses of others by their own functions."""
    return np.sum(each(loss, u, y, c))


def of_weights(loss: DataFit, y: Long, weights: Long) -> Any:
    """Return what weights add to a loss that :func:`total` leaves out.

    A weight of two is two observations in the risk sets of the Cox model, which :func:`total`
    counts by their mean.
    """
    if type(loss) is not CoxLoss:
        return long(0.0)
    return np.sum(weights * (y[:, int(y.shape[1] == 4) + 1] == 1)) * np.log(
        np.sum(weights) / len(weights)
    )


def each(loss: DataFit, u: Long, y: Long, c: Long) -> Long:
    """Return the parts of :func:`total`: one per observation, or one that does not come apart."""
    if type(loss) is CoxLoss:
        return long(_cox(loss, u, y, c))
    if type(loss) in VALUES:
        return long(c * VALUES[type(loss)](loss, u, y))
    plain = [np.asarray(part, dtype=np.float64) for part in (u, y, c)]
    if isinstance(loss, CustomLoss):
        return long(c.flat[0]) * long(np.asarray(loss.function(plain[0])).reshape(()))
    if type(loss) in map(type, builtin_losses()):
        return long(c * _checked(loss, plain[0], plain[1]))
    return long(loss.total(*plain))


def _checked(loss: Any, u: Any, y: Any) -> Any:
    """Return a built-in loss that has no formula here by that of the checker, in float64."""
    parameters = {field.name: getattr(loss, field.name) for field in fields(loss)}
    return loss_of(loss.name, parameters, y, u.shape).value(Ball(u)).mid


def moved(loss: DataFit, u: Long, y: Long, c: Long, reach: Long) -> Any:
    """Return how far :func:`total` can move when every prediction moves by up to ``reach``.

    Each in its own direction: moved together, they would cancel at any balanced point.
    """
    middle = each(loss, u, y, c)
    most = long(0.0)
    for sign in (-1, 1):
        most = np.maximum(most, np.abs(each(loss, u + sign * reach, y, c) - middle))
    out = np.sum(most)
    if u.ndim > 1 or most.shape != u.shape:  # parts of several predictions
        out = np.maximum(out, np.sum(np.abs(slope(loss, u, y, c)) * reach))
    return out


def slope(loss: DataFit, u: Long, y: Long, c: Long) -> Long:
    """Return the gradient of :func:`total` in the predictions."""
    if type(loss) is CoxLoss:
        return _cox_slope(loss, u, y, c)
    if type(loss) in SLOPES:
        return long(SLOPES[type(loss)](loss, u, y).T * c).T
    return long(loss.gradient(*(np.asarray(part, dtype=np.float64) for part in (u, y, c))))


def bend(loss: DataFit, u: Long, y: Long, c: Long) -> Long | None:
    """Return the second derivatives of the terms of :func:`total`; None without a formula."""
    formula = BENDS.get(type(loss))
    return None if formula is None else long(formula(loss, u, y).T * c).T


def _cox_parts(loss: Any, y: Long, weights: Long) -> Iterator[tuple[int, Any, Long]]:
    """Return the events, each with weights and the shares of hazards of what it is compared with.

    With weights, risk sets count an observation as often as its share of their mean says. After
    Efron every event of a tie has the mean of as many logarithms, in which the hazards of the tie
    count less and less.
    """
    # Four columns are start, stop, event and stratum; otherwise there is no start.
    late = y.shape[1] == 4
    time, event = y[:, int(late)], (y[:, 1 + int(late)] == 1) & (weights > 0)
    start = y[:, 0] if late else time - 1
    stratum = y[:, -1] if y.shape[1] > 2 else 0 * time
    shares = weights * len(weights) / weights.sum()
    for i in np.flatnonzero(event):
        at_risk = (time >= time[i]) & (stratum == stratum[i]) & (shares > 0)
        at_risk &= (start < time[i]) | (not late)
        tied = at_risk & event & (time == time[i])
        d = int(tied.sum()) if loss.ties == "efron" else 1
        for gone in range(d):
            left = shares * (1 - tied * long(gone) / d)
            yield int(i), weights[i] / d, long(np.where(at_risk, left, 0))


def _cox(loss: Any, u: Long, y: Long, weights: Long) -> Any:
    out = long(0.0)
    for i, weight, shares in _cox_parts(loss, y, weights):
        top = u[shares > 0].max()
        counted = shares[shares > 0] * np.exp(u[shares > 0] - top)
        out += weight * (np.log(np.sum(counted)) + top - u[i])
    return out


def _cox_slope(loss: Any, u: Long, y: Long, weights: Long) -> Long:
    out = long(np.zeros(len(u)))
    for i, weight, shares in _cox_parts(loss, y, weights):
        counted = shares * np.exp(np.minimum(u - u[shares > 0].max(), 0))
        out += weight * counted / counted.sum()
        out[i] -= weight
    return out
