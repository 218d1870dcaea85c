r"""One curvature for all columns of a matrix variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import FloatArray, Point, TwiceDifferentiable
from sparsemodel.numerics.objectives.regression import RegressionObjective, margins

_FLAT = 1e-8
"""Share of the largest curvature between columns below which a direction counts as flat."""


@final
@dataclass(frozen=True, slots=True)
class SharedCurvature:
    r"""The Hessian of a matrix variable's losses as a Kronecker product.

    An observation's own block is :math:`H_i`, of shape ``(m, m)``: for a multinomial loss
    :math:`\mathrm{diag}(p_i) - p_i p_i^\top`. The model has

    .. math:: H_i \approx h_i\, C, \quad C = \frac{r}{\mathrm{tr} \sum_i H_i} \sum_i H_i, \quad
              h_i = \mathrm{tr}(H_i) / r ,

    with ``r`` the rank of ``C``: exact where all observations are alike up to a factor, and in sum.
    With :math:`C = R R^\top` the columns of :math:`V = W R` have the Hessian
    :math:`A^\top \mathrm{diag}(h) A` in common, so that one matrix prices all of them.

    Attributes
    ----------
    weights
        ``h`` by term.
    root
        ``R``, shape ``(m, r)``: only directions with curvature are left, of a multinomial loss
        those that add up to zero.
    diagonals
        The diagonals of ``H_i`` by term, shape ``(n, m)``.
    """

    weights: tuple[FloatArray, ...]
    root: FloatArray
    diagonals: tuple[FloatArray, ...]

    def coordinates(self, x: FloatArray) -> FloatArray:
        """Return ``x R`` for rows of the variable."""
        return x @ self.root

    def gradient(self, g: FloatArray) -> FloatArray:
        """Return the gradient with respect to ``V`` for one with respect to the variable."""
        return np.asarray(g @ np.linalg.pinv(self.root).T)

    def change(self, later: SharedCurvature) -> float:
        """Return how far other curvatures are from these, as a share of all of these together."""
        pairs = zip(self.diagonals, later.diagonals, strict=True)
        apart = sum(float(np.abs(new - old).sum()) for old, new in pairs)
        return apart / max(sum(float(old.sum()) for old in self.diagonals), 1e-300)


def shared_curvature(objective: RegressionObjective, at: Point) -> SharedCurvature:
    """Return what the columns of a matrix variable have in common; O(n m^2)."""
    m = objective.shape[1]
    total, diagonals = np.zeros((m, m)), []
    for term, z in zip(objective.form.terms, at.state, strict=True):
        loss, u = cast("TwiceDifferentiable", term.loss), margins(term, z)
        own = np.empty_like(u)
        for column in range(m):
            one = np.zeros_like(u)
            one[:, column] = 1.0
            product = loss.hessian_product(u, term.target, term.weights, one)
            own[:, column] = np.maximum(product[:, column], 0.0)
            total[column] += product.sum(axis=0)
        diagonals.append(own)
    values, vectors = np.linalg.eigh((total + total.T) / 2.0)
    curved = values > _FLAT * values[-1]
    if not values[-1] > 0.0:  # flat everywhere: there is nothing to tell columns apart by
        values, vectors, curved = np.ones(m), np.eye(m), np.ones(m, dtype=bool)
    mean = values[curved].mean()
    root = vectors[:, curved] * np.sqrt(values[curved] / mean)
    weights = tuple(own.sum(axis=1) / root.shape[1] for own in diagonals)
    return SharedCurvature(weights, root, tuple(diagonals))
