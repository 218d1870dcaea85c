r"""Minimisers of smooth losses along k: descents in local models, judged by the losses.

At a minimiser of few units the losses are replaced by their second-order model
(:math:`h_i = c_i \ell''(u_i)` weighs the observations), in which all larger sizes are swept. The
supports of up to twice as many units are then minimised on, side by side, by the losses
themselves. As long as the weights at the largest of them are about those of the model, this goes on
with the next sizes; else there is another model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import (
    Curved,
    FloatArray,
    IntArray,
    Loss,
    SparseRegression,
    Term,
)
from sparsemodel.numerics.along_k.squares import fits_in_memory, is_dense, keeps_rows
from sparsemodel.numerics.along_k.together import SizesTogether, stacked
from sparsemodel.numerics.along_k.whitened import Quadratic, Whitened, solved
from sparsemodel.numerics.budget import budget

_FIRST = 5
"""Sizes that are minimised on at first side by side, from nothing."""
_CHANGED = 0.5
"""Share of the weights of a model from which it holds no longer."""
_MODELS, _JUDGED = 4, 12
"""Models of a size at most that are searched in, and ends of each that the losses judge."""
_NEWTON, _CUTS = 30, 20
"""Newton steps at most, and halvings of a step that leads no lower."""
_LAST, _NONE = 1e-8, 1e-12
"""Shares of the loss that a Newton step would gain, below which it is the last one, as the next
would gain the square of it, and below which it is rounding."""
_TOGETHER = 2**21
"""Numbers of the columns of supports that are minimised on side by side (16 MB)."""
_FAINT = 1e-4
"""Share of the mean weight of a model below which no observation weighs: where classes are nearly
separable most of them have no curvature, and any column that differs there would cost nothing."""


def has_curvatures(form: SparseRegression) -> bool:
    """Return whether the losses are of one prediction each, twice differentiable, data at hand."""
    curved = all(t.traits.curved and not t.traits.affine for t in form.terms)
    own = all(isinstance(term.loss, Loss) for term in form.terms)
    return curved and own and not form.matrix and fits_in_memory(form)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Data:
    """The observations of a term that weigh anything."""

    term: Term
    rows: FloatArray | None
    """Their rows, written out; None where they are sparse."""
    target: FloatArray
    weights: FloatArray
    offset: FloatArray | float

    def columns(self, some: IntArray) -> FloatArray:
        if self.rows is not None:
            return self.rows[:, some]
        return np.asarray(self.term.design.restrict(some).to_array())

    def loss_at(self, z: FloatArray) -> FloatArray:
        """Return the losses of predictions ``(K, n)``, shape ``(K,)``."""
        with np.errstate(all="ignore"):
            total = self._each(cast("Loss", self.term.loss).value, z) @ self.weights
        return np.where(np.isfinite(total), total, np.inf)

    def slopes_at(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return first and second derivatives in predictions, weights inside."""
        loss = self.term.loss
        first = self._each(cast("Loss", loss).derivative, z) * self.weights
        return first, self._each(cast("Curved", loss).second_derivative, z) * self.weights

    def _each(
        self, function: Callable[[FloatArray, FloatArray], FloatArray], z: FloatArray
    ) -> FloatArray:
        """Return a function of predictions ``(K, n)``, which it takes as one row of them."""
        u = (z + self.offset).ravel()
        return function(u, np.concatenate([self.target] * len(z))).reshape(z.shape)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """The weights of the observations in a model, for each term."""

    own: Sequence[FloatArray]

    def holds(self, weights: Sequence[FloatArray]) -> bool:
        """Return whether observations weigh about the same."""
        pairs = zip(weights, self.own, strict=True)
        return all(float(np.abs(h - own).sum()) <= _CHANGED * float(own.sum()) for h, own in pairs)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Swept:
    """A model with its best supports."""

    quadratic: Whitened
    supports: IntArray
    first: int
    """The place among the sizes of the first of them."""
    weights: list[FloatArray]

    def holds(self, weights: Sequence[FloatArray]) -> bool:
        """Return whether observations still weigh about what they do in the model."""
        return _Weights(self.weights).holds(weights)


