"""Reductions: equivalent problems that are easier for a backend, each with its inverse."""

from sparsemodel.compiler.reductions.base import Reduced, Reduction
from sparsemodel.compiler.reductions.center import Center
from sparsemodel.compiler.reductions.chain import reduce_form
from sparsemodel.compiler.reductions.compress import Compress
from sparsemodel.compiler.reductions.drop_columns import DropColumns
from sparsemodel.compiler.reductions.near import Near
from sparsemodel.compiler.reductions.scale import Scale
from sparsemodel.compiler.reductions.shift import Shift

__all__ = [
    "Center",
    "Compress",
    "DropColumns",
    "Near",
    "Reduced",
    "Reduction",
    "Scale",
    "Shift",
    "reduce_form",
]
