"""Step sizes of gradient methods on a support, and the units they are measured in."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sparsemodel.interfaces import Form, IntArray, Objective, Point, SparseRegression

Units = Literal["declared", "sum", "mean"]
"""What the step of a backend multiplies the gradient of: the objective as it is declared, or as a
paper writes it, with a sum or a mean of losses."""


def size_in_units(form: Form, units: Units) -> float:
    r"""Return ``c`` of :math:`f = c f_0`, with :math:`f_0` the objective in these units.

    A step :math:`\eta` of the paper's :math:`x - \eta \nabla f_0(x)` is :math:`\eta / c` for
    ``f``. With equal weights, :math:`f_0` is the sum of the losses, or their mean; other weights
    are taken relative to their mean. A ridge is divided by ``c`` as well.
    """
    if units == "declared" or not isinstance(form, SparseRegression):
        return 1.0
    total = sum(float(term.weights.sum()) for term in form.terms)
    rows = sum(int(term.target.shape[0]) for term in form.terms)
    size = total if units == "mean" else total / max(rows, 1)
    return size if size > 0.0 else 1.0


def normalised_step(objective: Objective, at: Point, support: IntArray) -> float:
    r"""Return :math:`\|g_S\|^2 / g_S^\top H_{SS}\, g_S`, the exact step for a quadratic on ``S``.

    Blumensath and Davies, Normalized Iterative Hard Thresholding (2010), eq. (12), for any
    twice differentiable objective. Returns 0 when the gradient on ``support`` is zero.
    """
    g = objective.restricted_gradient(at, support)
    square = float(np.vdot(g, g))
    if square == 0.0:
        return 0.0
    curvature = float(np.vdot(g, objective.hessian_product(at, support, g)))
    return square / curvature if curvature > 0.0 else 1.0


_PROBES = 3
"""Products that estimate a trace; the error is that of the entries off the diagonal."""


def mean_curvature(objective: Objective, at: Point, support: IntArray) -> float:
    r"""Return the mean of the Hessian's diagonal on ``support`` (0 when it is empty).

    Exact where the columns are at hand. For a matrix-free design it is estimated by
    :math:`v^\top H v / q` with random signs ``v`` (Hutchinson 1990), a pass for each of three.
    """
    if not support.size:
        return 0.0
    if objective.explicit_hessian(support):
        return float(objective.hessian_diagonal(at, support).mean())
    rng = np.random.default_rng(0)
    shape = (support.size, *objective.shape[1:])
    total = 0.0
    for _ in range(_PROBES):
        v = rng.choice((-1.0, 1.0), shape)
        total += float(np.vdot(v, objective.hessian_product(at, support, v)))
    return total / (_PROBES * int(np.prod(shape)))
