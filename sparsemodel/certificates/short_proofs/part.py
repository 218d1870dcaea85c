r"""A part of the supports of a squared loss, as a quadratic in the units that are left to choose.

.. math:: P \ge c + \tfrac12 y^T M y - g^T y \quad\text{for } y \text{ with at most } k
          \text{ nonzeros,}

where the coordinates that are in have been minimised over (``M`` is a Schur complement) and
columns are scaled by powers of two to diagonals near one. ``M``, ``g`` and ``c`` are numbers as
they stand: what rounding did on the way is in a lower diagonal and a lower constant. With
:math:`|E_{ij}| \le e` the errors of a matrix, and :math:`|\eta_j| \le \eta` those of a slope,
every such ``y`` has

.. math:: y^T E y \le m e \, y^T y, \qquad
          \eta^T y \le \tfrac12 \left( \eta^2 / U + m U y^T y \right),

for the ``m`` coordinates that may be nonzero in all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from sparsemodel.certificates.arithmetic.rounding import U, gamma
from sparsemodel.interfaces import FloatArray, IntArray

_AGAIN = 0.8
"""Curvature is taken out again when this share of the units (or less) is left."""


class Tangent(NamedTuple):
    """A tangent of the convex part, and what it proves."""

    bound: float
    gains: FloatArray
    """By how much each unit may lower the objective below it."""
    order: IntArray
    """Units by their gains, the largest first."""
    slopes: FloatArray
    slack: float
    """What rounding may have made of the bound, which has been taken off."""


@final
@dataclass(slots=True, eq=False)
class Part:
    """Supports with the units ``inside`` and at most ``k`` of ``units``."""

    matrix: FloatArray
    linear: FloatArray
    constant: float
    k: int
    units: IntArray
    """Places in the whole problem."""
    point: FloatArray
    """Where to begin: values of the units."""
    most: int
    """Coordinates that may be nonzero in the whole problem, ``m``."""
    inside: tuple[int, ...] = ()
    entry: float = 2.25
    """Upper bound on the sizes of entries of ``M``."""
    curvature: FloatArray | None = None
    """A proved diagonal: ``M`` less it is positive semidefinite."""
    since: int = 0
    """How many units there were when it was chosen."""
    steep: float = 0.0
    """About the largest eigenvalue of ``M``, or more."""
    bound: float = -math.inf
    """Of this part, or of one that it belongs to."""

    @property
    def diagonal(self) -> FloatArray:
        """Return the diagonal of ``M``."""
        return self.matrix.diagonal()

    @property
    def _lost(self) -> float:
        """Return what one elimination may take from the diagonal."""
        return 32.0 * U * self.most * (self.entry + 2.0)

    # ---- smaller parts -----------------------------------------------------------------------

    def on(self, keep: IntArray) -> Part:
        """Return the part where other units than those at ``keep`` are out."""
        return replace(
            self,
            matrix=self.matrix[keep[:, None], keep],
            linear=self.linear[keep],
            units=self.units[keep],
            point=self.point[keep],
            curvature=None if self.curvature is None else self.curvature[keep],
        )

    def without(self, place: int) -> Part:
        """Return the part where a unit is out."""
        return self.on(_others(self.units.size, place))

    def having(self, place: int, *, counted: bool = True) -> Part | None:
        """Return the part where a unit is in, its value minimised over; None for no curvature.

        The sizes of the products that are taken off are at most those of the diagonal, as the
        diagonal stays positive.
        """
        rest = _others(self.units.size, place)
        pivot, slope = float(self.matrix[place, place]), float(self.linear[place])
        if not pivot > 0.0:
            return None
        root = math.sqrt(pivot)
        row = self.matrix[place, rest] / root
        matrix = self.matrix[rest[:, None], rest]
        matrix -= row[:, None] * row
        lost = self._lost
        matrix.flat[:: rest.size + 1] -= lost
        if not np.all(matrix.diagonal() > 0.0):
            return None
        drop = 0.5 * slope * slope / pivot
        largest = float(np.abs(self.linear).max())
        constant = self.constant - drop
        constant -= 64.0 * U * (abs(self.constant) + largest * largest + 4.0 * drop)
        curvature = self.curvature
        if curvature is not None:  # a Schur complement keeps it, less what rounding may take
            curvature = curvature[rest] - (2.0 + rest.size) * lost
            curvature = curvature if np.all(curvature > 0.0) else None
        return Part(
            matrix,
            self.linear[rest] - row * (slope / root),
            constant,
            self.k - counted,
            self.units[rest],
            self.point[rest],
            self.most,
            (*self.inside, int(self.units[place])),
            self.entry + 2.0,
            curvature,
            self.since,
            self.steep,
            self.bound,
        )

    # ---- bounds ------------------------------------------------------------------------------

    def convex_minus(self, diagonal: FloatArray) -> bool:
        """Return whether ``M`` minus a diagonal is proved positive semidefinite."""
        return semidefinite(self.matrix, -diagonal, 2.0 * self.entry)

    def tangent(
        self, on: IntArray, values: FloatArray, curvature: FloatArray, product: FloatArray
    ) -> Tangent:
        r"""Return the tangent at ``values`` of the units ``on``, zero elsewhere.

        ``product`` is ``(M - curvature) y`` as computed. O(p).
        """
        slopes, size = product - self.linear, on.size
        weight = float(np.abs(values).sum())
        largest = float(np.abs(product).max()) + float(np.abs(self.linear).max())
        error = gamma(size + 8) * 2.0 * (self.entry + 2.0) * weight + 8.0 * U * largest
        gains = np.square(np.abs(slopes) + error) / curvature
        gains *= 0.5 + 8.0 * U
        order = np.argsort(-gains)
        energy, most = 0.5 * float(values @ product[on]), float(gains[order[: self.k]].sum())
        slack = weight * (error + gamma(size + 8) * largest)
        slack += gamma(self.k + 16) * (abs(self.constant) + abs(energy) + most)
        bound = self.constant - energy - most - slack
        return Tangent(bound, gains, order, slopes, slack)

    def product(self, on: IntArray, values: FloatArray, curvature: FloatArray) -> FloatArray:
        """Return ``(M - curvature) y``."""
        found = values @ self.matrix[on]
        found[on] -= curvature[on] * values
        return np.asarray(found)

    def minimised(self, on: IntArray) -> tuple[Any, float] | None:
        """Return the minimiser on some units and its value, as computed; None without one."""
        try:
            values = np.linalg.solve(self.matrix[on[:, None], on], self.linear[on])
        except np.linalg.LinAlgError:
            return None
        return values, self.constant - 0.5 * float(self.linear[on] @ values)

    def bound_from(self, on: IntArray, values: FloatArray, value: float, cutoff: float) -> float:
        """Return a bound by curvature chosen for the minimiser on ``k`` units, or ``-inf``.

        The curvature is that of :func:`bound_by_one_factorisation
        <sparsemodel.certificates.short_proofs.one_factorisation.bound_by_one_factorisation>`, where
        ``k s`` is what the minimum is above the cutoff. ``T`` is chosen so that the curvatures
        inside and outside have the same norm. O(p^3) for one factorisation.
        """
        product = values @ self.matrix[on]
        weight, entry = float(np.abs(values).sum()), self.entry + 2.0
        largest = entry * weight + float(np.abs(self.linear).max())
        error = gamma(on.size + 8) * 2.0 * entry * weight + 8.0 * U * largest
        outside = np.abs(product - self.linear) + error
        own = outside[on]
        outside *= outside
        outside[on] = 0.0
        least = 1.0 / np.square(values)
        spare = max((value - cutoff) / self.k, 0.0)
        level = 0.5 * (balanced(outside, least) + spare)
        if not (math.isfinite(level) and level > 0.0):
            return -math.inf
        inside = 2.0 * max(level - spare, 0.0) * least + 1e-12
        curvature = outside / (2.0 * level * (1.0 - 8.0 * U))
        curvature[on] = inside
        if not self.convex_minus(curvature):
            return -math.inf
        gains = (0.5 + 8.0 * U) * np.square(own + inside * np.abs(values)) / inside
        most = float(np.maximum(gains, level).sum())
        energy = 0.5 * float(values @ (product[on] - inside * values))
        slack = weight * (error + gamma(on.size + 8) * largest)
        slack += gamma(self.k + 16) * (abs(self.constant) + abs(energy) + most)
        return self.constant - energy - most - slack

    def extract_curvature(self) -> bool:
        r"""Take out curvature in proportion to :math:`1 / (M^{-1})_{jj}`, where that is not done.

        Return whether that went.
        """
        if self.curvature is not None and self.units.size > _AGAIN * self.since:
            return True
        found = _extracted(self)
        if found is not None:
            self.curvature, self.since = found, self.units.size
            self.steep = _largest(self.matrix)
        return self.curvature is not None

    def enumerated(self) -> tuple[float, IntArray] | None:
        """Return a bound over all supports with one or two units more, and the best of them.

        None where columns are too nearly dependent. O(p^2).
        """
        g, d = self.linear, self.diagonal
        drops = 0.5 * np.square(g) / d
        if self.k == 1 or g.size == 1:
            best = int(np.argmax(drops))
            most, chosen = float(drops[best]), np.array([best])
        else:
            left = d - np.square(self.matrix) / d[:, None] - self._lost
            left.flat[:: g.size + 1] = np.inf
            if not np.all(left > 0.0):
                return None
            largest = float(np.abs(g).max())
            error = 8.0 * U * (largest + 2.0 * math.sqrt(float(drops.max())))
            rest = np.abs(g - self.matrix * (g / d)[:, None])
            gains = 0.5 * np.square(rest + error) / left + drops[:, None]
            first, second = divmod(int(np.argmax(gains)), g.size)
            most, chosen = float(gains[first, second]), np.array([first, second])
        bound = self.constant - most - 32.0 * U * (abs(self.constant) + most)
        return bound, np.sort(chosen)


def semidefinite(matrix: FloatArray, added: FloatArray, scale: FloatArray | float) -> bool:
    """Return whether a matrix with ``added`` on its diagonal is proved positive semidefinite.

    Cholesky's factorisation must succeed on it minus a margin for its rounding (Rump, *Verification
    of positive definiteness*, BIT 46, 2006, Theorem 2.3), relative to ``scale``: twice the sizes of
    its entries, or four times its diagonal, which is the margin of columns scaled by powers of two
    to diagonals of at most two: such a scaling changes no digit of it.
    """
    size = matrix.shape[0]
    matrix = matrix.copy()
    margin = (gamma(size + 32) + 8.0 * U * size) * size
    matrix.flat[:: size + 1] += added - margin * scale
    return bool(dpotrf(matrix, lower=1, overwrite_a=1)[1] == 0)


def balanced(far: FloatArray, near: FloatArray) -> float:
    r"""Return the ``t`` for which ``far / t`` and ``near t`` have the same norm; NaN without one.

    Squares of their entries would leave the range of numbers long before the entries do.
    """
    most, least = far.max(initial=0.0), near.max(initial=0.0)
    if not (most > 0.0 and 0.0 < least < np.inf):
        return math.nan
    shares = np.linalg.norm(far / most) / np.linalg.norm(near / least)
    return float(np.sqrt(shares) * (np.sqrt(most) / np.sqrt(least)))


def _others(size: int, place: int) -> IntArray:
    rest = np.arange(size - 1)
    rest[place:] += 1
    return rest


def _extracted(part: Part) -> FloatArray | None:
    """Return curvature in proportion to what each unit has beside all others, as far as proved."""
    lower, failed = dpotrf(part.matrix, lower=1)
    if failed:
        return None
    inverse, failed = dpotri(lower, lower=1)
    if failed:
        return None
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    own = inverse.diagonal()
    if not (np.all(np.isfinite(own)) and np.all(own > 0.0)):
        return None
    root = 1.0 / np.sqrt(own)
    inverse *= root[:, None]
    inverse *= root
    diagonal = np.square(root) / _largest(inverse)
    for share in (0.998, 0.95, 0.8):
        if np.all(diagonal > 0.0) and part.convex_minus(share * diagonal):
            return np.asarray(share * diagonal)
    return None


def _largest(matrix: FloatArray) -> float:
    """Return the largest eigenvalue, about: sixteen steps of the power method."""
    fourth = matrix @ matrix
    fourth = fourth @ fourth
    vector, length = fourth.sum(axis=1), 1.0
    for _ in range(4):
        vector = fourth @ (vector / math.sqrt(float(vector @ vector)))
        length = math.sqrt(float(vector @ vector))
    return float(length**0.25)
