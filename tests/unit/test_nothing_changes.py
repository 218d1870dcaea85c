"""Objectives, points and terms are not changed by solving; what a run spends is the run's."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.services import objective_of, restricted_of
from sparsemodel.interfaces import Context, Limits, Objective, Point, Work
from sparsemodel.numerics import RegressionObjective, RidgedObjective, minimise_on_support
from sparsemodel.registry import backend_class

RNG = np.random.default_rng(4)
A = RNG.standard_normal((50, 12))
B = A[:, [1, 5]] @ [1.0, -2.0] + 0.2 * RNG.standard_normal(50)


def form_of(loss: str = "squared_loss") -> Any:
    w, c = sm.Variable(12, name="w"), sm.Variable(name="c")
    y = np.sign(B) if loss in ("logistic_loss", "hinge_loss") else B
    goal = sm.minimize(getattr(sm, loss)(A @ w + c, y) + sm.ridge(w, 1e-2))
    return sm.Problem(goal, sm.card(w) <= 3).form


def graph_form() -> Any:
    omega = sm.Variable((6, 6), symmetric=True, name="omega")
    term = sm.gaussian_nll(omega, data=A[:, :6])
    return sm.Problem(sm.minimize(term), sm.card(sm.offdiag(omega)) <= 3).form


def snapshot(objective: Objective) -> dict[str, int]:
    """The attributes by identity, without what is derived from them when it is first asked for."""
    derived = {
        name
        for kind in type(objective).__mro__
        for name, value in vars(kind).items()
        if isinstance(value, cached_property)
    }
    return {name: id(value) for name, value in vars(objective).items() if name not in derived}


@pytest.mark.parametrize("name", ["nhtp", "grahtp", "gp", "local_search", "exchange", "arht"])
@pytest.mark.parametrize("loss", ["squared_loss", "logistic_loss"])
def test_a_backend_leaves_the_objective_as_it_was(name: str, loss: str) -> None:
    form = form_of(loss)
    objective = objective_of(form)
    before = snapshot(objective)
    point = objective.origin()
    parts = point.x.copy(), point.value
    context = Context(restricted_of(form), Limits(50), np.random.default_rng(0))
    backend_class(name)().solve(objective, context)
    assert snapshot(objective) == before
    np.testing.assert_array_equal(point.x, parts[0])
    assert point.value == parts[1]
    assert objective.work.passes > 0.0


@pytest.mark.parametrize("form", [form_of(), graph_form()], ids=["regression", "graph"])
def test_attributes_of_an_objective_are_set_once(form: Any) -> None:
    objective = objective_of(form)
    for name in vars(objective):
        with pytest.raises(AttributeError, match=f"{name} is set already"):
            setattr(objective, name, None)
    with pytest.raises(AttributeError):
        objective.passes += 1.0  # type: ignore[attr-defined]


def test_points_and_terms_are_frozen() -> None:
    form = form_of()
    point = objective_of(form).origin()
    for value in (point, form.terms[0], form.terms[0].traits, form):
        for name in type(value).__slots__:
            with pytest.raises(FrozenInstanceError):
                setattr(value, name, None)


def test_a_gradient_is_remembered_and_can_be_replaced_in_another_point_only() -> None:
    objective = RegressionObjective(form_of())
    point = minimise_on_support(objective, np.array([1, 5, 12]), objective.origin())
    gradient = objective.gradient(point)
    assert point.gradient is gradient
    other = point.with_gradient(2.0 * gradient)
    assert point.gradient is gradient
    assert other.x is point.x
    np.testing.assert_array_equal(objective.gradient(other), 2.0 * gradient)
    spent = objective.work.passes
    np.testing.assert_allclose(objective.gradient(point.with_gradient(None)), gradient)
    assert objective.work.passes == spent + 0.5


def test_objectives_of_one_run_count_in_one_place() -> None:
    work = Work()
    one = objective_of(form_of(), None, work)
    two = objective_of(form_of("logistic_loss"), None, work)
    ridged = RidgedObjective(one, np.ones(13))
    one.gradient(one.origin())
    two.gradient(two.origin())
    ridged.gradient(ridged.point_from(np.ones(13)))
    assert work.passes == 1.5
    assert objective_of(form_of()).work is not objective_of(form_of()).work


def test_asking_for_columns_does_not_change_what_an_objective_says() -> None:
    form = form_of()
    objective = RegressionObjective(form)
    support = np.arange(3)
    said = objective.explicit_hessian(support)
    objective.columns(np.arange(5))
    assert objective.explicit_hessian(support) is said is True


def test_a_point_of_no_feasible_support_is_a_new_one() -> None:
    point = Point(np.zeros(2), np.arange(2), 1.0)
    with pytest.raises(FrozenInstanceError):
        point.value = np.inf  # type: ignore[misc]
