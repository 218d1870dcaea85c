"""One module a family; each has ``run(options) -> list of records``."""

from __future__ import annotations

NAMES = (
    "compressed_sensing",
    "logistic",
    "multinomial",
    "recovery",
    "proofs",
    "text",
    "flights",
    "matrix_free",
    "out_of_core",
    "distributed",
    "growth",
    "single_precision",
    "precision_matrices",
    "limits",
    "threads",
    "gpu",
)
"""In the order of the report. Each name is a module of this package."""

THREADED = ("compressed_sensing", "logistic", "single_precision", "threads")
"""Those where BLAS has most of the work: run again with the environment as it is. Sparse products
and cosine transforms use one thread."""
