"""Where the optimum lies, from a point and a gradient alone: both ends rounded outwards."""

from __future__ import annotations

import numpy as np

from sparsemodel.certificates.dual_bounds.witness import free_bound
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.interfaces import FloatArray, SparseRegression


@np.errstate(all="ignore")  # what overflows encloses nothing
def enclosure(
    form: SparseRegression, x: FloatArray, gradients: tuple[FloatArray, ...]
) -> tuple[float, float]:
    """Return ``(lower, upper)`` around the optimal value of ``form``, valid in exact arithmetic.

    ``gradients`` are those of the terms in their predictions at any point, weights inside. The
    upper end is the objective at ``x``, infinite where ``x`` is infeasible. A few passes.
    """
    at_point = primal(form, x)
    upper = np.inf if at_point.violations else at_point.upper
    return free_bound(form, [gradients]).value, upper


__all__ = ["enclosure"]
