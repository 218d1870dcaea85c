"""The plan of a solve as a picture: what is done, in which order, from where."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.compiler.plans.plan import Plan
from sparsemodel.loading import networkx
from sparsemodel.reporting.plots.plot_style import BLUE, GREY, ORANGE, check_drawn, new_axes

_COLOURS = {"problem": GREY, "reduction": ORANGE, "stage": BLUE, "choice": GREY, "step": GREY}
_COLUMN, _LINE, _BETWEEN = 2.2, 0.18, 0.48
"""Inches: the width of a chain of stages, a line of text, and the space between two boxes."""


@rejects_unknown_arguments
def plan(of: Plan, *, axes: Any = None) -> Any:
    """Draw a plan from top to bottom, from the problem to the solution.

    Chains of stages that start from zero stand side by side. An arrow hands over a point.

    Parameters
    ----------
    of
        ``problem.plan()``; nothing is solved for it.
    axes
        Matplotlib axes; None makes a figure that is as high as the plan is long.
    """
    nx = networkx()

    check_drawn(of, "graph", "plots.plan draws what problem.plan() returned")
    graph = of.graph()
    chains = 1 + max((c for _, c in graph.nodes(data="chain") if c is not None), default=0)
    width = max(2, chains) * _COLUMN
    texts = {node: _lines(**content) for node, content in graph.nodes(data=True)}
    joined = {b for _, b, label in graph.edges(data="label") if label == "the best point"}
    texts |= {node: f"{texts[node]}\nfrom the best point" for node in joined}
    places, y = {}, 0.0
    for layer in nx.topological_generations(graph):
        half = _LINE / 2.0 * max(1 + texts[node].count("\n") for node in layer)
        for node in layer:
            chain = graph.nodes[node].get("chain")
            x = 0.0 if chain is None else chain - (chains - 1) / 2.0
            places[node] = (x * _COLUMN, y - half)
        y -= 2.0 * half + _BETWEEN
    axes = new_axes(axes, width=width, height=0.3 - y)
    boxes = {node: _box(axes, texts[node], places[node], graph.nodes[node]) for node in graph}
    for a, b in nx.transitive_reduction(graph).edges:  # an arrow past a stage would cross its box
        _arrow(axes, places[a], places[b], boxes[a], boxes[b])
        if graph.edges[a, b]["label"] == "its point":
            _label(axes, "its point", places[a], places[b])
    axes.set_xlim(-width / 2.0, width / 2.0)
    axes.set_ylim(y + _BETWEEN - 0.15, 0.15)
    axes.set_title(fill(of.words.problem, int(12 * width)), fontsize=10, loc="left")
    axes.axis("off")
    return axes


def _box(axes: Any, text: str, place: tuple[float, float], content: dict[str, Any]) -> Any:
    return axes.annotate(
        text,
        place,
        ha="center",
        va="center",
        fontsize=9,
        zorder=3,
        bbox={
            "boxstyle": "round,pad=0.4",
            "fc": "white",
            "ec": _COLOURS[content["kind"]],
            "lw": 1.4,
        },
    ).get_bbox_patch()


def _arrow(axes: Any, a: tuple[float, float], b: tuple[float, float], start: Any, end: Any) -> None:
    style = {"arrowstyle": "-|>", "color": GREY, "patchA": start, "patchB": end}
    axes.annotate("", b, a, arrowprops={**style, "shrinkA": 2, "shrinkB": 2})


def _label(axes: Any, label: str, a: tuple[float, float], b: tuple[float, float]) -> None:
    axes.annotate(
        label,
        ((a[0] + b[0]) / 2.0, (a[1] + b[1]) / 2.0),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        color=GREY,
    )


def _lines(*, label: str, kind: str, **_: Any) -> str:
    """Break a label into lines; the options of a stage have their own."""
    parts = label.split(":") if kind == "stage" else [label]
    return "\n".join(fill(part, 26, break_long_words=False) for part in parts)
