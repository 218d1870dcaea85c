"""Time limits, on a clock that only products move: a second for one with all of the data.

So a limit is a number of products, the same on every machine however loaded it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import sparsemodel as sm
from sparsemodel.designs import DenseDesign, OperatorDesign

N, P, K = 40, 60, 4
LIMIT = 60.0
LONGEST = 1.1 * LIMIT + 24.0
"""Ten per cent, and what is always evaluated: the last point, and one bound at it."""

LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "squared": sm.squared_loss,
    "logistic": lambda u, y: sm.logistic_loss(u, np.sign(y)),
    "absolute": sm.absolute_loss,
    "hinge": lambda u, y: sm.hinge_loss(u, np.sign(y)),
    "poisson": lambda u, y: sm.poisson_loss(0.1 * u, np.round(np.abs(y))),
    "cox": lambda u, y: sm.cox_loss(u, np.column_stack([np.exp(y), np.ones(N)])),
}

CALLS: dict[str, Callable[[sm.Problem], Any]] = {
    "solve": lambda problem: problem.solve(time_limit=LIMIT),
    "path": lambda problem: problem.path(range(1, 20), sweeps=3, time_limit=LIMIT),
    "certify": lambda problem: problem.certify(time_limit=LIMIT),
    "prove": lambda problem: problem.prove(time_limit=LIMIT, gap=1e-9),
}


UNSEEN = {("cox", "prove"), ("squared", "certify"), ("squared", "prove")}
"""There is nothing to branch with, or the work is done on Gram matrices, without products."""


class ProductClock:
    """A clock that products move, by the share of the data that they read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        for name in ("matvec", "rmatvec"):
            monkeypatch.setattr(DenseDesign, name, self._counted(getattr(DenseDesign, name)))

    def _counted(self, multiply: Any) -> Any:
        def counted(design: Any, v: Any) -> Any:
            self.now += design.shape[0] * design.shape[1] / (N * P)
            return multiply(design, v)

        return counted


def problem(loss: str) -> sm.Problem:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, P)) + 0.5 * rng.standard_normal((N, 1))
    y = A[:, :K].sum(axis=1) + rng.standard_normal(N)
    w = sm.Variable(P)
    return sm.Problem(sm.minimize(LOSSES[loss](A @ w, y) + sm.ridge(w, 1e-3)), sm.card(w) <= K)


@pytest.mark.unrefereed("the referee's own products would move the clock")
@pytest.mark.parametrize(("loss", "call"), [c for c in product(LOSSES, CALLS) if c not in UNSEEN])
def test_no_more_products_than_the_limit_allows(
    monkeypatch: pytest.MonkeyPatch, loss: str, call: str
) -> None:
    posed = problem(loss)
    clock = ProductClock(monkeypatch)
    CALLS[call](posed)
    assert clock.now <= LONGEST


@pytest.mark.unrefereed("the referee's own products would move the clock")
@pytest.mark.parametrize("call", ["solve", "certify", "prove"])
@pytest.mark.parametrize("rows", [40, 700])
def test_an_operator_is_never_read_column_by_column(
    monkeypatch: pytest.MonkeyPatch, call: str, rows: int
) -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((rows, 500))
    w = sm.Variable(500)
    y = A[:, 0] + rng.standard_normal(rows)
    loss = sm.squared_loss(sm.as_design(aslinearoperator(A)) @ w, y)
    posed = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 3)
    now = [0.0]
    one = OperatorDesign._one

    def counted(*arguments: Any) -> Any:
        now[0] += 1.0
        return one(*arguments)

    monkeypatch.setattr(OperatorDesign, "_one", counted)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    CALLS[call](posed)
    # A proof evaluates the bounds of its search and of its root: as much again as a certificate.
    assert now[0] <= LONGEST + (48.0 if call == "prove" else 24.0)
