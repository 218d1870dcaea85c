"""The driver takes no backend's word: stages that say the worst, the same, or what is forbidden."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.plans.stage import Stage
from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.compiler.reductions.scale import Scale
from sparsemodel.compiler.services import objective_of, restricted_of
from sparsemodel.designs import DenseDesign
from sparsemodel.driver import RunOptions, run
from sparsemodel.driver.finish import debiased_point, first_point, restored
from sparsemodel.driver.judging import better, check_contract
from sparsemodel.interfaces import (
    Backend,
    Box,
    Capabilities,
    Cardinality,
    Context,
    Linear,
    Objective,
    Region,
    Result,
    SparseRegression,
    Stop,
    Term,
)
from sparsemodel.losses import SquaredLoss

P = 6
RNG = np.random.default_rng(0)
A = RNG.standard_normal((20, P))
Y = A[:, 0] - A[:, 3] + 0.1 * RNG.standard_normal(20)
TERM = Term(DenseDesign(A), SquaredLoss(), Y, np.full(20, 0.05))
FORM = SparseRegression((TERM,), np.full(P, 0.1), Cardinality(P, 2))


def vector(entries):
    x = np.zeros(P)
    for j, value in entries.items():
        x[j] = value
    return x


BEST, WORSE, WORST = {0: 0.9, 3: -0.9}, {0: 0.9, 1: 0.1}, {1: 5.0}


def fitted(entries):
    """Return the least objective on a support, by the normal equations."""
    S = sorted(entries)
    w = np.linalg.solve(A[:, S].T @ A[:, S] / 20 + 0.1 * np.eye(len(S)), A[:, S].T @ Y / 20)
    return 0.5 * np.mean((A[:, S] @ w - Y) ** 2) + 0.05 * w @ w


def result(objective, entries, stop=Stop.CONVERGED):
    return Result(objective.point_from(vector(entries)), stop, 1)


@dataclass(frozen=True, slots=True)
class Says(Backend):
    """Returns a point whatever it is given, and remembers where it was to start."""

    name: ClassVar[str] = "says"
    capabilities: ClassVar[Capabilities] = Capabilities()
    entries: dict[int, float]
    stop: Stop = Stop.CONVERGED
    starts: list = field(default_factory=list)

    def solve(self, objective: Objective, context: Context) -> Result:
        self.starts.append(context.start)
        return result(objective, self.entries, self.stop)


def ran(*stages, form=FORM, options=None, **changes):
    """Run stages of ``(what is said, where it starts)`` on the form as it is."""
    w = sm.Variable(P)
    plan = sm.Problem(sm.minimize(sm.squared_loss(A @ w, Y)), sm.card(w) <= 2).plan("iht")
    made = tuple(
        Stage(backend, "", f"stage {i}", start=start) for i, (backend, start) in enumerate(stages)
    )
    return run(form, Reduced(form, ()), replace(plan, stages=made, **changes), options)


@pytest.mark.parametrize("order", [(BEST, WORSE), (WORSE, BEST), (BEST, WORST), (WORST, BEST)])
def test_the_best_point_of_all_stages_is_returned(order):
    for stop in (Stop.CONVERGED, Stop.MAX_ITERATIONS):
        outcome = ran(*((Says(entries, stop), "zero") for entries in order))
        np.testing.assert_array_equal(np.flatnonzero(outcome.x), sorted(BEST))
        assert outcome.value == pytest.approx(fitted(BEST), rel=1e-12)  # refitted on its support


def test_a_stage_starts_where_its_plan_says():
    for start, entries in (("zero", None), ("last", WORSE), ("best", BEST)):
        third = Says(WORST)
        ran((Says(BEST), "zero"), (Says(WORSE), "last"), (third, start))
        if entries is None:
            assert third.starts == [None]
        else:
            np.testing.assert_array_equal(third.starts[0], vector(entries))


def test_fresh_starts_end_when_two_agree_and_not_before():
    again, other = Says(BEST), Says(BEST)
    outcome = ran((Says(BEST), "zero"), (again, "zero"), (other, "zero"), until_agreement=True)
    assert (len(again.starts), len(other.starts)) == (1, 0)
    assert outcome.stages[-1].skipped == "two starts came to the same point"
    near = {0: 0.9, 3: -0.9001}
    again, other = Says(near), Says(BEST)
    ran((Says(BEST), "zero"), (again, "zero"), (other, "zero"), until_agreement=True)
    assert (len(again.starts), len(other.starts)) == (1, 1)


def test_a_start_that_leads_astray_is_left():
    far = vector({1: 100.0})
    says = Says({1: 90.0}, Stop.MAX_ITERATIONS)
    outcome = ran((says, "zero"), options=RunOptions(start=far))
    assert len(says.starts) == 2
    np.testing.assert_array_equal(says.starts[0], far)
    assert says.starts[1] is None
    assert "began again" in outcome.notes[0]


def test_lower_is_better_and_a_tie_goes_to_who_came_to_an_end():
    objective = objective_of(FORM)
    best, worse = result(objective, BEST), result(objective, WORSE)
    assert better(objective, best, worse)
    assert not better(objective, worse, best)
    assert not better(objective, best, best)
    cut = replace(best, stop=Stop.MAX_ITERATIONS)
    assert better(objective, best, cut)
    assert not better(objective, cut, best)
    assert not better(objective, worse, cut)
    priced = objective_of(replace(FORM, sparsity=Cardinality(P, 2, price=10.0)))
    zero = result(priced, {})
    assert better(priced, zero, result(priced, BEST))


def limited(**changes):
    return objective_of(replace(FORM, **changes))


def test_what_a_backend_may_not_return_is_refused():
    check_contract("b", result(objective_of(FORM), BEST), objective_of(FORM))
    objective = objective_of(FORM)
    bad = result(objective, BEST)
    broken = replace(bad, point=replace(bad.point, x=vector({0: np.nan})))
    with pytest.raises(sm.BackendContractError, match="not finite"):
        check_contract("b", broken, objective)
    with pytest.raises(sm.BackendContractError, match="3 nonzero units"):
        check_contract("b", result(objective, {0: 1.0, 1: 1.0, 2: 1.0}), objective)
    forced = Cardinality(P, 2, np.array([5]), forced=np.array([5]), forced_units=1)
    objective = limited(sparsity=forced)
    check_contract("b", result(objective, {0: 1.0, 5: 1.0}), objective)
    with pytest.raises(sm.BackendContractError, match="2 nonzero units, and it may choose 1"):
        check_contract("b", result(objective, {0: 1.0, 1: 1.0, 5: 1.0}), objective)
    for low, high in ((-0.5, np.inf), (-np.inf, 0.5)):
        objective = limited(box=Box(np.full(P, low), np.full(P, high)))
        with pytest.raises(sm.BackendContractError, match="outside the bounds"):
            check_contract("b", result(objective, BEST), objective)
    rows = Linear(DenseDesign(np.ones((1, P))), np.array([1.0]), np.array([1.0]))
    objective = limited(region=Region((rows,)))
    check_contract("b", result(objective, {0: 1.5, 3: -0.5}), objective)
    with pytest.raises(sm.BackendContractError, match="violates a constraint"):
        check_contract("b", result(objective, BEST), objective)
    with pytest.raises(sm.BackendContractError, match="3 nonzero units"):
        ran((Says({0: 1.0, 1: 1.0, 2: 1.0}), "zero"))


def test_a_point_is_refitted_where_that_is_better():
    objective, restricted = objective_of(FORM), restricted_of(FORM)
    given = result(objective, BEST)
    assert debiased_point(objective, restricted, given).value == pytest.approx(fitted(BEST))
    assert given.point.value > 1.0001 * fitted(BEST)
    cut = replace(given, stop=Stop.TIME_LIMIT)
    assert debiased_point(objective, restricted, cut) is cut.point

    def worse(objective, support, start=None):
        return result(objective, WORST).point

    assert debiased_point(objective, worse, given) is given.point


def test_what_is_returned_is_within_its_bounds_and_evaluated_with_its_price():
    box = Box(np.full(P, -0.5), np.full(P, 0.5))
    form = replace(FORM, box=box, sparsity=Cardinality(P, 2, price=0.25))
    objective = objective_of(form)
    point = objective.point_from(vector({0: np.nextafter(0.5, 1.0), 3: np.nextafter(-0.5, -1.0)}))
    x, value = restored(form, Reduced(form, ()), point)
    np.testing.assert_array_equal(x, vector({0: 0.5, 3: -0.5}))
    assert value == pytest.approx(point.value + 2 * 0.25, rel=1e-12)


def test_a_start_outside_the_bounds_is_fitted_first():
    form = replace(FORM, box=Box(np.full(P, -0.5), np.full(P, 0.5)))
    start = first_point(objective_of(form), restricted_of(form), vector(BEST))
    np.testing.assert_allclose(start, vector({0: 0.5, 3: -0.5}), atol=1e-9)
    inside = vector({0: 0.25})
    assert first_point(objective_of(form), restricted_of(form), inside) is inside


def test_a_start_and_the_answer_go_through_the_reductions():
    scale = Scale(np.array([4.0, 1.0, 1.0, 0.5, 1.0, 1.0]))
    reduced = Reduced(scale.apply(FORM), (scale,))
    says = Says({0: 0.9 / 4.0, 3: -0.9 / 0.5})
    w = sm.Variable(P)
    plan = sm.Problem(sm.minimize(sm.squared_loss(A @ w, Y)), sm.card(w) <= 2).plan("iht")
    plan = replace(plan, stages=(Stage(says, "", "says", start="zero"),))
    outcome = run(FORM, reduced, plan, RunOptions(start=vector(WORSE)))
    np.testing.assert_array_equal(says.starts[0], scale.carry(vector(WORSE)))
    assert not np.array_equal(says.starts[0], vector(WORSE))
    assert outcome.value == pytest.approx(fitted(BEST), rel=1e-12)
    assert objective_of(FORM).point_from(outcome.x).value == pytest.approx(fitted(BEST), rel=1e-12)
