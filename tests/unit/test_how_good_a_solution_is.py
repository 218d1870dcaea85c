"""A solution looks for its lower bound when it is asked, and only then."""

from __future__ import annotations

import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import certify, verify
from sparsemodel.certificates.dual_bounds import bound_search
from sparsemodel.certificates.proving import beyond_root, compiling
from sparsemodel.certificates.proving.gram.kernels import node_compiled
from sparsemodel.interfaces import DataError
from sparsemodel.modelling.regression import compiled
from sparsemodel.modelling.regression.compiled import Compiled
from sparsemodel.modelling.results import assembly
from tests.stress import Recipe, judge

N, P = 60, 12


def data(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, P))
    return A, A[:, :3] @ [2.0, -1.0, 0.5] + rng.standard_normal(N)


def posed(A: Any, b: Any, k: Any = 3) -> sm.Problem:
    w = sm.Variable(P, name="w")
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= k)


def least(A: Any, b: Any, k: int) -> float:
    """Return the least loss of all supports, by least squares."""
    residuals = (
        np.linalg.lstsq(A[:, list(s)], b, rcond=None)[1][0] for s in combinations(range(P), k)
    )
    return float(min(residuals)) / (2 * N)


@pytest.mark.parametrize("seed", range(3))
def test_without_a_ridge_it_says_that_it_is_optimal(seed: int) -> None:
    A, b = data(seed)
    problem = posed(A, b)
    solution = problem.solve()
    assert solution.status == problem.status == "optimal (proved)"
    assert solution.bound <= least(A, b, 3) * (1.0 + 1e-12)
    assert solution.gap <= 1e-6 * solution.value
    assert "prove() returns the certificate" in " ".join(str(solution).split())


