"""Predictions of solutions for new data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sparsemodel as sm

RNG = np.random.default_rng(5)
A = RNG.standard_normal((40, 3))
NEW = RNG.standard_normal((4, 3))
SCORE = A @ [1.0, -2.0, 0.0] + 0.5 * RNG.standard_normal(40)


def solved(loss: Any, target: Any, data: Any = A, **options: Any) -> tuple[sm.Problem, Any]:
    w, c = sm.Variable(3, name="w"), sm.Variable(name="c")
    goal = sm.minimize(loss(data @ w + c, target, **options) + sm.ridge(w, 0.01))
    problem = sm.Problem(goal, sm.card(w) <= 2)
    problem.solve()
    return problem, lambda new: new @ w.value + c.value


@pytest.mark.parametrize(
    ("loss", "target", "of_score"),
    [
        (sm.squared_loss, SCORE, lambda u: u),
        (sm.quantile_loss, SCORE, lambda u: u),
        (sm.poisson_loss, np.round(np.exp(0.3 * SCORE)), np.exp),
        (sm.gamma_loss, np.exp(0.3 * SCORE), np.exp),
        (sm.hinge_loss, np.sign(SCORE), lambda u: (u > 0).astype(int)),
        (
            sm.logistic_loss,
            np.where(SCORE > 0, "yes", "no"),
            lambda u: np.where(u > 0, "yes", "no"),
        ),
    ],
)
def test_predictions_are_in_the_terms_of_the_target(loss: Any, target: Any, of_score: Any) -> None:
    problem, score = solved(loss, target)
    expected = of_score(score(NEW))
    found = problem.predict(NEW)
    assert found.dtype.kind == expected.dtype.kind
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        np.testing.assert_allclose(problem.predict(NEW, "linear"), score(NEW), rtol=1e-12)
    else:
        assert found.tolist() == expected.tolist()
    assert len(problem.solution.predict(NEW[:1])) == 1


def test_probabilities_are_those_of_the_second_class() -> None:
    problem, score = solved(sm.logistic_loss, np.where(SCORE > 0, "yes", "no"))
    far = 1e3 * NEW
    for new in (NEW, far):
        with np.errstate(over="ignore"):
            expected = 1.0 / (1.0 + np.exp(-score(new)))
        np.testing.assert_allclose(problem.predict(new, "probability"), expected, atol=1e-15)
    svm, _ = solved(sm.hinge_loss, np.sign(SCORE))
    with pytest.raises(sm.ModelError, match=r"hinge_loss gives no probabilities"):
        svm.predict(NEW, "probability")


def test_several_classes() -> None:
    target = np.array(["a", "b", "c"])[np.digitize(SCORE, [-1.0, 1.0])]
    W, c = sm.Variable((3, 3), name="W"), sm.Variable(3, name="c")
    goal = sm.minimize(sm.multinomial_loss(A @ W + c, target) + sm.ridge(W, 0.1))
    solution = sm.Problem(goal, sm.card(W, axis=1) <= 2).solve()
    u = NEW @ W.value + c.value
    chances = np.exp(u) / np.exp(u).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(solution.predict(NEW, "probability"), chances, rtol=1e-12)
    assert solution.predict(NEW).tolist() == np.array(["a", "b", "c"])[chances.argmax(1)].tolist()


def test_columns_of_data_frames_are_found_by_their_names() -> None:
    frame = pd.DataFrame(A, columns=["age", "rooms", "size"])
    problem, score = solved(sm.squared_loss, SCORE, sm.as_design(frame))
    new = pd.DataFrame(NEW, columns=frame.columns)
    mixed = new.assign(price=1.0)[["size", "price", "age", "rooms"]]
    for data in (new, mixed, NEW):
        np.testing.assert_allclose(problem.predict(data), score(NEW), rtol=1e-12)
    with pytest.raises(sm.DataError, match=r"lack the column 'age'.*Is 'agee' meant\?"):
        problem.predict(new.rename(columns={"age": "agee"}))
    used = list(problem.solution.support)
    np.testing.assert_allclose(problem.predict(new[used]), score(NEW), rtol=1e-12)
    np.testing.assert_allclose(problem.predict(pa.Table.from_pandas(new)), score(NEW), rtol=1e-12)
    with pytest.raises(sm.DataError, match=r"lack the column .age. and \d more"):
        problem.predict(pd.DataFrame(NEW))
    with pytest.raises(sm.DataError, match=r"For one row write `df.iloc\[\[0\]\]`"):
        problem.predict(new.iloc[0])
    with pytest.raises(sm.DataError, match=r"the model needs 3 columns"):
        problem.predict(NEW[:, :2])
    with pytest.raises(sm.ModelError, match=r"kind must be"):
        problem.predict(NEW, "classes")  # type: ignore[arg-type]


def test_a_changed_parameter_is_in_new_solutions_alone() -> None:
    w, k = sm.Variable(3, name="w"), sm.Parameter(integer=True, value=1)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, SCORE)), sm.card(w) <= k)
    first = problem.solve()
    before = first.predict(NEW)
    k.value = 2
    second = problem.solve()
    np.testing.assert_array_equal(first.predict(NEW), before)
    np.testing.assert_allclose(second.predict(NEW), NEW @ w.value, rtol=1e-12)


def test_what_cannot_be_predicted_says_what_to_write() -> None:
    w = sm.Variable(3, name="w")
    two = sm.minimize(sm.squared_loss(A @ w, SCORE) + sm.absolute_loss(A @ w, SCORE))
    with pytest.raises(sm.ModelError, match=r"has 2 losses"):
        sm.Problem(two, sm.card(w) <= 1).solve().predict(NEW)
    shifted = sm.minimize(sm.squared_loss(A @ w + SCORE, SCORE))
    with pytest.raises(sm.ModelError, match=r"new rows have their own: write predict"):
        sm.Problem(shifted, sm.card(w) <= 1).solve().predict(NEW)
    with pytest.raises(sm.NotSolvedError):
        sm.Problem(shifted, sm.card(w) <= 1).predict(NEW)


def test_one_observation_predicts_and_one_row_beside_others_does_not_count() -> None:
    w = sm.Variable(3, name="w")
    alone = sm.Problem(sm.minimize(sm.squared_loss(A[:1] @ w, SCORE[:1]) + sm.ridge(w, 0.1)))
    alone.solve()
    np.testing.assert_allclose(alone.predict(NEW), NEW @ w.value, rtol=1e-12)
    held = sm.minimize(sm.squared_loss(A @ w, SCORE) + 0.1 * sm.norm(A[:1] @ w) ** 2)
    beside = sm.Problem(held, sm.card(w) <= 2)
    beside.solve()
    np.testing.assert_allclose(beside.predict(NEW), NEW @ w.value, rtol=1e-12)
    linear = sm.Problem(sm.minimize(A[0] @ w + sm.ridge(w, 1.0)), sm.card(w) <= 2)
    linear.solve()
    with pytest.raises(sm.ModelError, match="no loss"):
        linear.predict(NEW)
