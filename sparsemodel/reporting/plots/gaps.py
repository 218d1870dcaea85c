"""What certificates leave open, against k."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import DataError
from sparsemodel.reporting.plots.plot_style import BLUE, GREEN, LIGHT, check_drawn, new_axes, quiet


@rejects_unknown_arguments
def gaps(certificates: Iterable[Any], *, axes: Any = None) -> Any:
    """Draw objectives and lower bounds against k; the best objective lies between the two.

    The number below a bound is the relative gap (of a graph, the gap as a share of what edges can
    explain). Gaps of at most 0.1 % have none.

    Parameters
    ----------
    certificates
        What ``problem.certify()`` or ``problem.prove()`` returned for several k.
    axes
        Matplotlib axes; None makes a figure.

    Raises
    ------
    DataError
        When there is no certificate.
    """
    check_drawn(certificates, "__iter__", "plots.gaps draws a list of certificates")
    ordered = sorted(certificates, key=lambda c: c.problem.k)
    if not ordered:
        raise DataError("There is no certificate to draw.")
    axes = new_axes(axes)
    ks = [c.problem.k for c in ordered]
    values = [c.value for c in ordered]
    bounded = [c for c in ordered if math.isfinite(c.bound)]
    below = [c.problem.k for c in bounded]
    bounds = [c.bound for c in bounded]
    axes.fill_between(below, bounds, [c.value for c in bounded], color=LIGHT, label="gap")
    line = {"color": BLUE, "linewidth": 1.5, "marker": "o", "markersize": 3.5, "zorder": 3}
    axes.plot(ks, values, label="objective", **line)
    wide = {"color": GREEN, "linewidth": 4.0, "marker": "v", "markersize": 8.0, "alpha": 0.5}
    axes.plot(below, bounds, label="lower bound", **wide)  # seen behind an objective it equals
    for c in bounded:
        share = c.relative_gap if hasattr(c, "relative_gap") else c.open_share
        if share > 1e-3:
            axes.annotate(
                f"{100.0 * share:.2g} %",
                (c.problem.k, c.bound),
                xytext=(0, -16),
                textcoords="offset points",
                ha="center",
                fontsize=9,
            )
    axes.set_xlabel("nonzero units k")
    axes.set_ylabel("objective")
    axes.margins(y=0.14)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False, fontsize=9)
    quiet(axes, grid="y")
    return axes
