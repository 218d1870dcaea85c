"""Data in files are read a few times; all else is proved from sums of products."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.arithmetic.condensed import condensed
from sparsemodel.certificates.arithmetic.file_statistics import rows_with_statistics
from sparsemodel.certificates.arithmetic.products import column_norms, predictions
from sparsemodel.certificates.arithmetic.readings import forget, read_once
from sparsemodel.certificates.statements.fingerprint import block_fingerprints
from sparsemodel.checker.__main__ import main as check
from sparsemodel.designs import ChunkedDesign, DenseDesign, StackedDesign
from sparsemodel.interfaces import CertificateError, Term
from sparsemodel.losses import SquaredLoss
from sparsemodel.numerics import RegressionObjective
from sparsemodel.numerics.moments import Moments

N, P = 9000, 16


def columns(seed: int = 0, *, mean: float = 2.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, P)) + mean
    A[:, 5] = 0.7 * A[:, 4] + 0.3 * A[:, 5]
    return A * np.exp(rng.uniform(-3.0, 3.0, P))


def target(A: np.ndarray, seed: int = 0) -> np.ndarray:
    A = A.astype(float)
    z = (A - A.mean(axis=0)) / A.std(axis=0).clip(1e-300)
    noise = np.random.default_rng(seed + 1).standard_normal(A.shape[0])
    return z[:, 1] - 0.6 * z[:, 4] + 0.2 * z[:, 9] + 3.0 + noise


def mapped(folder, A: np.ndarray) -> np.memmap:
    out = np.memmap(folder / "A.bin", dtype=A.dtype, mode="w+", shape=A.shape)
    out[:] = A
    out.flush()
    return np.memmap(folder / "A.bin", dtype=A.dtype, mode="r", shape=A.shape)


def problem(A, y, *, k: int = 3, intercept: bool = True, weights=None) -> sm.Problem:
    w = sm.Variable(P)
    prediction = A @ w + sm.Variable() if intercept else A @ w
    return sm.Problem(sm.minimize(sm.squared_loss(prediction, y, weights=weights)), sm.card(w) <= k)


class Readings:
    """How often a problem's data were read since the last question."""

    def __init__(self, posed: sm.Problem) -> None:
        self._design = posed.form.terms[0].design
        self._last = 0

    def __call__(self) -> float:
        before, self._last = self._last, self._design.bytes_read
        return (self._last - before) / self._design.nbytes


@pytest.mark.unrefereed("readings are counted, and the referee reads as well")
@pytest.mark.parametrize("intercept", [False, True])
def test_squared_losses_read_the_data_three_times_in_all(tmp_path, intercept):
    A = columns()
    posed = problem(mapped(tmp_path, A), target(A), intercept=intercept)
    read = Readings(posed)
    found = posed.solve()
    count = read()
    assert 1.0 <= count <= 2.01
    assert found.readings == pytest.approx(count)
    assert f"read {count:.2g} times, 2.3" in str(found)
    certificate = posed.certify()
    count = read()
    assert count <= 1.01
    assert certificate.readings == pytest.approx(count)
    proof = posed.prove()
    assert read() <= 0.01
    assert max(certificate.relative_gap, proof.relative_gap) <= 1e-6
    for stated in (certificate, proof):
        verify(stated, posed.form)
        assert 1.0 <= read() <= 1.01  # what is verified is read afresh
    posed.path(range(1, 6))
    assert read() <= 1.01


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_what_is_proved_from_sums_holds_for_the_rows(tmp_path, dtype):
    A = columns(3).astype(dtype)
    y = target(A, 3)
    weights = np.random.default_rng(5).uniform(0.0, 2.0, N)
    there, here = problem(mapped(tmp_path, A), y, weights=weights), problem(A, y, weights=weights)
    certificate, best = there.certify(), min(value for value, _ in supports(here))
    assert certificate.witness.duals == (None,)
    assert certificate.bound <= best <= certificate.upper * (1.0 + 1e-12)
    assert certificate.bound >= best * (1.0 - 1e-7)
    verify(certificate, here.form)
    certificate.save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", A=A, y=y, ones=np.ones((N, 1)))
    assert check([str(tmp_path / "c.json"), str(tmp_path / "d.npz")]) == 0
    verify(here.certify(), there.form)  # and the other way round


