"""Coefficient bounds in the file of a certificate; how arrays are written is the file's matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.files.json_reader import Reader
from sparsemodel.interfaces import FloatArray


def packed(
    bounds: CoefficientBounds | None, pack: Callable[[FloatArray], dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the bounds as JSON values; None where there are none."""
    if bounds is None:
        return None
    return {
        "radius": pack(bounds.radius),
        "starts": bounds.starts.tolist(),
        "neighbours": bounds.neighbours.tolist(),
        "level": bounds.level,
    }


def unpacked(r: Reader, unpack: Callable[[Reader, str], FloatArray]) -> CoefficientBounds:
    """Return the bounds in an object; whether they hold is for the data to say."""
    return CoefficientBounds(
        radius=unpack(r, "radius"),
        starts=np.array(r.integers("starts"), dtype=np.int64),
        neighbours=np.array(r.integers("neighbours"), dtype=np.int64),
        level=r.number("level"),
    )


__all__ = ["packed", "unpacked"]
