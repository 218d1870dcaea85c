"""Choosing k: paths, information criteria, cross-validation, stability of the support."""

from sparsemodel.selection.criteria import CRITERIA, criterion_values
from sparsemodel.selection.cross_validation import CrossValidation, cross_validate
from sparsemodel.selection.path import PathPoint, solve_path
from sparsemodel.selection.stability import selection_frequencies

__all__ = [
    "CRITERIA",
    "CrossValidation",
    "PathPoint",
    "criterion_values",
    "cross_validate",
    "selection_frequencies",
    "solve_path",
]
