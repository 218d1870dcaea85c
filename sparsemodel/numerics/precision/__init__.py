"""Kernels for sparse precision matrices, public to backend authors."""

from sparsemodel.numerics.precision.admm import AdmmResult, minimise_admm
from sparsemodel.numerics.precision.cholesky import (
    Factor,
    active_bounds,
    factorise,
    rounding,
    within_bounds,
)
from sparsemodel.numerics.precision.joint import (
    joint_objective,
    minimise_joint_on_support,
    precision_states,
)
from sparsemodel.numerics.precision.log_det_newton import NewtonResult, minimise_newton
from sparsemodel.numerics.precision.objective import (
    PrecisionObjective,
    precision_objective,
    precision_state,
)
from sparsemodel.numerics.precision.pattern import Pattern
from sparsemodel.numerics.precision.restricted import (
    RestrictedFit,
    minimise_on_pattern,
    minimise_precision_on_support,
)
from sparsemodel.numerics.precision.scores import insertion_gains, removal_costs
from sparsemodel.numerics.precision.screening import default_shrinkage, ridge_partial_correlations
from sparsemodel.numerics.precision.spectral import (
    eigenvalues,
    optimal_eigenvalues,
    spectral_infimum,
    spectral_terms,
)

__all__ = [
    "AdmmResult",
    "Factor",
    "NewtonResult",
    "Pattern",
    "PrecisionObjective",
    "RestrictedFit",
    "active_bounds",
    "default_shrinkage",
    "eigenvalues",
    "factorise",
    "insertion_gains",
    "joint_objective",
    "minimise_admm",
    "minimise_joint_on_support",
    "minimise_newton",
    "minimise_on_pattern",
    "minimise_precision_on_support",
    "optimal_eigenvalues",
    "precision_objective",
    "precision_state",
    "precision_states",
    "removal_costs",
    "ridge_partial_correlations",
    "rounding",
    "spectral_infimum",
    "spectral_terms",
    "within_bounds",
]
