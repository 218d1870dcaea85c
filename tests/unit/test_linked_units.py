"""Units that constraints link: starts from what is convex, units searched together, feasibility."""

from __future__ import annotations

import itertools
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates.proving.neighbourhood import best_within
from sparsemodel.compiler.services import objective_of, restricted_of
from sparsemodel.interfaces import FloatArray, NotSolvedError
from sparsemodel.numerics.minimisers.convex_starts import ConvexStarts
from sparsemodel.numerics.minimisers.feasible_supports import feasible_support

P = 9


def tied(seed: int, sign: float, p: int = 30, k: int = 5) -> tuple[FloatArray, FloatArray]:
    """Return data of which two entries of the model have one size."""
    rng = np.random.default_rng(seed)
    A, truth = rng.standard_normal((80, p)), np.zeros(p)
    truth[[1, 2]] = 2.0, 2.0 * sign
    truth[5 : 5 + k - 2] = 1.0
    return A, A @ truth + 0.3 * rng.standard_normal(80)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "absolute"])
def test_entries_that_are_tied_enter_together(loss: str, sign: float) -> None:
    A, y = tied(3, sign)
    losses: dict[str, Any] = {
        "squared": sm.squared_loss,
        "huber": sm.huber_loss,
        "logistic": sm.logistic_loss,
        "absolute": sm.absolute_loss,
    }
    y = np.sign(y) if loss == "logistic" else y
    w = sm.Variable(30, name="w")
    goal = sm.minimize(losses[loss](A @ w, y) + sm.ridge(w, 1e-2))
    problem = sm.Problem(goal, sm.card(w) <= 5, w[1] == sign * w[2])
    found = problem.solve()
    assert {1, 2} <= set(found.indices.tolist())
    assert found.value <= problem.restricted([1, 2, 5, 6, 7]).solve() * (1.0 + 1e-6)


def test_sums_of_zero_within_groups_are_found() -> None:
    rng = np.random.default_rng(5)
    A, truth = rng.standard_normal((150, 100)), np.zeros(100)
    truth[[0, 3, 20, 22, 61, 64]] = 1.5, -1.5, 1.0, -1.0, 2.0, -2.0
    y = A @ truth + 0.3 * rng.standard_normal(150)
    w = sm.Variable(100, name="w")
    sums = [w[first : first + 5].sum() == 0.0 for first in range(0, 100, 5)]
    found = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 6, sums).solve()
    assert found.indices.tolist() == [0, 3, 20, 22, 61, 64]


def returns(seed: int) -> tuple[FloatArray, FloatArray]:
    """Return returns of assets, and weights that are held of each."""
    rng = np.random.default_rng(seed)
    B = 0.6 * rng.standard_normal((P, 3)) + np.array([1.0, 0.0, 0.0])
    R = rng.standard_normal((60, 3)) @ B.T + rng.standard_normal((60, P))
    return R, rng.dirichlet(np.full(P, 0.7))


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", range(2))
def test_limits_about_a_dense_point_are_those_of_all_supports(seed: int, order: int) -> None:
    R, held = returns(seed)
    index, k = R @ held, 3
    best = np.inf
    distances: list[float] = []
    x = cp.Variable(P, nonneg=True)
    off, most = cp.Parameter(P), cp.Parameter(nonneg=True)
    far = cp.norm(x - held, order)
    inside = [cp.sum(x) == 1.0, cp.multiply(off, x) == 0.0]
    nearest = cp.Problem(cp.Minimize(far), inside)
    supports = list(itertools.combinations(range(P), k))
    for support in supports:
        off.value = np.ones(P)
        off.value[list(support)] = 0.0
        distances.append(float(nearest.solve(solver="CLARABEL")))
    most.value = float(np.sort(distances)[4])  # four supports are feasible, or five
    fit = cp.Problem(cp.Minimize(cp.sum_squares(R @ x - index) / 120.0), [*inside, far <= most])
    for support in (supports[i] for i in np.argsort(distances)[:5]):
        off.value = np.ones(P)
        off.value[list(support)] = 0.0
        fit.solve(solver="CLARABEL")
        best = min(best, float(fit.value) if fit.status == "optimal" else np.inf)
    w = sm.Variable(P, name="w")
    goal = sm.minimize(sm.squared_loss(R @ w, index))
    base = [w.sum() == 1.0, w >= 0.0, sm.card(w) <= k]
    problem = sm.Problem(goal, base, sm.norm(w - held, order) <= most.value * 1.0001)
    assert problem.solve().value <= best * 1.001
    with pytest.raises(sm.InfeasibleError, match="with at most 3 nonzero entries satisfies"):
        sm.Problem(goal, base, sm.norm(w - held, order) <= 0.99 * min(distances)).solve()


