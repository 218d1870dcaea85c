r"""The curvature that nodes take out of a quadratic: from its doubly nonnegative relaxation.

With ``Z = [[X, w], [w', 1]]`` positive semidefinite and ``[A, -b] Z = 0`` the relaxation is

.. math:: \min \langle Q, X \rangle + c^T w, \qquad X_{ij} \ge 0, \quad
          X_{ii} \ge w_i^2 / z_i, \quad l_i z_i \le w_i \le u_i z_i, \quad \sum z_i \le k,

with :math:`X_{ij} \ge 0` for pairs whose signs are known alone. Its dual has a diagonal ``D`` and
``N >= 0`` with ``Q - D - N`` positive semidefinite where ``A w = 0``. The equations are kept by
``Z = P S P'`` with ``P`` a basis of their null space; without that the relaxation has no interior.
Two blocks of the method of multipliers: the positive part of ``S``, by eigenvalues, and all other
constraints entry by entry. After the second one ``D`` and ``N`` have the right signs exactly; what
``Q - D - N`` lacks is taken from ``D``, so that every iterate may be used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U, gamma
from sparsemodel.interfaces import BoolArray, FloatArray
from sparsemodel.numerics.budget import Budget, eigenvalue_cost

_RELAXED = 1.6
"""Over-relaxation of the method of multipliers."""

_STIFF = 10.0
"""Penalty of equations in the Hessian, in units of the trace of ``Q`` over the row's square."""

_STEPS = 6
"""How often curvature is lessened until what is left is positive semidefinite."""

_SHARE = 0.02
"""Share of the same curvature for all where coordinates have no ends."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Curvature:
    """What nodes take out: ``Q - diag(d) - pairs + sum tau a a'`` is positive semidefinite."""

    d: FloatArray
    pairs: FloatArray
    """``N``, nonnegative, zero on the diagonal."""
    tau: FloatArray


