"""Which of many small supports are better, by a few Newton steps of all of them side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from sparsemodel.designs.elsewhere.foreign import is_elsewhere
from sparsemodel.interfaces import (
    BoolArray,
    Curved,
    FloatArray,
    IntArray,
    Loss,
    Objective,
    SparseRegression,
    Term,
)
from sparsemodel.numerics.curvatures.curvature import cheap_columns
from sparsemodel.numerics.minimisers.few_columns import SMALL_PIVOT, safe_inverses
from sparsemodel.numerics.objectives.regression import RegressionObjective, margins

_STEPS = 6
"""Newton steps at most."""
_CUTS, _SHORTER = 3, 0.3
"""Times that a step is shortened that leads no lower, and by what each time: full ones from a model
end far from the minimum where a loss next to a kink is curved at few observations."""
_PROMISED = 4.0
"""Times what the next step promises by which a support must come lower to be followed further."""
_NUMBERS, _AT_ONCE = 2**22, 2**18
"""Numbers of the columns of all supports at most, and of those that are looked at together (2 MB).
With 1000 rows and 20 coordinates an eighth of the ranked supports is looked at together; where that
was all of them, a search of two digits ended 2.9 % higher."""
RANKED = 96
"""Supports that a model ranks next and that the objective judges, at most."""
_FIRST, _LITTLE, _RISES, _OVER = 16, 2**16, 8, 3.0
"""Supports, or numbers of their columns, that are judged before it is asked whether others could be
lower, of how many the model must have said that the objective is higher there, and how many times
as much as on any of these it may say so in error. Of 682 such rankings (random problems with six
losses) 197 had a lower one, always among those judged by this rule, which were 41 % of all."""


def batch_limit(objective: Objective, size: int) -> int:
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
    objective: RegressionObjective,
    bar: float,
    supports: IntArray,
    x: FloatArray,
    rises: FloatArray,
) -> IntArray:
    """Return the ``supports`` on which the objective comes below ``bar``, the lowest first.

    By a few Newton steps from the coordinates ``x`` on them, ``(R, q)``; those that promise too
    little on the way are left behind. So are all others once a model, of which the ``rises`` above
    ``bar`` increase, would have to be in error by much more than on any support before.
    """
    numbers = max(1, sum(term.design.shape[0] for term in objective.form.terms) * supports.shape[1])
    many = max(1, min(_AT_ONCE // numbers, max(_FIRST, _LITTLE // numbers)))
    least, over = np.full(len(supports), np.inf), 0.0
    # Of data on a device no more comes over at a time than is looked at.
    far = any(is_elsewhere(term.design) for term in objective.form.terms)
    places, columns = _columns_of(objective, supports[:0] if far else supports)
    for first in range(0, len(supports), many):
        some = slice(first, first + many)
        here = places[some]
        if far:
            here, columns = _columns_of(objective, supports[some])
        own = [whole[here] for whole in columns]
        least[some], expected = _least(objective, bar, supports[some], x[some], own)
        over = max(over, float(np.fmax.reduce(rises[some] - (expected - bar))))
        told, left = np.sum(rises[: first + many] > 0.0), rises[first + many :]
        if told >= _RISES and left.size and left[0] > _OVER * over:
            break
    order = np.argsort(least, kind="stable")
    return np.asarray(supports[order[least[order] < bar]])


def _columns_of(
    objective: RegressionObjective, supports: IntArray
) -> tuple[IntArray, list[FloatArray]]:
    """Return where the columns of supports are among those of all, and these, by term and row."""
    used, places = np.unique(supports, return_inverse=True)
    designs = (term.design.restrict(used) for term in objective.form.terms if used.size)
    columns = [np.ascontiguousarray(design.to_array().T) for design in designs]
    return places.reshape(supports.shape), columns


def _least(
    objective: RegressionObjective,
    bar: float,
    supports: IntArray,
    x: FloatArray,
    columns: list[FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Return how low the objective comes on supports, at least where that is below ``bar``.

    And where its minima are expected. Each term has the ``columns`` of all supports, ``(R, q, n)``.
    """
    form = objective.form
    terms = [_Batch(term, own, x) for term, own in zip(form.terms, columns, strict=True)]
    left, ridge = np.arange(len(supports)), form.ridge[supports]
    values = form.constant + 0.5 * np.einsum("rq,rq->r", ridge * x, x)
    values += sum(term.values() for term in terms)
    least, expected = values.copy(), values.copy()
    for _ in range(_STEPS):
        objective.work.passes += 0.5 * supports[left].size / objective.shape[0]
        gradient, hessian = ridge * x, np.zeros((*x.shape, x.shape[1]))
        np.einsum("rqq->rq", hessian)[:] = ridge
        for term in terms:
            term.add_derivatives(gradient, hessian)
        steps = _solved(hessian, gradient)
        promised = 0.5 * np.einsum("rq,rq->r", steps, gradient)
        expected[left] = values - promised
        going = values - _PROMISED * promised < bar
        left, ridge, x, steps = left[going], ridge[going], x[going], steps[going]
        for term in terms:
            term.turn(going, steps)
        values, x = _stepped(form, terms, ridge, values[going], x, steps)
        least[left] = np.fmin(least[left], values)
        if not left.size:
            break
    return np.asarray(least), np.asarray(np.fmin(least, expected))