def test_constraints_that_exclude_each_other_are_told_from_too_few_entries() -> None:
    w = sm.Variable(P, name="w")
    goal = sm.minimize(sm.squared_loss(np.eye(P) @ w, np.ones(P)))
    excluded = sm.Problem(goal, sm.card(w) <= 3, w.sum() == 5.0, sm.norm(w) <= 1.0)
    with pytest.raises(sm.InfeasibleError, match="any number of nonzero entries"):
        excluded.solve()
    few = sm.Problem(goal, sm.card(w) <= 3, w.sum() == 5.0, sm.norm(w) <= 2.5)
    with pytest.raises(sm.InfeasibleError, match="at most 3 nonzero entries satisfies"):
        few.solve()
    enough = sm.Problem(goal, sm.card(w) <= 4, w.sum() == 5.0, sm.norm(w) <= 2.51)
    assert enough.solve().indices.size == 4  # 5 / sqrt(k) is the least norm


def test_what_is_not_proved_is_not_called_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    from sparsemodel.numerics.minimisers import feasible_supports

    rng = np.random.default_rng(0)
    w, rows = sm.Variable(40, name="w"), rng.standard_normal((4, 40))
    goal = sm.minimize(sm.squared_loss(np.eye(40) @ w, np.ones(40)))
    problem = sm.Problem(goal, sm.card(w) <= 3, rows @ w == np.ones(4))
    monkeypatch.setattr(feasible_supports, "TOO_LONG", 0.0)
    with pytest.raises(NotSolvedError, match="it is not known whether there is one"):
        problem.solve()


@pytest.mark.parametrize("seed", range(8))
def test_feasibility_is_that_of_all_supports(seed: int) -> None:
    """Equations of integers in bounds: some seeds have a support of two, some have none."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    rows, total = rng.integers(-2, 3, (2, 8)).astype(float), rng.integers(1, 4, 2).astype(float)
    w = sm.Variable(8, name="w")
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(np.eye(8) @ w, np.zeros(8))),
        [sm.card(w) <= 2, rows @ w == total, w >= -1.0, w <= 1.0],
    )
    some = any(
        linprog(np.zeros(2), A_eq=rows[:, pair], b_eq=total, bounds=(-1.0, 1.0)).status == 0
        for pair in itertools.combinations(range(8), 2)
    )
    form = problem.form
    objective, restricted = objective_of(form), restricted_of(form)
    decision = feasible_support(objective, restricted, None)
    assert (decision.point is not None) == some
    assert bool(decision.impossible) != some
    if some:
        problem.solve()
    else:
        with pytest.raises(sm.InfeasibleError):
            problem.solve()


def test_starts_are_feasible_and_units_near_a_point_hold_its_own_and_those_tied_to_others() -> None:
    A, y = tied(0, 1.0)
    w = sm.Variable(30, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, y))
    form = sm.Problem(goal, sm.card(w) <= 5, w[1] == w[2]).form
    objective, restricted = objective_of(form), restricted_of(form)
    convex = ConvexStarts(objective, restricted)
    for start in convex.points():
        assert start.support.size <= 5
        assert form.region is not None
        assert form.region.violation(start.x) <= 1e-9
    point = restricted(objective, np.array([10, 11]), objective.origin())
    near = convex.linked(objective, point)
    assert {1, 2, 10, 11} <= set(near.tolist())
    better = best_within(form, point.x, near)
    assert better is not None
    assert np.flatnonzero(better).tolist() == [1, 2, 5, 6, 7]


def test_regions_on_some_coordinates_are_those_of_points_that_are_zero_elsewhere() -> None:
    rng = np.random.default_rng(1)
    w, center = sm.Variable(8, name="w"), rng.standard_normal(8)
    F = rng.standard_normal((3, 8))
    form = sm.Problem(
        sm.minimize(sm.squared_loss(np.eye(8) @ w, np.ones(8))),
        [sm.card(w) <= 4, F @ w <= 1.0, sm.norm(w - center) <= 2.5],
        [sm.norm(F @ w - 0.3) <= 2.0, sm.norm(w[2:] - center[2:], 1) <= 4.0],
    ).form
    coordinates = np.array([0, 2, 5, 6])
    assert form.region is not None
    small = form.region.on(coordinates)
    for _ in range(200):
        x = np.zeros(8)
        x[coordinates] = rng.standard_normal(4) * rng.choice((0.2, 1.0))
        inside = form.region.violation(x) <= 1e-12
        assert inside == (small is not None and small.violation(x[coordinates]) <= 1e-12)


def test_reading_a_status_takes_no_longer_than_the_solve_did() -> None:
    import time

    rng = np.random.default_rng(40)
    R = 0.01 * (rng.standard_normal((250, 1)) + rng.standard_normal((250, 40)))
    w = sm.Variable(40, name="w")
    goal = sm.minimize(1e4 * sm.squared_loss(R @ w, np.zeros(250)))
    problem = sm.Problem(goal, [w.sum() == 1.0, w >= 0.0, R.mean(0) @ w >= 0.0, sm.card(w) <= 5])
    _ = sm.Problem(goal, sm.card(w) <= 1).solve().status  # what is imported once
    solution = problem.solve()
    began = time.perf_counter()
    assert solution.status in ("solved", "optimal (proved)")
    assert time.perf_counter() - began <= 1.5 * max(solution.timings["total"], 0.1) + 0.5
