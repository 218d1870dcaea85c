"""What a CVXPY user types by habit: understood, or answered with what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm

RNG = np.random.default_rng(4)
A = RNG.standard_normal((12, 4))
B = A[:, 0] - 0.5 * A[:, 2]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sum_squares", "squared_loss"),
        ("Minimize", "sm.minimize"),
        ("Maximize", "negative"),
        ("hstack", "keep the variables apart"),
        ("no_such_thing", "no attribute 'no_such_thing'$"),
    ],
)
def test_names_of_cvxpy(name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=words):
        getattr(sm, name)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda w: A * w, "entry by entry"),
        (lambda w: np.ones(4) * w, "entry by entry"),
        (lambda w: np.dot(A, w), "np.dot"),
        (lambda w: np.linalg.norm(w), "sm.norm"),
        (lambda w: sm.squared_loss(B, A @ w), "prediction comes first"),
        (lambda w: A @ sm.Variable((3, 4), name="W").T, "other shape"),
        (lambda w: sm.minimize(sm.log_det(sm.Variable((2, 2), symmetric=True))), "concave"),
        (lambda w: sm.minimize(sm.squared_loss(A @ w, B) + A @ w), "one number"),
        (lambda w: w.T @ w, "sm.ridge"),
        (lambda w: 0 <= w <= 1, "two constraints"),
        (lambda w: sm.card(w) < 3, "k - 1"),
        (lambda w: sm.card(A @ w, axis=1) <= 2, "counts entries"),
    ],
)
def test_habits_are_answered(write: Callable[[sm.Variable], Any], words: str) -> None:
    with pytest.raises(sm.SparseModelError, match=words):
        write(sm.Variable(4, name="w"))


def test_habits_that_are_understood() -> None:
    x = cp.Variable(4, name="x")
    theirs = sm.Problem(
        sm.minimize(sm.squared_loss(A @ x, B) + sm.ridge(x, 0.1)),
        constraints=[sm.card(x) <= 2, sm.norm(x) <= 0.5],
    )
    w = sm.Variable(4, name="w")
    ours = sm.Problem(
        sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, 0.1)),
        [sm.card(w) <= 2, sm.norm(w) <= 0.5],
    )
    assert theirs.solve().value == pytest.approx(ours.solve().value, rel=1e-12)
    np.testing.assert_allclose(x.value, w.value)
    positive = sm.Variable(4, nonneg=True)
    goal = sm.minimize(sm.squared_loss(A @ positive, B))
    sm.Problem(goal, sm.card(positive) <= 2).solve()
    assert np.all(positive.value >= 0.0)
    assert np.any(positive.value > 0.0)
