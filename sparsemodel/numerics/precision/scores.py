r"""What an edge is worth, in nats, for all edges at once.

Both scores optimise over the block of an edge, :math:`A = \{i, j\}`, with the rest of the matrix
fixed. Shifting the block of :math:`\Omega` shifts the marginal precision
:math:`K = (W_{AA})^{-1}` by the same amount, and the objective depends on the block through
:math:`-\log\det K + \langle S_{AA}, K\rangle` alone. So they are exact one-edge changes, not
second-order ones, and cost O(1) per edge.

Before there is a matrix, edges are ranked by a regularised inverse.
"""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.precision.cholesky import factorise
from sparsemodel.numerics.precision.spectral import eigenvalues

_TINY = 1e-300


def insertion_gains(S: FloatArray, W: FloatArray, rows: IntArray, cols: IntArray) -> FloatArray:
    r"""Return how far the objective falls when edge ``(i, j)`` and its two diagonals are free.

    With :math:`K = (W_{AA})^{-1}` the optimum of the block is :math:`S_{AA}^{-1}`, so the gain is
    :math:`\langle S_{AA}, K\rangle - 2 - \log\det(S_{AA} K)`, the divergence between the
    two marginals. ``W`` is the inverse of the current matrix.
    """
    w, s = np.diagonal(W), np.diagonal(S)
    wi, wj, wij = w[rows], w[cols], W[rows, cols]
    si, sj, sij = s[rows], s[cols], S[rows, cols]
    determinant = np.maximum(wi * wj - wij**2, _TINY)
    target = np.maximum(si * sj - sij**2, 1e-15 * si * sj)
    inner = (si * wj + sj * wi - 2.0 * sij * wij) / determinant
    gains: FloatArray = inner - 2.0 - np.log(target / determinant)
    return gains


def removal_costs(
    S: FloatArray, omega: FloatArray, W: FloatArray, rows: IntArray, cols: IntArray
) -> FloatArray:
    r"""Return how far the objective rises when edge ``(i, j)`` goes and its diagonals adapt.

    Without the edge the off-diagonal of the block of :math:`K` becomes
    :math:`c = K_{ij} - \Omega_{ij}`; the best diagonals are :math:`S_{jj} D`, :math:`S_{ii} D` with
    :math:`D = (1 + \sqrt{1 + 4 S_{ii} S_{jj} c^2}) / (2 S_{ii} S_{jj})`, the new determinant.
    """
    w, s = np.diagonal(W), np.diagonal(S)
    wi, wj, wij = w[rows], w[cols], W[rows, cols]
    si, sj, sij = s[rows], s[cols], S[rows, cols]
    determinant = np.maximum(wi * wj - wij**2, _TINY)
    kij = -wij / determinant
    c = kij - omega[rows, cols]
    before = np.log(determinant) + (si * wj + sj * wi) / determinant + 2.0 * sij * kij
    product = si * sj
    D = (1.0 + np.sqrt(1.0 + 4.0 * product * c**2)) / (2.0 * product)
    after = -np.log(D) + 2.0 * product * D + 2.0 * sij * c
    costs: FloatArray = after - before
    return costs


def ridge_partial_correlations(S: FloatArray, shrinkage: float) -> FloatArray:
    r"""Return the partial correlations of :math:`(C + \lambda I)^{-1}`, ``C`` the correlations.

    One Cholesky factorisation. For large :math:`\lambda` the ranking tends to that of the
    correlations, for :math:`\lambda \to 0` to that of the inverse; in between, sampling noise is
    damped and indirect correlations are still discounted.
    """
    scale = 1.0 / np.sqrt(np.diagonal(S))
    C = S * scale[:, None] * scale[None, :]
    np.fill_diagonal(C, 1.0 + shrinkage)
    factor = factorise(C)
    if factor is None:
        return C
    P = factor.inverse
    d = 1.0 / np.sqrt(np.diagonal(P))
    out: FloatArray = -P * d[:, None] * d[None, :]
    np.fill_diagonal(out, 1.0)
    return out


def default_shrinkage(S: FloatArray, samples: int | None) -> float:
    r"""Return :math:`4 p / n`, near which the screening found most true edges.

    Measured on random graphs of order 30 to 1000 with ``p/n`` between 0.015 and 5, where the best
    value lay within a factor 3 of it and the loss from a factor 3 was a few percent. Without ``n``
    the rank of a singular ``S`` gives it; a regular ``S`` gets 1.
    """
    p = int(S.shape[0])
    if samples is None:
        scale = 1.0 / np.sqrt(np.diagonal(S))
        sigma = eigenvalues(S * scale[:, None] * scale[None, :])
        rank = int(np.count_nonzero(sigma > 1e-10 * sigma[-1]))
        if rank == p:
            return 1.0
        samples = rank + 1
    return 4.0 * p / samples
