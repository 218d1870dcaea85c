"""Array types that cross the interfaces of the package."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
"""Vectors and small matrices of the solvers; always float64, whatever a design stores."""

IntArray: TypeAlias = NDArray[np.intp]
"""Indices of coordinates, groups or observations."""

BoolArray: TypeAlias = NDArray[np.bool_]
"""Masks over coordinates or observations."""

__all__ = ["BoolArray", "FloatArray", "IntArray"]
