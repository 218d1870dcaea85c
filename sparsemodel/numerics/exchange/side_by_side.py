"""Which of many small supports are better, by a few Newton steps of all of them side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from sparsemodel.interfaces import Curved, FloatArray, IntArray, Loss, Objective, Term
from sparsemodel.numerics.curvatures.curvature import cheap_columns
from sparsemodel.numerics.minimisers.few_columns import SMALL_PIVOT, safe_inverses
from sparsemodel.numerics.objectives.regression import RegressionObjective, margins

_STEPS = 6
"""Newton steps at most, each taken in full."""
_PROMISED = 4.0
"""Times what the next step promises by which a support must come lower to be followed further."""
_NUMBERS = 2**18
"""Numbers of the columns of all supports, at most (2 MB)."""


def side_by_side(objective: Objective, size: int) -> int:
    """Return how many supports of so many coordinates are looked at together, at most.

    None where the objective is not a sum of losses of one prediction each, with second derivatives
    and columns that can be read.
    """
    if not (isinstance(objective, RegressionObjective) and cheap_columns(objective)):
        return 0
    terms = objective.form.terms
    if not all(term.traits.curved and isinstance(term.loss, Loss) for term in terms):
        return 0
    return _NUMBERS // max(1, size * sum(term.design.shape[0] for term in terms))


def lowest_first(
    objective: RegressionObjective, bar: float, supports: IntArray, x: FloatArray
) -> IntArray:
    """Return the ``supports`` on which the objective comes below ``bar``, the lowest first.

    By a few Newton steps from the coordinates ``x`` on them, ``(R, q)``; those that promise too
    little on the way are left behind.
    """
    form = objective.form
    used, places = np.unique(supports, return_inverse=True)
    places = places.reshape(supports.shape)
    terms = [_Batch(term, used) for term in form.terms]
    left, least = np.arange(len(supports)), np.full(len(supports), np.inf)
    for step in range(_STEPS + 1):
        ridge = form.ridge[supports[left]]
        values = form.constant + 0.5 * np.einsum("rq,rq->r", ridge * x, x)
        values += sum(term.predicted(places[left], x) for term in terms)
        objective.work.passes += 0.5 * supports[left].size / objective.shape[0]
        least[left] = np.fmin(least[left], values)
        if step == _STEPS or not left.size:
            break
        gradient, hessian = ridge * x, np.zeros((*x.shape, x.shape[1]))
        np.einsum("rqq->rq", hessian)[:] = ridge
        for term in terms:
            term.add_derivatives(gradient, hessian)
        steps = _solved(hessian, gradient)
        promised = 0.5 * np.einsum("rq,rq->r", steps, gradient)
        going = values - _PROMISED * promised < bar
        left, x = left[going], (x - steps)[going]
    order = np.argsort(least, kind="stable")
    return supports[order[least[order] < bar]]


def _solved(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return ``H^{-1} g`` of each; NaN where it is not clearly positive definite."""
    d = np.sqrt(np.einsum("rqq->rq", hessian))
    scaled = hessian / d[:, :, None] / d[:, None, :]
    inverse, safe = safe_inverses(scaled, SMALL_PIVOT**2)
    inverse[~safe] = np.nan
    return np.asarray((inverse @ (gradient / d)[:, :, None])[:, :, 0] / d)


class _Batch:
    """A term of the objective on several supports; mutable, it knows the last predictions."""

    def __init__(self, term: Term, used: IntArray) -> None:
        self._term, self._loss = term, cast("Loss", term.loss)
        self._rows = np.ascontiguousarray(term.design.restrict(used).to_array().T)

    def predicted(self, places: IntArray, x: FloatArray) -> FloatArray:
        """Return the values of the term at ``x`` on columns by their places, ``(R, q)``."""
        self._columns = self._rows[places]
        z = margins(self._term, (x[:, None, :] @ self._columns)[:, 0])
        self._shape, self._u = z.shape, z.ravel()
        self._y = np.broadcast_to(self._term.target, z.shape).ravel()
        return np.asarray(self._whole(self._loss.value) @ self._term.weights)

    def add_derivatives(self, gradient: FloatArray, hessian: FloatArray) -> None:
        """Add the derivatives of the term at the last predictions."""
        columns, weights = self._columns, self._term.weights
        first = weights * self._whole(self._loss.derivative)
        second = weights * self._whole(cast("Curved", self._loss).second_derivative)
        gradient += (columns @ first[:, :, None])[:, :, 0]
        hessian += (columns * second[:, None, :]) @ columns.swapaxes(1, 2)

    def _whole(self, function: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
        return function(self._u, self._y).reshape(self._shape)
