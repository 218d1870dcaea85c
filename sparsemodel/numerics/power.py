"""Restricted constants of a Hessian by the truncated power method."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import NormBound, Objective, Point
from sparsemodel.numerics.hard_threshold import select


def restricted_smoothness(
    objective: Objective, at: Point, k: int, *, iterations: int = 10, starts: int = 2
) -> NormBound:
    r"""Estimate :math:`M_k = \max \{ v^\top H v : \|v\|_2 = 1, \|v\|_0 \le k \}` from below.

    Iterates ``v <- H_k(H v) / ||.||`` from the gradient and from random sparse vectors and
    returns the largest Rayleigh quotient seen, which is never above the true value
    (X.-T. Yuan and T. Zhang, Truncated Power Method for Sparse Eigenvalue Problems, JMLR 2013).

    Costs about one gradient an iteration. The result is labelled an estimate.
    """
    sparsity = objective.cardinality
    rng = np.random.default_rng(0)
    best = 0.0
    for start in range(starts):
        v = objective.gradient(at) if start == 0 else rng.standard_normal(objective.shape)
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


__all__ = ["restricted_smoothness"]
