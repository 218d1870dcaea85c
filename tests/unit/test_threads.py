"""Threads of linear algebra: one in a run, several for large products, nothing left changed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - so that its library is there
from threadpoolctl import ThreadpoolController

import sparsemodel as sm
from sparsemodel.designs import DenseDesign
from sparsemodel.threads import config, cross_product, each, product, small_work

POOLS = ThreadpoolController().select(user_api="blas").lib_controllers


def counts():
    return [pool.get_num_threads() for pool in POOLS]


@pytest.fixture(autouse=True)
def two_threads():
    """Two threads whatever the environment says, and the environment again afterwards."""
    before = counts()
    for pool in POOLS:
        pool.set_num_threads(2)
    if counts() != [2] * len(POOLS):
        pytest.skip("the libraries were built for one thread")
    yield
    config.threads = None
    for pool, number in zip(POOLS, before, strict=True):
        pool.set_num_threads(number)


def test_a_run_has_one_thread_and_the_libraries_theirs_again():
    assert small_work()(counts)() == [1] * len(POOLS)
    assert counts() == [2] * len(POOLS)


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_products_are_the_same_on_any_number_of_threads(order):
    rng = np.random.default_rng(0)
    a = np.asarray(rng.standard_normal((2100, 2000)), order=order)
    assert a.size > 2**22
    at = []

    @small_work()
    def products(threads):
        config.threads = threads
        at.append(threading.active_count())
        return [product(a, x), product(a, X), product(a.T, r), product(a.T, R)]

    x, r, X, R = (rng.standard_normal(s) for s in (2000, 2100, (2000, 3), (2100, 3)))
    one, three, all_of_them = products(1), products(3), products(None)
    for i, exact in enumerate((a @ x, a @ X, a.T @ r, a.T @ R)):
        np.testing.assert_allclose(one[i], exact, rtol=0.0, atol=1e-11)
        np.testing.assert_array_equal(one[i], three[i])
        np.testing.assert_array_equal(one[i], all_of_them[i])
    assert len(set(at)) == 1  # none is left waiting


def test_a_long_product_is_the_same_in_strips_and_keeps_no_sum_of_each_part():
    rng = np.random.default_rng(0)
    a, r = rng.random((32, 280_000), dtype=np.float32), rng.random(32, dtype=np.float32)
    config.threads = 1

    @small_work()
    def peak():
        tracemalloc.start()
        found = product(a.T, r)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found, most

    found, most = peak()
    parts = sum(r[i : i + 8] @ a[i : i + 8] for i in range(0, 32, 8))
    np.testing.assert_allclose(found, parts, rtol=1e-6)
    assert most < 3 * found.nbytes


@pytest.mark.parametrize("shape", [(6000, 130), (700, 520)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_of_matrices_are_the_same_on_any_number_of_threads(order, shape):
    rng = np.random.default_rng(0)
    a = np.asarray(rng.standard_normal(shape), order=order)
    b = rng.standard_normal(shape)[:, ::-1]
    most = []

    @small_work()
    def products(threads):
        config.threads = threads
        design = DenseDesign(a.astype(np.float32))
        watch = lambda part: (most.append(threading.active_count()), part)[1]  # noqa: E731
        assert each(watch, range(9)) == list(range(9))
        weights = np.abs(b[:, 0])
        return [cross_product(a), cross_product(a, b), design.gram(), design.gram(weights)]

    one, two = products(1), products(2)
    single = a.astype(np.float32).astype(float)
    exact = (a.T @ a, a.T @ b, single.T @ single, (single.T * np.abs(b[:, 0])) @ single)
    for first, second, right in zip(one, two, exact, strict=True):
        np.testing.assert_array_equal(first, second)
        np.testing.assert_allclose(first, right, rtol=0.0, atol=1e-9)
    assert np.ptp(most) > 0  # threads were there


def test_a_part_of_a_product_stays_on_its_thread():
    config.threads = 2

    @small_work()
    def inside(_):
        return each(lambda _: threading.get_ident(), range(4))

    @small_work()
    def run():
        return each(inside, range(4))

    assert all(len(set(idents)) == 1 for idents in run())


@small_work()
@pytest.mark.filterwarnings("error")
def test_parts_of_a_product_ignore_what_the_caller_ignores():
    config.threads = 2
    a = np.full((2100, 2000), 1e200)
    with np.errstate(all="ignore"):
        assert np.all(np.isinf(product(a, np.full(2000, 1e200))))


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", True])
def test_a_wrong_setting_says_what_to_write(wrong):
    with pytest.raises(sm.ModelError, match=r"config\.threads = 1"):
        sm.config.threads = wrong
    assert sm.config.threads is None


def test_errors_and_nested_runs_leave_nothing_changed():
    @small_work()
    def fails():
        raise ValueError("wrong")

    @small_work()
    def outer():
        with pytest.raises(ValueError, match="wrong"):
            fails()
        return counts()

    assert outer() == [1] * len(POOLS)
    assert counts() == [2] * len(POOLS)


def test_runs_in_several_threads_end_with_what_was_there():
    begun, end = threading.Barrier(4), threading.Event()
    seen = []

    @small_work()
    def run():
        begun.wait()
        end.wait()
        seen.append(counts())

    workers = [threading.Thread(target=run) for _ in range(3)]
    for worker in workers:
        worker.start()
    begun.wait()
    end.set()
    for worker in workers:
        worker.join()
    assert len(seen) == 3
    assert counts() == [2] * len(POOLS)


@pytest.mark.parametrize("method", ["solve", "certify", "prove", "explain", "theory"])
def test_every_answer_leaves_the_libraries_as_they_were(method, rng, monkeypatch):
    A = rng.standard_normal((30, 8))
    w = sm.Variable(8)
    b = A[:, 0] - A[:, 1] + rng.standard_normal(30)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, 0.1)), sm.card(w) <= 2)
    seen = []
    original = np.linalg.cholesky
    monkeypatch.setattr(np.linalg, "cholesky", lambda *a: (seen.append(counts()), original(*a))[1])
    getattr(problem, method)()
    assert all(found == [1] * len(POOLS) for found in seen)
    assert counts() == [2] * len(POOLS)


def test_a_summary_has_one_thread_as_well(rng, monkeypatch):
    A, w, seen = rng.standard_normal((60, 4)), sm.Variable(4), []
    b = np.where(A[:, 0] + rng.standard_normal(60) > 0.0, 1.0, -1.0)
    solution = sm.Problem(sm.minimize(sm.logistic_loss(A @ w, b)), sm.card(w) <= 2).solve()
    original = np.linalg.inv
    monkeypatch.setattr(np.linalg, "inv", lambda *a: (seen.append(counts()), original(*a))[1])
    solution.summary()
    assert seen
    assert all(found == [1] * len(POOLS) for found in seen)
    assert counts() == [2] * len(POOLS)


def test_scipy_loaded_during_a_run_is_kept_to_one_thread_too():
    code = """
import sys, numpy as np
from sparsemodel.threads import keep_to_one, small_work
assert "scipy.linalg" not in sys.modules

@small_work()
def run():
    import scipy.linalg
    from threadpoolctl import ThreadpoolController
    keep_to_one()
    pools = ThreadpoolController().select(user_api="blas").lib_controllers
    return [pool.get_num_threads() for pool in pools]

assert set(run()) == {1}, run()
from threadpoolctl import ThreadpoolController
pools = ThreadpoolController().select(user_api="blas").lib_controllers
assert {pool.get_num_threads() for pool in pools} == {2}
"""
    environment = {"OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
