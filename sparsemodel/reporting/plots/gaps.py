"""What certificates leave open, against k."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol

from sparsemodel.arguments import taking_only_its_own
from sparsemodel.interfaces import DataError
from sparsemodel.reporting.plots.plot_style import BLUE, GREEN, LIGHT, new_axes, quiet


class _Facts(Protocol):
    @property
    def k(self) -> int: ...


class _Certificate(Protocol):
    @property
    def problem(self) -> _Facts: ...
    @property
    def value(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def relative_gap(self) -> float: ...


@taking_only_its_own
def gaps(certificates: Iterable[_Certificate], *, axes: Any = None) -> Any:
    """Draw objectives and lower bounds against k; what lies between them is open.

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
    ordered = sorted(certificates, key=lambda c: c.problem.k)
    if not ordered:
        raise DataError("There is no certificate to draw.")
    axes = new_axes(axes)
    ks = [c.problem.k for c in ordered]
    values = [c.value for c in ordered]
    bounded = [c for c in ordered if math.isfinite(c.bound)]
    below = [c.problem.k for c in bounded]
    bounds = [c.bound for c in bounded]
    axes.fill_between(below, bounds, [c.value for c in bounded], color=LIGHT, label="open")
    axes.plot(ks, values, color=BLUE, linewidth=1.5, marker="o", markersize=3.5, label="objective")
    axes.plot(below, bounds, color=GREEN, linewidth=1.5, marker="v", markersize=3.5, label="bound")
    for c in bounded:
        if c.relative_gap > 1e-3:
            axes.annotate(
                f"{100.0 * c.relative_gap:.2g} %",
                (c.problem.k, c.bound),
                xytext=(0, -12),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
    axes.set_xlabel("nonzero units k")
    axes.set_ylabel("objective")
    axes.margins(y=0.14)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False, fontsize=9)
    quiet(axes, grid="y")
    return axes
