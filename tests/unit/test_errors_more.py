"""What cannot be declared is said with what can be written instead."""

from __future__ import annotations

import traceback
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import sparsemodel as sm

A = np.random.default_rng(0).standard_normal((40, 6))
B = A[:, 0]
TIMES = np.column_stack([np.exp(B), B > -1.0])


def test_what_a_function_raises_itself_is_not_taken_for_wrong_arguments() -> None:
    class Strange(sm.Loss):
        name = "strange"
        value = derivative = None

        def check_target(self, y: np.ndarray, where: str) -> np.ndarray:
            raise TypeError("the user's own")

    with pytest.raises(TypeError, match="the user's own"):
        sm.loss_term(Strange(), A @ sm.Variable(6), B)
    with pytest.raises(sm.DataTypeError, match="takes shape by position") as caught:
        sm.Variable(3, "w")
    assert caught.value.__context__ is None


def test_a_loss_that_nothing_minimises_is_refused_by_plans_too() -> None:
    class Cubic(sm.Loss):
        name = "cubic"

        def value(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
            return np.abs(u - y) ** 3

        def derivative(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
            return 3.0 * (u - y) * np.abs(u - y)

    w = sm.Variable(6)
    problem = sm.Problem(sm.minimize(sm.loss_term(Cubic(), A @ w, B)), sm.card(w) <= 2)
    for ask in (problem.plan, problem.explain, problem.solve, problem.certify):
        with pytest.raises(sm.UnsupportedProblemError, match="second_derivative"):
            ask()


def test_counts_slices_and_prices() -> None:
    W, u, v = sm.Variable((6, 3), name="W"), sm.Variable(6, name="u"), sm.Variable(6, name="v")
    with pytest.raises(sm.ModelError, match="one index"):
        u[0, 1]
    with pytest.raises(sm.ModelError, match="out of range"):
        W[0, 3]
    with pytest.raises(sm.ModelError, match="for each column"):
        A @ W[:, :2]
    loss = sm.squared_loss(A @ u + A @ v, B)
    goal = sm.minimize(loss + 0.1 * sm.card(u) + 0.2 * sm.card(v))
    sm.Problem(goal)  # prices of one's own
    sm.Problem(sm.minimize(loss), sm.card(u) + 2.0 * sm.card(v) <= 2)  # a budget
    with pytest.raises(sm.ModelError, match="one number"):
        np.ones(6) @ sm.card(u)


def test_an_atom_is_named_without_its_data() -> None:
    w = cp.Variable(6)
    with pytest.raises(sm.ModelError, match=r"Pnorm .* not recognised.*sum_squares") as caught:
        sm.Problem(cp.Minimize(cp.norm(A @ w - B)), [sm.card(w) <= 2])
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(("typed", "meant"), [("nthp", "nhtp"), ("grahpt", "grahtp")])
def test_exchanged_letters_are_seen(typed: str, meant: str) -> None:
    w = sm.Variable(6)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w) <= 2)
    with pytest.raises(sm.SparseModelError, match=f"Did you mean '{meant}'"):
        problem.solve(typed)


def test_a_name_that_was_meant_is_suggested_once() -> None:
    with pytest.raises(AttributeError) as error:
        sm.squard_loss  # noqa: B018
    shown = "".join(traceback.format_exception(error.value))
    assert shown.splitlines()[-1].count("squared_loss") == 1


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda p: sm.l1, r"sm\.norm\(w, 1\)"),
        (lambda p: sm.l2, r"sm\.ridge\(w, lam\)"),
        (lambda p: sm.load, "certificates import verify"),
        (lambda p: p.report, r"certify\(\)\.save"),
        (lambda p: p.solve().edges, r"it is \.support"),
        (lambda p: p.solve().plot, "reporting.plots"),
        (lambda p: p.certify().to_html, r"\.save\('report\.html'\)"),
        (lambda p: p.path(range(3)).coefficients, r"path\.at\(k\)"),
        (lambda p: p.solve(k=2), r"sm\.card\(w\) <= k"),
        (lambda p: p.solve(timeout=2), "time_limit"),
        (lambda p: p.solve(method="iht"), "backend="),
        (lambda p: p.solve(tol=1e-3), "effort="),
        (lambda p: sm.cox_loss(A @ p.variables[0], durations=B, event_observed=B), "column_stack"),
        (lambda p: p.path(range(3))[2], r"path\.at\(k\)"),
        (lambda p: 2 in p.path(range(3)), r"`k in path\.k`"),
        (lambda p: sm.quantile_loss(A @ p.variables[0], B, level=0.3), "level is `tau=`"),
        (lambda p: sm.quantile_loss(A @ p.variables[0], B, alpha=0.3), "level is `tau=`"),
        (lambda p: sm.cox_loss(A @ p.variables[0] + sm.Variable(), TIMES), "no intercept"),
        (lambda p: sm.loss_term("cox", sm.Variable() + A @ p.variables[0], TIMES), "no intercept"),
        (lambda p: sm.squared_loss(A @ p.variables[0], 0), r"np\.full\(n, 0\)"),
        (lambda p: sm.gaussian_nll(sm.Variable((6, 6), symmetric=True), A), "data=X"),
    ],
)
def test_a_first_guess_is_answered_with_the_name(asked: Any, words: str) -> None:
    w = sm.Variable(6)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w) <= 3)
    with pytest.raises((AttributeError, sm.SparseModelError), match=words):
        asked(problem)


