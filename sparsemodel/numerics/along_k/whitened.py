r"""Quadratics as the compiled search reads them: free coordinates minimised out, units whitened.

A quadratic :math:`\tfrac12 x^\top (H + R) x - c^\top x` with a ridge :math:`R = diag(\lambda)` is
given by its matrix ``H``, or, where there are fewer rows than columns, by rows ``A`` with
:math:`H = A^\top A`: then no matrix of all columns is ever formed. Free coordinates are taken out
(:math:`G = H - H_{:F} (H_{FF} + R_F)^{-1} H_{F:}`), and the columns of each unit are combined so
that its own block of ``G + R`` is the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, final

import numpy as np

from sparsemodel.interfaces import BoolArray, Cardinality, FloatArray, IntArray
from sparsemodel.numerics.budget import budget
from sparsemodel.numerics.search.descents import (
    Descents,
    UnitRows,
    WholeMatrix,
    forward_backward,
)

_UNTOLD = 1e-8
"""What a support leaves of a whitened column, up to which products have few digits of it."""
_VANISHED = 1e-12
"""Share of its own square below which what free coordinates leave of a column is rounding."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    """``x' (H + R) x / 2 - c' x``, one column of ``c`` an output, before a ridge is chosen."""

    linear: FloatArray
    """``c``, shape ``(p, m)``."""
    gram: FloatArray | None = None
    """``H``, shape ``(p, p)``."""
    rows: FloatArray | None = None
    """``A`` with ``A' A = H``, shape ``(n, p)``, where there is no ``gram``."""

    def whitened(self, sparsity: Cardinality, ridge: FloatArray) -> Whitened:
        """Return the quadratic with a ridge, shape ``(p,)``, as the search reads it."""
        free, places = sparsity.free, _places(sparsity)
        used = places.reshape(-1)
        inside = self._among(free, free) + np.diag(ridge[free])
        taken = solved(inside, self._among(free, np.arange(self.linear.shape[0])))
        level = solved(inside, self.linear[free])
        c = self.linear - taken.T @ self.linear[free]
        own = ridge[used]
        if self.gram is not None:
            G = _taken(self.gram, used) - self.gram[free][:, used].T @ taken[:, used]
            whole = self.gram.diagonal()[used] + own
            diagonal = G.diagonal() + own
        else:
            rows = cast("FloatArray", self.rows)
            A = _taken_columns(rows, used)
            if free.size:
                A = A - rows[:, free] @ taken[:, used]
                if ridge[free].any():
                    A = np.vstack([A, -np.sqrt(ridge[free])[:, None] * taken[:, used]])
            whole = np.square(rows[:, used]).sum(axis=0) + own
            diagonal = np.square(A).sum(axis=0) + own
        is_used = (used >= 0) & (diagonal > _VANISHED * whole)
        U, q = places.shape
        if q == 1:
            scale = np.zeros(used.size)
            np.divide(1.0, np.sqrt(diagonal, where=is_used, out=scale), where=is_used, out=scale)
            mix = scale[:, None, None]
        else:
            A3 = None if self.gram is not None else A.reshape(len(A), U, q)
            blocks = _own_blocks(G, U, q) if A3 is None else np.einsum("nua,nub->uab", A3, A3)
            blocks = blocks + own.reshape(U, q, 1) * np.eye(q)
            mix = _inverse_roots(blocks, is_used.reshape(U, q), whole.reshape(U, q))
        c = np.ascontiguousarray(_mixed(mix, c[used].T))
        if self.gram is not None:
            G = np.ascontiguousarray(_mixed(mix, _mixed(mix, G).T))
            _set_own_blocks(G, mix)
            known: UnitRows = WholeMatrix(G, q)
        else:
            known = ProductsOnDemand(_mixed(mix, A), mix)
        return Whitened(known, c, places, mix, free, taken, level)

    def _among(self, one: IntArray, other: IntArray) -> FloatArray:
        if self.gram is not None:
            return self.gram[np.ix_(one, other)]
        rows = cast("FloatArray", self.rows)
        return np.asarray(rows[:, one].T @ rows[:, other])


