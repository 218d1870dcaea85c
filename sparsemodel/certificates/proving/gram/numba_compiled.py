"""Numba, which compiles the nodes of branch and bound, or what to install."""

from __future__ import annotations

from sparsemodel.interfaces import MissingDependencyError
from sparsemodel.loading import uninterrupted

try:
    with uninterrupted():
        import numba
except ImportError as error:  # also raised where Numba does not go with the version of NumPy
    raise MissingDependencyError(
        f"Numba, which compiles the search of proofs, cannot be imported ({error}): "
        "pip install --upgrade numba. Solutions and certificates do without it."
    ) from error

__all__ = ["numba"]
