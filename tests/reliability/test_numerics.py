"""The same problem in other words has the same answer; what has none is named."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemodel as sm

LOSSES = ("squared", "logistic", "huber", "squared_hinge", "poisson")


def data_of(loss: str, seed: int, p: int = 7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, p))
    u = A[:, 0] - 0.7 * A[:, 2] + 0.5 * rng.standard_normal(30)
    if loss == "poisson":
        return A, rng.poisson(np.exp(0.5 * u)).astype(float)
    return A, u if loss in ("squared", "huber") else np.where(u > 0.0, 1.0, -1.0)


def solved(loss: str, blocks: list, ridge: object, k: int = 2) -> tuple[float, np.ndarray, float]:
    """Return value, coefficients and bound for the sum of the losses of the blocks."""
    w = sm.Variable(blocks[0][0].shape[1], name="w")
    terms = [getattr(sm, f"{loss}_loss")(A @ w, y, reduction="sum") for A, y in blocks]
    objective = sum(terms[1:], terms[0]) + sm.ridge(w, ridge)
    problem = sm.Problem(sm.minimize(objective), sm.card(w) <= k)
    value = problem.solve().value
    return value, np.asarray(w.value), problem.certify().bound


@given(
    loss=st.sampled_from(LOSSES),
    seed=st.integers(0, 10**6),
    order=st.permutations(range(7)),
    signs=st.lists(st.sampled_from([-1.0, 1.0]), min_size=7, max_size=7),
    exponents=st.lists(st.integers(-8, 8), min_size=7, max_size=7),
)
@settings(max_examples=12)
def test_permuted_flipped_and_scaled_columns(loss, seed, order, signs, exponents):
    A, y = data_of(loss, seed)
    value, x, bound = solved(loss, [(A, y)], np.full(7, 0.3))
    d = (np.array(signs) * np.exp2(exponents))[list(order)]
    again, z, bound_again = solved(loss, [(A[:, order] * d, y)], 0.3 * d**2)
    assert again == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(z * d, x[list(order)], rtol=1e-4, atol=1e-5)
    assert max(bound, bound_again) <= value * (1.0 + 1e-9)


@given(loss=st.sampled_from(LOSSES), seed=st.integers(0, 10**6), cut=st.integers(5, 25))
@settings(max_examples=8)
def test_one_loss_or_the_sum_of_two_sparse_or_dense(loss, seed, cut):
    A, y = data_of(loss, seed)
    if loss in ("logistic", "squared_hinge"):
        y[:2], y[-2:] = [1.0, -1.0], [1.0, -1.0]
    value, x, _ = solved(loss, [(A, y)], 0.3)
    split, z, _ = solved(loss, [(A[:cut], y[:cut]), (sp.csc_array(A[cut:]), y[cut:])], 0.3)
    assert split == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(z, x, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("at_the_root")
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_a_support_of_dependent_columns(loss: str):
    A, y = data_of(loss, 3)
    A = np.column_stack([A, A])  # every support of both copies has a singular Hessian
    rng = np.random.default_rng(0)
    if loss == "logistic":
        y = np.where(rng.random(30) < 0.5, 1.0, -1.0)  # not separable
    value, x, _ = solved(loss, [(A, y)], 0.0, k=4)
    assert np.isfinite(value)
    assert np.all(np.isfinite(x))
    assert np.abs(x).max() < 1e6


@pytest.mark.parametrize("loss", [sm.logistic_loss, sm.squared_hinge_loss])
def test_separable_classes_without_a_ridge_are_named_or_solved(loss):
    A, _ = data_of("squared", 5)
    w = sm.Variable(7, name="w")
    problem = sm.Problem(sm.minimize(loss(A @ w, A[:, 1] > 0.0)), sm.card(w) <= 1)
    if loss is sm.squared_hinge_loss:  # it is zero beyond the margin: there are minimisers
        assert problem.solve().value == pytest.approx(0.0, abs=1e-10)
        return
    with pytest.raises(sm.SeparableDataError, match="ridge"):
        problem.solve()


def test_too_few_iterations_are_reported():
    A, y = data_of("logistic", 6, 30)
    w = sm.Variable(30, name="w")
    problem = sm.Problem(
        sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-3)), sm.card(w) <= 8
    )
    solution = problem.solve("iht", max_iter=1)
    assert solution.status == "stopped early"
    assert "iteration" in solution.stop.value
    assert problem.status == "stopped early"


def test_more_entries_than_32_bits_count_are_described():
    """With stand-ins for the arrays: nothing of that size is made."""
    from sparsemodel.designs import SparseDesign

    n, p, entries = 2**20, 2**21, 3 * 2**31
    huge = SimpleNamespace(
        shape=(n, p), nnz=entries, format="csc", dtype=np.dtype(np.float64), indices=np.int64(0)
    )
    design = SparseDesign(huge)
    assert design.entries == entries
    assert design.shape == (n, p)
    assert "sparse" in design.describe()


def _with_long_indices(short):
    kind = type(short)
    parts = (short.data, short.indices.astype(np.int64), short.indptr.astype(np.int64))
    long = kind(parts, shape=short.shape)
    # SciPy narrows what fits into 32 bits; matrices of more than 2^31 entries come like this.
    long.indices, long.indptr = parts[1], parts[2]
    return long


@pytest.mark.parametrize("kind", [sp.csc_array, sp.csr_array, sp.csc_matrix, sp.csr_matrix])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_indices_of_64_bits_solve_as_those_of_32(kind, loss):
    A, y = data_of(loss, 8)
    A = np.where(np.abs(A) < 0.3, 0.0, A)
    short = kind(A)
    long = _with_long_indices(short)
    assert long.indices.dtype == long.indptr.dtype == np.int64
    one, two = (solved(loss, [(matrix, y)], 0.3) for matrix in (long, short))
    assert one[0] == pytest.approx(two[0], rel=1e-13)
    np.testing.assert_allclose(one[1], two[1], rtol=1e-9)
    assert one[2] == pytest.approx(two[2], rel=1e-9)


@pytest.mark.parametrize("kind", [sp.csc_array, sp.csr_array])
def test_every_operation_of_a_design_with_64_bit_indices(kind, rng):
    dense = np.where(rng.random((9, 6)) < 0.5, rng.standard_normal((9, 6)), 0.0)
    design = sm.as_design(_with_long_indices(kind(dense)))
    x, r, support = rng.standard_normal(6), rng.standard_normal(9), np.array([1, 4, 5])
    np.testing.assert_allclose(design.matvec(x), dense @ x, rtol=1e-13)
    np.testing.assert_allclose(design.rmatvec(r), dense.T @ r, rtol=1e-12, atol=1e-14)
    part = design.restrict(support)
    np.testing.assert_allclose(part.matvec(x[:3]), dense[:, support] @ x[:3], rtol=1e-12)
    weights = rng.random(9)
    gram = dense[:, support].T @ (weights[:, None] * dense[:, support])
    np.testing.assert_allclose(part.gram(weights), gram, rtol=1e-12, atol=1e-14)
