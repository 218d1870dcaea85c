"""Squared losses within constraints are searched without these first."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.adapters.without_bounds import WithoutBounds
from sparsemodel.interfaces import Stop
from sparsemodel_backends.exchange import Exchange


def _problem(kind, seed=0, loss=sm.squared_loss):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((80, 24))
    y = A[:, :4] @ np.array([1.0, 0.8, 0.6, 0.4]) + 0.5 * rng.standard_normal(80)
    y = y if loss is sm.squared_loss else np.sign(y)
    w = sm.Variable(24, name="w")
    constraint = {
        "kept signs": w >= 0,
        "kept ball": sm.norm(w) <= 3.0,
        "broken box": w <= 0.7,
        "equation": w.sum() == 0,
        "not at zero": w.sum() >= 1,
    }[kind]
    return sm.Problem(sm.minimize(loss(A @ w, y)), [sm.card(w) <= 4, constraint]), w


@pytest.fixture
def searched(monkeypatch):
    """Whether each search that was begun had constraints."""
    found, init = [], Exchange.init

    def noted(self, objective, context):
        found.append(objective.form.constrained)
        return init(self, objective, context)

    monkeypatch.setattr(Exchange, "init", noted)
    return found


def _stage(problem, **options):
    return problem.plan(**options).stages[0].backend


@pytest.mark.parametrize("kind", ["kept signs", "kept ball"])
def test_constraints_that_are_met_anyway_cost_no_search_with_them(kind, searched):
    problem, _ = _problem(kind)
    named = problem.solve("exchange").value
    searched.clear()
    problem, w = _problem(kind)
    seen = []
    found = problem.solve(callback=lambda event: seen.append(event.value))
    assert isinstance(_stage(problem), WithoutBounds)
    assert searched == [False]
    assert found.value == pytest.approx(named, rel=1e-9)
    assert len(seen) == found.iterations
    assert min(seen) >= found.value * (1.0 - 1e-9)  # no point that breaks a constraint is reported
    assert np.min(w.value) >= 0.0 if kind == "kept signs" else np.linalg.norm(w.value) <= 3.0


def test_where_a_point_breaks_constraints_the_search_is_that_with_them(searched):
    problem, _ = _problem("broken box")
    named = problem.solve("exchange").value
    searched.clear()
    problem, _ = _problem("broken box")
    seen = []
    found = problem.solve(callback=lambda event: seen.append(event.value))
    assert searched == [False, True]
    assert found.value == pytest.approx(named, rel=1e-12)
    assert min(seen) >= found.value * (1.0 - 1e-9)
    assert len(seen) == found.iterations


def test_a_callback_ends_the_search_without_constraints():
    problem, _ = _problem("kept signs")
    found = problem.solve(callback=lambda _: True)
    assert (found.iterations, found.stop) == (1, Stop.CALLBACK)


@pytest.mark.parametrize("kind", ["equation", "not at zero"])
def test_linear_equations_and_constraints_that_zero_breaks_are_never_left_out(kind):
    assert not isinstance(_stage(_problem(kind)[0]), WithoutBounds)


def test_other_losses_and_patient_searches_keep_their_constraints():
    assert not isinstance(_stage(_problem("kept signs", loss=sm.logistic_loss)[0]), WithoutBounds)
    problem, _ = _problem("kept signs")
    assert not isinstance(_stage(problem, effort="high"), WithoutBounds)


def test_the_plan_says_that_constraints_are_left_out_first():
    assert "left out until a point breaks them" in str(_problem("kept signs")[0].explain(full=True))
