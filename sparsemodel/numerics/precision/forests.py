r"""The likelihood on a forest in closed form.

On a decomposable graph the optimum is assembled from its cliques and separators (Lauritzen 1996,
Proposition 5.9); in a forest those are the edges and the single variables:

.. math:: \Omega = \sum_{(i,j) \in E} [(S_{ij,ij})^{-1}]^0
          - \sum_i (\deg i - 1) [S_{ii}^{-1}]^0 .
"""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.precision.pattern import Pattern


def cyclic_components(pattern: Pattern, number: int, labels: IntArray) -> IntArray:
    """Return the components that contain a cycle, given all of them."""
    variables = np.bincount(labels, minlength=number)
    off = pattern.rows != pattern.cols
    edges = np.bincount(labels[pattern.rows[off]], minlength=number)
    return np.flatnonzero(edges >= variables)


def forest_entries(S: FloatArray, pattern: Pattern) -> FloatArray:
    """Return the optimal entries on ``pattern``, valid where its components are trees.

    Entries of components with a cycle come out as numbers of no meaning. An edge between two
    perfectly correlated variables has no finite optimum and gives ``inf`` or ``nan``.
    """
    d = np.diagonal(S)
    off = pattern.rows != pattern.cols
    i, j = pattern.rows[off], pattern.cols[off]
    sij = S[i, j]
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = d[i] * d[j] - sij**2
        diagonal = (1.0 - np.bincount(i, minlength=d.size) - np.bincount(j, minlength=d.size)) / d
        diagonal += np.bincount(i, weights=d[j] / determinant, minlength=d.size)
        diagonal += np.bincount(j, weights=d[i] / determinant, minlength=d.size)
        x = np.empty(pattern.size)
        x[off] = -sij / determinant
    x[~off] = diagonal[pattern.rows[~off]]
    return x