@final
@dataclass(slots=True, eq=False)
class Relaxation:
    """The relaxation of a part, and how far the method of multipliers has come.

    ``status`` is -1 for coordinates that are out, 0 undecided, 1 always in.
    """

    matrix: FloatArray
    linear: FloatArray
    rows: FloatArray
    right: FloatArray
    low: FloatArray
    high: FloatArray
    status: Any
    k: int
    sums: int
    """Rows of the data that ``Q`` is a sum over."""
    unit: float = field(init=False)
    """Average of the diagonal of ``Q``."""
    tau: FloatArray = field(init=False)
    _stiff: FloatArray = field(init=False)
    _least: float = field(init=False)
    _state: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        diagonal = np.diag(self.matrix)
        self.unit = float(diagonal[diagonal > 0.0].mean()) if diagonal.any() else 1.0
        squares = np.maximum(np.square(self.rows).sum(axis=1), 1e-300)
        self.tau = _STIFF * diagonal.sum() / squares
        stiff = self.matrix + (self.rows.T * self.tau) @ self.rows
        self._stiff = stiff
        self._least = float(np.linalg.eigvalsh(stiff)[0])

    @property
    def signed(self) -> BoolArray:
        """Return which coordinates are never negative."""
        return np.asarray((self.low >= 0.0) & (self.status >= 0))

    def plain(self) -> Curvature:
        """Return the same curvature for all, as much as there is, or less than none by rounding."""
        d = np.full(self.linear.size, self._least - self.given_away)
        d[np.isinf(self.high) & self._empty] = 0.0
        return Curvature(d, np.zeros_like(self.matrix), self.tau)

    @property
    def _empty(self) -> BoolArray:
        """Return which coordinates have no curvature to give: slacks."""
        return np.asarray(np.diag(self.matrix) == 0.0)

    @property
    def given_away(self) -> float:
        """Return what the check of an eigenvalue by Cholesky gives away, twice over."""
        size = self.linear.size
        most = float(np.diag(self._stiff).max(initial=0.0))
        return 4.0 * (gamma(self.sums + size + 96) + 16.0 * U * size) * size * most

    def begun_as(self, other: Relaxation, kept: BoolArray) -> None:
        """Begin where another relaxation came to, of which ``kept`` coordinates are left."""
        if other._state is not None:
            k, dual, multiplier, rho = other._state
            on = np.append(kept, True)
            self._state = k[np.ix_(on, on)], dual[np.ix_(on, on)], multiplier, rho

    def worth(self, deadline: float | None) -> bool:
        """Return whether there is time for eigenvalues."""
        return Budget(deadline).fits(20.0 * eigenvalue_cost(self.linear.size))

    def curvature(self, d: FloatArray, pairs: FloatArray) -> Curvature:
        """Return ``D`` and ``N`` with what is missing taken from ``D``."""
        unbounded = np.isinf(self.high) | np.isinf(self.low)
        endless = unbounded & self._empty
        d, pairs = d.copy(), pairs.copy()
        d[endless] = 0.0
        pairs[endless] = pairs[:, endless] = 0.0
        least = self._least - self.given_away
        if unbounded.any() and least > 0.0:
            # Coordinates without ends need some curvature, which the sum of two has.
            d = (1.0 - _SHARE) * d + _SHARE * least * ~endless
            pairs *= 1.0 - _SHARE
        # Taken from coordinates with curvature alone: what a slack of a wide range lacks costs its
        # square, and where equations hold it follows from the others. Else from all of them.
        first, giving = d.copy(), ~self._empty
        for step in range(_STEPS):
            missing = self._missing(d, pairs)
            if missing <= 0.0:
                return Curvature(d, pairs, self.tau)
            d[giving] -= 2.0**step * missing
        if endless.any():
            return self.plain()
        return Curvature(first - self._missing(first, pairs), pairs, self.tau)

    def _missing(self, d: FloatArray, pairs: FloatArray) -> float:
        """Return what the same curvature for all would have to be to leave a semidefinite rest."""
        return self.given_away - float(np.linalg.eigvalsh(self._stiff - np.diag(d) - pairs)[0])

    def improve(
        self,
        iterations: int,
        every: int,
        enough: Callable[[Curvature], bool],
        *,
        paired: bool,
        deadline: float | None = None,
    ) -> None:
        """Go on; every so often ``enough`` looks at what there is, and may end it.

        Without ``paired`` there is no ``N``.
        """
        from sparsemodel.certificates.proving.quadratic.nearest import entries

        n = self.linear.size
        size = 1.0 / math.sqrt(max(self.k + int((self.status == 1).sum()), 1))
        signed = np.append(self.signed, True)
        both = np.outer(signed, signed) & paired
        q = np.zeros((n + 1, n + 1))
        q[:n, :n] = self.matrix / self.unit
        q[:n, n] = q[n, :n] = 0.5 * self.linear / (self.unit * size)
        low, high = self.low / size, self.high / size
        on = np.append(self.status >= 0, True)
        basis = _null_basis(np.hstack([self.rows * size, -self.right[:, None]])[:, on])
        p = np.zeros((n + 1, basis.shape[1]))
        p[on] = basis
        if self._state is None:
            start = np.append(np.where(self.status >= 0, 1.0 / n / size, 0.0), 1.0)
            self._state = np.outer(start, start), np.zeros((n + 1, n + 1)), 1e-3, 1.0
        k, dual, multiplier, rho = self._state
        diagonal, x, w = np.arange(n), np.zeros(n), np.zeros(n)
        for count in range(1, iterations + 1):
            values, vectors = np.linalg.eigh(p.T @ (k - dual) @ p)
            some = values > 0.0
            root = p @ (vectors[:, some] * np.sqrt(values[some]))
            z = root @ root.T
            over = _RELAXED * z + (1.0 - _RELAXED) * k
            h = over + dual - q / rho
            new = np.where(both, np.maximum(h, 0.0), h)
            multiplier = rho * entries(
                *(h[diagonal, diagonal], h[:n, n].copy(), multiplier / rho),
                *(low, high, self.status, self.k, x, w),
            )
            new[diagonal, diagonal] = x
            new[:n, n] = new[n, :n] = w
            new[n, n] = 1.0
            new[~on] = 0.0
            new[:, ~on] = 0.0
            dual = dual + over - new
            primal, moved = np.linalg.norm(z - new), np.linalg.norm(new - k)
            k = new
            late = deadline is not None and time.perf_counter() >= deadline
            if count % every == 0 or late:
                g = self.unit * (q[:n, :n] - rho * 0.5 * (dual + dual.T)[:n, :n])
                d = np.where(on[:n], np.maximum(g[diagonal, diagonal], 0.0), 0.0)
                pairs = np.where(both[:n, :n], np.maximum(g, 0.0), 0.0)
                pairs[diagonal, diagonal] = 0.0
                pairs[~on[:n]] = pairs[:, ~on[:n]] = 0.0
                self._state = k, dual, multiplier, rho
                if enough(self.curvature(d, pairs)) or late:
                    return
            if count % 20 == 0 and count < 0.7 * iterations:
                share = np.linalg.norm(k) / max(rho * float(np.linalg.norm(dual)), 1e-12)
                ratio = primal / max(rho * float(moved) * share, 1e-300)
                factor = 1.6 if ratio > 3.0 else 1.0 / 1.6 if ratio < 1.0 / 3.0 else 1.0
                rho *= factor
                dual /= factor


def _null_basis(matrix: FloatArray) -> FloatArray:
    """Return an orthonormal basis of what a matrix maps to zero."""
    if not matrix.shape[0]:
        return np.eye(matrix.shape[1])
    _, sizes, vectors = np.linalg.svd(matrix)
    rank = int((sizes > 1e-12 * sizes.max(initial=0.0)).sum())
    return np.asarray(vectors[rank:].T)
