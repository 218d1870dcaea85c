"""The relaxation of a node on the few of many coordinates that its solution has, or may have.

A point on some of the coordinates is one on all. Those that would gain the most there are added,
until hardly anything is left to gain. What the point proves is evaluated on all of them anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsemodel.certificates.proving.gram.kernels.node_problem import Limits, NodeProblem
from sparsemodel.certificates.proving.gram.stage import Stage
from sparsemodel.certificates.proving.node import IN, OUT
from sparsemodel.interfaces import FloatArray, IntArray

_FIRST, _MORE = 100, 100
"""Coordinates beside the solution to begin with, and how many are added at most."""

_ROUNDS = 20
_LEFT = 1e-3
"""Share of what is to be proved that the others may gain in the end."""


def on_few(
    solve: Callable[..., Any],
    stage: Stage,
    node: NodeProblem,
    start: FloatArray,
    hint: float,
    limits: Limits,
) -> tuple[FloatArray, float]:
    """Return the point of a node's relaxation, scaled, and the multiplier of its budget.

    For a stage without a matrix, where every unit takes one of the budget.
    """
    live = (node.status != OUT) & ((node.status == IN) | (node.k > 0.0))
    free = live & (node.status != IN)
    w, t = np.where(live, start, 0.0), hint
    inside = live & ((node.status == IN) | (w != 0.0))
    profits = _profits(stage, node, w)
    more = _FIRST
    for _ in range(_ROUNDS):
        inside[_best(profits, free & ~inside, more)] = True
        on, more = np.flatnonzero(inside), _MORE
        found, t, bound, _, _ = solve(node.on(on, stage.products(on)), w[on], t, limits)
        w = np.zeros(w.size)
        w[on] = found
        profits = _profits(stage, node, w)
        every, known = (_best(profits, among, int(node.k)) for among in (free, free & inside))
        left = float(profits[every].sum() - profits[known].sum())
        above = limits.cutoff - bound if np.isfinite(limits.cutoff) else 0.0
        if not left > _LEFT * max(above, 0.0) + limits.tolerance:
            break
    return w, float(t)


def _profits(stage: Stage, node: NodeProblem, w: FloatArray) -> FloatArray:
    """Return what every coordinate would gain at a point, less its price."""
    slopes, d = stage.slopes(w), np.maximum(node.d, 1e-300)
    x = np.clip(-slopes / d, node.low, node.high)
    least_price = 0.5 * node.floor * node.floor
    return np.maximum(-x * (slopes + 0.5 * d * x) - node.prices - least_price, 0.0)


def _best(profits: FloatArray, among: npt.NDArray[np.bool_], count: int) -> IntArray:
    """Return the places of the largest profits."""
    places = np.flatnonzero(among)
    if places.size > count:
        places = (
            places[np.argpartition(-profits[places], count - 1)[:count]] if count else places[:0]
        )
    return places