@final
class CurvedPart:
    """Smooth losses of some of the observations.

    Parameters
    ----------
    form
        With :func:`has_curvatures`.
    weights
        Those of each term's observations.
    rows
        The rows of each term if they are dense (:func:`dense_rows`).
    """

    def __init__(
        self,
        form: SparseRegression,
        weights: Sequence[FloatArray],
        rows: Sequence[FloatArray | None],
    ) -> None:
        self._form, self._p, self._wide = form, form.sparsity.size, keeps_rows(form)
        self._data = []
        self.passes = 0.0
        """Passes over the data that models have cost."""
        for term, c, A in zip(form.terms, weights, rows, strict=True):
            used = slice(None) if A is None or c.all() else np.flatnonzero(c)
            offset = 0.0 if term.offset is None else term.offset[used]
            part = None if A is None else A[used]
            self._data.append(_Data(term, part, term.target[used], c[used], offset))

    def along_k(self, ridge: FloatArray, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return a point ``(len(sizes), p)`` and the objective for each of the ``sizes``.

        They increase; the first is that of the empty support. There are fewer where time is up.
        """
        sparsity = self._form.sparsity
        points, values = np.zeros((sizes.size, self._p)), np.full(sizes.size, np.inf)
        points[:1], values[:1] = self.minimised(ridge, sparsity.free[None], points[:1])
        reached, model = 0, None
        while reached < sizes.size - 1:
            # 1. The model at the largest size so far, and a sweep of all larger ones.
            if model is None or not model.holds(self.weights(points[reached])):
                model = self._swept(points[reached], ridge, sizes, reached + 1)
            # 2. The losses themselves on the supports of the next sizes.
            most = max(2 * int(sizes[reached]) + 1, _FIRST)
            following = max(int(np.searchsorted(sizes, most, side="right")), reached + 2)
            places = np.arange(reached + 1, min(following, sizes.size))
            places = places[places - model.first < len(model.supports)]
            if reached and not (places.size and not budget().over()):
                return points[: reached + 1], values[: reached + 1]  # time is up
            supports = model.supports[places - model.first]
            starts = model.quadratic.minimisers(supports)[:, :, 0]
            coordinates = self._coordinates(model.quadratic, supports, sparsity.free)
            points[places], values[places] = self.minimised(ridge, coordinates, starts)
            for place in places:
                if not values[place] <= values[place - 1]:
                    points[place], values[place] = points[place - 1], values[place - 1]
            reached = int(places[-1])
        return points, values

    def swept_again(
        self, ridge: FloatArray, sizes: IntArray, swept: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep once more, in models of where the points of :meth:`along_k` are; none is worse."""
        points, values = swept[0].copy(), swept[1].copy()
        for block in self._blocks(points):
            if not budget().over():
                self._swept_block(ridge, sizes, block, points, values)
        return points, values

    def _swept_block(
        self,
        ridge: FloatArray,
        sizes: IntArray,
        block: IntArray,
        points: FloatArray,
        values: FloatArray,
    ) -> None:
        """Sweep neighbouring sizes in the model at the middle one; keep points that are lower."""
        quadratic = self.model(points[block[block.size // 2]])
        whitened = quadratic.whitened(self._form.sparsity, ridge)
        supports = whitened.sweep(sizes[block])[0]
        self.passes += whitened.passes
        block = block[: len(supports)]
        coordinates = self._coordinates(whitened, supports, self._form.sparsity.free)
        starts = whitened.minimisers(supports)[:, :, 0]
        x, low = self.minimised(ridge, coordinates, starts)
        better = low < values[block]
        points[block[better]], values[block[better]] = x[better], low[better]

    def searched(
        self,
        ridge: FloatArray,
        sizes: IntArray,
        found: tuple[FloatArray, FloatArray],
        effort: float,
        over: Callable[[], bool],
    ) -> tuple[FloatArray, FloatArray]:
        """Search from the points of :meth:`along_k` on; return others that are as good or better.

        Sizes with about the same weights are searched together in the model at one of them; the
        losses decide among the best ends, until they reject all.
        """
        points, values = found[0].copy(), found[1].copy()
        done: set[bytes] = set()
        for _ in range(_MODELS):
            before = values.copy()
            for block in self._blocks(points):
                if not over():
                    self._searched_block(ridge, sizes, block, (points, values), effort, over, done)
            if over() or not np.any(values < before - 1e-9 * np.abs(before)):
                break
        return points, values

    def _blocks(self, points: FloatArray) -> list[IntArray]:
        """Return places of neighbouring sizes in whose models observations weigh about the same.

        Each begins with the last of the one before; the place of size 0 is in none.
        """
        out, first, last = list[IntArray](), 1, len(points) - 1
        while first <= last:
            model = _Weights(self.weights(points[first]))
            end = first
            while end < last and model.holds(self.weights(points[end + 1])):
                end += 1
            out.append(np.arange(max(first - 1, 1), end + 1))
            first = end + 1
        return out

    def _searched_block(
        self,
        ridge: FloatArray,
        sizes: IntArray,
        block: IntArray,
        best: tuple[FloatArray, FloatArray],
        effort: float,
        over: Callable[[], bool],
        done: set[bytes],
    ) -> None:
        points, values = best
        sparsity = self._form.sparsity
        at = points[block[block.size // 2]]
        key = at.tobytes() + block.tobytes()
        if key in done:
            return
        done.add(key)
        quadratic = self.model(at).whitened(sparsity, ridge)
        starts = [sparsity.active_units(points[place]) for place in block]
        search = SizesTogether(quadratic, sizes[block], over)
        search.begin(stacked(starts))
        search.search(effort)
        self.passes += quadratic.passes
        ends = [search.best(place, _JUDGED) for place in range(block.size)]
        places = np.repeat(block, [len(some) for some in ends])
        supports = stacked([support for some in ends for support in some])
        coordinates = self._coordinates(quadratic, supports, sparsity.free)
        near = quadratic.minimisers(supports)[:, :, 0]
        x, reached = self.minimised(ridge, coordinates, near)
        for place, one, value in zip(places.tolist(), x, reached.tolist(), strict=True):
            if value < values[place]:
                points[place], values[place] = one, value

    def _swept(self, x: FloatArray, ridge: FloatArray, sizes: IntArray, first: int) -> _Swept:
        """Return the model at a point, with supports of the sizes from a place on."""
        quadratic = self.model(x).whitened(self._form.sparsity, ridge)
        units = self._form.sparsity.active_units(x)
        supports = quadratic.sweep(sizes[first:], units)[0]
        self.passes += quadratic.passes
        return _Swept(quadratic, supports, first, self.weights(x))

    def weights(self, x: FloatArray) -> list[FloatArray]:
        """Return the weights of the observations in the model at a point, for each term."""
        used, out = np.flatnonzero(x), []
        for data in self._data:
            h = data.slopes_at((data.columns(used) @ x[used])[None])[1][0]
            out.append(np.maximum(h, _FAINT * h.mean()))
        return out

    def model(self, x: FloatArray) -> Quadratic:
        """Return the second-order model at a point: of all coordinates, ridge left out."""
        used = np.flatnonzero(x)
        linear, gram, rows = np.zeros(self._p), None, []
        for data in self._data:
            A = data.rows
            z = data.columns(used) @ x[used]
            first, h = data.slopes_at(z[None])
            weights = np.maximum(h[0], _FAINT * h[0].mean())
            pull = weights * z - first[0]
            linear += data.term.design.rmatvec(pull) if A is None else A.T @ pull
            if A is None:
                H = data.term.design.gram(weights)
            else:
                scaled = np.sqrt(weights)[:, None] * A
                if self._wide:
                    rows.append(scaled)
                    continue
                H = scaled.T @ scaled
            gram = H if gram is None else gram + H
        if self._wide:
            return Quadratic(linear[:, None], rows=np.vstack(rows))
        return Quadratic(linear[:, None], gram=gram)

    def minimised(
        self, ridge: FloatArray, supports: IntArray, starts: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the minimisers on supports ``(K, q)``, -1 in empty places, and their values.

        By Newton's method from ``starts`` ``(K, p)``, with steps halved until they lead lower.
        """
        out, values = np.zeros((len(supports), self._p)), np.empty(len(supports))
        n = sum(data.target.shape[0] for data in self._data)
        many = max(1, _TOGETHER // max(1, n * supports.shape[1]))
        for first in range(0, len(supports), many):
            some = slice(first, first + many)
            out[some], values[some] = self._minimised(ridge, supports[some], starts[some])
        return out, values

    def _minimised(
        self, ridge: FloatArray, supports: IntArray, starts: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        pool, inverse = np.unique(supports, return_inverse=True)
        inverse = inverse.reshape(supports.shape)
        empty = supports < 0
        R = np.where(empty, 0.0, ridge[supports])
        X = []
        for data in self._data:
            columns = data.columns(np.maximum(pool, 0)).T.copy()
            columns[pool < 0] = 0.0
            X.append(columns[inverse])  # (K, q, n)
        w = np.where(empty, 0.0, np.take_along_axis(starts, np.maximum(supports, 0), axis=1))
        z = [np.matmul(w[:, None], A)[:, 0] for A in X]
        values = self._values(z, w, R)
        place = np.arange(supports.shape[1])
        active = np.arange(len(supports))
        for _ in range(_NEWTON):
            if not active.size:
                break
            g, H = R[active] * w[active], np.zeros((active.size, place.size, place.size))
            for data, A, at in zip(self._data, X, z, strict=True):
                some = A if active.size == len(supports) else A[active]
                d1, d2 = data.slopes_at(at[active])
                g += np.matmul(some, d1[:, :, None])[:, :, 0]
                H += np.matmul(some * d2[:, None], some.transpose(0, 2, 1))
            size = np.maximum(H[:, place, place], R[active])
            H[:, place, place] += R[active] + 1e-12 * size.max(axis=1, keepdims=True, initial=0.0)
            H[:, place, place] += empty[active]
            step = -solved(H, g[:, :, None])[:, :, 0]
            gain = -np.einsum("kq,kq->k", g, step)
            go = gain > _NONE * np.abs(values[active])
            active, step, gain = active[go], step[go], gain[go]
            is_last = gain <= _LAST * np.abs(values[active])
            if not active.size:
                break
            moves = [np.matmul(step[:, None], A[active])[:, 0] for A in X]
            t = np.ones(active.size)
            waiting = np.arange(active.size)
            for _ in range(_CUTS):
                here = active[waiting]
                trial = w[here] + t[waiting, None] * step[waiting]
                there = [
                    at[here] + t[waiting, None] * move[waiting]
                    for at, move in zip(z, moves, strict=True)
                ]
                new = self._values(there, trial, R[here])
                low = new <= values[here] - 1e-4 * t[waiting] * gain[waiting]
                done = here[low]
                w[done], values[done] = trial[low], new[low]
                for at, to in zip(z, there, strict=True):
                    at[done] = to[low]
                waiting = waiting[~low]
                t[waiting] *= 0.5
                if not waiting.size:
                    break
            is_last[waiting] = True  # rounding has taken over
            active = active[~is_last]
        out = np.zeros((len(supports), self._p))
        row, slot = np.nonzero(~empty)
        out[row, supports[row, slot]] = w[row, slot]
        return out, values

    def _values(self, z: Sequence[FloatArray], w: FloatArray, R: FloatArray) -> FloatArray:
        total = self._form.constant + 0.5 * np.einsum("kq,kq,kq->k", R, w, w)
        for data, at in zip(self._data, z, strict=True):
            total = total + data.loss_at(at)
        return np.asarray(total)

    @staticmethod
    def _coordinates(model: Whitened, supports: IntArray, free: IntArray) -> IntArray:
        """Return the coordinates of supports and free ones, -1 in empty places."""
        chosen = np.where(supports[:, :, None] >= 0, model.places[supports], -1)
        flat = chosen.reshape(len(supports), -1)
        return np.hstack([flat, np.broadcast_to(free, (len(supports), free.size))])


def dense_rows(form: SparseRegression) -> list[FloatArray | None]:
    """Return the rows of each term written out; None of those that are sparse."""
    return [np.asarray(t.design.to_array()) if is_dense(t) else None for t in form.terms]
