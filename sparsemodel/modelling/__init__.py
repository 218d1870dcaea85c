"""The language: variables, expressions, losses, constraints, problems."""

from sparsemodel.modelling.expressions.affine import Affine
from sparsemodel.modelling.expressions.cardinality import card, chosen
from sparsemodel.modelling.expressions.comparisons import Constraint, semicontinuous
from sparsemodel.modelling.expressions.norms import norm
from sparsemodel.modelling.expressions.parameters import Parameter
from sparsemodel.modelling.expressions.symmetric import offdiag
from sparsemodel.modelling.expressions.variables import Variable, diff
from sparsemodel.modelling.formulations.formulation import (
    CompiledProblem,
    Formulation,
    ProofRequest,
)
from sparsemodel.modelling.formulations.registered import (
    available_formulations,
    register_formulation,
)
from sparsemodel.modelling.goal import Minimize, minimize
from sparsemodel.modelling.loss_terms.class_losses import (
    hinge_loss,
    logistic_loss,
    multinomial_loss,
    ordinal_loss,
    smoothed_hinge_loss,
    squared_hinge_loss,
)
from sparsemodel.modelling.loss_terms.count_losses import (
    cox_loss,
    gamma_loss,
    inverse_gaussian_loss,
    negative_binomial_loss,
    poisson_loss,
    tweedie_loss,
)
from sparsemodel.modelling.loss_terms.custom_loss import custom_loss
from sparsemodel.modelling.loss_terms.regression_losses import (
    absolute_loss,
    epsilon_insensitive_loss,
    expectile_loss,
    huber_loss,
    quantile_loss,
    squared_loss,
)
from sparsemodel.modelling.loss_terms.terms import loss_term, ridge
from sparsemodel.modelling.precision_matrices.terms_and_constraints import (
    forbidden_edges,
    gaussian_nll,
    log_det,
    required_edges,
    trace,
)
from sparsemodel.modelling.problem import Problem
from sparsemodel.modelling.results.path import Path
from sparsemodel.modelling.results.solution import Solution
from sparsemodel.modelling.results.summary import Summary

__all__ = [
    "Affine",
    "CompiledProblem",
    "Constraint",
    "Formulation",
    "Minimize",
    "Parameter",
    "Path",
    "Problem",
    "ProofRequest",
    "Solution",
    "Summary",
    "Variable",
    "absolute_loss",
    "available_formulations",
    "card",
    "chosen",
    "cox_loss",
    "custom_loss",
    "diff",
    "epsilon_insensitive_loss",
    "expectile_loss",
    "forbidden_edges",
    "gamma_loss",
    "gaussian_nll",
    "hinge_loss",
    "huber_loss",
    "inverse_gaussian_loss",
    "log_det",
    "logistic_loss",
    "loss_term",
    "minimize",
    "multinomial_loss",
    "negative_binomial_loss",
    "norm",
    "offdiag",
    "ordinal_loss",
    "poisson_loss",
    "quantile_loss",
    "register_formulation",
    "required_edges",
    "ridge",
    "semicontinuous",
    "smoothed_hinge_loss",
    "squared_hinge_loss",
    "squared_loss",
    "trace",
    "tweedie_loss",
]
