"""The losses of the random problems by the formulas of the referee, in extended precision."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sparsemodel.interfaces import DataFit
from sparsemodel.losses import (
    AbsoluteLoss,
    CoxLoss,
    EpsilonInsensitiveLoss,
    ExpectileLoss,
    GammaLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    MultinomialLoss,
    NegativeBinomialLoss,
    PoissonLoss,
    QuantileLoss,
    SmoothedHingeLoss,
    SquaredHingeLoss,
    SquaredLoss,
    TweedieLoss,
)
from sparsemodel.testing.referee.textbook_losses import Long, moved, slope, total

HUBER_DELTA, TAU, EPSILON, SMOOTHING, THETA, POWER = 0.7, 0.3, 0.2, 0.5, 2.0, 1.5
"""Parameters of the losses that have one, in the random problems."""

LOSSES: Mapping[str, DataFit] = MappingProxyType(
    {
        "squared": SquaredLoss(),
        "huber": HuberLoss(delta=HUBER_DELTA),
        "absolute": AbsoluteLoss(),
        "quantile": QuantileLoss(tau=TAU),
        "epsilon_insensitive": EpsilonInsensitiveLoss(epsilon=EPSILON),
        "logistic": LogisticLoss(),
        "hinge": HingeLoss(),
        "smoothed_hinge": SmoothedHingeLoss(gamma=SMOOTHING),
        "squared_hinge": SquaredHingeLoss(),
        "poisson": PoissonLoss(),
        "gamma": GammaLoss(),
        "multinomial": MultinomialLoss(),
        "cox": CoxLoss(),
        "expectile": ExpectileLoss(tau=TAU),
        "negative_binomial": NegativeBinomialLoss(theta=THETA),
        "tweedie": TweedieLoss(power=POWER),
    }
)
"""Which loss is meant; none of its own functions is called."""


def total_slope(name: str, u: Long, y: Long, weights: Long) -> Long:
    """Return the gradient of :func:`total_loss` in the predictions."""
    return slope(LOSSES[name], u, y, weights)


def total_loss(name: str, u: Long, y: Long, weights: Long) -> Any:
    """Return the weighted sum of the losses."""
    return total(LOSSES[name], u, y, weights)


def total_moved(name: str, u: Long, y: Long, weights: Long, reach: Long) -> Any:
    """Return how far :func:`total_loss` can move when predictions move by up to ``reach``."""
    return moved(LOSSES[name], u, y, weights, reach)