def supports(posed: sm.Problem):
    """Yield the least objective on every support of three columns, and the support."""
    term = posed.form.terms[0]
    root = np.sqrt(term.weights)
    Z = root[:, None] * np.asarray(term.design.to_array())
    free, t = posed.form.sparsity.free, root * term.target
    G, q, tt = Z.T @ Z, Z.T @ t, t @ t
    for support in combinations(range(P), 3):
        on = np.array([*support, *free])
        x = np.linalg.solve(G[np.ix_(on, on)], q[on])
        yield 0.5 * (tt - q[on] @ x), support


@pytest.mark.parametrize("seed", range(3))
def test_the_smaller_problem_is_nowhere_above(tmp_path, seed):
    rng = np.random.default_rng(seed)
    A = columns(seed, mean=[0.0, 3.0, 100.0][seed])
    posed = problem(mapped(tmp_path, A), target(A, seed), intercept=seed > 0)
    x = posed.solve() and np.asarray(posed.certify().x)
    found = condensed(posed.form, x)
    assert found.condensed
    exact, below, beside = (exactly(f) for f in (posed.form, found.minorant, found.equivalent))
    _, vectors = np.linalg.eigh(np.cov(A.T))
    steps = [np.append(v, 0.0)[: x.size] for v in vectors.T]
    for step in (*steps, *(rng.standard_normal((5, x.size)) * np.abs(x).max())):
        for size in (0.0, 1e-3, 1.0, 1e3):
            at = x + size * step
            assert below(at) <= exact(at)
            assert abs(beside(at) - exact(at)) <= 1e-12 * (exact(at) + exact(0.0 * x))


def exactly(form):
    """Return the objective in extended precision."""
    term = form.terms[0]
    Z, y = (np.asarray(a, dtype=np.longdouble) for a in (term.design.to_array(), term.target))
    return lambda x: 0.5 * np.sum(term.weights * np.square(Z @ x.astype(np.longdouble) - y))


@pytest.mark.usefixtures("at_the_root")
def test_rows_are_read_where_sums_decide_nothing(tmp_path):
    A = columns(1)
    y = target(A, 1)
    A[:, 7] = A[:, 4]  # singular: no smaller problem is proved to be one
    posed = problem(mapped(tmp_path, A), y)
    certificate = posed.certify()
    assert not condensed(posed.form, np.asarray(certificate.x)).condensed
    verify(certificate, posed.form)
    exact = problem(mapped(tmp_path, columns(1)), columns(1)[:, :2] @ [1.0, 2.0], intercept=False)
    assert (
        exact.certify().title()
        == problem(columns(1), columns(1)[:, :2] @ [1.0, 2.0], intercept=False).certify().title()
    )


