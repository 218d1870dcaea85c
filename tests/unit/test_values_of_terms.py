"""The value of every term of a model is what it adds to the objective of a solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsemodel as sm

RNG = np.random.default_rng(5)
A = RNG.standard_normal((24, 6))
B = A[:, 0] - A[:, 3] + 0.3 * RNG.standard_normal(24)
SIGNS, COUNTS, C = np.sign(B), RNG.poisson(2.0, 24).astype(float), RNG.uniform(0.5, 2.0, 24)

GOALS: dict[str, Any] = {
    "weighted squares": lambda w: sm.squared_loss(A @ w + 0.5, B, weights=C),
    "logistic": lambda w: 2.0 * sm.logistic_loss(A @ w, SIGNS) + sm.ridge(w, 0.3),
    "Poisson, summed": lambda w: sm.poisson_loss(A @ w, COUNTS, reduction="sum") + 1.5,
    "ridges of their own": lambda w: sm.huber_loss(A @ w, B) + sm.ridge(w, np.arange(1.0, 7.0)),
    "price and norm": lambda w: (
        sm.squared_loss(A @ w, B) + 0.01 * sm.card(w) + 0.02 * sm.norm(w, 1) - B[:6] @ w
    ),
    "parameter": lambda w: sm.Parameter(value=0.7) * sm.squared_loss(A @ w, B),
}


@pytest.mark.parametrize("name", GOALS)
def test_the_value_of_a_goal_is_that_of_the_solution(name):
    w = sm.Variable(6, name="w")
    goal = sm.minimize(GOALS[name](w))
    assert goal.value is None
    limits = [sm.card(w) <= 2, *([sm.norm(w) <= 2.0] if "price" in name else [])]
    solution = sm.Problem(goal, limits).solve()
    assert goal.value == pytest.approx(solution.value, rel=1e-10)
    assert sm.card(w).value == len(solution.support)
    assert sm.norm(w, np.inf).value == np.abs(w.value).max()


def test_matrices_count_rows_groups_and_entries():
    W = sm.Variable((3, 2), name="W")
    assert sm.card(W).value is None
    W.value = np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 3.0]])
    assert sm.card(W).value == 3
    assert sm.card(W, axis=1).value == 2
    assert sm.card(W[:, 1]).value == 1
    assert sm.card(W, groups=[0, 0, 1]).value == 2
    assert sm.card(W, groups=[[0, 1], [2, 2], [0, 1]]).value == 2
    assert (sm.card(W) + sm.card(W[:, 0])).value == 5.0
    assert sm.norm(W).value == pytest.approx(np.sqrt(14.0))
    v = sm.Variable(4, name="v")
    v.value = np.array([0.1, 0.1, 0.1 + 1e-17, 0.3])
    assert sm.card(sm.diff(v)).value == 1
    edges = sm.Variable((2, 2), symmetric=True, name="X")
    edges.value = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert sm.card(sm.offdiag(edges)).value == 2


def test_several_classes_and_the_points_of_a_path():
    classes = np.digitize(B, [-0.5, 0.5])
    W = sm.Variable((6, 3), name="W")
    loss = sm.multinomial_loss(A @ W, classes) + sm.ridge(W, 0.1)
    problem = sm.Problem(sm.minimize(loss), [sm.card(W, axis=1) <= 2])
    assert problem.solve().value == pytest.approx(loss.value, rel=1e-10)
    w = sm.Variable(6, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), [sm.card(w) <= 3])
    points = list(problem.path(range(1, 4)))
    assert [point.k for point in points] == [1, 2, 3]
    assert [len(point.support) for point in points] == [1, 2, 3]


def test_what_cannot_be_evaluated_says_so():
    with pytest.raises(sm.DataTypeError, match=r"solution\.value"):
        _ = sm.squared_loss(A, B).value


@pytest.mark.parametrize(
    ("atom", "words"), [("sum_largest", "cp.pos"), ("tv", "norm1"), ("max", "u <= t")]
)
def test_atoms_of_cvxpy_come_with_what_to_write(atom, words):
    cp = pytest.importorskip("cvxpy")
    X = cp.Variable((3, 4))
    term = cp.sum_largest(X, 2) if atom == "sum_largest" else getattr(cp, atom)(X)
    with pytest.raises(sm.ModelError, match=words):
        sm.Problem(cp.Minimize(cp.sum_squares(X) + term), [sm.card(X) <= 3])


def test_sums_of_a_matrix_are_those_of_numpy():
    W = sm.Variable((3, 2), name="W")
    W.value = np.array([[1.0, 0.0], [0.0, 0.5], [2.0, 3.0]])
    assert np.ravel(W.sum(axis=0).value).tolist() == [3.0, 3.5]
    assert W.sum(axis=1).value.tolist() == [1.0, 0.5, 5.0]
    assert np.ravel(W.sum().value).tolist() == [6.5]


def test_the_largest_residuals_as_the_message_says():
    cp = pytest.importorskip("cvxpy")
    x, t = cp.Variable(6), cp.Variable()
    goal = cp.Minimize(cp.sum(cp.pos(A @ x - B - t)) + 5 * t)
    solution = sm.Problem(goal, [sm.card(x) <= 2]).solve()
    assert solution.value == pytest.approx(np.sort(A @ x.value - B)[-5:].sum(), rel=1e-6)


@pytest.mark.parametrize("shrinkage", [0.0, 0.2])
def test_likelihoods_of_graphs_have_values(shrinkage: float) -> None:
    S = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
    Omega = sm.Variable((3, 3), symmetric=True)
    goal = sm.minimize(2.0 * sm.gaussian_nll(Omega, S, shrinkage=shrinkage))
    assert goal.value is None
    solution = sm.Problem(goal, sm.card(sm.offdiag(Omega)) <= 2).solve()
    assert goal.value == pytest.approx(solution.value, rel=1e-10)
    Omega.value = -np.eye(3)
    assert goal.value == np.inf
