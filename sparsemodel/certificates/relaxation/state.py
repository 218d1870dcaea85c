"""The state of the minimisation of a relaxation (point, value, best bound), and when it ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.relaxation.regulariser import Regulariser
from sparsemodel.certificates.relaxation.smooth import Image
from sparsemodel.interfaces import FloatArray
from sparsemodel.numerics.budget import Budget

TOLERANCE = 1e-6
"""Relative gap between the relaxation and its dual at which the bound is called exhausted."""

Report = Callable[[float, float], bool]
"""Called with the relaxation's value and the best bound; returns True to stop."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class StoppingRule:
    """When a minimisation ends: by a tolerance, a deadline, or because the caller says so."""

    report: Report | None = None
    deadline: float | None = None
    tolerance: float = TOLERANCE
    """Relative gap between the value and the bound."""
    min_progress: float = 0.0
    """Share of what is open that a round must close for another to follow."""

    @property
    def out_of_time(self) -> bool:
        """Return whether the deadline has passed."""
        return Budget(self.deadline).over()

    def enough(self, value: float, bound: float) -> bool:
        """Report a value and a bound; return whether they are enough for the caller."""
        return self.report is not None and self.report(value, bound)

    def over(self, value: float, bound: float) -> bool:
        """Return whether they are enough, or the deadline has passed."""
        return self.enough(value, bound) or self.out_of_time

    def met(self, value: float, bound: float) -> bool:
        """Return whether a value and a bound agree to the tolerance."""
        return value - bound <= self.tolerance * max(abs(value), abs(bound))


@final
@dataclass(slots=True, eq=False)
class State:
    """The point of a minimisation of ``f + R`` and the bound met on the way."""

    x: FloatArray
    z: FloatArray
    image: Image
    value: float
    """``f + R`` at ``x``."""
    bound: float = -math.inf
    """Best lower bound on the minimum of ``f + R``."""
    bound_point: FloatArray | None = None
    """Where the gradient was that gives the bound."""
    bound_gradient: FloatArray | None = None
    bound_image: Image | None = None
    """The products there, where each costs a reading of files."""
    lipschitz: float = 0.0
    sigma: float = 0.0
    """Last step of the proximal point method; 0 before the first."""
    iterations: int = 0
    interrupted: bool = False
    """Whether the user stopped the minimisation (Ctrl-C)."""

    @property
    def gap(self) -> float:
        """Return how far the value can be from the minimum."""
        return self.value - self.bound


def offer(
    state: State,
    regulariser: Regulariser,
    y: FloatArray,
    value: float,
    gradient: FloatArray,
    image: Image | None = None,
) -> None:
    """Keep the bound ``f(y) - <g, y> - R*(-g)`` of a gradient if it is the best."""
    bound = value - float(np.vdot(gradient, y)) - regulariser.conjugate(gradient)
    if bound > state.bound:
        state.bound, state.bound_point = bound, y
        state.bound_gradient, state.bound_image = gradient, image
