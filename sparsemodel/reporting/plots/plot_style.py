"""Figures that share one look; Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from typing import Any

from sparsemodel.interfaces import DataTypeError, MissingDependencyError
from sparsemodel.interfaces.numeric import described
from sparsemodel.loading import uninterrupted

BLUE, ORANGE, GREEN, GREY, LIGHT = "#1f5fa8", "#c4620e", "#1d7a4a", "#5b6675", "#d3d9e0"
"""The colours of the HTML reports; colour-blind readers tell blue and orange apart."""

DIVERGING = "RdBu"


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``, or say what to install."""
    try:
        with uninterrupted():
            from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingDependencyError("Plots need Matplotlib: pip install matplotlib.") from error
    return plt


def check_drawn(value: Any, attribute: str, what: str) -> None:
    """Refuse a value of another kind than a plot draws; all that it draws have the attribute."""
    if not hasattr(value, attribute):
        raise DataTypeError(f"{what}, not {described(value)}.")


def shortened(name: Any) -> str:
    """Return a name as a label that leaves room for the plot."""
    text = str(name)
    return text if len(text) <= 32 else text[:29] + "..."


def new_axes(axes: Any, *, width: float = 6.0, height: float = 3.6) -> Any:
    """Return ``axes``, or those of a new figure."""
    if axes is None:
        _, axes = pyplot().subplots(figsize=(width, height), layout="constrained")
    return axes


def quiet(axes: Any, *, grid: str | None = None) -> None:
    """Take away the lines that say nothing, and draw a faint grid along ``"x"`` or ``"y"``."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=GREY, labelcolor="black", labelsize=9)
    if grid is not None:
        axes.grid(axis=grid, color=LIGHT, linewidth=0.7)
        axes.set_axisbelow(True)


def title(axes: Any, text: str) -> None:
    """Put a title where the eye begins."""
    axes.set_title(text, loc="left", fontsize=10, fontweight="bold", pad=26)
