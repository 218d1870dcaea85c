"""Coefficients as bars, or as a map where there are several outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import DataError
from sparsemodel.reporting.plots.plot_style import (
    BLUE,
    DIVERGING,
    GREY,
    ORANGE,
    check_drawn,
    new_axes,
    quiet,
    shortened,
)


@rejects_unknown_arguments
def coefficients(
    values: Any,
    *,
    leave_out: Sequence[str] = ("intercept",),
    most: int = 30,
    classes: Sequence[str] | None = None,
    axes: Any = None,
) -> Any:
    """Draw named coefficients, the largest on top; positive ones blue, negative ones orange.

    Parameters
    ----------
    values
        A solution, or any mapping from names to numbers (or to an array with a number per class),
        such as ``solution.coefficients``.
    leave_out
        Names that are on another scale.
    most
        How many to draw.
    classes
        Names of the columns, where there are several.
    axes
        Matplotlib axes; None makes a figure.

    Raises
    ------
    DataError
        When nothing is left to draw.
    """
    values = getattr(values, "coefficients", values)
    check_drawn(values, "items", "plots.coefficients draws a solution, or numbers by name")
    kept = [(name, np.atleast_1d(v)) for name, v in values.items() if name not in leave_out]
    if not kept:
        raise DataError("There are no coefficients to draw: all of them are zero.")
    kept.sort(key=lambda item: -float(np.linalg.norm(item[1])))
    hidden = max(0, len(kept) - most)
    kept = kept[:most]
    axes = new_axes(axes, height=0.9 + 0.24 * len(kept))
    names = [name for name, _ in kept]
    matrix = np.array([v for _, v in kept])
    if matrix.shape[1] == 1:
        _bars(axes, matrix[:, 0])
    else:
        _map(axes, matrix, classes)
    axes.set_yticks(range(len(names)), [shortened(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    drawn = "coefficient" if matrix.shape[1] == 1 else "class or output"
    left = f" ({hidden} smaller {'ones are' if hidden > 1 else 'one is'} not shown)"
    axes.set_xlabel(drawn + left * bool(hidden))
    return axes


def _bars(axes: Any, values: Any) -> None:
    colours = [BLUE if v >= 0.0 else ORANGE for v in values]
    axes.barh(range(values.size), values, height=0.62, color=colours)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    axes.set_xlim(low - 0.04 * (high - low), high + 0.16 * (high - low))
    for place, value in enumerate(values):
        # Right of the axis for negative values too: on the left are the names.
        axes.annotate(
            f"{value:.3g}",
            (max(value, 0.0), place),
            xytext=(4, 0),
            textcoords="offset points",
            ha="left",
            va="center",
            fontsize=8,
            color=GREY,
        )
    quiet(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _map(axes: Any, matrix: Any, classes: Sequence[str] | None) -> None:
    largest = float(np.abs(matrix).max())
    image = axes.imshow(matrix, cmap=DIVERGING, vmin=-largest, vmax=largest, aspect="auto")
    count = matrix.shape[1]
    labels = [str(j) for j in range(count)] if classes is None else list(classes)
    axes.set_xticks(range(count), labels)
    axes.tick_params(length=0, labelsize=9)
    axes.spines[:].set_visible(False)
    bar = axes.figure.colorbar(image, ax=axes, pad=0.02, shrink=min(1.0, 6.0 / len(matrix)))
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=2)
    bar.set_label("coefficient", fontsize=9)
