"""Declarations that make no sense: each habit that goes wrong gets a helpful word."""

# Comparisons and expressions are evaluated for the error they raise.
# ruff: noqa: B015, B018, PT012, SIM300

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.linalg import aslinearoperator

import sparsemodel as sm
from sparsemodel.losses import SquaredLoss

A = np.random.default_rng(5).standard_normal((10, 4))
B = A[:, 0] + 0.1


@pytest.fixture
def w() -> sm.Variable:
    return sm.Variable(4, name="w")


def problem(w: sm.Variable, *constraints: Any) -> sm.Problem:
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), *constraints)


# ---- the cardinality -------------------------------------------------------------------------


def test_k_must_be_a_whole_number_in_range(w: sm.Variable) -> None:
    with pytest.raises(sm.ModelError, match="must be at least 0, not -1"):
        sm.card(w) <= -1
    with pytest.raises(sm.ModelError, match=r"whole number, not 2\.5"):
        sm.card(w) <= 2.5
    with pytest.raises(sm.ModelError, match="whole number, not nan"):
        sm.card(w) <= float("nan")
    for wrong in ("3", None, [3], True, 1j):
        with pytest.raises(sm.DataTypeError, match="whole number"):
            sm.card(w) <= wrong
    assert problem(w, sm.card(w) <= 5).form.sparsity.k == 4  # more than there are: all
    assert problem(w, sm.card(w, groups=[0, 0, 1, 1]) <= 3).form.sparsity.k == 2
    assert problem(w, sm.card(w) <= 2.0).form.sparsity.k == 2
    assert problem(w, sm.card(w) <= np.int64(4)).form.sparsity.k == 4
    assert problem(w, 2 >= sm.card(w)).form.sparsity.k == 2


def test_comparisons_of_the_cardinality(w: sm.Variable) -> None:
    with pytest.raises(sm.ModelError, match=r"card\(w\) <= k - 1"):
        sm.card(w) < 3
    with pytest.raises(sm.ModelError, match=r"for more than k that is `>= k \+ 1`"):
        sm.card(w) > 3
    with pytest.raises(sm.ModelError, match=r"sm\.card\(u\) \+ sm\.card\(v\) <= k"):
        sm.card(w) <= 3 - sm.card(w)
    with pytest.raises(sm.ModelError, match="uses all k anyway"):
        sm.card(w) == 3


def test_only_variables_are_counted(w: sm.Variable) -> None:
    several = sm.card(A @ w + A @ sm.Variable(4)) <= 2
    with pytest.raises(sm.ModelError, match="has several"):
        sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), several)
    with pytest.raises(sm.ModelError, match=r"not ndarray of shape .* Of several variables write"):
        sm.card(A)
    with pytest.raises(sm.ModelError, match="nothing to count"):
        sm.card(sm.Variable(name="c"))
    with pytest.raises(sm.ModelError, match="rows of a matrix"):
        sm.card(w, axis=1)
    with pytest.raises(sm.ModelError, match="one label for each of the 4 entries"):
        sm.card(w, groups=[0, 1])


# ---- comparisons of variables ----------------------------------------------------------------


def test_chained_comparisons(w: sm.Variable) -> None:
    with pytest.raises(sm.ModelError, match=r"\[w >= 0, w <= 1\]"):
        0 <= w <= 1
    with pytest.raises(sm.ModelError, match="neither true nor false"):
        if w == 1:
            pass


def test_strict_and_unequal(w: sm.Variable) -> None:
    for strict in (lambda: w < 1, lambda: w > 0, lambda: A @ w < 1, lambda: sm.norm(w) < 1):
        with pytest.raises(sm.ModelError, match="open sets"):
            strict()
    with pytest.raises(sm.ModelError, match="closed set"):
        w != 1


def test_bounds_that_exclude_each_other(w: sm.Variable) -> None:
    with pytest.raises(sm.InfeasibleError, match=r"w\[0\].*at least 2 and at most 1"):
        problem(w, w >= 2, w <= 1)
    with pytest.raises(sm.DataError, match="NaN"):
        w >= np.nan
    with pytest.raises(sm.DataError, match=r"shape \(3,\)"):
        w >= np.zeros(3)
    with pytest.raises(sm.DataTypeError, match="dtype"):
        w >= "a"