def test_squares_that_underflow_are_not_taken_for_zero(tmp_path):
    A = columns(2)
    y = target(A, 2)
    A[:, 3], A[:, 8] = 0.0, 7.0
    x = np.zeros(P + 1)
    assert condensed(problem(mapped(tmp_path, A), y).form, x).condensed
    A[N // 2 :, 3] = 1e-170
    assert not condensed(problem(mapped(tmp_path, A), y).form, x).condensed


@pytest.mark.unrefereed("readings are counted, and the referee reads as well")
def test_what_was_read_of_a_file_is_not_read_again_but_by_verify(tmp_path):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((500, 200))  # too few rows for sums of products to stand for them
    w = sm.Variable(200)
    y = A[:, :3] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(500)
    goal = sm.minimize(sm.squared_loss(mapped(tmp_path, A) @ w, y) + sm.ridge(w, 0.1))
    posed = sm.Problem(goal, sm.card(w) <= 3)
    read = Readings(posed)
    posed.solve()
    assert read() <= 5.1
    certificate = posed.certify()
    # Sizes of the columns, the gradients at the point and at zero, and the product with the dual
    # point: kept from solve(), if the predictions of its last point have the same last digits.
    assert read() in (pytest.approx(2.0, abs=0.01), pytest.approx(3.0, abs=0.01))
    again = posed.certify()
    assert read() <= 1.01
    assert again.bound == certificate.bound
    verify(certificate, posed.form)
    first = read()
    assert 3.0 <= first <= 3.01  # the data with the value, the bound and the slopes
    verify(certificate, posed.form)
    assert read() == first


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("changed", [False, True])
def test_fingerprint_and_norms_come_with_the_predictions(tmp_path, dtype, changed):
    A = columns(2).astype(dtype)
    A[5:900, 3] = 0.0
    design = problem(mapped(tmp_path, A), target(A)).form.terms[0].design
    (block,) = (one for _, one in design.blocks if isinstance(one, ChunkedDesign))
    x = np.append(np.arange(P) % 3.0, 1.0)
    again = np.memmap(tmp_path / "A.bin", dtype=dtype, mode="r+", shape=A.shape)
    size = 1000  # not a multiple of what is hashed together
    for rows, _ in rows_with_statistics(design, size):
        if changed and rows.start > 0:
            again[0, 0] += 1.0  # read already
            again.flush()
            os.utime(tmp_path / "A.bin", ns=(1, 1 + rows.start))
    before = block.bytes_read
    found, norms = block_fingerprints(block), column_norms(block)
    assert (block.bytes_read > before) is changed
    here = DenseDesign(np.array(again))
    assert found[0][1] == block_fingerprints(here)[0][1]
    exact = np.sqrt(np.square(np.array(again, dtype=np.longdouble)).sum(axis=0))
    assert np.all(norms >= exact)
    np.testing.assert_allclose(norms, exact.astype(float), rtol=1e-10)
    u, error = predictions(design, x, np.flatnonzero(x))
    wide = np.column_stack([np.array(again, dtype=np.longdouble), np.ones(N)])
    assert np.all(np.abs(u - wide @ x) <= error)


@pytest.mark.unrefereed("readings are counted, and the referee reads as well")
def test_a_changed_file_is_read_again(tmp_path):
    A = columns()
    y = target(A)
    posed = problem(mapped(tmp_path, A), y, k=5)
    certificate = posed.certify()
    read = Readings(posed)
    read()
    again = np.memmap(tmp_path / "A.bin", dtype=A.dtype, mode="r+", shape=A.shape)
    again[17, 4] += 1.0
    again.flush()
    os.utime(tmp_path / "A.bin", ns=(1, 1))
    proof = posed.prove()
    assert read() >= 1.0
    assert proof.problem.terms[0].design != certificate.problem.terms[0].design
    with pytest.raises(CertificateError, match="design"):
        verify(certificate, posed.form)


def test_readings_that_are_kept_are_of_the_same_file_product_and_vector():
    class Stored(DenseDesign):
        streamed, stamp = True, "today"

    design = Stored(np.eye(2))
    answers = iter(range(99))

    def read(what, at):
        return read_once(design, what, at, lambda: (np.full(2, float(next(answers))),))[0]

    asked = [("norms", None), ("sums", None), ("product", np.zeros(2)), ("sums", np.zeros(2))]
    asked += [("product", np.ones(2)), ("product", np.zeros((2, 1)))]
    first = [read(*one) for one in asked]
    assert [one[0] for one in first] == [0, 1, 2, 3, 4, 5]
    for one in first:
        one += 100.0  # whoever changes what is returned changes a copy
    assert [read(*one)[0] for one in asked] == [0, 1, 2, 3, 4, 5]
    design.stamp = "tomorrow"
    assert read(*asked[0])[0] == 6
    forget(StackedDesign(2, 2, ((np.arange(2), design),)))
    assert read(*asked[0])[0] == 7


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("residual", [False, True])
def test_few_rows_have_the_moments_of_all(intercept, residual):
    rng = np.random.default_rng(7)
    A = columns(7, mean=100.0)[:500]
    A[:, 2] = 3.0
    A[:, 6] = A[:, 1]
    form = problem(A, rng.standard_normal(500), intercept=intercept).form
    term = replace(form.terms[0], weights=rng.uniform(0.0, 2.0, 500))
    moments = Moments.of((term,))
    a, y, c, constant = moments.rows(residual=residual)
    small = Term(sm.as_design(a), SquaredLoss(), y[:, 0], c)
    assert a.shape[0] <= P + 2 + residual
    one = RegressionObjective(replace(form, terms=(term,)))
    two = RegressionObjective(replace(form, terms=(small,), constant=constant))
    for scale in (0.0, 1.0, 1e3):
        x = scale * rng.standard_normal(form.shape) / np.abs(a).max(axis=0).clip(1e-9)
        p, q = one.point_from(x), two.point_from(x)
        assert q.value == pytest.approx(p.value, rel=1e-11)
        g = one.gradient(p)
        np.testing.assert_allclose(two.gradient(q), g, atol=1e-10 * np.abs(g).max())


@pytest.mark.unrefereed("readings are counted, and the referee reads as well")
def test_other_losses_read_the_data_a_few_times(tmp_path):
    A = columns(5)
    z = target(A, 5) - 3.0
    y = np.where(z > 0.0, 1.0, -1.0)

    def posed(data):
        w = sm.Variable(P)
        loss = sm.logistic_loss(data @ w + sm.Variable(), y)
        return sm.Problem(sm.minimize(loss + sm.ridge(w, 1e-3)), sm.card(w) <= 5)

    there, here = posed(mapped(tmp_path, A)), posed(A)
    read = Readings(there)
    found = there.solve()
    assert found.value == pytest.approx(here.solve().value, rel=1e-9)
    assert read() <= 11.2
    certificate = there.certify()
    assert read() <= 6.1
    proof = there.prove()
    assert read() <= 4.1  # into memory, for all parts of the search
    assert proof.proof is not None
    assert proof.problem == certificate.problem
    verify(proof, here.form)
    before = os.stat(tmp_path / "A.bin")
    again = np.memmap(tmp_path / "A.bin", dtype=A.dtype, mode="r+", shape=A.shape)
    again[17, 4] += 1.0
    again.flush()
    os.utime(tmp_path / "A.bin", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert there.certify().problem.terms[0].design != proof.problem.terms[0].design


@pytest.mark.unrefereed("readings are counted, and the referee reads as well")
@pytest.mark.parametrize("ridge", [1e-5, 1e-3])
def test_columns_that_do_not_fit_cost_few_readings(tmp_path, ridge):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3000, 60))
    y = np.where(0.1 * A[:, :4].sum(axis=1) + rng.logistic(size=3000) > 0.0, 1.0, -1.0)

    def posed(data):
        w = sm.Variable(60)
        loss = sm.logistic_loss(data @ w + sm.Variable(), y)
        return sm.Problem(sm.minimize(loss + sm.ridge(w, 3000 * ridge)), sm.card(w) <= 4)

    design = ChunkedDesign(mapped(tmp_path, A), column_bytes=8 * 3000 * 12)
    there, here = posed(design), posed(A)
    assert there.solve().value == pytest.approx(here.solve().value, rel=1e-9)
    read = Readings(there)
    read()
    certificate, expected = there.certify(), here.certify()
    assert read() <= 31.0
    assert certificate.bound <= expected.value
    assert certificate.bound == pytest.approx(expected.bound, rel=1e-5)
    there.path(range(1, 5))
    assert read() <= 60.0


