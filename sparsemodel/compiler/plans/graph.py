"""The plan as a directed graph: what is done to the problem, in which order, from where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparsemodel.compiler.plans.stage import Stage


def plan_graph(
    problem: str, reductions: Sequence[str], steps: Sequence[Stage], restricted: str
) -> Any:
    """Return a ``networkx.DiGraph`` from ``"problem"`` to ``"solution"``.

    Nodes carry ``kind`` (``"problem"``, ``"reduction"``, ``"stage"``, ``"choice"``, ``"step"``),
    ``label`` and ``detail``; stages also carry ``chain``, counted from 0 (None where they start
    from the best of several). An edge from one stage to another hands over a point, and its
    ``label`` says which.
    """
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_node("problem", kind="problem", label="problem", detail=problem)
    last = "problem"
    for number, text in enumerate(reductions, start=1):
        node = f"reduction {number}"
        graph.add_node(node, kind="reduction", label=f"reduce: {text}", detail=text)
        graph.add_edge(last, node, label="")
        last = node
    stages: list[str] = []
    chain: int | None = None
    for number, stage in enumerate(steps, start=1):
        node = f"stage {number}"
        if stage.start == "best" and stages:
            chain = None
        elif stage.start == "zero" or chain is None:
            chain = sum(1 for earlier in steps[: number - 1] if earlier.start == "zero")
        label = f"{number}. {stage.label}{stage.options}"
        graph.add_node(node, kind="stage", label=label, detail=stage.why, chain=chain)
        if not stages or stage.start == "zero":
            graph.add_edge(last, node, label="from the start")
        elif stage.start == "last":
            graph.add_edge(stages[-1], node, label="its point")
        else:
            for earlier in stages:
                graph.add_edge(earlier, node, label="the best point")
        stages.append(node)
    end = stages[-1]
    leaves = [node for node in stages if graph.out_degree(node) == 0]
    if len(leaves) > 1:
        graph.add_node("best", kind="choice", label="the best point", detail="lowest objective")
        graph.add_edges_from(((node, "best") for node in leaves), label="")
        end = "best"
    graph.add_node("polish", kind="step", label="minimise on its support", detail=restricted)
    graph.add_edge(end, "polish", label="")
    graph.add_node("solution", kind="step", label="solution on your data", detail="checked afresh")
    graph.add_edge("polish", "solution", label="")
    return graph


__all__ = ["plan_graph"]
