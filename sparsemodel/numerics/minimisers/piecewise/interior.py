r"""A primal-dual interior point method for piecewise linear-quadratic functions of few unknowns.

Minimises, over :math:`l \le e \le u`,

.. math:: \sum_i \max_{L_i \le b_i \le U_i} \big( b_i r_i - \tfrac{\mu_i}{2} b_i^2 \big)
          + g^T e + \tfrac12 e^T R e , \qquad r = A e + r_0 ,

with Mehrotra's predictor and corrector (On the implementation of a primal-dual interior point
method, SIAM J. Optim. 1992; for quantiles: Portnoy and Koenker, The Gaussian hare and the
Laplacian tortoise, Statist. Sci. 1997). Every step factors one matrix in the unknowns, and a dozen
or two suffice however many observations there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.interfaces import BoolArray, FloatArray
from sparsemodel.interfaces.numeric import least_squares
from sparsemodel.numerics.budget import budget

_STEPS = 60
_NOTHING = 1e-16
"""Value, relative to the one at the start, that is none."""
_BALANCED = 1e-9
"""Gradient at the end, relative to the size of what adds up to it."""
_INSIDE = 0.9995
"""Share of the way to the boundary that a step may take."""
_FAINT = 1e-14
"""Added to the unit diagonal that is factored: without curvature, the shortest steps."""
_NO_BOUND = 1e20
"""Slopes this far away are those of a parabola without ends."""
_STEEPEST = 1e250
"""Quotients above it are left to the limits of the slopes."""
_DENSE = 100
"""Unknowns of the system of what is active, up to which it is solved."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """What is minimised; all numbers are near one (the caller has scaled them)."""

    A: FloatArray
    """Rows for the observations, shape ``(m, q)``."""
    r: FloatArray
    """Residuals at ``e = 0``, shape ``(m,)``."""
    lower: FloatArray
    upper: FloatArray
    """Slopes on the far left and on the far right; ``lower < upper``."""
    soft: FloatArray
    """Inverse curvatures between them, zero for a kink."""
    slope: FloatArray
    ridge: FloatArray
    """The linear and the quadratic part in the unknowns, shape ``(q,)``."""
    constant: float
    low: FloatArray
    high: FloatArray
    """Bounds on the unknowns; zero lies between them."""

    def residual(self, e: FloatArray) -> FloatArray:
        """Return the residuals at ``e``."""
        return self.r + self.A @ e

    def value(self, e: FloatArray) -> float:
        """Return the function at ``e``."""
        losses = piece_values(self.residual(e), self.lower, self.upper, self.soft)
        return float(losses.sum() + np.dot(e, self.slope + 0.5 * self.ridge * e)) + self.constant


def piece_values(
    r: FloatArray, lower: FloatArray, upper: FloatArray, soft: FloatArray
) -> FloatArray:
    r"""Return :math:`\max_{L \le b \le U} b r - \tfrac{\mu}{2} b^2` for every residual."""
    b = np.where(r > 0.0, upper, lower)
    np.divide(r, soft, out=b, where=soft > np.abs(r) / _STEEPEST)
    b = np.clip(b, lower, upper)
    return np.asarray(b * (r - 0.5 * soft * b))


def least(pieces: Pieces, goal: float) -> tuple[FloatArray, FloatArray]:
    """Return a minimiser ``e``, and the maximisers ``b`` that prove it one up to a relative gap.

    Notes
    -----
    ``O(m q^2)`` a step. Ends early when the time is over; ``e`` is always between its bounds.
    """
    state = _State(pieces)
    start = pieces.value(np.zeros_like(pieces.slope))
    left = budget()
    for _ in range(_STEPS):
        rest, value = state.rest(), pieces.value(state.e)
        gap = float(np.dot(state.room, state.held))
        done = gap <= goal * abs(value) + _NOTHING * start and state.balanced(rest)
        if done or not value > _NOTHING * start or not state.step(rest, gap) or left.over():
            break
    return _polished(pieces, state)


@final
class _State:
    """The iterate: strictly inside all bounds, the residuals' equation always kept.

    Bounds are those on the slopes, upper before lower ones, and then those on the unknowns. Each
    has a ``room`` and a multiplier, ``held``; those of the first two kinds are what residuals are
    above and below what the softness explains.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        lower, upper, low, high = pieces.lower, pieces.upper, pieces.low, pieces.high
        self._from, self._to = np.flatnonzero(low > -np.inf), np.flatnonzero(high < np.inf)
        self._coupled = bool(pieces.ridge.any() or pieces.soft.any())
        edge = np.minimum(0.1 * (high - low), 0.1)
        self.e: FloatArray = np.clip(0.0, low + edge, high - edge)
        width = 0.25 * np.minimum(upper - lower, 1.0)
        self.b: FloatArray = np.clip(0.0, lower + width, upper - width)
        over = pieces.residual(self.e) - pieces.soft * self.b
        margin = max(float(np.abs(over).mean()), 1e-8)
        pull = np.abs(pieces.A.T @ self.b + pieces.slope).max(initial=margin)
        boxed = np.full(self._from.size + self._to.size, pull)
        above, below = np.maximum(over, 0.0) + margin, np.maximum(-over, 0.0) + margin
        self.held = np.concatenate([above, below, boxed])
        left, right = self.e[self._from] - low[self._from], high[self._to] - self.e[self._to]
        # PathResult by themselves: as differences they would lose what makes them differ from zero.
        self.room = np.concatenate([upper - self.b, self.b - lower, left, right])
        # What is as good as no bound at all begins with the same product as the others.
        self.held = np.where(self.room > _NO_BOUND, margin / self.room, self.held)
        self._ends = np.cumsum([over.size, over.size, self._from.size])

    def _on_unknowns(self, bounds: FloatArray, sign: float = 1.0) -> FloatArray:
        """Return what the bounds on the unknowns add up to, the upper ones times ``sign``."""
        out = np.zeros_like(self.e)
        out[self._from] = bounds[self._ends[1] : self._ends[2]]
        out[self._to] += sign * bounds[self._ends[2] :]
        return out

    def rest(self) -> FloatArray:
        """Return what is missing to a gradient of zero."""
        f = self._pieces
        gradient = f.A.T @ self.b + f.slope + f.ridge * self.e
        return np.asarray(self._on_unknowns(self.held, -1.0) - gradient)

    def balanced(self, rest: FloatArray) -> bool:
        """Return whether that is next to nothing: the equations of what is active do the rest."""
        f = self._pieces
        size = np.abs(f.A).T @ np.abs(self.b) + np.abs(f.slope) + np.abs(f.ridge * self.e)
        return not np.any(np.abs(rest) > _BALANCED * (size + self._on_unknowns(self.held)))

    def active(self) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Return which observations are at a kink, and which unknowns at a bound, low and high."""
        tight = self.room < self.held
        above, below, left, right = np.split(tight, self._ends)
        low, high = np.zeros((2, self.e.size), dtype=bool)
        low[self._from], high[self._to] = left, right
        return ~(above | below), low, high

    def step(self, rest: FloatArray, gap: float) -> bool:
        """Make one step; False where no progress is possible."""
        f, held, room = self._pieces, self.held, self.room
        m = self.b.size
        stiff = held / room
        inverse = 1.0 / (f.soft + stiff[:m] + stiff[m : 2 * m])
        matrix = (f.A.T * inverse) @ f.A
        matrix.flat[:: self.e.size + 1] += f.ridge + self._on_unknowns(stiff)
        solve = _solver(matrix)
        if solve is None:
            return False
        off = held[:m] - held[m : 2 * m] + f.soft * self.b - f.residual(self.e)

        def direction(products: FloatArray) -> _Direction:
            """Solve for the step that changes the products by this much, to first order."""
            c = products / room
            w = off + c[:m] - c[m : 2 * m]
            e = solve(rest + f.A.T @ (inverse * w) + self._on_unknowns(c, -1.0))
            b = inverse * (f.A @ e - w)
            rooms = np.concatenate([-b, b, e[self._from], -e[self._to]])
            return _Direction(e, b, rooms, c - stiff * rooms)

        d = direction(-room * held)
        first, second = self._lengths(d)
        mixed = np.array([second, first]).repeat([2 * m, room.size - 2 * m])
        then = float(np.dot(room + mixed * d.rooms, held + (first + second - mixed) * d.held))
        target = gap / room.size * min(max(then / gap, 0.0) ** 3, 1.0)
        d = direction(target - room * held - d.rooms * d.held)
        first, second = self._lengths(d)
        if not max(first, second) > 1e-10 or not np.isfinite(d.e.sum() + d.b.sum()):
            return False
        mixed[: 2 * m], mixed[2 * m :] = first, second
        self.e, self.b = self.e + first * d.e, self.b + second * d.b
        self.held = held + mixed * d.held
        mixed[: 2 * m], mixed[2 * m :] = second, first
        self.room = room + mixed * d.rooms
        return True

    def _lengths(self, d: _Direction) -> tuple[float, float]:
        """Return how far the unknowns and residuals may go, and the slopes and multipliers."""
        m = 2 * self.b.size
        rooms, held = -d.rooms / self.room, -d.held / self.held
        steep = max(held[:m].max(), rooms[m:].max(initial=0.0))
        other = max(rooms[:m].max(), held[m:].max(initial=0.0))
        if self._coupled:
            steep = other = max(steep, other)
        return min(1.0, _INSIDE / max(steep, 1e-300)), min(1.0, _INSIDE / max(other, 1e-300))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Direction:
    """A step, and what it does to rooms and multipliers."""

    e: FloatArray
    b: FloatArray
    rooms: FloatArray
    held: FloatArray


def _polished(f: Pieces, state: _State) -> tuple[FloatArray, FloatArray]:
    """Return the solution of the equations of what is active, where it is no worse."""
    inner, low, high = state.active()
    free = ~(low | high)
    n = int(free.sum())
    if n + int(inner.sum()) > _DENSE:
        return state.e, state.b
    at = np.where(low, f.low, np.where(high, f.high, state.e))
    outer = np.where(f.upper - state.b < state.b - f.lower, f.upper, f.lower)
    A = f.A[inner][:, free]
    system = np.block([[np.diag(f.ridge[free]), A.T], [A, -np.diag(f.soft[inner])]])
    pull = f.A[~inner].T @ outer[~inner] + f.slope + f.ridge * at
    try:
        goal = -np.concatenate([pull[free], f.residual(at)[inner]])
        found = least_squares(system, goal, rcond=1e-13)
    except np.linalg.LinAlgError:
        return state.e, state.b
    at[free] += found[:n]
    at = np.clip(at, f.low, f.high)
    before = f.value(state.e)
    if not f.value(at) <= before + 1e-15 * abs(before):
        return state.e, state.b
    outer[inner] = found[n:]
    slack = 1e-9 * np.minimum(f.upper - f.lower, 1.0)
    proved = np.all((outer >= f.lower - slack) & (outer <= f.upper + slack))
    return at, np.clip(outer, f.lower, f.upper) if proved else state.b


def _solver(matrix: FloatArray) -> Callable[[FloatArray], FloatArray] | None:
    """Return ``v -> matrix^{-1} v``, next to it where the matrix is singular."""
    diagonal = np.sqrt(np.diag(matrix))
    d = np.where(diagonal > 0.0, diagonal, 1.0)
    scaled = matrix / d[:, None] / d
    scaled.flat[:: len(d) + 1] += _FAINT
    for _ in range(3):
        try:
            inverse = np.linalg.inv(np.linalg.cholesky(scaled))
        except np.linalg.LinAlgError:
            scaled.flat[:: len(d) + 1] += 1e3 * _FAINT
            continue
        return lambda v: (inverse.T @ (inverse @ (v / d))) / d
    return None
