"""More than 2^31 entries, rows or columns: solved with 64-bit indices, or refused by name."""

from __future__ import annotations

import inspect
import mmap
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

import sparsemodel as sm

MOST = 2**31 - 1


def untouched(size: int, dtype: type) -> np.ndarray:
    """Return zeros that may be written; only the pages that are written take memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE of Linux
    pages = mmap.mmap(-1, size * np.dtype(dtype).itemsize, flags=flags)
    return np.frombuffer(pages, dtype=dtype, count=size)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux gives it")
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_a_matrix_of_more_than_32_bits_of_entries_is_multiplied(kind):
    """A true one: 2^31 zeros are stored in front, all for entry (0, 0), and six numbers behind."""
    zeros = 2**31
    data, indices = untouched(zeros + 6, np.float32), untouched(zeros + 6, np.int64)
    data[-6:], indices[-6:] = [1, 2, 3, 4, 5, 6], [1, 3, 0, 2, 1, 3]
    matrix = kind((3, 4) if kind is sp.csr_array else (4, 3))
    matrix.data, matrix.indices = data, indices
    matrix.indptr = np.array([0, zeros + 2, zeros + 4, zeros + 6])
    dense = np.array([[0.0, 1, 0, 2], [3, 0, 4, 0], [0, 5, 0, 6]])
    dense = dense if kind is sp.csr_array else dense.T
    design = sm.as_design(matrix)
    assert design.entries == zeros + 6
    x, r = np.arange(1.0, 1 + dense.shape[1]), np.arange(1.0, 1 + dense.shape[0])
    np.testing.assert_array_equal(design.matvec(x), dense @ x)
    np.testing.assert_array_equal(design.rmatvec(r), dense.T @ r)
    assert matrix.indices is indices  # neither copied nor narrowed


def wide() -> sp.csr_array:
    return sp.csr_array((np.ones(2), ([0, 1], [3, MOST + 5])), shape=(2, MOST + 9))


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (wide(), r"2,147,483,656 columns.*hash"),
        (wide().tocoo(), r"2,147,483,656 columns.*hash"),
        (sp.csc_array(wide().T), r"2,147,483,656 rows.*weights"),
        (np.broadcast_to(1.0, (MOST + 1, 3)), r"2,147,483,648 rows.*sample"),
        (np.broadcast_to(1.0, (3, MOST + 1)), r"2,147,483,648 columns.*Screen"),
        (LinearOperator((3, 2**40), matvec=None, rmatvec=None, dtype=float), "columns.*Screen"),
    ],
    ids=["csr", "coo", "csc", "tall", "wide", "operator"],
)
def test_more_rows_or_columns_are_refused_before_anything_is_made(matrix, words):
    with pytest.raises(sm.DataError, match=words):
        sm.as_design(matrix)


def damaged(how: str) -> sp.csr_array:
    matrix = sp.csr_array(np.eye(4, 3))
    if how == "a column too far":
        matrix.indices[1] = 10**9
    elif how == "a negative column":
        matrix.indices[1] = -(10**9)
    elif how == "a count that ran over":
        matrix.indptr[-2:] = [-(2**31) + 1, -(2**31) + 2]
    elif how == "more than there is":
        matrix.indptr[-1] = 10**9
    elif how == "too few rows":
        matrix.indptr = matrix.indptr[:-1]
    else:
        matrix.data = matrix.data[:-1]
    return matrix


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "how",
    [
        "a column too far",
        "a negative column",
        "a count that ran over",
        "more than there is",
        "too few rows",
        "too few numbers",
    ],
)
def test_indices_that_lead_astray_are_refused(how, turned):
    """SciPy would follow them out of its arrays, and take the process along."""
    matrix = damaged(how)
    if turned:
        other = sp.csc_array((3, 4))
        other.data, other.indices, other.indptr = matrix.data, matrix.indices, matrix.indptr
        matrix = other
    with pytest.raises(sm.DataError, match=r"damaged sparse matrix.*int64"):
        sm.as_design(matrix)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.csr_matrix])
def test_what_is_stored_behind_the_last_entry_is_not_looked_at(kind):
    matrix = kind(np.eye(3))
    matrix.data = np.append(matrix.data, np.nan)
    matrix.indices = np.append(matrix.indices, matrix.indices.dtype.type(7))
    np.testing.assert_array_equal(sm.as_design(matrix).matvec(np.arange(3.0)), np.arange(3.0))


def test_compiled_kernels_count_in_64_bits():
    """Proofs are compiled for 64-bit integers alone, whatever the data are stored with."""
    from sparsemodel.certificates.proving.gram.kernels import enumeration_compiled, node_compiled

    rng = np.random.default_rng(1)
    A = rng.standard_normal((30, 12)) + rng.standard_normal((30, 1))
    bounds = []
    for index in (np.int32, np.int64):
        matrix = sp.csc_array(A)
        matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
        w = sm.Variable(12, name="w")
        goal = sm.squared_loss(matrix @ w, A[:, 0] - A[:, 5])
        problem = sm.Problem(sm.minimize(goal + sm.ridge(w, 0.1)), sm.card(w) <= 6)
        bounds.append(problem.prove().bound)
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-12)
    compiled = 0
    for module in (enumeration_compiled, node_compiled):
        for kernel in filter(callable, vars(module).values()):
            found = inspect.unwrap(kernel, stop=lambda inner: hasattr(inner, "signatures"))
            for signature in getattr(found, "signatures", ()):
                compiled += 1
                assert "int32" not in str(signature)
    assert compiled
