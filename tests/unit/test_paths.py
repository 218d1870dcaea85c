"""Paths along k: every loss and constraint, against brute force and single solves."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.datasets import load_khan

N, P = 40, 7
RNG = np.random.default_rng(12)
A = RNG.standard_normal((N, P))
B = A @ np.array([2.0, 0.0, -1.0, 0.0, 0.5, 0.0, 0.3]) + 0.4 * RNG.standard_normal(N)
Y = np.sign(B)

Write = Callable[[sm.Variable], tuple[Any, list[Any]]]

PROBLEMS: dict[str, Write] = {
    "squared": lambda w: (sm.squared_loss(A @ w, B), []),
    "absolute": lambda w: (sm.absolute_loss(A @ w, B), []),
    "quantile": lambda w: (sm.quantile_loss(A @ w, B, tau=0.8), []),
    "insensitive": lambda w: (sm.epsilon_insensitive_loss(A @ w, B, epsilon=0.2), []),
    "hinge": lambda w: (sm.hinge_loss(A @ w, Y) + sm.ridge(w, 0.05), []),
    "bounds": lambda w: (sm.squared_loss(A @ w, B), [w <= 0.8, w >= -0.8]),
    "signs": lambda w: (sm.logistic_loss(A @ w, Y) + sm.ridge(w, 0.05), [w >= 0]),
    "a sum": lambda w: (sm.squared_loss(A @ w, B), [w.sum() == 1]),
    "a sum and kinks": lambda w: (sm.absolute_loss(A @ w, B), [w.sum() <= 1, w >= 0]),
    "a ball": lambda w: (sm.huber_loss(A @ w, B), [sm.norm(w) <= 1.5]),
    "a 1-norm": lambda w: (sm.squared_loss(A @ w, B), [sm.norm(w, 1) <= 2.0]),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_paths_are_as_good_as_the_best_supports(name: str) -> None:
    w = sm.Variable(P, name="w")
    goal, constraints = PROBLEMS[name](w)
    problem = sm.Problem(sm.minimize(goal), sm.card(w) <= 3, constraints)
    slow = name in ("a sum and kinks", "a ball", "a 1-norm")
    path = problem.path(range(1, 4 if slow else P + 1))
    assert np.all(np.diff(path.objective) <= 0.0)
    for k in (1,) if name == "a 1-norm" else (1, 3) if slow else (1, 3, P):
        best = sm.Problem(sm.minimize(goal), sm.card(w) <= k, constraints).solve("exhaustive")
        assert path.objective[k - 1] >= best.value - 1e-7 * abs(best.value)
        assert path.objective[k - 1] == pytest.approx(best.value, rel=0.02)
    assert all(len(support) <= k for k, support in zip(path.k, path.support, strict=True))


def _wide(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.standard_normal((30, 20)), axis=1)  # neighbours look alike
    X /= X.std(axis=0)
    return X, X[:, [2, 9, 15]] @ [1.0, -1.5, 1.0] + rng.standard_normal(30)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["squared", "huber", "groups", "price", "two limits", "bounds"])
def test_a_path_is_as_good_as_a_solve_for_each_k(kind: str, seed: int) -> None:
    X, y = _wide(seed)
    w = sm.Variable(20, name="w")
    loss = sm.huber_loss(X @ w, y) if kind == "huber" else sm.squared_loss(X @ w, y)
    price = 0.05 if kind == "price" else 0.0
    goal = sm.minimize(loss + price * sm.card(w) if price else loss)
    card = sm.card(w, groups=np.arange(20) // 2) if kind == "groups" else sm.card(w)
    beside = {"two limits": [sm.card(w[:10]) <= 2], "bounds": [w >= -0.8, w <= 0.8]}.get(kind, [])
    ks = (2, 6)
    path = sm.Problem(goal, card <= 6, beside).path(ks)
    for k, value in zip(ks, path.objective, strict=True):
        assert value <= (1.0 + 1e-3) * sm.Problem(goal, card <= k, beside).solve().value


@pytest.mark.parametrize("outputs", [1, 2])
def test_sizes_that_are_searched_together_are_as_good_as_solves(outputs: int) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((25, 4)) @ rng.standard_normal((4, 90))  # four factors
    X += 0.4 * rng.standard_normal((25, 90))
    y = X[:, :6] @ rng.standard_normal((6, outputs)) + rng.standard_normal((25, outputs))
    w = sm.Variable((90, 2)) if outputs == 2 else sm.Variable(90)
    counted: dict[str, Any] = {"axis": 1} if outputs == 2 else {}
    goal = sm.minimize(sm.squared_loss(X @ w, y if outputs == 2 else y[:, 0]) + sm.ridge(w, 1e-2))
    ks = range(1, 8)
    path = sm.Problem(goal, sm.card(w, **counted) <= 7).path(ks)
    for k, value in zip(ks, path.objective, strict=True):
        assert value <= sm.Problem(goal, sm.card(w, **counted) <= k).solve().value * (1.0 + 1e-3)


def test_supports_that_only_together_say_much_are_found() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 5)) @ rng.standard_normal((5, 60))  # five factors
    X += 0.3 * rng.standard_normal((40, 60))
    y = X[:, :5] @ [1.0, -1.0, 1.0, -1.0, 1.0] + 0.5 * rng.standard_normal(40)
    w = sm.Variable(60)
    problem = sm.Problem(sm.minimize(sm.squared_loss(X @ w, y)), sm.card(w) <= 3)
    every = np.array(list(itertools.combinations(range(60), 3)))
    gram, c = X.T @ X, X.T @ y
    x = np.linalg.solve(gram[every[:, :, None], every[:, None, :]], c[every][:, :, None])
    best = every[np.argmax(np.sum(x[:, :, 0] * c[every], axis=1))]
    assert list(problem.solve().support) == list(best)
    assert list(problem.path(range(1, 5)).support[2]) == list(best)


def dictionary(seed: int, n: int, p: int) -> tuple[Any, Any]:
    """Return bumps that nearly depend on each other, and noise."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 1.0, n)[:, None]
    X = np.exp(-0.5 * ((t - rng.uniform(0.0, 1.0, p)) / rng.uniform(0.1, 0.4, p)) ** 2)
    return X, rng.standard_normal(n)


