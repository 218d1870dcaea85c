"""Reductions keep the problem: values, gradients and points translate exactly."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemodel as sm
from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.reductions.center import Center
from sparsemodel.compiler.reductions.chain import reduce_form
from sparsemodel.compiler.reductions.drop_columns import DropColumns
from sparsemodel.compiler.reductions.scale import Scale
from sparsemodel.compiler.reductions.shift import Shift
from sparsemodel.compiler.reductions.shift_columns import ShiftColumns
from sparsemodel.designs import DenseDesign, StackedDesign
from sparsemodel.interfaces import SparseRegression
from sparsemodel.numerics import RegressionObjective


def problem(rng: np.random.Generator, *, ridge: float = 0.1, intercept: bool = True, k: int = 3):
    A = rng.standard_normal((12, 6)) * np.array([1.0, 100.0, 0.01, 1.0, 5.0, 1.0]) + 3.0
    b = rng.standard_normal(12)
    w, c = sm.Variable(6, name="w"), sm.Variable(name="c")
    prediction = A @ w + c if intercept else A @ w
    objective = sm.squared_loss(prediction, b) + sm.ridge(w, ridge)
    return A, b, sm.Problem(sm.minimize(objective), sm.card(w) <= k)


def check_equivalent(
    form: SparseRegression, reduced, rng: np.random.Generator, rtol: float = 1e-9
) -> None:
    """Values agree at random points, and the carried gradient is the reduced form's own."""
    outer, inner = RegressionObjective(form), RegressionObjective(reduced.form)
    for _ in range(3):
        y = rng.standard_normal(reduced.form.shape)
        x = reduced.restore(y)
        np.testing.assert_allclose(outer.point_from(x).value, inner.point_from(y).value, rtol=rtol)
        np.testing.assert_allclose(reduced.carry(x), y, rtol=rtol, atol=rtol)
    if reduced.gradient is not None:
        own = inner.gradient(inner.point_from(np.zeros(reduced.form.shape)))
        np.testing.assert_allclose(reduced.gradient, own, rtol=1e-7, atol=1e-9)


@given(seed=st.integers(0, 10_000), ridge=st.sampled_from([0.0, 0.3]), intercept=st.booleans())
def test_reduced_problem_is_the_same_problem(seed: int, ridge: float, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    _, _, declared = problem(rng, ridge=ridge, intercept=intercept)
    reduced = reduce_form(declared.form, Facts(declared.form))
    check_equivalent(declared.form, reduced, rng)
    assert reduced.form.sparsity.k == 3


@pytest.mark.parametrize(("rows", "kind"), [(60, DenseDesign), (30_000, StackedDesign)])
def test_few_centred_columns_are_written_out(rows: int, kind: type) -> None:
    rng = np.random.default_rng(1)
    A, w = rng.standard_normal((rows, 4)) + 1.0, sm.Variable(4)
    goal = sm.minimize(sm.logistic_loss(A @ w + sm.Variable(), A[:, 0] > rng.standard_normal(rows)))
    declared = sm.Problem(goal, sm.card(w) <= 1)
    reduced = reduce_form(declared.form, Facts(declared.form))
    assert [type(r) for r in reduced.reductions] == [Center]
    assert type(reduced.form.terms[0].design) is kind
    check_equivalent(declared.form, reduced, rng)


def test_intercept_is_centred_and_columns_are_scaled() -> None:
    _, _, declared = problem(np.random.default_rng(0))
    reduced = reduce_form(declared.form, Facts(declared.form))
    assert [type(r) for r in reduced.reductions] == [ShiftColumns, Center, Scale]
    squares = reduced.form.terms[0].design.column_square_norms(reduced.form.terms[0].weights)
    np.testing.assert_allclose(squares + reduced.form.ridge, 1.0, rtol=1e-9)  # curvatures


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "loss",
    [
        sm.absolute_loss,
        partial(sm.quantile_loss, tau=0.3),
        partial(sm.epsilon_insensitive_loss, epsilon=0.2),
        sm.huber_loss,
    ],
    ids=["absolute", "quantile", "epsilon", "huber"],
)
def test_targets_far_from_zero_are_taken_back_by_an_intercept(loss: Any, weighted: bool) -> None:
    """The minimum is that of the residuals, up to the rounding of the targets."""
    rng = np.random.default_rng(6)
    A = rng.standard_normal((20, 4))
    b = 2.0 * A[:, 0] + 0.3 * rng.standard_normal(20)
    weights = rng.uniform(0.5, 2.0, 20) if weighted else None
    values = []
    for target in (b, (b + 1e12) - 1e12, b + 1e12):
        w, c = sm.Variable(4), sm.Variable()
        goal = sm.minimize(loss(A @ w + c, target, weights=weights))
        declared = sm.Problem(goal, sm.card(w) <= 2)
        values.append(declared.solve().value)
    reduced = reduce_form(declared.form, Facts(declared.form))
    assert any(isinstance(r, Shift) for r in reduced.reductions)
    assert np.abs(reduced.form.terms[0].target).max() < 10.0
    check_equivalent(declared.form, reduced, rng, rtol=1e-3)
    assert values[2] == pytest.approx(values[1], abs=1e-3)  # a unit of 1e12 is 1.2e-4
    assert values[1] == pytest.approx(values[0], abs=1e-3)


