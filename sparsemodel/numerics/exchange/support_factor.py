"""A Cholesky factor that follows a support as it gains and loses coordinates."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, Objective, Point
from sparsemodel.numerics.objectives.regression import RegressionObjective
from sparsemodel.threads import keep_to_one

_DEPENDENT = 1e-11
"""A column is dependent when what the others leave of its square norm is below this fraction."""
_CANCELLED = 1e-3
"""Below this fraction the pivot is computed a second time, from the residual direction."""


@final
class SupportFactor:
    r"""Factor :math:`R^\top R = H_{SS}` of a constant Hessian, updated instead of recomputed.

    Adding a coordinate costs two products with the columns of ``S`` and ``O(k^2)``; removing one
    ``O(k^2)`` (Givens rotations, :func:`scipy.linalg.qr_delete`). Solutions are as accurate as
    those of the normal equations; pivots that cancel are recomputed from the residual of the new
    column (corrected semi-normal equations: Bjorck, Numerical Methods for Least Squares Problems,
    section 6.6.5), so that a nearly dependent column is recognised as such.

    Parameters
    ----------
    objective
        Quadratic. For a matrix variable the Hessian must be the same for all of its columns.
    at
        Any point (the Hessian is the same everywhere).

    Notes
    -----
    Mutable: a run's workspace. ``support`` is sorted; all vectors below follow its order.
    """

    def __init__(self, objective: Objective, at: Point) -> None:
        self._objective = objective
        self._at = at
        self._order = np.empty(0, dtype=np.intp)  # coordinates in the order of R's columns
        self._factor: FloatArray = np.empty((0, 0), order="F")

    @property
    def support(self) -> IntArray:
        """Return the coordinates in the factor, sorted."""
        return np.sort(self._order)

    @property
    def size(self) -> int:
        """Return how many coordinates are in the factor."""
        return int(self._order.size)

    def reset(self, support: IntArray) -> bool:
        """Factor ``H`` on ``support`` at once; False (and empty) unless positive definite."""
        from scipy.linalg import LinAlgError, cholesky

        keep_to_one()
        hessian = self._hessian(support)
        d = np.sqrt(np.maximum(np.diag(hessian), 0.0))
        self._order = np.empty(0, dtype=np.intp)
        self._factor = np.empty((0, 0), order="F")
        if not np.all(d > 0.0):
            return False
        try:
            factor = cholesky(hessian / d[:, None] / d, check_finite=False)
        except LinAlgError:
            return False
        if np.min(np.diag(factor), initial=np.inf) ** 2 <= _DEPENDENT:
            return False
        self._order = support.copy()
        self._factor = np.asfortranarray(factor * d)
        self._objective.work.factorizations += 1
        return True

    def add(self, coordinate: int) -> tuple[FloatArray, float] | None:
        """Add a coordinate outside the support.

        Returns
        -------
        direction, pivot
            The conjugate direction ``w`` on the new (sorted) support, 1 at ``coordinate`` and
            ``-H_SS^{-1} H_Si`` elsewhere, and the Schur complement ``w^T H w`` that it has; the
            minimiser over the new support is ``x - (g_i / pivot) w``. None when the column is
            dependent on those of the support, which then stays as it was.
        """
        old = self.support
        support = np.insert(old, np.searchsorted(old, coordinate), coordinate)
        place = int(np.searchsorted(support, coordinate))
        rank = np.searchsorted(support, self._order)
        unit = np.zeros(support.size)
        unit[place] = 1.0
        column = self._product(support, unit)
        diagonal = float(column[place])
        if not diagonal > 0.0:
            return None
        r = self._triangular(column[rank], transposed=True)
        w = np.empty(support.size)
        w[place], w[rank] = 1.0, -self._triangular(r)
        pivot = diagonal - float(np.dot(r, r))
        if pivot < _CANCELLED * diagonal:
            left = self._product(support, w)  # zero on S but for rounding
            correction = self._triangular(left[rank], transposed=True)
            r += correction
            w[rank] -= self._triangular(correction)
            pivot = float(np.dot(w, left)) - float(np.dot(correction, correction))
        if not pivot > _DEPENDENT * diagonal:
            return None
        k = self._order.size
        grown = np.zeros((k + 1, k + 1), order="F")
        grown[:k, :k] = self._factor
        grown[:k, k] = r
        grown[k, k] = np.sqrt(pivot)
        self._factor = grown
        self._order = np.append(self._order, np.intp(coordinate))
        return w, pivot

    def remove(self, coordinate: int) -> None:
        """Remove a coordinate of the support."""
        from scipy.linalg import qr_delete

        k = self._order.size
        place = int(np.flatnonzero(self._order == coordinate)[0])
        _, shrunk = qr_delete(
            np.eye(k, order="F"),
            self._factor,
            place,
            which="col",
            overwrite_qr=True,
            check_finite=False,
        )
        self._factor = np.asfortranarray(shrunk[: k - 1, : k - 1])
        self._order = np.delete(self._order, place)

    def solve(self, b: FloatArray) -> FloatArray:
        """Return ``H_SS^{-1} b``; ``b`` may have several columns."""
        if not self._order.size:
            return np.zeros_like(b)
        rank = np.argsort(np.argsort(self._order))
        out = np.empty_like(b)
        out[rank] = self._triangular(self._triangular(b[rank], transposed=True))
        return out

    def inverse_diagonal(self) -> FloatArray:
        """Return the diagonal of ``H_SS^{-1}`` (``O(k^3)``, in compiled code)."""
        from scipy.linalg.lapack import dtrtri

        if not self._order.size:
            return np.empty(0)
        inverse, _ = dtrtri(self._factor, lower=0)
        out = np.empty(self._order.size)
        out[np.argsort(np.argsort(self._order))] = np.einsum("ij,ij->i", inverse, inverse)
        return out

    def removal_directions(self, positions: IntArray, inverse_diagonal: FloatArray) -> FloatArray:
        r"""Return :math:`v_j = H^{-1} e_j / (H^{-1})_{jj}` for positions in the sorted support.

        Moving along :math:`-x_j v_j` drops coordinate ``j`` and minimises over the others. One
        direction a column.
        """
        units = np.zeros((self._order.size, positions.size))
        units[positions, np.arange(positions.size)] = 1.0
        return self.solve(units) / inverse_diagonal[positions]

    def whitened(self, positions: IntArray) -> FloatArray:
        """Return columns of ``R^{-1}``, by position in the factor's own order.

        Rows follow the sorted support. All of them together are an ``H``-orthonormal basis.
        """
        units = np.zeros((self._order.size, positions.size))
        units[positions, np.arange(positions.size)] = 1.0
        out = np.empty_like(units)
        out[np.argsort(np.argsort(self._order))] = self._triangular(units)
        return out

    def _triangular(self, b: FloatArray, *, transposed: bool = False) -> FloatArray:
        from scipy.linalg import solve_triangular

        if not b.size:
            return b.copy()
        out: FloatArray = solve_triangular(
            self._factor, b, trans=1 if transposed else 0, check_finite=False
        )
        return out

    def _product(self, support: IntArray, v: FloatArray) -> FloatArray:
        if len(self._objective.shape) == 1:
            return self._objective.hessian_product(self._at, support, v)
        columns = np.zeros((support.size, *self._objective.shape[1:]))
        columns[:, 0] = v
        return np.ascontiguousarray(
            self._objective.hessian_product(self._at, support, columns)[:, 0]
        )

    def _hessian(self, support: IntArray) -> FloatArray:
        if len(self._objective.shape) == 1:
            return self._objective.hessian(self._at, support)
        out = np.empty((support.size, support.size))
        unit = np.zeros(support.size)
        for j in range(support.size):
            unit[j] = 1.0
            out[:, j] = self._product(support, unit)
            unit[j] = 0.0
        return (out + out.T) / 2.0


def has_common_hessian(objective: Any) -> bool:
    """Return whether :class:`SupportFactor` can follow this objective."""
    if not objective.quadratic or not objective.twice_differentiable:
        return False
    return len(objective.shape) == 1 or isinstance(objective, RegressionObjective)