def test_columns_that_nearly_depend_on_each_other_do_not_keep_a_path_flat() -> None:
    X, y = dictionary(8, 40, 20)
    w = sm.Variable(20)
    problem = sm.Problem(sm.minimize(sm.squared_loss(X @ w, y)), sm.card(w) <= 7)
    path = problem.path(range(1, 8))
    assert path.objective[-1] <= (1 + 1e-6) * problem.solve().value
    assert np.all(np.diff(path.objective) < -1e-3)


RIDGES = [0.0, 0.05, 1.0]


def ridged() -> tuple[sm.Problem, sm.Variable]:
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.squared_loss(A @ w + c, B) + sm.ridge(w, 1.0))
    return sm.Problem(goal, sm.card(w) <= 2), w


def test_a_path_beside_equations_is_as_good_as_a_solve() -> None:
    (X, y), w = _wide(0), sm.Variable(20)
    goal, C = sm.minimize(sm.squared_loss(X @ w, y)), np.resize([1.0, -1.0, 2.0], (2, 20))
    problem = sm.Problem(goal, sm.card(w) <= 4, C @ w == np.array([0.5, 0.0]))
    assert problem.path([2, 4]).objective[1] <= (1.0 + 1e-3) * problem.solve().value


def test_exchanges_improve_paths_of_losses_with_kinks() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 30))
    X[:, 1:] += 1.2 * X[:, :-1]  # neighbours look alike
    y = X[:, [3, 9, 15, 21]] @ [1.0, -1.0, 1.0, 1.0] + rng.standard_normal(40)
    w = sm.Variable(30)
    goal = sm.minimize(sm.absolute_loss(X @ w, y) + sm.ridge(w, 1e-2))
    problem = sm.Problem(goal, sm.card(w) <= 3)
    searched, grown = problem.path([2, 3]), problem.path([2, 3], effort="low")
    assert searched.objective[0] < 0.99 * grown.objective[0]
    for k, value in zip([2, 3], searched.objective, strict=True):
        assert value <= sm.Problem(goal, sm.card(w) <= k).solve().value * (1.0 + 1e-3)


def test_k_and_ridge_together_are_the_best_of_every_pair() -> None:
    path = ridged()[0].path(range(4), ridges=RIDGES)
    assert path.objective.shape == (4, 3)
    for j, lam in enumerate(RIDGES):
        for i, k in enumerate(path.k):
            w, c = sm.Variable(P), sm.Variable()
            goal = sm.minimize(sm.squared_loss(A @ w + c, B) + sm.ridge(w, lam))
            best = sm.Problem(goal, sm.card(w) <= int(k)).solve("exhaustive")
            assert path.objective[i, j] == pytest.approx(best.value, rel=1e-9)
            assert list(path.support[i][j]) == list(best.support)
    assert str(path).count("\n") == 7
    assert "ridge 0.05" in str(path)
    assert path.at(2, 0.05).ridge == 0.05


