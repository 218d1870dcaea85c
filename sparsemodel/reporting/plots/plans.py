"""The plan of a solve as a picture: what is done, in which order, from where."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from sparsemodel.arguments import taking_only_its_own
from sparsemodel.compiler.plans.plan import Plan
from sparsemodel.loading import networkx
from sparsemodel.reporting.plots.plot_style import BLUE, GREY, ORANGE, new_axes

_COLOURS = {"problem": GREY, "reduction": ORANGE, "stage": BLUE, "choice": GREY, "step": GREY}


@taking_only_its_own
def plan(of: Plan, *, axes: Any = None) -> Any:
    """Draw a plan from left to right, from the problem to the solution.

    Parameters
    ----------
    of
        ``problem.plan()``; nothing is solved for it.
    axes
        Matplotlib axes; None makes a figure that is as wide as the plan is long.
    """
    nx = networkx()

    graph = of.graph()
    layers = list(nx.topological_generations(graph))
    chains = [chain for _, chain in graph.nodes(data="chain") if chain is not None]
    rows = 1 + max(chains, default=0)
    axes = new_axes(axes, width=1.9 * len(layers) + 0.4, height=0.75 * rows + 0.6)
    places = {}
    for column, layer in enumerate(layers):
        for node in layer:
            chain = graph.nodes[node].get("chain")
            places[node] = (float(column), 0.0 if chain is None else (rows - 1) / 2.0 - chain)
    boxes = {}
    for node, content in graph.nodes(data=True):
        text = axes.annotate(
            _lines(content["label"], content["kind"]),
            places[node],
            ha="center",
            va="center",
            fontsize=8,
            zorder=3,
            bbox={
                "boxstyle": "round,pad=0.5",
                "fc": "white",
                "ec": _COLOURS[content["kind"]],
                "lw": 1.4,
            },
        )
        boxes[node] = text.get_bbox_patch()
    for a, b, label in graph.edges(data="label"):
        axes.annotate(
            "",
            places[b],
            places[a],
            arrowprops={
                "arrowstyle": "-|>",
                "color": GREY,
                "patchA": boxes[a],
                "patchB": boxes[b],
                "shrinkA": 3,
                "shrinkB": 3,
            },
        )
        if label in ("its point", "the best point"):
            x, y = ((places[a][i] + places[b][i]) / 2.0 for i in (0, 1))
            axes.annotate(
                label,
                (x, y),
                ha="center",
                va="center",
                fontsize=6.5,
                color=GREY,
                bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none"},
            )
    axes.set_xlim(-0.5, len(layers) - 0.5)
    axes.set_ylim(-rows / 2.0, rows / 2.0)
    axes.set_title(fill(of.words.problem, 28 * len(layers)), fontsize=9, loc="left")
    axes.axis("off")
    return axes


def _lines(label: str, kind: str) -> str:
    """Break a label into lines; the options of a stage have their own."""
    parts = label.split(":") if kind == "stage" else [label]
    return "\n".join(fill(part, 17, break_long_words=False) for part in parts)
