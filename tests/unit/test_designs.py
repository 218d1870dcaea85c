"""Designs by example: what is kept by reference, what users pass, what goes wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import sparsemodel as sm
from sparsemodel.certificates.relaxation.smooth import LossSmooth
from sparsemodel.designs import (
    DenseDesign,
    OnesDesign,
    OperatorDesign,
    SparseDesign,
    StackedDesign,
    TransformedDesign,
    as_design,
    column_names,
)
from sparsemodel.designs.kronecker import KroneckerDesign
from sparsemodel.designs.steps import StepsDesign
from sparsemodel.interfaces import Access, DataError, DataTypeError
from sparsemodel.interfaces.design import RestrictedDesign

A = np.arange(12.0).reshape(4, 3) - 5.0


# ---- what users pass -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_float_arrays_are_kept_by_reference(dtype):
    array = A.astype(dtype)
    assert as_design(array).array is array


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_csr_and_csc_are_kept_by_reference(make):
    array = make(A)
    design = as_design(array)
    assert isinstance(design, SparseDesign)
    assert design.array is array


@pytest.mark.parametrize(
    "matrix",
    [
        A.astype(int),
        A.astype(np.float16),
        A.astype(">f8"),
        A.tolist(),
        np.asfortranarray(A),
        A[::-1][::-1],
        sparse.coo_array(A),
        sparse.lil_array(A),
        sparse.csr_array(A.astype(int)),
        aslinearoperator(A),
        DenseDesign(A),
    ],
    ids=lambda m: type(m).__name__,
)
def test_everything_with_these_entries_is_the_same_design(matrix):
    design = as_design(matrix)
    assert design.shape == (4, 3)
    assert np.array_equal(design.to_array(), A)
    assert np.array_equal(design.matvec(np.array([1.0, -2.0, 0.5])), A @ [1.0, -2.0, 0.5])


def test_booleans_are_zeros_and_ones():
    assert np.array_equal(as_design(A > 0).to_array(), (A > 0).astype(float))


def test_data_frames_bring_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(A, columns=["x", "y", "z"])
    assert column_names(frame) == ("x", "y", "z")
    assert np.array_equal(as_design(frame).to_array(), A)
    assert as_design(frame).names == ("x", "y", "z")
    frame["y"] = ["a", "b", "c", "d"]
    with pytest.raises(DataTypeError, match="'y'"):
        as_design(frame)


@pytest.mark.parametrize(
    ("matrix", "error", "words"),
    [
        (np.ones(3), DataError, "reshape"),
        (np.ones((2, 2, 2)), DataError, "two dimensions"),
        (np.ones((0, 3)), DataError, "empty"),
        (np.ones((3, 0)), DataError, "empty"),
        (np.ones((2, 2)) * 1j, DataTypeError, "complex"),
        (sparse.csr_array(np.ones((2, 2)) * 1j), DataTypeError, "complex"),
        (np.array([["a", "b"]]), DataTypeError, "dtype"),
        (np.array([[None, 1.0]]), DataTypeError, "dtype"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), DataTypeError, "dtype"),
        ([[1.0, 2.0], [3.0]], DataError, "different lengths"),
        (np.ma.masked_array(A, A > 0), DataTypeError, "masked"),
    ],
)
def test_what_is_no_matrix_is_refused_with_its_name(matrix, error, words):
    with pytest.raises(error, match=words) as caught:
        as_design(matrix, where="the design")
    assert "the design" in str(caught.value)


# ---- storage ---------------------------------------------------------------------------------


def test_descriptions():
    assert as_design(A).describe() == "dense float64 4 x 3 (C order)"
    assert as_design(np.asfortranarray(A)).describe() == "dense float64 4 x 3 (F order)"
    assert as_design(sparse.csr_array(np.eye(4))).describe() == (
        "sparse CSR float64 4 x 4, 25 % nonzero"
    )
    assert "4 x 3" in as_design(aslinearoperator(A)).describe()


def test_operators_only_promise_products():
    assert OperatorDesign(aslinearoperator(A)).access == Access.PRODUCTS
    stacked = StackedDesign(
        4, 4, ((np.arange(3), OperatorDesign(aslinearoperator(A))), (np.array([3]), OnesDesign(4)))
    )
    assert stacked.access == Access.PRODUCTS


def test_operators_are_called_with_vectors_alone():
    shapes = set()

    def matvec(x):
        shapes.add(x.shape)
        return A @ x

    operator = LinearOperator((4, 3), matvec=matvec, rmatvec=lambda r: A.T @ r, dtype=np.float64)
    shapes.clear()  # SciPy probes the function
    assert np.array_equal(OperatorDesign(operator).matvec(np.eye(3)), A)
    assert shapes == {(3,)}


def test_sparse_entries_given_in_parts_add_up():
    rows, columns = np.array([0, 0, 1]), np.array([0, 0, 1])
    array = sparse.csr_array(sparse.coo_array(([1.0, 2.0, 4.0], (rows, columns)), shape=(2, 2)))
    parts = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 2, 3])))
    assert not parts.has_canonical_format
    for design in (SparseDesign(array), SparseDesign(parts), SparseDesign(parts.tocsc())):
        assert design.column_square_norms().tolist() == [9.0, 16.0]
        assert design.gram().tolist() == [[9.0, 0.0], [0.0, 16.0]]
    assert parts.nnz == 3  # the caller's array is as it was


def test_sparse_products_never_make_the_matrix_dense(monkeypatch):
    array = sparse.random_array((50, 40), density=0.05, rng=np.random.default_rng(0), format="csr")
    design = SparseDesign(array)

    def refuse(self, *args, **kwargs):
        assert self.shape[1] < 40, "the whole matrix was made dense"
        return original(self, *args, **kwargs)

    original = sparse.csr_array.todense
    monkeypatch.setattr(sparse.csr_array, "todense", refuse)
    monkeypatch.setattr(sparse.csc_array, "todense", refuse)
    design.rmatvec(design.matvec(np.ones(40)))
    design.column_square_norms()
    design.restrict(np.array([3, 17])).gram()
    assert design.first_nonfinite() is None


def test_float32_products_do_not_copy_the_data():
    array = np.ones((3, 2), dtype=np.float32)
    design = DenseDesign(array)
    result = design.matvec(np.array([1.0, 2.0]))
    assert result.dtype == np.float64
    assert design.array is array
    assert design.restrict(np.array([1])).matvec(np.ones(1)).dtype == np.float64


# ---- composed --------------------------------------------------------------------------------


def test_blocks_that_share_coordinates_add_up():
    index = np.array([0, 2])
    both = StackedDesign(4, 3, ((index, DenseDesign(A[:, :2])), (index, DenseDesign(A[:, 1:]))))
    expected = np.zeros((4, 3))
    expected[:, index] = A[:, :2] + A[:, 1:]
    assert np.array_equal(both.to_array(), expected)
    assert np.allclose(both.column_square_norms(), np.square(expected).sum(axis=0))
    assert both.sampled_square_norms(4) is None
    assert np.allclose(both.gram(), expected.T @ expected)


def test_a_column_that_is_constant_has_no_norm_after_centring():
    array = np.column_stack([np.full(50, 0.1), np.linspace(-1.0, 1.0, 50)])
    design = TransformedDesign(DenseDesign(array), means=array.mean(axis=0))
    norms = design.column_square_norms()
    assert norms[0] == 0.0
    assert norms[1] == pytest.approx(np.sum(np.square(array[:, 1])))


def test_centring_a_sparse_matrix_keeps_it_sparse():
    array = sparse.random_array((30, 20), density=0.1, rng=np.random.default_rng(1), format="csc")
    means = np.asarray(array.mean(axis=0)).ravel()
    design = TransformedDesign(SparseDesign(array), means=means)
    x = np.random.default_rng(2).standard_normal(20)
    assert np.allclose(design.matvec(x), (array.toarray() - means) @ x)
    assert "sparse" in design.describe()


def test_the_first_nonfinite_entry_in_reading_order_across_blocks():
    left, right = A.copy(), A.copy()
    left[2, 0], right[1, 2] = np.nan, np.inf
    stacked = StackedDesign(
        4, 6, ((np.array([0, 2, 4]), DenseDesign(left)), (np.array([1, 3, 5]), DenseDesign(right)))
    )
    assert stacked.first_nonfinite() == (1, 5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_without_weight_are_left_out(dtype, order):
    rng = np.random.default_rng(3)
    A = np.asarray(rng.standard_normal((1500, 400)), dtype=dtype, order=order)
    design = DenseDesign(A)
    r = np.zeros(1500)
    r[rng.choice(1500, 200, replace=False)] = rng.standard_normal(200)
    wide = A.astype(float)
    tol = 1e-12 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(design.rmatvec(r), wide.T @ r, atol=tol, rtol=tol)
    np.testing.assert_allclose(design.column_square_norms(r**2), r**2 @ wide**2, rtol=1e-12)
    np.testing.assert_allclose(design.rmatvec(np.zeros(1500)), np.zeros(400))
    np.testing.assert_array_equal(A.astype(float), wide)


@given(st.integers(0, 10_000), st.floats(0.0, 400.0), st.floats(-8.0, 8.0))
def test_faint_weights_change_a_gram_matrix_by_rounding_alone(seed, spread, outlier):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, 5))
    A[rng.integers(60), rng.integers(5)] *= 10.0**outlier
    h = 10.0 ** -(spread * rng.random(60))
    expected = A.T @ (h[:, None] * A)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.all(np.abs(DenseDesign(A).gram(h) - expected) <= 1e-13 * scale)


def test_a_nan_in_a_row_without_residual_is_found():
    A = np.random.default_rng(0).standard_normal((1500, 500))
    b = np.zeros(1500)
    b[:200] = 1.0
    A[900, 7] = np.nan
    w = sm.Variable(500)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 5)
    with pytest.raises(sm.DataError, match="row 900, column 7"):
        problem.solve(time_limit=5.0)


@pytest.mark.parametrize("order", ["C", "F"])
def test_single_precision_bounds_take_the_steps_of_double(order, rng, monkeypatch):
    a = rng.standard_normal((3000, 40)).astype(np.float32, order=order)
    b = rng.poisson(np.exp(0.2 * a[:, :5].sum(axis=1))).astype(float)
    found, images, image = [], [], LossSmooth.image
    monkeypatch.setattr(LossSmooth, "image", lambda s, x: (images.append(x), image(s, x))[1])
    for kind in (np.float64, np.float32):
        w = sm.Variable(40)
        goal = sm.minimize(sm.poisson_loss(a.astype(kind, copy=False) @ w, b) + sm.ridge(w, 1e-3))
        images.clear()
        bound = sm.Problem(goal, sm.card(w) <= 5).certify().bound
        found.append((len(images), bound))
    (double, exact), (single, bound) = found
    assert single <= double + 2
    assert bound == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("shape", [(70, 9000), (9000, 70), (300, 5)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_single_precision_is_multiplied_in_double_for_bounds(order, shape, rng):
    a = rng.standard_normal(shape).astype(np.float32, order=order)
    wide, design = a.astype(float), DenseDesign(a)
    x, r = rng.standard_normal(shape[1]), rng.standard_normal((shape[0], 2))
    np.testing.assert_allclose(design.matvec_in_double(x), wide @ x, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(design.rmatvec_in_double(r), wide.T @ r, rtol=0.0, atol=1e-10)
    squares = np.abs(r[:, 0]) @ np.square(wide)
    np.testing.assert_allclose(design.column_square_norms(np.abs(r[:, 0])), squares, rtol=1e-12)
    np.testing.assert_allclose(design.column_square_norms(), np.ones(len(a)) @ np.square(wide))


@pytest.mark.usefixtures("at_the_root")
@pytest.mark.parametrize("loss", ["logistic", "poisson", "huber"])
@pytest.mark.parametrize("seed", [3, 5])
def test_single_precision_does_not_end_bounds_early_where_columns_differ_in_size(loss, seed):
    rng = np.random.default_rng(seed)
    a = (rng.standard_normal((300, 100)) * np.exp(rng.uniform(-7.0, 7.0, 100))).astype(np.float32)
    z = a[:, :4] / a[:, :4].std(axis=0) @ [1.0, -1.0, 0.7, 0.5]
    targets = {
        "logistic": np.where(z + rng.logistic(size=300) > 0.0, 1.0, -1.0),
        "poisson": rng.poisson(np.exp(0.5 * z.clip(-4.0, 4.0))).astype(float),
        "huber": z + rng.standard_normal(300),
    }
    bounds = []
    for kind in (np.float64, np.float32):
        w = sm.Variable(100)
        data = getattr(sm, f"{loss}_loss")(a.astype(kind) @ w, targets[loss])
        problem = sm.Problem(sm.minimize(data + sm.ridge(w, 1e-2)), sm.card(w) <= 5)
        problem.solve()
        bounds.append(problem.certify().bound)
    # Relaxations end where steps gain little; by rounding one of two may make a last step more.
    assert bounds[1] >= bounds[0] * (1.0 - 2e-5)


@pytest.mark.parametrize("design", [KroneckerDesign, StepsDesign, RestrictedDesign])
def test_products_in_double_read_no_rows(design, rng, monkeypatch):
    a = rng.standard_normal((30, 8)).astype(np.float32)
    made = {
        KroneckerDesign: lambda: KroneckerDesign(DenseDesign(a), rng.standard_normal((3, 2))),
        StepsDesign: lambda: StepsDesign(30),
        RestrictedDesign: lambda: RestrictedDesign(DenseDesign(a), np.array([1, 4])),
    }[design]()
    wide, (n, p) = np.concatenate([block for _, block in made.row_blocks(7)]), made.shape
    x, r = rng.standard_normal(p), rng.standard_normal(n)
    monkeypatch.setattr(design, "row_blocks", None)
    np.testing.assert_allclose(made.matvec_in_double(x), wide @ x, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(made.rmatvec_in_double(r), wide.T @ r, rtol=0.0, atol=1e-12)
