"""A price on the cardinality: as good as brute force, for the work of a path."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import Context
from sparsemodel.numerics import RegressionObjective, minimise_on_support
from sparsemodel_backends.local_search import LocalSearch


def data(seed: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p))
    A += 0.7 * A[:, [0]]
    return A, A[:, :4] @ rng.standard_normal(4) + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize("price", [0.2, 0.02])
@pytest.mark.parametrize("seed", range(4))
def test_against_all_supports(seed: int, price: float) -> None:
    A, b = data(seed, 20, 8)
    least = 0.5 * b @ b / 20
    for k in range(1, 9):
        for chosen in combinations(range(8), k):
            columns = A[:, list(chosen)]
            r = b - columns @ np.linalg.lstsq(columns, b, rcond=None)[0]
            least = min(least, 0.5 * r @ r / 20 + price * k)
    for backend in (None, "grahtp"):
        w = sm.Variable(8, name="w")
        problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b) + price * sm.card(w)))
        assert problem.solve(backend).value == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize(
    "loss",
    [
        sm.squared_loss,
        pytest.param(sm.huber_loss, marks=pytest.mark.slow),
        sm.logistic_loss,
        sm.absolute_loss,
    ],
)
def test_a_price_costs_about_a_path(loss: Callable[..., object]) -> None:
    n, p = (30, 8) if loss is sm.absolute_loss else (100, 30)
    A, b = data(1, n, p)
    y = np.sign(b) if loss is sm.logistic_loss else b
    w = sm.Variable(p, name="w")
    fit = loss(A @ w, y) + sm.ridge(w, 0.01)
    path = sm.Problem(sm.minimize(fit), sm.card(w) <= 1).path(range(p + 1))
    for price in (0.3, 0.05, 0.01):
        priced = sm.Problem(sm.minimize(fit + price * sm.card(w))).solve()
        assert priced.value <= np.min(path.objective + price * path.k) * (1 + 1e-9)
        # Paths of losses with kinks end as they were climbed; a solve searches on from there.
        if loss is not sm.absolute_loss:
            assert priced.passes <= 2.5 * path.passes


def test_adapters_around_each_other_are_explained() -> None:
    A, b = data(1, 40, 8)
    w = sm.Variable(8, name="w")
    goal = sm.absolute_loss(A @ w, b) + sm.ridge(w, 0.01) + 0.05 * sm.card(w)
    assert "exchange" in sm.Problem(sm.minimize(goal)).explain()


def test_a_price_with_constraints_and_kinks() -> None:
    A, b = data(2, 30, 5)
    w = sm.Variable(5, name="w")
    fit = sm.absolute_loss(A @ w, b) + sm.ridge(w, 0.01)
    limits = [w.sum() <= 1, w <= 1]
    priced = sm.Problem(sm.minimize(fit + 0.05 * sm.card(w)), limits).solve()
    bests = [
        sm.Problem(sm.minimize(fit), sm.card(w) <= k, limits).solve("exhaustive").value + 0.05 * k
        for k in range(6)
    ]
    assert priced.value == pytest.approx(min(bests), rel=1e-7)


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.logistic_loss])
@pytest.mark.parametrize("price", [0.2, 0.02, 0.002])
@pytest.mark.parametrize("full", [False, True])
def test_local_search_keeps_what_is_worth_its_price_alone(
    loss: Callable[..., object], price: float, full: bool
) -> None:
    A, b = data(5, 60, 12)
    y = np.sign(b) if loss is sm.logistic_loss else b
    w = sm.Variable(12, name="w")
    problem = sm.Problem(sm.minimize(loss(A @ w, y) + sm.ridge(w, 0.01) + price * sm.card(w)))
    objective = RegressionObjective(problem.form)
    start = np.ones(12) if full else None
    found = LocalSearch().solve(objective, Context(minimise_on_support, start=start)).point

    def value_of(support: np.ndarray) -> float:
        return minimise_on_support(objective, support, found).value + price * support.size

    least = min(value_of(np.setxor1d(found.support, [j])) for j in range(12))
    assert value_of(found.support) <= least + 1e-9  # neither one unit more nor one less


def test_a_path_charges_the_price_that_was_declared() -> None:
    A, b = data(2, 60, 6)
    w = sm.Variable(6, name="w")
    fit = sm.squared_loss(A @ w, b) + sm.ridge(w, 0.01)
    for price in (1e-3, 0.05, 0.5):
        path = sm.Problem(sm.minimize(fit + price * sm.card(w)), sm.card(w) <= 1).path(range(7))
        for k, value in zip(path.k, path.objective, strict=True):
            alone = sm.Problem(sm.minimize(fit + price * sm.card(w)), sm.card(w) <= int(k))
            assert value == pytest.approx(alone.solve("exhaustive").value, rel=1e-7)


@pytest.mark.parametrize(
    ("rows", "columns", "units", "price", "seed"),
    [(120, 60, 6, 0.002, 43), (120, 60, 6, 0.005, 46), (60, 120, 8, 0.01, 49)],
)
def test_a_price_is_no_worse_than_limits_on_the_sizes_beside(
    rows: int, columns: int, units: int, price: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((rows, columns))
    A = noise.copy()
    for j in range(1, columns):
        A[:, j] = 0.9 * A[:, j - 1] + np.sqrt(0.19) * noise[:, j]
    truth = np.zeros(columns)
    truth[rng.choice(columns, units, False)] = rng.standard_normal(units)
    w = sm.Variable(columns)
    loss = sm.squared_loss(A @ w - (A @ truth + 0.5 * rng.standard_normal(rows)))
    goal = loss + sm.ridge(w, 1e-2)
    priced = sm.Problem(sm.minimize(goal + price * sm.card(w))).solve()
    size = np.count_nonzero(w.value)
    for k in range(size - 3, size + 4):
        limited = sm.Problem(sm.minimize(goal), sm.card(w) <= k).solve()
        held = limited.value + price * np.count_nonzero(w.value)
        assert priced.value <= held * (1.0 + 1e-9)
