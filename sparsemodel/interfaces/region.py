"""Convex constraints beside bounds on the entries: linear relations, balls, and eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from sparsemodel.interfaces.design import Design
from sparsemodel.interfaces.numeric import UNIT_ROUNDOFF, FloatArray, IntArray

_BLOCK = 64
"""Rows that are read at a time."""
_NOTHING = 1e-11
"""Share of the largest entry of a matrix up to which another is rounding."""
_SLIGHT = 1e-8
"""Share of a matrix that may be given up for its eigenvalues to be inside."""


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
        value = self.design.matvec_in_double(x)
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
        rounding = (terms + 1) * UNIT_ROUNDOFF * np.minimum(reach, np.finfo(np.float64).max)
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
        rounding = UNIT_ROUNDOFF * (2.0 * _norm(point) + (part.size + 8) * norm)
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
        part = self.design.matvec_in_double(x) + self.shift
        size = float(np.abs(part).sum()) if self.order == 1 else _norm(part)
        if not np.isfinite(size):
            return size
        whole = float(np.abs(self.shift).sum()) + float(np.abs(part).sum())
        over = size - self.radius - UNIT_ROUNDOFF * (part.size + 8) * whole
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
class Spectrum:
    """All eigenvalues of a symmetric matrix lie in an interval.

    Its upper triangle, row by row, is ``x[index]``.
    """

    index: IntArray
    """Sorted coordinates, ``p (p + 1) / 2`` of them."""
    lower: float
    """``-inf`` for no bound."""
    upper: float
    """``inf`` for no bound."""

    @property
    def entries(self) -> tuple[IntArray, IntArray]:
        """Return the row and the column of each coordinate."""
        rows, columns = np.triu_indices(int(np.sqrt(2 * self.index.size)))
        return rows, columns

    @property
    def diagonal(self) -> IntArray:
        """Return the coordinates on the diagonal."""
        i, j = self.entries
        found: IntArray = self.index[i == j]
        return found

    def matrix(self, x: FloatArray) -> FloatArray:
        """Return the matrix."""
        i, j = self.entries
        out = np.zeros((i[-1] + 1, i[-1] + 1))
        out[i, j] = out[j, i] = x[self.index]
        return out

    def drawn_in(self, x: FloatArray, size: float) -> FloatArray:
        """Return a point nearby whose eigenvalues are inside, if ``x`` is off by rounding alone.

        ``(1 - t) W + t diag(W)`` for a tiny ``t``: on the diagonal nothing changes that is inside,
        zeros stay, and what is zero but for rounding, beside ``size`` or the largest entry, becomes
        so.
        """
        i, j = self.entries
        entries = x[self.index]
        entries[np.abs(entries) <= _NOTHING * max(size, float(np.abs(entries).max()))] = 0.0
        diagonal, out, share = (i == j) & (entries != 0.0), x.copy(), 0.0
        entries[diagonal] = np.clip(entries[diagonal], self.lower, self.upper)
        while share <= _SLIGHT:
            out[self.index] = np.where(i == j, entries, (1.0 - share) * entries)
            off = self.violation(out)
            if off == 0.0:
                return out
            share = 2.0 * share + off
        return x

    def violation(self, x: FloatArray) -> float:
        """Return by how much an eigenvalue is off, see :meth:`relative`."""
        return self.relative(np.asarray(np.linalg.eigvalsh(self.matrix(x))))

    def relative(self, values: FloatArray) -> float:
        """Return by how much sorted eigenvalues are off, relative to the bound and the largest.

        What rounding explains does not count: that of the largest of them (a backward stable
        method, Golub and Van Loan, *Matrix Computations*, section 8.1).
        """
        size = float(np.abs(values[[0, -1]]).max())
        over = float(max(self.lower - values[0], values[-1] - self.upper))
        over -= values.size * 2.0 * UNIT_ROUNDOFF * size
        ends = [abs(end) for end in (self.lower, self.upper) if np.isfinite(end)]
        return over / max(size, *ends) if over > 0.0 else 0.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The intersection of convex constraints on the coordinates."""

    linear: tuple[Linear, ...] = ()
    balls: tuple[Ball, ...] = ()
    one_norms: tuple[OneNormBall, ...] = ()
    images: tuple[ImageBall, ...] = ()
    spectra: tuple[Spectrum, ...] = ()

    @property
    def every_ball(self) -> tuple[Ball | OneNormBall, ...]:
        """Return the balls of both norms."""
        return (*self.balls, *self.one_norms)

    def violation(self, x: FloatArray) -> float:
        """Return the largest relative violation of a constraint at ``x``."""
        worst = [part.violation(x) for part in self.linear]
        worst += [part.violation(x) for part in (*self.every_ball, *self.images, *self.spectra)]
        return max(worst, default=0.0)

    def on(self, coordinates: IntArray) -> Region | None:
        """Return the constraints on some coordinates where the others are zero, renumbered.

        None where the others alone exceed a norm's limit, and where eigenvalues are bounded.
        """
        if self.spectra:
            return None
        balls: list[Ball] = []
        diamonds: list[OneNormBall] = []
        for ball in self.every_ball:
            _, on, places = np.intersect1d(
                ball.index, coordinates, assume_unique=True, return_indices=True
            )
            center = None if ball.center is None else ball.center[on]
            rest = 0.0 if ball.center is None else np.delete(ball.center, on, axis=0)
            if isinstance(ball, OneNormBall):
                radius = ball.radius - float(np.abs(rest).sum())
                if radius < 0.0:
                    return None
                diamonds.append(OneNormBall(places, radius, center))
                continue
            square = ball.radius**2 - float(np.square(rest).sum())
            if square < 0.0:
                return None
            balls.append(Ball(places, float(np.sqrt(square)), center))
        return Region(
            linear=tuple(
                Linear(part.design.restrict(coordinates), part.lower, part.upper)
                for part in self.linear
            ),
            balls=tuple(balls),
            one_norms=tuple(diamonds),
            images=tuple(
                ImageBall(part.design.restrict(coordinates), part.shift, part.radius, part.order)
                for part in self.images
            ),
        )

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
        words += ["bounds on eigenvalues" for _ in self.spectra]
        return " and ".join(words)
