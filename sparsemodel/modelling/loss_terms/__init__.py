"""The losses as functions of the language.

Each function is made from a class of :mod:`sparsemodel.losses`, whose fields are its parameters and
whose description is its own. To add a built-in loss, write its class and a line here.
"""

from sparsemodel import losses
from sparsemodel.modelling.loss_terms.custom_loss import custom_loss
from sparsemodel.modelling.loss_terms.loss_function import loss_function
from sparsemodel.modelling.loss_terms.ordinal_loss import ordinal_loss
from sparsemodel.modelling.loss_terms.terms import loss_term, ridge

_NOT_CONVEX = "with a mean of {} it is not convex in the prediction"

absolute_loss = loss_function(losses.AbsoluteLoss)
cox_loss = loss_function(losses.CoxLoss)
epsilon_insensitive_loss = loss_function(losses.EpsilonInsensitiveLoss)
expectile_loss = loss_function(losses.ExpectileLoss)
gamma_loss = loss_function(
    losses.GammaLoss,
    links={
        "inverse": losses.GammaInverseLoss,
        "identity": _NOT_CONVEX.format("u"),
        "sqrt": _NOT_CONVEX.format("u^2"),
    },
)
hinge_loss = loss_function(losses.HingeLoss)
huber_loss = loss_function(losses.HuberLoss)
inverse_gaussian_loss = loss_function(losses.InverseGaussianLoss)
logistic_loss = loss_function(losses.LogisticLoss)
multinomial_loss = loss_function(losses.MultinomialLoss)
negative_binomial_loss = loss_function(losses.NegativeBinomialLoss)
poisson_loss = loss_function(
    losses.PoissonLoss,
    links={
        "identity": losses.PoissonIdentityLoss,
        "sqrt": losses.PoissonSqrtLoss,
        "inverse": _NOT_CONVEX.format("1/u"),
    },
)
quantile_loss = loss_function(losses.QuantileLoss)
smoothed_hinge_loss = loss_function(losses.SmoothedHingeLoss)
squared_hinge_loss = loss_function(losses.SquaredHingeLoss)
squared_loss = loss_function(losses.SquaredLoss)
tweedie_loss = loss_function(losses.TweedieLoss)

__all__: list[str] = [
    "absolute_loss",
    "cox_loss",
    "custom_loss",
    "epsilon_insensitive_loss",
    "expectile_loss",
    "gamma_loss",
    "hinge_loss",
    "huber_loss",
    "inverse_gaussian_loss",
    "logistic_loss",
    "loss_term",
    "multinomial_loss",
    "negative_binomial_loss",
    "ordinal_loss",
    "poisson_loss",
    "quantile_loss",
    "ridge",
    "smoothed_hinge_loss",
    "squared_hinge_loss",
    "squared_loss",
    "tweedie_loss",
]
