"""Coefficients of pixels as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import DataError
from sparsemodel.reporting.plots.plot_style import DIVERGING, pyplot


@rejects_unknown_arguments
def weights_as_pictures(
    coef: Any,
    shape: tuple[int, int],
    *,
    labels: Sequence[str] | None = None,
    columns: int = 5,
) -> Any:
    """Draw the coefficients of every class as a picture; return the Matplotlib figure.

    Parameters
    ----------
    coef
        One row per class, one column per pixel (``coef_`` of the estimators), or one row alone.
    shape
        Height and width of the pictures.
    labels
        Names of the classes.
    columns
        Pictures beside each other.

    Raises
    ------
    DataError
        When the pixels or the labels do not fit.

    Notes
    -----
    All pictures share one scale: blue speaks for the class, red against it, and pixels that were
    not selected are grey.
    """
    rows = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    height, width = shape
    if rows.ndim != 2 or rows.shape[1] != height * width:
        raise DataError(
            f"{rows.shape[-1]} coefficients per class are no picture of {height} x {width} pixels."
        )
    if labels is not None and len(labels) != rows.shape[0]:
        raise DataError(f"{len(labels)} labels were given for {rows.shape[0]} pictures.")
    plt = pyplot()
    columns = max(1, min(columns, rows.shape[0]))
    lines = -(-rows.shape[0] // columns)
    figure, grid = plt.subplots(
        lines,
        columns,
        figsize=(1.55 * columns + 0.6, 1.55 * lines * height / width + 0.3 * lines),
        layout="constrained",
        squeeze=False,
    )
    selected = np.any(rows != 0.0, axis=0)
    # A few large weights would leave everything else pale.
    largest = float(np.quantile(np.abs(rows[:, selected]), 0.98)) if selected.any() else 1.0
    colours = plt.get_cmap(DIVERGING).with_extremes(bad="#e4e7eb")
    image: Any = None
    for place, axes in enumerate(grid.flat):
        axes.set_axis_off()
        if place >= rows.shape[0]:
            continue
        pixels = np.ma.array(rows[place], mask=~selected).reshape(shape)
        image = axes.imshow(
            pixels, cmap=colours, vmin=-largest, vmax=largest, interpolation="nearest"
        )
        if labels is not None:
            axes.set_title(str(labels[place]), fontsize=10)
    bar = figure.colorbar(image, ax=grid, shrink=0.6, pad=0.02, extend="both")
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=2)
    bar.set_label("coefficient", fontsize=9)
    return figure