def test_criteria_between_ridges_count_what_the_ridge_leaves() -> None:
    path = ridged()[0].path(range(P + 1), ridges=RIDGES)
    chosen = path.select("bic")
    X = np.column_stack([A, np.ones(N)])
    for i, j in np.ndindex(P + 1, 3):
        point = path.at(int(path.k[i]), RIDGES[j])
        here = [*point.support, P]
        gram = X[:, here].T @ X[:, here] / N
        lam = np.diag([RIDGES[j]] * int(path.k[i]) + [0.0])
        d = np.trace(gram @ np.linalg.inv(gram + lam))
        x = np.append(point.values["w"], point.values["c"])
        bic = N * np.log(np.mean(np.square(B - X @ x) / 2.0)) + d * np.log(N)
        assert chosen.scores[i, j] == pytest.approx(bic, rel=1e-9)
    place = np.unravel_index(np.argmin(chosen.scores), chosen.scores.shape)
    assert (chosen.k, chosen.ridge) == (path.k[place[0]], RIDGES[place[1]])


def test_cross_validation_chooses_the_ridge_too() -> None:
    folds = np.arange(N) % 3
    problem = ridged()[0]
    path = problem.path([0, 2, P], ridges=RIDGES)
    found = path.cross_validation(folds=folds)
    alone = problem.path([0, 2, P]).cross_validation(folds=folds)  # a ridge of 1
    np.testing.assert_allclose(found.losses[:, :, 2], alone.losses, rtol=1e-9)
    chosen = path.cross_validate(folds=folds)
    assert chosen.scores[found.place] == found.mean.min()
    assert chosen.ridge == RIDGES[found.place[1]]


def test_three_ridges_cost_at_most_three_paths() -> None:
    problem = ridged()[0]
    single = problem.path(range(P + 1))
    assert problem.path(range(P + 1), ridges=[0.01, 0.1, 1.0]).passes <= 3.0 * single.passes


def test_losses_with_kinks_follow_ridges() -> None:
    w = sm.Variable(P, name="w")
    goal = sm.minimize(sm.hinge_loss(A @ w, Y) + sm.ridge(w, 1.0))
    path = sm.Problem(goal, sm.card(w) <= 3).path([1, 3], ridges=[0.01, 0.5])
    for j, lam in enumerate([0.01, 0.5]):
        v = sm.Variable(P)
        other = sm.minimize(sm.hinge_loss(A @ v, Y) + sm.ridge(v, lam))
        best = sm.Problem(other, sm.card(v) <= 3).solve("exhaustive").value
        assert path.objective[1, j] == pytest.approx(best, rel=0.02)
    with pytest.raises(sm.ModelError, match="not a likelihood"):
        path.select()


@pytest.mark.parametrize("seed", [4, 5])
def test_objectives_fall_along_every_ridge_of_a_loss_with_kinks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((12, 20)), rng.integers(0, 3, 12).astype(float)
    w, c = sm.Variable(20), sm.Variable()
    goal = sm.minimize(sm.absolute_loss(X @ w + c, y) + sm.ridge(w, 1.0))
    path = sm.Problem(goal, sm.card(w) <= 1).path(
        [0, 1, 2, 3, 5, 8, 10], ridges=[1e-3, 0.1, 1.0], effort="low"
    )
    assert np.diff(path.objective, axis=0).max() <= 1e-9


def test_ridges_that_mean_nothing() -> None:
    problem, w = ridged()
    with pytest.raises(sm.ModelError, match=r"from 0 on"):
        problem.path([1], ridges=[-1.0])
    with pytest.raises(sm.ModelError, match=r"ridge = 3 is not on the path"):
        problem.path([1], ridges=[1.0]).at(1, 3)
    with pytest.raises(sm.ModelError, match=r"k = 2 is not on the path"):
        problem.path([1]).at(2)
    plain = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w) <= 2)
    with pytest.raises(sm.ModelError, match=r"add sm\.ridge\(w, 1\.0\)"):
        plain.path([1], ridges=[1.0])


def test_values_are_those_of_the_supports() -> None:
    w = sm.Variable(P, name="w")
    goal, _ = PROBLEMS["absolute"](w)
    problem = sm.Problem(sm.minimize(goal), sm.card(w) <= 3)
    path = problem.path(range(1, 5))
    for value, support in zip(path.objective, path.support, strict=True):
        assert value == pytest.approx(problem.restricted(support).solve(), rel=1e-6)


