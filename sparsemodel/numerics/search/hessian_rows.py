r"""Rows of a Hessian, computed when they are asked for and kept.

What free coordinates take up is taken out first: with :math:`F` the free ones,
:math:`G = H - H_{:F} H_{FF}^{-1} H_{F:}` is the Hessian of :math:`\min_{x_F} f`, so that whoever
works with ``G`` can forget about them. Rows and columns are divided by
:math:`\sqrt{G_{jj}}`: numbers are compared with one, whatever the columns are measured in.
"""

from __future__ import annotations

from typing import TypeAlias, cast, final

import numpy as np

from sparsemodel.interfaces import (
    Access,
    BoolArray,
    FloatArray,
    IntArray,
    Objective,
    Point,
    TwiceDifferentiable,
)
from sparsemodel.numerics.budget import budget, products_cost
from sparsemodel.numerics.curvatures.curvature import cheap_columns, curvatures_at
from sparsemodel.numerics.minimisers.newton import factored
from sparsemodel.numerics.objectives.hessians import BLOCK, hessian_rows, weighted_gram
from sparsemodel.numerics.objectives.regression import RegressionObjective, margins

_VANISHED = 1e-11
"""Share of a column's curvature that the free coordinates must leave of it."""
_WHOLE = 2000
"""Coordinates up to which the whole matrix may be formed (32 MB)."""
_LIKELY = 50
"""Rows that a search needs, about, beside a few for each place in the support."""
_PROBES = 64
"""Random products that estimate the diagonal where columns cannot be read; fewer in a hurry."""
_GROWTH = 32
"""Rows by which the store grows, or by half of those that it has."""
_TOGETHER = 32
"""Rows beside those of the support that are computed in the first reading of a file."""
_COLUMNS = 20
"""Columns that are multiplied together for the blocks of small groups: half the time of each."""
_RARELY, _AT_ONCE = 8, 3000
"""Where one in so many rows was asked for, all others are formed as one product of matrices, which
takes about as long as those did one by one, up to so many (72 MB)."""

Curvatures: TypeAlias = tuple[FloatArray | None, ...]
"""The weights of a term's observations in the Hessian; None where they have none of their own."""


