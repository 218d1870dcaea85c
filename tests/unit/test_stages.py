"""What holds across the stages of a plan: callback, exceptions, deadline, seed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import Capabilities, Context, IterativeBackend, Point, Stop
from sparsemodel.numerics import RegressionObjective, minimise_on_support

PLAN = "nhtp | gomp > local_search | foba"
STAGES = ("nhtp", "gomp", "local_search", "foba")
PRECISION_PLAN = "precision_grahtp > precision_swap | precision_fbs > precision_exchange"

POSED = """
import numpy as np
import sparsemodel as sm

def posed(loss="squared"):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((90, 60))
    b = A[:, :6] @ rng.standard_normal(6) + rng.standard_normal(90)
    w = sm.Variable(60, name="w")
    fit = sm.squared_loss(A @ w, b) if loss == "squared" else sm.hinge_loss(A @ w, np.sign(b))
    return sm.Problem(sm.minimize(fit + sm.ridge(w, 0.01)), sm.card(w) <= 8)
"""
_NAMES: dict[str, Any] = {}
exec(POSED, _NAMES)  # the same text runs in another process
posed = _NAMES["posed"]


def posed_precision() -> sm.Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 10)) @ (np.eye(10) + 0.5 * np.eye(10, k=1))
    omega = sm.Variable((10, 10), symmetric=True)
    goal = sm.minimize(sm.gaussian_nll(omega, data=X))
    return sm.Problem(goal, sm.card(sm.offdiag(omega)) <= 16)


# ---- callbacks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "plan"),
    [
        (posed(), PLAN),
        (posed("hinge"), PLAN),  # an adapter stands between the loss and the backends
        (posed_precision(), PRECISION_PLAN),
    ],
)
def test_a_callback_hears_of_every_stage_by_name_and_in_order(
    problem: sm.Problem, plan: str
) -> None:
    events: list[Any] = []
    solution = problem.solve(plan, callback=events.append)
    labels = [stage.label for stage in problem.plan(plan).stages]
    assert list(dict.fromkeys(event.backend for event in events)) == labels
    assert solution.backend == " + ".join(labels)
    assert len(events) == len(solution.history)
    assert solution.value <= min(event.best for event in events) * (1.0 + 1e-9)
    stages = [end for end in problem._outcome.stages if not end.skipped]
    assert [end.label for end in stages] == labels
    assert sum(end.iterations for end in stages) == solution.iterations


def test_iterations_are_told_in_terms_of_the_objective_that_was_asked() -> None:
    """Whatever an adapter smooths or leaves out for a backend, a price or a kink."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 10))
    y = np.sign(A[:, 0] - A[:, 1] + 0.5 * rng.standard_normal(30))
    w = sm.Variable(10)
    fit = sm.hinge_loss(A @ w, y) + sm.ridge(w, 0.01)
    for goal, limit, price in ((fit, 4, 0.0), (fit + 0.05 * sm.card(w), 10, 0.05)):
        events: list[Any] = []
        problem = sm.Problem(sm.minimize(goal), sm.card(w) <= limit)
        solution = problem.solve("gp", callback=events.append)
        assert [e.index for e in events] == list(range(1, len(events) + 1))
        assert [e.value for e in solution.history] == [e.value for e in events]
        for event in events:
            x = np.zeros(10)
            x[event.support] = event.values
            value = np.maximum(0.0, 1.0 - y * (A @ x)).mean() + 0.005 * x @ x
            assert event.value == pytest.approx(value + price * np.count_nonzero(x), rel=1e-9)
            assert event.best <= event.value
        assert solution.value <= events[-1].best * (1.0 + 1e-9)
        assert solution.bound <= min(event.value for event in events)


@pytest.mark.parametrize("guilty", STAGES)
def test_a_raising_callback_is_passed_on_from_any_stage(guilty: str) -> None:
    problem = posed()
    heard: list[str] = []

    def callback(event: Any) -> None:
        heard.append(event.backend)
        if event.backend == guilty:
            raise ZeroDivisionError(guilty)

    with pytest.raises(ZeroDivisionError, match=guilty):
        problem.solve(PLAN, callback=callback)
    assert heard[-1] == guilty
    assert problem.status == "not solved"
    assert problem.variables[0].value is None
    assert problem.solve(PLAN).value == posed().solve(PLAN).value, "the problem is as it was"


