"""What the parts of a model refuse, and what to write instead."""

from sparsemodel.modelling.expressions.symbolic.names import HINTS, hint_for
from sparsemodel.modelling.expressions.symbolic.symbol import (
    NotOfCvxpy,
    Symbolic,
    asked_by_sparse,
    no_numbers,
)

__all__ = [
    "HINTS",
    "NotOfCvxpy",
    "Symbolic",
    "asked_by_sparse",
    "hint_for",
    "no_numbers",
]
