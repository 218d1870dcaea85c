"""Gram matrices of sparse designs: compiled or SciPy's, whatever the order of the entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemodel.certificates.relaxation.squares import Squares
from sparsemodel.designs import DenseDesign, sparse
from sparsemodel.designs.composed import StackedDesign, TransformedDesign
from sparsemodel.designs.sparse import SparseDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import SquaredLoss
from sparsemodel.numerics.objectives.hessians import is_sparse, weighted_gram


@st.composite
def scattered(draw: st.DrawFn) -> Any:
    """Entries in any order, some of them twice, in CSR or CSC with either width of indices."""
    n, p = draw(st.integers(1, 9)), draw(st.integers(1, 7))
    count = draw(st.integers(0, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = np.sort(rng.integers(0, n, count))
    indptr = np.searchsorted(rows, np.arange(n + 1))
    width = draw(st.sampled_from([np.int32, np.int64]))
    parts = rng.standard_normal(count), rng.integers(0, p, count).astype(width)
    array = sp.csr_array((n, p))
    array.data, array.indices, array.indptr = *parts, indptr.astype(width)
    return array if draw(st.booleans()) else array.tocsc()


@pytest.mark.parametrize("from_products", [0, 10**9], ids=["compiled", "scipy"])
@given(array=scattered(), weighted=st.booleans())
@settings(deadline=None, max_examples=40)
def test_it_is_that_of_the_dense_columns(from_products: int, array: Any, weighted: bool) -> None:
    n = array.shape[0]
    h = np.linspace(0.0, 2.0, n) if weighted else None
    dense = np.asarray(array.todense())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "_COMPILED", from_products)
        got = SparseDesign(array).gram(h)
    expected = dense.T @ (dense if h is None else h[:, None] * dense)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@given(array=scattered())
@settings(deadline=None, max_examples=40)
def test_products_with_several_vectors_are_those_with_each(array: Any) -> None:
    n, p = array.shape
    design, r = SparseDesign(array), np.linspace(-1.0, 2.0, 3 * n).reshape(n, 3)
    design.restrict(np.arange(p))  # from then on columns are at hand
    expected = np.asarray(array.todense()).T @ r
    np.testing.assert_allclose(design.rmatvec(r), expected, rtol=1e-12, atol=1e-12)


@given(array=scattered(), apart=st.booleans())
@settings(deadline=None, max_examples=40)
def test_centred_scaled_and_stacked(array: Any, apart: bool) -> None:
    n, p = array.shape
    means, scale = np.linspace(-1.0, 1.0, p), np.linspace(1.0, 2.0, p)
    h = np.linspace(0.5, 2.0, n)
    moved = TransformedDesign(SparseDesign(array), means=means, scale=scale)
    ones = SparseDesign(sp.csr_array(np.ones((n, 1))))
    place = np.delete(np.arange(p + 1), p // 2) if apart else np.arange(p)
    last = np.array([p // 2 if apart else p])
    stacked = StackedDesign(n, p + 1, ((place, moved), (last, ones)))
    dense = np.empty((n, p + 1))
    dense[:, place] = (np.asarray(array.todense()) - means) * scale
    dense[:, last] = 1.0
    got = stacked.gram(h)
    np.testing.assert_allclose(got, dense.T @ (h[:, None] * dense), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["alone", "beside ones", "centred", "centred, beside ones"])
def test_bounds_multiply_stored_entries_alone(kind: str, dtype: type, monkeypatch: Any) -> None:
    n, p, rng = 4000, 60, np.random.default_rng(5)
    array = sp.random_array((n, p), density=0.01, format="csr", rng=rng).astype(dtype)
    design: Any = SparseDesign(array)
    dense = array.toarray().astype(np.float64)
    if "centred" in kind:
        means, scale = np.linspace(0.0, 0.1, p), np.linspace(1.0, 2.0, p)
        design, dense = TransformedDesign(design, means=means, scale=scale), (dense - means) * scale
    if "ones" in kind:
        ones = np.ones((n, 1))
        parts = ((np.arange(p), design), (np.array([p]), DenseDesign(ones)))
        design, dense = StackedDesign(n, p + 1, parts), np.hstack([dense, ones])
    c = rng.random(n)
    expected = dense.T @ (c[:, None] * dense)
    size = np.sqrt(np.diag(expected))
    term = Term(design, SquaredLoss(), rng.standard_normal(n), c)
    width = dense.shape[1]
    squares = Squares(SparseRegression((term,), np.ones(width), Cardinality(width, 3)))
    for name in ("row_blocks", "to_array"):
        monkeypatch.setattr(SparseDesign, name, None)
    assert is_sparse(design)
    # Of single precision data in double.
    assert np.max(np.abs(weighted_gram(design, c) - expected) / np.outer(size, size)) < 1e-14
    index = np.arange(0, dense.shape[1], 3)
    assert squares.affordable(index, np.inf)
    matrix, linear = squares.on(index)
    some = matrix - expected[np.ix_(index, index)]
    assert np.max(np.abs(some) / np.outer(size[index], size[index])) < 1e-14
    scale = size[index] * np.linalg.norm(np.sqrt(c) * term.target)
    for slopes in (squares.linear[index], dense[:, index].T @ (c * term.target)):
        assert np.max(np.abs(linear - slopes) / scale) < 1e-6


def test_columns_of_two_blocks_add_up_before_they_are_multiplied() -> None:
    array = sp.random_array((4000, 60), density=0.01, format="csr", rng=np.random.default_rng(6))
    parts = tuple((np.arange(60), SparseDesign(a)) for a in (1e9 * array, (1.0 - 1e9) * array))
    twice = StackedDesign(4000, 60, parts)
    assert not is_sparse(twice)
    expected = (array.T @ array).toarray()
    assert np.allclose(weighted_gram(twice, np.ones(4000)), expected, rtol=1e-5, atol=1e-9)