@pytest.mark.parametrize("last", STAGES)
def test_a_callback_ends_the_plan_in_any_stage(last: str) -> None:
    problem = posed()
    solution = problem.solve(PLAN, callback=lambda event: event.backend == last)
    assert solution.stop is Stop.CALLBACK
    assert solution.backend.split(" + ") == list(STAGES[: STAGES.index(last) + 1])
    assert solution.status == "stopped early"
    assert solution.indices.size <= 8


# ---- time ------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", STAGES)
def test_the_deadline_is_kept_in_any_stage(late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage that is running when time is up is the last, and the best point is returned."""
    clock, passed = time.perf_counter, [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + passed[0])
    best: list[float] = []

    def callback(event: Any) -> None:
        best.append(event.best)
        if event.backend == late:
            passed[0] = 1000.0

    solution = posed().solve(PLAN, time_limit=500.0, callback=callback)
    assert solution.stop is Stop.TIME_LIMIT
    assert solution.backend.split(" + ") == list(STAGES[: STAGES.index(late) + 1])
    assert solution.value <= min(best) * (1.0 + 1e-9)
    assert solution.indices.size <= 8


# ---- the seed --------------------------------------------------------------------------------


def test_the_seed_decides_in_every_process() -> None:
    plans = ("ht_svrg:max_iter=5 > local_search", None)
    code = f"""{POSED}
for plan in {plans!r}:
    s = posed().solve(plan, seed=5)
    print(s.value.hex(), s.support.tolist())
"""
    environment = os.environ | {"PYTHONHASHSEED": "12345"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    here = [posed().solve(plan, seed=5) for plan in plans]
    assert done.stdout.splitlines() == [f"{s.value.hex()} {s.support.tolist()}" for s in here]


def test_every_random_stage_has_the_seed() -> None:
    plan = "nhtp | ht_svrg:max_iter=3"
    runs = [
        [e.value for e in posed().solve(plan, seed=s, max_iter=6).history if e.backend == "ht_svrg"]
        for s in (1, 1, 2)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


# ---- what is written -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "plan"),
    [
        (posed(), None),
        (posed(), PLAN),
        (posed("hinge"), "gomp > local_search"),
        (posed_precision(), PRECISION_PLAN),
    ],
)
def test_verbose_has_a_line_for_every_stage(
    problem: sm.Problem, plan: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    problem.solve(plan, verbose=True)
    text = stream.getvalue()
    assert f"plan: {problem.plan(plan).outline}" in text
    for fact in problem.plan(plan).facts:
        assert f"  {fact.name}: {fact.value}" in text
    for end in problem._outcome.stages:
        assert f"  {end.number}. {end.label}: " in text
    if problem._outcome.stages[-1].skipped:
        assert "not needed" in text.splitlines()[-1]


# ---- products that fail ----------------------------------------------------------------------


def test_a_step_from_a_gradient_that_is_not_a_number_ends_the_run() -> None:
    objective = RegressionObjective(posed().form)
    point = objective.point(np.arange(3), np.ones(3))
    objective.gradient(point).fill(np.nan)  # a product that failed, and others that do not
    found = Returned(point).solve(objective, Context(minimise_on_support))
    assert found.stop is Stop.NON_FINITE
    assert found.point is point


@dataclass(frozen=True)
class Returned(IterativeBackend[Any]):
    """Goes from a point to zero, and says that it has converged."""

    first: Point
    name: ClassVar[str] = "returned"
    capabilities: ClassVar[Capabilities] = Capabilities()

    def init(self, objective: Any, context: Context) -> Any:
        return SimpleNamespace(point=self.first, done=False)

    def step(self, objective: Any, state: Any, context: Context) -> Any:
        return SimpleNamespace(point=objective.origin(), done=True)