def test_an_outlier_does_not_set_the_shift() -> None:
    rng = np.random.default_rng(7)
    A = rng.standard_normal((15, 2))
    b = A[:, 0] + 1e9
    b[0] = -1e15
    w, c = sm.Variable(2), sm.Variable()
    declared = sm.Problem(sm.minimize(sm.huber_loss(A @ w + c, b)), sm.card(w) <= 1)
    reduced = reduce_form(declared.form, Facts(declared.form))
    assert np.abs(reduced.form.terms[0].target[1:]).max() < 10.0


def test_equal_columns_are_not_touched_where_sizes_agree() -> None:
    rng = np.random.default_rng(1)
    A = rng.choice([-1.0, 1.0], (40, 5))
    w = sm.Variable(5)
    declared = sm.Problem(sm.minimize(sm.squared_loss(A, A[:, 0])), sm.card(w) <= 2)
    reduced = reduce_form(declared.form, Facts(declared.form))
    assert reduced.reductions == ()
    assert reduced.form is declared.form


def test_zero_constant_and_copied_columns_are_left_out() -> None:
    rng = np.random.default_rng(2)
    A = rng.standard_normal((20, 6))
    A[:, 1] = 0.0
    A[:, 4] = A[:, 2]
    b = A[:, 2] - A[:, 5]
    w = sm.Variable(6)
    declared = sm.Problem(sm.minimize(sm.squared_loss(A, b)), sm.card(w) <= 2)
    reduced = reduce_form(declared.form, Facts(declared.form))
    assert [type(r) for r in reduced.reductions] == [DropColumns, DropColumns]
    assert reduced.form.sparsity.size == 4
    check_equivalent(declared.form, reduced, rng)
    np.testing.assert_array_equal(declared.solve().support, [2, 5])


def test_copies_stay_where_a_ridge_would_share_between_them() -> None:
    rng = np.random.default_rng(3)
    A = rng.standard_normal((20, 4))
    A[:, 3] = A[:, 0]
    w = sm.Variable(4)
    declared = sm.Problem(
        sm.minimize(sm.squared_loss(A, A[:, 0], reduction="sum") + sm.ridge(5.0)), sm.card(w) <= 2
    )
    assert reduce_form(declared.form, Facts(declared.form)).form.sparsity.size == 4
    np.testing.assert_array_equal(declared.solve("exhaustive").support, [0, 3])


def test_a_constant_column_is_dropped_when_there_is_an_intercept() -> None:
    rng = np.random.default_rng(4)
    A = rng.standard_normal((20, 4))
    A[:, 1] = 7.0
    w, c = sm.Variable(4, name="w"), sm.Variable(name="c")
    declared = sm.Problem(sm.minimize(sm.squared_loss(A @ w + c, A[:, 0] + 2.0)), sm.card(w) <= 1)
    solution = declared.solve()
    np.testing.assert_array_equal(solution.support, [0])
    assert c.value == pytest.approx(2.0)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_support_is_invariant_to_units(scale: float) -> None:
    rng = np.random.default_rng(5)
    A = rng.standard_normal((60, 40))
    b = A[:, [3, 17, 20]] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)
    supports = []
    for factor in (1.0, scale):
        w = sm.Variable(40)
        declared = sm.Problem(sm.minimize(sm.squared_loss(factor * A, b)), sm.card(w) <= 3)
        supports.append(declared.solve("nhtp").support)
    np.testing.assert_array_equal(supports[0], supports[1])
