"""Projection onto sparse points within bounds."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Objective,
    Point,
    RestrictedSolver,
    coordinate_scores,
)
from sparsemodel.numerics.support.selection import select, select_scores


def project(
    objective: Objective, z: FloatArray, *, k: int | None = None
) -> tuple[IntArray, FloatArray]:
    r"""Return support and values of the nearest feasible point to ``z`` with at most ``k`` units.

    Without bounds this is hard thresholding. With bounds ``l <= 0 <= u`` including coordinate
    ``j`` brings :math:`z_j^2 - (z_j - \mathrm{clip}(z_j))^2` nearer, so the units with the
    largest sums of that are kept and clipped: exact, because the bounds are separable (for the
    nonnegative case: Pan, Zhou, Xiu and Qi 2017). ``k`` defaults to that of the problem.
    """
    box = objective.form.box
    if box is None:
        support = select(objective.cardinality, z, k=k)
        return support, z[support]
    inside = np.clip(z, box.lower, box.upper)
    nearer = np.maximum(coordinate_scores(z) - coordinate_scores(z - inside), 0.0)
    support = select_scores(objective.cardinality, nearer, k=k)
    return support, inside[support]


def relaxed_budget(objective: Objective, relaxation: float) -> int:
    """Return ``k``: ``relaxation`` times the budget ``K`` of the problem, at most all units."""
    sparsity = objective.cardinality
    return min(int(np.ceil(relaxation * sparsity.budget)), sparsity.units)


def pruned(
    objective: Objective, restricted: RestrictedSolver, relaxed: Point, last: Point | None
) -> Point:
    """Return the minimiser on the ``K`` largest units of an iterate that keeps more.

    ``last`` is returned where it is that already.
    """
    support, values = project(objective, relaxed.x)
    if last is not None and np.array_equal(support, last.support):
        return last
    return restricted(objective, support, objective.point(support, values))
