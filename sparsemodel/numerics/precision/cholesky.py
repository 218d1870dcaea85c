"""A positive definite matrix with its Cholesky factor, and the inverse when it is asked for."""

from __future__ import annotations

from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray
from sparsemodel.threads import keep_to_one


@final
class Factor:
    """A symmetric positive definite matrix, its Cholesky factor, log-determinant and inverse.

    Made by :func:`factorise`; treated as immutable. The inverse costs ``2 p^3 / 3`` operations
    once.
    """

    __slots__ = ("_inverse", "cholesky", "logdet", "omega")

    def __init__(self, omega: FloatArray, cholesky: FloatArray) -> None:
        self.omega: FloatArray = omega
        self.cholesky: FloatArray = cholesky
        self._inverse: FloatArray | None = None
        self.logdet: float = 2.0 * float(np.log(np.diagonal(cholesky)).sum())

    @property
    def least_share(self) -> float:
        """Return the least share of a diagonal entry that the others leave: its last pivot."""
        return float(1.0 / np.max(np.diagonal(self.omega) * np.diagonal(self.inverse), initial=1.0))

    @property
    def inverse(self) -> FloatArray:
        """Return the inverse, exactly symmetric (computed once)."""
        if self._inverse is None:
            from scipy.linalg import lapack  # slow to load, and every backend is loaded with this

            half, _ = lapack.dpotri(self.cholesky, lower=1)
            half = np.tril(half)
            full = half + half.T
            np.fill_diagonal(full, np.diagonal(half))
            self._inverse = full
        return self._inverse


def factorise(omega: FloatArray) -> Factor | None:
    """Return the factorisation of a symmetric matrix; None when it is not positive definite."""
    from scipy.linalg import lapack

    keep_to_one()
    # The transpose of a C-ordered symmetric matrix is the same matrix in LAPACK's order.
    cholesky, info = lapack.dpotrf(omega.T, lower=1, clean=1)
    if info != 0 or not np.all(np.isfinite(np.diagonal(cholesky))):
        return None
    return Factor(omega, cholesky)


def is_definite(matrix: FloatArray) -> bool:
    """Return whether a Cholesky factorisation succeeds."""
    from scipy.linalg import lapack

    keep_to_one()
    _, info = lapack.dpotrf(matrix.T, lower=1, clean=0)
    return int(info) == 0


def rounding(omega: FloatArray) -> float:
    """Return how far computed eigenvalues of a symmetric matrix may be off, generously."""
    return float(4.0 * omega.shape[0] * _EPS * np.linalg.norm(omega))


_EPS = float(np.finfo(np.float64).eps)


def within_bounds(factor: Factor, alpha: float, beta: float) -> bool:
    r"""Return whether :math:`\alpha I \preceq \Omega \preceq \beta I`, up to :func:`rounding`.

    Gershgorin's row sums of the matrix and of its inverse decide in O(p^2) where the bounds are
    loose; Cholesky factorisations of the differences decide the rest.
    """
    omega = factor.omega
    p = omega.shape[0]
    if np.isfinite(beta):
        radius = float(np.abs(omega).sum(axis=1).max(initial=0.0))
        if radius > beta:
            shifted = -omega
            shifted[np.diag_indices(p)] += beta + rounding(omega)
            if not is_definite(shifted):
                return False
    if alpha > 0.0:
        radius = float(np.abs(factor.inverse).sum(axis=1).max(initial=0.0))
        if radius * alpha > 1.0:
            shifted = omega.copy()
            shifted[np.diag_indices(p)] -= alpha - rounding(omega)
            if not is_definite(shifted):
                return False
    return True


def active_bounds(factor: Factor, alpha: float, beta: float) -> tuple[str, ...]:
    """Return which eigenvalue bounds hold with equality, in words; worth a warning."""
    # Gershgorin's sums rule most cases out. The smallest eigenvalue comes from the inverse,
    # as that of the matrix drowns in the rounding of the largest.
    texts = []
    radius = float(np.abs(factor.inverse).sum(axis=1).max(initial=0.0))
    if (
        radius * alpha * (1.0 + _TOUCHING) >= 1.0
        and np.linalg.eigvalsh(factor.inverse)[-1] * alpha * (1.0 + _TOUCHING) >= 1.0
    ):
        texts.append(f"the lower eigenvalue bound {alpha:.4g}")
    radius = float(np.abs(factor.omega).sum(axis=1).max(initial=0.0))
    limit = beta * (1.0 - _TOUCHING)
    if radius >= limit and np.linalg.eigvalsh(factor.omega)[-1] >= limit:
        texts.append(f"the upper eigenvalue bound {beta:.4g}")
    return tuple(texts)


_TOUCHING = 1e-6
