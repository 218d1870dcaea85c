"""Kernels for sparse precision matrices, public to backend authors."""

from sparsemodel.numerics.precision.cholesky import (
    Factor,
    active_bounds,
    factorise,
    rounding,
    within_bounds,
)
from sparsemodel.numerics.precision.joint import precision_states
from sparsemodel.numerics.precision.objective import (
    PrecisionObjective,
    precision_objective,
    precision_state,
)
from sparsemodel.numerics.precision.pattern import Pattern
from sparsemodel.numerics.precision.restricted import (
    minimise_on_pattern,
    minimise_precision_on_support,
)
from sparsemodel.numerics.precision.scores import (
    default_shrinkage,
    insertion_gains,
    removal_costs,
    ridge_partial_correlations,
)
from sparsemodel.numerics.precision.spectral import eigenvalues

__all__ = [
    "Factor",
    "Pattern",
    "PrecisionObjective",
    "active_bounds",
    "default_shrinkage",
    "eigenvalues",
    "factorise",
    "insertion_gains",
    "minimise_on_pattern",
    "minimise_precision_on_support",
    "precision_objective",
    "precision_state",
    "precision_states",
    "removal_costs",
    "ridge_partial_correlations",
    "rounding",
    "within_bounds",
]
