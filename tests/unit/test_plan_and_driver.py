"""Plans are made without solving and say why; the driver obeys limits and checks its backends."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.choice import dispatch
from sparsemodel.interfaces import Backend, Capabilities, Context, Objective, Result, Stop


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 60))
    return A, A[:, [5, 30, 41]] @ [2.0, -1.0, 1.0] + 0.3 * rng.standard_normal(80)


def make(data, k: int = 3, ridge: float = 0.01):
    A, b = data
    w = sm.Variable(A.shape[1], name="w")
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, ridge)), sm.card(w) <= k)


def test_plan_without_solving(data) -> None:
    problem = make(data)
    plan = problem.plan()
    assert problem.value is None
    assert plan.stages
    names = {stage.label for stage in plan.stages} | {r.backend for r in plan.rejected}
    assert names == {info.name for info in sm.available_backends() if info.available}
    assert all(r.reasons for r in plan.rejected)
    text = problem.explain(full=True)
    assert plan.chosen in text
    assert "squared_loss" in text
    assert "at most 3 of 60" in text
    assert plan.to_dict()["stages"][0]["backend"] == plan.chosen


def test_a_solve_writes_none_of_the_words_of_its_plan(data, monkeypatch) -> None:
    written = []
    for name in ("describe", "restricted_words", "notes_for"):
        real = getattr(dispatch, name)
        monkeypatch.setattr(dispatch, name, lambda form, real=real: written.append(1) or real(form))
    problem = make(data)
    problem.solve()
    assert not written
    plan = problem.plan()
    assert pickle.loads(pickle.dumps(plan)).words == plan.words
    assert plan.words.problem in problem.explain()
    assert plan.words.restricted.startswith("one Newton step")


def test_explicit_backend_is_obeyed(data) -> None:
    assert make(data).solve("grahtp").backend == "grahtp"
    assert make(data).solve(sm.backends.NHTP(tol=1e-10)).backend == "nhtp"


def test_explicit_backend_is_refused_with_objections(data) -> None:
    problem = make((data[0], data[1]), k=30)
    with pytest.raises(sm.UnsupportedProblemError, match=r"would try .* supports") as caught:
        problem.solve("exhaustive")
    assert caught.value.reasons


def test_unknown_backend_names_a_close_one(data) -> None:
    with pytest.raises(sm.BackendUnavailableError, match="Did you mean 'grahtp'"):
        make(data).solve("grathp")


def test_analysis_is_lean(data) -> None:
    """Columns of one size cost half a pass to analyse: the gradient the solver needs anyway.

    Where there is a choice to make, a few columns are read beside it: here 8 and 3 of 60.
    """
    asked, chosen = make(data), make(data)
    asked.plan("nhtp")
    assert asked._compiled().analysed <= 0.51
    chosen.plan()
    assert chosen._compiled().analysed <= 0.51 + 0.5 * 11 / 60 + 0.01


def test_second_solve_analyses_nothing(data) -> None:
    problem = make(data)
    first = problem.solve("nhtp")
    second = problem.solve("nhtp")
    assert second.passes == first.passes - 0.5
    np.testing.assert_array_equal(first.support, second.support)


def test_time_limit_returns_a_feasible_point(data) -> None:
    solution = make(data).solve(time_limit=0.0)
    assert solution.stop is Stop.TIME_LIMIT
    assert solution.status == "stopped early"
    assert solution.indices.size <= 3


def test_callback_ends_the_run(data) -> None:
    seen = []

    def callback(event) -> bool:
        seen.append(event)
        return True

    solution = make(data).solve("iht", callback=callback)
    assert len(seen) == 1
    assert solution.stop is Stop.CALLBACK


def test_start_is_used_and_checked(data) -> None:
    problem = make(data)
    best = problem.solve("nhtp")
    start = problem.variables[0].value
    again = problem.solve("grahtp", start=start)
    assert again.value <= best.value * (1 + 1e-12)
    with pytest.raises(sm.ModelError, match="nonzero units"):
        problem.solve(start=np.ones(60))
    with pytest.raises(sm.ModelError, match="shape"):
        problem.solve(start=np.ones(3))


@dataclass(frozen=True, slots=True)
class Cheat(Backend):
    """Returns more nonzeros than it may."""

    name: ClassVar[str] = "cheat"
    capabilities: ClassVar[Capabilities] = Capabilities()

    def solve(self, objective: Objective, context: Context) -> Result:
        return Result(objective.point_from(np.ones(objective.shape)), Stop.CONVERGED, 1)


def test_a_backend_that_cheats_is_named(data) -> None:
    with pytest.raises(sm.BackendContractError, match="'cheat' returned 60 nonzero"):
        make(data).solve(Cheat())


def test_separable_data_without_ridge_is_named() -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((20, 30))
    y = np.sign(A[:, 0])
    w = sm.Variable(30)
    problem = sm.Problem(sm.minimize(sm.logistic_loss(A, y)), sm.card(w) <= 5)
    with pytest.raises(sm.SeparableDataError, match=r"sm\.ridge"):
        problem.solve()


def test_nan_in_the_data_is_located() -> None:
    A = np.ones((5, 4))
    A[3, 2] = np.nan
    w = sm.Variable(4)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A, np.arange(5.0))), sm.card(w) <= 1)
    with pytest.raises(sm.DataError, match="row 3, column 2"):
        problem.solve()


def test_default_plan_beats_every_single_backend() -> None:
    """On a correlated design, where thresholding and greedy methods each go wrong alone."""
    rng = np.random.default_rng(7)
    E = rng.standard_normal((100, 150))
    for j in range(1, 150):
        E[:, j] = 0.9 * E[:, j - 1] + np.sqrt(1 - 0.81) * E[:, j]
    x = np.zeros(150)
    x[rng.choice(150, 10, replace=False)] = rng.standard_normal(10)
    b = E @ x + 0.5 * rng.standard_normal(100)
    problem = make((E, b), k=10, ridge=1e-3)
    best = problem.solve().value
    for name in ("nhtp", "grahtp", "iht", "gomp", "omp"):
        assert best <= problem.solve(name).value * (1 + 1e-9), name


def test_htp_and_grahtp_are_one_code_on_the_squared_loss() -> None:
    """GraHTP with a fixed step is hard thresholding pursuit (Foucart 2011), written here apart."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((50, 100)) / np.sqrt(50)
    b = A[:, :4] @ [1.0, 2.0, -1.0, 3.0] + 0.05 * rng.standard_normal(50)
    k, eta = 4, 0.5
    x = np.zeros(100)
    for _ in range(30):
        z = x + eta * A.T @ (b - A @ x)
        support = np.sort(np.argsort(-np.abs(z), kind="stable")[:k])
        x = np.zeros(100)
        x[support] = np.linalg.lstsq(A[:, support], b, rcond=None)[0]
    w = sm.Variable(100)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A, b, reduction="sum")), sm.card(w) <= k)
    problem.solve(sm.backends.GraHTP(step_size=eta))
    np.testing.assert_allclose(w.value, x, atol=1e-9)