def test_sizes_without_a_feasible_point_say_so_and_the_others_are_there() -> None:
    w = sm.Variable(P, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, B))
    problem = sm.Problem(goal, sm.card(w) <= 3, w.sum() == 1, w >= 0, w <= 0.4)
    path = problem.path(range(3, P + 1))
    assert path.objective[0] == pytest.approx(problem.solve("exhaustive").value, rel=0.02)
    with pytest.warns(UserWarning, match="k = 1, 2: no solution. Infeasible by arithmetic"):
        longer = problem.path(range(1, P + 1))
    assert sorted(longer.refused) == [1, 2]
    np.testing.assert_allclose(longer.objective, path.objective, rtol=0.02)
    assert longer.cross_validation(folds=3).k >= 3
    with pytest.raises(sm.InfeasibleError, match="Infeasible by arithmetic"):
        problem.path(range(1, 3))


def test_sizes_that_no_arithmetic_refuses_have_an_infinite_objective() -> None:
    w = sm.Variable(P, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, B))
    tied = [w[0] == w[1], w[1] == w[2], w[0] >= 0.1]
    path = sm.Problem(goal, sm.card(w) <= 3, *tied).path(range(1, P + 1))
    assert path.objective[:2].tolist() == [np.inf, np.inf]
    assert np.isfinite(path.objective[2:]).all()
    assert path.support[0].size == 0
    assert "no feasible point" in str(path.at(2))
    assert path.select("bic").k >= 3


def test_no_size_with_few_supports_ends_above_a_solve_for_it() -> None:
    rng = np.random.default_rng(11)
    X = rng.standard_normal((6, 5))
    y = X @ [2.0, -1.0, 0.0, 0.0, 1.0] + rng.standard_normal(6)
    w, c, k = sm.Variable(5, name="w"), sm.Variable(name="c"), sm.Parameter(name="k")
    goal = sm.minimize(sm.huber_loss(X @ w + c, y) + sm.ridge(w, 0.1))
    problem = sm.Problem(goal, sm.card(w) <= k, w.sum() <= -0.5)
    path = problem.path(k, [1, 2, 3])
    for size in (1, 2, 3):
        k.value = size
        assert path.objective[size - 1] == pytest.approx(problem.solve().value, rel=1e-6)


def test_fifty_steps_cost_a_few_single_solves() -> None:
    X, classes = load_khan().X, load_khan().y
    y = (classes == classes[0]).astype(float)

    def problem(k: int) -> sm.Problem:
        w, c = sm.Variable(X.shape[1], name="w"), sm.Variable(name="c")
        goal = sm.minimize(sm.logistic_loss(X @ w + c, y) + sm.ridge(w, 1e-2))
        return sm.Problem(goal, sm.card(w) <= k)

    path = problem(5).path(range(1, 51), effort="low")
    one = problem(10).solve("gp > exchange")
    assert path.passes < 4.0 * one.passes
    assert path.objective[9] <= 1.01 * one.value


def test_sizes_with_many_local_optima_are_searched_as_a_solve_does() -> None:
    rng = np.random.default_rng(4)
    X, w = rng.standard_normal((40, 60)), sm.Variable(60)
    rng.random(40)
    goal = sm.minimize(sm.logistic_loss(X @ w, rng.standard_normal(40) > 0) + sm.ridge(w, 1e-2))
    path = sm.Problem(goal, sm.card(w) <= 6).path(range(1, 7))
    for k, value in zip(path.k, path.objective, strict=True):
        assert value <= sm.Problem(goal, sm.card(w) <= int(k)).solve().value * (1.0 + 1e-3)


def test_no_size_of_genes_costs_as_much_as_a_solve_for_it() -> None:
    data, w, c = load_khan(), sm.Variable(2308), sm.Variable()
    goal = sm.minimize(sm.logistic_loss(data.X @ w + c, data.y == 0) + sm.ridge(w, 1e-2))
    path = sm.Problem(goal, sm.card(w) <= 6).path(range(1, 7))
    alone = [sm.Problem(goal, sm.card(w) <= k).solve() for k in range(1, 7)]
    assert path.passes < 0.5 * sum(one.passes for one in alone)
    assert np.all(path.objective <= 1.001 * np.array([one.value for one in alone]))


def test_sizes_of_many_columns_are_gone_through_as_long_as_that_helps() -> None:
    rng = np.random.default_rng(3)
    X, w = rng.standard_normal((30, 1300)), sm.Variable(1300)
    goal = sm.minimize(sm.squared_loss(X @ w, rng.standard_normal(30)) + sm.ridge(w, 1e-2))
    path = sm.Problem(goal, sm.card(w) <= 8).path(range(2, 9))
    assert path.objective[1] <= 0.109, "0.121 when all sizes are gone through once"
