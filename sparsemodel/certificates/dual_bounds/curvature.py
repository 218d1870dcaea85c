r"""Which curvature to take out of squared losses: diagonals with :math:`H - \Delta \succeq 0`.

The coordinates that are always in give none up (their ridge never enters the top-k sum), so
that what can be taken from the others is what their Schur complement allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sparsemodel.certificates.dual_bounds.diagonal_shift import Extraction, certainly_psd
from sparsemodel.interfaces import FloatArray, IntArray, SparseRegression
from sparsemodel.progress import counted, doing

_SHRINK = (1e-11, 1e-9, 1e-7, 1e-5, 1e-3)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Curvature:
    """The Hessian of the losses, with what is left of it for the counted coordinates."""

    hessian: FloatArray
    counted: IntArray
    schur: FloatArray
    """Of the counted coordinates, the others minimised out."""
    rows: int


def curvature(form: SparseRegression, h: FloatArray) -> Curvature | None:
    """Return the curvature of the counted coordinates; None when the others have none."""
    counted = np.flatnonzero(form.sparsity.counted)
    free = form.sparsity.free
    schur = h[np.ix_(counted, counted)].copy()
    if free.size:
        cross = h[np.ix_(free, counted)]
        try:
            factor = cho_factor(h[np.ix_(free, free)], lower=True)
        except np.linalg.LinAlgError:
            return None
        schur -= cross.T @ cho_solve(factor, cross)
    return Curvature(h, counted, schur, sum(t.design.sums for t in form.terms))


def simple_diagonals(c: Curvature) -> list[FloatArray]:
    r"""Return the diagonals :math:`\mu I` and :math:`m\,\mathrm{diag}(1/(S^{-1})_{jj})`.

    Each is the largest multiple that leaves the Schur complement ``S`` positive semidefinite.
    Empty when ``S`` is singular.
    """
    size = c.schur.shape[0]
    if not size:
        return []
    entries = np.diag(c.schur)
    if np.any(entries <= 0.0):
        return []
    with doing("eigenvalues 1 of 2"):
        lowest = float(np.linalg.eigvalsh(c.schur)[0])
    if lowest <= 1e-13 * float(entries.max()) * size:
        return []
    out = [np.full(size, lowest)]
    try:
        with doing("inverse"):
            inverse = cho_solve(cho_factor(c.schur, lower=True), np.eye(size))
    except np.linalg.LinAlgError:
        return out
    own = 1.0 / np.diag(inverse)
    root = np.sqrt(own)
    with doing("eigenvalues 2 of 2"):
        largest = float(np.linalg.eigvalsh(c.schur / np.outer(root, root))[0])
    if largest > 0.0:
        out.append(largest * own)
    return out


def safe(c: Curvature, diagonal: FloatArray) -> Extraction | None:
    """Return the extraction of ``diagonal``, shrunk until it is proved; None when it never is."""
    full = np.zeros(c.hessian.shape[0])
    for shrink in counted(_SHRINK, "factorisation"):
        full[c.counted] = np.maximum(diagonal, 0.0) * (1.0 - shrink)
        if certainly_psd(c.hessian.copy(), full, c.rows):
            return Extraction(full)
    return None