def test_norms(w: sm.Variable) -> None:
    with pytest.raises(sm.ModelError, match="not convex"):
        sm.norm(w) >= 1
    with pytest.raises(sm.ModelError, match="sphere"):
        sm.norm(w) == 1
    with pytest.raises(sm.ModelError, match="order of norm"):
        sm.norm(w, 3)
    with pytest.raises(sm.ModelError, match="each column"):
        sm.norm(A @ sm.Variable((A.shape[1], 2)))
    with pytest.raises(sm.ModelError, match="at least 0"):
        sm.norm(w) <= -1
    with pytest.raises(sm.ModelError, match=r"norm\(A @ w - b\)\*\*2"):
        sm.minimize(sm.squared_loss(A @ w, B) + sm.norm(w))


# ---- expressions -----------------------------------------------------------------------------


def test_what_is_not_affine(w: sm.Variable) -> None:
    with pytest.raises(sm.ModelError, match="product of unknowns"):
        w.T @ w
    with pytest.raises(sm.DataError, match="must be equal"):
        w @ A
    with pytest.raises(sm.ModelError, match="not affine"):
        w * w
    with pytest.raises(sm.ModelError, match="Powers"):
        w**2
    with pytest.raises(sm.ModelError, match="not affine"):
        abs(w)
    with pytest.raises(sm.ModelError, match="multiply the matrices first"):
        sm.Parameter((4, A.shape[0])) @ (A @ w)
    with pytest.raises(sm.ModelError, match="multiply each part"):
        sm.Parameter((3, 4)) @ (w + sm.Variable())
    with pytest.raises(sm.ModelError, match="by zero"):
        w / 0.0
    with pytest.raises(sm.DataTypeError):
        w * "a"
    with pytest.raises(TypeError):
        np.exp(w)
    with pytest.raises(TypeError):
        list(w)  # type: ignore[call-overload]


def test_indices(w: sm.Variable) -> None:
    with pytest.raises(sm.ModelError, match="out of range: w has 4 entries"):
        w[7]
    with pytest.raises(sm.ModelError, match="selects no entries"):
        w[4:]
    with pytest.raises(sm.ModelError, match="distinct and in increasing order"):
        w[[2, 1]]
    with pytest.raises(sm.DataTypeError, match="slice, an index or a mask"):
        w[1.5]
    with pytest.raises(sm.ModelError, match=r"have no names: write names=df\.columns"):
        w["a"]
    with pytest.raises(sm.ModelError, match="single number"):
        sm.Variable(name="c")[0]
    with pytest.raises(sm.ModelError, match="slice its parts instead"):
        (A @ w)[:3]


def test_variables_that_make_no_sense() -> None:
    with pytest.raises(sm.DataTypeError, match="whole number or a tuple"):
        sm.Variable("w")  # type: ignore[arg-type]
    with pytest.raises(sm.DataTypeError, match="whole number or a tuple"):
        sm.Variable(2.5)  # type: ignore[arg-type]
    with pytest.raises(sm.ModelError, match="at least 1"):
        sm.Variable(0)
    with pytest.raises(sm.ModelError, match="at most two dimensions"):
        sm.Variable((2, 2, 2))
    with pytest.raises(sm.ModelError, match="2 entries, and w has 3"):
        sm.Variable(3, name="w", names=["a", "b"])
    with pytest.raises(sm.DataTypeError, match=r"Name 0 of w must be text, not list \['a'\]"):
        sm.Variable(3, name="w", names=[["a"], ["b"], "c"])
    with pytest.raises(sm.ModelError, match="Entries 1 and 3 of w are both named 'b'"):
        sm.Variable(5, name="w", names=["c", "b", "a", "b", "a"])
    assert sm.Variable(2, names=(f"x{j}" for j in range(2))).names == ("x0", "x1")
    w = sm.Variable(3, name="w")
    with pytest.raises(sm.ModelError, match="must have shape"):
        w.value = np.zeros(4)
    with pytest.raises(sm.DataError, match="NaN"):
        w.value = [1.0, np.nan, 0.0]