@final
class ProductsOnDemand:
    """Rows of the products of whitened columns, computed when a unit is first looked at."""

    def __init__(self, columns: FloatArray, mix: FloatArray) -> None:
        self._columns, self._mix = columns, mix
        self.q = mix.shape[1]
        self.store = np.empty((0, columns.shape[1]))
        self.slots = np.full(columns.shape[1], -1)
        self.diagonal = np.repeat(_is_usable(mix).astype(np.float64), self.q)
        self._used = 0

    def fetch(self, units: IntArray) -> None:
        """Store the rows of units."""
        every = (units[:, None] * self.q + np.arange(self.q)).reshape(-1)
        new = every[self.slots[every] < 0]
        if not new.size:
            return
        block = self._columns[:, new].T @ self._columns
        own = new - new % self.q
        for o in range(self.q):
            block[np.arange(new.size), own + o] = 0.0
        block[np.arange(new.size), new] = self.diagonal[new]
        needed = self._used + new.size
        if needed > len(self.store):
            grown = np.empty((max(needed, 2 * len(self.store)), self.store.shape[1]))
            grown[: self._used] = self.store[: self._used]
            self.store = grown
        self.store[self._used : needed] = block
        self.slots[new] = np.arange(self._used, needed)
        self._used = needed


@final
class Whitened:
    """A quadratic as the search reads it, and the way back to coordinates."""

    def __init__(
        self,
        rows: UnitRows,
        linear: FloatArray,
        places: IntArray,
        mix: FloatArray,
        free: IntArray,
        taken: FloatArray,
        level: FloatArray,
    ) -> None:
        self.linear = linear
        self.places = places
        """The coordinates of each unit, -1 where others have more."""
        self.descents = Descents(rows, linear)
        self._rows, self._mix = rows, mix
        self._free, self._taken, self._level = free, taken, level

    @property
    def size(self) -> int:
        """Return how many units there are."""
        return len(self.places)

    @property
    def q(self) -> int:
        """Return how many columns make up a unit."""
        return int(self.places.shape[1])

    def sweep(self, sizes: IntArray, start: IntArray | None = None) -> tuple[IntArray, FloatArray]:
        """Return a support of each size, a row with -1 behind its units, and what it explains.

        They are at least 1 and increase; there are fewer units where no more can be told apart, and
        fewer supports where time is up before. With units to ``start`` from those are a support
        smaller than all of them.
        """
        sizes = np.minimum(sizes, self.size)
        return forward_backward(self.descents, sizes, start, budget().over)

    @property
    def passes(self) -> float:
        """Return the passes over the data that the rows computed so far have cost."""
        return 0.5 * len(self._rows.store) / self._rows.q

    def among(self, units: IntArray) -> Descents:
        """Return descents among some units alone, numbered by their places there."""
        q = self._rows.q
        columns = (units[:, None] * q + np.arange(q)).reshape(-1)
        return Descents(WholeMatrix(self._among(units), q), self.linear[:, columns])

    def prices(self, support: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return what each unit gains beside a support, and at most in the place of a member.

        For several columns a unit the sum over its columns one by one.
        """
        q, size = self._rows.q, self.size
        columns = (support[:, None] * q + np.arange(q)).reshape(-1)
        self._rows.fetch(support)
        rows = self._rows.store[self._rows.slots[columns]]
        B = np.linalg.pinv(rows[:, columns], hermitian=True)
        Q, w = B @ rows, B @ self.linear[:, columns].T
        r = self.linear - w.T @ rows
        s = np.maximum(self._rows.diagonal - np.einsum("ij,ij->j", rows, Q), 1e-9)
        r[:, columns] = 0.0
        adding = np.square(r).sum(axis=0) / s
        exchanging = np.zeros_like(adding)
        for i in range(columns.size):
            own = max(float(B[i, i]), 1e-300)
            moved = np.square(r + np.outer(w[i], Q[i]) / own).sum(axis=0)
            gain = moved / (s + np.square(Q[i]) / own) - float(w[i] @ w[i]) / own
            np.maximum(exchanging, gain, out=exchanging)
        exchanging[columns] = 0.0
        return adding.reshape(size, q).sum(axis=1), exchanging.reshape(size, q).max(axis=1)

    def leaves_nothing(self, support: IntArray) -> bool:
        """Return whether a support leaves so little of a column that products cannot tell it."""
        q = self._rows.q
        columns = (support[:, None] * q + np.arange(q)).reshape(-1)
        self._rows.fetch(support)
        rows = self._rows.store[self._rows.slots[columns]]
        Q = np.linalg.pinv(rows[:, columns], hermitian=True) @ rows
        left = self._rows.diagonal - np.einsum("ij,ij->j", rows, Q)
        left[columns] = 1.0
        return bool(np.any(left[self._rows.diagonal > 0.0] <= _UNTOLD))

    def minimisers(self, supports: IntArray) -> FloatArray:
        """Return the minimisers on supports ``(K, n)`` with -1 in empty places: ``(K, p, m)``."""
        q, (many, n) = self.places.shape[1], supports.shape
        outputs = len(self.linear)
        out = np.zeros((many, self._taken.shape[1], outputs))
        pool, inverse = np.unique(supports[supports >= 0], return_inverse=True)
        slots = np.zeros(supports.shape, dtype=np.intp)
        slots[supports >= 0] = inverse
        every = (pool[:, None] * q + np.arange(q)).reshape(-1)
        among = self._among(pool)
        columns = (slots[:, :, None] * q + np.arange(q)).reshape(many, -1)
        empty = np.repeat(supports < 0, q, axis=1)
        if pool.size:
            block = among[columns[:, :, None], columns[:, None, :]]
            block *= ~(empty[:, :, None] | empty[:, None, :])
            place = np.arange(n * q)
            block[:, place, place] = 1.0
            c = np.where(empty[:, :, None], 0.0, self.linear.T[every[columns]])
            w = solved(block, c)
            x = np.einsum("knab,knbm->knam", self._mix[pool[slots]], w.reshape(many, n, q, outputs))
            where = np.where(supports[:, :, None] >= 0, self.places[pool[slots]], -1)
            row, unit, column = np.nonzero(where >= 0)
            out[row, where[row, unit, column]] = x[row, unit, column]
        if self._free.size:
            out[:, self._free] = self._level - self._taken @ out
        return out

    def _among(self, units: IntArray) -> FloatArray:
        q = self._rows.q
        every = (units[:, None] * q + np.arange(q)).reshape(-1)
        self._rows.fetch(units)
        return np.asarray(self._rows.store[np.ix_(self._rows.slots[every], every)])


# ---- units -----------------------------------------------------------------------------------


def _places(sparsity: Cardinality) -> IntArray:
    """Return the coordinates of each unit, -1 behind them where others have more."""
    if sparsity.groups is None:
        return np.flatnonzero(sparsity.counted)[:, None]
    order = np.argsort(sparsity.groups, kind="stable")
    order = order[sparsity.free.size :]  # those of group -1 come first
    groups = sparsity.groups[order]
    sizes = np.bincount(groups, minlength=sparsity.units)
    out = np.full((sparsity.units, int(sizes.max(initial=1))), -1)
    out[groups, np.arange(order.size) - np.concatenate([[0], np.cumsum(sizes)])[groups]] = order
    return out


def _taken(matrix: FloatArray, used: IntArray) -> FloatArray:
    """Return some rows and columns of a matrix, zeros for -1; never the matrix itself."""
    if used.size and used[-1] - used[0] == used.size - 1 and np.all(np.diff(used) == 1):
        part = slice(int(used[0]), int(used[-1]) + 1)
        return np.array(matrix[part, part])
    out = matrix[np.ix_(used, used)]
    out[used < 0], out[:, used < 0] = 0.0, 0.0
    return out


def _taken_columns(matrix: FloatArray, used: IntArray) -> FloatArray:
    out = matrix[:, used]
    out[:, used < 0] = 0.0
    return out


def _own_blocks(G: FloatArray, U: int, q: int) -> FloatArray:
    every = np.arange(U)
    return G.reshape(U, q, U, q)[every, :, every, :]


def _set_own_blocks(G: FloatArray, mix: FloatArray) -> None:
    """Set the block of each unit to the identity, zero where nothing is left of all its columns.

    A column of which nothing is left beside others is one that changes nothing.
    """
    U, q = mix.shape[:2]
    every = np.arange(U)
    G.reshape(U, q, U, q)[every, :, every, :] = _is_usable(mix)[:, None, None] * np.eye(q)


def _is_usable(mix: FloatArray) -> BoolArray:
    """Return of which units something is left."""
    return np.asarray((mix != 0.0).any(axis=(1, 2)))


def _mixed(mix: FloatArray, rows: FloatArray) -> FloatArray:
    """Return rows whose columns are combined unit by unit."""
    U, q = mix.shape[:2]
    if q == 1:
        return np.asarray(rows * mix[:, 0, 0])
    mixed = np.einsum("nua,uab->nub", rows.reshape(len(rows), U, q), mix)
    return np.asarray(mixed.reshape(rows.shape))


def _inverse_roots(blocks: FloatArray, is_used: BoolArray, whole: FloatArray) -> FloatArray:
    """Return ``T`` with ``T' B T = I`` for each block, zero where a direction has vanished."""
    scale = np.where(is_used, 1.0 / np.sqrt(np.where(is_used, whole, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(blocks * scale[:, :, None] * scale[:, None, :])
    fine = values > _VANISHED
    roots = np.where(fine, 1.0 / np.sqrt(np.where(fine, values, 1.0)), 0.0)
    return np.asarray(scale[:, :, None] * vectors * roots[:, None, :])


def solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return the solutions of equations, those of least norm where the matrix is singular."""
    try:
        return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(matrix, hermitian=True) @ right, dtype=np.float64)
