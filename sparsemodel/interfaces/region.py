"""Convex constraints beside bounds on the entries: linear relations, balls, and others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.interfaces.arrays import FloatArray, IntArray
from sparsemodel.interfaces.design import Design


@final
@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """``lower <= C x <= upper``, row by row; equal bounds make an equality."""

    design: Design
    """``C``, shape ``(m, p)``."""
    lower: FloatArray
    """Shape ``(m,)``; ``-inf`` for no bound."""
    upper: FloatArray
    """Shape ``(m,)``; ``inf`` for no bound."""

    def violation(self, x: FloatArray) -> float:
        """Return the largest violation of a row, relative to one plus the size of its terms."""
        value = self.design.matvec(x)
        lower = np.where(np.isfinite(self.lower), self.lower, value)
        upper = np.where(np.isfinite(self.upper), self.upper, value)
        size = 1.0 + np.abs(value) + np.maximum(np.abs(lower), np.abs(upper))
        over = np.maximum(np.maximum(value - upper, lower - value), 0.0)
        return float(np.max(over / size, initial=0.0))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """``||x[index] - center||_2 <= radius`` (the Frobenius norm for a matrix variable)."""

    index: IntArray
    """Sorted coordinates."""
    radius: float
    center: FloatArray | None = None
    """In the shape of ``x[index]``; None for the origin."""

    def violation(self, x: FloatArray) -> float:
        """Return the violation relative to one plus the radius."""
        part = x[self.index] if self.center is None else x[self.index] - self.center
        return max(float(np.linalg.norm(part)) - self.radius, 0.0) / (1.0 + self.radius)


class ConvexConstraint(ABC):
    """A convex constraint that no kernel knows: it goes to CVXPY on the support."""

    __slots__ = ()

    @abstractmethod
    def describe(self) -> str:
        """Return it in words, for ``explain()``."""

    @abstractmethod
    def violation(self, x: FloatArray) -> float:
        """Return how far ``x`` is outside, relative to one plus the size of what is compared."""

    @abstractmethod
    def cvxpy(self, cp: Any, x: Any, support: IntArray) -> list[Any]:
        """Return CVXPY constraints on ``x``, an expression of the coordinates of ``support``.

        ``cp`` is the cvxpy module; the coordinates outside ``support`` are zero.
        """


@final
@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The intersection of convex constraints on the coordinates."""

    linear: tuple[Linear, ...] = ()
    balls: tuple[Ball, ...] = ()
    others: tuple[ConvexConstraint, ...] = ()

    def violation(self, x: FloatArray) -> float:
        """Return the largest relative violation of a constraint at ``x``."""
        worst = [part.violation(x) for part in self.linear]
        worst += [part.violation(x) for part in self.balls]
        worst += [part.violation(x) for part in self.others]
        return max(worst, default=0.0)

    def describe(self) -> str:
        """Return the constraints in words, for ``explain()``."""
        words = []
        rows = sum(int(part.lower.size) for part in self.linear)
        if rows:
            words.append(f"{rows} linear constraint" + ("s" if rows > 1 else ""))
        if self.balls:
            words.append("a norm ball" if len(self.balls) == 1 else f"{len(self.balls)} norm balls")
        words += [part.describe() for part in self.others]
        return " and ".join(words)


__all__ = ["Ball", "ConvexConstraint", "Linear", "Region"]
