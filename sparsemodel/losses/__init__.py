"""The built-in losses, one family a file.

Each is a frozen value without data; the docstring of the class gives formula, conjugate and
domain, smoothness and strong convexity.
"""

from sparsemodel.interfaces import DataFit
from sparsemodel.losses.classification.hinges import HingeLoss, SmoothedHingeLoss, SquaredHingeLoss
from sparsemodel.losses.classification.logistic import LogisticLoss
from sparsemodel.losses.classification.multinomial import MultinomialLoss
from sparsemodel.losses.counts.cox import CoxLoss
from sparsemodel.losses.counts.gamma import GammaLoss
from sparsemodel.losses.counts.links import (
    GammaInverseLoss,
    InverseGaussianLoss,
    PoissonIdentityLoss,
    PoissonSqrtLoss,
)
from sparsemodel.losses.counts.negative_binomial import NegativeBinomialLoss
from sparsemodel.losses.counts.poisson import PoissonLoss
from sparsemodel.losses.counts.tweedie import TweedieLoss
from sparsemodel.losses.residuals.expectile import ExpectileLoss
from sparsemodel.losses.residuals.huber import HuberLoss
from sparsemodel.losses.residuals.linear import LinearLoss
from sparsemodel.losses.residuals.quadratic import SquaredLoss
from sparsemodel.losses.residuals.quantile import (
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
        ExpectileLoss(),
        GammaInverseLoss(),
        GammaLoss(),
        HingeLoss(),
        HuberLoss(),
        InverseGaussianLoss(),
        LinearLoss(),
        LogisticLoss(),
        MultinomialLoss(),
        NegativeBinomialLoss(),
        PoissonIdentityLoss(),
        PoissonLoss(),
        PoissonSqrtLoss(),
        QuantileLoss(),
        SmoothedHingeLoss(),
        SmoothedPinballLoss(),
        SquaredHingeLoss(),
        SquaredLoss(),
        TweedieLoss(),
    )


__all__ = [
    "AbsoluteLoss",
    "CoxLoss",
    "EpsilonInsensitiveLoss",
    "ExpectileLoss",
    "GammaInverseLoss",
    "GammaLoss",
    "HingeLoss",
    "HuberLoss",
    "InverseGaussianLoss",
    "LinearLoss",
    "LogisticLoss",
    "MultinomialLoss",
    "NegativeBinomialLoss",
    "PoissonIdentityLoss",
    "PoissonLoss",
    "PoissonSqrtLoss",
    "QuantileLoss",
    "SmoothedHingeLoss",
    "SmoothedPinballLoss",
    "SquaredHingeLoss",
    "SquaredLoss",
    "TweedieLoss",
    "builtin_losses",
]
