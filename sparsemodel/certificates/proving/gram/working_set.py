"""The relaxation of a node on the few of many coordinates that its solution has, or may have.

A point on some of the coordinates is one on all. Those that would gain the most there are added,
until hardly anything is left to gain. What the point proves is evaluated on all of them anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

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
    paid: float,
    ends: tuple[FloatArray, FloatArray],
    start: FloatArray,
    hint: float,
    status: npt.NDArray[np.int8],
    units: tuple[float, FloatArray, FloatArray, float],
    limits: tuple[float, float, int],
) -> tuple[FloatArray, float]:
    """Return the point of a node's relaxation, scaled, and the multiplier of its budget.

    For a stage without a matrix, where every unit takes one of the budget. ``units`` are the
    budget, what each unit takes of it, prices and the multiplier of a price that all have;
    ``limits`` the bound that is enough, the tolerance and the rounds, as ``solve`` takes them.
    """
    k, each, prices, floor = units
    live = (status != OUT) & ((status == IN) | (k > 0.0))
    free = live & (status != IN)
    w, t = np.where(live, start, 0.0), hint
    inside = live & ((status == IN) | (w != 0.0))
    profits = _profits(stage, ends, w, prices, floor)
    more = _FIRST
    for _ in range(_ROUNDS):
        inside[_best(profits, free & ~inside, more)] = True
        on, more = np.flatnonzero(inside), _MORE
        found, t, bound, _, _ = solve(
            stage.products(on),
            stage.linear[on],
            stage.constant + paid,
            stage.curvature[on],
            *(end[on] for end in ends),
            w[on],
            t,
            status[on],
            k,
            each[on],
            prices[on],
            floor,
            *limits,
        )
        w = np.zeros(w.size)
        w[on] = found
        profits = _profits(stage, ends, w, prices, floor)
        every, known = (_best(profits, among, int(k)) for among in (free, free & inside))
        left = float(profits[every].sum() - profits[known].sum())
        above = limits[0] - bound if np.isfinite(limits[0]) else 0.0
        if not left > _LEFT * max(above, 0.0) + limits[1]:
            break
    return w, float(t)


def _profits(
    stage: Stage,
    ends: tuple[FloatArray, FloatArray],
    w: FloatArray,
    prices: FloatArray,
    floor: float,
) -> FloatArray:
    """Return what every coordinate would gain at a point, less its price."""
    slopes, d = stage.slopes(w), np.maximum(stage.curvature, 1e-300)
    x = np.clip(-slopes / d, *ends)
    return np.maximum(-x * (slopes + 0.5 * d * x) - prices - 0.5 * floor * floor, 0.0)


def _best(profits: FloatArray, among: npt.NDArray[np.bool_], count: int) -> IntArray:
    """Return the places of the largest profits."""
    places = np.flatnonzero(among)
    if places.size > count:
        places = (
            places[np.argpartition(-profits[places], count - 1)[:count]] if count else places[:0]
        )
    return places
