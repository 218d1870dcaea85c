"""Restricted constants of a Hessian by the truncated power method."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import NormBound, Objective, Point
from sparsemodel.numerics.curvatures.curvature import full_diagonal
from sparsemodel.numerics.support.selection import select

_STARTS = 2
"""Starts in addition to the coordinate with the largest diagonal entry."""


def restricted_smoothness(
    objective: Objective, at: Point, k: int, *, iterations: int = 10
) -> NormBound:
    r"""Estimate :math:`M_k = \max \{ v^\top H v : \|v\|_2 = 1, \|v\|_0 \le k \}` from below.

    Iterates ``v <- H_k(H v) / ||.||`` and returns the largest Rayleigh quotient seen, which is
    never above the true value (X.-T. Yuan and T. Zhang, Truncated Power Method for Sparse
    Eigenvalue Problems, JMLR 2013). The first start is the coordinate with the largest diagonal
    entry where the columns are at hand, the others the gradient and random vectors.

    Costs about one gradient an iteration. The result is labelled an estimate.
    """
    sparsity = objective.cardinality
    rng = np.random.default_rng(0)
    first = [objective.gradient(at)]
    diagonal = full_diagonal(objective, at)
    if diagonal is not None:
        unit = np.zeros(objective.shape)
        unit[int(np.argmax(sparsity.counted * diagonal))] = 1.0
        first.insert(0, unit)
    best = 0.0
    for start in range(len(first) - 1 + _STARTS):
        v = first[start] if start < len(first) else rng.standard_normal(objective.shape)
        support = select(sparsity, v, k=k)
        values = v[support]
        last = 0.0
        for _ in range(iterations):
            norm = float(np.linalg.norm(values))
            if norm == 0.0:
                break
            values = values / norm
            product = objective.full_hessian_product(at, support, values)
            rayleigh = float(np.vdot(values, product[support]))
            best = max(best, rayleigh)
            if abs(rayleigh - last) <= 1e-3 * rayleigh:
                break
            last = rayleigh
            support = select(sparsity, product, k=k)
            values = product[support]
    return NormBound(best, "estimate")
