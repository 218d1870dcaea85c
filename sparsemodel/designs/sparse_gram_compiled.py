r"""The weighted Gram matrix of a sparse array, row by row into a dense one; compiled.

SciPy multiplies two sparse arrays into a third, twice over (once for its size), where the product
of the columns of a support is full anyway. Measured on 4705 mails and 1000 words (200,000 and
646,000 entries): 8 and 130 ms here, 40 and 506 ms there, 290 ms by BLAS on the dense columns.
"""

from __future__ import annotations

import numpy as np

from sparsemodel import loading
from sparsemodel.interfaces import FloatArray, IntArray

numba = loading.numba()


@numba.njit(cache=True)
def _add_rows(
    indptr: IntArray, indices: IntArray, data: FloatArray, h: FloatArray, out: FloatArray
) -> None:
    """Add ``sum_i h_i a_i a_i^T`` to ``out``; indices may be unsorted and repeated."""
    for i in range(indptr.size - 1):
        first, last = indptr[i], indptr[i + 1]
        for s in range(first, last):
            j = indices[s]
            value = h[i] * data[s]
            for t in range(first, s):  # of each pair one half: the rest is its mirror image
                out[j, indices[t]] += value * data[t]
            out[j, j] += 0.5 * value * data[s]
    for j in range(out.shape[0]):
        for i in range(j):
            both = out[j, i] + out[i, j]
            out[j, i] = both
            out[i, j] = both
        out[j, j] *= 2.0


def gram_of_rows(
    indptr: IntArray, indices: IntArray, data: FloatArray, h: FloatArray, columns: int
) -> FloatArray:
    """Return ``A.T @ diag(h) @ A``, shape ``(columns, columns)``, of an array in CSR form.

    Costs half the sum of the squared numbers of entries of the rows.
    """
    out = np.zeros((columns, columns))
    _add_rows(indptr, indices, data, h, out)
    return out
