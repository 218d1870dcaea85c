"""The l1 path: its minimisers against scikit-learn and against their optimality conditions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Lasso

import sparsemodel as sm
from sparsemodel.interfaces import Box, Context, ModelError, Stop, coordinate_scores
from sparsemodel.numerics import RegressionObjective, minimise_on_support
from sparsemodel.numerics.minimisers.boxed import minimise_in_box
from sparsemodel.testing.instances import catalogue
from sparsemodel_backends.l1 import L1
from sparsemodel_backends.omp import OMP

PRECISE = L1(tol=1e-10, inner_iter=20_000)


def after(objective, steps, context=None):
    """Return the state after some penalties."""
    context = context or Context(minimise_on_support)
    state = PRECISE.init(objective, context)
    for _ in range(steps):
        state = PRECISE.step(objective, state, context)
    return state


@pytest.mark.parametrize("positive", [False, True])
def test_minimisers_are_those_of_scikit_learn(positive):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 80))
    A /= np.sqrt(np.mean(A**2, axis=0))  # the diagonal of the Hessian is one
    b = A[:, :5] @ [2.0, -1.5, 1.0, 1.0, -1.0] + 0.3 * rng.standard_normal(50)
    w = sm.Variable(80)
    form = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 40).form
    if positive:
        form = replace(form, box=Box(np.zeros(80), np.full(80, np.inf)))
    objective = RegressionObjective(form)
    state = after(objective, 6, Context(minimise_in_box if positive else minimise_on_support))
    curvature = objective.hessian_diagonal(objective.origin(), np.arange(80))[0]
    alpha = state.penalty / np.sqrt(curvature)
    reference = Lasso(
        alpha=alpha, fit_intercept=False, positive=positive, tol=1e-12, max_iter=100_000
    ).fit(A, b)
    assert 3 <= np.count_nonzero(reference.coef_) < 40
    np.testing.assert_allclose(state.relaxed.x, reference.coef_, atol=1e-6)


@pytest.mark.parametrize(
    "maker",
    [
        catalogue.logistic_intercept,
        catalogue.squared_groups,
        catalogue.squared_rows,
        catalogue.multinomial_rows,
        catalogue.poisson,
        catalogue.ridge_vector,
    ],
)
def test_minimisers_satisfy_the_optimality_conditions(maker):
    objective = catalogue.instance(maker).objective()
    state = after(objective, 4)
    sparsity, d, x = objective.cardinality, state.metric, state.relaxed.x
    g = objective.gradient(state.relaxed)
    scale = np.abs(objective.gradient(objective.origin())).max()
    np.testing.assert_allclose(g[sparsity.free], 0.0, atol=1e-5 * scale)
    groups = sparsity.groups
    if groups is None:
        groups = np.full(sparsity.size, -1)
        groups[sparsity.counted] = np.arange(sparsity.units)
    seen = set()
    for unit in range(sparsity.units):
        rows = np.flatnonzero(groups == unit)
        limit = state.penalty * np.sqrt(rows.size)
        norm = np.sqrt(np.sum(d[rows] * coordinate_scores(x[rows])))
        metric = d[rows] if x.ndim == 1 else d[rows, None]
        if norm > 0.0:
            pull = g[rows] + limit * metric * x[rows] / norm
            np.testing.assert_allclose(pull, 0.0, atol=1e-5 * scale)
        else:
            assert np.sqrt(np.sum(coordinate_scores(g[rows]) / d[rows])) <= limit * (1 + 1e-6)
        seen.add(bool(norm > 0.0))
    assert True in seen


def test_the_result_is_the_minimiser_on_k_coordinates():
    objective = catalogue.instance(catalogue.wide_logistic_ridge).objective()
    result = L1().solve(objective, Context(minimise_on_support))
    assert result.stop is Stop.CONVERGED
    assert result.point.support.size == objective.cardinality.k
    again = minimise_on_support(objective, result.point.support, result.point)
    assert result.point.value == pytest.approx(again.value, rel=1e-12)
    assert "penalty" in result.notes[0]


def test_units_of_the_columns_do_not_matter():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((60, 30))
    b = A[:, :4] @ [1.0, -1.0, 2.0, 1.5] + 0.5 * rng.standard_normal(60)
    scale = np.geomspace(1e-3, 1e3, 30)
    w = sm.Variable(30)
    supports = [
        sm.Problem(sm.minimize(sm.squared_loss((A * s) @ w, b)), sm.card(w) <= 6)
        .solve("l1")
        .support
        for s in (np.ones(30), scale)
    ]
    np.testing.assert_array_equal(*supports)


def test_hard_selection_is_no_worse_on_correlated_columns():
    """A yardstick: at equal sparsity the greedy method is ahead of the relaxation here."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((80, 200)) + rng.standard_normal((80, 1))
    b = A[:, :8] @ rng.uniform(1.0, 2.0, 8) + 0.1 * rng.standard_normal(80)
    w = sm.Variable(200)
    form = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 8).form
    context = Context(minimise_on_support)
    ours, greedy = (
        backend.solve(RegressionObjective(form), context).point.value for backend in (L1(), OMP())
    )
    assert greedy <= ours
    assert ours < 0.5 * RegressionObjective(form).origin().value


def test_options_that_make_no_sense():
    for name, wrong in {"ratio": 1.0, "least": 0.0, "tol": 0.0, "inner_iter": 0}.items():
        with pytest.raises(ModelError, match=f"{name} must be"):
            L1(**{name: wrong})
    bounded = catalogue.instance(catalogue.bounded).form()
    assert L1().objections(bounded) == ()
    grouped = catalogue.instance(catalogue.squared_groups).form()
    boxed = replace(grouped, box=Box(np.zeros(10), np.ones(10)))
    assert "single coordinates" in L1().objections(boxed)[0]
