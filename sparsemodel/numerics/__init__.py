"""Shared kernels, public to backend authors. Depends on the interfaces alone."""

from sparsemodel.interfaces.numeric import rowwise
from sparsemodel.numerics.along_k.curved import CurvedPart, dense_rows, has_curvatures
from sparsemodel.numerics.along_k.points import PointsAlongK, has_sweep
from sparsemodel.numerics.along_k.squares import SquaredSums, has_squares
from sparsemodel.numerics.along_k.whitened import Quadratic, Whitened
from sparsemodel.numerics.curvatures.batches import Batch, batch_count, drawn_block, epoch
from sparsemodel.numerics.curvatures.curvature import cheap_columns, full_diagonal, hessian_columns
from sparsemodel.numerics.curvatures.power import restricted_smoothness
from sparsemodel.numerics.curvatures.step_lengths import (
    Units,
    mean_curvature,
    normalised_step,
    size_in_units,
)
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
from sparsemodel.numerics.exchange.greedy import LAYERS, GreedySupport
from sparsemodel.numerics.exchange.quadratic_swaps import QuadraticSwaps, Swap
from sparsemodel.numerics.exchange.removal import removal_costs, separation
from sparsemodel.numerics.exchange.support_factor import SupportFactor
from sparsemodel.numerics.exchange.swaps import (
    first_improvement,
    insertions,
    removal_order,
)
from sparsemodel.numerics.minimisers.dispatch import minimise_restricted
from sparsemodel.numerics.minimisers.feasible import feasible_start, inside, satisfied
from sparsemodel.numerics.minimisers.newton import (
    conjugate_gradients,
    minimise_on_support,
    newton_solver,
)
from sparsemodel.numerics.objectives.regression import (
    RegressionObjective,
    margins,
    predictions,
)
from sparsemodel.numerics.objectives.ridged import RidgedObjective
from sparsemodel.numerics.objectives.validity import (
    observations,
    unexplained,
)
from sparsemodel.numerics.search.search import NEGLIGIBLE, SupportSearch
from sparsemodel.numerics.support.projection import project, pruned, relaxed_budget
from sparsemodel.numerics.support.segments import (
    as_sequence,
    best_segments,
    costs_of_segments,
    is_of_segments,
)
from sparsemodel.numerics.support.selection import (
    best_units,
    expansion,
    select,
    select_scores,
    top_k,
)
from sparsemodel.numerics.support.thresholding import (
    Threshold,
    armijo_step,
    relative_change,
)
from sparsemodel.numerics.support.units import gradient_scores, insertion_scores, support_units

__all__ = [
    "LAYERS",
    "NEGLIGIBLE",
    "Batch",
    "CurvedPart",
    "Dual",
    "GreedySupport",
    "PointsAlongK",
    "Quadratic",
    "QuadraticSwaps",
    "RegressionObjective",
    "RidgedObjective",
    "SquaredSums",
    "SupportFactor",
    "SupportSearch",
    "Swap",
    "Threshold",
    "Units",
    "Whitened",
    "armijo_step",
    "as_sequence",
    "batch_count",
    "best_segments",
    "best_units",
    "cheap_columns",
    "conjugate_gradients",
    "conjugate_slope",
    "constant_step",
    "correlations",
    "costs_of_segments",
    "dense_rows",
    "drawn_block",
    "dual_value",
    "epoch",
    "expansion",
    "feasible_start",
    "first_improvement",
    "full_diagonal",
    "gradient_scores",
    "has_curvatures",
    "has_squares",
    "has_sweep",
    "hessian_columns",
    "insertion_scores",
    "insertions",
    "inside",
    "is_of_segments",
    "margins",
    "mean_curvature",
    "minimise_on_support",
    "minimise_restricted",
    "newton_solver",
    "normalised_step",
    "observations",
    "predictions",
    "primal_of",
    "project",
    "project_dual",
    "pruned",
    "relative_change",
    "relaxed_budget",
    "removal_costs",
    "removal_order",
    "restricted_smoothness",
    "rowwise",
    "satisfied",
    "select",
    "select_scores",
    "separation",
    "shrink_dual",
    "size_in_units",
    "support_units",
    "top_k",
    "unexplained",
    "unpenalised_free",
    "weighted",
]
