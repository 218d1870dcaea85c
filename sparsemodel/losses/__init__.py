"""The built-in losses, one family a file.

Each is a frozen value without data; the docstring of the class gives formula, conjugate and
domain, smoothness and strong convexity.
"""

from sparsemodel.interfaces import DataFit
from sparsemodel.losses.cox import CoxLoss
from sparsemodel.losses.gamma import GammaLoss
from sparsemodel.losses.hinges import HingeLoss, SmoothedHingeLoss, SquaredHingeLoss
from sparsemodel.losses.huber import HuberLoss
from sparsemodel.losses.linear import LinearLoss
from sparsemodel.losses.logistic import LogisticLoss
from sparsemodel.losses.multinomial import MultinomialLoss
from sparsemodel.losses.poisson import PoissonLoss
from sparsemodel.losses.quadratic import SquaredLoss
from sparsemodel.losses.quantile import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    QuantileLoss,
    SmoothedPinballLoss,
)


def builtin_losses() -> tuple[DataFit, ...]:
    """Return one instance of every built-in loss, with its default parameters."""
    return (
        AbsoluteLoss(),
        CoxLoss(),
        EpsilonInsensitiveLoss(),
        GammaLoss(),
        HingeLoss(),
        HuberLoss(),
        LinearLoss(),
        LogisticLoss(),
        MultinomialLoss(),
        PoissonLoss(),
        QuantileLoss(),
        SmoothedHingeLoss(),
        SmoothedPinballLoss(),
        SquaredHingeLoss(),
        SquaredLoss(),
    )


__all__ = [
    "AbsoluteLoss",
    "CoxLoss",
    "EpsilonInsensitiveLoss",
    "GammaLoss",
    "HingeLoss",
    "HuberLoss",
    "LinearLoss",
    "LogisticLoss",
    "MultinomialLoss",
    "PoissonLoss",
    "QuantileLoss",
    "SmoothedHingeLoss",
    "SmoothedPinballLoss",
    "SquaredHingeLoss",
    "SquaredLoss",
    "builtin_losses",
]
