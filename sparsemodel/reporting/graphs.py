"""The graph behind a precision matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemodel.interfaces import DataError, FloatArray
from sparsemodel.loading import networkx


def partial_correlations(omega: FloatArray) -> FloatArray:
    r"""Return :math:`-\Omega_{ij} / \sqrt{\Omega_{ii} \Omega_{jj}}`, with ones on the diagonal."""
    d = 1.0 / np.sqrt(np.diagonal(omega))
    out: FloatArray = -omega * d[:, None] * d[None, :]
    np.fill_diagonal(out, 1.0)
    return out


def precision_graph(omega: FloatArray, names: Sequence[str] | None = None) -> Any:
    """Return the graph of the conditional dependences in a precision matrix.

    Parameters
    ----------
    omega
        Symmetric, positive diagonal; an entry off the diagonal that is not zero is an edge.
    names
        Labels of the nodes; ``0 .. p-1`` by default.

    Returns
    -------
    networkx.Graph
        Every variable is a node with its conditional variance (``conditional_variance``); edges
        carry the partial correlation (``weight``) and the entry of the matrix (``precision``).

    Raises
    ------
    DataError
        When the names do not fit the matrix or repeat.
    """
    nx = networkx()
    p = omega.shape[0]
    labels: list[Any] = list(range(p)) if names is None else list(names)
    if len(labels) != p:
        raise DataError(f"{len(labels)} names were given for {p} variables.")
    if len(set(labels)) != p:
        raise DataError("The names of the variables are not distinct; a graph needs that.")
    graph = nx.Graph()
    for label, entry in zip(labels, np.diagonal(omega).tolist(), strict=True):
        graph.add_node(label, conditional_variance=1.0 / entry)
    weights = partial_correlations(omega)
    for i, j in np.argwhere(np.triu(omega, 1) != 0.0).tolist():
        graph.add_edge(
            labels[i], labels[j], weight=float(weights[i, j]), precision=float(omega[i, j])
        )
    return graph
