"""The objective against the iterations, with the bound below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import DataError, Iteration
from sparsemodel.reporting.plots.plot_style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    check_drawn,
    new_axes,
    quiet,
    title,
)


@rejects_unknown_arguments
def convergence(
    history: Any,
    *,
    bound: float | None = None,
    log: bool | None = None,
    axes: Any = None,
) -> Any:
    """Draw the best objective after each iteration, the stages of the plan, and the bound.

    Parameters
    ----------
    history
        A solution, or its ``history``.
    bound
        ``certificate.bound`` or ``solution.bound``; what lies between it and the curve is shaded,
        and the title is the relative gap at the end.
    log
        Logarithmic vertical axis; None decides by the range.
    axes
        Matplotlib axes; None makes a figure.

    Raises
    ------
    DataError
        For an empty history.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> from sparsemodel.reporting import plots
    >>> w = sm.Variable(4)
    >>> goal = sm.minimize(sm.squared_loss(np.eye(4) @ w, [3.0, 0.1, -2.0, 0.0]) + sm.ridge(0.1))
    >>> solution = sm.Problem(goal, sm.card(w) <= 2).solve()
    >>> axes = plots.convergence(solution.history, bound=solution.bound)  # doctest: +SKIP
    """
    history = getattr(history, "history", history)
    check_drawn(history, "__len__", "plots.convergence draws a solution, or its history")
    if not history:
        raise DataError("The history is empty: the run ended before its first iteration.")
    axes = new_axes(axes)
    best = np.minimum.accumulate([event.value for event in history])
    steps = np.arange(1, best.size + 1)
    finite = bound is not None and np.isfinite(bound)
    low = float(bound) if finite and bound is not None else float(best[-1])
    if log is None:
        log = low > 0.0 and float(best[0]) > 20.0 * low
    marks = "o" if steps.size <= 40 else ""
    if finite:
        axes.fill_between(steps, low, best, step="post", color=BLUE, alpha=0.10, linewidth=0)
        axes.axhline(low, color=GREEN, linewidth=1.6)
        axes.annotate(
            f"lower bound {low:.5g}",
            (1.0, low),
            xycoords=("axes fraction", "data"),
            xytext=(-4, -4),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=9,
            color=GREEN,
        )
    axes.step(steps, best, where="post", color=BLUE, linewidth=1.6, marker=marks, markersize=3.5)
    axes.annotate(
        f"{best[-1]:.5g}",
        (steps[-1], best[-1]),
        xytext=(0, 8),
        textcoords="offset points",
        ha="right",
        fontsize=9,
        color=BLUE,
    )
    _stages(axes, history)
    if log and low > 0.0:
        axes.set_yscale("log")
    else:
        axes.ticklabel_format(axis="y", useOffset=False)  # each tick has its whole number
    if finite:  # room for the words below the line
        bottom, top = axes.get_ylim()
        axes.set_ylim(bottom / (top / bottom) ** 0.08 if log else bottom - 0.08 * (top - bottom))
    axes.set_xlabel("iteration")
    axes.set_ylabel("objective (best so far)")
    axes.set_xlim(0.5, steps.size + 0.5)
    axes.xaxis.get_major_locator().set_params(integer=True)
    quiet(axes, grid="y")
    if finite:
        scale = max(abs(float(best[-1])), abs(low), 1e-300)
        title(axes, f"Gap: {100.0 * max(best[-1] - low, 0.0) / scale:.3g} % of the objective")
    return axes


def _stages(axes: Any, history: Sequence[Iteration]) -> None:
    """Mark where one backend hands over to the next."""
    names = [event.backend for event in history]
    starts = [0] + [
        i for i in range(1, len(names)) if names[i] != names[i - 1] or history[i].index == 1
    ]
    if len(starts) < 2:
        return
    narrow = len(names) / 18.0  # a name takes about this many iterations
    last = -np.inf
    row = 0
    for start in starts:
        if start:
            axes.axvline(start + 0.5, color=ORANGE, linewidth=0.8, linestyle=(0, (3, 3)))
        row = (row + 1) % 2 if start - last < 2.5 * narrow else 0
        last = start
        axes.annotate(
            names[start],
            (start + 0.5, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(1, 3 + 10 * row),
            textcoords="offset points",
            fontsize=8,
            color=GREY,
        )
