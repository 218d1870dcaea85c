"""Supports of symmetric matrices: gathering, scattering, connected components."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy import sparse


@final
class Pattern:
    """The diagonal and some pairs ``i < j`` of a symmetric matrix of order ``p``.

    ``rows[a] <= cols[a]`` are the positions of the entries; ``multiplicity[a]`` is how often an
    entry occurs in the matrix, 1 on the diagonal and 2 off it.
    """

    __slots__ = ("_adjacency", "_flat", "_mirror", "cols", "multiplicity", "order", "rows")

    def __init__(self, order: int, rows: IntArray, cols: IntArray) -> None:
        self.order: int = order
        self.rows: IntArray = rows
        self.cols: IntArray = cols
        self.multiplicity: FloatArray = np.where(rows == cols, 1.0, 2.0)
        self._flat = rows * order + cols
        self._mirror = cols * order + rows
        self._adjacency: tuple[IntArray, IntArray, IntArray] | None = None

    @property
    def size(self) -> int:
        """Return the number of entries, the diagonal included."""
        return int(self.rows.size)

    def gather(self, matrix: FloatArray) -> FloatArray:
        """Return the entries of a C-ordered symmetric matrix at the pattern."""
        return matrix.ravel().take(self._flat)

    def scatter(self, values: FloatArray) -> FloatArray:
        """Return the symmetric matrix with ``values`` at the pattern and zeros elsewhere."""
        out = np.zeros(self.order * self.order)
        out[self._flat] = values
        out[self._mirror] = values
        return out.reshape(self.order, self.order)

    def sparse(self, values: FloatArray) -> sparse.csr_array:
        """Return the same matrix in compressed rows."""
        from scipy import sparse  # slow to load, and every backend is loaded with this

        pointers, columns, entries = self.adjacency
        shape = (self.order, self.order)
        return sparse.csr_array((values[entries], columns, pointers), shape=shape)

    @property
    def adjacency(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the rows of the symmetric matrix: where each begins, its columns, its entries."""
        if self._adjacency is None:
            off = np.flatnonzero(self.rows != self.cols)
            rows = np.concatenate([self.rows, self.cols[off]])
            columns = np.concatenate([self.cols, self.rows[off]])
            entries = np.concatenate([np.arange(self.size), off])
            order = np.lexsort((columns, rows))
            pointers = np.searchsorted(rows[order], np.arange(self.order + 1))
            self._adjacency = pointers, columns[order], entries[order]
        return self._adjacency

    def components(self) -> tuple[int, IntArray]:
        """Return the number of connected components and the component of each variable."""
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        ones = np.ones(self.size, dtype=np.int8)
        graph = sparse.csr_array((ones, (self.rows, self.cols)), shape=(self.order, self.order))
        number, labels = connected_components(graph, directed=False)
        return int(number), labels.astype(np.intp)

    def restricted(self, variables: IntArray) -> tuple[Pattern, IntArray]:
        """Return the pattern among ``variables`` (sorted), and which entries it is made of.

        The variables must be a union of connected components, or entries are lost.
        """
        position = np.full(self.order, -1, dtype=np.intp)
        position[variables] = np.arange(variables.size)
        inside = np.flatnonzero((position[self.rows] >= 0) & (position[self.cols] >= 0))
        smaller = Pattern(
            int(variables.size), position[self.rows[inside]], position[self.cols[inside]]
        )
        return smaller, inside
