"""Shared kernels, public to backend authors. Depends on the interfaces alone."""

from sparsemodel.numerics.attained import check_attained, check_bounded, check_range
from sparsemodel.numerics.batches import Batch, batch_count, drawn_block, epoch
from sparsemodel.numerics.boxed import minimise_in_box
from sparsemodel.numerics.climbing import climb
from sparsemodel.numerics.closing import Closing, Enclosure
from sparsemodel.numerics.curvature import cheap_columns, full_diagonal, hessian_columns
from sparsemodel.numerics.duality import (
    Dual,
    conjugate_slope,
    constant_step,
    correlations,
    dual_value,
    primal_of,
    project_dual,
    shrink_dual,
    unpenalised_free,
    weighted,
)
from sparsemodel.numerics.exchange_models import ExchangeModels
from sparsemodel.numerics.exchange_search import ExchangeSearch, Rounds
from sparsemodel.numerics.exchange_trials import ExchangeTrials
from sparsemodel.numerics.exchanges import Exchanges
from sparsemodel.numerics.factor import SupportFactor, has_common_hessian
from sparsemodel.numerics.feasible import feasible_start, satisfied
from sparsemodel.numerics.greedy import GreedySupport
from sparsemodel.numerics.hard_threshold import (
    expansion_factor,
    hard_threshold,
    select,
    select_scores,
    top_k,
)
from sparsemodel.numerics.hessian_rows import HessianRows, drifted
from sparsemodel.numerics.multipliers import minimise_with_multipliers, require_steps
from sparsemodel.numerics.objective import RegressionObjective, margins, rowwise
from sparsemodel.numerics.power import restricted_smoothness
from sparsemodel.numerics.projection import project
from sparsemodel.numerics.quadratic_model import quadratic_model
from sparsemodel.numerics.quadratic_swaps import QuadraticSwaps, Swap
from sparsemodel.numerics.removal import removal_costs, separation
from sparsemodel.numerics.restricted import (
    conjugate_gradients,
    factored,
    minimise_on_support,
    newton_solver,
)
from sparsemodel.numerics.ridged import RidgedObjective
from sparsemodel.numerics.service import has_kinks, minimise_restricted
from sparsemodel.numerics.steps import mean_curvature, normalised_step
from sparsemodel.numerics.swaps import (
    first_improvement,
    insertions,
    removal_order,
)
from sparsemodel.numerics.units import (
    descent_gradient,
    gradient_scores,
    insertion_scores,
    support_units,
)

__all__ = [
    "Batch",
    "Closing",
    "Dual",
    "Enclosure",
    "ExchangeModels",
    "ExchangeSearch",
    "ExchangeTrials",
    "Exchanges",
    "GreedySupport",
    "HessianRows",
    "QuadraticSwaps",
    "RegressionObjective",
    "RidgedObjective",
    "Rounds",
    "SupportFactor",
    "Swap",
    "batch_count",
    "cheap_columns",
    "check_attained",
    "check_bounded",
    "check_range",
    "climb",
    "conjugate_gradients",
    "conjugate_slope",
    "constant_step",
    "correlations",
    "descent_gradient",
    "drawn_block",
    "drifted",
    "dual_value",
    "epoch",
    "expansion_factor",
    "factored",
    "feasible_start",
    "first_improvement",
    "full_diagonal",
    "gradient_scores",
    "hard_threshold",
    "has_common_hessian",
    "has_kinks",
    "hessian_columns",
    "insertion_scores",
    "insertions",
    "margins",
    "mean_curvature",
    "minimise_in_box",
    "minimise_on_support",
    "minimise_restricted",
    "minimise_with_multipliers",
    "newton_solver",
    "normalised_step",
    "primal_of",
    "project",
    "project_dual",
    "quadratic_model",
    "removal_costs",
    "removal_order",
    "require_steps",
    "restricted_smoothness",
    "rowwise",
    "satisfied",
    "select",
    "select_scores",
    "separation",
    "shrink_dual",
    "support_units",
    "top_k",
    "unpenalised_free",
    "weighted",
]
