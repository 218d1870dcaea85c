"""Every loss and constraint of the language against brute force and CVXPY on small problems."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.cvx import restricted_problem

N, P, K = 30, 6, 2
LOSSES = {
    "squared": (sm.squared_loss, "real"),
    "huber": (sm.huber_loss, "real"),
    "absolute": (sm.absolute_loss, "real"),
    "quantile": (lambda u, y: sm.quantile_loss(u, y, tau=0.8), "real"),
    "insensitive": (lambda u, y: sm.epsilon_insensitive_loss(u, y, epsilon=0.2), "real"),
    "logistic": (sm.logistic_loss, "sign"),
    "hinge": (sm.hinge_loss, "sign"),
    "smoothed hinge": (sm.smoothed_hinge_loss, "sign"),
    "squared hinge": (sm.squared_hinge_loss, "sign"),
    "poisson": (sm.poisson_loss, "count"),
    "gamma": (sm.gamma_loss, "positive"),
}
CONSTRAINTS: dict[str, Callable[[sm.Variable], list[Any]]] = {
    "none": lambda w: [],
    "sign": lambda w: [w >= 0],
    "box": lambda w: [w >= -0.3, w <= 0.4],
    "forced": lambda w: [w[1] >= 0.2],
    "ball": lambda w: [sm.norm(w) <= 0.5],
    "centred ball": lambda w: [sm.norm(w[:4] - 0.2) <= 0.8],
    "budget": lambda w: [w.sum() == 0.5, w >= 0],
    "inequality": lambda w: [np.arange(6.0) @ w <= 0.3, w >= -1],
    "1-norm": lambda w: [sm.norm(w, 1) <= 0.6],
}


def data(kind: str, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, P))
    u = A @ np.array([1.0, 0.0, -0.8, 0.3, 0.0, 0.1])
    if kind == "real":
        return A, u + 0.4 * rng.standard_normal(N)
    if kind == "sign":
        return A, np.where(u + 0.8 * rng.standard_normal(N) > 0.0, 1.0, -1.0)
    if kind == "count":
        return A, rng.poisson(np.exp(0.7 * u)).astype(float)
    return A, np.exp(0.7 * u) * rng.gamma(3.0, size=N) / 3.0


def brute_force(problem: sm.Problem) -> float:
    """Return the minimum over all supports, each solved by CVXPY."""
    form = problem.form
    sparsity = form.sparsity
    best = np.inf
    for units in combinations(range(sparsity.units), min(sparsity.budget, sparsity.units)):
        support = sparsity.coordinates(np.array(units, dtype=np.intp))
        x = cp.Variable(support.size)
        reference = restricted_problem(form, support, x)
        reference.solve(solver=cp.CLARABEL)
        if reference.value is not None:
            best = min(best, float(reference.value))
    return best


def declared(loss: str, constraint: str, ridge: float = 0.05) -> tuple[sm.Problem, sm.Variable]:
    function, kind = LOSSES[loss]
    A, y = data(kind)
    w = sm.Variable(P, name="w")
    objective = function(A @ w, y) + sm.ridge(w, ridge)
    return sm.Problem(sm.minimize(objective), sm.card(w) <= K, CONSTRAINTS[constraint](w)), w


EVERYDAY = [(loss, "none") for loss in ("hinge", "quantile", "huber", "poisson")]
EVERYDAY += [("squared", name) for name in CONSTRAINTS if name not in ("none", "1-norm")]
EVERYDAY += [("hinge", "budget"), ("logistic", "ball"), ("squared", "1-norm")]
SLOW = [(loss, name) for loss in LOSSES for name in CONSTRAINTS if (loss, name) not in EVERYDAY]


def check(loss: str, constraint: str) -> None:
    problem, w = declared(loss, constraint)
    solution = problem.solve()
    assert solution.value == pytest.approx(brute_force(problem), rel=1e-6, abs=1e-7)
    assert np.count_nonzero(w.value) <= K
    assert solution.bound <= solution.value + 1e-9
    x = problem.layout.join(tuple(v.value for v in problem.variables))
    if problem.form.region is not None:
        assert problem.form.region.violation(x) <= 1e-6
    if problem.form.box is not None:
        assert np.all(x >= problem.form.box.lower - 1e-12)
        assert np.all(x <= problem.form.box.upper + 1e-12)


@pytest.mark.parametrize(("loss", "constraint"), EVERYDAY)
def test_brute_force(loss: str, constraint: str) -> None:
    check(loss, constraint)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "constraint"), SLOW)
def test_brute_force_on_every_combination(loss: str, constraint: str) -> None:
    check(loss, constraint)


@pytest.mark.parametrize(
    ("loss", "constraint"),
    [("squared", "sign"), ("squared", "budget"), ("hinge", "none"), ("hinge", "ball")],
)
def test_the_heuristic_is_feasible_and_close(loss: str, constraint: str) -> None:
    """Without the enumeration that small problems get."""
    problem, _ = declared(loss, constraint)
    solution = problem.solve("chtp")
    best = brute_force(problem)
    assert best - 1e-7 <= solution.value <= 1.1 * best + 1e-7


def test_price() -> None:
    A, y = data("real")
    w = sm.Variable(P, name="w")
    loss = sm.squared_loss(A @ w, y) + sm.ridge(w, 0.05)
    gamma = 0.03
    best = min(
        sm.Problem(sm.minimize(loss), sm.card(w) <= k).solve().value + gamma * k
        for k in range(P + 1)
    )
    priced = sm.Problem(sm.minimize(loss + gamma * sm.card(w)))
    assert priced.solve().value == pytest.approx(best, rel=1e-9)
    assert priced.solve("nhtp").value == pytest.approx(best, rel=0.05)
    assert priced.solve("nhtp").value >= best - 1e-9


def test_infeasible_and_separable_problems_are_recognised() -> None:
    A, y = data("real")
    w = sm.Variable(P, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, y))
    impossible: list[list[Any]] = [
        [w.sum() == 1, w.sum() == 2],
        [w >= 0, w.sum() <= -1],
        [w >= 0.1],
        [sm.norm(w) <= 0.1, w.sum() >= 5],
    ]
    for constraints in impossible:
        with pytest.raises(sm.InfeasibleError):
            sm.Problem(goal, sm.card(w) <= 2, constraints).solve()
    separable = sm.minimize(sm.logistic_loss(A @ w, A[:, 0] > 0))
    with pytest.raises(sm.SeparableDataError):
        sm.Problem(separable, sm.card(w) <= 1).solve()
    held = sm.Problem(separable, sm.card(w) <= 1, w <= 2, w >= -2)
    assert held.solve().indices.tolist() == [0]


def test_groups_rows_and_parts() -> None:
    A, y = data("real")
    w = sm.Variable(P, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, y) + sm.ridge(w, 0.05))
    groups = [0, 0, 1, 1, 2, 2]
    problem = sm.Problem(goal, sm.card(w, groups=groups) <= 1)
    assert problem.solve().value == pytest.approx(brute_force(problem), rel=1e-6)
    part = sm.Problem(goal, sm.card(w[2:]) <= 1)
    solution = part.solve()
    assert solution.value == pytest.approx(brute_force(part), rel=1e-6)
    assert np.all(w.value[:2] != 0.0)
    W = sm.Variable((P, 3), name="W")
    c = sm.Variable(3, name="c")
    classes = np.digitize(y, [-0.5, 0.5])
    rows = sm.Problem(
        sm.minimize(sm.multinomial_loss(A @ W + c, classes) + sm.ridge(W, 0.05)),
        sm.card(W, axis=1) <= 2,
    )
    assert rows.solve().indices.size == 2
    assert np.count_nonzero(np.any(W.value != 0.0, axis=1)) == 2


def test_several_data_sets_offsets_and_scales() -> None:
    A, y = data("real")
    B, z = data("sign", seed=4)
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    objective = (
        0.5 * sm.squared_loss(A @ w + c + 0.1, y, weights=np.arange(1.0, N + 1.0))
        + 2.0 * sm.logistic_loss(B @ w, z, reduction="sum") / N
        + sm.ridge(w, 0.05)
        + 3.0
    )
    problem = sm.Problem(sm.minimize(objective), sm.card(w) <= K)
    assert problem.solve().value == pytest.approx(brute_force(problem), rel=1e-6)
