"""Every kind of matrix multiplies a variable, and gives the answer of the dense one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import sparsemodel as sm

FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


def solution_of(A: object, b: np.ndarray) -> sm.Solution:
    w = sm.Variable(5, name="w")
    return sm.Problem(
        sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, 0.1)), sm.card(w) <= 2
    ).solve()


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("form", FORMATS)
def test_sparse_matrices_multiply_variables(form: str, kind: type, rng: np.random.Generator):
    dense = np.where(rng.random((12, 5)) < 0.6, rng.standard_normal((12, 5)), 0.0)
    b = rng.standard_normal(12)
    matrix = kind(dense).asformat(form)
    assert (matrix @ sm.Variable((5, 3), name="W")).shape == (12, 3)
    assert solution_of(matrix, b).value == pytest.approx(solution_of(dense, b).value, rel=1e-12)


def test_what_multiplies_by_itself_is_told_how():
    w = sm.Variable(4, name="w")
    with pytest.raises(sm.DataTypeError, match=r"sm\.as_design\(A\) @ w"):
        aslinearoperator(np.eye(4)) @ w
    with pytest.raises(sm.DataTypeError, match="no numerical value"):
        np.asarray(w)
