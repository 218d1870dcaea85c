"""Ordered classes: the all-threshold logistic loss against its formula and enumeration."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import sparsemodel as sm
from sparsemodel.certificates import Claim
from tests.referee import judge

RNG = np.random.default_rng(3)
A = RNG.standard_normal((80, 5))
SCORE = 1.2 * A[:, 1] - 0.9 * A[:, 3] + RNG.logistic(size=80)
GRADE = np.digitize(SCORE, [-1.5, 0.0, 1.5])
NAMES = np.array(["poor", "fair", "good", "fine"])


def declared(target: Any = GRADE, data: Any = A, lam: float = 0.02, **more: Any) -> sm.Problem:
    w = sm.Variable(5, name="w")
    goal = sm.minimize(sm.ordinal_loss(data @ w, target, **more) + sm.ridge(w, lam))
    return sm.Problem(goal, sm.card(w) <= 2)


def formula(x: Any, support: Any, c: Any, lam: float) -> float:
    u, theta = A[:, support] @ x[: len(support)], x[len(support) :]
    s = np.where(GRADE[:, None] > np.arange(3), 1.0, -1.0)
    losses = np.logaddexp(0.0, -s * (u[:, None] - theta)).sum(axis=1)
    return float(c @ losses / len(c) + 0.5 * lam * x[: len(support)] @ x[: len(support)])


@pytest.mark.parametrize("lam", [0.0, 0.02])
def test_the_best_support_and_thresholds_are_found_and_proved(lam: float) -> None:
    c = RNG.uniform(0.5, 2.0, 80)
    problem = declared(lam=lam, weights=c)
    solution, proof = problem.solve(), problem.prove()
    found = {
        S: minimize(formula, np.r_[0, 0, -1.0, 0, 1.0], args=(list(S), c, lam), tol=1e-10)
        for S in combinations(range(5), 2)
    }
    best = min(found, key=lambda S: found[S].fun)
    assert tuple(solution.support.tolist()) == best
    assert solution.value == pytest.approx(found[best].fun, rel=1e-9)
    thresholds = [solution.coefficients[name] for name in ("0 | 1", "1 | 2", "2 | 3")]
    np.testing.assert_allclose(thresholds, found[best].x[2:], atol=1e-4)
    assert np.all(np.diff(thresholds) > 0.0)
    assert proof.claim is Claim.OPTIMAL
    judge(problem, proof)


def test_predictions_are_classes_and_what_is_between_thresholds() -> None:
    problem = declared()
    solution = problem.solve()
    u = A @ problem.variables[0].value
    thresholds = np.array([solution.coefficients[f"{j} | {j + 1}"] for j in range(3)])
    expected = (u[:, None] > thresholds).sum(axis=1)
    np.testing.assert_array_equal(problem.predict(A), expected)
    np.testing.assert_allclose(problem.predict(A, "linear"), u)
    chances = problem.predict(A, "probability")
    assert chances.shape == (80, 4)
    assert np.all(chances >= 0.0)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(chances[:, 0], 1.0 / (1.0 + np.exp(u - thresholds[0])))
    summary = solution.summary()
    assert summary.accuracy == pytest.approx(np.mean(expected == GRADE))
    assert summary.largest_class == pytest.approx(np.bincount(GRADE).max() / 80)
    assert summary.mean_loss == pytest.approx(
        solution.value - 0.01 * np.sum(problem.variables[0].value ** 2)
    )
    assert (summary.loss, summary.k, summary.d) == ("ordinal_loss", 2, 5)
    assert "1 | 2" in str(summary)


def test_observations_are_left_out_of_all_thresholds() -> None:
    problem = declared()
    folds = np.arange(80) % 4
    path = problem.path(range(6))
    scores = path.cross_validate(folds=folds).scores
    for k in (1, 2):
        held = []
        for fold in range(4):
            on = folds != fold
            w = sm.Variable(5, name="w")
            goal = sm.minimize(sm.ordinal_loss(A[on] @ w, GRADE[on]) + sm.ridge(w, 0.02))
            part = sm.Problem(goal, sm.card(w) <= k).solve()
            theta = np.array([part.coefficients[f"{j} | {j + 1}"] for j in range(3)])
            s = np.where(GRADE[~on][:, None] > np.arange(3), 1.0, -1.0)
            held.append(np.logaddexp(0.0, -s * ((A[~on] @ w.value)[:, None] - theta)).mean())
        assert scores[k] == pytest.approx(np.mean(held), rel=1e-6)


def test_classes_keep_the_order_that_they_were_given() -> None:
    plain = declared().solve()
    column = pd.Series(pd.Categorical(NAMES[GRADE], categories=NAMES, ordered=True))
    frame = sm.as_design(pd.DataFrame(A, columns=list("abcde")))
    for target, order in ((NAMES[GRADE], [*NAMES, "never"]), (column, None), (GRADE / 2.0, None)):
        problem = declared(target, frame, **({} if order is None else {"order": order}))
        assert problem.solve().value == pytest.approx(plain.value, rel=1e-12)
        predicted = problem.predict(pd.DataFrame(A, columns=list("abcde")))
        assert set(predicted.tolist()) <= set(np.asarray(target).tolist())
    two, w = GRADE > 1, sm.Variable(5, name="w")
    logistic = sm.logistic_loss(A @ w + sm.Variable(name="c"), two)
    known = sm.Problem(sm.minimize(logistic + sm.ridge(w, 0.02)), sm.card(w) <= 2).solve()
    assert declared(two).solve().value == pytest.approx(known.value, rel=1e-10)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda w: sm.ordinal_loss(A @ w, NAMES[GRADE]), r"'fair', 'fine', .* order=\[\.\.\.\]"),
        (lambda w: sm.ordinal_loss(A @ w, NAMES[GRADE], order=NAMES[:3]), "'fine', which is not"),
        (lambda w: sm.ordinal_loss(A @ w, np.ones(80)), "1 different values, and 2 to 100"),
        (lambda w: sm.ordinal_loss(np.ones((200, 5)) @ w, np.arange(200)), "squared_loss"),
        (lambda w: sm.ordinal_loss(A @ w + sm.Variable(), GRADE), "without a constant"),
        (lambda w: sm.ordinal_loss(A, GRADE), "such as `A @ w`"),
        (lambda w: sm.ordinal_loss(A @ w, GRADE[:7]), "80 rows and the target has 7"),
    ],
)
def test_what_cannot_be_ordered_is_refused(write: Any, words: str) -> None:
    with pytest.raises(sm.SparseModelError, match=words):
        write(sm.Variable(5, name="w"))


@pytest.mark.filterwarnings("ignore:cross-validation chooses")
@pytest.mark.parametrize("n", [50, 80])
def test_two_ordinal_losses_have_observations_of_their_own(n: int) -> None:
    w = sm.Variable(5, name="w")
    both = sm.ordinal_loss(A @ w, GRADE) + sm.ordinal_loss(A[:n] @ w, GRADE[:n])
    problem = sm.Problem(sm.minimize(both + sm.ridge(w, 0.02)), sm.card(w) <= 2)
    with pytest.raises(sm.ModelError, match="one loss of observations"):
        problem.solve().summary()
    scores = problem.path([1, 2]).cross_validate(folds=3).scores
    assert scores.shape == (2,)
    assert np.all(np.isfinite(scores))
