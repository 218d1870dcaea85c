"""Paths over k, and which coordinates are found along them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import DataError
from sparsemodel.reporting.plots.plot_style import BLUE, GREY, ORANGE, check_drawn, new_axes, quiet


class _Path(Protocol):
    k: Any
    objective: Any


class _Choice(Protocol):
    @property
    def k(self) -> int: ...
    @property
    def scores(self) -> Any: ...
    @property
    def chosen_by(self) -> str: ...
    @property
    def ridge(self) -> Any: ...


@rejects_unknown_arguments
def path(followed: _Path, *, chosen: _Choice | None = None, axes: Any = None) -> Any:
    """Draw the objective against k, and the scores by which one was chosen.

    Parameters
    ----------
    followed
        What ``problem.path(...)`` returned.
    chosen
        What ``path.select(...)`` or ``path.cross_validate(...)`` returned; its scores are drawn
        above, on an axis of their own.
    axes
        Matplotlib axes; None makes a figure.
    """
    check_drawn(followed, "objective", "plots.path draws what problem.path(...) returned")
    axes = new_axes(axes)
    ks, values = np.asarray(followed.k), np.asarray(followed.objective)
    ridges = getattr(followed, "ridges", None)
    several = ridges is not None
    for style, column in _columns(values):
        axes.plot(ks, column, color=BLUE, linewidth=1.5, marker="o", markersize=3.5, **style)
    if several:
        _name_lines(axes, ridges)
    axes.set_xlabel(f"{getattr(followed, 'unit', 'nonzero coefficients')} k")
    axes.set_ylabel("objective", color=BLUE)
    _fit_ticks(axes, ks, values)
    quiet(axes, grid="y")
    if chosen is None:
        return axes
    scores = np.asarray(chosen.scores)
    other = axes.twinx()
    for style, column in _columns(scores):
        other.plot(ks, column, color=ORANGE, linewidth=1.5, marker="s", markersize=3.0, **style)
    other.set_ylabel(chosen.chosen_by, color=ORANGE)
    other.spines[["top", "left"]].set_visible(False)
    other.spines["right"].set_color(GREY)
    other.tick_params(colors=GREY, labelcolor="black", labelsize=9)
    _below_and_above(axes, other)
    axes.axvline(chosen.k, color=GREY, linewidth=0.9, linestyle=(0, (3, 3)), zorder=0)
    axes.annotate(
        f"k = {chosen.k}, ridge = {chosen.ridge:g}" if several else f"k = {chosen.k}",
        (chosen.k, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        fontsize=9,
        color="black",
    )
    return axes


def _below_and_above(below: Any, above: Any) -> None:
    """Draw the lines of one axis below those of the other, where each can be told apart."""
    for axes, place in ((below, 1), (above, 0)):
        ends = list(axes.get_ylim())
        axes.set_yticks([tick for tick in axes.get_yticks()[::2] if ends[0] <= tick <= ends[1]])
        ends[place] += (1.2 if place else -1.2) * (ends[1] - ends[0])
        axes.set_ylim(*ends)


def _fit_ticks(axes: Any, ks: Any, values: Any) -> None:
    """Write whole k, and objectives in full: a factor above the axis would meet the chosen k."""
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.set_major_formatter("{x:g}")
    if ks.size == 1:
        axes.set_xlim(ks[0] - 1, ks[0] + 1)
    values = values[np.isfinite(values)]
    size = float(np.abs(values).max())
    if (
        size > 0.0 and np.ptp(values) <= 1e-5 * size
    ):  # differences that six digits do not show are no slope
        axes.set_ylim(values.min() - 0.05 * size, values.max() + 0.05 * size)


_STYLES = ("-", (0, (5, 2)), (0, (2, 2)), (0, (1, 2)), (0, (5, 2, 1, 2)))


def _columns(values: Any) -> list[tuple[dict[str, Any], Any]]:
    """Return a style and the values for each ridge, the first with a full line."""
    columns = values.T if values.ndim == 2 else [values]
    return [
        ({"linestyle": _STYLES[place % len(_STYLES)]}, column)
        for place, column in enumerate(columns)
    ]


def _name_lines(axes: Any, ridges: Any) -> None:
    lines = axes.get_lines()
    axes.legend(
        lines,
        [f"ridge {ridge:g}" for ridge in ridges],
        loc="lower left",
        bbox_to_anchor=(0.0, 1.04),
        ncols=min(len(lines), 4),
        frameon=False,
        fontsize=8,
        handlelength=3,
    )


@rejects_unknown_arguments
def support_recovery(
    supports: Sequence[Iterable[Hashable]],
    *,
    truth: Iterable[Hashable] | None = None,
    ks: Sequence[int] | None = None,
    most: int = 40,
    axes: Any = None,
) -> Any:
    """Draw which coordinates are in the support at each step: a row each, a column per step.

    Parameters
    ----------
    supports
        Supports in order, ``path.support`` for instance: indices or names.
    truth
        The support that should be found: its rows come first, and what is found beside it is
        orange.
    ks
        Labels of the steps, ``path.k`` for instance.
    most
        Rows to draw; true ones first, then those that enter first.
    axes
        Matplotlib axes; None makes a figure.

    Raises
    ------
    DataError
        When no support has an element.
    """
    found = [[_plain(j) for j in support] for support in supports]
    true = [] if truth is None else [_plain(j) for j in truth]
    order = list(dict.fromkeys([*true, *(j for support in found for j in support)]))
    if not order:
        raise DataError("There is nothing to draw: all supports are empty.")
    hidden = max(0, len(order) - most)
    order = order[:most]
    axes = new_axes(axes, height=1.0 + 0.17 * len(order))
    for column, support in enumerate(found):
        inside = set(support)
        for row, j in enumerate(order):
            real = truth is None or j in true
            if j in inside:
                colour = BLUE if real else ORANGE
                axes.plot(column, row, marker="s", markersize=6.5, color=colour, linestyle="")
            elif truth is not None and real:
                axes.plot(column, row, marker="s", markersize=6.5, markerfacecolor="none",
                          markeredgecolor="#a7b0bc", linestyle="")  # fmt: skip
    if truth is not None and 0 < len(true) < len(order):
        axes.axhline(len(true) - 0.5, color=GREY, linewidth=0.8)
    labels = list(range(1, len(found) + 1)) if ks is None else [int(k) for k in ks]
    every = max(1, len(labels) // 20)
    axes.set_xticks(range(0, len(labels), every), labels[::every])
    axes.set_yticks(range(len(order)), [str(j) for j in order])
    axes.set_xlim(-0.7, len(found) - 0.3)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlabel("nonzero coefficients k" if ks is not None else "step")
    quiet(axes)
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    if truth is not None or hidden:
        _explain(axes, truth is not None, hidden)
    return axes


def _explain(axes: Any, with_truth: bool, hidden: int) -> None:
    words = []
    if with_truth:
        words += [("■ found", BLUE), ("□ missed", GREY), ("■ wrong", ORANGE)]
    if hidden:
        words.append((f"{hidden} later rows are not drawn", GREY))
    place = 0.0
    for text, colour in words:
        axes.annotate(
            text,
            (place, 1.0),
            xycoords="axes fraction",
            xytext=(0, 6),
            textcoords="offset points",
            fontsize=9,
            color=colour,
        )
        place += 0.15


def _plain(j: Any) -> Any:
    if isinstance(j, np.ndarray):
        return tuple(j.tolist())  # an edge, a pair of indices
    return j.item() if isinstance(j, np.generic) else j
