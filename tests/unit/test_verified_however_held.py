"""A certificate verifies on the same data however they are held, and satisfies the checker."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.arithmetic.products import column_norms, predictions
from sparsemodel.certificates.dual_bounds.coefficient_bounds.certifying import within
from sparsemodel.certificates.dual_bounds.witness import evaluate
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.checker.__main__ import main
from sparsemodel.designs import SparseDesign, TransformedDesign
from sparsemodel.interfaces import CertificateError

HELD = ("dense", "sparse", "mapped", "dask")
OFFSETS = (0.0, 3.0, 1e3, 1e6, 1e8)


def held(a: np.ndarray, how: str, folder):
    if how == "sparse":
        return sp.csr_array(a)
    if how == "mapped":
        np.save(folder / "a.npy", a)
        return np.load(folder / "a.npy", mmap_mode="r")
    if how == "dask":
        chunks = (a.shape[0] // 3, a.shape[1])
        return pytest.importorskip("dask.array").from_array(a, chunks=chunks)
    return a


def drawn(seed: int):
    """Return data with columns far from zero or of other sizes, and a declaration of a problem."""
    rng = np.random.default_rng(seed)
    n, p, k = int(rng.integers(15, 25)), int(rng.integers(6, 11)), int(rng.integers(1, 4))
    a = rng.standard_normal((n, p))
    a[:, 1:] += rng.choice([0.0, 0.5]) * a[:, :-1]
    b = a[:, 0] - a[:, p // 2] + rng.choice([0.1, 1.0]) * rng.standard_normal(n)
    a += OFFSETS[seed % 5] * rng.uniform(0.5, 1.5, p)
    if seed % 4 == 3:
        a *= 10.0 ** rng.integers(-8, 9, p)
    if seed % 6 == 5:
        a[np.abs(a) < 0.7] = 0.0
    if seed % 3 == 2:
        a = a.astype(np.float32)
    ridge, weights = float(rng.choice([0.0, 0.0, 1e-3])), rng.random(n)

    def problem(entries) -> sm.Problem:
        w = sm.Variable(p)
        u = entries @ w + sm.Variable() if seed % 2 else entries @ w
        loss = {
            0: lambda: sm.squared_loss(u, b),
            1: lambda: sm.squared_loss(u, b, weights=weights),
            2: lambda: sm.huber_loss(u, b, delta=1.0),
        }[seed % 3 if seed % 5 == 4 else 0]()
        counted = w[2:] if seed % 7 == 6 else w
        return sm.Problem(sm.minimize(loss + sm.ridge(w, ridge)), sm.card(counted) <= k)

    return problem, a, b


def complaints(seed: int, folder) -> list[str]:
    """Return who refuses the certificate of a problem, and why."""
    problem, a, b = drawn(seed)
    made = problem(held(a, HELD[seed % 4], folder))
    made.solve()
    path = made.certify().save(folder / "certificate.json")
    out = []
    for how in HELD:
        try:
            verify(path, problem(held(a, how, folder)).form)
        except sm.SparseModelError as error:
            out.append(f"{seed}, {how}: {error}")
    np.savez(folder / "data.npz", A=a, b=b)
    if main([str(path), str(folder / "data.npz")]) != 0:
        out.append(f"{seed}: the checker refuses it")
    return out


@pytest.mark.parametrize("seed", [2, 3, 5, pytest.param(4, marks=pytest.mark.slow)])
def test_a_certificate_holds_on_the_same_data(seed: int, tmp_path) -> None:
    assert complaints(seed, tmp_path) == []


@pytest.mark.slow
def test_hundreds_of_certificates_hold_on_the_same_data(tmp_path) -> None:
    found = [complaints(seed, tmp_path) for seed in range(100, 400)]
    assert list(itertools.chain(*found)) == []


def test_entries_that_are_stored_in_parts_have_room_for_their_sum() -> None:
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((5, 6))
    parts = np.repeat(dense.ravel() / 64.0, 64)
    places = np.repeat(np.tile(np.arange(6), 5), 64)
    pieces = sp.csr_array((parts, places, np.arange(6) * 6 * 64), shape=(5, 6))
    x, support = np.array([0.0, 2.0, 0.0, -1.0, 0.0, 0.0]), np.array([1, 3])
    _, once = predictions(sm.as_design(sp.csr_array(dense)), x, support)
    _, often = predictions(sm.as_design(pieces), x, support)
    np.testing.assert_allclose(once, 20 * 2.0**-53 * np.abs(dense) @ np.abs(x))  # 2 products
    np.testing.assert_allclose(often, 272 * 2.0**-53 * np.abs(dense) @ np.abs(x))  # 128 products


@pytest.mark.parametrize("exponent", [0, 200])
def test_norms_of_scaled_columns_are_bounds_without_writing_rows_out(exponent, monkeypatch, rng):
    a = sp.random_array((60, 20), density=0.3, rng=rng, format="csr") * 2.0**-exponent
    scale = rng.uniform(-3.0, 3.0, 20) * 2.0**exponent
    design = TransformedDesign(SparseDesign(a), scale=scale)
    monkeypatch.setattr(SparseDesign, "row_blocks", None)
    exact = np.linalg.norm(a.toarray() * scale, axis=0)
    found = column_norms(design)
    assert np.all(found >= exact)
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-80)


@pytest.mark.parametrize("orders", [0.0, 4.0])
def test_rows_prove_what_sums_of_their_products_did(orders: float, tmp_path) -> None:
    """Slopes that have to vanish do so on the rows, not on squares made smaller."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(3)
    n, p = 2500, 8
    a = rng.standard_normal((n, p)) * np.exp(rng.uniform(-orders, orders, p)) + 3.0
    offset = rng.standard_normal(n)
    a[rng.random(a.shape) < 0.5] = 0.0
    a = a.astype(rng.choice(["f4", "f8"]))
    b = a[:, 1] / a[:, 1].std() - a[:, 2] / a[:, 2].std() + rng.standard_normal(n)
    pandas.DataFrame(a, columns=list("abcdefgh")).to_parquet(tmp_path / "a.parquet")

    def problem(entries) -> sm.Problem:
        w = sm.Variable(p)
        loss = sm.squared_loss(entries @ w + sm.Variable() + offset, b)
        return sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 2)

    stored = problem(sm.as_design(tmp_path / "a.parquet"))
    stored.solve()
    certificate = stored.certify()
    assert certificate.witness.duals == (None,)
    rows = problem(a).form
    again = within(rows, certificate.witness.bounds, primal(rows, certificate.x))
    assert evaluate(again, certificate.witness).value >= certificate.bound
    verify(certificate, rows)
    verify(certificate, stored.form)


@pytest.mark.parametrize(("ridge", "intercept"), [(0.1, False), (0.0, True)])
def test_what_an_operator_proves_holds_for_its_entries(intercept: bool, ridge: float, tmp_path):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((60, 8))
    b, other = a[:, 0] + 0.1 * rng.standard_normal(60), a + 1e-3

    def problem(entries) -> sm.Problem:
        w = sm.Variable(8)
        u = sm.as_design(entries) @ w
        u = u + sm.Variable() if intercept else u
        return sm.Problem(sm.minimize(sm.squared_loss(u, b) + sm.ridge(w, ridge)), sm.card(w) <= 2)

    certificate = problem(aslinearoperator(a)).certify()
    path = certificate.save(tmp_path / "operator.json")
    for how in ("dense", "sparse", "mapped", "dask"):
        assert verify(path, problem(held(a, how, tmp_path)).form).claim is certificate.claim
    with pytest.raises(CertificateError, match="another matrix"):
        verify(path, problem(other).form)
