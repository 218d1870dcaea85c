"""A constant column beside an intercept takes nothing away from a fit, however it is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import sparsemodel as sm

LOSSES = {
    "squared": sm.squared_loss,
    "huber": sm.huber_loss,
    "absolute": sm.absolute_loss,
    "poisson": sm.poisson_loss,
    "gamma": sm.gamma_loss,
}


def limits(w: sm.Variable, kind: str) -> list[Any]:
    order = sm.chosen(w)[1:] <= sm.chosen(w)[0]
    return {
        "entries": [sm.card(w) <= 3],
        "groups": [sm.card(w, groups=[0, 1, 1]) <= 2],
        "order": [sm.card(w) <= 3, order],
        "costs": [np.ones(3) @ sm.chosen(w) <= 3],
    }[kind]


def data(n: int, value: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, 3))
    A[:, 1] = value  # the mean of many of them is another number
    return A, 1.0 + rng.poisson(1.5, n)


def assert_fitted(A: Any, plain: np.ndarray, y: np.ndarray, loss: str, kind: str) -> None:
    w, c = sm.Variable(3), sm.Variable()
    goal = sm.minimize(LOSSES[loss](A @ w + c, y))
    found = sm.Problem(goal, limits(w, kind)).solve()
    u, d = sm.Variable(2), sm.Variable()
    goal = sm.minimize(LOSSES[loss](plain[:, [0, 2]] @ u + d, y))
    assert found.value == pytest.approx(sm.Problem(goal, sm.card(u) <= 2).solve().value, rel=1e-7)
    assert np.abs(w.value).max() < 1e3 / plain[0, 1]


@pytest.mark.parametrize("kind", ["entries", "groups", "order", "costs"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n", "value"), [(7, 0.1), (12, 1e-4), (23, 0.3)])
def test_however_it_is_counted(n: int, value: float, loss: str, kind: str) -> None:
    A, y = data(n, value)
    assert_fitted(A, A, y, loss, kind)


@pytest.mark.parametrize("stored", ["sparse", "single", "operator", "file", "dask"])
@pytest.mark.parametrize("loss", ["squared", "huber", "poisson"])
@pytest.mark.parametrize(("n", "value"), [(7, 0.1), (12, 1e-4), (23, 0.3)])
def test_however_it_is_stored(n: int, value: float, loss: str, stored: str, tmp_path: Path) -> None:
    A, y = data(n, value)
    held: Any = A
    if stored == "file":
        held = np.memmap(tmp_path / "data", dtype=float, mode="w+", shape=A.shape)
        held[:] = A
    elif stored == "dask":
        held = pytest.importorskip("dask.array").from_array(A, chunks=(n // 2, 3))
    elif stored == "single":
        held = A.astype(np.float32)
        A = held.astype(float)
    elif stored == "operator":
        held = aslinearoperator(A)
    else:
        held = sp.csr_array(A)
    kind = "entries" if stored in ("file", "operator") else "groups"
    assert_fitted(sm.as_design(held), A, y, loss, kind)