@pytest.mark.unrefereed("readings are counted, and the referee reads as well")
@pytest.mark.parametrize("loss", [sm.logistic_loss, sm.huber_loss])
def test_proofs_and_small_files_whose_columns_do_not_fit_cost_few_readings(tmp_path, loss):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2000, 20))
    signal = 0.5 * (A[:, :2].sum(axis=1) - A[:, 2:5].sum(axis=1))
    y = np.where(signal + rng.logistic(size=2000) > 0.0, 1.0, -1.0)

    def posed(data):
        w = sm.Variable(20)
        goal = sm.minimize(loss(data @ w + sm.Variable(), y) + sm.ridge(w, 1e-3))
        return sm.Problem(goal, sm.card(w) <= 5)

    there = posed(ChunkedDesign(mapped(tmp_path, A), column_bytes=8 * 2000))
    here, read = posed(A), Readings(there)
    assert there.solve().value == pytest.approx(here.solve().value, rel=1e-9)
    assert read() <= 35.0
    there.certify()
    assert read() <= 12.1
    proof, expected = there.prove(), here.prove()
    assert read() <= 90.0
    assert proof.claim is expected.claim
    assert proof.bound == pytest.approx(expected.bound, rel=2e-4)
    assert proof.bound <= expected.value


@pytest.mark.parametrize("order", ["C", "F"])
def test_single_precision_is_multiplied_in_double_where_that_is_asked_for(tmp_path, order):
    A = np.asarray(columns(), dtype=np.float32, order=order)
    np.save(tmp_path / "A.npy", A)
    design = ChunkedDesign(np.load(tmp_path / "A.npy", mmap_mode="r"), block_bytes=2**16)
    x, r = np.linspace(-1.0, 1.0, P), np.linspace(0.0, 1.0, N)
    exact = A.astype(float)
    np.testing.assert_allclose(design.matvec_in_double(x), exact @ x, atol=1e-11)
    np.testing.assert_allclose(design.rmatvec_in_double(r), exact.T @ r, rtol=1e-12, atol=1e-9)
