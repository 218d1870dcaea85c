"""The graph of a precision matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import DataError, FloatArray
from sparsemodel.loading import networkx
from sparsemodel.reporting.plots.plot_style import BLUE, GREY, ORANGE, check_drawn, new_axes


@rejects_unknown_arguments
def graph(
    network: Any, *, weight: str = "weight", lonely: bool = False, seed: int = 0, axes: Any = None
) -> Any:
    """Draw a graph of dependences: edges as wide as they are strong, negative ones orange.

    Parameters
    ----------
    network
        A ``networkx.Graph``, ``solution.graph()`` for instance.
    weight
        The edges' attribute to draw, between -1 and 1.
    lonely
        Also draw nodes without edges.
    seed
        Of the layout.
    axes
        Matplotlib axes; None makes a figure.

    Raises
    ------
    DataError
        When there is nothing to draw.
    """
    nx = networkx()

    check_drawn(network, "degree", "plots.graph draws a networkx.Graph, solution.graph() for one")
    drawn = network if lonely else network.subgraph(n for n, d in network.degree() if d > 0)
    if drawn.number_of_nodes() == 0:
        raise DataError("The graph has no edges; lonely=True draws its nodes.")
    places = _layout(drawn, seed)
    wide, high = np.ptp(np.array(list(places.values())), axis=0) + 0.5
    axes = new_axes(axes, width=6.4, height=float(np.clip(6.4 * high / wide, 2.0, 5.4)))
    strengths = {(a, b): float(w) for a, b, w in drawn.edges(data=weight, default=1.0)}
    strongest = max((abs(w) for w in strengths.values()), default=1.0) or 1.0
    nx.draw_networkx_edges(
        drawn,
        places,
        ax=axes,
        edgelist=list(strengths),
        width=[0.6 + 4.0 * abs(w) / strongest for w in strengths.values()],
        edge_color=[BLUE if w >= 0.0 else ORANGE for w in strengths.values()],
        alpha=0.75,
    )
    many = drawn.number_of_nodes() > 40
    nx.draw_networkx_nodes(
        drawn,
        places,
        ax=axes,
        node_size=30 if many else 90,
        node_color="white",
        edgecolors=GREY,
        linewidths=1.0,
    )
    for node, (x, y) in places.items():
        axes.annotate(
            str(node),
            (x, y),
            xytext=(0, 5 if many else 8),
            textcoords="offset points",
            ha="center",
            fontsize=6.5 if many else 8.5,
            bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.7},
        )
    axes.margins(0.08)
    axes.axis("off")
    count, missing = drawn.number_of_edges(), network.number_of_nodes() - drawn.number_of_nodes()
    text = f"{count} edge{'' if count == 1 else 's'}" + (
        f"; not drawn: {missing} without an edge" if missing else ""
    )
    if any(w < 0.0 for w in strengths.values()):
        text += "; orange: negative weight"
    axes.annotate(text, (0.0, 0.0), xycoords="axes fraction", fontsize=9, color=GREY)
    return axes


def _layout(drawn: Any, seed: int) -> dict[Any, Any]:
    """Place connected parts beside each other, the largest first, each by itself."""
    nx = networkx()

    parts = sorted(nx.connected_components(drawn), key=len, reverse=True)
    places: dict[Any, Any] = {}
    left, top, row_height, width = 0.0, 0.0, 0.0, 1.35 * np.sqrt(drawn.number_of_nodes())
    for part in parts:
        piece = nx.Graph()  # in a fixed order: that of a set changes from run to run
        piece.add_nodes_from(sorted(part, key=str))
        piece.add_edges_from(drawn.subgraph(part).edges)
        inside = (
            {next(iter(piece)): np.zeros(2)}
            if len(piece) == 1
            else nx.kamada_kawai_layout(piece, weight=None)
            if len(piece) <= 200
            else nx.spring_layout(piece, weight=None, seed=seed)
        )
        at = _lying(np.array(list(inside.values()))) * max(0.7, float(np.sqrt(len(piece))))
        size = np.maximum(np.ptp(at, axis=0), 0.35)
        if left > 0.0 and left + size[0] > width:
            left, top, row_height = 0.0, top - row_height - 0.5, 0.0
        corner = np.array([left, top - size[1]]) - at.min(axis=0)
        places |= dict(zip(inside, at + corner, strict=True))
        left, row_height = left + size[0] + 0.5, max(row_height, size[1])
    return places


def _lying(at: FloatArray) -> FloatArray:
    """Turn points so that they spread from left to right, the first one on the left; scaled to 1.

    A layout that minimises energy may stand at any angle, and a figure is wider than high.
    """
    centred = at - at.mean(axis=0)
    turned: FloatArray = centred @ np.linalg.svd(centred, full_matrices=True)[2].T
    turned *= np.where(turned[0] > 0.0, -1.0, 1.0)
    return turned / max(float(np.ptp(turned, axis=0).max()), 1e-12)
