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
    "available_formulations",
    "card",
    "chosen",
    "diff",
    "forbidden_edges",
    "gaussian_nll",
    "log_det",
    "minimize",
    "norm",
    "offdiag",
    "register_formulation",
    "required_edges",
    "semicontinuous",
    "trace",
]
