"""Trying every support by blocks of the Hessian finds what minimising on each of them finds."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import Context, Limits, Point
from sparsemodel.numerics import RegressionObjective, minimise_restricted
from sparsemodel_backends.exhaustive import Exhaustive

P, N = 9, 40


def data(structure: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((N, P))
    if structure == "powers":
        A = np.linspace(0.0, 1.0, N)[:, None] ** np.arange(1, P + 1)
    if structure == "dependent":
        A[:, 5], A[:, 6], A[:, 7] = A[:, 4], 0.0, A[:, 1] - 2.0 * A[:, 2]
    if structure == "nearly dependent":
        A[:, 1] = A[:, 0] + 1e-6 * A[:, 1]
    b = A[:, :3] @ [1.0, -2.0, 3.0] + 0.1 * rng.standard_normal(N)
    if structure == "nearly dependent":
        b = b + 1e6 * (A[:, 1] - A[:, 0]) + 0.85 * A[:, 4]
    if structure == "scales":
        A, b = A * np.geomspace(1e-60, 1e60, P), b * 1e40
    if structure == "wide":
        A, b = A[:5], b[:5]
    return A, b


def least(A: np.ndarray, b: np.ndarray, k: int, ridge: float, price: float) -> float:
    """Return the least objective over all supports, each by a least-squares solver of its own."""
    values = []
    for size in range(k + 1):
        for chosen in combinations(range(P), size):
            columns = np.column_stack([np.ones(len(b)), A[:, list(chosen)]])
            units = np.linalg.norm(columns, axis=0)
            units[units == 0.0] = 1.0
            columns = columns / units
            penalty = np.diag(np.sqrt(ridge * len(b)) / units)
            penalty[0] = 0.0
            full, target = np.vstack([columns, penalty]), np.append(b, np.zeros(size + 1))
            x = np.linalg.lstsq(full, target, rcond=None)[0]
            values.append(0.5 * np.sum((full @ x - target) ** 2) / len(b) + price * size)
    return min(values)


@pytest.mark.parametrize(("ridge", "price"), [(0.0, 0.0), (1e-3, 0.0), (0.0, 0.1)])
@pytest.mark.parametrize(
    "structure", ["plain", "powers", "dependent", "nearly dependent", "scales", "wide"]
)
def test_blocks_judge_supports_as_minimisations_do(
    structure: str, ridge: float, price: float
) -> None:
    if structure == "scales" and (ridge or price):
        pytest.skip("a ridge of that size decides which columns are there")
    A, b = data(structure)
    k = P if price else 3
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    goal = sm.squared_loss(A @ w + c, b)
    if ridge:
        goal = goal + sm.ridge(w, ridge)
    if price:
        goal = goal + price * sm.card(w)
    problem = sm.Problem(sm.minimize(goal), *([] if price else [sm.card(w) <= k]))
    found = problem.solve("exhaustive")
    size = 0.5 * float(np.mean(b**2))
    assert found.value == pytest.approx(least(A, b, k, ridge, price), rel=1e-6, abs=1e-12 * size)


def test_few_supports_are_minimised_on() -> None:
    A, b = data("plain")
    w = sm.Variable(P, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 3)
    objective, looked_at = RegressionObjective(problem.form), []

    def restricted(*given: Any, **options: Any) -> Point:
        looked_at.append(given[1])
        return minimise_restricted(*given, **options)

    for limit, watched, most in ((None, False, 8), (None, True, 8), (10**6, False, 84)):
        looked_at.clear()
        on_iterate = (lambda event: False) if watched else None
        context = Context(
            restricted, Limits(limit, None), np.random.default_rng(0), None, on_iterate
        )
        found = Exhaustive().solve(objective, context)
        assert found.iterations == 84
        assert found.point.support.tolist() == [0, 1, 2]
        assert len(looked_at) <= most
    assert len(looked_at) == 84


def test_supports_that_tie_have_numbers_of_their_own() -> None:
    A, b = data("plain")
    A[:, 3] = A[:, 0]
    w = sm.Variable(P, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 3)
    seen: list[int] = []
    context = Context(minimise_restricted, on_iterate=lambda event: bool(seen.append(event.index)))
    Exhaustive().solve(RegressionObjective(problem.form), context)
    assert len(seen) > 1
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", [sm.logistic_loss, sm.poisson_loss, sm.huber_loss])
def test_fits_of_many_supports_find_what_single_ones_find(loss: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, 7)) * 10.0 ** rng.uniform(-2.0, 2.0, 7)
    A[:, 6] = A[:, 5] if seed % 2 else 0.0
    z = A @ (rng.standard_normal(7) / np.abs(A).max(axis=0, initial=1e-300))
    targets = {"logistic_loss": np.sign(z + rng.standard_normal(30)), "huber_loss": z}
    b, c = targets.get(loss.__name__, np.rint(np.exp(z / 2.0))), sm.Variable(name="c")
    w = sm.Variable(7, name="w")
    goal = loss(A @ w + c, b, weights=1.0 + rng.random(30)) + sm.ridge(w, 1e-6 * (seed // 2))
    problem = sm.Problem(sm.minimize(goal), sm.card(w) <= 3)
    objective, looked_at = RegressionObjective(problem.form), []

    def restricted(*given: Any, **options: Any) -> Point:
        looked_at.append(given[1])
        return minimise_restricted(*given, **options)

    values = []
    for limit in (None, 10**6):
        looked_at.clear()
        context = Context(restricted, Limits(limit, None), rng)
        values.append(Exhaustive().solve(objective, context).point.value)
        assert len(looked_at) == 35 if limit else len(looked_at) <= 24
    assert values[0] == pytest.approx(values[1], rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("loss", "link"), [(sm.poisson_loss, "sqrt"), (sm.gamma_loss, "inverse")])
def test_fits_far_from_their_minimum_are_not_given_up(loss: Any, link: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, groups = np.abs(rng.standard_normal((20, 6))), [0, 0, 1, 2, 2, 2]
    b = rng.poisson(3.0 + A[:, 3]) + 1.0
    w, c = sm.Variable(6), sm.Variable()
    goal = loss(A @ w + c, b, link=link) + sm.ridge(w, 1e-3)
    problem = sm.Problem(sm.minimize(goal), sm.card(w, groups=groups) <= 2)
    singles = [
        sm.Problem(sm.minimize(goal), w[[j for j in range(6) if groups[j] == out]] == 0).solve()
        for out in range(3)
    ]
    best = min(one.value for one in singles)
    assert problem.solve("exhaustive").value == pytest.approx(best, rel=1e-9)


def test_more_supports_are_tried_where_many_are_fitted_at_a_time() -> None:
    A, w = np.random.default_rng(0).standard_normal((60, 12)), sm.Variable(12)
    for loss, backend in ((sm.logistic_loss, "exhaustive"), (sm.hinge_loss, "exchange")):
        problem = sm.Problem(sm.minimize(loss(A @ w, np.sign(A[:, 0]))), sm.card(w) <= 3)
        assert problem.plan().outline == backend  # of 220 supports


def test_a_limit_on_supports_is_kept() -> None:
    A, b = data("plain")
    w = sm.Variable(P, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 3)
    assert problem.solve("exhaustive", max_iter=5).iterations == 5


@pytest.mark.parametrize("grouped", [False, True])
def test_all_supports_count_though_large_ones_are_not_worth_their_price(grouped: bool) -> None:
    A, b = data("plain")
    w = sm.Variable(P, name="w")
    counted = sm.card(w, groups=np.arange(P) // 2) if grouped else sm.card(w)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b) + 0.7 * counted))
    by_blocks = problem.solve("exhaustive")
    one_by_one = problem.solve("exhaustive", max_iter=10**6)
    assert by_blocks.value == pytest.approx(one_by_one.value, rel=1e-12)
    assert by_blocks.iterations == one_by_one.iterations == 2 ** (5 if grouped else 9)


def test_one_support_and_one_backend_are_said_in_the_singular():
    w = sm.Variable(2, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(np.eye(3)[:, :2] @ w, np.ones(3))))
    assert "there is only one support" in str(problem.explain())