@final
class HessianRows:
    """The Hessian of an objective at a point, by rows; mutable, a run's workspace.

    Parameters
    ----------
    objective
        Twice differentiable. For a matrix variable the Hessian must be the same for all of its
        columns (squared losses).
    at
        Where the Hessian is taken; any point for a quadratic.
    places
        Size of the supports that are to be searched, which decides whether the whole matrix is
        formed in one reading of the data.
    curvatures
        Weights of the observations to take instead of those of the losses: for a matrix variable,
        those that its columns share.

    Attributes
    ----------
    scale
        :math:`1 / \\sqrt{G_{jj}}`; 0 for coordinates of which nothing is left, which no support
        needs.
    diagonal
        Of the scaled matrix: 1, or 0 where nothing is left. Where columns cannot be read it is an
        estimate until the row has been computed.
    """

    def __init__(
        self,
        objective: Objective,
        at: Point,
        *,
        places: int = 1,
        curvatures: Curvatures | None = None,
    ) -> None:
        self._objective, self._at = objective, at
        self.size = objective.shape[0]
        if curvatures is None and isinstance(objective, RegressionObjective):
            curvatures = curvatures_at(objective, at)
        self._curvatures = curvatures  # None where observations have none
        self._slot = np.full(self.size, -1, dtype=np.intp)
        self._store = np.empty((0, self.size))
        self._used = 0
        self.exact = True
        self._free = objective.cardinality.free
        if self.size <= min(_WHOLE, 10 * places + _LIKELY) and self._affordable():
            everything = np.arange(self.size)
            whole = self._raw(everything)
            self._eliminate(whole.diagonal(), whole[self._free])
            self._keep(everything, self._reduced(everything, whole))
        elif self._far() and self._affordable():
            likely = self._promising()
            raw, diagonal = self._together(likely)
            self._eliminate(diagonal, raw[np.searchsorted(likely, self._free)])
            self._keep(likely, self._reduced(likely, raw))
        else:
            self._eliminate(self._whole_diagonal(), None)

    # ---- what is asked for -------------------------------------------------------------------

    def rows(self, coordinates: IntArray) -> FloatArray:
        """Return rows of the scaled matrix, shape ``(len(coordinates), p)``, a copy."""
        self.fetch(coordinates)
        return self._store[self._slot[coordinates]]

    def fetch(self, coordinates: IntArray) -> None:
        """Compute the rows that are missing."""
        if self._used == self.size:
            return
        slots = self._slot[coordinates]
        if slots.min(initial=0) >= 0:
            return
        fresh = np.unique(coordinates[slots < 0])
        if self._used * _RARELY >= self.size and self._quick() and self._affordable():
            fresh = np.flatnonzero(self._slot < 0)
        self._form(fresh)

    @property
    def held(self) -> tuple[FloatArray, IntArray]:
        """Return the rows that were computed, and the place there of each coordinate's, or -1."""
        return self._store, self._slot

    def blocks(self, index: IntArray, present: BoolArray) -> FloatArray:
        """Return square blocks of the scaled matrix, shape ``(b, g, g)``.

        Block ``a`` is that of the coordinates ``index[a][present[a]]``; the rest of it is the
        identity.
        """
        out = np.zeros((*index.shape, index.shape[1]))
        step = max(1, _COLUMNS // index.shape[1])
        for first in range(0, len(index), step):
            here = present[first : first + step]
            whole = self._square(index[first : first + step][here])
            places = np.where(here, np.cumsum(here).reshape(here.shape) - 1, 0)
            pairs = here[:, :, None] & here[:, None, :]
            out[first : first + step][pairs] = whole[places[:, :, None], places[:, None, :]][pairs]
        rest = ~present | (self.scale[index] == 0.0)
        np.einsum("bgg->bg", out)[rest] += 1.0
        return out

    def among(self, coordinates: IntArray) -> FloatArray:
        """Return the scaled matrix of some coordinates alone, in their order."""
        out = self._square(coordinates)
        np.fill_diagonal(out, self.diagonal[coordinates])
        return out

    def reduced_gradient(self, gradient: FloatArray) -> FloatArray:
        """Return the scaled gradient of :math:`\\min_{x_F} f`, shape ``(m, p)``."""
        g = gradient[:, None] if gradient.ndim == 1 else gradient
        if self._free.size:
            g = g - self._taken.T @ g[self._free]
        return np.ascontiguousarray((g * self.scale[:, None]).T)

    # ---- how it is computed ------------------------------------------------------------------

    def _square(self, coordinates: IntArray) -> FloatArray:
        """Return the scaled matrix of some coordinates alone, its diagonal up to rounding."""
        if np.all(self._slot[coordinates] >= 0) or self._curvatures is None:
            return self.rows(coordinates)[:, coordinates]
        form = cast("RegressionObjective", self._objective).form
        order = np.argsort(coordinates)
        inside = np.diag(form.ridge[coordinates[order]])
        for term, h in zip(form.terms, self._curvatures, strict=True):
            columns = term.design.restrict(coordinates[order])
            inside += columns.gram(term.weights if h is None else h)
        self._objective.work.passes += 0.5 * coordinates.size**2 / self.size
        back = np.argsort(order)
        inside = inside[np.ix_(back, back)]
        inside -= self._free_rows[:, coordinates].T @ self._taken[:, coordinates]
        return np.asarray(inside * self.scale[coordinates] * self.scale[coordinates, None])

    def _quick(self) -> bool:
        """Return whether all rows are formed as quickly as some of them, one by one."""
        together = self._curvatures is not None and cheap_columns(self._objective)
        return self.size <= _AT_ONCE and together

    def _affordable(self) -> bool:
        """Return whether the whole matrix may be formed, which costs a reading of the rows."""
        if self._curvatures is None or cheap_columns(self._objective):
            return True
        form = cast("RegressionObjective", self._objective).form
        designs = [term.design for term in form.terms]
        return budget().allows(products_cost(designs, 2.0 * self.size))

    def _eliminate(self, diagonal: FloatArray, free_rows: FloatArray | None) -> None:
        free = self._free
        self._taken = np.zeros((free.size, self.size))
        self._free_rows = self._taken
        left = diagonal.copy()
        if free.size:
            self._free_rows = raw = self._raw(free) if free_rows is None else free_rows
            solve = factored(raw[:, free])
            self._taken = np.column_stack([solve(unit) for unit in np.eye(free.size)]) @ raw
            left -= np.einsum("ij,ij->j", raw, self._taken)
            left[free] = 0.0
        useful = left > _VANISHED * diagonal
        self.scale = np.zeros(self.size)
        np.divide(1.0, np.sqrt(np.maximum(left, 0.0)), out=self.scale, where=useful)
        self.diagonal = useful.astype(np.float64)

    def _form(self, coordinates: IntArray) -> None:
        width = max(1, BLOCK // self.size)
        for first in range(0, coordinates.size, width):
            some = coordinates[first : first + width]
            self._keep(some, self._reduced(some, self._raw(some)))

    def _reduced(self, coordinates: IntArray, block: FloatArray) -> FloatArray:
        """Return rows without what the free coordinates take up, scaled, in the same memory."""
        if self._free.size:
            block -= block[:, self._free] @ self._taken
        block *= self.scale
        block *= self.scale[coordinates, None]
        return block

    def _keep(self, coordinates: IntArray, block: FloatArray) -> None:
        """Store rows; an estimated diagonal becomes theirs."""
        places = np.arange(coordinates.size)
        if self.exact:
            block[places, coordinates] = self.diagonal[coordinates]
        else:
            self.diagonal[coordinates] = block[places, coordinates]
        needed = self._used + coordinates.size
        if needed == len(block) == self.size:
            self._store, self._slot, self._used = block, places, needed
            return
        if needed > len(self._store):
            more = max(_GROWTH, len(self._store) // 2)
            grown = np.empty((min(self.size, max(needed, len(self._store) + more)), self.size))
            grown[: self._used] = self._store[: self._used]
            self._store = grown
        self._store[self._used : needed] = block
        self._slot[coordinates] = np.arange(self._used, needed)
        self._used = needed

    def _raw(self, coordinates: IntArray) -> FloatArray:
        """Return rows of the Hessian itself; half a pass each, as a product of matrices."""
        objective = self._objective
        if (self._curvatures is None or coordinates.size < self.size) and self._far():
            return self._together(coordinates)[0]
        objective.work.passes += 0.5 * coordinates.size
        out = np.zeros((coordinates.size, self.size))
        if self._curvatures is None:
            unit = np.zeros((1, *objective.shape[1:]))
            unit.flat[0] = 1.0
            for place, coordinate in enumerate(coordinates):
                one = np.array([coordinate])
                product = objective.full_hessian_product(self._at, one, unit)
                out[place] = product if product.ndim == 1 else product[:, 0]
                objective.work.passes -= 0.5  # counted there
            return out
        form = cast("RegressionObjective", objective).form
        everything = coordinates.size == self.size
        for term, h, z in zip(form.terms, self._curvatures, self._at.state, strict=True):
            if everything and h is not None and Access.ROWS in term.design.access:
                out += weighted_gram(term.design, h)
                continue
            if h is not None:
                out += term.design.gram_rows(coordinates, h)
                continue
            columns = term.design.restrict(coordinates).to_array()
            loss, u = cast("TwiceDifferentiable", term.loss), margins(term, z)
            product = loss.hessian_product(u, term.target, term.weights, columns)
            out += term.design.rmatvec(product).T
        out[np.arange(coordinates.size), coordinates] += form.ridge[coordinates]
        return out

    def _far(self) -> bool:
        """Return whether rows come from files or workers, several as quickly as one."""
        objective, known = self._objective, self._curvatures
        if known is None:
            return objective.together and len(objective.shape) == 1
        terms = cast("RegressionObjective", objective).form.terms
        return all(t.design.streamed and h is not None for t, h in zip(terms, known, strict=True))

    def _promising(self) -> IntArray:
        """Return the coordinates that a search is likely to look at first."""
        slopes = np.abs(self._objective.gradient(self._at)).reshape(self.size, -1).max(axis=1)
        first = np.argsort(-slopes, kind="stable")[:_TOGETHER]
        return np.unique(np.concatenate([self._free, self._at.support, first]))

    def _together(self, coordinates: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return rows of the Hessian itself and its diagonal, from one reading or trip."""
        if self._curvatures is None:
            return self._objective.hessian_rows(self._at, coordinates)
        self._objective.work.passes += 0.5
        weights = cast("tuple[FloatArray, ...]", self._curvatures)
        return hessian_rows(cast("RegressionObjective", self._objective).form, weights, coordinates)

    def _whole_diagonal(self) -> FloatArray:
        """Return the diagonal of the Hessian itself, exact where that is cheap, else estimated."""
        if self._curvatures is None:
            diagonal = self._objective.hessian_diagonal(self._at, np.arange(self.size))
            return diagonal if diagonal.ndim == 1 else np.ascontiguousarray(diagonal[:, 0])
        form = cast("RegressionObjective", self._objective).form
        # Workers add up squares in one call: random signs, a number a row each, would be sent.
        far = all(Access.DISTRIBUTED in term.design.access for term in form.terms)
        exact = far or cheap_columns(self._objective)
        if exact and all(h is not None for h in self._curvatures):
            self._objective.work.passes += 0.5
            squares = [
                term.design.column_square_norms(h)
                for term, h in zip(form.terms, self._curvatures, strict=True)
            ]
            return np.asarray(form.ridge + sum(squares))
        designs = [term.design for term in form.terms]
        self.exact = False
        rng = np.random.default_rng(0)
        estimate, probes = np.zeros(self.size), _PROBES
        while probes > 4 and not budget().allows(products_cost(designs, probes)):
            probes //= 2
        for term, h in zip(form.terms, self._curvatures, strict=True):
            signs = rng.integers(0, 2, (term.design.shape[0], probes)) * 2.0 - 1.0
            weights = term.weights if h is None else h
            products = term.design.rmatvec(np.sqrt(weights)[:, None] * signs)
            estimate += np.mean(np.square(products), axis=1)
        self._objective.work.passes += 0.5 * probes
        estimate += form.ridge
        if any(h is None for h in self._curvatures):  # observations have no curvature of their own
            some = np.sort(rng.choice(self.size, min(8, self.size), replace=False))
            own = self._raw(some)[np.arange(some.size), some]
            ratios = own[estimate[some] > 0.0] / estimate[some][estimate[some] > 0.0]
            estimate *= np.median(ratios) if ratios.size else 1.0
        return estimate
