"""CVXPY, imported when it is first needed."""

from __future__ import annotations

from typing import Any

from sparsemodel.interfaces import MissingDependencyError
from sparsemodel.loading import uninterrupted


def cvxpy_package() -> Any:
    """Return the module ``cvxpy``, or say what to install."""
    try:
        with uninterrupted():
            import cvxpy
    except ImportError as error:
        raise MissingDependencyError("This needs cvxpy: pip install cvxpy.") from error
    return cvxpy