def hard(loss: Any = sm.squared_loss, upper: float = np.inf) -> sm.Problem:
    """Return a problem whose proof takes some nodes, and less than half a second."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, 20))
    b = A[:, :5] @ np.full(5, 0.5) + rng.standard_normal(N)
    w = sm.Variable(20, name="w")
    target = np.sign(b) if loss is sm.logistic_loss else b
    bounds = [w <= upper] if np.isfinite(upper) else []
    goal = sm.minimize(loss(A @ w, target) + sm.ridge(w, 1e-2))
    return sm.Problem(goal, sm.card(w) <= 4, *bounds)


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.logistic_loss, sm.huber_loss])
def test_a_short_proof_is_tried(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "_LEAST", 30.0)
    node_compiled.compiling()
    problem = hard(loss)
    solution = problem.solve()
    assert not certify(problem.form, problem._solved()[0].x).claim.optimal
    assert solution.status == "optimal (proved)"
    assert solution.bound <= hard(loss).prove().upper


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.logistic_loss])
def test_a_certificate_says_what_a_short_proof_does(loss: Any) -> None:
    problem = hard(loss)
    certificate = problem.certify()
    assert certificate.claim.optimal
    assert hard(loss).solve().bound <= certificate.bound * (1.0 + 1e-6)
    assert verify(certificate, problem.form, names=problem.layout.names()).claim.optimal


@pytest.mark.parametrize("loss", [sm.logistic_loss, sm.huber_loss])
def test_nodes_end_it_and_not_the_clock(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beyond_root, "nodes_of", lambda form: 8)
    problem = hard(loss)
    solution = problem.solve()
    certificate = problem.certify()
    assert certificate.search["nodes"] == 8
    assert certificate.search["ended"] == "end of a short search"
    assert solution.bound == certificate.bound < certificate.upper * (1.0 - 1e-2)


def test_relaxations_that_take_long_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "when_read", lambda *given: None)
    assert hard().certify().claim.optimal
    monkeypatch.setattr(beyond_root, "_RELAXATIONS", 1.0)
    assert not hard().certify().claim.optimal


def test_the_root_is_relaxed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    relaxed: list[str] = []
    relax = bound_search.relax_extracted

    def counted(form: Any, *given: Any, **options: Any) -> Any:
        relaxed.append("data" if form.box is None else "box")
        return relax(form, *given, **options)

    monkeypatch.setattr(bound_search, "relax_extracted", counted)
    monkeypatch.setattr(beyond_root, "nodes_of", lambda form: 1)
    monkeypatch.setattr(compiled, "when_read", lambda *given: None)
    assert not hard().certify().claim.optimal
    assert relaxed
    assert len(relaxed) == len(set(relaxed))


def test_a_certificate_comes_to_the_bound_of_a_short_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beyond_root, "nodes_of", lambda form: 1)
    problem = hard()
    assert problem.certify().claim.optimal
    monkeypatch.setattr(compiled, "when_read", lambda *given: None)
    assert not hard().certify().claim.optimal


def test_nothing_is_compiled_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for code in (compiling.NODES, compiling.BOUNDS):
        monkeypatch.setattr(code, "loaded", False)
    monkeypatch.setattr(compiling.Code, "kept", lambda code: code.loaded)
    assert hard().solve().status == "optimal (proved)"
    solution = hard(upper=0.4).solve()
    assert 0.0 < solution.bound < solution.value * (1.0 - 1e-3)
    assert not compiling.NODES.loaded
    assert not compiling.BOUNDS.loaded


def test_a_better_point_that_the_search_meets_is_announced() -> None:
    node_compiled.compiling()
    problem, best = hard(), hard().prove().value
    poor = problem.solve("iht", max_iter=0, start=np.zeros(20))
    assert poor.bound <= best < poor.value
    assert "problem.prove() returns a better solution" in " ".join(str(poor).split())
    problem.prove()
    assert problem.value == pytest.approx(best, rel=1e-9)


def test_a_solve_that_nobody_asks_looks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    search = Compiled.search_bound

    def counted(self: Compiled, outcome: Any, backend: str, seconds: float) -> Any:
        asked.append(seconds)
        return search(self, outcome, backend, seconds)

    monkeypatch.setattr(Compiled, "search_bound", counted)
    solution = posed(*data()).solve()
    assert asked == []
    assert solution.bound == solution.bound > 0.0
    assert solution.status == "optimal (proved)"
    assert len(asked) == 1
    assert asked == [max(assembly._LEAST, solution.timings["total"])]


def test_it_is_about_the_problem_that_was_solved() -> None:
    A, b = data()
    k = sm.Parameter(integer=True, value=1)
    problem = posed(A, b, k)
    one = problem.solve()
    k.value = 4
    four = problem.solve()
    assert four.bound < four.value < one.bound <= least(A, b, 1) * (1.0 + 1e-12)


def test_of_data_that_have_changed_since_nothing_is_known() -> None:
    A, b = data()
    solution = posed(A, b).solve()
    b += 1.0
    assert solution.bound == -np.inf
    assert solution.status == "solved"
    assert "none is known" in str(solution)


def test_targets_far_from_zero_have_a_bound() -> None:
    A, b = data()
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.squared_loss(A @ w + c, b + 1e3))
    assert sm.Problem(goal, sm.card(w) <= 3).solve().status == "optimal (proved)"


def test_pickled_before_it_is_read_it_is_the_same() -> None:
    solution = posed(*data()).solve()
    back = pickle.loads(pickle.dumps(solution))
    assert back.bound == pytest.approx(solution.bound, rel=1e-9)
    assert back.status == solution.status


def test_a_look_that_fails_leaves_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Compiled, *args: Any, **options: Any) -> Any:
        raise DataError("too large")

    solution = hard(upper=0.4).solve()
    monkeypatch.setattr(Compiled, "_certified", failing)
    assert solution.bound == -np.inf
    assert "none is known" in str(solution)


@pytest.mark.parametrize("ask", [sm.Problem.certify, sm.Problem.prove])
def test_certificates_raise_it(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Compiled, "at_hand", False)  # no search
    problem = posed(*data())
    first = problem.solve()
    assert first.bound == 0.0
    certificate = ask(problem)
    assert problem.solution.bound == certificate.bound > 0.0
    assert problem.status == "optimal (proved)"


def test_numbers_that_vanish_leave_a_bound_or_none() -> None:
    recipe = Recipe(
        loss="tweedie",
        shape=(5, 6),
        matrix_scale=1e150,
        constraint="box",
        weights="random",
        seed=341129538,
    )
    verdict = judge(recipe)
    assert (verdict.outcome, verdict.faults) == ("solved", ())


def test_after_a_certificate_nothing_else_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = hard(sm.logistic_loss)
    solution = problem.solve()
    with monkeypatch.context() as less:
        less.setattr(beyond_root, "nodes_of", lambda form: 0)
        certificate = problem.certify()
    assert not certificate.claim.optimal
    assert solution.status == "solved"
    assert solution.bound == certificate.bound
