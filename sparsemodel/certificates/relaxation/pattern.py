r"""Derivatives of proximal points: the active set and the matrix of a semismooth Newton step.

With the shares split into ones (``P``), fractions (``I``) and zeros, the proximal point with a step
:math:`\sigma` is a soft threshold on ``I`` whose level moves with the point: on ``P`` and ``I``
together the inverse of its derivative, divided by :math:`\sigma`, is

.. math:: \frac1\sigma I + \mathrm{diag}(\lambda_P, 0_I) + \frac1{k - |P|} s s^T,
          \qquad s_j = \sqrt{\lambda_j}\,\mathrm{sign}(x_j)\ (j \in I)

(without the last term where the price of a unit decides, not ``k``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg.lapack import dposv

from sparsemodel.certificates.relaxation.regulariser import Regulariser
from sparsemodel.interfaces import FloatArray, IntArray

LIMIT = 3000
"""Active coordinates up to which a linear system is worth it."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """The active coordinates of a proximal point with its derivative's inverse."""

    active: IntArray
    diagonal: FloatArray
    """``lambda`` on coordinates with a full share, 0 on fractions."""
    s: FloatArray
    """The rank-one part: zero outside the fractions."""
    room: float
    """``k - |P|``, or infinity when the sum of shares does not bind."""

    def inverse_times(self, r: FloatArray, sigma: float) -> FloatArray:
        """Return the inverse derivative over sigma applied to ``r``."""
        out = r / sigma + self.diagonal * r
        if np.isfinite(self.room):
            out += self.s * (float(self.s @ r) / self.room)
        return out

    def solve(self, gram: FloatArray, sigma: float, right: FloatArray) -> FloatArray | None:
        """Solve ``(gram + inverse derivative) d = right``; ``gram`` is overwritten."""
        matrix = gram
        if np.isfinite(self.room) and self.s.any():
            matrix += np.outer(self.s, self.s / self.room)
        matrix[np.diag_indices_from(matrix)] += self.diagonal + 1.0 / sigma
        scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        matrix *= scale
        matrix *= scale[:, None]
        matrix[np.diag_indices_from(matrix)] += 1e-14
        # The transpose of a C-ordered matrix is what LAPACK factors in place.
        _, solution, info = dposv(matrix.T, right * scale, lower=1, overwrite_a=1)
        return None if info != 0 else np.asarray(solution * scale)


def pattern_of(regulariser: Regulariser, x: FloatArray, z: FloatArray) -> Pattern | None:
    """Return the pattern of a proximal point; None where derivatives are not implemented.

    For vector variables without groups and limits, and where ``k`` binds with one price for all.
    """
    if x.ndim > 1 or not regulariser.single or regulariser.limited:
        return None
    share = np.ones(x.size)
    share[regulariser.counted] = z
    active = np.flatnonzero((share > 0.0) & ((x != 0.0) | ~regulariser.counted))
    if active.size > LIMIT:
        return None
    inner, curvature = share[active], regulariser.curvature[active]
    part = inner < 1.0
    s = np.where(part, np.sqrt(curvature) * np.sign(x[active]), 0.0)
    full = int(np.count_nonzero(~part & regulariser.counted[active]))
    binding = float(z.sum()) >= regulariser.k * (1.0 - 1e-9) and regulariser.k > full
    if binding and np.ndim(regulariser.price):
        return None
    return Pattern(
        active=active,
        diagonal=np.where(part, 0.0, curvature),
        s=s,
        room=float(regulariser.k - full) if binding else float("inf"),
    )