def test_iht_with_a_fixed_step_is_the_textbook_iteration() -> None:
    rng = np.random.default_rng(4)
    A = rng.standard_normal((50, 100)) / np.sqrt(50)
    b = A[:, :4] @ [1.0, 2.0, -1.0, 3.0]
    k, eta, steps = 4, 0.3, 15
    x = np.zeros(100)
    for _ in range(steps):
        z = x + eta * A.T @ (b - A @ x)
        keep = np.sort(np.argsort(-np.abs(z), kind="stable")[:k])
        x = np.zeros(100)
        x[keep] = z[keep]
    w = sm.Variable(100)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A, b, reduction="sum")), sm.card(w) <= k)
    seen = []
    problem.solve(sm.backends.IHT(step_size=eta, tol=0.0, max_iter=steps), callback=seen.append)
    iterate = np.zeros(100)
    iterate[seen[-1].support] = seen[-1].values
    np.testing.assert_allclose(iterate, x, atol=1e-12)


def test_nhtp_converges_quadratically_on_a_logistic_problem() -> None:
    """The stationarity measure squares in the last iterations (NHTP, Theorem 9)."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((300, 50))
    y = np.where(rng.random(300) < 1 / (1 + np.exp(-A[:, :3] @ [2.0, -2.0, 2.0])), 1.0, -1.0)
    w = sm.Variable(50)
    problem = sm.Problem(sm.minimize(sm.logistic_loss(A, y) + sm.ridge(w, 1e-3)), sm.card(w) <= 3)
    seen = []
    problem.solve(sm.backends.NHTP(tol=1e-13), callback=seen.append)
    residuals = [event.residual for event in seen if event.residual > 1e-14]
    last, before = residuals[-1], residuals[-2]
    assert before < 1e-2
    assert last <= 10.0 * before**2 + 1e-13