def _stepped(
    form: SparseRegression,
    terms: list[_Batch],
    ridge: FloatArray,
    values: FloatArray,
    x: FloatArray,
    steps: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the values and coordinates after the steps, shorter where full ones lead no lower."""
    lengths, moved = np.ones(len(x)), np.full(len(x), np.inf)
    tried = np.arange(len(x))
    for cut in range(_CUTS + 1):
        t = lengths[tried]
        there = x[tried] - t[:, None] * steps[tried]
        found = form.constant + 0.5 * np.einsum("rq,rq->r", ridge[tried] * there, there)
        moved[tried] = found + sum(term.values(tried, t) for term in terms)
        tried = np.flatnonzero(~(moved < values))
        if not tried.size or cut == _CUTS:
            break
        lengths[tried] *= _SHORTER
    for term in terms:
        term.move(lengths)
    return moved, x - lengths[:, None] * steps


def _solved(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return ``H^{-1} g`` of each; NaN where it is not clearly positive definite."""
    d = np.sqrt(np.einsum("rqq->rq", hessian))
    scaled = hessian / d[:, :, None] / d[:, None, :]
    inverse, safe = safe_inverses(scaled, SMALL_PIVOT**2)
    inverse[~safe] = np.nan
    return np.asarray((inverse @ (gradient / d)[:, :, None])[:, :, 0] / d)


class _Batch:
    """A term of the objective on several supports; mutable, it knows their predictions."""

    def __init__(self, term: Term, columns: FloatArray, x: FloatArray) -> None:
        self._term, self._loss, self._columns = term, cast("Loss", term.loss), columns
        self._z = margins(term, (x[:, None, :] @ self._columns)[:, 0])
        self._change = np.zeros_like(self._z)

    def turn(self, going: BoolArray, steps: FloatArray) -> None:
        """Keep the supports that are ``going``, and head for these ``steps``."""
        self._columns, self._z = self._columns[going], self._z[going]
        self._change = (steps[:, None, :] @ self._columns)[:, 0]

    def values(
        self, some: IntArray | slice = slice(None), lengths: FloatArray | float = 0.0
    ) -> FloatArray:
        """Return the values of the term on some supports, after so much of the steps."""
        z = self._z[some] - np.reshape(lengths, (-1, 1)) * self._change[some]
        return np.asarray(self._whole(self._loss.value, z) @ self._term.weights)

    def move(self, lengths: FloatArray) -> None:
        """Go so much of the steps."""
        self._z = self._z - lengths[:, None] * self._change

    def add_derivatives(self, gradient: FloatArray, hessian: FloatArray) -> None:
        """Add the derivatives of the term at the predictions."""
        columns, weights = self._columns, self._term.weights
        first = weights * self._whole(self._loss.derivative, self._z)
        second = weights * self._whole(cast("Curved", self._loss).second_derivative, self._z)
        gradient += (columns @ first[:, :, None])[:, :, 0]
        hessian += (columns * second[:, None, :]) @ columns.swapaxes(1, 2)

    def _whole(
        self, function: Callable[[FloatArray, FloatArray], FloatArray], z: FloatArray
    ) -> FloatArray:
        y = np.broadcast_to(self._term.target, z.shape)
        return function(z.ravel(), y.ravel()).reshape(z.shape)
