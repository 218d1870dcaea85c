"""The compiled parts of a proof, compiled when this module is imported (or read from a cache)."""

from __future__ import annotations

import numpy as np

from sparsemodel.certificates.proving.compiling import warmed
from sparsemodel.certificates.proving.gram.enumeration_compiled import best_gain
from sparsemodel.certificates.proving.gram.node_compiled import solve_node


def _all() -> None:
    """Call everything once, with the types of a search."""
    one, status = np.ones(1), np.zeros(1, dtype=np.int8)
    solve_node(
        np.eye(1), one, 1.0, one, -one, one, one, 0.0, status, 1.0, one, one, 0.0, 1.0, 1.0, 1
    )
    best_gain(np.eye(1), 0, one, one, 1, 0, 1, np.full(3, -1, dtype=np.int64), 0.0)


warmed(_all)

__all__ = ["best_gain", "solve_node"]
