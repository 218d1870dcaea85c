"""Whatever is declared is kept by the solution, or refused: no constraint is lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.modelling.expressions.comparisons import (
    AtLeast,
    Bound,
    CardinalityConstraint,
    Constraint,
    LinearConstraint,
    Requirement,
    Semicontinuous,
)
from sparsemodel.modelling.expressions.norms import NormConstraint
from sparsemodel.modelling.expressions.objective_terms import Budget, LossLimit
from sparsemodel.modelling.expressions.symmetric import EdgeCount, EigenvalueBound
from sparsemodel.modelling.precision_matrices.terms_and_constraints import EdgePattern

RNG = np.random.default_rng(1)
P = 4
A = RNG.standard_normal((12, P))
B = RNG.standard_normal((12, P))
CLASSES = np.arange(12) % P
S = np.cov(RNG.standard_normal((30, P)).T)

Check = Callable[[np.ndarray], bool]


def pairs(X: np.ndarray) -> int:
    return np.count_nonzero(X - np.diag(np.diag(X)))


KEPT: dict[type[Constraint], list[tuple[Callable[[Any], Any], Check]]] = {
    CardinalityConstraint: [
        (lambda W: sm.card(W, axis=1) <= 2, lambda X: np.any(X != 0, axis=1).sum() <= 2)
    ],
    AtLeast: [
        (
            lambda W: [sm.card(W.entries) <= 3, sm.card(W[:, 0]) >= 2],
            lambda X: np.count_nonzero(X[:, 1:]) <= 1 and np.count_nonzero(X) <= 3,
        )
    ],
    Budget: [
        (
            lambda W: np.arange(1.0, P + 1.0) @ sm.chosen(W, axis=1) <= 4.5,
            lambda X: np.arange(1.0, P + 1.0) @ np.any(X != 0, axis=1) <= 4.5,
        )
    ],
    Requirement: [
        (
            lambda W: sm.chosen(W, axis=1)[0] <= sm.chosen(W, axis=1)[1],
            lambda X: not X[0].any() or X[1].any(),
        )
    ],
    LossLimit: [
        (
            lambda W: sm.squared_loss(A @ W, B) <= 1.0,
            lambda X: np.mean(np.sum(np.square(A @ X - B), axis=1)) <= 2.0 + 1e-6,
        ),
    ],
    Semicontinuous: [
        (
            lambda W: sm.semicontinuous(W, 0.2, 1.0),
            lambda X: np.all((X == 0.0) | ((np.abs(X) >= 0.2 - 1e-9) & (np.abs(X) <= 1.0 + 1e-9))),
        )
    ],
    Bound: [
        (lambda W: W >= 0.0, lambda X: X.min() >= 0.0),
        (lambda W: W <= 0.1, lambda X: X.max() <= 0.1 + 1e-8),
        (lambda W: W == 0.25, lambda X: np.allclose(X, 0.25)),
    ],
    LinearConstraint: [
        (lambda W: W.sum() == 1.0, lambda X: np.isclose(X.sum(), 1.0, atol=1e-6)),
        (lambda W: W.sum(axis=0) == 1.0, lambda X: np.allclose(X.sum(axis=0), 1.0, atol=1e-6)),
        (lambda W: np.ones((1, P)) @ W <= -1.0, lambda X: X.sum(axis=0).max() <= -1 + 1e-6),
    ],
    NormConstraint: [
        (lambda W: sm.norm(W) <= 0.1, lambda X: np.linalg.norm(X) <= 0.1 + 1e-6),
        (lambda W: sm.norm(W, 1) <= 0.1, lambda X: np.abs(X).sum() <= 0.1 + 1e-6),
    ],
    EdgeCount: [(lambda W: sm.card(sm.offdiag(W)) <= 2, lambda X: pairs(X) <= 2)],
    EigenvalueBound: [
        (lambda W: W >> 2.0, lambda X: np.linalg.eigvalsh(X)[0] >= 2.0 - 1e-6),
        (lambda W: W << 0.5, lambda X: np.linalg.eigvalsh(X)[-1] <= 0.5 + 1e-6),
    ],
    EdgePattern: [
        (lambda W: sm.forbidden_edges(W, [(0, 1)]), lambda X: X[0, 1] == 0.0 == X[1, 0]),
        (lambda W: sm.required_edges(W, [(0, 1)]), lambda X: X[0, 1] != 0.0),
    ],
}
LOSSES: dict[str, Callable[[Any], Any]] = {
    "squared": lambda W: sm.squared_loss(A @ W, B),
    "huber": lambda W: sm.huber_loss(A @ W, B),
    "absolute": lambda W: sm.absolute_loss(A @ W, B),
    "multinomial": lambda W: sm.multinomial_loss(A @ W, CLASSES) + sm.ridge(W, 0.01),
    "gaussian": lambda W: sm.gaussian_nll(W, S),
    "fewest nonzeros": lambda W: sm.minimize(sm.card(W)).objective,
    "nothing but a ridge": lambda W: sm.ridge(W, 1.0),
}


def kept_or_refused(loss: str, W: Any, constraints: list[Any], checks: list[Check]) -> None:
    try:
        sm.Problem(sm.minimize(LOSSES[loss](W)), constraints).solve()
    except sm.SparseModelError:
        return
    X = np.asarray(W.value)
    assert all(check(X) for check in checks), (loss, constraints, X)


def every_kind() -> set[str]:
    """Return the names; a class with slots is made twice."""
    found, queue = set(), [Constraint]
    while queue:
        kind = queue.pop()
        queue += kind.__subclasses__()
        found.add(kind)
    found.remove(Constraint)
    return {k.__name__ for k in found if k.__module__.startswith("sparsemodel.")}


def test_every_kind_of_constraint_is_here() -> None:
    assert every_kind() == {kind.__name__ for kind in KEPT}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("symmetric", [False, True])
def test_every_constraint_with_every_loss(loss: str, symmetric: bool) -> None:
    always: list[Check] = [lambda X: np.array_equal(X, X.T)] if symmetric else []
    for kind in KEPT:
        for make, check in KEPT[kind]:
            W = sm.Variable((P, P), symmetric=symmetric, name="W")
            try:
                constraint = make(W)
            except sm.SparseModelError:
                continue  # refused at once
            kept_or_refused(loss, W, [constraint], [check, *always])


@pytest.mark.parametrize("loss", LOSSES)
def test_every_attribute_with_every_loss(loss: str) -> None:
    W = sm.Variable((P, P), nonneg=True)
    kept_or_refused(loss, W, [], [lambda X: X.min() >= 0.0])
    W = sm.Variable((P, P), nonneg=True, symmetric=True)
    kept_or_refused(loss, W, [], [lambda X: X.min() >= 0.0 and np.array_equal(X, X.T)])


ATTRIBUTES: dict[str, tuple[dict[str, Any], Check]] = {
    "nonneg": ({"nonneg": True}, lambda X: X.min() >= 0.0),
    "pos": ({"pos": True}, lambda X: X.min() >= 0.0),
    "nonpos": ({"nonpos": True}, lambda X: X.max() <= 0.0),
    "neg": ({"neg": True}, lambda X: X.max() <= 0.0),
    "symmetric": ({"symmetric": True}, lambda X: np.array_equal(X, X.T)),
    "PSD": ({"PSD": True}, lambda X: np.linalg.eigvalsh(X)[0] >= -1e-9),
    "NSD": ({"NSD": True}, lambda X: np.linalg.eigvalsh(X)[-1] <= 1e-9),
    "hermitian": ({"hermitian": True}, lambda X: np.array_equal(X, X.T)),
    "diag": ({"diag": True}, lambda X: pairs(X) == 0),
    "integer": ({"integer": True}, lambda X: np.array_equal(X, np.round(X))),
    "boolean": ({"boolean": True}, lambda X: set(np.unique(X)) <= {0.0, 1.0}),
    "one boolean": ({"boolean": [(0, 0)]}, lambda X: X[0, 0] in (0.0, 1.0)),
    "complex": ({"complex": True}, lambda X: False),
    "imag": ({"imag": True}, lambda X: False),
    "sparsity": ({"sparsity": [np.array([0]), np.array([1])]}, lambda X: np.count_nonzero(X) <= 1),
    "bounds": ({"bounds": [-0.1, 0.1]}, lambda X: np.abs(X).max() <= 0.1 + 1e-9),
    "bounds and nonneg": (
        {"bounds": [None, 0.1], "nonneg": True},
        lambda X: X.min() >= 0.0 and X.max() <= 0.1 + 1e-9,
    ),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
@pytest.mark.parametrize("loss", ["squared", "gaussian"])
def test_attributes_of_cvxpy(name: str, loss: str) -> None:
    options, check = ATTRIBUTES[name]
    try:
        W = cp.Variable((P, P), **options)
        if loss == "squared":
            goal = cp.Minimize(cp.sum_squares(A @ W - B))
        else:
            goal = cp.Minimize(-cp.log_det(W) + cp.trace(S @ W))
    except (TypeError, ValueError, NotImplementedError) as error:
        pytest.skip(f"CVXPY itself refuses it: {error}")
    try:
        sm.Problem(goal, []).solve()
    except sm.SparseModelError:
        return
    value = W.value
    X = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
    assert check(X)


def test_entries_of_a_matrix_are_counted_and_rows_where_it_is_said() -> None:
    m = 2
    for W in (sm.Variable((P, m), name="W"), cp.Variable((P, m), name="W")):
        assert repr(sm.card(W, axis=1) <= 2) == "card(W, axis=1) <= 2"
        loss = sm.squared_loss(A @ W, B[:, :m], reduction="sum")
        value = sm.Problem(sm.minimize(loss), sm.card(W) <= 3).solve().value
        assert np.count_nonzero(W.value) == 3
        assert value == pytest.approx(0.5 * np.sum((A @ W.value - B[:, :m]) ** 2))
    w = sm.Variable(P * m)
    loss = sm.squared_loss(np.kron(A, np.eye(m)) @ w, B[:, :m].ravel(), reduction="sum")
    assert sm.Problem(sm.minimize(loss), sm.card(w) <= 3).solve().value == pytest.approx(value)