def test_matrices_that_multiply_by_themselves(w: sm.Variable) -> None:
    for matrix in (pd.DataFrame(A), aslinearoperator(A)):
        with pytest.raises(sm.DataTypeError, match=r"sm\.as_design\((A|df)\) @ w"):
            matrix @ w
        solved = sm.Problem(
            sm.minimize(sm.squared_loss(sm.as_design(matrix) @ w, B)), sm.card(w) <= 1
        ).solve()
        assert solved.indices.tolist() == [0]


# ---- objectives ------------------------------------------------------------------------------


def test_a_problem_without_a_loss(w: sm.Variable) -> None:
    with pytest.raises(sm.ModelError, match="has no loss"):
        sm.Problem(sm.minimize(sm.ridge(w, 1.0)), sm.card(w) <= 1)
    with pytest.raises(sm.ModelError, match="has no loss"):
        sm.Problem(sm.minimize(1.0 * sm.card(w)))
    with pytest.raises(sm.ModelError, match="not ndarray"):
        sm.minimize(A)
    with pytest.raises(sm.ModelError, match="an objective is one number"):
        sm.minimize(w)
    with pytest.raises(sm.ModelError, match=r"sm\.minimize\(\.\.\.\) first"):
        sm.Problem(sm.squared_loss(A, B), sm.card(w) <= 1)  # type: ignore[arg-type]


def test_two_objectives(w: sm.Variable) -> None:
    goal = sm.minimize(sm.squared_loss(A @ w, B))
    with pytest.raises(sm.ModelError, match="one objective"):
        sm.Problem(goal, goal, sm.card(w) <= 1)


def test_a_variable_in_no_loss(w: sm.Variable) -> None:
    v = sm.Variable(4, name="v")
    with pytest.raises(sm.ModelError, match="v appears in no loss"):
        problem(w, sm.card(v) <= 1)
    with pytest.raises(sm.ModelError, match="v appears in no loss"):
        sm.Problem(sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(v, 1.0)), sm.card(w) <= 1)
    with pytest.raises(sm.ModelError, match="appears in no loss"):
        sm.Problem(sm.minimize(0.0 * sm.squared_loss(A @ w, B)), sm.card(w) <= 1)


def test_terms_that_are_not_convex(w: sm.Variable) -> None:
    loss = sm.squared_loss(A @ w, B)
    with pytest.raises(sm.ModelError, match="negated loss is not convex"):
        -loss
    with pytest.raises(sm.ModelError, match="at least 0"):
        -1.0 * loss
    with pytest.raises(sm.ModelError, match="difference"):
        loss - sm.ridge(w, 1.0)
    with pytest.raises(sm.ModelError, match="product of two terms"):
        loss * loss
    with pytest.raises(sm.ModelError, match="positive number"):
        loss / 0
    with pytest.raises(sm.ModelError, match="Powers"):
        loss**2
    with pytest.raises(sm.ModelError, match="an objective is one number"):
        loss + A @ w
    with pytest.raises(sm.ModelError, match="close the loss's parenthesis"):
        A @ w + loss
    with pytest.raises(sm.ModelError, match="add the loss to it"):
        sm.Problem(sm.minimize(loss), loss <= 1.0)
    with pytest.raises(sm.ModelError, match="is a loss; a prediction"):
        sm.squared_loss(loss, B)
    with pytest.raises(sm.ModelError, match="prediction comes first"):
        sm.squared_loss(A, w)


def test_ridges(w: sm.Variable) -> None:
    with pytest.raises(sm.ModelError, match="needs its weight"):
        sm.ridge(w)
    with pytest.raises(sm.ModelError, match="at least 0"):
        sm.ridge(w, -1.0)
    with pytest.raises(sm.ModelError, match="variable first"):
        sm.ridge(1.0, w)
    with pytest.raises(sm.ModelError, match="must not be negative"):
        sm.ridge(w, [1.0, -1.0, 1.0, 1.0])
    with pytest.raises(sm.ModelError, match="3 weights for 4 entries"):
        sm.Problem(sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, np.ones(3))))
    with pytest.raises(sm.ModelError, match="variable or a slice"):
        sm.ridge(A @ w, 1.0)
    with pytest.raises(sm.ModelError, match="must be finite"):
        sm.ridge(w, np.inf)


