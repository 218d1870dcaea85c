r"""Minimise ``f + R`` where every product reads files: Newton's steps, their models solved here.

One reading brings value, gradient and Hessian of ``f`` at a point, another the predictions at the
next one: the minimiser of the quadratic model plus ``R``, which costs no reading. Models are kept:
what is asked next (a part of the search, a support) is near a point that was looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

import numpy as np

from sparsemodel.certificates.relaxation.regulariser import Regulariser
from sparsemodel.certificates.relaxation.smooth import LossSmooth, QuadraticSmooth
from sparsemodel.certificates.relaxation.state import State, offer
from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.budget import Budget

_STEPS = 60
_AT = 1e-9
"""Step of a proximal point that is the point itself."""

_SHARE = 1e-3
"""Share of the gap to which a model is solved."""

_NUMBERS, _MODELS = 2**23, 8
"""Numbers (64 MB) and models that are kept."""

Solver = Callable[..., State]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A quadratic model of the losses around a point, in some coordinates of the problem."""

    coordinates: IntArray
    point: FloatArray
    hessian: FloatArray
    linear: FloatArray
    constant: float
    free: IntArray
    """Coordinates that are minimised out."""
    best: FloatArray
    """Their best values at the point, and by how much each coordinate lowers them."""
    lowered: FloatArray

    def places(self, coordinates: IntArray) -> IntArray | None:
        """Return where coordinates are among those of the model; None where one is not."""
        found = np.searchsorted(self.coordinates, coordinates)
        inside = found < self.coordinates.size
        there = bool(np.all(inside) and np.array_equal(self.coordinates[found], coordinates))
        return found if there else None

    def distance(self, places: IntArray, x: FloatArray) -> float:
        """Return how far a point is, in the norm of the model."""
        move = -self.point
        move[places] += x
        return float(move @ (self.hessian @ move))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """The last models that were read, for all parts of a problem."""

    index: IntArray | None = None
    """The coordinates of the whole problem that this part is about; None for all."""
    known: list[_Known] = field(default_factory=list)

    def on(self, index: IntArray) -> Models:
        """Return the models for a part on some coordinates of the whole problem."""
        return Models(index, self.known)

    def keep(
        self,
        work: IntArray,
        free: IntArray,
        x: FloatArray,
        model: QuadraticSmooth,
        best: FloatArray,
        lowered: FloatArray,
    ) -> None:
        """Keep a model on the coordinates ``work`` of this part, those ``free`` minimised out."""
        self.known.append(_Known(self._own(work), x, *model.parts, self._own(free), best, lowered))
        while len(self.known) > _MODELS or sum(m.hessian.size for m in self.known) > _NUMBERS:
            self.known.pop(0)

    def near(self, work: IntArray, x: FloatArray) -> QuadraticSmooth | None:
        """Return the model whose point is nearest to ``x``, on the coordinates ``work``."""
        found = self._nearest(self._own(work), x)
        if found is None:
            return None
        model, at = found
        return QuadraticSmooth(model.hessian[np.ix_(at, at)], model.linear[at], model.constant)

    def minimiser(self, support: IntArray, ridge: FloatArray, near: FloatArray) -> FloatArray:
        """Return about the minimiser of losses and a ridge on a support, by the nearest model.

        ``near`` itself where there is none; all in the coordinates of the whole problem.
        """
        if not self.known:
            return near
        free = self.known[-1].free
        own = np.setdiff1d(support, free)
        found = self._nearest(own, near[own])
        if found is None or not np.array_equal(free, found[0].free):
            return near
        model, at = found
        hessian = model.hessian[np.ix_(at, at)] + np.diag(ridge[own])
        x, move = np.zeros_like(near), -model.point
        x[own] = np.linalg.lstsq(hessian, model.linear[at], rcond=1e-12)[0]
        move[at] += x[own]
        x[free] = model.best - model.lowered @ move
        return x if np.all(np.isfinite(x)) else near

    def _nearest(self, own: IntArray, x: FloatArray) -> tuple[_Known, IntArray] | None:
        best: tuple[float, _Known, IntArray] | None = None
        for model in self.known:
            places = model.places(own)
            if places is not None:
                far = model.distance(places, x)
                best = (far, model, places) if best is None or far < best[0] else best
        return None if best is None else best[1:]

    def _own(self, work: IntArray) -> IntArray:
        return work if self.index is None else self.index[work]


def minimise_from_files(
    smooth: LossSmooth,
    regulariser: Regulariser,
    start: FloatArray,
    models: Models,
    free: IntArray,
    *,
    goal: Callable[[State], bool],
    deadline: float | None,
    solve: Solver,
) -> tuple[State, bool]:
    """Return the state at which ``goal`` holds, or how far it got, and whether it got there.

    The coordinates ``free`` are minimised out; ``solve`` minimises a quadratic model plus ``R``.
    """
    x, work, budget = start, regulariser.shape.coordinates, Budget(deadline)
    nearest = models.near(work, start)
    if nearest is not None:
        ahead = solve(nearest, regulariser, start, goal=_solved(math.inf), deadline=deadline).x
        x = ahead if np.all(np.isfinite(ahead)) else start
    state = State(x, regulariser.prox(x, _AT)[1], smooth.image(x), math.inf)
    state.value = smooth.value(x, state.image) + regulariser.value(x)
    for _ in range(_STEPS):
        if budget.over():
            return state, True
        state.iterations += 1
        f_x, gradient, hessian, lowered = smooth.second_order(state.x, state.image)
        offer(state, regulariser, state.x, f_x, gradient, state.image)
        linear = hessian @ state.x - gradient
        constant = f_x + 0.5 * float(state.x @ (linear - gradient))
        model = QuadraticSmooth(hessian, linear, constant)
        models.keep(work, free, state.x, model, smooth.best_free(state.x), lowered)
        if goal(state):
            return state, True
        inner = solve(
            model, regulariser, state.x, goal=_solved(_SHARE * state.gap), deadline=deadline
        )
        if inner.interrupted:
            raise KeyboardInterrupt
        if not _advance(smooth, regulariser, state, inner):
            return state, state.gap <= 1e-12 * abs(state.value)
    return state, False


def _solved(allowed: float) -> Callable[[State], bool]:
    """Return whether a model is solved to ``allowed``, and to a millionth."""

    def goal(state: State) -> bool:
        return state.gap <= min(allowed, 1e-6 * max(abs(state.value), abs(state.bound)))

    return goal


def _advance(smooth: LossSmooth, regulariser: Regulariser, state: State, found: State) -> bool:
    """Move towards what minimises the model as far as the value falls; one reading in all."""
    there, direction = smooth.image(found.x), found.x - state.x
    length, z = 1.0, found.z
    for _ in range(30):
        x = state.x + length * direction if length < 1.0 else found.x
        image = tuple(
            (1.0 - length) * a + length * b for a, b in zip(state.image, there, strict=True)
        )
        value = smooth.value(x, image) + regulariser.value(x, z if length == 1.0 else None)
        if value < state.value:
            state.x, state.image, state.value = x, image, value
            state.z = z if length == 1.0 else regulariser.prox(x, _AT)[1]
            return True
        length *= 0.5
    return False