def test_true_and_false_are_classes_of_a_printed_summary() -> None:
    w = sm.Variable(6)
    goal = sm.minimize(sm.logistic_loss(A @ w, B > 0) + sm.ridge(w, 0.1))
    summary = sm.Problem(goal, sm.card(w) <= 2).solve().summary()
    assert summary.positive == "True"
    assert "True" in str(summary)


def test_a_design_shows_its_shape() -> None:
    assert "40 x 6" in repr(sm.as_design(A))


def test_a_path_says_which_limit_has_no_value() -> None:
    w, k = sm.Variable(6), sm.Parameter(name="k", integer=True)
    lam = sm.Parameter(name="lam", nonneg=True)
    goal = sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, lam))
    with pytest.raises(sm.ModelError, match=r"write path\(k, values\)"):
        sm.Problem(goal, sm.card(w) <= k).path(range(3))
    with pytest.raises(sm.ModelError, match=r"set lam\.value"):
        sm.Problem(goal, sm.card(w) <= 2).path(range(3))
    k.value, lam.value = 1, 0.1
    assert len(sm.Problem(goal, sm.card(w) <= k).path(range(3))) == 3


W = sm.Variable(6, name="w")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            lambda: sm.Variable(3, nonneg=[True, False, True]),
            "nonneg must be True or False.*constraint",
        ),
        (lambda: sm.Variable((3, 3), symmetric="yes"), "symmetric must be True or False"),
        (lambda: sm.Parameter(3, nonneg=[True, False, True]), "nonneg must be True or False"),
        (lambda: sm.Variable(3, name=["a", "b", "c"]), "entries are `names=`"),
        (lambda: sm.Variable(3, names="abc"), "the whole is `name=`"),
        (lambda: sm.Variable(3, names=3), "a list with a name for each"),
        (lambda: sm.diff(W, 1.5), "order of diff must be a whole number"),
        (lambda: sm.diff(W, B), "order of diff must be"),
        (lambda: sm.squared_loss(A @ W, B, reduction=B), "'mean' or 'sum', not ndarray"),
        (lambda: sm.cox_loss(A @ W, TIMES, ties=B), "breslow"),
        (lambda: sm.ordinal_loss(A @ W, B > 0, order=5), "from the lowest to the highest"),
        (lambda: sm.ordinal_loss(A @ W, B > 0, order={False, True}), "from the lowest to the"),
        (lambda: sm.encode(pd.DataFrame(A[:, :2], columns=["a", "a"])), "2 columns named 'a'"),
        (lambda: np.ones(40) * sm.squared_loss(A @ W, B), "observations are `weights=`"),
        (lambda: np.ones(40) @ sm.squared_loss(A @ W, B), "observations are `weights=`"),
        (
            lambda: sm.squared_loss(A @ W, B, np.ones(40)),
            "by name: `weights=`, `weights_are=`, `reduction=`",
        ),
        (lambda: sm.quantile_loss(A @ W, B, 0.9), "by name: `tau=`"),
        (lambda: sm.huber_loss(A @ W, B, M=1.0), "`delta=`"),
        (lambda: sm.Variable((3, 3), PSD=True), "symmetric=True.*W >> 0"),
        (lambda: sm.Variable(3, pos=True), "nonneg=True"),
        (lambda: sm.card(sm.Variable((3, 2)), rows=True), "axis=1"),
        (lambda: sm.Problem(objective=sm.minimize(sm.ridge(W, 1.0))), "goal comes first"),
        (lambda: sm.card(W) <= sm.Parameter(3), r"sm\.Parameter\(value=3\)"),
        (lambda: sm.encode(pd.DataFrame(A)) @ W, r"write `A, features = sm\.encode"),
        (lambda: [[1.0, 2.0], [3.0]] @ W, "rows have different lengths"),
        (lambda: W[2] != 0, "always in the model if it is not counted"),
        (lambda: sm.Parameter(boolean=True), "no argument 'boolean'"),
        *(
            (lambda f=function: f(W, alpha=1.0), "has no argument 'alpha'")
            for function in (
                sm.diff,
                sm.gaussian_nll,
                sm.minimize,
                sm.required_edges,
                sm.ridge,
                sm.semicontinuous,
                sm.trace,
            )
        ),
    ],
)
def test_values_of_another_kind_are_refused_by_the_name_of_the_argument(
    asked: Any, words: str
) -> None:
    with pytest.raises(sm.SparseModelError, match=words):
        asked()


def test_solutions_and_paths_refuse_arrays_for_words_and_for_k() -> None:
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ W, B)), sm.card(W) <= 0)
    path = problem.path(range(3))
    problem.solve()
    with pytest.raises(sm.ModelError, match="kind must be"):
        problem.predict(A, B)
    with pytest.raises(sm.ModelError, match="is not on the path"):
        path.at([1, 2])
    with pytest.raises(sm.ModelError, match="no criterion"):
        path.select(B)
    with pytest.raises(sm.ModelError, match="nothing to solve for"):
        problem.restricted(problem.solution.support)
