"""How often workers are asked for something, each time a trip over a network."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemodel as sm

da = pytest.importorskip("dask.array")

from sparsemodel.designs.elsewhere import columns, workers  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def trips(monkeypatch) -> list[int]:
    """Return a list that grows with every trip; no column of an array is small enough to come."""
    monkeypatch.setattr(columns, "KEPT_BYTES", 0)
    calls: list[int] = []
    original = workers._again
    monkeypatch.setattr(workers, "_again", lambda *a: (calls.append(1), original(*a))[1])
    return calls


def declared(design, target, loss, k):
    w = sm.Variable(design.shape[1])
    goal = sm.minimize(loss(sm.as_design(design) @ w, target) + sm.ridge(w, 1e-3))
    return sm.Problem(goal, sm.card(w) <= k)


def data(rows, features, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, features))
    return A, A[:, :6] @ rng.uniform(0.3, 1.5, 6) + 2.0 * rng.standard_normal(rows)


@pytest.mark.unrefereed("calls of workers are counted, and the referee calls as well")
def test_a_search_asks_for_what_comes_next_in_one_trip(trips):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 20)) * rng.uniform(0.2, 5.0, 20) + 1.0
    b = A[:, [2, 7, 11]] @ [1.0, -2.0, 1.5] + rng.standard_normal(200)
    near, far = (
        declared(design, np.where(b > 0.0, 1.0, -1.0), sm.logistic_loss, 3)
        for design in (A, da.from_array(A, chunks=(64, 20)))
    )
    assert far.solve().value == pytest.approx(near.solve().value, rel=1e-9)
    assert len(trips) <= 45


@pytest.mark.unrefereed("calls of workers are counted, and the referee calls as well")
@pytest.mark.parametrize("loss", [sm.logistic_loss, sm.poisson_loss])
def test_a_path_takes_few_trips_for_each_size(loss, trips):
    A, b = data(900, 80)
    counts = np.random.default_rng(1).poisson(np.exp(np.clip(0.3 * b, -3.0, 3.0)))
    target = np.where(b > 0.0, 1.0, -1.0) if loss is sm.logistic_loss else counts
    near, far = (
        declared(design, target, loss, 7) for design in (A, da.from_array(A, chunks=(300, 80)))
    )
    paths = far.path(range(1, 8)).objective, near.path(range(1, 8)).objective
    np.testing.assert_allclose(*paths, rtol=1e-9)
    assert len(trips) <= 52 * 7
