r"""The canonical form of sparse precision-matrix problems.

A symmetric matrix :math:`\Omega` of order ``p`` is handed to backends as the vector ``x`` of its
entries on and above the diagonal, so that supports, cardinalities, histories and callbacks are
those of every other problem: a *coordinate* is a diagonal entry (always in, never counted) or an
edge, a pair ``i < j`` that stands for both :math:`\Omega_{ij}` and :math:`\Omega_{ji}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from sparsemodel.interfaces.forms.canonical import Form
from sparsemodel.interfaces.forms.cardinality import Cardinality
from sparsemodel.interfaces.numeric import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class SparsePrecision(Form):
    r"""Minimise a Gaussian negative log-likelihood over sparse precision matrices,

    .. math:: \min_{\alpha I \preceq \Omega \preceq \beta I}\;
              w\,(-\log\det\Omega + \langle S, \Omega\rangle) + \text{constant}
              \quad\text{with at most } k \text{ edges } \Omega_{ij} \ne 0,\ i < j.

    :math:`k` edges are :math:`2k` nonzero entries off the diagonal. Edges that must not be there
    have no coordinate; edges that must be there are free coordinates and are not counted in ``k``.
    Build it with :meth:`build`.
    """

    covariance: FloatArray
    """``S``, symmetric positive semidefinite, shape ``(p, p)``."""
    sparsity: Cardinality
    rows: IntArray
    """Row of each coordinate; ``rows <= cols``, sorted by row, then column."""
    cols: IntArray
    """Column of each coordinate."""
    alpha: float = 0.0
    """Lower bound on the eigenvalues, at least 0."""
    beta: float = np.inf
    """Upper bound on the eigenvalues."""
    weight: float = 1.0
    """``w > 0``, the constant in front of the likelihood."""
    constant: float = 0.0
    samples: int | None = None
    """Observations behind ``S``, where known (information criteria need it)."""
    names: tuple[str, ...] | None = None
    """Names of the ``p`` variables."""
    parameters: tuple[tuple[str, str], ...] = ()
    """What decides a part of the problem and may change: the part, the name with the value."""

    kind: ClassVar[str] = "precision matrices"

    @classmethod
    def build(
        cls,
        covariance: FloatArray,
        edges: int,
        *,
        alpha: float = 0.0,
        beta: float = np.inf,
        required: BoolArray | None = None,
        forbidden: BoolArray | None = None,
        weight: float = 1.0,
        constant: float = 0.0,
        samples: int | None = None,
        names: tuple[str, ...] | None = None,
    ) -> SparsePrecision:
        """Return the form for at most ``edges`` edges beside the ``required`` ones.

        Parameters
        ----------
        covariance
            ``S``; not copied, not checked (the language does that).
        edges
            ``k``, in pairs ``i < j``.
        required, forbidden
            Symmetric masks of shape ``(p, p)``; their diagonals are ignored.
        """
        p = covariance.shape[0]
        allowed = np.triu(np.ones((p, p), dtype=bool))
        if forbidden is not None:
            allowed &= ~(forbidden | forbidden.T) | np.eye(p, dtype=bool)
        rows, cols = np.nonzero(allowed)
        free = rows == cols
        if required is not None:
            free |= (required | required.T)[rows, cols]
        sparsity = Cardinality(rows.size, edges, free=np.flatnonzero(free))
        return cls(
            covariance,
            sparsity,
            rows,
            cols,
            alpha=alpha,
            beta=beta,
            weight=weight,
            constant=constant,
            samples=samples,
            names=names,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.sparsity.size,)

    @property
    def cardinality(self) -> Cardinality:
        return self.sparsity

    @property
    def parts(self) -> tuple[SparsePrecision, ...]:
        """Return the problem of each matrix: the one that there is."""
        return (self,)

    @property
    def shares(self) -> tuple[float, ...]:
        """Return the share of each matrix in the weight."""
        return (1.0,)

    def columns(self, x: FloatArray) -> list[FloatArray]:
        """Return the entries of each matrix."""
        return [x]

    @property
    def order(self) -> int:
        """Return ``p``, the number of variables."""
        return int(self.covariance.shape[0])

    def matrix(self, x: FloatArray) -> FloatArray:
        """Return the symmetric matrix with the entries ``x``."""
        omega = np.zeros((self.order, self.order))
        omega[self.rows, self.cols] = x
        omega[self.cols, self.rows] = x
        return omega

    def entries(self, omega: FloatArray) -> FloatArray:
        """Return ``x`` of a symmetric matrix: its entries at the coordinates."""
        return omega[self.rows, self.cols]

    def coordinates(self, rows: IntArray, cols: IntArray) -> IntArray:
        """Return the coordinates of the pairs ``(rows, cols)``, in either order.

        Raises
        ------
        KeyError
            When a pair is forbidden or out of range.
        """
        low, high = np.minimum(rows, cols), np.maximum(rows, cols)
        keys = self.rows * self.order + self.cols
        wanted = low * self.order + high
        found = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        missing = keys[found] != wanted
        if np.any(missing):
            first = int(np.flatnonzero(missing)[0])
            raise KeyError((int(low[first]), int(high[first])))
        return found

    def edges(self, support: IntArray) -> list[tuple[int, int]]:
        """Return the pairs ``i < j`` among the coordinates ``support``."""
        rows, cols = self.rows[support], self.cols[support]
        off = rows != cols
        return list(zip(rows[off].tolist(), cols[off].tolist(), strict=True))


@final
@dataclass(frozen=True, slots=True, eq=False)
class JointPrecision(Form):
    r"""Minimise a sum of Gaussian likelihoods over precision matrices with one pattern,

    .. math:: \min_{\alpha_g I \preceq \Omega_g \preceq \beta_g I}\;
              \sum_g w_g\,(-\log\det\Omega_g + \langle S_g, \Omega_g\rangle) + \text{constant}

    where at most ``k`` edges are nonzero in any of the matrices. Row ``e`` of ``x`` holds the
    entries of all matrices at coordinate ``e``, shape ``(coordinates, m)``.
    """

    parts: tuple[SparsePrecision, ...]
    """The problem of each matrix alone, without a constant; all have the same coordinates."""
    constant: float = 0.0
    parameters: tuple[tuple[str, str], ...] = ()

    kind: ClassVar[str] = "precision matrices with one pattern"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.sparsity.size, len(self.parts))

    @property
    def sparsity(self) -> Cardinality:
        """Return the limit on the edges of all matrices."""
        return self.parts[0].sparsity

    @property
    def cardinality(self) -> Cardinality:
        return self.sparsity

    def with_limit(self, k: int) -> JointPrecision:
        return replace(self, parts=tuple(part.with_limit(k) for part in self.parts))

    @property
    def rows(self) -> IntArray:
        """Return the row of each coordinate."""
        return self.parts[0].rows

    @property
    def cols(self) -> IntArray:
        """Return the column of each coordinate."""
        return self.parts[0].cols

    @property
    def order(self) -> int:
        """Return ``p``, the number of variables."""
        return self.parts[0].order

    @property
    def names(self) -> tuple[str, ...] | None:
        """Return the names of the variables."""
        return self.parts[0].names

    @property
    def weight(self) -> float:
        """Return the sum of the constants in front of the likelihoods."""
        return math.fsum(part.weight for part in self.parts)

    @property
    def shares(self) -> tuple[float, ...]:
        """Return the share of each matrix in the weight."""
        whole = self.weight
        return tuple(part.weight / whole for part in self.parts)

    def columns(self, x: FloatArray) -> list[FloatArray]:
        """Return the entries of each matrix."""
        return [np.ascontiguousarray(column) for column in x.T]

    def edges(self, support: IntArray) -> list[tuple[int, int]]:
        """Return the pairs ``i < j`` among the coordinates ``support``."""
        return self.parts[0].edges(support)


AnyPrecision = SparsePrecision | JointPrecision
"""One precision matrix, or several with one pattern."""
