"""Canonical forms, and the limits on what is nonzero."""

from sparsemodel.interfaces.forms.canonical import (
    Box,
    Form,
    SparseRegression,
    Term,
    coordinate_scores,
)
from sparsemodel.interfaces.forms.cardinality import Cardinality, Knapsack, Layer
from sparsemodel.interfaces.forms.order import Order

__all__ = [
    "Box",
    "Cardinality",
    "Form",
    "Knapsack",
    "Layer",
    "Order",
    "SparseRegression",
    "Term",
    "coordinate_scores",
]
