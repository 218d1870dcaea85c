"""Choosing k: paths, information criteria, cross-validation, stability of the support."""

from sparsemodel.selection.choice import (
    Held,
    at_the_end,
    best_carried,
    chosen_cell,
    mean_over_folds,
)
from sparsemodel.selection.criteria import CRITERIA
from sparsemodel.selection.cross_validation import CrossValidation, cross_validate
from sparsemodel.selection.folds import Observed
from sparsemodel.selection.further import solve_path
from sparsemodel.selection.path import Followed, PathPoint, Search, charged, with_fewer
from sparsemodel.selection.precision_matrices import (
    PrecisionObservations,
    joint_criterion_values,
    precision_criterion_values,
    solve_joint_path,
    solve_precision_path,
)
from sparsemodel.selection.regression_path import valued
from sparsemodel.selection.regressions import (
    RegressionObservations,
    fall_towards,
    most_carried,
    regression_criterion_values,
)
from sparsemodel.selection.searched_path import limited_path, searched_path
from sparsemodel.selection.stability import selection_frequencies

__all__ = [
    "CRITERIA",
    "CrossValidation",
    "Followed",
    "Held",
    "Observed",
    "PathPoint",
    "PrecisionObservations",
    "RegressionObservations",
    "Search",
    "at_the_end",
    "best_carried",
    "charged",
    "chosen_cell",
    "cross_validate",
    "fall_towards",
    "joint_criterion_values",
    "limited_path",
    "mean_over_folds",
    "most_carried",
    "precision_criterion_values",
    "regression_criterion_values",
    "searched_path",
    "selection_frequencies",
    "solve_joint_path",
    "solve_path",
    "solve_precision_path",
    "valued",
    "with_fewer",
]
