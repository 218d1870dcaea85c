"""Choosing k: paths, information criteria, cross-validation, stability of the support."""

from sparsemodel.selection.criteria import CRITERIA, criterion_values
from sparsemodel.selection.cross_validation import CrossValidation, cross_validate
from sparsemodel.selection.path import Followed, PathPoint, solve_path
from sparsemodel.selection.precision_choice import (
    Observations,
    cross_validate_precision,
    edge_frequencies,
    precision_criterion_values,
)
from sparsemodel.selection.precision_path import solve_precision_path
from sparsemodel.selection.stability import selection_frequencies

__all__ = [
    "CRITERIA",
    "CrossValidation",
    "Followed",
    "Observations",
    "PathPoint",
    "criterion_values",
    "cross_validate",
    "cross_validate_precision",
    "edge_frequencies",
    "precision_criterion_values",
    "selection_frequencies",
    "solve_path",
    "solve_precision_path",
]