def test_short_forms_need_one_vector(w: sm.Variable) -> None:
    v = sm.Variable(4, name="v")
    with pytest.raises(sm.ModelError, match=r"2 \(w, v\)"):
        sm.Problem(sm.minimize(sm.squared_loss(A @ w + A @ v, B) + sm.ridge(0.1)), sm.card(w) <= 1)
    with pytest.raises(sm.ModelError, match=r"0 \(none\)"):
        sm.Problem(sm.minimize(sm.squared_loss(A, B)))


def test_loss_parameters(w: sm.Variable) -> None:
    for wrong in (
        lambda: sm.huber_loss(A, B, delta=0.0),
        lambda: sm.quantile_loss(A, B, tau=90.0),
        lambda: sm.smoothed_hinge_loss(A, B > 0, gamma=-1.0),
        lambda: sm.epsilon_insensitive_loss(A, B, epsilon=-1.0),
        lambda: sm.squared_loss(A, B, reduction="max"),  # type: ignore[arg-type]
    ):
        with pytest.raises(sm.SparseModelError):
            wrong()
    with pytest.raises(sm.DataTypeError, match=r"did you mean SquaredLoss\(\)"):
        sm.loss_term(SquaredLoss, A, B)  # type: ignore[arg-type]


def test_matrix_variables(w: sm.Variable) -> None:
    W = sm.Variable((4, 2), name="W")
    with pytest.raises(sm.ModelError, match="use a vector variable"):
        sm.Problem(sm.minimize(sm.logistic_loss(A @ W, B > 0)), sm.card(W, axis=1) <= 1)
    with pytest.raises(sm.ModelError, match="matrix variable with 3 columns"):
        sm.Problem(
            sm.minimize(sm.multinomial_loss(A @ W, np.arange(10) % 3)), sm.card(W, axis=1) <= 1
        )
    with pytest.raises(sm.ModelError, match="matrix variable with 3 columns"):
        sm.Problem(sm.minimize(sm.multinomial_loss(A @ w, np.arange(10) % 3)), sm.card(w) <= 1)
    with pytest.raises(sm.ModelError, match=r"target has 2 columns.* or take one column of"):
        sm.Problem(sm.minimize(sm.squared_loss(A @ w, np.ones((10, 2)))), sm.card(w) <= 1)
    with pytest.raises(sm.ModelError, match=r"S is 2 x 2, and K is 4 x 4: .*Variable\(\(2, 2\)"):
        sm.Problem(
            sm.minimize(sm.gaussian_nll(sm.Variable((4, 4), symmetric=True, name="K"), np.eye(2)))
        )


# ---- constraints and what is asked later -----------------------------------------------------


def test_what_is_not_a_constraint(w: sm.Variable) -> None:
    with pytest.raises(sm.ModelError, match="not bool True"):
        problem(w, True)
    with pytest.raises(sm.ModelError, match="not int 3"):
        problem(w, sm.card(w) <= 2, 3)


def test_results_before_solving(w: sm.Variable) -> None:
    p = problem(w, sm.card(w) <= 1)
    assert p.value is None
    assert p.status == "not solved"
    assert w.value is None
    with pytest.raises(sm.NotSolvedError, match=r"problem\.solve\(\)"):
        p.solution


def test_starts(w: sm.Variable) -> None:
    p = problem(w, sm.card(w) <= 1)
    with pytest.raises(sm.ModelError, match="2 nonzero units"):
        p.solve(start=[1.0, 1.0, 0.0, 0.0])
    with pytest.raises(sm.ModelError, match="array, a mapping or 'value'"):
        p.solve(start="warm")
    with pytest.raises(sm.SparseModelError):
        p.solve(start=[np.nan, 0.0, 0.0, 0.0])
    with pytest.raises(sm.ModelError, match="at least 0"):
        p.solve(time_limit=-1.0)


def test_backends_by_name(w: sm.Variable) -> None:
    p = problem(w, sm.card(w) <= 1)
    with pytest.raises(sm.BackendUnavailableError, match="Did you mean 'nhtp'"):
        p.solve("nhtpp")
    with pytest.raises(sm.BackendUnavailableError, match="not int"):
        p.solve(3)  # type: ignore[arg-type]


def test_nothing_warns(w: sm.Variable) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem(w, sm.card(w) <= 0).solve()
        problem(w).solve()
        problem(w, sm.card(w) <= 4).solve()
