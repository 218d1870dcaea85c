"""Limits that have slopes: how far a linear function goes within them, and which slopes they have.

Each is about ``C x + shift`` of some coordinates. With slopes ``y`` it has an end ``b``, for which
``y' b`` is at least ``y' C x`` wherever it holds.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import TINY, U
from sparsemodel.designs import DenseDesign, SparseDesign
from sparsemodel.interfaces import BoolArray, Design, FloatArray, IntArray, Spectrum

ACTIVE = 1e-7
"""Distance to a bound, relative to its size, from which on a multiplier may be sought."""

_KINKS = 4
"""Entries of a sum of sizes at zero whose slopes are sought."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class NormLimit:
    """``||C x + shift|| <= radius``."""

    index: IntArray | None
    """The coordinates, where ``C x`` is some of them."""
    matrix: FloatArray | None
    """``C``, where it is not."""
    size: int
    shift: FloatArray
    radius: float
    order: int
    """1 for the sum of sizes, 2 for the Euclidean norm."""

    @property
    def design(self) -> Design:
        """Return ``C`` as a design."""
        if self.matrix is None:
            return SparseDesign.identity(self.size, self.index)
        return DenseDesign(self.matrix)

    @property
    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Return what each entry of ``C x`` may be."""
        return -self.radius - self.shift, self.radius - self.shift

    def on(self, coordinates: IntArray) -> NormLimit:
        """Return the same on some of the coordinates."""
        matrix = self.design.to_array()[:, coordinates]
        return replace(self, index=None, matrix=matrix, size=coordinates.size)

    def end(self, y: FloatArray) -> FloatArray:
        """Return ``b`` with ``y' b`` at least ``y' C x`` within the limit, and hardly more."""
        if not np.any(y) or not np.all(np.isfinite(y)):
            return -self.shift
        far = np.abs(y) / np.abs(y).max()
        one = np.arange(y.size) == np.argmax(far)
        far = far / np.linalg.norm(far) if self.order == 2 else np.where(one, far, 0.0)
        slack = (32.0 + 4.0 * y.size) * U * (self.radius + np.abs(self.shift)) + 2.0 * TINY
        return np.asarray(np.sign(y) * (self.radius * far + slack) - self.shift)

    def normals(self, x: FloatArray) -> FloatArray:
        """Return the slopes of the norm (of half its square) at the limit, in rows; none within."""
        part = self.design.matvec_in_double(x) + self.shift
        size = float(np.linalg.norm(part, self.order))
        if not size >= (1.0 - ACTIVE) * self.radius:
            return np.zeros((0, part.size))
        if self.order == 2:
            return part[None, :]
        still = np.abs(part) <= ACTIVE * size
        if self.matrix is not None:  # a row that these coordinates do not move needs no slope
            still &= np.any(self.matrix[:, x != 0.0], axis=1)
        free = np.flatnonzero(still & (self.index is None))[:_KINKS]
        signs = np.sign(np.where(still, 0.0, part))
        ways = np.array(list(itertools.product((1.0, -1.0), repeat=free.size)))
        out = np.repeat(signs[None, :], len(ways), axis=0)
        out[:, free] = ways
        return out


@final
@dataclass(frozen=True, slots=True, eq=False)
class SpectrumLimit:
    r"""All eigenvalues of a symmetric matrix ``W`` between two ends.

    Slopes ``y`` of its entries are a matrix ``Y``, :math:`y^T C x = \langle Y, W \rangle`, which is
    at most :math:`\alpha\,\mathrm{tr}\,Y + (\beta - \alpha)\,\mathrm{tr}\,Y_+`. Without an upper
    end ``-Y`` has to be positive semidefinite, without a lower one ``Y``.
    """

    spectrum: Spectrum
    size: int
    coordinates: IntArray | None = None
    """Those of the problem that are left; None for all."""

    @property
    def shift(self) -> FloatArray:
        return np.zeros(self.spectrum.index.size)

    @property
    def design(self) -> Design:
        """Return ``C`` as a design."""
        whole = SparseDesign.identity(self.size, self.spectrum.index)
        return whole if self.coordinates is None else whole.restrict(self.coordinates)

    @property
    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Return what each entry may be."""
        part, diagonal = self.spectrum, self._diagonal
        half = 0.5 * (part.upper - part.lower) * (1.0 + 4.0 * U)
        return np.where(diagonal, part.lower, -half), np.where(diagonal, part.upper, half)

    @property
    def _diagonal(self) -> BoolArray:
        i, j = self.spectrum.entries
        return np.asarray(i == j)

    def _matrix(self, entries: FloatArray) -> FloatArray:
        return replace(self.spectrum, index=np.arange(entries.size)).matrix(entries)

    def on(self, coordinates: IntArray) -> SpectrumLimit:
        """Return the same on some of the coordinates."""
        return replace(self, coordinates=coordinates)

    def end(self, y: FloatArray) -> FloatArray:
        """Return ``b`` with ``y' b`` at least ``y' C x`` within the limit, and hardly more.

        Infinite where the slopes have no such end.
        """
        if not np.any(y) or not np.all(np.isfinite(y)):
            return self.shift
        low, high, sign = self.spectrum.lower, self.spectrum.upper, 1.0
        if np.isinf(low):
            low, high, sign = high, low, -1.0
        matrix = sign * self._matrix(np.where(self._diagonal, 1.0, 0.5) * y)
        values = np.linalg.eigvalsh(matrix)
        values = values + 16.0 * values.size * U * float(np.linalg.norm(matrix))
        beyond, width = float(np.maximum(values, 0.0).sum()), abs(high - low)
        if beyond > 0.0 and np.isinf(width):
            return np.full(y.size, np.inf)
        far = y * (width * beyond / float(y @ y)) if beyond > 0.0 else 0.0 * y
        base = np.where(self._diagonal, low, 0.0)
        slack = (32.0 + 4.0 * y.size) * U * (np.abs(far) + np.abs(base)) + 2.0 * TINY
        return np.asarray(base + far + np.sign(y) * slack)

    def normals(self, x: FloatArray) -> FloatArray:
        """Return none: :meth:`more` finds those that are needed."""
        return np.zeros((0, self.spectrum.index.size))

    def more(self, x: FloatArray, left: FloatArray) -> FloatArray:
        """Return slopes of active ends, in rows, that go along with ``left``."""
        (i, j), matrix, wanted = (
            self.spectrum.entries,
            *(self._matrix(self.design.matvec(part)) for part in (x, left)),
        )
        values, q = np.linalg.eigh(matrix)
        near, found = ACTIVE * float(np.abs(values).max()), []
        at = (values <= self.spectrum.lower + near, values >= self.spectrum.upper - near)
        for sign, own in zip((-1.0, 1.0), at, strict=True):
            worth, ways = np.linalg.eigh(sign * q[:, own].T @ wanted @ q[:, own])
            v = (q[:, own] @ ways[:, worth > 0.0]).T
            found.append(sign * np.where(i == j, 1.0, 2.0) * v[:, i] * v[:, j])
        return np.concatenate(found)

    def kept(self, y: FloatArray) -> FloatArray:
        """Return slopes next to ``y`` that have an end in spite of rounding."""
        room = 64.0 * np.count_nonzero(self._diagonal) * U * float(np.linalg.norm(y))
        sides = np.isinf(self.spectrum.lower) * room - np.isinf(self.spectrum.upper) * room
        return np.asarray(np.where(self._diagonal, y + sides, y)) if np.any(y) else y


Limit = NormLimit | SpectrumLimit
