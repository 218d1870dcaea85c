"""Adapters: let a backend solve what it cannot by itself, as a sequence of what it can."""

from sparsemodel.compiler.adapters.adapt import Adapted, adapt, adapter_words, innermost
from sparsemodel.compiler.adapters.paths_along_k import path_of_form
from sparsemodel.compiler.adapters.pricing import Priced
from sparsemodel.compiler.adapters.smoothing import (
    Smoothed,
    smoothable,
    smoothed_form,
    typical_widths,
)

__all__ = [
    "Adapted",
    "Priced",
    "Smoothed",
    "adapt",
    "adapter_words",
    "innermost",
    "path_of_form",
    "smoothable",
    "smoothed_form",
    "typical_widths",
]
