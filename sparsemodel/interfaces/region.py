"""Convex constraints beside bounds on the entries: linear relations and balls of two norms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from sparsemodel.interfaces.design import Design
from sparsemodel.interfaces.numeric import FloatArray, IntArray

_BLOCK = 64
"""Rows that are read at a time."""
_UNIT = 2.0**-53
"""Unit roundoff of float64."""


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
        """Return the largest violation of a row, see :meth:`relative`.

        One product; rows that are off are read again at the nonzero entries of ``x``, for the
        sizes of their terms.
        """
        value = self.design.matvec(x)
        over = np.maximum(np.maximum(value - self.upper, self.lower - value), 0.0)
        rows, support = np.flatnonzero(over), np.flatnonzero(x)
        reach = np.zeros_like(over)
        if rows.size and support.size:
            part = self.design.restrict(support).restrict_rows(rows)
            with np.errstate(over="ignore"):
                for block, entries in part.row_blocks(_BLOCK):
                    reach[rows[block]] = np.abs(entries) @ np.abs(x[support])
        return self.relative(over, value, reach, int(support.size))

    def relative(self, over: FloatArray, value: FloatArray, reach: FloatArray, terms: int) -> float:
        r"""Return the largest of ``over``, relative to the sizes of row, bounds and terms.

        The terms count up to one: where they are large and cancel, the row is what counts.

        What rounding explains does not count: a row of ``terms`` products, of sizes that add up to
        ``reach`` :math:`= |C| |x|`, cannot be computed, or met by entries of float64, to better
        than :math:`\gamma_{q+1} |C| |x|` (Higham, *Accuracy and Stability of Numerical
        Algorithms*, section 3.1). It matters where large entries cancel.
        """
        lower = np.where(np.isfinite(self.lower), np.abs(self.lower), 0.0)
        upper = np.where(np.isfinite(self.upper), np.abs(self.upper), 0.0)
        size = np.minimum(reach, 1.0) + np.abs(value) + np.maximum(lower, upper)
        rounding = (terms + 1) * _UNIT * np.minimum(reach, np.finfo(np.float64).max)
        off = np.maximum(over - rounding, 0.0)
        return float(
            np.divide(off, size, out=np.zeros_like(off), where=off != 0.0).max(initial=0.0)
        )


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
        """Return the violation, see :func:`relative_to_ball`.

        What rounding explains does not count: far from zero the points of float64 nearest to the
        sphere lie off it by half a unit in their last place.
        """
        point = x[self.index]
        part = point if self.center is None else point - self.center
        norm = _norm(part)
        rounding = _UNIT * (2.0 * _norm(point) + (part.size + 8) * norm)
        if not np.isfinite(rounding):
            return norm
        return relative_to_ball(norm - self.radius - rounding, self.radius, norm)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ImageBall:
    """``||C x + shift|| <= radius`` in the 1-norm or the Euclidean one, for vectors ``x``."""

    design: Design
    """``C``, shape ``(m, p)``."""
    shift: FloatArray
    """Shape ``(m,)``."""
    radius: float
    order: Literal[1, 2] = 2

    def violation(self, x: FloatArray) -> float:
        """Return the violation, see :func:`relative_to_ball`; what rounding explains is none."""
        part = self.design.matvec(x) + self.shift
        size = float(np.abs(part).sum()) if self.order == 1 else _norm(part)
        if not np.isfinite(size):
            return size
        whole = float(np.abs(self.shift).sum()) + float(np.abs(part).sum())
        over = size - self.radius - _UNIT * (part.size + 8) * whole
        return relative_to_ball(over, self.radius, size)


def relative_to_ball(over: float, radius: float, norm: float) -> float:
    """Return ``over``, the excess over the radius, relative to the radius and the norm.

    The norm counts up to one.
    """
    return 0.0 if over <= 0.0 else over / (radius + min(norm, 1.0))


def _norm(v: FloatArray) -> float:
    """Return the Euclidean norm, where squares would overflow or underflow as well."""
    scale = float(np.abs(v).max(initial=0.0))
    if scale == 0.0 or not np.isfinite(scale):
        return scale
    return scale * float(np.linalg.norm(v / scale))


@final
@dataclass(frozen=True, slots=True, eq=False)
class OneNormBall:
    """``||x[index] - center||_1 <= radius`` (the sum of all sizes for a matrix variable)."""

    index: IntArray
    """Sorted coordinates."""
    radius: float
    center: FloatArray | None = None
    """In the shape of ``x[index]``; None for the origin."""

    def violation(self, x: FloatArray) -> float:
        """Return the violation, see :func:`relative_to_ball`."""
        part = x[self.index] if self.center is None else x[self.index] - self.center
        size = float(np.abs(part).sum())
        return relative_to_ball(size - self.radius, self.radius, size)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The intersection of convex constraints on the coordinates."""

    linear: tuple[Linear, ...] = ()
    balls: tuple[Ball, ...] = ()
    one_norms: tuple[OneNormBall, ...] = ()
    images: tuple[ImageBall, ...] = ()
    """Kept by the CVXPY service alone."""

    @property
    def every_ball(self) -> tuple[Ball | OneNormBall, ...]:
        """Return the balls of both norms."""
        return (*self.balls, *self.one_norms)

    def violation(self, x: FloatArray) -> float:
        """Return the largest relative violation of a constraint at ``x``."""
        worst = [part.violation(x) for part in self.linear]
        worst += [part.violation(x) for part in (*self.every_ball, *self.images)]
        return max(worst, default=0.0)

    def describe(self) -> str:
        """Return the constraints in words, for ``explain()``."""
        words = []
        rows = sum(int(part.lower.size) for part in self.linear)
        if rows:
            words.append(f"{rows} linear constraint" + ("s" if rows > 1 else ""))
        if self.balls:
            words.append("a norm ball" if len(self.balls) == 1 else f"{len(self.balls)} norm balls")
        words += ["a bound on a 1-norm" for _ in self.one_norms]
        words += ["a bound on the norm of an expression" for _ in self.images]
        return " and ".join(words)
