r"""Linear constraints in a node's relaxation: a slack for each, and slopes of the node's own.

With slacks between the ends of the rows, and any :math:`y` and :math:`\rho > 0`,

.. math:: \min_{l \le s \le u} y^T (C x - s) + \tfrac12 \sum_i \rho_i (C x - s)_i^2

is nowhere above zero where the constraints hold: take :math:`s = C x`. The relaxation with it is
the old one with a few coordinates more that are always in. At its minimum :math:`x` also minimises
the relaxation with the slopes :math:`a = y + \rho (C x - s)` in place of all that, whose value is
no lower (a proximal step of the dual, that ends at the best slopes when it is repeated).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sparsemodel.certificates.statements.numbers import Rows
from sparsemodel.interfaces import BoolArray, FloatArray

_WEIGHT = 1.0
"""``rho``, in units of the curvature of an average coordinate over its entry squared. A larger one
takes fewer steps, of which each is harder to solve."""

_FAR = 1e3
"""Multiple of what a row can be expected to be that stands for an end that it does not have."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Slacks:
    """Rows on scaled coordinates, with a slack each, in units of ``root``."""

    matrix: FloatArray
    """``C`` times ``root`` by row, divided by the scale of the coordinates by column."""
    root: FloatArray
    """Of ``rho``."""
    lower: FloatArray
    upper: FloatArray
    """Bounds on the slacks, finite, in units of ``root``."""
    below: BoolArray
    above: BoolArray
    """Whether there is such an end, without which a slope of its sign proves nothing."""

    @classmethod
    def of(
        cls, rows: Rows, shift: FloatArray, scale: FloatArray, size: float, reach: FloatArray
    ) -> Slacks:
        """Return slacks of ``rows``, which hold for scaled coordinates plus ``shift``.

        ``size`` is the curvature of an average coordinate, ``reach`` what each may be at most.
        """
        entries = np.square(rows.matrix)
        mean = entries.sum(axis=1) / np.maximum((entries > 0.0).sum(axis=1), 1)
        root = np.sqrt(_WEIGHT * size / np.where(mean > 0.0, mean, 1.0))
        low, high = rows.lower - shift, rows.upper - shift
        ends = [np.where(np.isfinite(end), np.abs(end), 0.0) for end in (low, high)]
        far = _FAR * (np.abs(rows.matrix) @ reach + ends[0] + ends[1])
        return cls(
            root[:, None] * rows.matrix / scale,
            root,
            root * np.maximum(low, -far),
            root * np.minimum(high, far),
            np.isfinite(low),
            np.isfinite(high),
        )

    def extended(self, matrix: FloatArray) -> FloatArray:
        """Return the matrix of a quadratic with that of the slacks."""
        b = self.matrix
        return np.block([[matrix + b.T @ b, -b.T], [-b, np.eye(self.root.size)]])

    def linear(self, g: FloatArray, y: FloatArray) -> FloatArray:
        """Return the linear part with slopes ``y`` to begin with."""
        z = y / self.root
        return np.concatenate([g - z @ self.matrix, z])

    def start(self, w: FloatArray) -> FloatArray:
        """Return a scaled point with the slacks that fit it."""
        return np.concatenate([w, np.clip(self.matrix @ w, self.lower, self.upper)])

    def slopes(self, w: FloatArray, y: FloatArray) -> FloatArray:
        """Return ``a`` at a point with its slacks."""
        count = self.matrix.shape[1]
        a = y + self.root * (self.matrix @ w[:count] - w[count:])
        a = np.where(self.below, a, np.maximum(a, 0.0))
        return np.where(self.above, a, np.minimum(a, 0.0))

    def moved(self, a: FloatArray, y: FloatArray) -> float:
        """Return by how much slopes ``a`` are better than ``y``, to first order."""
        return 0.5 * float(np.sum(np.square((a - y) / self.root)))

    def on(self, keep: BoolArray) -> Slacks:
        """Return the same on some of the coordinates."""
        return replace(self, matrix=self.matrix[:, keep])
