"""Threads of linear algebra: one in a run, all for large products, and nothing left changed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - so that its library is there
from threadpoolctl import ThreadpoolController

import sparsemodel as sm
from sparsemodel.threads import config, large_work, product, small_work

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


def test_a_run_has_one_thread_and_large_products_have_all():
    @small_work()
    def run():
        inside = counts()
        with large_work(operations=1e12):
            large = counts()
        with large_work(operations=10):
            small = counts()
        return inside, large, small, counts()

    one, two = [1] * len(POOLS), [2] * len(POOLS)
    assert run() == (one, two, one, one)
    assert counts() == two


def test_the_setting_bounds_large_products():
    config.threads = 1

    @small_work()
    def run():
        with large_work(operations=1e12):
            return counts()

    assert run() == [1] * len(POOLS)
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
    with large_work(operations=1e12):  # outside of any run: nothing of ours
        assert counts() == [2] * len(POOLS)


def test_runs_in_several_threads_end_with_what_was_there():
    begun, end = threading.Barrier(4), threading.Event()
    seen = []

    @small_work()
    def run():
        begun.wait()
        for _ in range(50):
            with large_work(operations=1e12):
                pass
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


def test_scipy_loaded_during_a_run_is_kept_to_one_thread_too():
    code = """
import sys, numpy as np
from sparsemodel.threads import large_work, small_work
assert "scipy.linalg" not in sys.modules

@small_work()
def run():
    import scipy.linalg
    from threadpoolctl import ThreadpoolController
    with large_work(operations=1):
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
